#include "passes/specialise.h"

#include <set>

#include "core/type_text.h"
#include "passes/propagate.h"
#include "support/strings.h"

namespace locution::passes {
namespace {

struct NeededInputs {
  std::string_view op;
  std::vector<size_t> inputs;
};

/// The name when the dim is nothing but a symbol, else "".
std::string symbolName(const Dim& dim) {
  if (dim.isKnown()) return "";
  std::string text = dim.str();
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = unescaped(text.substr(1, text.size() - 2));
  return Dim::symbol(text) == dim ? text : "";
}

class Binder {
 public:
  explicit Binder(const Graph& graph) : graph_(graph) {}

  Status bind(ValueId input, const Ints& given) {
    const Shape& wanted = graph_.type(input).shape;
    if (!wanted.isRanked()) return Status::ok();
    const std::string name = "input '" + graph_.value(input).name + "'";
    if (wanted.rank() != static_cast<int64_t>(given.size()))
      return Status::error(name + " has " + std::to_string(wanted.rank()) + " dims (" + wanted.str() + "), but " +
                           std::to_string(given.size()) + " are given (" + Shape::of(given).str() + ")");
    for (int64_t i = 0; i < wanted.rank(); ++i) {
      const int64_t extent = given[static_cast<size_t>(i)];
      if (extent < 0)
        return Status::error(name + ", dim " + std::to_string(i) + ": " + std::to_string(extent) + " is no extent");
      std::string symbol = symbolName(wanted[i]);
      if (symbol.empty()) continue;  // checked once everything is bound
      auto [at, isNew] = binding_.try_emplace(symbol, extent);
      if (isNew) {
        source_[symbol] = name + ", dim " + std::to_string(i);
      } else if (at->second != extent) {
        return Status::error(name + ", dim " + std::to_string(i) + ": '" + symbol + "' is " + std::to_string(extent) +
                             " here, but " + std::to_string(at->second) + " in " + source_[symbol]);
      }
    }
    return Status::ok();
  }

  /// Every dim that is a number by now agrees with what was given.
  Status check(ValueId input, const Ints& given) const {
    const Shape wanted = graph_.type(input).shape.substitute(binding_);
    for (int64_t i = 0; wanted.isRanked() && i < wanted.rank(); ++i) {
      const int64_t extent = given[static_cast<size_t>(i)];
      if (wanted[i].isKnown() && wanted[i].value() != extent)
        return Status::error("input '" + graph_.value(input).name + "', dim " + std::to_string(i) +
                             ": the model wants " + wanted[i].str() + " (" + graph_.type(input).shape.str() +
                             "), given is " + std::to_string(extent) + " (" + Shape::of(given).str() + ")");
    }
    return Status::ok();
  }

  const SymbolBinding& binding() const { return binding_; }

 private:
  const Graph& graph_;
  SymbolBinding binding_;
  std::map<std::string, std::string> source_;
};

Result<ValueId> findInput(const Graph& graph, const std::string& name) {
  ValueId id = graph.findValue(name);
  if (id.isValid() && graph.isMainInput(id)) return id;
  std::string names;
  for (ValueId v : graph.main().inputs) names += (names.empty() ? "" : ", ") + graph.value(v).name;
  return Status::error("the model has no input '" + name + "'; its inputs are: " + (names.empty() ? "none" : names));
}

}  // namespace

const std::vector<size_t>* neededInputs(const std::string& op) {
  static const std::vector<NeededInputs> kTable = {
#define NEEDS(op, ...) {op, {__VA_ARGS__}},
#include "passes/needed_inputs.inc"
#undef NEEDS
  };
  for (const NeededInputs& entry : kTable)
    if (entry.op == op) return &entry.inputs;
  return nullptr;
}

Status specialise(Patch& patch, const std::map<std::string, Shape>& inputShapes,
                  const std::map<std::string, Tensor>& inputValues, std::vector<ValueId>* frozen) {
  const Graph& graph = patch.graph();
  std::map<ValueId, Ints> given;
  for (const auto& [name, shape] : inputShapes) {
    LOCUTION_ASSIGN_OR_RETURN(ValueId id, findInput(graph, name));
    if (!shape.isRanked() || !shape.isStatic())
      return Status::error("the shape given for input '" + name + "' is " + shape.str() + ", expected numbers");
    given[id] = shape.extents();
  }
  for (const auto& [name, tensor] : inputValues) {
    LOCUTION_ASSIGN_OR_RETURN(ValueId id, findInput(graph, name));
    const ValueType& type = graph.type(id);
    if (type.kind != ValueKind::Tensor) continue;
    if (type.dtype != tensor.dtype())
      return Status::error("input '" + name + "': the model wants " + std::string(dtypeName(type.dtype)) +
                           ", given is " + std::string(dtypeName(tensor.dtype())));
    auto [at, isNew] = given.try_emplace(id, tensor.dims());
    if (!isNew && at->second != tensor.dims())
      return Status::error("input '" + name + "': the shape given is " + Shape::of(at->second).str() +
                           ", but its value has the shape " + tensor.shape().str());
  }
  Binder binder(graph);
  for (ValueId input : graph.main().inputs)
    if (auto at = given.find(input); at != given.end()) LOCUTION_RETURN_IF_ERROR(binder.bind(input, at->second));
  for (const auto& [input, extents] : given) LOCUTION_RETURN_IF_ERROR(binder.check(input, extents));

  if (!binder.binding().empty())
    for (int32_t i = 0; i < graph.valueCount(); ++i) {
      ValueType type = graph.type(ValueId{i});
      if (!type.shape.isRanked() || type.shape.isStatic()) continue;
      type.shape = type.shape.substitute(binder.binding());
      patch.setType(ValueId{i}, type);
    }
  for (const auto& [input, extents] : given) {
    ValueType type = graph.type(input);
    type.shape = Shape::of(extents);
    patch.setType(input, type);
  }
  for (ValueId input : shapeInputs(graph)) {
    auto at = inputValues.find(graph.value(input).name);
    if (at == inputValues.end()) continue;
    patch.replaceUses(input, patch.addConstant(graph.value(input).name + ".value", at->second));
    if (frozen) frozen->push_back(input);
  }
  return Status::ok();
}

std::vector<ValueId> shapeInputs(const Graph& graph) {
  std::set<ValueId> needed;
  std::vector<ValueId> work;
  auto need = [&](ValueId v) {
    if (v.isValid() && !graph.value(v).isConstant() && needed.insert(v).second) work.push_back(v);
  };
  graph.forEachNode([&](NodeId id) {
    const Node& node = graph.node(id);
    const std::vector<size_t>* inputs = neededInputs(node.op);
    if (!inputs) return;
    for (size_t i : *inputs) need(node.input(i));
  });
  while (!work.empty()) {
    ValueId v = work.back();
    work.pop_back();
    const graph::Value& value = graph.value(v);
    if (!value.producer.isValid()) continue;
    const Node& node = graph.node(value.producer);
    // These depend on their input's shape only, which is known without its value.
    if (node.op == "Shape" || node.op == "Size") continue;
    for (ValueId input : node.inputs) need(input);
    for (RegionId r : node.regions)
      for (ValueId output : graph.region(r).outputs) need(output);
  }
  std::vector<ValueId> out;
  for (ValueId input : graph.main().inputs) {
    const ValueType& type = graph.type(input);
    if (!needed.contains(input) || type.kind != ValueKind::Tensor || type.dtype == DType::String) continue;
    // A picture whose contents decide a shape is no parameter: that shape is dynamic.
    bool isSmall = !type.shape.isRanked() || type.shape.rank() <= 1;
    if (isSmall || isInteger(type.dtype)) out.push_back(input);
  }
  return out;
}

std::vector<DynamicDim> dynamicDims(const Graph& graph) {
  std::vector<DynamicDim> out;
  for (ValueId input : graph.main().inputs) {
    const ValueType& type = graph.type(input);
    if (type.kind != ValueKind::Tensor) continue;
    if (!type.shape.isRanked()) {
      out.push_back({input, -1, ""});
      continue;
    }
    for (int64_t i = 0; i < type.shape.rank(); ++i) {
      if (type.shape[i].isKnown()) continue;
      std::string symbol = symbolName(type.shape[i]);
      out.push_back({input, i, symbol.empty() ? type.shape[i].str() : symbol});
    }
  }
  return out;
}

Status needStaticInputs(const Graph& graph) {
  for (ValueId v : graph.main().inputs) {
    const Shape& shape = graph.type(v).shape;
    if (shape.isRanked() && shape.isStatic() && shape.elements() > ops::kMostElements)
      return Status::error("input '" + graph.value(v).name + "': the shape " + shape.str() + " is too large");
  }
  const std::vector<DynamicDim> dynamic = dynamicDims(graph);
  if (dynamic.empty()) return Status::ok();
  std::string message;
  for (size_t i = 0; i < dynamic.size();) {
    ValueId input = dynamic[i].input;
    const std::string& name = graph.value(input).name;
    message += (message.empty() ? "" : "; ") + ("input '" + name + "'");
    if (dynamic[i].axis < 0) {
      message += " has no known shape";
      ++i;
    } else {
      std::vector<std::string> dims;
      for (; i < dynamic.size() && dynamic[i].input == input; ++i)
        dims.push_back(std::to_string(dynamic[i].axis) + " (" + dynamic[i].symbol + ")");
      message += (dims.size() == 1 ? ": dim " : ": dims ") + join(dims, ", ") + (dims.size() == 1 ? " is" : " are") +
                 " dynamic";
      message += " in " + graph.type(input).shape.str();
    }
  }
  const std::string& first = graph.value(dynamic[0].input).name;
  return Status::error(message + "; give the numbers with --shape " + first + "=..., or a value with --input");
}

}  // namespace locution::passes
