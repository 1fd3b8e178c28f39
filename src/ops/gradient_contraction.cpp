// Gradients of contraction.cpp and einsum.cpp: each operand's is the contraction of what came back with the other operand.
#include <algorithm>

#include "ops/gradient.h"
#include "support/strings.h"

namespace locution::ops {

namespace {

int64_t product(const std::vector<int64_t>& dims, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t i = begin; i < end; ++i) n *= dims[i];
  return n;
}

/// All dims but the last as one.
Term flattened(const Term& t) {
  const std::vector<int64_t> dims = t.dims();
  return reshape(t, {product(dims, 0, dims.size() - 1), dims.back()});
}

Term gemm(const Term& a, const Term& b, bool transA, bool transB, double alpha = 1) {
  return a.builder().node("Gemm", {a, b}, {{"transA", int64_t{transA}}, {"transB", int64_t{transB}}, {"alpha", alpha}});
}

}  // namespace

Status gradientMatMul(GradientContext& c) {
  Term a = c.input(0), b = c.input(1), dy = c.gradient();
  // A vector is a matrix of one row or column.
  std::vector<int64_t> full = dy.dims();
  if (a.rank() == 1) full.insert(full.end() - (b.rank() == 1 ? 0 : 1), 1);
  if (b.rank() == 1) full.push_back(1);
  dy = reshape(dy, full);
  Term left = a.rank() == 1 ? reshape(a, {1, a.dims()[0]}) : a;
  Term right = b.rank() == 1 ? reshape(b, {b.dims()[0], 1}) : b;
  if (right.rank() == 2) {
    // One matrix for all rows (a layer's weights): two products of matrices.
    Term rows = flattened(dy);
    if (c.wants(0)) c.give(0, reshape(gemm(rows, right, false, true), a.dims()));
    if (c.wants(1)) c.give(1, reshape(gemm(flattened(left), rows, true, false), b.dims()));
    return Status::ok();
  }
  if (c.wants(0)) {
    Term g = matMul(dy, swapLast(right));
    c.give(0, a.rank() == 1 ? reshape(sumTo(g, left.dims()), a.dims()) : g);
  }
  if (c.wants(1)) c.give(1, matMul(swapLast(left), dy));
  return Status::ok();
}

Status gradientGemm(GradientContext& c) {
  Term a = c.input(0), b = c.input(1), dy = c.gradient();
  const bool transA = c.node().intAttr("transA", 0) != 0, transB = c.node().intAttr("transB", 0) != 0;
  const double alpha = c.node().floatAttr("alpha", 1), beta = c.node().floatAttr("beta", 1);
  if (c.wants(0)) c.give(0, transA ? gemm(b, dy, transB, true, alpha) : gemm(dy, b, false, !transB, alpha));
  if (c.wants(1)) c.give(1, transB ? gemm(dy, a, true, transA, alpha) : gemm(a, dy, !transA, false, alpha));
  if (c.hasInput(2) && c.wants(2)) c.give(2, dy * beta);
  return Status::ok();
}

/// Operand i from the others and what came back, by the equation with the two terms swapped.
Status gradientEinsum(GradientContext& c) {
  std::string equation = c.node().stringAttr("equation", "");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos || equation.find('.') != std::string::npos)
    return Status::error("an equation without an output term, or with an ellipsis");
  const std::vector<std::string> terms = splitText(equation.substr(0, arrow), ',');
  const std::string output = equation.substr(arrow + 2);
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!c.wants(i)) continue;
    std::string seen = output, left = output;
    std::vector<Term> operands = {c.gradient()};
    for (size_t k = 0; k < terms.size(); ++k) {
      if (k == i) continue;
      left += "," + terms[k];
      seen += terms[k];
      operands.push_back(c.input(k));
    }
    // Labels that only this operand has were summed over: every element gets the same.
    std::string known;
    for (char label : terms[i]) {
      if (std::count(terms[i].begin(), terms[i].end(), label) > 1) return Status::error("a diagonal");
      if (seen.find(label) != std::string::npos) known += label;
    }
    Term g = c.builder().node("Einsum", operands, {{"equation", left + "->" + known}});
    std::vector<int64_t> dims = g.dims(), full;
    for (char label : terms[i]) {
      const size_t at = known.find(label);
      full.push_back(at == std::string::npos ? 1 : dims[at]);
    }
    c.give(i, reshape(g, full));
  }
  return Status::ok();
}

}  // namespace locution::ops
