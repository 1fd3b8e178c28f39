#include "driver/verify_model.h"

#include <algorithm>
#include <set>

#include "driver/build.h"
#include "driver/kernels.h"
#include "driver/lazy_region.h"
#include "driver/lower.h"
#include "driver/prepare.h"
#include "hostops/host_op.h"
#include "runtime/context.h"
#include "support/hash.h"
#include "tune/reference.h"

namespace locution::driver {

namespace {

constexpr double kMaxPoints = 2e6;  // of a kernel, in the interpreter: about a tenth of a second

using hostops::HostValue;

// What all steps of a verification share.
struct Verification {
  Session& session;
  Evaluator& evaluator;
  uint64_t seed;
  const std::function<void(const KernelVerdict&)>& onKernel;
  VerifyReport report = {};
};

std::string dimsKey(const std::vector<HostValue>& values) {
  std::string key;
  for (const HostValue& v : values) key += (v.isTensor() ? v.tensor.shape().str() : "-") + ",";
  return key;
}

// The values of step buffers while the steps run one by one.
class Stepper {
 public:
  /// `where` comes before kernels' names: "body of node 3 (Loop): ". `compares`: kernels are held against the interpreter.
  Stepper(const Lowered& lowered, Verification& verification, std::string where, bool compares)
      : l_(lowered), v_(verification), where_(std::move(where)), compares_(compares), values_(lowered.buffers.size()) {
    for (size_t b = 0; b < l_.buffers.size(); ++b)
      if (l_.buffers[b].constant.isValid()) values_[b] = l_.buffers[b].constant;
  }

  HostValue& value(size_t buffer) { return values_[buffer]; }

  Status run() {
    for (const Step& step : l_.steps) {
      Status s = Status::ok();
      if (const auto* k = std::get_if<KernelStep>(&step)) s = run(*k);
      if (const auto* h = std::get_if<HostStep>(&step)) s = run(*h);
      if (const auto* r = std::get_if<RegionStep>(&step)) s = run(*r);
      LOCUTION_RETURN_IF_ERROR(s);
    }
    return Status::ok();
  }

 private:
  Status run(const KernelStep& step) {
    const loop::Computation& c = step.computation;
    KernelVerdict verdict;
    verdict.kernel = where_ + c.name;
    verdict.op = step.op;
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < step.inputs.size(); ++i)
      inputs.push_back(values_[step.inputs[i]].tensor.reshaped(loop::extents(*c.inputs[i])));
    auto have = v_.evaluator.evaluate(c, inputs);
    if (!have.isOk()) return have.status().withContext("kernel " + verdict.kernel);
    if (compares_) {
      LOCUTION_ASSIGN_OR_RETURN(ScheduledKernel scheduled,
                                scheduleKernel(c, v_.session.scheduler(), v_.session.target()));
      verdict.plan = scheduled.sentence;
      std::vector<Tensor> want;
      for (const Tensor& t : *have) {
        Tensor copy(t.dtype(), t.dims());
        std::copy(t.raw(), t.raw() + t.bytes(), copy.raw());
        want.push_back(std::move(copy));
      }
      auto share = tune::interpretReference(c, inputs, want, kMaxPoints, v_.seed);
      if (!share.isOk()) return share.status().withContext("kernel " + verdict.kernel);
      verdict.share = *share;
      for (size_t i = 0; i < have->size() && verdict.difference.empty(); ++i)
        verdict.difference = tune::differenceOf(want[i], (*have)[i]);
      if (v_.onKernel) v_.onKernel(verdict);
      v_.report.kernels.push_back(std::move(verdict));
    }
    for (size_t i = 0; i < have->size(); ++i) values_[step.outputs[i]] = HostValue(std::move((*have)[i]));
    return Status::ok();
  }

  // Under the dims that the step sees it with: aliases share a buffer.
  HostValue operand(const HostStep::Operand& o) const {
    if (o.buffer < 0) return {};
    HostValue value = values_[static_cast<size_t>(o.buffer)];
    bool isStatic = std::all_of(o.dims.begin(), o.dims.end(), [](int64_t d) { return d >= 0; });
    if (value.isTensor() && isStatic && !l_.buffers[static_cast<size_t>(o.buffer)].dynamic)
      value.tensor = value.tensor.reshaped(o.dims);
    return value;
  }
  void take(const std::vector<HostStep::Operand>& operands, std::vector<HostValue> results) {
    for (size_t i = 0; i < results.size() && i < operands.size(); ++i)
      if (operands[i].buffer >= 0) values_[static_cast<size_t>(operands[i].buffer)] = std::move(results[i]);
  }

  Status run(const HostStep& step) {
    const hostops::HostOp* op = hostops::findHostOp(step.op);
    LOCUTION_CHECK(op != nullptr) << step.op;
    LOCUTION_ASSIGN_OR_RETURN(hostops::Attrs attrs, hostops::parseAttrs(step.attrs));
    std::vector<HostValue> inputs, outputs;
    for (const auto& o : step.inputs) inputs.push_back(operand(o));
    hostops::HostCall call{inputs, attrs, step.outputs.size(), hashText(step.node)};
    LOCUTION_RETURN_IF_ERROR(hostops::runHostOp(*op, call, outputs).withContext(step.node));
    take(step.outputs, std::move(outputs));
    return Status::ok();
  }

  Status run(const RegionStep& step) {
    LOCUTION_ASSIGN_OR_RETURN(hostops::Attrs attrs, hostops::parseAttrs(step.attrs));
    runtime::ControlCall call{step.kind, attrs, {}, {}};
    for (const auto& o : step.inputs) call.inputs.push_back(operand(o));
    for (const auto& o : step.outputs)
      call.outputs.push_back(o.buffer < 0
                                 ? runtime::OutputInfo{DType::F32, {}, false}
                                 : runtime::OutputInfo{l_.buffers[static_cast<size_t>(o.buffer)].dtype, o.dims});
    auto results = runtime::runControl(std::move(call), [&](size_t which, std::vector<HostValue> values) {
      const RegionCode& region = l_.regions[step.regions[which]];
      for (int32_t c : region.captures) values.push_back(operand(step.captured[static_cast<size_t>(c)]));
      return runRegion(region, values);
    });
    if (!results.isOk()) return results.status().withContext(step.node);
    take(step.outputs, std::move(*results));
    return Status::ok();
  }

  // The first time that shapes are met, every kernel is compared; in later iterations they only run.
  Result<std::vector<HostValue>> runRegion(const RegionCode& region, const std::vector<HostValue>& inputs) {
    graph::Graph graph = *region.graph;
    LOCUTION_RETURN_IF_ERROR(specialiseTo(graph, inputs));
    LOCUTION_RETURN_IF_ERROR(v_.session.optimiseRegion(graph));
    LOCUTION_ASSIGN_OR_RETURN(Lowered lowered, v_.session.lower(graph));
    Stepper inner(lowered, v_, where_ + region.name + ": ",
                  compares_ && seen_.insert(region.name + dimsKey(inputs)).second);
    for (size_t i = 0; i < inputs.size(); ++i) inner.value(lowered.inputs[i].buffer) = inputs[i];
    LOCUTION_RETURN_IF_ERROR(inner.run());
    std::vector<HostValue> results;
    for (const PortInfo& p : lowered.outputs) {
      HostValue value = inner.value(p.buffer);
      if (value.isTensor() && !lowered.buffers[p.buffer].dynamic) value.tensor = value.tensor.reshaped(p.dims);
      results.push_back(std::move(value));
    }
    return results;
  }

  const Lowered& l_;
  Verification& v_;
  std::string where_;
  bool compares_;
  std::vector<HostValue> values_;
  std::set<std::string> seen_;
};

}  // namespace

namespace {

// `graph` as `Session::load` leaves it.
Result<VerifyReport> verifyLoaded(const std::shared_ptr<Session>& session, graph::Graph graph,
                                  const CompileOptions& options, const std::map<std::string, Tensor>& inputs,
                                  const MakeInput& makeInput, uint64_t seed,
                                  const std::function<void(const KernelVerdict&)>& onKernel) {
  session->keepRegionGraphs();
  LOCUTION_RETURN_IF_ERROR(session->optimise(graph));
  auto lowered = session->lower(graph);
  if (!lowered.isOk()) return lowered.status();
  LOCUTION_RETURN_IF_ERROR(session->prepareSchedules(*lowered));
  // The kernels as the executable has them: this target's code, this scheduler's plans, never the interpreter.
  Evaluator evaluator(session->compiler(), session->scheduler(), options.threads);
  evaluator.setInterpretSmall(false);
  Verification verification{*session, evaluator, seed, onKernel};
  Stepper stepper(*lowered, verification, "", true);
  std::vector<Tensor> given;
  for (const PortInfo& p : lowered->inputs) {
    auto it = inputs.find(p.name);
    if (it != inputs.end()) {
      given.push_back(it->second);
    } else {
      LOCUTION_ASSIGN_OR_RETURN(Tensor made, makeInput(p.name, p.dtype, p.dims));
      given.push_back(std::move(made));
    }
    stepper.value(p.buffer) = hostops::HostValue(given.back());
  }
  LOCUTION_RETURN_IF_ERROR(stepper.run());
  VerifyReport report = std::move(verification.report);
  std::vector<PortInfo> outputs = lowered->outputs;
  BuildInputs in;
  in.compiler = &session->compiler();
  in.scheduler = &session->scheduler();
  in.evaluator = &session->evaluator();
  in.jobs = options.jobs;
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<runtime::Executable> exe, buildExecutable(std::move(*lowered), in));
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<const runtime::Program> program, runtime::Program::load(exe));
  runtime::Context context(program, runtime::ThreadPool::create(options.threads));
  for (size_t i = 0; i < given.size(); ++i) LOCUTION_RETURN_IF_ERROR(context.setInput(i, given[i]));
  LOCUTION_RETURN_IF_ERROR(context.run());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const hostops::HostValue& want = stepper.value(outputs[i].buffer);
    if (!want.isTensor() || !context.outputValue(i).isTensor()) continue;
    const Tensor& have = context.output(i);
    std::string problem = tune::differenceOf(
        want.tensor.elements() == have.elements() ? want.tensor.reshaped(have.dims()) : want.tensor, have);
    if (!problem.empty()) report.outputProblems.push_back("output '" + outputs[i].name + "': " + problem);
  }
  return report;
}

}  // namespace

Result<VerifyReport> verifyModel(const std::string& path, const CompileOptions& options,
                                 const std::map<std::string, Tensor>& inputs, const MakeInput& makeInput, uint64_t seed,
                                 const std::function<void(const KernelVerdict&)>& onKernel) {
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Session::create(options));
  LOCUTION_ASSIGN_OR_RETURN(graph::Graph graph, session->load(path));
  auto report = verifyLoaded(session, std::move(graph), options, inputs, makeInput, seed, onKernel);
  if (!report.isOk()) return report.status().withContext(path);
  return report;
}

Result<VerifyReport> verifyGraph(graph::Graph graph, const CompileOptions& options,
                                 const std::map<std::string, Tensor>& inputs, const MakeInput& makeInput, uint64_t seed,
                                 const std::function<void(const KernelVerdict&)>& onKernel) {
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Session::create(options));
  LOCUTION_RETURN_IF_ERROR(session->specialise(graph));
  return verifyLoaded(session, std::move(graph), options, inputs, makeInput, seed, onKernel);
}

}  // namespace locution::driver
