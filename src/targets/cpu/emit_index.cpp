// Indices. Row-major offsets are kept as sums of terms with a constant, so that unrolled copies share their run-time part; a
// vector index with a constant step from lane to lane never becomes a vector of addresses.
#include <algorithm>

#include "loop/build.h"
#include "loop/passes.h"
#include "targets/cpu/emitter.h"

namespace locution::targets::cpu {

Emitter::Linear Emitter::term(llvm::Value* v) {
  Linear l;
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(v)) {
    l.constant = known->getSExtValue();
    return l;
  }
  order_.try_emplace(v, (depth_ << 40) + static_cast<int64_t>(order_.size()));
  l.terms.emplace_back(v, 1);
  return l;
}

Emitter::Linear Emitter::scaled(const Linear& a, int64_t factor) {
  Linear out;
  if (factor == 0) return out;
  auto times = [&](int64_t x) {
    return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(factor));
  };
  out.constant = times(a.constant);
  for (const auto& [value, f] : a.terms)
    if (int64_t product = times(f)) out.terms.emplace_back(value, product);
  return out;
}

Emitter::Linear Emitter::add(const Linear& a, const Linear& b, int64_t factorOfB) {
  Linear out = a;
  Linear other = scaled(b, factorOfB);
  out.constant = static_cast<int64_t>(static_cast<uint64_t>(out.constant) + static_cast<uint64_t>(other.constant));
  for (const auto& [value, factor] : other.terms) {
    auto it = std::find_if(out.terms.begin(), out.terms.end(), [v = value](const auto& t) { return t.first == v; });
    if (it == out.terms.end()) {
      out.terms.emplace_back(value, factor);
    } else if ((it->second += factor) == 0) {
      out.terms.erase(it);
    }
  }
  return out;
}

Emitter::Linear Emitter::linear(const loop::Expr& e) {
  if (const auto* bin = loop::as<loop::Binary>(e); bin && e->type == loop::Type{DType::I64, 1}) {
    if (bin->op == loop::BinaryOp::Add) return add(linear(bin->a), linear(bin->b), 1);
    if (bin->op == loop::BinaryOp::Sub) return add(linear(bin->a), linear(bin->b), -1);
    if (bin->op == loop::BinaryOp::Mul) {
      Linear a = linear(bin->a);
      Linear b = linear(bin->b);
      if (b.isConstant()) return scaled(a, b.constant);
      if (a.isConstant()) return scaled(b, a.constant);
      return term(b_.CreateMul(materialise(a), materialise(b)));
    }
    // a %% n = a - a // n * n: the two parts of an index that a fused loop was split into cancel where memory is contiguous.
    int64_t divisor = 0;
    if (bin->op == loop::BinaryOp::FloorMod && loop::isConstInt(bin->b, &divisor) && divisor > 0) {
      loop::Expr& quotient = quotientOf_[bin];
      if (!quotient) {
        quotient = loop::floorDiv(bin->a, bin->b);
        kept_.push_back(e);
      }
      return add(linear(bin->a), linear(quotient), -divisor);
    }
    if (bin->op == loop::BinaryOp::FloorDiv && loop::isConstInt(bin->b, &divisor) && divisor > 0) {
      Linear a = linear(bin->a);
      if (a.isConstant()) return term(emit(e));
      // Equal quotients are one term, however often the expression was built.
      for (const auto& q : quotients_)
        if (q.divisor == divisor && q.block == b_.GetInsertBlock() && q.dividend.constant == a.constant &&
            q.dividend.terms == a.terms)
          return term(q.value);
      llvm::Value* value = emit(e);
      quotients_.push_back({a, divisor, b_.GetInsertBlock(), value});
      return term(value);
    }
  }
  return term(emit(e));
}

llvm::Value* Emitter::materialise(const Linear& l) {
  auto terms = l.terms;
  std::sort(terms.begin(), terms.end(),
            [&](const auto& a, const auto& b) { return order_.lookup(a.first) < order_.lookup(b.first); });
  llvm::Value* sum = nullptr;
  for (const auto& [value, factor] : terms) {
    llvm::Value* part = factor == 1 ? value : b_.CreateMul(value, b_.getInt64(static_cast<uint64_t>(factor)));
    sum = sum ? b_.CreateAdd(sum, part) : part;
  }
  llvm::Value* constant = b_.getInt64(static_cast<uint64_t>(l.constant));
  if (!sum) return constant;
  return l.constant == 0 ? sum : b_.CreateAdd(sum, constant);
}

Emitter::LaneIndex Emitter::laneIndex(const loop::Expr& e) {
  LaneIndex out;
  if (e->type.lanes == 1) {
    out.base = linear(e);
    return out;
  }
  if (const auto* ramp = loop::as<loop::Ramp>(e); ramp && loop::isConstInt(ramp->stride, &out.step)) {
    out.base = linear(ramp->base);
    return out;
  }
  if (const auto* wide = loop::as<loop::Broadcast>(e)) {
    out.base = linear(wide->value);
    return out;
  }
  if (const auto* bin = loop::as<loop::Binary>(e)) {
    bool isSum = bin->op == loop::BinaryOp::Add || bin->op == loop::BinaryOp::Sub;
    if (isSum || bin->op == loop::BinaryOp::Mul) {
      LaneIndex a = laneIndex(bin->a);
      LaneIndex b = laneIndex(bin->b);
      if (!a.general && !b.general) {
        if (isSum) {
          int64_t sign = bin->op == loop::BinaryOp::Add ? 1 : -1;
          out.base = add(a.base, b.base, sign);
          out.step = a.step + sign * b.step;
          return out;
        }
        if (b.step != 0) std::swap(a, b);
        if (b.step == 0 && b.base.isConstant()) {
          out.base = scaled(a.base, b.base.constant);
          out.step = a.step * b.base.constant;
          return out;
        }
      }
    }
  }
  out.general = emit(e);
  return out;
}

llvm::Value* Emitter::laneVector(const LaneIndex& index, int lanes) {
  if (index.general) return index.general;
  llvm::Value* base = splat(materialise(index.base), lanes);
  if (index.step == 0) return base;
  std::vector<llvm::Constant*> steps;
  for (int i = 0; i < lanes; ++i) steps.push_back(intOf(b_.getInt64Ty(), i * index.step));
  return b_.CreateAdd(base, llvm::ConstantVector::get(steps));
}

// The value in one lane, as a scalar; null where a vector isn't made of ramps.
loop::Expr Emitter::atLane(const loop::Expr& e, const loop::VarRef& lane) {
  if (e->type.lanes == 1) return e;
  if (const auto* ramp = loop::as<loop::Ramp>(e)) return ramp->base + ramp->stride * loop::Expr(lane);
  if (const auto* wide = loop::as<loop::Broadcast>(e)) return wide->value;
  const auto* bin = loop::as<loop::Binary>(e);
  if (!bin || e->type.dtype != DType::I64) return nullptr;
  loop::Expr a = atLane(bin->a, lane), b = atLane(bin->b, lane);
  return a && b ? loop::binary(bin->op, a, b) : nullptr;
}

bool Emitter::dividesVectors(const std::vector<loop::Expr>& indices) {
  bool found = false;
  for (const auto& index : indices)
    loop::visit(index, [&](const loop::Expr& e) {
      const auto* bin = loop::as<loop::Binary>(e);
      found = found || (bin && e->type.lanes > 1 &&
                        (bin->op == loop::BinaryOp::FloorDiv || bin->op == loop::BinaryOp::FloorMod));
      return !found;
    });
  return found;
}

Emitter::LaneIndex Emitter::flatIndex(const loop::Buffer& buffer, const std::vector<loop::Expr>& indices) {
  LaneIndex sum;
  if (indices.size() != buffer.dims.size()) {
    fail("buffer " + buffer.name + " takes " + std::to_string(buffer.dims.size()) + " indices, not " +
         std::to_string(indices.size()));
    return sum;
  }
  int lanes = 1;
  for (const auto& index : indices) lanes = std::max(lanes, index->type.lanes);
  // Where a fused loop's vectors cross lines of a dim, only the sum of all indices is plain again.
  if (lanes > 1 && indices.size() > 1 && dividesVectors(indices)) {
    const loop::VarRef lane = loop::makeVar("lane");
    loop::Expr flat;
    for (size_t i = 0; i < indices.size(); ++i) {
      loop::Expr at = atLane(indices[i], lane);
      if (!at) break;
      flat = flat ? flat * buffer.dims[i] + at : at;
      if (i + 1 < indices.size()) continue;
      loop::Expr base;
      LaneIndex whole;
      if (!loop::splitAffine(loop::simplify(flat), lane.get(), &base, &whole.step)) break;
      kept_.push_back(base);
      whole.base = linear(base);
      return whole;
    }
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    LaneIndex part = laneIndex(indices[i]);
    if (i == 0) {
      sum = part;
      continue;
    }
    Linear extent = linear(buffer.dims[i]);
    bool simple = !sum.general && !part.general && (extent.isConstant() || sum.step == 0);
    if (simple) {
      sum.base = extent.isConstant() ? scaled(sum.base, extent.constant)
                                     : term(b_.CreateMul(materialise(sum.base), materialise(extent)));
      sum.base = add(sum.base, part.base, 1);
      sum.step = sum.step * extent.constant + part.step;
    } else {
      llvm::Value* outer = b_.CreateMul(laneVector(sum, lanes), splat(materialise(extent), lanes));
      sum.general = b_.CreateAdd(outer, laneVector(part, lanes));
    }
  }
  return sum;
}

llvm::Value* Emitter::address(const Place& p, llvm::Type* element, const Linear& index) {
  Linear runtime = index;
  runtime.constant = 0;
  llvm::Value* pointer = p.base;
  if (!runtime.isConstant()) pointer = b_.CreateGEP(element, pointer, materialise(runtime));
  if (index.constant == 0) return pointer;
  return b_.CreateGEP(element, pointer, b_.getInt64(static_cast<uint64_t>(index.constant)));
}

}  // namespace locution::targets::cpu
