#include "schedule/stages.h"

#include <algorithm>
#include <map>
#include <set>

#include "loop/passes.h"
#include "schedule/chain.h"
#include "schedule/roll.h"

namespace locution::schedule {

using namespace loop;  // NOLINT: this file is about loop IR

namespace {

using Reads = std::map<const Buffer*, int>;

void countLoads(const Expr& e, Reads* reads) {
  if (!e) return;
  visit(e, [&](const Expr& x) {
    if (const auto* l = as<Load>(x)) ++(*reads)[l->buffer.get()];
    return true;
  });
}

Reads readsOf(const Stage& s) {
  Reads reads;
  countLoads(s.body, &reads);
  countLoads(s.epilogue, &reads);
  return reads;
}

// Nodes of an expression, as a measure of what computing it again costs.
int sizeOf(const Expr& e) {
  int size = 0;
  visit(e, [&](const Expr& x) {
    size += x->kind == ExprKind::Call ? 8 : 1;
    return true;
  });
  return size;
}

bool isOutput(const Computation& c, const BufferRef& b) {
  return std::find(c.outputs.begin(), c.outputs.end(), b) != c.outputs.end();
}

Ranges rangesOf(const Stage& s) {
  Ranges ranges;
  for (const Axis& a : s.axes) ranges[a.var.get()] = {0, std::max<int64_t>(0, a.extent - 1)};
  for (const Axis& a : s.reduce) ranges[a.var.get()] = {0, std::max<int64_t>(0, a.extent - 1)};
  return ranges;
}

Expr inlineInto(const Expr& e, const Stage& producer, const Ranges& ranges) {
  if (!e) return e;
  Expr out = replaceLoads(e, producer.out.get(), [&](const Load& l) {
    Substitution map;
    for (size_t i = 0; i < producer.axes.size(); ++i) map[producer.axes[i].var.get()] = l.indices[i];
    return substitute(producer.body, map);
  });
  return out == e ? e : simplify(out, ranges);
}

// An axis of one element may have been simplified to its only value.
bool isOwn(const Expr& index, const Axis& axis) {
  int64_t value = -1;
  return index.get() == axis.var.get() || (axis.extent == 1 && isConstInt(index, &value) && value == 0);
}

// Loads of `buffer` in `e` are all at exactly the stage's own axes.
bool readAtOwnAxes(const Expr& e, const Buffer* buffer, const std::vector<Axis>& axes, size_t count) {
  bool own = true;
  if (!e) return true;
  visit(e, [&](const Expr& x) {
    const auto* l = as<Load>(x);
    if (l && l->buffer.get() == buffer)
      for (size_t i = 0; i < count; ++i) own = own && i < l->indices.size() && isOwn(l->indices[i], axes[i]);
    return own;
  });
  return own;
}

bool isPureMovement(const Stage& s) {
  Expr e = s.body;
  return s.combiner == Combiner::None && !s.epilogue && as<Load>(e) != nullptr;
}

// How often the reader evaluates one element of the producer, at most.
int64_t rereads(const Stage& reader, const Stage& producer, bool inBody) {
  auto count = [](const std::vector<Axis>& axes) {
    int64_t n = 1;
    for (const Axis& a : axes) n *= std::max<int64_t>(1, a.extent);
    return n;
  };
  return count(reader.axes) * (inBody ? count(reader.reduce) : 1) / std::max<int64_t>(1, count(producer.axes));
}

// A padded view: a load where the condition holds, else a constant.
const Load* guardedLoad(const Expr& e, Expr* condition) {
  const auto* s = as<Select>(e);
  const auto* l = s ? as<Load>(s->yes) : nullptr;
  if (!l || l->mask || (s->no->kind != ExprKind::IntImm && s->no->kind != ExprKind::FloatImm)) return nullptr;
  *condition = s->condition;
  return l;
}

// A padded operand is read where it lies when the guard asks for neither the reader's vector axis nor its innermost reduction: then
// it is decided once for a whole run of loads.
bool guardStaysOutside(const Stage& producer, const Stage& reader) {
  Expr condition;
  const Load* l = guardedLoad(producer.body, &condition);
  if (!l || producer.combiner != Combiner::None || producer.axes.empty()) return false;
  // The innermost dim goes through as it is.
  const Axis& last = producer.axes.back();
  if (l->indices.empty() || l->indices.back().get() != last.var.get() || usesVar(condition, last.var.get()))
    return false;
  for (size_t i = 0; i + 1 < l->indices.size(); ++i)
    if (usesVar(l->indices[i], last.var.get())) return false;
  bool outside = true;
  visit(reader.body, [&](const Expr& x) {
    const auto* read = as<Load>(x);
    if (read && read->buffer == producer.out)
      for (size_t i = 0; i + 1 < read->indices.size(); ++i) {
        outside = outside && !usesVar(read->indices[i], reader.axes.back().var.get());
        // Channels innermost, or (depthwise) the windows are all that is reduced.
        if (usesVar(read->indices.back(), reader.reduce.back().var.get()))
          outside = outside && !usesVar(read->indices[i], reader.reduce.back().var.get());
      }
    return true;
  });
  return outside;
}

bool divides(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& x) {
    const auto* b = as<Binary>(x);
    found = found || (b && (b->op == BinaryOp::FloorDiv || b->op == BinaryOp::FloorMod));
    return !found;
  });
  return found;
}

// The same for a reduction so short that its loads unroll: padding is then decided by tile, whatever the order in memory (the colours
// of a picture come first).
bool guardIsUnrolled(const Stage& producer, const Stage& reader) {
  constexpr int64_t kShort = 192;
  Expr condition;
  const Load* l = guardedLoad(producer.body, &condition);
  int64_t reduced = 1;
  for (const Axis& a : reader.reduce) reduced *= a.extent;
  if (!l || producer.combiner != Combiner::None || reduced > kShort || reader.reduce.size() < 2 ||
      divides(producer.body))
    return false;
  bool isUniform = true;
  visit(reader.body, [&](const Expr& x) {
    const auto* read = as<Load>(x);
    if (read && read->buffer == producer.out)
      for (const Expr& i : read->indices) isUniform = isUniform && !usesVar(i, reader.axes.back().var.get());
    return true;
  });
  return isUniform;
}

// A sum of variables and constants, each times a positive constant.
bool isAffine(const Expr& e) {
  if (e->kind == ExprKind::Var || e->kind == ExprKind::IntImm) return true;
  const auto* b = as<Binary>(e);
  int64_t factor = 0;
  if (!b || (b->op != BinaryOp::Add && b->op != BinaryOp::Mul)) return false;
  if (b->op == BinaryOp::Mul && !(isConstInt(b->b, &factor) && factor > 0)) return false;
  return isAffine(b->a) && isAffine(b->b);
}

// Inlining such a load keeps addresses affine.
bool affineIndices(const Load& l) {
  return std::all_of(l.indices.begin(), l.indices.end(), [](const Expr& i) {
    const auto* b = as<Binary>(i);
    return isAffine(i) || (b && b->op == BinaryOp::FloorDiv && as<Var>(b->a));  // heads that share keys
  });
}

bool mayInline(const Computation& c, const Stage& producer, const Stage& reader, int loads, bool onlyReader) {
  if (producer.combiner != Combiner::None || producer.epilogue || producer.scan || isOutput(c, producer.out))
    return false;
  bool inBody = readsBuffer(reader.body, producer.out.get());
  if (isProductSum(reader) && inBody) {
    // Views only (permutations, slices, flattened or repeated dims), and padding that is decided outside the innermost loops: an
    // operand of a product must stay a load.
    const auto* l = as<Load>(producer.body);
    return (l && isPureMovement(producer) && affineIndices(*l)) ||
           (loads == 1 && (guardStaysOutside(producer, reader) || guardIsUnrolled(producer, reader)));
  }
  int cost = sizeOf(producer.body);
  if (cost <= 6) return true;
  if (!onlyReader) return false;
  bool expensive = cost > 24;
  if (reader.combiner == Combiner::None) return loads == 1 || !expensive;
  return rereads(reader, producer, inBody) <= 1 ? (loads == 1 || !expensive) : !expensive && cost <= 12;
}

void removeUnread(Computation* c) {
  for (bool changed = true; changed;) {
    changed = false;
    Reads all;
    for (const Stage& s : c->stages)
      for (auto& [b, n] : readsOf(s)) all[b] += n;
    for (size_t i = 0; i < c->stages.size(); ++i) {
      if (isOutput(*c, c->stages[i].out) || all.count(c->stages[i].out.get())) continue;
      c->stages.erase(c->stages.begin() + static_cast<long>(i));
      changed = true;
      break;
    }
  }
}

void pruneInputs(Computation* c) {
  Reads all;
  for (const Stage& s : c->stages)
    for (auto& [b, n] : readsOf(s)) all[b] += n;
  std::erase_if(c->inputs, [&](const BufferRef& b) { return !all.count(b.get()); });
  std::erase_if(c->constants, [&](const BufferRef& b) { return !all.count(b.get()); });
}

// The indices at which `e` reads the product sum `r`, when every load has the same and they are a permutation of r's elements, dims
// taken apart or put together (a reshape and a transpose behind a projection).
std::optional<std::vector<Expr>> readPermuted(const Stage& e, const Stage& r) {
  std::vector<Expr> at;
  bool legal = true;
  visit(e.body, [&](const Expr& x) {
    const auto* l = as<Load>(x);
    if (!l || l->buffer != r.out) return legal;
    if (at.empty()) at = l->indices;
    for (size_t i = 0; i < at.size(); ++i) legal = legal && sameExpr(at[i], l->indices[i]) && isAffine(at[i]);
    return legal;
  });
  if (!legal) return std::nullopt;
  // Every element once: the axes' steps through r's memory make a number system.
  Expr flat = index(0);
  int64_t elements = 1;
  for (size_t i = 0; i < at.size(); ++i) {
    flat = flat * r.axes[i].extent + at[i];
    elements *= r.axes[i].extent;
  }
  const Ranges ranges = rangesOf(e);
  flat = simplify(flat, ranges);
  std::map<int64_t, int64_t> extentOf;
  for (const Axis& a : e.axes) {
    if (a.extent == 1) continue;
    Expr base;
    int64_t step = 0;
    if (!splitAffine(flat, a.var.get(), &base, &step, ranges) || !extentOf.emplace(step, a.extent).second)
      return std::nullopt;
  }
  int64_t next = 1;
  for (const auto& [step, extent] : extentOf) {
    if (step != next) return std::nullopt;
    next *= extent;
  }
  if (next != elements) return std::nullopt;
  return at;
}

// A point-by-point stage that reads a reduction at its own axes becomes that reduction's epilogue.
bool mergeEpilogue(Computation* c, size_t reductionIndex) {
  Stage& r = c->stages[reductionIndex];
  if (r.combiner == Combiner::None || r.scan || isOutput(*c, r.out)) return false;
  size_t reader = 0;
  int readers = 0;
  for (size_t i = 0; i < c->stages.size(); ++i)
    if (readsOf(c->stages[i]).count(r.out.get())) {
      reader = i;
      ++readers;
    }
  if (readers != 1) return false;
  Stage& e = c->stages[reader];
  if (e.combiner != Combiner::None || e.epilogue || e.scan) return false;
  std::vector<Expr> at;
  if (e.axes.size() == r.axes.size() && readAtOwnAxes(e.body, r.out.get(), e.axes, e.axes.size())) {
    for (size_t i = 0; i < e.axes.size(); ++i) {
      if (e.axes[i].extent != r.axes[i].extent) return false;
      at.emplace_back(e.axes[i].var);
    }
  } else if (isProductSum(r)) {
    auto permuted = readPermuted(e, r);
    if (!permuted) return false;
    at = std::move(*permuted);
  }
  if (at.size() != r.axes.size()) return false;
  // What else the reader needs must exist before the reduction runs, or be moved there: stages between may not be read by it.
  for (size_t i = reductionIndex + 1; i < reader; ++i)
    if (readsOf(e).count(c->stages[i].out.get())) {
      // Moving the reduction down to its reader is safe: nobody else reads it.
      Stage moved = std::move(c->stages[reductionIndex]);
      c->stages.erase(c->stages.begin() + static_cast<long>(reductionIndex));
      c->stages.insert(c->stages.begin() + static_cast<long>(reader) - 1, std::move(moved));
      return mergeEpilogue(c, reader - 1);
    }
  VarRef acc = makeVar("acc", {r.body->type.dtype, 1});
  Expr value = acc;
  Substitution toOwn;
  for (size_t i = 0; i < at.size(); ++i) toOwn[r.axes[i].var.get()] = at[i];
  if (r.epilogue) {
    Substitution map = toOwn;
    map[r.acc.get()] = acc;
    value = substitute(r.epilogue, map);
  }
  Stage merged = e;
  merged.reduce = r.reduce;
  merged.combiner = r.combiner;
  merged.body = substitute(r.body, toOwn);
  merged.acc = acc;
  // Named once when it is read several times (x * sigmoid(x)), so that nobody computes it twice.
  bool named = readsOf(e).at(r.out.get()) > 1 && value != Expr(acc);
  VarRef name = makeVar("x", value->type);
  merged.epilogue = replaceLoads(e.body, r.out.get(), [&](const Load&) { return named ? Expr(name) : value; });
  if (named) merged.epilogue = let(name, value, merged.epilogue);
  c->stages[reductionIndex] = std::move(merged);
  c->stages.erase(c->stages.begin() + static_cast<long>(reader));
  return true;
}

// Temporaries may come to cross a cut: they are global until `apply` finds that they live within a kernel's shared loops.
void globaliseTemporaries(Computation* c) {
  for (Stage& s : c->stages) {
    if (s.out->scope == Scope::Global) continue;
    auto global = std::make_shared<Buffer>(*s.out);
    global->scope = Scope::Global;
    const Buffer* old = s.out.get();
    auto make = [&](const Load& l) { return load(global, l.indices); };
    for (Stage& reader : c->stages) {
      reader.body = replaceLoads(reader.body, old, make);
      if (reader.epilogue) reader.epilogue = replaceLoads(reader.epilogue, old, make);
    }
    s.out = global;
  }
}

}  // namespace

Computation fuseStages(const Computation& computation) {
  Computation c = computation;
  if (c.raw) return c;
  globaliseTemporaries(&c);
  for (Stage& s : c.stages) {
    Ranges ranges = rangesOf(s);
    s.body = simplify(s.body, ranges);
  }
  for (bool changed = true; changed;) {
    changed = false;
    // Epilogues first: inlining a reduction's reader elsewhere would hide it.
    for (size_t i = 0; i < c.stages.size() && !changed; ++i) changed = mergeEpilogue(&c, i);
    for (size_t p = 0; p < c.stages.size() && !changed; ++p) {
      const Stage producer = c.stages[p];
      int readers = 0;
      for (const Stage& s : c.stages) readers += readsOf(s).count(producer.out.get()) ? 1 : 0;
      for (size_t r = p + 1; r < c.stages.size(); ++r) {
        Stage& reader = c.stages[r];
        Reads reads = readsOf(reader);
        auto it = reads.find(producer.out.get());
        if (it == reads.end() || !mayInline(c, producer, reader, it->second, readers == 1)) continue;
        Ranges ranges = rangesOf(reader);
        reader.body = inlineInto(reader.body, producer, ranges);
        reader.epilogue = inlineInto(reader.epilogue, producer, ranges);
        changed = true;
      }
    }
    if (changed) removeUnread(&c);
  }
  removeUnread(&c);
  pruneInputs(&c);
  return c;
}

bool mayWriteOver(const Computation& kernel, const BufferRef& input) {
  if (kernel.raw || kernel.stages.size() != 1) return false;
  const Stage& s = kernel.stages[0];
  if (s.scan || dtypeBits(input->element.dtype) != dtypeBits(s.out->element.dtype) ||
      extents(*input) != extents(*s.out))
    return false;
  // The body of a reduction reads elements that other elements' stores may have replaced.
  if (s.combiner != Combiner::None && readsBuffer(s.body, input.get())) return false;
  return readAtOwnAxes(s.body, input.get(), s.axes, s.axes.size()) &&
         readAtOwnAxes(s.epilogue, input.get(), s.axes, s.axes.size());
}

int64_t sharedAxes(const Computation& c) {
  if (c.stages.size() < 2) return 0;
  size_t shared = c.stages[0].axes.size();
  for (const Stage& s : c.stages) shared = std::min(shared, s.axes.size());
  for (size_t i = 0; i < shared; ++i)
    for (const Stage& s : c.stages)
      if (s.axes[i].extent != c.stages[0].axes[i].extent) shared = std::min(shared, i);
  for (const Stage& s : c.stages)
    for (const Stage& p : c.stages) {
      if (isOutput(c, p.out) && !readsOf(s).count(p.out.get())) continue;
      while (shared > 0 && !(readAtOwnAxes(s.body, p.out.get(), s.axes, shared) &&
                             readAtOwnAxes(s.epilogue, p.out.get(), s.axes, shared)))
        --shared;
    }
  for (const Stage& s : c.stages)
    if (s.scan) shared = std::min(shared, s.axes.size() - 1);
  return static_cast<int64_t>(shared);
}

std::vector<Computation> cutKernels(const Computation& computation, const TargetSpec& target) {
  if (computation.raw || computation.stages.size() < 2) return {computation};
  Computation c = computation;
  gatherChains(&c.stages);
  constexpr int64_t kMaxLocalElements =
      16 << 10;  // of a temporary inside the shared loops: it must stay in the first caches
  auto fits = [&](const std::vector<Stage>& stages) {
    if (stages.size() < 2) return true;
    Computation trial = c;
    trial.stages = stages;
    for (const Stage& s : stages)
      if (isProductSum(s)) return false;
    int64_t shared = sharedAxes(trial), rows = 1, whole = 0;
    for (int64_t i = 0; i < shared; ++i) rows *= stages[0].axes[static_cast<size_t>(i)].extent;
    for (const Stage& s : stages) {
      int64_t local = 1, work = 1;
      for (size_t i = 0; i < s.axes.size(); ++i) {
        if (i >= static_cast<size_t>(shared)) local *= s.axes[i].extent;
        work *= s.axes[i].extent;
      }
      for (const Axis& a : s.reduce) work *= a.extent;
      whole = std::max(whole, work);
      if (!isOutput(c, s.out) && local > kMaxLocalElements) return false;
    }
    return shared > 0 ? (rows > 1 || whole <= (64 << 10)) : whole <= 4096;
  };
  std::vector<std::vector<Stage>> groups;
  for (size_t i = 0; i < c.stages.size(); ++i) {
    const Stage& s = c.stages[i];
    if (size_t end = rollEnd(c, i, target); end > i) {
      groups.emplace_back(c.stages.begin() + static_cast<long>(i), c.stages.begin() + static_cast<long>(end));
      i = end - 1;
      continue;
    }
    if (size_t end = chainEnd(c, i); end > i) {
      groups.emplace_back(c.stages.begin() + static_cast<long>(i), c.stages.begin() + static_cast<long>(end));
      storeRepeated(&groups.back(), c.outputs);
      i = end - 1;
      continue;
    }
    if (!groups.empty()) {
      std::vector<Stage> joined = groups.back();
      joined.push_back(s);
      if (fits(joined)) {
        groups.back() = std::move(joined);
        continue;
      }
    }
    groups.push_back({s});
  }
  for (std::vector<Stage>& group : groups) {
    std::vector<Stage> stored = group;
    storeRepeated(&stored, c.outputs);
    if (fits(stored)) group = std::move(stored);
  }
  if (groups.size() == 1 && groups[0].size() == c.stages.size()) return {c};
  std::vector<Computation> kernels;
  for (size_t g = 0; g < groups.size(); ++g) {
    Computation k;
    k.name = c.name + (groups.size() > 1 ? "." + std::to_string(g) : "");
    k.stages = groups[g];
    std::set<const Buffer*> made;
    for (const Stage& s : k.stages) made.insert(s.out.get());
    std::set<const Buffer*> seen;
    auto addInput = [&](const BufferRef& b) {
      if (!made.count(b.get()) && seen.insert(b.get()).second) k.inputs.push_back(b);
    };
    for (const Stage& s : k.stages)
      for (const Expr& e : {s.body, s.epilogue})
        if (e)
          visit(e, [&](const Expr& x) {
            if (const auto* l = as<Load>(x)) addInput(l->buffer);
            return true;
          });
    for (const BufferRef& b : c.constants)
      if (seen.count(b.get())) k.constants.push_back(b);
    for (const Stage& s : k.stages) {
      bool later = false;
      for (size_t h = g + 1; h < groups.size(); ++h)
        for (const Stage& t : groups[h]) later |= readsOf(t).count(s.out.get()) > 0;
      if (later || isOutput(c, s.out)) k.outputs.push_back(s.out);
    }
    kernels.push_back(std::move(k));
  }
  return kernels;
}

void conjuncts(const Expr& condition, std::vector<Expr>* out) {
  const auto* b = as<Binary>(condition);
  if (b && b->op == BinaryOp::And && condition->type.dtype == DType::Bool) {
    conjuncts(b->a, out);
    conjuncts(b->b, out);
  } else {
    out->push_back(condition);
  }
}

}  // namespace locution::schedule
