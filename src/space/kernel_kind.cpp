#include "space/kernel_kind.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "loop/passes.h"
#include "schedule/chain.h"

namespace locution::space {

using namespace loop;  // NOLINT: this file is about loop IR

namespace {

const Load* firstLoad(const Expr& e) {
  const Load* found = nullptr;
  visit(e, [&](const Expr& x) {
    if (!found) found = as<Load>(x);
    return !found;
  });
  return found;
}

bool moves(const Load& l, const Axis& a) {
  return a.extent > 1 &&
         std::any_of(l.indices.begin(), l.indices.end(), [&](const Expr& i) { return usesVar(i, a.var.get()); });
}

/// The loads of a product's two operands.
struct Product {
  const Stage* stage;
  const Load *a, *b;
};

std::optional<Product> productOf(const Stage& s) {
  if (!schedule::isProductSum(s)) return std::nullopt;
  const auto* product = as<Binary>(s.body);
  const Load *a = firstLoad(product->a), *b = firstLoad(product->b);
  // A sum of squares reduces; so does a sum with a factor that it could be multiplied with afterwards.
  if (!a || !b || sameExpr(product->a, product->b)) return std::nullopt;
  bool isOpen = true;
  for (const Axis& r : s.reduce) {
    if (r.extent > 1) isOpen = false;
    if (moves(*a, r) && moves(*b, r)) return Product{&s, a, b};
  }
  return isOpen ? std::optional<Product>({&s, a, b}) : std::nullopt;
}

/// The reduced axis moves on from the axis in one of the load's indices, and their steps overlap: elements are met in several windows.
bool isWindow(const Stage& s, const Load& l, const Axis& axis, const Axis& reduced) {
  if (axis.extent <= 1 || reduced.extent <= 1) return false;
  Ranges ranges;
  for (const auto* list : {&s.axes, &s.reduce})
    for (const Axis& a : *list) ranges[a.var.get()] = {0, std::max<int64_t>(0, a.extent - 1)};
  return std::any_of(l.indices.begin(), l.indices.end(), [&](const Expr& i) {
    if (!usesVar(i, axis.var.get()) || !usesVar(i, reduced.var.get())) return false;
    Expr base;
    int64_t outer = 0, inner = 0;
    // Transposed convolutions divide: every such index is a window's.
    if (!splitAffine(i, axis.var.get(), &base, &outer, ranges) ||
        !splitAffine(i, reduced.var.get(), &base, &inner, ranges))
      return true;
    outer = std::abs(outer), inner = std::abs(inner);
    return outer < inner * reduced.extent && inner < outer * axis.extent;
  });
}

struct Windows {
  bool any = false, only = true;  ///< there are some; every reduced axis belongs to one
};
Windows windowsOf(const Product& p) {
  Windows out;
  for (const Axis& r : p.stage->reduce) {
    if (r.extent <= 1) continue;
    bool own = false;
    for (const Axis& a : p.stage->axes) own = own || isWindow(*p.stage, *p.a, a, r) || isWindow(*p.stage, *p.b, a, r);
    out.any = out.any || own;
    out.only = out.only && own;
  }
  return out;
}

/// The value is an element as it was, or a constant.
bool isMoved(const Expr& e) {
  if (const auto* choice = as<Select>(e))
    return !firstLoad(choice->condition) && isMoved(choice->yes) && isMoved(choice->no);
  if (const auto* named = as<LetExpr>(e)) return isMoved(named->value) && isMoved(named->body);
  return as<Load>(e) || as<IntImm>(e) || as<FloatImm>(e) || as<Var>(e);
}

bool callsExp(const Stage& s) {
  bool found = false;
  for (const Expr& e : {s.body, s.epilogue}) {
    if (!e) continue;
    visit(e, [&](const Expr& x) {
      const auto* c = as<Call>(x);
      found = found || (c && c->name == "exp");
      return !found;
    });
  }
  return found;
}

class Rules {
 public:
  explicit Rules(const Computation& c) : c_(c) {
    for (const Stage& s : c.stages)
      if (auto p = productOf(s)) products_.push_back(*p);
    if (products_.size() == 1) windows_ = windowsOf(products_[0]);
  }

  bool holds(KernelKind kind) const {
    const auto& stages = c_.stages;
    auto any = [&](auto&& rule) { return std::any_of(stages.begin(), stages.end(), rule); };
    switch (kind) {
      case KernelKind::Raw:
        return c_.raw != nullptr;
      case KernelKind::Attention:
        return products_.size() > 1 && std::any_of(products_.front().stage, products_.back().stage, callsExp);
      case KernelKind::Chain:
        return products_.size() > 1;
      case KernelKind::Depthwise:
        return windows_.any && windows_.only && hasBatch(products_[0]);
      case KernelKind::Convolution:
        return windows_.any;
      case KernelKind::Gemv:
        return !products_.empty() &&
               !(isUsedAgain(products_[0].a, products_[0]) && isUsedAgain(products_[0].b, products_[0]));
      case KernelKind::Contraction:
        return !products_.empty();
      case KernelKind::Scan:
        return any([](const Stage& s) { return s.scan; });
      case KernelKind::Normalisation:
        return stages.size() > 1 && any([](const Stage& s) { return s.combiner != Combiner::None; });
      case KernelKind::Reduction:
        return any([](const Stage& s) { return s.combiner != Combiner::None; });
      case KernelKind::Movement:
        return !any([](const Stage& s) { return !isMoved(s.body) || (s.epilogue && !isMoved(s.epilogue)); });
      case KernelKind::Points:
        return true;
    }
    return false;
  }
  const std::vector<Product>& products() const { return products_; }

 private:
  static bool hasBatch(const Product& p) {
    return std::any_of(p.stage->axes.begin(), p.stage->axes.end(),
                       [&](const Axis& a) { return moves(*p.a, a) && moves(*p.b, a); });
  }
  static bool isUsedAgain(const Load* l, const Product& p) {
    return std::any_of(p.stage->axes.begin(), p.stage->axes.end(),
                       [&](const Axis& a) { return a.extent > 1 && !moves(*l, a); });
  }

  const Computation& c_;
  std::vector<Product> products_;
  Windows windows_;  ///< of the only product
};

}  // namespace

KernelKind kindOf(const Computation& kernel) {
  const Rules rules(kernel);
#define KERNEL_KIND(Name, text, rule) \
  if (rules.holds(KernelKind::Name)) return KernelKind::Name;
#include "space/kernel_kinds.inc"
#undef KERNEL_KIND
  return KernelKind::Points;
}

std::string_view kindText(KernelKind kind) {
  static constexpr std::string_view kTexts[] = {
#define KERNEL_KIND(Name, text, rule) text,
#include "space/kernel_kinds.inc"
#undef KERNEL_KIND
  };
  return kTexts[static_cast<size_t>(kind)];
}

double multiplyAdds(const Computation& kernel) {
  if (kernel.raw) return countFlops(kernel) / 2;
  const Rules rules(kernel);
  double total = 0;
  for (const Product& p : rules.products()) {
    double points = 1;
    for (const auto* list : {&p.stage->axes, &p.stage->reduce})
      for (const Axis& a : *list) points *= static_cast<double>(a.extent);
    total += points;
  }
  return total;
}

}  // namespace locution::space
