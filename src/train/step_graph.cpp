// A forward graph -> the graph of a training step.
#include <algorithm>

#include "driver/prepare.h"
#include "graph/patch.h"
#include "ops/builder.h"
#include "train/differentiate.h"
#include "train/step.h"

namespace locution::train {

using graph::ValueId;
using ops::Builder;
using ops::Term;

namespace {

/// A constant becomes an input of the same name.
ValueId toInput(graph::Patch& patch, ValueId constant, const std::string& name) {
  const ValueType type = patch.graph().type(constant);
  patch.rename(constant, name + ".initial");
  const ValueId input = patch.addInput(patch.graph().mainRegion(), name, type);
  patch.replaceUses(constant, input);
  patch.releaseConstant(constant);
  return input;
}

ValueId outputNamed(const graph::Graph& graph, const std::string& name) {
  for (ValueId v : graph.main().outputs)
    if (graph.value(v).name == name) return v;
  return {};
}

}  // namespace

Result<StepGraph> makeStepGraph(graph::Graph forward, const std::string& loss,
                                const std::vector<std::string>& parameters, const StepOptions& options,
                                const driver::CompileOptions& compile) {
  StepGraph s;
  s.graph = std::move(forward);
  graph::Patch patch(s.graph);
  std::vector<ValueId> trained;
  for (const std::string& name : parameters) {
    ValueId v = s.graph.findValue(name);
    if (!v.isValid() || !(s.graph.value(v).isConstant() || s.graph.isMainInput(v)))
      return Status::error("no input and no constant is called '" + name + "'");
    if (s.graph.value(v).isConstant()) {
      s.initial[name] = s.graph.value(v).constant;
      v = toInput(patch, v, name);
    }
    if (std::find(trained.begin(), trained.end(), v) != trained.end())
      return Status::error("the parameter '" + name + "' is named twice");
    trained.push_back(v);
  }
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<driver::Session> session, driver::Session::create(compile));
  LOCUTION_RETURN_IF_ERROR(session->inferTypes(s.graph));
  const ValueId scalar = outputNamed(s.graph, loss);
  if (!scalar.isValid()) return Status::error("no output is called '" + loss + "'");
  s.loss = loss;
  LOCUTION_ASSIGN_OR_RETURN(std::vector<ValueId> gradients, differentiate(patch, scalar, trained));

  Builder b(patch);
  std::vector<ValueId> outputs = s.graph.main().outputs;
  auto output = [&](const Term& t, const std::string& name) {
    // Equal gradients are one value, which can be one output only; an input or a constant keeps its name.
    const graph::Value& v = s.graph.value(t.id());
    const bool isTaken = v.isConstant() || s.graph.isMainInput(t.id()) ||
                         std::find(outputs.begin(), outputs.end(), t.id()) != outputs.end();
    const Term own = isTaken ? call("Identity", t) : t;
    patch.rename(own.id(), name);
    outputs.push_back(own.id());
    return s.graph.value(own.id()).name;
  };
  auto input = [&](const std::string& name, const ValueType& type) {
    return b.of(patch.addInput(s.graph.mainRegion(), name, type));
  };
  const ValueType scalarType{s.graph.type(scalar).dtype, Shape{}};
  const AdamWTerms step{input("adamw.rate", scalarType), input("adamw.decay", scalarType),
                        input("adamw.correction", scalarType)};
  s.rate = s.graph.value(step.rate.id()).name;
  s.decay = s.graph.value(step.decay.id()).name;
  s.correction = s.graph.value(step.correction.id()).name;

  std::vector<Term> terms;
  for (ValueId g : gradients) terms.push_back(b.of(g));
  Term norm = globalNorm(terms), factor;
  if (options.optimiser.mostNorm > 0) factor = clipFactor(norm, options.optimiser.mostNorm);
  std::vector<AdamWOutputs> updated;
  for (size_t i = 0; i < trained.size(); ++i) {
    const ValueType& type = s.graph.type(trained[i]);
    const std::string& name = parameters[i];
    AdamWInputs in{b.of(trained[i]), terms[i], input("first." + name, type), input("second." + name, type)};
    s.parameters.push_back(s.graph.value(trained[i]).name);
    s.first.push_back(s.graph.value(in.first.id()).name);
    s.second.push_back(s.graph.value(in.second.id()).name);
    updated.push_back(adamW(options.optimiser, step, in, factor));
  }
  output(norm, "gradient.norm");
  for (size_t i = 0; i < trained.size(); ++i) {
    const std::string& name = parameters[i];
    s.nextParameters.push_back(output(updated[i].parameter, "next." + name));
    s.nextFirst.push_back(output(updated[i].first, "next.first." + name));
    s.nextSecond.push_back(output(updated[i].second, "next.second." + name));
    if (options.keepGradients) output(terms[i], "gradient." + name);
  }
  patch.setRegionOutputs(s.graph.mainRegion(), outputs);
  patch.removeDead();
  return s;
}

}  // namespace locution::train
