#include "space/workload.h"

#include <algorithm>
#include <unordered_set>

#include "loop/computation_text.h"
#include "loop/passes.h"
#include "support/hash.h"

namespace locution::space {

using loop::BufferRef;

namespace {

/// Buffers in the order in which the kernel comes to read or write them.
class Order {
 public:
  void visit(const loop::Expr& e) {
    if (!e) return;
    loop::visit(e, [&](const loop::Expr& x) {
      if (const auto* l = loop::as<loop::Load>(x)) add(l->buffer);
      return true;
    });
  }
  void visit(const loop::Stmt& s) {
    loop::visit(
        s,
        [&](const loop::Stmt& x) {
          if (const auto* n = loop::as<loop::Store>(x)) add(n->buffer);
          return true;
        },
        [&](const loop::Expr& x) {
          if (const auto* l = loop::as<loop::Load>(x)) add(l->buffer);
          return true;
        });
  }
  void add(const BufferRef& b) {
    if (seen_.insert(b.get()).second) order_.push_back(b);
  }
  /// Those of `list` that were used, in order.
  std::vector<BufferRef> of(const std::vector<BufferRef>& list) const {
    std::vector<BufferRef> out;
    for (const BufferRef& b : order_)
      if (std::find(list.begin(), list.end(), b) != list.end()) out.push_back(b);
    return out;
  }

 private:
  std::vector<BufferRef> order_;
  std::unordered_set<const loop::Buffer*> seen_;
};

loop::Computation inOrderOfUse(const loop::Computation& kernel) {
  Order order;
  for (const loop::Stage& s : kernel.stages) {
    order.visit(s.body);
    order.visit(s.epilogue);
    order.add(s.out);
  }
  if (kernel.raw) order.visit(kernel.raw);
  loop::Computation ordered = kernel;
  ordered.inputs = order.of(kernel.inputs);
  ordered.constants = order.of(kernel.constants);
  ordered.outputs = order.of(kernel.outputs);
  return ordered;
}

}  // namespace

std::string Workload::id() const { return hexDigits(hash); }

Workload canonical(const loop::Computation& kernel) {
  loop::Computation ordered = inOrderOfUse(kernel);
  Workload out;
  out.text = loop::printNameFree(ordered);
  out.hash = hashText(out.text);
  // Read back rather than renamed, so that the kernel depends on nothing but the text.
  auto read = loop::parseComputation(out.text);
  out.kernel = read.isOk() ? std::move(*read) : std::move(ordered);
  return out;
}

uint64_t workloadHash(const loop::Computation& kernel) { return hashText(loop::printNameFree(inOrderOfUse(kernel))); }

Result<Workload> parseWorkload(std::string_view text) {
  LOCUTION_ASSIGN_OR_RETURN(loop::Computation kernel, loop::parseComputation(text));
  return canonical(kernel);
}

}  // namespace locution::space
