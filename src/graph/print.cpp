// The text form of a graph: one line a value, regions indented under their node.
#include <set>

#include "graph/graph.h"
#include "graph/literal.h"
#include "support/strings.h"

namespace locution::graph {
namespace {

std::string nameText(const std::string& name) { return isBareName(name) ? name : quoted(name); }

class Printer {
 public:
  Printer(const Graph& graph, int64_t maxElements) : graph_(graph), maxElements_(maxElements) {}

  std::string run() {
    collectConstants();
    out_ = "graph " + quoted(graph_.name) + " {\n";
    for (const auto& [key, value] : graph_.metadata) out_ += "  metadata " + quoted(key) + " = " + quoted(value) + "\n";
    printRegion(graph_.mainRegion(), "  ");
    return out_ + "}\n";
  }

 private:
  // Constants under their region, in the order of their ids; those that only a quantised type names count as used.
  void collectConstants() {
    constants_.resize(static_cast<size_t>(graph_.regionCount()));
    std::set<std::string_view> named;
    for (int32_t i = 0; i < graph_.valueCount(); ++i) {
      const auto& quantisation = graph_.type(ValueId{i}).quantisation;
      if (!quantisation || !graph_.isDefined(ValueId{i})) continue;
      named.insert(quantisation->scale);
      named.insert(quantisation->zeroPoint);
    }
    for (int32_t i = 0; i < graph_.valueCount(); ++i) {
      const Value& value = graph_.value(ValueId{i});
      if (value.isConstant() && (graph_.isUsed(ValueId{i}) || named.contains(value.name)))
        constants_[static_cast<size_t>(value.region.index)].push_back(ValueId{i});
    }
  }

  std::string ref(ValueId id) const { return id.isValid() ? "%" + nameText(graph_.value(id).name) : "_"; }
  std::string typed(ValueId id) const { return id.isValid() ? ref(id) + ": " + graph_.type(id).str() : "_"; }

  void printConstant(ValueId id, const std::string& indent) {
    const Value& value = graph_.value(id);
    const Tensor& tensor = value.constant;
    bool asTyped = tensor.dtype() == value.type.dtype && tensor.shape() == value.type.shape;
    out_ += indent + "const " + typed(id) + " = " +
            (asTyped ? elementsText(tensor, maxElements_) : tensorText(tensor, maxElements_)) + "\n";
  }

  void printNode(NodeId id, const std::string& indent) {
    const Node& node = graph_.node(id);
    out_ += indent;
    for (size_t i = 0; i < node.outputs.size(); ++i) out_ += (i > 0 ? ", " : "") + typed(node.outputs[i]);
    out_ += (node.outputs.empty() ? "() = " : " = ") + nameText(node.op) + "(";
    for (size_t i = 0; i < node.inputs.size(); ++i) out_ += (i > 0 ? ", " : "") + ref(node.inputs[i]);
    out_ += ")";
    if (!node.attrs.empty()) {
      const char* separator = " {";
      for (const auto& [key, attr] : node.attrs) {
        out_ += separator + nameText(key) + " = " + attrText(attr, maxElements_);
        separator = ", ";
      }
      out_ += "}";
    }
    if (!node.name.empty()) out_ += " " + quoted(node.name);
    if (node.sourceIndex >= 0) out_ += " @" + std::to_string(node.sourceIndex);
    out_ += "\n";
    for (RegionId region : node.regions) {
      out_ += indent + "  region {\n";
      printRegion(region, indent + "    ");
      out_ += indent + "  }\n";
    }
  }

  void printRegion(RegionId id, const std::string& indent) {
    const Region& region = graph_.region(id);
    for (ValueId input : region.inputs) out_ += indent + "input " + typed(input) + "\n";
    for (ValueId constant : constants_[static_cast<size_t>(id.index)]) printConstant(constant, indent);
    for (NodeId node : region.nodes) printNode(node, indent);
    for (ValueId output : region.outputs) out_ += indent + "output " + ref(output) + "\n";
  }

  const Graph& graph_;
  int64_t maxElements_;
  std::vector<std::vector<ValueId>> constants_;
  std::string out_;
};

}  // namespace

std::string print(const Graph& graph, int64_t maxElements) { return Printer(graph, maxElements).run(); }

}  // namespace locution::graph
