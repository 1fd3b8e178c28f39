// Finds, for each allocated buffer, one vector width by which all its accesses are aligned, and rewrites them.
#include "loop/vector_buffers.h"

#include <map>
#include <vector>

#include "loop/build.h"
#include "loop/passes.h"

namespace locution::loop {
namespace {

/// The lanes by which every access to a buffer is a whole, aligned vector; 0 when there are none.
struct Width {
  int lanes = -1;  ///< -1: not accessed yet
  void meet(const std::vector<Expr>& indices) {
    if (lanes == 0) return;
    auto* r = indices.empty() ? nullptr : as<Ramp>(indices.back());
    int64_t stride = 0;
    bool whole = r && isConstInt(r->stride, &stride) && stride == 1 && (lanes == -1 || lanes == r->type.lanes);
    for (size_t i = 0; whole && i + 1 < indices.size(); ++i) whole = indices[i]->type.lanes == 1;
    if (whole) {
      int64_t rest = -1;
      whole = isConstInt(simplify(floorMod(r->base, index(r->type.lanes))), &rest) && rest == 0;
    }
    lanes = whole ? r->type.lanes : 0;
  }
};

class Promoter : public Mutator {
 public:
  Promoter(const Buffer* from, BufferRef to, int lanes, bool dropped)
      : from_(from), to_(std::move(to)), lanes_(lanes), dropped_(dropped) {}
  using Mutator::mutate;
  Expr mutate(const Expr& e) override {
    if (auto it = memo_.find(e); it != memo_.end()) return it->second;
    auto* l = as<Load>(e);
    Expr out = l && l->buffer.get() == from_ ? load(to_, narrow(l->indices), l->mask ? mutate(l->mask) : nullptr)
                                             : mutateChildren(e);
    memo_.emplace(e, out);
    return out;
  }
  Stmt mutate(const Stmt& s) override {
    auto* n = as<Store>(s);
    if (!n || n->buffer.get() != from_) return mutateChildren(s);
    std::vector<Expr> indices = narrow(n->indices);
    Expr value = mutate(n->value);
    if (n->mask) value = select(mutate(n->mask), value, load(to_, indices));
    return store(to_, std::move(indices), value);
  }

 private:
  std::vector<Expr> narrow(const std::vector<Expr>& indices) {
    std::vector<Expr> out;
    for (size_t i = 0; i + 1 < indices.size(); ++i) out.push_back(mutate(indices[i]));
    if (!dropped_) out.push_back(simplify(floorDiv(as<Ramp>(indices.back())->base, index(lanes_))));
    return out;
  }
  const Buffer* from_;
  BufferRef to_;
  int lanes_;
  bool dropped_;
  std::unordered_map<Expr, Expr> memo_;
};

class FindBuffers : public Mutator {
 public:
  using Mutator::mutate;
  Expr mutate(const Expr& e) override { return e; }
  Stmt mutate(const Stmt& s) override {
    auto* n = as<Allocate>(s);
    if (!n) return mutateChildren(s);
    Stmt body = mutate(n->body);
    Stmt unchanged = body == n->body ? s : allocate(n->buffer, body);
    const Buffer& b = *n->buffer;
    int64_t inner = 0;
    if (b.element.lanes > 1 || b.dims.empty() || !isConstInt(b.dims.back(), &inner)) return unchanged;
    Width width;
    visit(
        body,
        [&](const Stmt& x) {
          if (auto* st = as<Store>(x); st && st->buffer.get() == &b) width.meet(st->indices);
          return true;
        },
        [&](const Expr& x) {
          if (auto* l = as<Load>(x); l && l->buffer.get() == &b) width.meet(l->indices);
          return true;
        });
    if (width.lanes <= 1 || inner % width.lanes != 0) return unchanged;
    auto wide = std::make_shared<Buffer>(b);
    wide->element.lanes = width.lanes;
    bool dropped = inner == width.lanes && b.dims.size() > 1;
    wide->dims.pop_back();
    if (!dropped) wide->dims.push_back(index(inner / width.lanes));
    return allocate(wide, Promoter(&b, wide, width.lanes, dropped).mutate(body));
  }
};

}  // namespace

Stmt promoteVectorBuffers(const Stmt& s) { return FindBuffers().mutate(s); }

}  // namespace locution::loop
