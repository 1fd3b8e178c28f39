// Strided loads that an unrolled loop repeats at neighbouring places, as in a transposition: instead of a lane at a time, the
// rows they touch are loaded and transposed in registers. Before -> after, for k in 0..8 unrolled, lanes j in 0..8:
//     x[j * 100 + k] eight times, eight scalars each  ->  eight vectors x[j * 100 ... + 7] and 4 x 4 transpositions of their parts
// Every element of the rows is one that the loop reads, so nothing else is touched.
#include <algorithm>

#include "loop/build.h"
#include "loop/passes.h"
#include "targets/cpu/emitter.h"

namespace locution::targets::cpu {
namespace {

constexpr int64_t kSide = 4, kMaxCopies = 16;

/// Loads that run whenever the statement does: not within a branch or an inner loop.
void collectLoads(const loop::Expr& e, std::vector<const loop::Load*>* out) {
  if (const auto* l = loop::as<loop::Load>(e)) {
    out->push_back(l);
  } else if (const auto* cast = loop::as<loop::Cast>(e)) {
    collectLoads(cast->value, out);
  } else if (const auto* bin = loop::as<loop::Binary>(e)) {
    collectLoads(bin->a, out);
    collectLoads(bin->b, out);
  } else if (const auto* call = loop::as<loop::Call>(e)) {
    for (const auto& arg : call->args) collectLoads(arg, out);
  } else if (const auto* let = loop::as<loop::LetExpr>(e)) {
    collectLoads(let->value, out);
    collectLoads(let->body, out);
  }
}

}  // namespace

/// Emits, ahead of the copies of an unrolled loop, what their strided loads give; emitLoad finds it in `blocks_`.
void Emitter::emitBlocks(const loop::For& loop, int64_t extent) {
  const auto* store = loop::as<loop::Store>(loop.body);
  int64_t min = 0;
  if (!store || store->mask || extent % kSide != 0 || extent > kMaxCopies || !constantOf(loop.min, &min)) return;
  std::vector<const loop::Load*> loads;
  collectLoads(store->value, &loads);
  for (const loop::Load* l : loads) emitBlock(loop, min, extent, *l);
  vars_.erase(loop.var.get());
  forgetTo(0);
}

void Emitter::emitBlock(const loop::For& loop, int64_t min, int64_t extent, const loop::Load& e) {
  int lanes = e.type.lanes;
  const loop::Buffer& buffer = *e.buffer;
  auto param =
      std::find_if(function_.params.begin(), function_.params.end(), [&](const auto& p) { return p == e.buffer; });
  // Inputs only: elements of an output may have been written in the loop.
  bool isInput = param < function_.params.end() - static_cast<long>(function_.outputCount);
  if (!isInput || e.mask || lanes < kSide || (lanes & (lanes - 1)) != 0 || buffer.element.lanes > 1 ||
      dtypeBits(buffer.element.dtype) != 32 || blocks_.contains(&e))
    return;
  for (const auto& index : e.indices) {
    bool isKnown = true;
    loop::visit(index, [&](const loop::Expr& x) {
      const auto* v = loop::as<loop::Var>(x);
      isKnown = isKnown && x->kind != loop::ExprKind::Load && (!v || v == loop.var.get() || vars_.contains(v));
      return isKnown;
    });
    if (!isKnown) return;
  }
  auto at = [&](int64_t copy) {
    forgetTo(0);
    vars_[loop.var.get()] = b_.getInt64(static_cast<uint64_t>(min + copy));
    return flatIndex(buffer, e.indices);
  };
  LaneIndex first = at(0);
  for (int64_t copy : {int64_t{1}, extent - 1}) {
    LaneIndex next = at(copy);
    if (next.general || next.step != first.step || next.base.terms != first.base.terms ||
        next.base.constant - first.base.constant != copy)
      return;
  }
  if (first.general || std::abs(first.step) < extent) return;

  const Place& p = place(&buffer);
  llvm::Type* memory = memoryType(buffer.element.dtype);
  auto* part = llvm::FixedVectorType::get(memory, kSide);
  std::vector<llvm::Value*>& columns = blocks_[&e];
  for (int64_t group = 0; group < extent; group += kSide) {
    // Row r of `rows` holds, for b = 0, 1 ..., columns group ... group + 3 of the lanes' rows 4 b + r.
    llvm::Value* rows[kSide];
    for (int64_t r = 0; r < kSide; ++r) {
      std::vector<llvm::Value*> parts;
      for (int64_t lane = r; lane < lanes; lane += kSide) {
        Linear row = first.base;
        row.constant += lane * first.step + group;
        parts.push_back(loadOne(p, part, address(p, memory, row)));
      }
      rows[r] = joined(parts);
    }
    auto pair = [&](llvm::Value* a, llvm::Value* b, std::initializer_list<int> pick) {
      std::vector<int> mask;
      for (int base = 0; base < lanes; base += static_cast<int>(kSide))
        for (int i : pick) mask.push_back(i < kSide ? base + i : lanes + base + i - static_cast<int>(kSide));
      return b_.CreateShuffleVector(a, b, mask);
    };
    llvm::Value* low01 = pair(rows[0], rows[1], {0, 4, 1, 5});
    llvm::Value* low23 = pair(rows[2], rows[3], {0, 4, 1, 5});
    llvm::Value* high01 = pair(rows[0], rows[1], {2, 6, 3, 7});
    llvm::Value* high23 = pair(rows[2], rows[3], {2, 6, 3, 7});
    columns.push_back(pair(low01, low23, {0, 1, 4, 5}));
    columns.push_back(pair(low01, low23, {2, 3, 6, 7}));
    columns.push_back(pair(high01, high23, {0, 1, 4, 5}));
    columns.push_back(pair(high01, high23, {2, 3, 6, 7}));
  }
}

/// Vectors of equal length one after the other; as many as a power of two.
llvm::Value* Emitter::joined(std::vector<llvm::Value*> parts) {
  while (parts.size() > 1) {
    std::vector<llvm::Value*> next;
    int lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(parts[0]->getType())->getNumElements());
    std::vector<int> all;
    for (int i = 0; i < 2 * lanes; ++i) all.push_back(i);
    for (size_t i = 0; i + 1 < parts.size(); i += 2)
      next.push_back(b_.CreateShuffleVector(parts[i], parts[i + 1], all));
    parts = std::move(next);
  }
  return parts[0];
}

}  // namespace locution::targets::cpu
