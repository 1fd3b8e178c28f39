// Random graphs from a seed, for property tests: nested regions, absent inputs and outputs, odd names, attributes of every kind.
// Header only, so that no library carries it.
#pragma once

#include <bit>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <string>

#include "graph/patch.h"

namespace locution::graph {

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed), patch_(graph_) {}

  Graph run() {
    patch_.setName(text());
    if (chance(3)) graph_.metadata[text()] = text();
    fill(graph_.mainRegion(), {}, 0);
    return std::move(graph_);
  }

 private:
  size_t pick(size_t n) { return static_cast<size_t>(random_() % n); }
  bool chance(size_t oneIn) { return pick(oneIn) == 0; }

  std::string text() {
    static constexpr const char* kTexts[] = {
        "x",     "/model/conv.1/out", "odd name",    "",    "a\"b\\c",   "line\nbreak", "_",      "tensor", "//c",
        "input", "caf\xc3\xa9\x01",   "%y: float32", "1.5", "com.x::Op", "nan",         "region", "output", "a-b"};
    return kTexts[pick(std::size(kTexts))];
  }

  double number() {
    static constexpr double kNumbers[] = {0.0, -0.0, 1.0, -3.5, 0.1, 1e300, 5e-324, 3.0e-5, 123456789.0};
    switch (pick(4)) {
      case 0:
        return std::numeric_limits<double>::infinity();
      case 1:
        return std::bit_cast<double>(0x7ff8000000000000u | random_() % 3);
      default:
        return kNumbers[pick(std::size(kNumbers))];
    }
  }

  Dim dim() {
    Dim d = chance(3) ? Dim::symbol(chance(3) ? "odd dim" : "max_h") : Dim(static_cast<int64_t>(pick(5)));
    if (chance(4)) d = floorDiv(d * Dim(3) + Dim(1), Dim(2)) + Dim::symbol("n");
    return d;
  }

  ValueType type() {
    ValueType out;
    out.dtype = static_cast<DType>(pick(static_cast<size_t>(DType::U2) + 1));
    if (chance(6)) {
      out.shape = Shape::unranked();
    } else {
      std::vector<Dim> dims(pick(4));
      for (Dim& d : dims) d = dim();
      out.shape = Shape(dims);
      if (dims.size() == 2 && chance(3)) out.layout = {{1, 0}, chance(2) ? 0 : -1, 0};
      if (out.layout.blockedDim == 0) out.layout.block = 8;
    }
    if (chance(6)) out.kind = chance(2) ? ValueKind::Sequence : ValueKind::Optional;
    if (chance(8))
      out.quantisation = Quantisation{text(), chance(2) ? "" : text(), chance(2) ? -1 : 1, chance(2) ? 0 : 32};
    return out;
  }

  Tensor tensor() {
    auto dtype = static_cast<DType>(pick(static_cast<size_t>(DType::U2) + 1));
    std::vector<int64_t> dims(pick(3));
    for (int64_t& d : dims) d = static_cast<int64_t>(pick(4));
    Tensor out(dtype, dims);
    if (dtype == DType::String) {
      for (std::string& s : out.strings()) s = text();
    } else {
      for (int64_t i = 0; i < static_cast<int64_t>(out.bytes()); ++i) out.raw()[i] = static_cast<std::byte>(random_());
      int64_t used = out.elements() * dtypeBits(dtype);
      // Bits past the last packed element are no part of the value.
      if (used % 8 != 0) out.raw()[used / 8] &= static_cast<std::byte>((1 << used % 8) - 1);
    }
    return out;
  }

  Attr attr() {
    switch (pick(8)) {
      case 0:
        return static_cast<int64_t>(random_());
      case 1:
        return number();
      case 2:
        return text();
      case 3:
        return std::vector<int64_t>(pick(3), static_cast<int64_t>(random_()));
      case 4:
        return std::vector<double>(pick(3), number());
      case 5:
        return std::vector<std::string>(pick(3), text());
      case 6:
        return tensor();
      default:
        return Tensor();
    }
  }

  void fill(RegionId region, std::vector<ValueId> visible, int depth) {
    for (size_t i = pick(3); i-- > 0;) visible.push_back(patch_.addInput(region, text(), type()));
    for (size_t i = pick(3); i-- > 0;) visible.push_back(patch_.addConstant(text(), tensor(), region));
    for (size_t i = pick(depth == 0 ? 12 : 4); i-- > 0;) {
      Patch::NewNode made;
      made.op = chance(4) ? "com.x::Op" : "Add";
      made.name = text();
      made.sourceIndex = static_cast<int32_t>(pick(5)) - 1;
      for (size_t k = pick(4); k-- > 0;)
        made.inputs.push_back(visible.empty() || chance(5) ? ValueId{} : visible[pick(visible.size())]);
      for (size_t k = pick(3); k-- > 0;) made.attrs.emplace("a" + text(), attr());
      for (size_t k = pick(4); k-- > 0;) {
        made.types.push_back(type());
        made.names.push_back(text());
      }
      NodeId node = patch_.append(region, std::move(made));
      if (depth < 3 && chance(4))
        for (size_t k = 1 + pick(2); k-- > 0;) fill(patch_.addRegion(node), visible, depth + 1);
      for (size_t k = 0; k < graph_.node(node).outputs.size(); ++k) {
        if (chance(4))
          patch_.dropOutput(node, k);
        else
          visible.push_back(patch_.output(node, k));
      }
    }
    std::vector<ValueId> outputs;
    for (size_t i = pick(3); i-- > 0 && !visible.empty();) outputs.push_back(visible[pick(visible.size())]);
    patch_.setRegionOutputs(region, std::move(outputs));
  }

  std::mt19937_64 random_;
  Graph graph_;
  Patch patch_;
};

inline Graph randomGraph(uint64_t seed) { return RandomGraph(seed).run(); }

}  // namespace locution::graph
