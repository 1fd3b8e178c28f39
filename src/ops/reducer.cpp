#include "ops/reducer.h"

#include <utility>

namespace locution::ops {

using loop::Expr;

Reducer::Reducer(ComputeContext& c, std::vector<int64_t> extents, const std::vector<int64_t>& axes)
    : c_(c), extents_(std::move(extents)), reduced_(extents_.size(), false) {
  for (int64_t a : axes) reduced_[static_cast<size_t>(a)] = true;
}

int64_t Reducer::count() const {
  int64_t n = 1;
  for (size_t i = 0; i < extents_.size(); ++i)
    if (reduced_[i]) n *= extents_[i];
  return n;
}

namespace {

// A float32 accumulator loses what it adds once it has grown large: a sum of 10^8 equal values would stop at 2^24 of them.
constexpr int64_t kLongSum = int64_t{1} << 16;

}  // namespace

loop::Stage Reducer::make(bool keepDims, loop::Combiner combiner, const Body& body) const {
  loop::Stage s;
  Indices full;
  for (size_t i = 0; i < extents_.size(); ++i) {
    std::string dim = std::to_string(i);
    if (reduced_[i]) {
      if (keepDims) s.axes.push_back({loop::makeVar("i" + dim), 1});
      s.reduce.push_back({loop::makeVar("r" + dim), extents_[i]});
      full.emplace_back(s.reduce.back().var);
    } else {
      s.axes.push_back({loop::makeVar("i" + dim), extents_[i]});
      full.emplace_back(s.axes.back().var);
    }
  }
  s.body = body(full);
  if (combiner == loop::Combiner::Sum && s.body->type.dtype == DType::F32 && count() > kLongSum)
    s.body = loop::cast(DType::F64, s.body);
  // Nothing to combine: the body is the value.
  s.combiner = s.reduce.empty() ? loop::Combiner::None : combiner;
  return s;
}

DType Reducer::valueType(const loop::Stage& s) const {
  // A float64 body of a long sum was widened above, unless it is one anyway.
  const auto* widened = loop::as<loop::Cast>(s.body);
  return widened && s.combiner == loop::Combiner::Sum && s.body->type.dtype == DType::F64 &&
                 widened->value->type.dtype == DType::F32 && count() > kLongSum
             ? DType::F32
             : s.body->type.dtype;
}

Reducer::Indices Reducer::kept(const std::vector<loop::Axis>& axes, bool keepDims) const {
  Indices out;
  size_t next = 0;
  for (size_t i = 0; i < extents_.size(); ++i) {
    if (!reduced_[i]) out.emplace_back(axes[next].var);
    if (!reduced_[i] || keepDims) ++next;
  }
  return out;
}

void Reducer::finish(loop::Stage& s, const Epilogue& epilogue, bool keepDims, DType type) const {
  DType accumulated = s.body->type.dtype;
  if (!epilogue && accumulated == type) return;
  loop::VarRef acc = loop::makeVar("acc", {accumulated, 1});
  Expr narrow = loop::cast(valueType(s), acc);
  Expr value = epilogue ? epilogue(narrow, kept(s.axes, keepDims)) : narrow;
  s.acc = acc;
  s.epilogue = loop::cast(type, value);
}

loop::BufferRef Reducer::temporary(const std::string& stem, loop::Combiner combiner, const Body& body,
                                   const Epilogue& epilogue) {
  loop::Stage s = make(false, combiner, body);
  std::vector<int64_t> dims;
  for (const loop::Axis& a : s.axes) dims.push_back(a.extent);
  DType type = valueType(s);
  // What the epilogue gives is what is stored.
  if (epilogue) type = epilogue(loop::makeVar("acc", {type, 1}), kept(s.axes, false))->type.dtype;
  s.out = c_.temporary(stem, type, dims);
  finish(s, epilogue, false, type);
  loop::BufferRef out = s.out;
  c_.addStage(std::move(s));
  return out;
}

void Reducer::output(size_t o, bool keepDims, loop::Combiner combiner, const Body& body, const Epilogue& epilogue) {
  loop::Stage s = make(keepDims, combiner, body);
  s.out = c_.outputBuffer(o);
  finish(s, epilogue, keepDims, c_.output(o).dtype);
  c_.addStage(std::move(s));
}

Expr Reducer::at(const loop::BufferRef& temporary, const Indices& full) const {
  Indices row;
  for (size_t i = 0; i < extents_.size(); ++i)
    if (!reduced_[i]) row.push_back(full[i]);
  return loop::load(temporary, std::move(row));
}

void Reducer::copyOut(size_t o, bool keepDims, const loop::BufferRef& temporary) {
  loop::Stage s;
  for (size_t i = 0; i < extents_.size(); ++i)
    if (!reduced_[i] || keepDims)
      s.axes.push_back({loop::makeVar("i" + std::to_string(i)), reduced_[i] ? 1 : extents_[i]});
  s.out = c_.outputBuffer(o);
  s.body = loop::cast(c_.output(o).dtype, loop::load(temporary, kept(s.axes, keepDims)));
  c_.addStage(std::move(s));
}

}  // namespace locution::ops
