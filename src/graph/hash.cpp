// A graph's hash: of a byte string that says everything but names, with values numbered in program order. Constants stand for
// themselves wherever they are read, so neither their place nor whether they are shared counts.
#include "support/hash.h"

#include <cstring>

#include "graph/graph.h"

namespace locution::graph {
namespace {

class Hasher {
 public:
  Hasher(const Graph& graph)
      : graph_(graph),
        numbers_(static_cast<size_t>(graph.valueCount()), -1),
        constants_(static_cast<size_t>(graph.valueCount()), 0) {}

  uint64_t run() {
    addRegion(graph_.mainRegion());
    return hashBytes(bytes_.data(), bytes_.size());
  }

 private:
  template <typename T>
  void add(T number) {
    static_assert(std::is_arithmetic_v<T>);
    char text[sizeof(T)];
    std::memcpy(text, &number, sizeof(T));
    bytes_.append(text, sizeof(T));
  }
  // With the length first, so that neighbours can't be cut another way.
  void addText(std::string_view text) {
    add(text.size());
    bytes_ += text;
  }

  void addAttr(const Attr& attr) {
    add(static_cast<uint8_t>(attr.index()));
    std::visit([this](const auto& value) { addValue(value); }, attr);
  }
  void addValue(int64_t value) { add(value); }
  void addValue(double value) { add(value); }
  void addValue(const std::string& value) { addText(value); }
  void addValue(const Tensor& value) { add(value.hash()); }
  template <typename T>
  void addValue(const std::vector<T>& values) {
    add(values.size());
    for (const T& value : values) addValue(value);
  }

  // A parameter is named by its value's name; what counts is which value that is.
  void addParameter(const std::string& name) {
    ValueId id = name.empty() ? ValueId{} : graph_.findValue(name);
    add(name.empty());
    addReference(id);
  }

  void addType(const ValueType& type) {
    if (!type.quantisation) return addText(type.str());
    ValueType plain = type;
    plain.quantisation.reset();
    addText(plain.str());
    addParameter(type.quantisation->scale);
    addParameter(type.quantisation->zeroPoint);
    add(type.quantisation->axis);
    add(type.quantisation->block);
  }

  void addReference(ValueId id) {
    if (const Tensor* constant = graph_.constant(id)) {
      uint64_t& known = constants_[static_cast<size_t>(id.index)];
      if (known == 0) known = constant->hash();
      add('c');
      add(known);
      // A parameter that is quantised by itself or in a circle must not be followed for ever.
      if (!inType_) {
        inType_ = true;
        addType(graph_.type(id));
        inType_ = false;
      }
    } else {
      add('v');
      add(id.isValid() ? numbers_[static_cast<size_t>(id.index)] : int64_t{-2});
    }
  }

  void define(ValueId id) {
    add(id.isValid());
    if (!id.isValid()) return;
    numbers_[static_cast<size_t>(id.index)] = next_++;
    inType_ = true;
    addType(graph_.type(id));
    inType_ = false;
  }

  void addRegion(RegionId id) {
    const Region& region = graph_.region(id);
    add(region.inputs.size());
    for (ValueId input : region.inputs) define(input);
    add(region.nodes.size());
    for (NodeId n : region.nodes) {
      const Node& node = graph_.node(n);
      addText(node.op);
      add(node.attrs.size());
      for (const auto& [key, attr] : node.attrs) {
        addText(key);
        addAttr(attr);
      }
      add(node.inputs.size());
      for (ValueId input : node.inputs) addReference(input);
      add(node.regions.size());
      for (RegionId inner : node.regions) addRegion(inner);
      add(node.outputs.size());
      for (ValueId output : node.outputs) define(output);
    }
    add(region.outputs.size());
    for (ValueId output : region.outputs) addReference(output);
  }

  const Graph& graph_;
  std::vector<int64_t> numbers_;
  std::vector<uint64_t> constants_;
  int64_t next_ = 0;
  bool inType_ = false;
  std::string bytes_;
};

}  // namespace

uint64_t hash(const Graph& graph) { return Hasher(graph).run(); }

}  // namespace locution::graph
