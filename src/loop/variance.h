// What differs between the lanes of a vector loop: variables, private buffers, expressions. The question that `vectorise` asks
// before it rewrites anything.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "loop/expr.h"

namespace locution::loop {

/// How a buffer allocated inside a vector loop is kept: once for all lanes, as vector elements, or with a copy for each lane
/// along a new inner dim (where lanes index it apart).
enum class Privacy : uint8_t { Uniform, VectorElement, InnerDim };

class Variance {
 public:
  /// A fixed point over the loop's body. False when the loop has no vector form.
  bool analyse(const For& loop);
  bool varies(const Expr& e);
  /// Whether the loop allocates the buffer itself.
  bool isPrivate(const Buffer* b) const { return privates_.count(b) != 0; }
  Privacy privacy(const Buffer* b) const { return privates_.at(b); }

 private:
  void mark(const Var* v);
  void raise(Privacy& p, Privacy to);
  void stmt(const Stmt& s, bool guarded);

  bool changed_ = false, failed_ = false;
  std::unordered_set<const Var*> vars_;
  std::unordered_map<const Buffer*, Privacy> privates_;
  std::unordered_set<const Buffer*> uniformStores_, loads_;
  std::unordered_map<Expr, bool> memo_;
};

}  // namespace locution::loop
