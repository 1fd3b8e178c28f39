#include "schedule/apply.h"

#include <algorithm>

#include "loop/passes.h"
#include "schedule/chain.h"
#include "schedule/dot.h"
#include "schedule/hoist.h"
#include "schedule/nest.h"
#include "schedule/roll.h"
#include "schedule/stages.h"
#include "schedule/winograd.h"

namespace locution::schedule {

using namespace loop;  // NOLINT: this file is about loop IR

std::string_view reasonText(Illegal reason) {
  static constexpr std::string_view kTexts[] = {
#define REASON(Name, text) text,
#include "schedule/reasons.inc"
#undef REASON
  };
  return kTexts[static_cast<size_t>(reason)];
}

namespace {

// Register buffers whose last dim is only read and written whole, by the vector loop that became a Ramp, hold vectors.
class VectorElements : public Mutator {
 public:
  explicit VectorElements(const Stmt& root) {
    loop::visit(
        root,
        [&](const Stmt& s) {
          if (const auto* a = as<Allocate>(s)) note(a->buffer);
          if (const auto* st = as<Store>(s)) look(st->buffer, st->indices);
          return true;
        },
        [&](const Expr& e) {
          if (const auto* l = as<Load>(e)) look(l->buffer, l->indices);
          return true;
        });
  }
  using Mutator::mutate;
  Expr mutate(const Expr& e) override {
    const auto* l = as<Load>(e);
    if (!l || !vectorBuffer(l->buffer)) return Mutator::mutate(e);
    std::vector<Expr> indices(l->indices.begin(), l->indices.end() - 1);
    for (Expr& i : indices) i = mutate(i);
    return load(vectorBuffer(l->buffer), std::move(indices));
  }
  Stmt mutate(const Stmt& s) override {
    if (const auto* a = as<Allocate>(s)) {
      if (BufferRef b = vectorBuffer(a->buffer)) return allocate(b, mutate(a->body));
    } else if (const auto* st = as<Store>(s)) {
      if (BufferRef b = vectorBuffer(st->buffer)) {
        std::vector<Expr> indices(st->indices.begin(), st->indices.end() - 1);
        for (Expr& i : indices) i = mutate(i);
        return store(b, std::move(indices), mutate(st->value));
      }
    }
    return Mutator::mutate(s);
  }

 private:
  void note(const BufferRef& b) {
    if (b->scope != Scope::Register || b->dims.empty() || b->element.lanes != 1) return;
    int64_t lanes = 0;
    if (!isConstInt(b->dims.back(), &lanes) || lanes < 2) return;
    Type element = b->element.withLanes(static_cast<int>(lanes));
    map_[b.get()] = std::make_shared<Buffer>(Buffer{b->name, element, {b->dims.begin(), b->dims.end() - 1}, b->scope});
  }
  void look(const BufferRef& b, const std::vector<Expr>& indices) {
    auto it = map_.find(b.get());
    if (it == map_.end()) return;
    const auto* r = as<Ramp>(indices.back());
    int64_t base = -1, stride = -1;
    if (!r || !isConstInt(r->base, &base) || !isConstInt(r->stride, &stride) || base != 0 || stride != 1 ||
        r->type.lanes != it->second->element.lanes)
      map_.erase(it);
  }
  BufferRef vectorBuffer(const BufferRef& b) const {
    auto it = map_.find(b.get());
    return it == map_.end() ? nullptr : it->second;
  }
  std::unordered_map<const Buffer*, BufferRef> map_;
};

Expr withoutCast(const Expr& e) {
  const auto* c = as<Cast>(e);
  return c ? c->value : e;
}

// Operand `k` of the product that a stage sums, without a cast; null when there is none.
Expr operandExpr(const Stage& stage, int64_t k) {
  const auto* product = as<Binary>(stage.body);
  if (!product || product->op != BinaryOp::Mul || k < 0 || k > 1) return nullptr;
  return withoutCast(k == 0 ? product->a : product->b);
}

// Its Load: the operand itself, or what a guard (padding) chooses.
const Load* operandLoad(const Stage& stage, int64_t k) {
  Expr e = operandExpr(stage, k);
  if (const auto* guarded = as<Select>(e)) return as<Load>(guarded->yes);
  return as<Load>(e);
}

// A stage's first row in the strip that is open, among the values of an Env.
constexpr const char* kStripStart = "strip";

class Applier {
 public:
  Applier(const Computation& c, const Plan& plan) : c_(c), plan_(plan) {}

  std::variant<Lowered, ApplyError> run() {
    if (isWinograd(plan_)) {
      auto lowered = applyWinograd(c_, plan_);
      auto* made = std::get_if<Lowered>(&lowered);
      if (!made) return lowered;
      operands_ = std::move(made->packs);
      return finish(made->function.body);
    }
    stages_ = c_.stages;
    if (auto illegal = shareAxes()) return ApplyError{*illegal};
    for (size_t i = 0; i < plan_.steps.size(); ++i)
      if (auto illegal = step(plan_.steps[i])) return ApplyError{*illegal, static_cast<int32_t>(i)};
    for (const Nest& n : nests_)
      if (auto illegal = n.check()) return ApplyError{*illegal};
    for (size_t i = 0; i < nests_.size(); ++i)
      if (peelsInTile(i)) return ApplyError{Illegal::PeelInTile};
    for (const auto& [i, dot] : dots_)
      if (!dotLegal(i, dot.loop)) return ApplyError{Illegal::NotDot};
    for (size_t i = 0; i < stages_.size(); ++i)
      if (stages_[i].scan && !scanLegal(i)) return ApplyError{Illegal::ScanOrder};
    localiseTemporaries();
    Stmt body = build();
    return finish(body);
  }

 private:
  std::optional<Illegal> step(const Step& s) {
    if (s.primitive == Primitive::Share || s.primitive == Primitive::Align || s.primitive == Primitive::Strip)
      return std::nullopt;
    if (s.stage == -1) return sharedNest_ ? sharedNest_->apply(s) : Illegal::UnknownStage;
    if (s.stage < 0 || static_cast<size_t>(s.stage) >= nests_.size()) return Illegal::UnknownStage;
    auto k = static_cast<size_t>(s.stage);
    if (s.primitive == Primitive::Pack) {
      const Load* operand = operandLoad(stages_[k], s.factor);
      if (!operand) return Illegal::NoProduct;
      if (strip_ > 0 &&
          dependsOn(operandExpr(stages_[k], s.factor), stages_[k], "i" + std::to_string(sharedAt_[k].back())))
        return Illegal::PackStrip;
      if (!packs_.insert({k, s.factor}).second) return Illegal::PackTwice;
      return std::nullopt;
    }
    if (s.primitive == Primitive::Dot2 || s.primitive == Primitive::Dot4) {
      if (s.loops.size() != 1) return Illegal::UnknownLoop;
      Dot dot{s.loops[0], s.factor, s.primitive == Primitive::Dot2};
      const auto& order = nests_[k].order();
      auto at = std::find_if(order.begin(), order.end(), [&](const Loop& l) { return l.name == dot.loop; });
      if (at == order.end()) return Illegal::UnknownLoop;
      if (!at->reduce || nests_[k].extentOf(dot.loop, {}) != 4 || !mayDot(stages_[k], dot)) return Illegal::NotDot;
      dot.isInOrder = dot.isWidened && isInOrder(stages_[k], dot.operand);
      dots_[k] = dot;
      return std::nullopt;
    }
    if (s.primitive == Primitive::Prefetch) {
      if (!packs_.count({k, s.factor})) return Illegal::NotPacked;
      prefetched_[k] = s.factor;
      return std::nullopt;
    }
    if (s.primitive == Primitive::Parallel && (sharedNest_ && shared_ > 0)) return Illegal::ParallelNotOutermost;
    return nests_[k].apply(s);
  }

  bool scanLegal(size_t i) const {
    const auto& order = nests_[i].order();
    return !order.empty() && order.back().name == "i" + std::to_string(stages_[i].axes.size() - 1) &&
           order.back().kind == LoopKind::Serial;
  }

  // Within a register tile nothing branches.
  bool peelsInTile(size_t i) const {
    if (stages_[i].combiner == Combiner::None || stages_[i].scan) return false;
    bool within = false;
    for (const Loop& l : nests_[i].order()) {
      within = within || l.reduce;
      if (within && !l.reduce && l.kind != LoopKind::Serial && nests_[i].peels(l.name)) return true;
    }
    return false;
  }

  // Inside the loop are loops of the register tile only.
  bool dotLegal(size_t i, const std::string& loop) const {
    bool within = false;
    for (const Loop& l : nests_[i].order()) {
      if (within && (l.reduce || l.kind == LoopKind::Serial)) return false;
      if (l.name != loop) continue;
      if (l.partial || l.kind == LoopKind::Vector) return false;
      within = true;
    }
    return within;
  }

  bool isOutput(const BufferRef& b) const {
    return std::find(c_.outputs.begin(), c_.outputs.end(), b) != c_.outputs.end();
  }

  // Which axes are shared loops and which are each stage's own.
  std::optional<Illegal> shareAxes() {
    for (const Step& s : plan_.steps) {
      if (s.primitive == Primitive::Share) shared_ = static_cast<size_t>(std::max<int64_t>(0, s.factor));
      if (s.primitive == Primitive::Strip) strip_ = s.factor;
    }
    if (strip_ < 0) return Illegal::BadFactor;
    if (strip_ > 0 && shared_ == 0) return Illegal::NotShared;
    for (size_t k = 0; k < stages_.size(); ++k) {
      if (stages_[k].axes.size() < shared_) return Illegal::NotShared;
      std::vector<size_t>& at = sharedAt_.emplace_back();
      for (size_t j = 0; j < shared_; ++j) at.push_back(j);
    }
    for (const Step& s : plan_.steps)
      if (s.primitive == Primitive::Align)
        if (auto illegal = align(s)) return illegal;
    if (stages_.size() > 1 || shared_ > 0) {
      std::vector<Axis> axes;
      std::vector<size_t> all;
      for (size_t j = 0; j < shared_; ++j) {
        axes.push_back(stages_.back().axes[sharedAt_.back()[j]]);
        all.push_back(j);
      }
      sharedNest_.emplace(axes, all, std::vector<Axis>{});
      if (strip_ > 0) (void)sharedNest_->apply({Primitive::Split, -1, {stripLoop()}, strip_, Tail::Peel});
    }
    for (size_t k = 0; k < stages_.size(); ++k) {
      std::vector<Axis> axes = stages_[k].axes;
      if (strip_ > 0) {
        Axis& a = axes[sharedAt_[k].back()];
        a.extent = std::min(a.extent, strip_);
        local_.push_back(makeVar(a.var->name));
      }
      nests_.emplace_back(axes, ownAxes(k), stages_[k].reduce);
    }
    return std::nullopt;
  }

  std::optional<Illegal> align(const Step& s) {
    if (s.stage < 0 || static_cast<size_t>(s.stage) >= stages_.size()) return Illegal::UnknownStage;
    auto k = static_cast<size_t>(s.stage);
    std::vector<size_t> at;
    for (const std::string& name : s.loops) {
      size_t axis = 0;
      while (axis < stages_[k].axes.size() && name != "i" + std::to_string(axis)) ++axis;
      if (axis == stages_[k].axes.size()) return Illegal::UnknownLoop;
      if (std::find(at.begin(), at.end(), axis) != at.end()) return Illegal::NotShared;
      at.push_back(axis);
    }
    if (at.size() != shared_) return Illegal::NotShared;
    sharedAt_[k] = std::move(at);
    return std::nullopt;
  }

  /// The axis that is opened in strips, as the shared loops name it.
  std::string stripLoop() const { return "i" + std::to_string(shared_ - 1); }
  bool isShared(size_t stage, size_t axis) const {
    const std::vector<size_t>& at = sharedAt_[stage];
    return std::find(at.begin(), at.end(), axis) != at.end();
  }
  bool isStrip(size_t stage, size_t axis) const { return strip_ > 0 && sharedAt_[stage].back() == axis; }
  std::vector<size_t> ownAxes(size_t stage) const {
    std::vector<size_t> own;
    for (size_t i = 0; i < stages_[stage].axes.size(); ++i)
      if (!isShared(stage, i) || isStrip(stage, i)) own.push_back(i);
    return own;
  }

  // Temporaries live within the shared loops: the shared axes leave their dims and indices; of a strip only its rows are held.
  void localiseTemporaries() {
    for (size_t k = 0; k < stages_.size(); ++k) {
      Stage& s = stages_[k];
      if (isOutput(s.out)) continue;
      const std::vector<size_t> own = ownAxes(k);
      std::vector<Expr> dims;
      for (size_t i : own) dims.push_back(isStrip(k, i) ? index(std::min(s.axes[i].extent, strip_)) : s.out->dims[i]);
      BufferRef local;
      if (auto taken = overwrites(c_.stages, c_.outputs, k)) {
        local = stages_[*taken].out;
      } else {
        local = std::make_shared<Buffer>(
            Buffer{s.out->name, s.out->element, dims, dims.empty() ? Scope::Register : Scope::Stack});
        temporaries_.push_back(local);
      }
      const Buffer* old = s.out.get();
      for (size_t r = 0; r < stages_.size(); ++r) {
        auto drop = [&](const Load& l) {
          std::vector<Expr> indices;
          for (size_t i : own) indices.push_back(isStrip(k, i) ? Expr(local_[r]) : l.indices[i]);
          return load(local, std::move(indices));
        };
        Stage& reader = stages_[r];
        reader.body = replaceLoads(reader.body, old, drop);
        if (reader.epilogue) reader.epilogue = replaceLoads(reader.epilogue, old, drop);
      }
      s.out = local;
    }
  }

  // What a stage knows of the shared loops that are open around it.
  Env stageEnv(size_t k, const Env& env) const {
    Env e;
    e.guards = env.guards;
    for (size_t j = 0; j < shared_; ++j) {
      std::string shared = "i" + std::to_string(j), own = "i" + std::to_string(sharedAt_[k][j]);
      if (strip_ > 0 && j + 1 == shared_) {
        e.value[kStripStart] = env.value.at(shared + ".o") * strip_;
        e.extent[own] = sharedNest_->extentOf(shared + ".i", env);
      } else {
        e.value[own] = env.value.at(shared);
      }
    }
    return e;
  }

  Stmt build() {
    Env top;
    auto allStages = [&](const Env& env) {
      std::vector<Stmt> parts;
      for (size_t i = 0; i < stages_.size(); ++i) parts.push_back(buildStage(i, stageEnv(i, env)));
      Stmt s = block(std::move(parts));
      for (const BufferRef& t : temporaries_) s = allocate(t, s);
      return s;
    };
    if (!sharedNest_ || shared_ == 0) return allStages(top);
    std::vector<std::string> names;
    for (const Loop& l : sharedNest_->order())
      if (strip_ == 0 || l.name != stripLoop() + ".i") names.push_back(l.name);
    return sharedNest_->open(names, top, false, allStages);
  }

  Substitution bindings(const Stage& s, const Env& env) const {
    Substitution map;
    const auto k = static_cast<size_t>(&s - stages_.data());
    for (size_t i = 0; i < s.axes.size(); ++i) {
      auto it = env.value.find("i" + std::to_string(i));
      if (it != env.value.end()) map[s.axes[i].var.get()] = it->second;
    }
    for (size_t i = 0; i < s.reduce.size(); ++i) {
      auto it = env.value.find("r" + std::to_string(i));
      if (it != env.value.end()) map[s.reduce[i].var.get()] = it->second;
    }
    if (strip_ > 0) {
      Expr& row = map.at(s.axes[sharedAt_[k].back()].var.get());
      map[local_[k].get()] = row;
      row = env.value.at(kStripStart) + row;
    }
    return map;
  }

  static Stmt guarded(Stmt s, const std::vector<std::pair<std::string, Expr>>& guards) {
    for (const auto& g : guards) s = ifThen(g.second, s);
    return s;
  }

  std::vector<Expr> outIndices(const Stage& s, const Substitution& map) const {
    std::vector<Expr> indices;
    const auto k = static_cast<size_t>(&s - stages_.data());
    if (isOutput(s.out)) {
      for (const Axis& a : s.axes) indices.push_back(map.at(a.var.get()));
      return indices;
    }
    for (size_t i : ownAxes(k)) indices.push_back(map.at(isStrip(k, i) ? local_[k].get() : s.axes[i].var.get()));
    return indices;
  }

  Stmt finishStore(const Stage& s, const Env& env, Expr value) const {
    Substitution map = bindings(s, env);
    if (s.epilogue) {
      map[s.acc.get()] = value;
      value = substitute(s.epilogue, map);
    }
    return guarded(store(s.out, outIndices(s, map), value), env.guards);
  }

  Stmt buildStage(size_t index, const Env& env) {
    const Stage& s = stages_[index];
    const Nest& nest = nests_[index];
    std::vector<std::string> outer, rest;
    for (const Loop& l : nest.order()) (l.reduce || !rest.empty() ? rest : outer).push_back(l.name);
    if (s.scan) return buildScan(s, nest, env);
    if (s.combiner == Combiner::None) {
      return nest.open(outer, env, false, [&](const Env& e) {
        Substitution map = bindings(s, e);
        return finishStore(s, e, substitute(s.body, map));
      });
    }
    return nest.open(outer, env, false, [&](const Env& e) { return buildTile(index, rest, e); });
  }

  // A tile's loops from the first reduction on. Serial loops over the output among them make it a block of register tiles, whose
  // accumulators lie in memory between the passes of the reductions outside them.
  Stmt buildTile(size_t index, const std::vector<std::string>& rest, const Env& env) {
    const Nest& nest = nests_[index];
    size_t inner = 0;
    bool isPartial = false;
    for (size_t i = 0; i < rest.size(); ++i) {
      const Loop& l = loopOf(nest, rest[i]);
      if (!l.reduce && l.kind == LoopKind::Serial) inner = i + 1;
      isPartial |= l.partial || (l.reduce && l.kind == LoopKind::Vector);
    }
    auto hasReduction = [&](size_t from, size_t to) {
      for (size_t i = from; i < to; ++i)
        if (loopOf(nest, rest[i]).reduce) return true;
      return false;
    };
    if (inner == 0 || isPartial || !hasReduction(inner, rest.size()))
      return buildRegisterTile(index, rest, env, nullptr);
    const Stage& s = stages_[index];
    std::vector<std::string> outside(rest.begin(), rest.begin() + static_cast<long>(inner));
    std::vector<std::string> within(rest.begin() + static_cast<long>(inner), rest.end());
    std::vector<std::string> outer, tile;
    for (const std::string& name : outside)
      if (!loopOf(nest, name).reduce) outer.push_back(name);
    for (const std::string& name : within)
      if (!loopOf(nest, name).reduce) tile.push_back(name);
    std::vector<std::string> names = outer;
    names.insert(names.end(), tile.begin(), tile.end());
    std::stable_partition(names.begin(), names.end(),
                          [&](const std::string& n) { return loopOf(nest, n).kind != LoopKind::Vector; });
    std::vector<int64_t> dims;
    for (const std::string& name : names) dims.push_back(nest.extentOf(name, env));
    Block whole;
    whole.buffer = makeBuffer("block", {s.body->type.dtype, 1}, dims, Scope::Stack);
    whole.loops = names;
    auto overTiles = [&](const Inside& inside) {
      return nest.open(outer, env, false, [&](const Env& e) { return nest.open(tile, e, true, inside); });
    };
    Stmt init = overTiles(
        [&](const Env& e) { return store(whole.buffer, whole.at(e), identity(s.combiner, s.body->type.dtype)); });
    Stmt update =
        nest.openBlock(outside, env, [&](const Env& e) { return buildRegisterTile(index, within, e, &whole); });
    Stmt done = overTiles([&](const Env& e) { return finishStore(s, e, load(whole.buffer, whole.at(e))); });
    return allocate(whole.buffer, block({init, update, done}));
  }

  struct Block {
    BufferRef buffer;
    std::vector<std::string> loops;
    std::vector<Expr> at(const Env& e) const {
      std::vector<Expr> indices;
      for (const std::string& name : loops) indices.push_back(e.value.at(name));
      return indices;
    }
  };

  static const Loop& loopOf(const Nest& nest, const std::string& name) {
    return *std::find_if(nest.order().begin(), nest.order().end(), [&](const Loop& l) { return l.name == name; });
  }

  // Accumulators of one tile: set to the identity, combined over the reduction, finished and stored (or added to the block's).
  Stmt buildRegisterTile(size_t index, const std::vector<std::string>& rest, const Env& env, const Block* whole) {
    const Stage& s = stages_[index];
    const Nest& nest = nests_[index];
    std::vector<Loop> tile, partial;
    std::vector<std::string> tileNames, accNames;
    bool inRegisters = true;
    for (const Loop& l : nest.order()) {
      if (std::find(rest.begin(), rest.end(), l.name) == rest.end()) continue;
      if (!l.reduce) tile.push_back(l);
      if (l.reduce && (l.partial || l.kind == LoopKind::Vector)) partial.push_back(l);
      if (!l.reduce && l.kind == LoopKind::Serial) inRegisters = false;
    }
    // The vector loop's lanes are the accumulators' last dim.
    std::vector<Loop> accLoops = tile;
    accLoops.insert(accLoops.end(), partial.begin(), partial.end());
    std::stable_partition(accLoops.begin(), accLoops.end(), [](const Loop& l) { return l.kind != LoopKind::Vector; });
    for (const Loop& l : tile) tileNames.push_back(l.name);
    std::vector<int64_t> dims;
    int64_t elements = 1;
    for (const Loop& l : accLoops) {
      accNames.push_back(l.name);
      dims.push_back(nest.extentOf(l.name, env));
      elements *= dims.back();
    }
    Type element{s.body->type.dtype, 1};
    BufferRef acc = makeBuffer("acc", element, dims, inRegisters && elements <= 4096 ? Scope::Register : Scope::Stack);
    auto at = [&](const Env& e) {
      std::vector<Expr> indices;
      for (const std::string& name : accNames) indices.push_back(e.value.at(name));
      return indices;
    };
    Stmt init = nest.open(accNames, env, true,
                          [&](const Env& e) { return store(acc, at(e), identity(s.combiner, element.dtype)); });
    BinaryOp op = combinerOp(s.combiner);
    Inside combine = [&](const Env& e) {
      Expr body = packedBody(index, e);
      for (const auto& g : e.guards)
        if (guardMatters(index, nest, g.first)) body = select(g.second, body, identity(s.combiner, element.dtype));
      return store(acc, at(e), binary(op, load(acc, at(e)), body));
    };
    Stmt update = openReduction(index, rest, env, combine);
    if (auto dot = dots_.find(index); dot != dots_.end()) update = packProducts(update, dot->second);
    Stmt done = nest.open(tileNames, env, true, [&](const Env& e) {
      Expr value = combinePartials(nest, acc, accLoops, dims, e, op);
      if (whole) return store(whole->buffer, whole->at(e), binary(op, load(whole->buffer, whole->at(e)), value));
      return finishStore(s, e, value);
    });
    return allocate(acc, block({init, update, done}));
  }

  // The reduction's loops. What decides about a whole tile's padding is asked outside it.
  Stmt openReduction(size_t index, const std::vector<std::string>& rest, const Env& env, const Inside& combine) {
    const Nest& nest = nests_[index];
    size_t split = 0;
    for (size_t i = 0; i < rest.size(); ++i)
      if (loopOf(nest, rest[i]).kind == LoopKind::Serial) split = i + 1;
    const std::vector<std::string> outer(rest.begin(), rest.begin() + static_cast<long>(split));
    const std::vector<std::string> inner(rest.begin() + static_cast<long>(split), rest.end());
    std::vector<Expr> guards = outerGuards(index, inner);
    if (guards.empty()) return openFetching(index, rest, rest, env, combine);
    for (const Expr& g : guards) decided_.insert(g.get());
    return openFetching(index, outer, rest, env, [&](const Env& e) {
      Stmt body = nest.openReduction(inner, e, combine);
      for (const Expr& g : guards) body = ifThen(substitute(g, bindings(stages_[index], e)), body);
      return body;
    });
  }

  // The reduction's loops, with a fetch ahead in each iteration of the innermost serial one: the iterations of all tiles that read one
  // pass of the packed operand share the next pass out among them. `tile` names all loops of the tile, those within `combine` too.
  Stmt openFetching(size_t index, const std::vector<std::string>& rest, const std::vector<std::string>& tile,
                    const Env& env, const Inside& combine) {
    const Nest& nest = nests_[index];
    auto found = prefetched_.find(index);
    size_t split = 0;
    for (size_t i = 0; i < rest.size(); ++i) {
      const Loop& l = loopOf(nest, rest[i]);
      if (l.reduce && l.kind == LoopKind::Serial) split = i + 1;
    }
    if (found == prefetched_.end() || split == 0) return nest.openReduction(rest, env, combine);
    const std::vector<std::string> outer(rest.begin(), rest.begin() + static_cast<long>(split));
    const std::vector<std::string> inner(rest.begin() + static_cast<long>(split), rest.end());
    const Packed& p = packedOperand(index, found->second);
    auto isPart = [&](const std::string& atom) {
      return std::find(p.atoms.begin(), p.atoms.end(), atom) != p.atoms.end();
    };
    // Loops outside the tile: those that choose the pass, then those that repeat it.
    std::vector<std::string> repeats, inTile;
    for (const std::string& name : tile)
      for (const std::string& atom : nest.atomsOf(name)) inTile.push_back(atom);
    auto isInTile = [&](const std::string& a) { return std::find(inTile.begin(), inTile.end(), a) != inTile.end(); };
    for (const std::string& atom : nest.atoms()) {
      if (isInTile(atom)) continue;
      if (isPart(atom)) {
        repeats.clear();
      } else {
        repeats.push_back(atom);
      }
    }
    int64_t pass = 1, turns = 1;
    for (size_t i = 0; i < p.atoms.size(); ++i)
      if (isInTile(p.atoms[i])) pass *= extents(*p.buffer)[i];
    for (const std::string& name : repeats) turns *= nest.extentOf(name, {});
    std::vector<std::string> counted;
    for (const std::string& name : outer)
      if (loopOf(nest, name).kind == LoopKind::Serial) {
        counted.push_back(name);
        turns *= nest.extentOf(name, {});
      }
    const int64_t lineElements =
        std::max<int64_t>(1, 64 / std::max<int64_t>(1, dtypeBytes(p.buffer->element.dtype, 1)));
    const int64_t stride = (pass + turns - 1) / turns, lines = (stride + lineElements - 1) / lineElements;
    // A stream that is used up as fast as it comes is the hardware's to follow.
    constexpr int64_t kMostLines = 2;
    if (lines > kMostLines) return nest.openReduction(rest, env, combine);
    return nest.openReduction(outer, env, [&](const Env& e) {
      Expr turn = loop::index(0);
      for (const auto* list : {&repeats, &counted})
        for (const std::string& name : *list) turn = turn * nest.extentOf(name, {}) + e.value.at(name);
      Stmt body = nest.openReduction(inner, e, combine);
      for (int64_t line = 0; line < lines; ++line) {
        std::vector<Expr> indices;
        for (size_t i = 0; i < p.atoms.size(); ++i)
          indices.push_back(isInTile(p.atoms[i]) ? loop::index(0)
                                                 : floorDiv(e.value.at(p.atoms[i]), loop::index(p.repeats[i])));
        indices.back() = indices.back() + turn * stride + loop::index(pass + line * lineElements);
        body =
            letStmt(makeVar("ahead", {p.buffer->element.dtype, 1}), call("prefetch", {load(p.buffer, indices)}), body);
      }
      return body;
    });
  }

  // Accumulators of partial reduction loops, combined in pairs, lanes last.
  Expr combinePartials(const Nest&, const BufferRef& acc, const std::vector<Loop>& loops,
                       const std::vector<int64_t>& dims, const Env& e, BinaryOp op) const {
    std::vector<std::vector<Expr>> combinations(1);
    int lanes = 0;
    for (size_t i = 0; i < loops.size(); ++i) {
      if (!loops[i].reduce) {
        for (auto& c : combinations) c.push_back(e.value.at(loops[i].name));
      } else if (loops[i].kind == LoopKind::Vector) {
        lanes = static_cast<int>(dims[i]);
        for (auto& c : combinations) c.push_back(ramp(index(0), index(1), lanes));
      } else {
        std::vector<std::vector<Expr>> next;
        for (auto& c : combinations)
          for (int64_t k = 0; k < dims[i]; ++k) {
            next.push_back(c);
            next.back().push_back(index(k));
          }
        combinations = std::move(next);
      }
    }
    std::vector<Expr> terms;
    for (auto& c : combinations) terms.push_back(load(acc, std::move(c)));
    while (terms.size() > 1) {
      std::vector<Expr> next;
      for (size_t i = 0; i + 1 < terms.size(); i += 2) next.push_back(binary(op, terms[i], terms[i + 1]));
      if (terms.size() % 2) next.push_back(terms.back());
      terms = std::move(next);
    }
    return lanes > 1 ? vectorReduce(op, terms[0]) : terms[0];
  }

  Stmt buildScan(const Stage& s, const Nest& nest, const Env& env) {
    std::vector<std::string> outer;
    for (const Loop& l : nest.order()) outer.push_back(l.name);
    std::string last = outer.back();
    outer.pop_back();
    BinaryOp op = combinerOp(s.combiner);
    Type element{s.body->type.dtype, 1};
    BufferRef acc = makeBuffer("acc", element, {}, Scope::Register);
    return nest.open(outer, env, false, [&](const Env& e) {
      Stmt loop = nest.open({last}, e, true, [&](const Env& inner) {
        Env at = inner;
        if (s.scanReverse) at.value[last] = index(s.axes.back().extent - 1) - inner.value.at(last);
        Stmt combine = store(acc, {}, binary(op, load(acc, {}), substitute(s.body, bindings(s, at))));
        Stmt keep = finishStore(s, at, load(acc, {}));
        return s.scanExclusive ? block({keep, combine}) : block({combine, keep});
      });
      return allocate(acc, block({store(acc, {}, identity(s.combiner, element.dtype)), loop}));
    });
  }

  // Which axes an expression depends on.
  static bool dependsOn(const Expr& e, const Stage& s, const std::string& axis) {
    size_t i = std::stoul(axis.substr(1));
    return usesVar(e, (axis[0] == 'i' ? s.axes[i] : s.reduce[i]).var.get());
  }

  // A guard protects loads of what is not packed (packed operands are padded with zeros).
  bool guardMatters(size_t index, const Nest& nest, const std::string& guardedLoop) const {
    const Stage& s = stages_[index];
    std::string axis = nest.rootOf(guardedLoop);
    if (s.combiner != Combiner::Sum) return true;
    bool anyPacked = false;
    for (int64_t k = 0; k < 2; ++k) {
      const Load* l = operandLoad(s, k);
      if (!l) return true;
      bool uses = dependsOn(operandExpr(s, k), s, axis);
      if (uses && !packs_.count({index, k})) return true;
      anyPacked |= uses;
    }
    return !anyPacked;
  }

  Expr packedBody(size_t index, const Env& env) {
    const Stage& s = stages_[index];
    Expr body = substitute(s.body, bindings(s, env));
    const auto* product = as<Binary>(body);
    Expr sides[2] = {product ? product->a : nullptr, product ? product->b : nullptr};
    bool changed = false;
    for (int64_t k = 0; k < 2; ++k) {
      Expr value;
      if (packs_.count({index, k})) {
        const Packed& p = packedOperand(index, k);
        std::vector<Expr> indices;
        for (size_t i = 0; i < p.atoms.size(); ++i) {
          Expr at = env.value.at(p.atoms[i]);
          if (p.repeats[i] > 1) at = floorDiv(at, loop::index(p.repeats[i]));
          indices.push_back(p.cycles[i] > 0 ? floorMod(at, loop::index(p.cycles[i])) : at);
        }
        value = load(p.buffer, std::move(indices));
      } else if (product) {
        value = paddedLoad(index, k, env);
      }
      if (!value) continue;
      if (const auto* c = as<Cast>(sides[k])) value = cast(c->type.dtype, value);
      sides[k] = value;
      changed = true;
    }
    return changed ? sides[0] * sides[1] : body;
  }

  static bool isZero(const Expr& e) {
    const auto* f = as<FloatImm>(e);
    int64_t i = -1;
    return (f && f->value == 0) || (isConstInt(e, &i) && i == 0);
  }

  // The parts of a padded operand's guard that no loop of a tile changes: where one fails, the whole tile adds nothing.
  std::vector<Expr> outerGuards(size_t index, const std::vector<std::string>& inTile) const {
    const Stage& s = stages_[index];
    std::vector<Expr> out;
    if (s.combiner != Combiner::Sum) return out;
    for (int64_t k = 0; k < 2; ++k) {
      Expr operand = operandExpr(s, k);
      const auto* guarded = as<Select>(operand);
      if (!guarded || !isZero(guarded->no) || packs_.count({index, k})) continue;
      std::vector<Expr> all;
      conjuncts(guarded->condition, &all);
      for (const Expr& c : all) {
        bool inside = false;
        for (const std::string& name : inTile)
          for (const std::string& root : nests_[index].roots(name)) inside |= dependsOn(c, s, root);
        if (!inside) out.push_back(c);
      }
    }
    return out;
  }

  // A guarded operand that is not packed. Where the reduction runs along its innermost dim, it reads a row of padding when the guard
  // fails, at the place that the innermost index names: code then chooses between two addresses, outside the innermost loops, and has
  // no branch. Null: not guarded.
  Expr paddedLoad(size_t index, int64_t k, const Env& env) {
    const Stage& s = stages_[index];
    Expr operand = operandExpr(s, k);
    const auto* guarded = as<Select>(operand);
    const auto* l = guarded ? as<Load>(guarded->yes) : nullptr;
    if (!l || as<Load>(guarded->no)) return nullptr;
    const Substitution values = bindings(s, env);
    std::vector<Expr> all;
    conjuncts(guarded->condition, &all);
    Expr condition;
    for (const Expr& c : all)
      if (!decided_.count(c.get())) condition = condition ? logicalAnd(condition, c) : c;
    const Expr value = substitute(guarded->yes, values);
    if (!condition) return value;
    condition = substitute(condition, values);
    Ranges ranges;
    for (const Axis& a : s.axes) ranges[a.var.get()] = {0, std::max<int64_t>(0, a.extent - 1)};
    for (const Axis& a : s.reduce) ranges[a.var.get()] = {0, std::max<int64_t>(0, a.extent - 1)};
    int64_t extent = 0;
    Range range;
    const bool isReducedAlong = std::any_of(s.reduce.begin(), s.reduce.end(),
                                            [&](const Axis& r) { return usesVar(l->indices.back(), r.var.get()); });
    if (!isReducedAlong || !isConstInt(l->buffer->dims.back(), &extent) || !bounds(l->indices.back(), ranges, &range) ||
        range.min < 0 || range.max >= extent)
      return select(condition, value, guarded->no);
    BufferRef& row = paddings_[{index, k}];
    if (!row) {
      PackedOperand p;
      const Load* other = operandLoad(s, 1 - k);
      p.source = other ? other->buffer : l->buffer;
      row = p.packed = makeBuffer("padding", l->buffer->element, {extent});
      Stage fill;
      fill.out = row;
      fill.axes = {{makeVar("c"), extent}};
      fill.body = guarded->no;
      p.computation.name = "padding";
      p.computation.inputs = {p.source};
      p.computation.outputs = {row};
      p.computation.stages = {fill};
      operands_.push_back(std::move(p));
    }
    return select(condition, value, load(row, {substitute(l->indices.back(), values)}));
  }

  struct Packed {
    BufferRef buffer;
    std::vector<std::string> atoms;
    std::vector<int64_t> repeats;  ///< of each atom: how many of its values share an element
    std::vector<int64_t> cycles;   ///< of each atom: the element is the remainder by it; 0: it isn't
  };

  // Heads that share keys: how many values of an axis give the same indices, because they only use axis // n.
  static int64_t repeatsOf(const Load* l, const Axis& axis) {
    int64_t n = 0, whole = 0;
    bool plain = false;
    for (const Expr& i : l->indices)
      visit(i, [&](const Expr& e) {
        const auto* b = as<Binary>(e);
        if (b && b->op == BinaryOp::FloorDiv && b->a.get() == axis.var.get() && isConstInt(b->b, &whole)) {
          plain = plain || (n != 0 && n != whole);
          n = whole;
          return false;
        }
        plain = plain || e.get() == axis.var.get();
        return true;
      });
    return !plain && n > 1 && axis.extent % n == 0 ? n : 1;
  }

  const Packed& packedOperand(size_t index, int64_t k) {
    auto found = packed_.find({index, k});
    if (found != packed_.end()) return found->second;
    const Stage& s = stages_[index];
    const Nest& nest = nests_[index];
    Expr l = operandExpr(s, k);
    const BufferRef source = operandLoad(s, k)->buffer;
    Packed p;
    std::vector<Axis> axes;
    std::vector<int64_t> dims;
    std::map<std::string, Expr> values;
    for (size_t i : sharedAt_[index]) {
      std::string name = "i" + std::to_string(i);
      if (!dependsOn(l, s, name)) continue;
      p.atoms.push_back(name);
      p.repeats.push_back(repeatsOf(operandLoad(s, k), s.axes[i]));
      p.cycles.push_back(0);
      axes.push_back({makeVar(name), s.axes[i].extent / p.repeats.back()});
      dims.push_back(axes.back().extent);
      values[name] = p.repeats.back() == 1 ? Expr(axes.back().var) : Expr(axes.back().var) * p.repeats.back();
    }
    auto addAtom = [&](const std::string& atom, int64_t repeats, int64_t cycle) {
      p.atoms.push_back(atom);
      p.repeats.push_back(repeats);
      p.cycles.push_back(cycle);
      axes.push_back({makeVar(atom), cycle > 0 ? cycle : nest.extentOf(atom, {}) / repeats});
      dims.push_back(axes.back().extent);
      return Expr(axes.back().var);
    };
    // What one instruction multiplies lies side by side: the four of a group, or 0 and 2, then 1 and 3 (0 and 1, then 2 and 3).
    auto found4 = dots_.find(index);
    const Dot* dot = found4 != dots_.end() && found4->second.operand == k ? &found4->second : nullptr;
    for (const std::string& atom : nest.atoms()) {
      bool needed = false;
      for (const std::string& root : rootsOf(nest, atom)) needed |= dependsOn(l, s, root);
      if (!needed) continue;
      if (!dot || atom != dot->loop) {
        values[atom] = addAtom(atom, 1, 0);
      } else if (dot->isWidened) {
        values[atom] = dot->isInOrder ? addAtom(atom, 2, 0) : addAtom(atom, 1, 2);
      }
    }
    if (dot) {
      Expr inner = dot->isInOrder ? addAtom(dot->loop, 1, 2) : addAtom(dot->loop, dot->isWidened ? 2 : 1, 0);
      if (dot->isInOrder) {
        values[dot->loop] = values.at(dot->loop) * 2 + inner;
      } else {
        values[dot->loop] = dot->isWidened ? inner * 2 + values.at(dot->loop) : inner;
      }
    }
    std::vector<Expr> guards;
    Substitution map;
    for (size_t i = 0; i < s.axes.size(); ++i)
      if (dependsOn(l, s, "i" + std::to_string(i)))
        map[s.axes[i].var.get()] = nest.rebuild("i" + std::to_string(i), values, &guards);
    for (size_t i = 0; i < s.reduce.size(); ++i)
      if (dependsOn(l, s, "r" + std::to_string(i)))
        map[s.reduce[i].var.get()] = nest.rebuild("r" + std::to_string(i), values, &guards);
    const DType dtype = dot && dot->isWidened ? DType::I16 : source->element.dtype;
    Expr value = cast(dtype, substitute(l, map));
    for (const Expr& g : guards) value = select(g, value, constant(dtype, 0));
    p.buffer = makeBuffer(source->name + ".packed", {dtype, 1}, dims);
    PackedOperand operand;
    operand.source = source;
    operand.packed = p.buffer;
    operand.computation.name = "pack";
    operand.computation.inputs = {source};
    operand.computation.outputs = {p.buffer};
    Stage stage;
    stage.out = p.buffer;
    stage.axes = axes;
    stage.body = value;
    operand.computation.stages = {stage};
    operands_.push_back(std::move(operand));
    return packed_[{index, k}] = std::move(p);
  }

  // A fused-then-split loop has several roots; what is not fused has one.
  std::vector<std::string> rootsOf(const Nest& nest, const std::string& atom) const { return nest.roots(atom); }

  std::variant<Lowered, ApplyError> finish(Stmt body) {
    Lowered out;
    Function& f = out.function;
    f.name = c_.name;
    body = simplify(vectorise(hoistConditions(simplify(body))));
    body = VectorElements(body).mutate(body);
    f.body = body;
    // Inputs that are still read, then what replaced the packed ones, then outputs.
    auto reads = [&](const Buffer* b) {
      bool found = false;
      visit(
          body, [&](const Stmt&) { return !found; },
          [&](const Expr& e) {
            if (const auto* l = as<Load>(e)) found |= l->buffer.get() == b;
            return !found;
          });
      return found;
    };
    for (const BufferRef& b : c_.inputs)
      if (reads(b.get())) f.params.push_back(b);
    for (const PackedOperand& p : operands_) f.params.push_back(p.packed);
    for (const BufferRef& b : c_.outputs) f.params.push_back(b);
    f.outputCount = c_.outputs.size();
    if (const auto* loop = as<For>(body); loop && loop->loop == LoopKind::Parallel) {
      int64_t extent = 1;
      LOCUTION_CHECK(isConstInt(loop->extent, &extent)) << c_.name;
      f.parallelExtent = extent;
    }
    out.packs = std::move(operands_);
    return out;
  }

  const Computation& c_;
  const Plan& plan_;
  size_t shared_ = 0;
  int64_t strip_ = 0;                          // rows in a strip; 0: the last shared axis is a loop like the others
  std::vector<std::vector<size_t>> sharedAt_;  // of each stage: the axes that stand for the shared ones
  std::vector<VarRef> local_;                  // of each stage: the row within the strip
  std::optional<Nest> sharedNest_;
  std::vector<Stage> stages_;
  std::vector<Nest> nests_;
  std::vector<BufferRef> temporaries_;
  std::set<std::pair<size_t, int64_t>> packs_;
  std::map<size_t, int64_t> prefetched_;  ///< operand by stage
  std::map<size_t, Dot> dots_;            ///< by stage
  std::map<std::pair<size_t, int64_t>, Packed> packed_;
  std::map<std::pair<size_t, int64_t>, BufferRef> paddings_;
  std::set<const ExprNode*> decided_;  ///< parts of guards that are asked outside the tile
  std::vector<PackedOperand> operands_;
};

}  // namespace

std::variant<Lowered, ApplyError> apply(const Computation& computation, const Plan& plan) {
  if (isRoll(plan)) return applyRoll(computation, plan);
  return Applier(computation, plan).run();
}

Function rawFunction(const Computation& c) {
  Function f;
  f.name = c.name;
  f.params = c.inputs;
  f.params.insert(f.params.end(), c.outputs.begin(), c.outputs.end());
  f.outputCount = c.outputs.size();
  f.body = simplify(vectorise(simplify(c.raw)));
  if (const auto* outer = as<For>(f.body); outer && outer->loop == LoopKind::Parallel) {
    LOCUTION_CHECK(isConstInt(outer->extent, &f.parallelExtent)) << c.name;
  }
  return f;
}

}  // namespace locution::schedule
