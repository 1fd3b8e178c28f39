#include "schedule/nest.h"

#include <algorithm>

#include "core/saturate.h"

namespace locution::schedule {

using loop::Expr;
using loop::LoopKind;
using loop::Stmt;

Nest::Nest(const std::vector<loop::Axis>& axes, const std::vector<size_t>& own, const std::vector<loop::Axis>& reduce) {
  for (size_t i : own) {
    std::string name = "i" + std::to_string(i);
    axisExtent_[name] = axes[i].extent;
    order_.push_back({name});
  }
  for (size_t i = 0; i < reduce.size(); ++i) {
    std::string name = "r" + std::to_string(i);
    axisExtent_[name] = reduce[i].extent;
    order_.push_back({name, true});
  }
}

const Loop* Nest::find(const std::string& name) const {
  for (const Loop& loop : order_)
    if (loop.name == name) return &loop;
  return nullptr;
}

const Nest::Split* Nest::splitOfParent(const std::string& name) const {
  for (const Split& s : splits_)
    if (s.parent == name) return &s;
  return nullptr;
}

const Nest::Split* Nest::splitOfPart(const std::string& name) const {
  for (const Split& s : splits_)
    if (s.outer == name || s.inner == name) return &s;
  return nullptr;
}

const Nest::Fusion* Nest::fusionInto(const std::string& name) const {
  for (const Fusion& f : fusions_)
    if (f.fused == name) return &f;
  return nullptr;
}

std::optional<Illegal> Nest::apply(const Step& step) {
  for (const std::string& name : step.loops)
    if (!find(name)) return Illegal::UnknownLoop;
  auto position = [&](const std::string& name) {
    return std::find_if(order_.begin(), order_.end(), [&](const Loop& l) { return l.name == name; });
  };
  switch (step.primitive) {
    case Primitive::Split: {
      if (step.loops.size() != 1) return Illegal::UnknownLoop;
      if (step.factor < 1) return Illegal::BadFactor;
      auto at = position(step.loops[0]);
      Loop outer = *at, inner = *at;
      outer.name = at->name + ".o";
      inner.name = at->name + ".i";
      splits_.push_back({at->name, outer.name, inner.name, step.factor, step.tail});
      *at = outer;
      order_.insert(position(outer.name) + 1, inner);
      return std::nullopt;
    }
    case Primitive::Fuse: {
      if (step.loops.size() < 2) return Illegal::NotAdjacent;
      std::string fused = step.loops[0];
      for (size_t i = 1; i < step.loops.size(); ++i) {
        auto a = position(fused), b = position(step.loops[i]);
        if (a + 1 != b || a->reduce != b->reduce) return Illegal::NotAdjacent;
        std::string name = a->name + "*" + b->name;
        fusions_.push_back({name, a->name, b->name});
        a->name = name;
        order_.erase(b);
        fused = name;
      }
      return std::nullopt;
    }
    case Primitive::Reorder: {
      std::vector<Loop> next;
      for (const std::string& name : step.loops) next.push_back(*find(name));
      std::set<std::string> distinct(step.loops.begin(), step.loops.end());
      if (distinct.size() != order_.size() || next.size() != order_.size()) return Illegal::NotPermutation;
      order_ = std::move(next);
      return std::nullopt;
    }
    case Primitive::Vectorise:
      for (const std::string& name : step.loops) position(name)->kind = LoopKind::Vector;
      return std::nullopt;
    case Primitive::Unroll:
      for (const std::string& name : step.loops) position(name)->kind = LoopKind::Unrolled;
      return std::nullopt;
    case Primitive::Edges:
      for (const std::string& name : step.loops) {
        if (find(name)->reduce) return Illegal::EdgesOfReduction;
        position(name)->edges = true;
      }
      return std::nullopt;
    case Primitive::Partial:
      for (const std::string& name : step.loops) {
        if (!find(name)->reduce) return Illegal::ParallelReduction;
        position(name)->partial = true;
      }
      return std::nullopt;
    case Primitive::Parallel:
      for (const std::string& name : step.loops) {
        if (position(name) != order_.begin()) return Illegal::ParallelNotOutermost;
        if (find(name)->reduce) return Illegal::ParallelReduction;
        position(name)->kind = LoopKind::Parallel;
      }
      return std::nullopt;
    default:
      return Illegal::UnknownLoop;
  }
}

std::optional<Illegal> Nest::check() const {
  std::vector<std::string> seen = atoms();
  auto place = [&](const std::string& name) {
    // The place of a split part is that of its own first atom.
    std::vector<std::string> parts;
    expandAtoms(name, &parts);
    return std::find(seen.begin(), seen.end(), parts[0]);
  };
  for (const Split& s : splits_) {
    if (place(s.outer) > place(s.inner)) return Illegal::InnerBeforeOuter;
    const Loop* inner = find(s.inner);
    if (s.tail == Tail::Clamp && !(inner && inner->kind == LoopKind::Serial && !inner->reduce))
      return Illegal::ClampedNotSerial;
  }
  for (size_t i = 0; i < order_.size(); ++i) {
    if (order_[i].edges && order_[i].kind != LoopKind::Serial) return Illegal::EdgesOfReduction;
    if (order_[i].kind == LoopKind::Vector) {
      if (i + 1 != order_.size()) return Illegal::VectorNotInnermost;
    }
    if (order_[i].kind == LoopKind::Parallel && i != 0) return Illegal::ParallelNotOutermost;
  }
  return std::nullopt;
}

bool Nest::peels(const std::string& name) const {
  const Split* s = splitOfPart(name);
  if (!s || s->outer != name || s->tail != Tail::Peel) return false;
  if (extentOf(s->parent, {}) % s->factor != 0) return true;
  // The parent may be a tile that is cut short itself.
  const Split* above = splitOfPart(s->parent);
  if (!above || above->inner != s->parent || above->tail != Tail::Peel) return false;
  return extentOf(above->parent, {}) % above->factor % s->factor != 0;
}

int64_t Nest::extentOf(const std::string& name, const Env& env) const {
  auto known = env.extent.find(name);
  if (known != env.extent.end()) return known->second;
  auto axis = axisExtent_.find(name);
  if (axis != axisExtent_.end()) return axis->second;
  if (const Fusion* f = fusionInto(name)) return extentOf(f->a, env) * extentOf(f->b, env);
  const Split* s = splitOfPart(name);
  LOCUTION_CHECK(s != nullptr) << name;
  int64_t whole = extentOf(s->parent, env);
  if (name == s->outer) return ceilDivide(whole, s->factor);
  return s->tail == Tail::Peel ? std::min(s->factor, whole) : s->factor;
}

Stmt Nest::bind(const std::string& name, const Expr& value, Env env, bool branch, const Inside& inside) const {
  env.value[name] = value;
  if (const Fusion* f = fusionInto(name)) {
    int64_t b = extentOf(f->b, env);
    Expr valueA = b == 1 ? value : loop::floorDiv(value, loop::index(b));
    Expr valueB = b == 1 ? loop::index(0) : loop::floorMod(value, loop::index(b));
    return bind(f->a, valueA, std::move(env), branch,
                [&, valueB, f](const Env& e) { return bind(f->b, valueB, e, branch, inside); });
  }
  const Split* s = splitOfPart(name);
  if (!s) return inside(env);
  int64_t whole = extentOf(s->parent, env), rest = whole % s->factor;
  if (name == s->inner) {
    // Accumulators of partial reductions are set and combined outside the reduction: only the place within the tile counts there.
    if (!env.value.count(s->outer)) return inside(env);
    Expr parent = env.value.at(s->outer) * s->factor + value;
    if (s->tail == Tail::Mask && rest != 0 && !env.exact.count(s->parent))
      env.guards.emplace_back(s->parent, loop::lt(parent, loop::index(whole)));
    return bind(s->parent, parent, std::move(env), branch, inside);
  }
  if (rest == 0 || !branch || s->tail == Tail::Clamp) return inside(env);
  // An incomplete last tile: two versions of what is inside, chosen by a branch that costs nothing beside a tile's work.
  Env full = env, last = std::move(env);
  full.extent[s->inner] = s->factor;
  full.exact.insert(s->parent);
  if (s->tail == Tail::Peel) last.extent[s->inner] = rest;
  if (whole < s->factor) return inside(last);
  return loop::ifThen(loop::lt(value, loop::index(whole / s->factor)), inside(full), inside(last));
}

Stmt Nest::openFrom(const std::vector<std::string>& names, size_t k, const Env& env, bool inTile, bool reduction,
                    const Inside& inside) const {
  if (k == names.size()) return inside(env);
  const Loop& loop = *find(names[k]);
  int64_t count = extentOf(loop.name, env);
  Inside next = [&](const Env& e) { return openFrom(names, k + 1, e, inTile, reduction, inside); };
  const Split* s = splitOfPart(loop.name);
  bool outerOfReduction = reduction && loop.reduce && s && s->outer == loop.name;
  if (outerOfReduction && extentOf(s->parent, env) % s->factor != 0) {
    int64_t whole = extentOf(s->parent, env), tiles = whole / s->factor;
    std::vector<Stmt> parts;
    if (tiles > 0) {
      Env full = env;
      full.extent[s->inner] = s->factor;
      full.exact.insert(s->parent);
      loop::VarRef var = loop::makeVar(loop.name);
      Expr value = tiles == 1 ? loop::index(0) : Expr(var);
      Stmt body = bind(loop.name, value, full, false, next);
      parts.push_back(tiles == 1 ? body : loop::forLoop(var, loop::index(0), loop::index(tiles), loop.kind, body));
    }
    Env last = env;
    if (s->tail == Tail::Peel) last.extent[s->inner] = whole % s->factor;
    parts.push_back(bind(loop.name, loop::index(tiles), last, false, next));
    return loop::block(std::move(parts));
  }
  bool branch = !inTile && !loop.reduce;
  if (count == 1 && loop.kind != LoopKind::Parallel) return bind(loop.name, loop::index(0), env, branch, next);
  loop::VarRef var = loop::makeVar(loop.name);
  if (loop.edges && count > 2 && !(s && s->inner == loop.name && s->tail == Tail::Clamp))
    return loop::block(
        {bind(loop.name, loop::index(0), env, branch, next),
         loop::forLoop(var, loop::index(1), loop::index(count - 2), loop.kind, bind(loop.name, var, env, branch, next)),
         bind(loop.name, loop::index(count - 1), env, branch, next)});
  if (loop.edges && count == 2)
    return loop::block(
        {bind(loop.name, loop::index(0), env, branch, next), bind(loop.name, loop::index(1), env, branch, next)});
  Expr end = loop::index(count);
  if (s && s->inner == loop.name && s->tail == Tail::Clamp && extentOf(s->parent, env) % s->factor != 0)
    end = loop::minOf(end, loop::index(extentOf(s->parent, env)) - env.value.at(s->outer) * s->factor);
  return loop::forLoop(var, loop::index(0), end, loop.kind, bind(loop.name, var, env, branch, next));
}

Stmt Nest::open(const std::vector<std::string>& names, const Env& env, bool inTile, const Inside& inside) const {
  return openFrom(names, 0, env, inTile, false, inside);
}

Stmt Nest::openReduction(const std::vector<std::string>& names, const Env& env, const Inside& inside) const {
  return openFrom(names, 0, env, true, true, inside);
}

Stmt Nest::openBlock(const std::vector<std::string>& names, const Env& env, const Inside& inside) const {
  return openFrom(names, 0, env, false, true, inside);
}

void Nest::expandAtoms(const std::string& name, std::vector<std::string>* out) const {
  if (const Fusion* f = fusionInto(name)) {
    expandAtoms(f->a, out);
    expandAtoms(f->b, out);
  } else if (const Split* s = splitOfParent(name)) {
    expandAtoms(s->outer, out);
    expandAtoms(s->inner, out);
  } else {
    out->push_back(name);
  }
}

std::vector<std::string> Nest::atomsOf(const std::string& name) const {
  std::vector<std::string> out;
  expandAtoms(name, &out);
  return out;
}

std::vector<std::string> Nest::atoms() const {
  std::vector<std::string> out;
  for (const Loop& loop : order_) expandAtoms(loop.name, &out);
  return out;
}

std::vector<std::string> Nest::roots(const std::string& name) const {
  if (axisExtent_.count(name)) return {name};
  if (const Fusion* f = fusionInto(name)) {
    std::vector<std::string> out = roots(f->a), more = roots(f->b);
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  return roots(splitOfPart(name)->parent);
}

Expr Nest::rebuild(const std::string& name, const std::map<std::string, Expr>& atomValues,
                   std::vector<Expr>* guards) const {
  auto known = atomValues.find(name);
  if (known != atomValues.end()) return known->second;
  if (const Split* s = splitOfParent(name)) {
    Expr value = rebuild(s->outer, atomValues, guards) * s->factor + rebuild(s->inner, atomValues, guards);
    int64_t whole = extentOf(name, {});
    if (whole % s->factor != 0) guards->push_back(loop::lt(value, loop::index(whole)));
    return value;
  }
  // A part of a fused loop: (fused // extent of b) or its remainder.
  for (const Fusion& f : fusions_) {
    if (f.a != name && f.b != name) continue;
    Expr whole = rebuild(f.fused, atomValues, guards);
    Expr b = loop::index(extentOf(f.b, {}));
    return f.a == name ? loop::floorDiv(whole, b) : loop::floorMod(whole, b);
  }
  LOCUTION_CHECK(false) << "no value for loop " << name;
  return nullptr;
}

}  // namespace locution::schedule
