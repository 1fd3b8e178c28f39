#include "ops/builder.h"

#include <numeric>

namespace locution::ops {

const ValueType& Term::type() const { return builder_->graph().type(id_); }

std::vector<Term> Builder::nodes(const std::string& op, const std::vector<Term>& inputs, graph::Attrs attrs,
                                 size_t outputs) {
  std::vector<graph::ValueId> ids;
  for (const Term& t : inputs) ids.push_back(t.id());
  ValueType unknown;
  unknown.shape = Shape::unranked();
  const graph::NodeId id = patch_.append(
      graph().mainRegion(), {op, std::move(ids), std::move(attrs), std::vector<ValueType>(outputs, unknown)});
  Result<InferredTypes> types = inferNode(graph(), id, known_);
  LOCUTION_CHECK(types.isOk()) << graph::describe(graph(), id) << ": " << types.status().message();
  std::vector<Term> out;
  for (size_t i = 0; i < outputs; ++i) {
    const graph::ValueId v = patch_.output(id, i);
    if ((*types)[i]) patch_.setType(v, *(*types)[i]);
    out.push_back(of(v));
  }
  return out;
}

Term Builder::node(const std::string& op, const std::vector<Term>& inputs, graph::Attrs attrs) {
  return nodes(op, inputs, std::move(attrs), 1)[0];
}

Term Builder::constant(Tensor tensor) { return of(patch_.addConstant("c", std::move(tensor))); }

Term Builder::scalar(DType dtype, double value) { return full(dtype, {}, value); }

Term Builder::ints(const std::vector<int64_t>& values) { return constant(Tensor::vectorI64(values)); }

Term Builder::full(DType dtype, const std::vector<int64_t>& dims, double value) {
  Tensor t(dtype, dims);
  if (value != 0)
    for (int64_t i = 0; i < t.elements(); ++i) t.setElement(i, value);
  return constant(std::move(t));
}

Term Builder::named(const Term& term, const std::string& name) {
  patch_.rename(term.id(), name);
  return term;
}

namespace {

Term like(const Term& t, double value) { return t.builder().scalar(t.dtype(), value); }

}  // namespace

Term call(const std::string& op, const Term& a) { return a.builder().node(op, {a}); }
Term call(const std::string& op, const Term& a, const Term& b) { return a.builder().node(op, {a, b}); }

Term operator+(const Term& a, const Term& b) { return call("Add", a, b); }
Term operator-(const Term& a, const Term& b) { return call("Sub", a, b); }
Term operator*(const Term& a, const Term& b) { return call("Mul", a, b); }
Term operator/(const Term& a, const Term& b) { return call("Div", a, b); }
Term operator-(const Term& a) { return call("Neg", a); }
Term operator+(const Term& a, double b) { return a + like(a, b); }
Term operator-(const Term& a, double b) { return a - like(a, b); }
Term operator*(const Term& a, double b) { return b == 1 ? a : a * like(a, b); }
Term operator/(const Term& a, double b) { return a / like(a, b); }
Term operator+(double a, const Term& b) { return b + like(b, a); }
Term operator-(double a, const Term& b) { return like(b, a) - b; }
Term operator*(double a, const Term& b) { return b * a; }
Term operator/(double a, const Term& b) { return like(b, a) / b; }

Term where(const Term& condition, const Term& a, const Term& b) {
  return condition.builder().node("Where", {condition, a, b});
}
Term whereOrZero(const Term& condition, const Term& a) { return where(condition, a, like(a, 0)); }

Term cast(const Term& a, DType dtype) {
  if (a.dtype() == dtype) return a;
  return a.builder().node("Cast", {a}, {{"to", std::string(dtypeName(dtype))}});
}

Term reduce(const std::string& op, const Term& a, const std::vector<int64_t>& axes, bool keepDims) {
  if (axes.empty()) return a;
  return a.builder().node(op, {a, a.builder().ints(axes)}, {{"keepdims", int64_t{keepDims}}});
}

Term reshape(const Term& a, const std::vector<int64_t>& dims) {
  if (a.dims() == dims) return a;
  return a.builder().node("Reshape", {a, a.builder().ints(dims)}, {{"allowzero", int64_t{1}}});
}

Term expand(const Term& a, const std::vector<int64_t>& dims) {
  if (a.dims() == dims) return a;
  return a.builder().node("Expand", {a, a.builder().ints(dims)});
}

Term sumTo(const Term& a, const std::vector<int64_t>& dims) {
  const std::vector<int64_t> from = a.dims();
  if (from == dims) return a;
  const size_t extra = from.size() - dims.size();
  std::vector<int64_t> axes;
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1 && (i < extra || dims[i - extra] == 1)) axes.push_back(static_cast<int64_t>(i));
  return reshape(reduce("ReduceSum", a, axes, true), dims);
}

Term transpose(const Term& a, const std::vector<int64_t>& perm) {
  return a.builder().node("Transpose", {a}, {{"perm", perm}});
}

Term swapLast(const Term& a) {
  std::vector<int64_t> perm(static_cast<size_t>(a.rank()));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(a, perm);
}

Term matMul(const Term& a, const Term& b) { return call("MatMul", a, b); }

Term slice(const Term& a, int64_t axis, int64_t start, int64_t end) {
  if (start == 0 && end == a.dims()[static_cast<size_t>(axis)]) return a;
  Builder& b = a.builder();
  return b.node("Slice", {a, b.ints({start}), b.ints({end}), b.ints({axis})});
}

}  // namespace locution::ops
