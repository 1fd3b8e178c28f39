#include "schedule/roll.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/saturate.h"
#include "loop/passes.h"
#include "schedule/chain.h"
#include "schedule/winograd.h"

namespace locution::schedule {

using namespace loop;  // NOLINT: this file is about loop IR

namespace {

using Window = RollForm::Window;

void loadsOf(const Stage& s, const Buffer* b, std::vector<const Load*>* out) {
  for (const Expr& e : {s.body, s.epilogue})
    if (e)
      visit(e, [&](const Expr& x) {
        if (const auto* l = as<Load>(x); l && l->buffer.get() == b) out->push_back(l);
        return true;
      });
}

bool isOne(const Expr& e, const Axis& axis) {
  int64_t value = -1;
  return e.get() == axis.var.get() || (axis.extent == 1 && isConstInt(e, &value) && value == 0);
}

/// How `reader` walks through the rows of `made`; nothing when that is no window.
std::optional<Window> windowOf(const Stage& reader, const Stage& made) {
  std::vector<const Load*> loads;
  loadsOf(reader, made.out.get(), &loads);
  if (loads.empty()) return std::nullopt;
  Ranges ranges;
  for (const Axis& a : reader.reduce) ranges[a.var.get()] = {0, std::max<int64_t>(0, a.extent - 1)};
  const Var* row = reader.axes[kRowAxis].var.get();
  std::optional<Window> out;
  for (const Load* l : loads) {
    for (size_t i = 0; i < l->indices.size(); ++i) {
      if (i < kRowAxis && !isOne(l->indices[i], reader.axes[i])) return std::nullopt;
      if (i != kRowAxis && usesVar(l->indices[i], row)) return std::nullopt;
    }
    Window w;
    Expr rest;
    Range range;
    if (!splitAffine(l->indices[kRowAxis], row, &rest, &w.stride, ranges) || !bounds(rest, ranges, &range))
      return std::nullopt;
    w.low = range.min;
    w.high = range.max;
    if (w.stride < 1 || (out && out->stride != w.stride)) return std::nullopt;
    if (out) w = {w.stride, std::min(w.low, out->low), std::max(w.high, out->high)};
    out = w;
  }
  return out;
}

int64_t bytesOf(const Buffer& b) {
  int64_t n = 1;
  for (int64_t d : extents(b)) n *= d;
  return dtypeBytes(b.element.dtype, n);
}

int64_t powerOfTwoFrom(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

/// Puts a stage's row in place: what it makes goes to the rows that are kept (or to the row of the output), and so does what it reads.
class PlaceRow : public Mutator {
 public:
  struct Kept {
    BufferRef buffer;
    int64_t rows;
  };
  using KeptOf = std::map<const Buffer*, Kept>;
  PlaceRow(const Stage& stage, const KeptOf& kept) : stage_(stage), kept_(kept) {}

  using Mutator::mutate;
  Expr mutate(const Expr& e) override {
    const auto* l = as<Load>(e);
    auto found = l ? kept_.find(l->buffer.get()) : kept_.end();
    if (found == kept_.end()) return Mutator::mutate(e);
    return load(found->second.buffer, place(found->second, indicesOf(l->indices)), l->mask ? mutate(l->mask) : nullptr);
  }
  Stmt mutate(const Stmt& s) override {
    const auto* st = as<Store>(s);
    if (!st || st->buffer != stage_.out) return Mutator::mutate(s);
    std::vector<Expr> indices = indicesOf(st->indices);
    for (size_t i = 0; i <= kRowAxis; ++i) indices[i] = stage_.axes[i].var;
    BufferRef buffer = st->buffer;
    if (auto found = kept_.find(buffer.get()); found != kept_.end()) {
      indices = place(found->second, std::move(indices));
      buffer = found->second.buffer;
    }
    return store(buffer, std::move(indices), mutate(st->value), st->mask ? mutate(st->mask) : nullptr);
  }

 private:
  std::vector<Expr> indicesOf(const std::vector<Expr>& indices) {
    std::vector<Expr> out;
    for (const Expr& i : indices) out.push_back(mutate(i));
    return out;
  }
  static std::vector<Expr> place(const Kept& kept, std::vector<Expr> indices) {
    for (size_t i = 0; i < kRowAxis; ++i) indices[i] = index(0);
    indices[kRowAxis] = floorMod(indices[kRowAxis], index(kept.rows));
    return indices;
  }
  const Stage& stage_;
  const KeptOf& kept_;
};

class Roller {
 public:
  Roller(const Computation& c, const RollForm& form, int64_t partRows) : c_(c), form_(form), partRows_(partRows) {}

  std::variant<Lowered, ApplyError> run(const Plan& plan) {
    PlaceRow::KeptOf kept;
    std::vector<BufferRef> buffers;
    for (size_t k = 0; k + 1 < count(); ++k) {
      std::vector<int64_t> dims = extents(*c_.stages[k].out);
      for (size_t i = 0; i < kRowAxis; ++i) dims[i] = 1;
      dims[kRowAxis] = form_.kept[k];
      buffers.push_back(makeBuffer(c_.stages[k].out->name, c_.stages[k].out->element, dims, Scope::Stack));
      kept[c_.stages[k].out.get()] = {buffers.back(), form_.kept[k]};
    }
    std::vector<Stmt> rows;
    for (size_t k = 0; k < count(); ++k) {
      Plan own;
      for (Step s : plan.steps)
        if (s.stage == static_cast<int32_t>(k)) {
          if (s.primitive == Primitive::Parallel) return ApplyError{Illegal::ParallelNotOutermost};
          s.stage = 0;
          own.steps.push_back(std::move(s));
        }
      auto lowered = apply(rowOf(c_, k), own);
      auto* made = std::get_if<Lowered>(&lowered);
      if (!made) return lowered;
      for (PackedOperand& p : made->packs) {
        // Neither what is made here nor what changes from row to row can be packed before the kernel runs.
        if (std::find(c_.inputs.begin(), c_.inputs.end(), p.source) == c_.inputs.end() || changesByRow(p, k))
          return ApplyError{Illegal::PackStrip};
        packs_.push_back(std::move(p));
      }
      rows.push_back(PlaceRow(c_.stages[k], kept).mutate(made->function.body));
    }
    return finish(inParts(std::move(rows), buffers));
  }

 private:
  size_t count() const { return c_.stages.size(); }
  const Axis& rowAxis(size_t k) const { return c_.stages[k].axes[kRowAxis]; }

  bool changesByRow(const PackedOperand& p, size_t k) const {
    for (const Stage& s : p.computation.stages)
      for (size_t i = 0; i <= kRowAxis; ++i)
        if (usesVar(s.body, c_.stages[k].axes[i].var.get())) return true;
    return false;
  }

  // The rows of each stage that row `r` of the last one adds; `first` is the first row of the part, before which nothing was computed.
  std::vector<Stmt> stepsAt(const Expr& r, const Expr& first, std::vector<Stmt> rows) const {
    std::vector<Expr> low(count()), from(count()), to(count());
    low.back() = first;
    from.back() = to.back() = r;
    std::vector<bool> isFresh(count(), true);  // every row that the step needs is its own
    auto last = [&](size_t k, const Expr& at) {
      Expr row = at;
      for (size_t j = count() - 1; j-- > k;)
        row = minOf(row * form_.windows[j].stride + form_.windows[j].high, index(rowAxis(j).extent - 1));
      return row;
    };
    for (size_t k = count() - 1; k-- > 0;) {
      const Window& w = form_.windows[k];
      low[k] = maxOf(low[k + 1] * w.stride + w.low, index(0));
      to[k] = last(k, r);
      isFresh[k] = isFresh[k + 1] && sameExpr(from[k + 1], to[k + 1]) && w.high - w.low < w.stride;
      from[k] = isFresh[k] ? maxOf(from[k + 1] * w.stride + w.low, index(0))
                           : select(eq(r, first), low[k], last(k, r - 1) + 1);
      if (w.low == w.high && isFresh[k] && sameExpr(from[k + 1], to[k + 1]) && w.low == 0 && w.stride == 1)
        from[k] = to[k] = from[k + 1];
    }
    for (size_t k = 0; k < count(); ++k) {
      if (sameExpr(from[k], to[k])) {
        rows[k] = substitute(rows[k], {{rowAxis(k).var.get(), from[k]}});
        continue;
      }
      VarRef begin = makeVar("from");
      rows[k] = letStmt(begin, from[k],
                        forLoop(rowAxis(k).var, begin, maxOf(to[k] + 1 - begin, index(0)), LoopKind::Serial, rows[k]));
    }
    return rows;
  }

  Stmt inParts(std::vector<Stmt> rows, const std::vector<BufferRef>& buffers) {
    const int64_t extent = rowAxis(count() - 1).extent, batch = c_.stages.back().axes[0].extent;
    const int64_t parts = ceilDivide(extent, partRows_);
    VarRef part = makeVar("part"), first = makeVar("first"), row = makeVar("row");
    extent_ = batch * parts;
    Stmt body = block(stepsAt(row, first, std::move(rows)));
    Expr length = minOf(index(partRows_), index(extent) - first);
    body = forLoop(row, first, length, LoopKind::Serial, body);
    for (const BufferRef& b : buffers) body = allocate(b, body);
    body = letStmt(first, floorMod(Expr(part), index(parts)) * partRows_, body);
    Substitution places;
    for (const Stage& s : c_.stages) places[s.axes[0].var.get()] = floorDiv(Expr(part), index(parts));
    body = substitute(body, places);
    return forLoop(part, index(0), index(extent_), LoopKind::Parallel, body);
  }

  Lowered finish(const Stmt& whole) {
    Lowered out;
    Function& f = out.function;
    f.name = c_.name;
    f.body = simplify(whole);
    std::set<const Buffer*> read;
    visit(
        f.body, [](const Stmt&) { return true; },
        [&](const Expr& e) {
          if (const auto* l = as<Load>(e)) read.insert(l->buffer.get());
          return true;
        });
    for (const BufferRef& b : c_.inputs)
      if (read.count(b.get())) f.params.push_back(b);
    for (const PackedOperand& p : packs_) f.params.push_back(p.packed);
    for (const BufferRef& b : c_.outputs) f.params.push_back(b);
    f.outputCount = c_.outputs.size();
    if (const auto* loop = as<For>(f.body); loop && loop->loop == LoopKind::Parallel) f.parallelExtent = extent_;
    out.packs = std::move(packs_);
    return out;
  }

  const Computation& c_;
  const RollForm& form_;
  int64_t partRows_, extent_ = 1;
  std::vector<PackedOperand> packs_;
};

// ---- whether it pays ----------------------------------------------------------------------------------------------------

/// Of one core, between the second cache and what lies behind it, and between the first two.
constexpr double kFarBytesPerCycle = 8, kNearBytesPerCycle = 24;

/// Cycles that running row by row saves; negative: it costs.
double savedCycles(const std::vector<Stage>& stages, const Computation& c, const RollForm& form,
                   const TargetSpec& target) {
  double saved = 0;
  int64_t held = 0;
  for (size_t k = 0; k < stages.size(); ++k) {
    const Stage& s = stages[k];
    const int64_t bytes = bytesOf(*s.out), rows = s.axes[kRowAxis].extent;
    if (k + 1 < stages.size()) {
      // Written and read: only what the second cache doesn't hold goes farther.
      if (bytes > target.l2Bytes / 2) saved += 2 * static_cast<double>(bytes) / kFarBytesPerCycle;
      held += bytes / (rows * s.axes[0].extent) * form.kept[k];
    }
    // Weights that don't stay in the first cache are read again for each row.
    int64_t weights = 0;
    std::set<const Buffer*> seen;
    visit(s.body, [&](const Expr& e) {
      if (const auto* l = as<Load>(e); l && seen.insert(l->buffer.get()).second)
        for (const BufferRef& b : c.constants)
          if (b.get() == l->buffer.get()) weights += bytesOf(*b);
      return true;
    });
    held += weights;
    if (weights > target.l1Bytes / 2)
      saved -= static_cast<double>(weights) * static_cast<double>(rows) / kNearBytesPerCycle;
  }
  return held <= target.l2Bytes * 3 / 4 ? saved : -1;
}

}  // namespace

std::optional<RollForm> rollForm(const std::vector<Stage>& stages, const std::vector<BufferRef>& outputs) {
  if (stages.size() < 2) return std::nullopt;
  for (const Stage& s : stages)
    if (!isProductSum(s) || s.scan || s.axes.size() < kRowAxis + 2 || s.axes.size() != stages[0].axes.size() ||
        s.axes[0].extent != stages[0].axes[0].extent || extents(*s.out).size() != s.axes.size())
      return std::nullopt;
  RollForm form;
  bool isWindow = false;
  for (size_t k = 0; k + 1 < stages.size(); ++k) {
    if (std::find(outputs.begin(), outputs.end(), stages[k].out) != outputs.end()) return std::nullopt;
    for (size_t j = k + 2; j < stages.size(); ++j)
      if (readsBuffer(stages[j].body, stages[k].out.get()) ||
          (stages[j].epilogue && readsBuffer(stages[j].epilogue, stages[k].out.get())))
        return std::nullopt;
    auto w = windowOf(stages[k + 1], stages[k]);
    if (!w) return std::nullopt;
    isWindow = isWindow || w->high > w->low;
    form.windows.push_back(*w);
  }
  if (!isWindow) return std::nullopt;
  form.kept.resize(form.windows.size());
  int64_t made = 1;  // rows of the reader that one step makes, at most
  for (size_t k = form.windows.size(); k-- > 0;) {
    const Window& w = form.windows[k];
    const int64_t needed = (made - 1) * w.stride + w.high - w.low + 1;
    form.kept[k] = powerOfTwoFrom(needed);
    made = std::max(needed, made * w.stride);
  }
  return form;
}

Computation rowOf(const Computation& kernel, size_t k) {
  Computation row;
  row.name = kernel.name;
  Stage s = kernel.stages[k];
  for (size_t i = 0; i <= kRowAxis; ++i) s.axes[i] = {makeVar("one"), 1};
  std::set<const Buffer*> seen;
  for (const Expr& e : {s.body, s.epilogue})
    if (e)
      visit(e, [&](const Expr& x) {
        if (const auto* l = as<Load>(x); l && seen.insert(l->buffer.get()).second) row.inputs.push_back(l->buffer);
        return true;
      });
  for (const BufferRef& b : kernel.constants)
    if (seen.count(b.get())) row.constants.push_back(b);
  row.outputs = {s.out};
  row.stages = {std::move(s)};
  return row;
}

size_t rollEnd(const Computation& c, size_t first, const TargetSpec& target) {
  constexpr size_t kMostStages = 3;
  size_t best = first;
  double most = 0;
  // Minimal filtering makes more of a convolution of many channels than any cache.
  auto isFiltered = [&](const Stage& s) {
    const auto form = target.strict ? std::nullopt : winogradForm(s);
    return form && form->channels >= 16;
  };
  std::vector<Stage> stages;
  for (size_t k = first; k < std::min(c.stages.size(), first + kMostStages); ++k) {
    if (!isProductSum(c.stages[k]) || !isFloat(c.stages[k].body->type.dtype) || isFiltered(c.stages[k])) break;
    stages.push_back(c.stages[k]);
    std::vector<BufferRef> outputs = c.outputs;
    // Read behind these stages.
    for (size_t j = k + 1; j < c.stages.size(); ++j)
      for (size_t i = first; i < k; ++i)
        if (readsBuffer(c.stages[j].body, c.stages[i].out.get()) ||
            (c.stages[j].epilogue && readsBuffer(c.stages[j].epilogue, c.stages[i].out.get())))
          outputs.push_back(c.stages[i].out);
    auto form = rollForm(stages, outputs);
    if (!form) continue;
    const double saved = savedCycles(stages, c, *form, target);
    if (saved > most) {
      most = saved;
      best = k + 1;
    }
  }
  return best;
}

bool isRoll(const Plan& plan) { return !plan.steps.empty() && plan.steps[0].primitive == Primitive::Roll; }

std::variant<Lowered, ApplyError> applyRoll(const Computation& kernel, const Plan& plan) {
  auto form = rollForm(kernel.stages, kernel.outputs);
  if (!form) return ApplyError{Illegal::NotRolled, 0};
  if (plan.steps[0].factor < 1) return ApplyError{Illegal::BadFactor, 0};
  for (size_t i = 1; i < plan.steps.size(); ++i)
    if (plan.steps[i].stage < 0 || static_cast<size_t>(plan.steps[i].stage) >= kernel.stages.size())
      return ApplyError{Illegal::UnknownStage, static_cast<int32_t>(i)};
  return Roller(kernel, *form, plan.steps[0].factor).run(plan);
}

}  // namespace locution::schedule
