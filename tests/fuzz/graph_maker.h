// Random small graphs, node by node: each operator has a recipe that draws inputs and attributes it is likely to take (recipes.cpp).
// What type inference or the operator's compute refuses is dropped again, so that every graph compiles, or ought to.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "graph/patch.h"
#include "ops/contexts.h"

namespace locution::fuzz {

using Ints = std::vector<int64_t>;
using graph::ValueId;

/// What makes one kind of value: [low, high] for integers that index.
struct Contents {
  bool bounded = false;
  int64_t low = 0, high = 0;
  bool isFinite = false;  ///< floats without infinities and NaN
};

class GraphMaker {
 public:
  explicit GraphMaker(uint64_t seed) : random_(seed), patch_(graph_) { patch_.setName("fuzz"); }

  /// Adds about `nodes` nodes and hands the graph over; every value that no node reads is an output, and some others.
  graph::Graph run(int nodes);
  /// Values for the inputs of what `run` made, by name.
  std::map<std::string, Tensor> inputValues();
  Tensor randomTensor(DType dtype, const Ints& dims, const Contents& contents = {});

  // For recipes.
  int64_t pick(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int64_t oneIn) { return pick(oneIn) == 0; }
  template <typename T>
  T oneOf(std::initializer_list<T> list) {
    return list.begin()[pick(static_cast<int64_t>(list.size()))];
  }
  double real(double low, double high) { return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53; }

  DType anyDType();
  DType floatDType();
  DType integerDType();
  DType numericDType();
  Ints anyDims(int64_t minRank, int64_t maxRank);

  /// A value of that type: one that exists, an input, or a constant.
  ValueId value(DType dtype, const Ints& dims);
  /// Weights: what lies in the padding is not multiplied by them, while the interpreter's loops multiply a zero.
  ValueId finite(DType t, const Ints& d);
  /// A recent value of one of these classes, or a new one.
  ValueId numeric(int64_t minRank = 0, int64_t maxRank = 5);
  ValueId floating(int64_t minRank = 0, int64_t maxRank = 5);
  ValueId integral(int64_t minRank = 0, int64_t maxRank = 5);
  ValueId boolean();
  ValueId any(int64_t minRank = 0, int64_t maxRank = 5);
  /// Of a given type, with dims that broadcast against `dims`.
  ValueId broadcastable(DType dtype, const Ints& dims);
  ValueId constant(Tensor tensor) { return patch_.addConstant("k", std::move(tensor)); }
  ValueId ints(const Ints& v) { return constant(Tensor::vectorI64(v)); }
  ValueId randomConstant(DType dtype, const Ints& dims) { return constant(randomTensor(dtype, dims)); }
  /// Integers in [low, high], as constant or input.
  ValueId indices(DType dtype, const Ints& dims, int64_t low, int64_t high);

  DType dtype(ValueId v) const { return graph_.type(v).dtype; }
  Ints dims(ValueId v) const { return graph_.type(v).shape.extents(); }
  int64_t rank(ValueId v) const { return graph_.type(v).shape.rank(); }
  /// -rank ... rank - 1
  int64_t axisOf(ValueId v) { return pick(2 * rank(v)) - rank(v); }
  Ints axesOf(ValueId v);
  Ints permutation(int64_t n);

  /// Appends a node; false where it is refused. Any outputs but one are left out at random.
  bool make(const std::string& op, std::vector<ValueId> inputs, graph::Attrs attrs = {}, size_t outputs = 1);
  /// An attribute, three times in four.
  template <typename T>
  void maybe(graph::Attrs& attrs, const std::string& key, T v) {
    if (!chance(4)) attrs[key] = std::move(v);
  }

 private:
  /// A constant, or an input that `inputValues` fills by `contents`.
  ValueId withContents(DType t, const Ints& d, const Contents& contents, const char* name);
  ValueId pooled(bool (*accepts)(DType), int64_t minRank, int64_t maxRank);

  std::mt19937_64 random_;
  graph::Graph graph_;
  graph::Patch patch_;
  std::vector<ValueId> pool_;
  std::map<ValueId, Contents> contents_;
};

struct Recipe {
  std::vector<std::string> ops;
  bool (*make)(GraphMaker&, const std::string& op);
};
/// All of them; each compiled operator of ops.inc should have one.
const std::vector<Recipe>& recipes();

// The families that `recipes` joins.
void addPointwiseRecipes(std::vector<Recipe>& out);
void addMovementRecipes(std::vector<Recipe>& out);
void addReductionRecipes(std::vector<Recipe>& out);
void addSpatialRecipes(std::vector<Recipe>& out);
void addSequenceRecipes(std::vector<Recipe>& out);

}  // namespace locution::fuzz
