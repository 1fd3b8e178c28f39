#include "graph_maker.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace locution::fuzz {

namespace {

constexpr int64_t kMaxElements = 4096;

bool isNumber(DType t) { return (isFloat(t) || isInteger(t)) && dtypeBits(t) >= 8; }
bool isWholeInteger(DType t) { return isInteger(t) && dtypeBits(t) >= 8; }
bool isBool(DType t) { return t == DType::Bool; }
bool isAny(DType) { return true; }

bool isSmall(const ValueType& t) {
  return t.kind == ValueKind::Tensor && t.shape.isRanked() && t.shape.isStatic() && t.shape.elements() <= kMaxElements;
}

}  // namespace

DType GraphMaker::floatDType() {
  if (!chance(3)) return DType::F32;
  return oneOf({DType::F64, DType::F16, DType::BF16});
}
DType GraphMaker::integerDType() {
  return oneOf({DType::I64, DType::I32, DType::I64, DType::I32, DType::I8, DType::U8, DType::I16, DType::U16,
                DType::U32, DType::U64});
}
DType GraphMaker::numericDType() { return chance(3) ? integerDType() : floatDType(); }
DType GraphMaker::anyDType() { return chance(8) ? DType::Bool : numericDType(); }

Ints GraphMaker::anyDims(int64_t minRank, int64_t maxRank) {
  Ints d(static_cast<size_t>(minRank + pick(std::min<int64_t>(maxRank, 4) - minRank + 1)));
  for (int64_t& e : d) e = chance(40) ? 0 : chance(6) ? 1 : chance(12) ? 9 + pick(30) : 1 + pick(8);
  while (Shape::of(d).elements() > 1024) *std::max_element(d.begin(), d.end()) /= 2;
  return d;
}

Tensor GraphMaker::randomTensor(DType dtype, const Ints& dims, const Contents& contents) {
  Tensor t(dtype, dims);
  const bool wild = chance(12) && !contents.isFinite;
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (contents.bounded) {
      t.setElementInt(i, contents.low + pick(contents.high - contents.low + 1));
    } else if (dtype == DType::Bool) {
      t.setElementInt(i, pick(2));
    } else if (isFloat(dtype)) {
      double v = std::round(real(-4, 4) * 64) / 64 + 0x1p-8;
      if (wild && chance(8))
        v = oneOf({0.0, -0.0, 1.0, -1.0, 0.5, 1e4, -1e4, double(NAN), double(INFINITY), -double(INFINITY)});
      t.setElement(i, v);
    } else if (wild && chance(8)) {
      t.setElementInt(i, static_cast<int64_t>(oneOf<uint64_t>({0, 1, ~uint64_t{0}, uint64_t{1} << 63, 0x7f, 0x80,
                                                               0x7fffffff, 0x80000000, ~uint64_t{0} >> 1})));
    } else {
      t.setElementInt(i, isUnsignedInt(dtype) ? pick(16) : pick(17) - 8);
    }
  }
  return t;
}

ValueId GraphMaker::pooled(bool (*accepts)(DType), int64_t minRank, int64_t maxRank) {
  std::vector<ValueId> fit;
  for (ValueId v : pool_)
    if (accepts(dtype(v)) && rank(v) >= minRank && rank(v) <= maxRank) fit.push_back(v);
  if (fit.empty() || chance(8)) return {};
  auto n = static_cast<int64_t>(fit.size());
  return fit[static_cast<size_t>(chance(3) ? pick(n) : n - 1 - pick(std::min<int64_t>(n, 3)))];
}

ValueId GraphMaker::value(DType t, const Ints& d) {
  for (int tries = 0; tries < 4 && !pool_.empty() && !chance(4); ++tries) {
    ValueId v = pool_[static_cast<size_t>(pick(static_cast<int64_t>(pool_.size())))];
    if (dtype(v) == t && dims(v) == d) return v;
  }
  if (chance(3)) return randomConstant(t, d);
  ValueType type;
  type.dtype = t;
  type.shape = Shape::of(d);
  pool_.push_back(patch_.addInput(graph_.mainRegion(), "x", type));
  return pool_.back();
}
ValueId GraphMaker::withContents(DType t, const Ints& d, const Contents& contents, const char* name) {
  if (chance(2)) return constant(randomTensor(t, d, contents));
  ValueType type;
  type.dtype = t;
  type.shape = Shape::of(d);
  ValueId v = patch_.addInput(graph_.mainRegion(), name, type);
  contents_[v] = contents;
  return v;
}
ValueId GraphMaker::finite(DType t, const Ints& d) {
  Contents contents;
  contents.isFinite = true;
  return withContents(t, d, contents, "w");
}
ValueId GraphMaker::numeric(int64_t low, int64_t high) {
  ValueId v = pooled(isNumber, low, high);
  return v.isValid() ? v : value(numericDType(), anyDims(low, high));
}
ValueId GraphMaker::floating(int64_t low, int64_t high) {
  ValueId v = pooled(isFloat, low, high);
  return v.isValid() ? v : value(floatDType(), anyDims(low, high));
}
ValueId GraphMaker::integral(int64_t low, int64_t high) {
  ValueId v = pooled(isWholeInteger, low, high);
  return v.isValid() ? v : value(integerDType(), anyDims(low, high));
}
ValueId GraphMaker::boolean() {
  ValueId v = pooled(isBool, 0, 5);
  return v.isValid() ? v : value(DType::Bool, anyDims(0, 4));
}
ValueId GraphMaker::any(int64_t low, int64_t high) {
  ValueId v = pooled(isAny, low, high);
  return v.isValid() ? v : value(anyDType(), anyDims(low, high));
}

ValueId GraphMaker::broadcastable(DType t, const Ints& d) {
  Ints out = d;
  for (int64_t& e : out)
    if (chance(4)) e = 1;
  if (chance(3)) out.erase(out.begin(), out.begin() + pick(static_cast<int64_t>(out.size()) + 1));
  for (int64_t& e : out)
    if (e == 1 && chance(6)) e = 1 + pick(4);
  return value(t, out);
}

ValueId GraphMaker::indices(DType t, const Ints& d, int64_t low, int64_t high) {
  Contents c{true, low, std::max(low, high)};
  return withContents(t, d, c, "i");
}

Ints GraphMaker::permutation(int64_t n) {
  Ints p(static_cast<size_t>(n));
  std::iota(p.begin(), p.end(), 0);
  std::shuffle(p.begin(), p.end(), random_);
  return p;
}
Ints GraphMaker::axesOf(ValueId v) {
  Ints axes = permutation(rank(v));
  axes.resize(static_cast<size_t>(pick(rank(v) + 1)));
  for (int64_t& a : axes)
    if (chance(3)) a -= rank(v);
  return axes;
}

bool GraphMaker::make(const std::string& op, std::vector<ValueId> inputs, graph::Attrs attrs, size_t outputs) {
  ValueType open;
  open.shape = Shape::unranked();
  while (!inputs.empty() && !inputs.back().isValid()) inputs.pop_back();
  graph::NodeId n = patch_.append(graph_.mainRegion(),
                                  {op, std::move(inputs), std::move(attrs), std::vector<ValueType>(outputs, open)});
  const size_t kept = static_cast<size_t>(pick(static_cast<int64_t>(outputs)));
  for (size_t i = 0; i < outputs; ++i)
    if (i != kept && chance(2)) patch_.dropOutput(n, i);
  ops::KnownDims known;
  auto types = ops::inferNode(graph_, n, known);
  bool good = types.isOk();
  for (size_t i = 0; good && i < types->size(); ++i) {
    ValueId v = graph_.node(n).outputs[i];
    if (!v.isValid()) continue;
    good = (*types)[i] && isSmall(*(*types)[i]);
    if (good) patch_.setType(v, *(*types)[i]);
  }
  good = good && ops::computeNode(graph_, n).isOk();
  if (!good) {
    patch_.remove(n);
    return false;
  }
  for (ValueId v : graph_.node(n).outputs)
    if (v.isValid()) pool_.push_back(v);
  return true;
}

graph::Graph GraphMaker::run(int nodes) {
  std::vector<std::pair<const Recipe*, const std::string*>> all;
  for (const Recipe& r : recipes())
    for (const std::string& op : r.ops) all.emplace_back(&r, &op);
  for (int made = 0, tries = 0; made < nodes && tries < 20 * nodes; ++tries) {
    auto [recipe, op] = all[static_cast<size_t>(pick(static_cast<int64_t>(all.size())))];
    if (recipe->make(*this, *op)) ++made;
  }
  std::vector<ValueId> outputs, inputs;
  for (ValueId v : pool_)
    if (graph_.value(v).producer.isValid() && (graph_.users(v).empty() || chance(8))) outputs.push_back(v);
  patch_.setRegionOutputs(graph_.mainRegion(), outputs);
  for (ValueId v : graph_.main().inputs)
    if (graph_.isUsed(v)) inputs.push_back(v);
  patch_.setRegionInputs(graph_.mainRegion(), inputs);
  patch_.releaseDeadConstants();
  return graph_;
}

std::map<std::string, Tensor> GraphMaker::inputValues() {
  std::map<std::string, Tensor> out;
  for (ValueId v : graph_.main().inputs) {
    auto c = contents_.find(v);
    out[graph_.value(v).name] = randomTensor(dtype(v), dims(v), c == contents_.end() ? Contents{} : c->second);
  }
  return out;
}

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> kAll = [] {
    std::vector<Recipe> out;
    addPointwiseRecipes(out);
    addMovementRecipes(out);
    addReductionRecipes(out);
    addSpatialRecipes(out);
    addSequenceRecipes(out);
    return out;
  }();
  return kAll;
}

}  // namespace locution::fuzz
