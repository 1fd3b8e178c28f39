#include "tune/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "loop/build.h"
#include "loop/interpreter.h"
#include "loop/passes.h"
#include "tune/reference.h"

namespace locution::tune {

using namespace loop;  // NOLINT: builds loop IR

namespace {

double epsilonOf(DType t) {
  switch (t) {
    case DType::F64:
      return 0x1p-52;
    case DType::F16:
      return 0x1p-10;
    case DType::BF16:
      return 0x1p-7;
    case DType::F32:
      return 0x1p-23;
    default:
      return isFloat(t) ? 0x1p-2 : 0;
  }
}

bool isPlainSum(const Computation& c) {
  return !c.raw && c.stages.size() == 1 && c.stages[0].combiner == Combiner::Sum && !c.stages[0].scan &&
         isFloat(c.stages[0].body->type.dtype);
}

bool usesFloats(const Computation& c) {
  if (c.raw) return true;
  return std::any_of(c.stages.begin(), c.stages.end(), [](const Stage& s) {
    bool found = isFloat(s.body->type.dtype);
    auto look = [&](const Expr& e) {
      visit(e, [&](const Expr& x) {
        found = found || isFloat(x->type.dtype);
        return !found;
      });
    };
    look(s.body);
    if (s.epilogue) look(s.epilogue);
    return found;
  });
}

// At given rows: the value, what a rounding of the sum by `bound` makes of it, and that bound.
Function sumLoops(const Computation& c, const BufferRef& samples, int64_t count) {
  const Stage& s = c.stages[0];
  const DType type = s.body->type.dtype;
  VarRef row = makeVar("row");
  Substitution map;
  double terms = 1;
  for (size_t i = 0; i < s.axes.size(); ++i) map[s.axes[i].var.get()] = load(samples, {row, index(int64_t(i))});
  for (const Axis& a : s.reduce) terms *= static_cast<double>(a.extent);
  BufferRef sum = makeBuffer("sum", {type, 1}, {}, Scope::Stack),
            size = makeBuffer("size", {type, 1}, {}, Scope::Stack);
  Expr body = substitute(s.body, map);
  Stmt add = block({store(sum, {}, load(sum, {}) + body), store(size, {}, load(size, {}) + call("abs", {body}))});
  for (size_t i = s.reduce.size(); i-- > 0;)
    add = forLoop(s.reduce[i].var, index(0), index(s.reduce[i].extent), LoopKind::Serial, add);
  Expr bound = load(size, {}) * constant(type, 8 * std::sqrt(terms) * epsilonOf(type));
  auto valueAt = [&](const Expr& acc) {
    Expr value = acc;
    if (s.epilogue) {
      Substitution with = map;
      with[s.acc.get()] = acc;
      value = substitute(s.epilogue, with);
    }
    return cast(DType::F64, value);
  };
  Expr value = valueAt(load(sum, {}));
  Expr up = call("abs", {valueAt(load(sum, {}) + bound) - value}),
       down = call("abs", {valueAt(load(sum, {}) - bound) - value});
  Function f;
  f.name = c.name + ".samples";
  f.params = c.inputs;
  f.params.push_back(samples);
  std::vector<Stmt> parts = {store(sum, {}, constant(type, 0)), store(size, {}, constant(type, 0)), add};
  for (const auto& [name, what] :
       {std::pair{"want", value}, std::pair{"slack", maxOf(up, down)}, std::pair{"bound", cast(DType::F64, bound)}}) {
    BufferRef out = makeBuffer(name, {DType::F64, 1}, {count});
    parts.push_back(store(out, {row}, what));
    f.params.push_back(out);
  }
  f.outputCount = 3;
  f.body = forLoop(row, index(0), index(count), LoopKind::Serial, allocate(sum, allocate(size, block(parts))));
  return f;
}

// Every place of an output of these extents.
Tensor allRows(const std::vector<Axis>& axes) {
  int64_t count = 1;
  for (const Axis& a : axes) count *= a.extent;
  Tensor rows(DType::I64, {count, static_cast<int64_t>(axes.size())});
  int64_t* to = rows.data<int64_t>();
  std::vector<int64_t> at(axes.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    to = std::copy(at.begin(), at.end(), to);
    for (size_t d = axes.size(); d-- > 0;) {
      if (++at[d] < axes[d].extent) break;
      at[d] = 0;
    }
  }
  return rows;
}

// The place in memory of leading indices, in units of what lies behind them.
int64_t flat(const Tensor& rows, int64_t row, const std::vector<int64_t>& dims) {
  int64_t at = 0;
  for (int64_t d = 0; d < rows.dims()[1]; ++d)
    at = at * dims[static_cast<size_t>(d)] + rows.data<int64_t>()[row * rows.dims()[1] + d];
  return at;
}

std::string text(int64_t index, double have, double want, double allowed) {
  char out[160];
  std::snprintf(out, sizeof out, "element %lld is %.9g, not %.9g within %.2g", static_cast<long long>(index), have,
                want, allowed);
  return out;
}

// How many times too far apart; NaN and infinities must agree.
double excess(double want, double have, double allowed) {
  if (std::isnan(want) || std::isnan(have)) return std::isnan(want) && std::isnan(have) ? 0 : INFINITY;
  if (want == have) return 0;
  const double difference = std::fabs(want - have);
  return difference <= allowed ? 0 : allowed > 0 ? difference / allowed : INFINITY;
}

bool isPoison(const Tensor& t, int64_t i) {
  const auto size = std::max<size_t>(static_cast<size_t>(dtypeBits(t.dtype())) / 8, 1);
  const std::byte* element = t.raw() + static_cast<size_t>(i) * size;
  return std::all_of(element, element + size, [](std::byte b) { return b == std::byte{Oracle::kPoison}; });
}

constexpr int64_t kBlock = 1024;
bool isNear(const float* a, const float* b, float allowed) {
  int far = 0;
  for (int64_t i = 0; i < kBlock; ++i) far += std::fabs(a[i] - b[i]) <= allowed ? 0 : 1;
  return far == 0;
}

}  // namespace

Result<Oracle> Oracle::make(const Computation& kernel, const std::vector<Tensor>& inputs, double maxPoints,
                            uint64_t seed) {
  Oracle out;
  out.bounds_.resize(kernel.outputs.size());
  const Tensor rows = drawRows(kernel, maxPoints, seed);
  Status s = isPlainSum(kernel) ? out.sampleSum(kernel, inputs, rows) : out.sampleRows(kernel, inputs, rows);
  if (!s.isOk()) return s;
  return out;
}

Status Oracle::sampleSum(const Computation& kernel, const std::vector<Tensor>& inputs, const Tensor& drawn) {
  const Stage& s = kernel.stages[0];
  const Tensor rows = drawn.isValid() ? drawn : allRows(s.axes);
  const int64_t count = rows.dims()[0];
  BufferRef samples = makeBuffer("samples", {DType::I64, 1}, rows.dims());
  Function f = sumLoops(kernel, samples, count);
  std::vector<Tensor> params = inputs;
  params.push_back(rows);
  for (int i = 0; i < 3; ++i) params.emplace_back(DType::F64, std::vector<int64_t>{count});
  InterpretOptions options;
  options.float64 = true;
  LOCUTION_RETURN_IF_ERROR(interpret(f, params, options));
  const double* want = params[params.size() - 3].data<double>();
  const double* slack = params[params.size() - 2].data<double>();
  const double* bound = params[params.size() - 1].data<double>();
  Bound& b = bounds_[0];
  const DType dtype = s.out->element.dtype;
  double slope = 0, largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    places_.push_back({0, flat(rows, i, extents(*s.out)), want[i], std::isfinite(slack[i]) ? slack[i] : 0});
    if (!std::isfinite(slack[i]) || !std::isfinite(bound[i])) continue;
    b.anywhere = std::max(b.anywhere, slack[i]);
    largest = std::max(largest, bound[i]);
    if (bound[i] > 0) slope = std::max(slope, slack[i] / bound[i]);
  }
  b.winograd = 16 * largest * slope;
  b.relative = 2 * epsilonOf(dtype);
  if (s.epilogue) {
    // Its functions are polynomials, good to a few units in the last place of their arguments.
    b.relative += 1e-5;
    b.absolute = 1e-6;
  }
  if (!isFloat(dtype)) b.absolute = 1;  // a rounding may go the other way
  return Status::ok();
}

Status Oracle::sampleRows(const Computation& kernel, const std::vector<Tensor>& inputs, const Tensor& rows) {
  std::vector<Tensor> outputs;
  for (const BufferRef& b : kernel.outputs) outputs.emplace_back(b->element.dtype, extents(*b));
  InterpretOptions options;
  // Roundings to integers are compared as they are; all else with what is nearer to the truth.
  options.float64 = std::all_of(outputs.begin(), outputs.end(), [](const Tensor& t) { return isFloat(t.dtype()); });
  auto share = interpretRows(kernel, inputs, outputs, rows, options);
  if (!share.isOk()) return share.status();
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Tensor& t = outputs[o];
    double largest = 0;
    auto add = [&](int64_t i) {
      places_.push_back({static_cast<uint32_t>(o), i, t.elementAsDouble(i), 0});
      if (std::isfinite(places_.back().want)) largest = std::max(largest, std::fabs(places_.back().want));
    };
    if (!rows.isValid()) {
      for (int64_t i = 0; i < t.elements(); ++i) add(i);
    } else {
      int64_t inner = 1;
      for (int64_t d = rows.dims()[1]; d < t.rank(); ++d) inner *= t.dims()[static_cast<size_t>(d)];
      for (int64_t r = 0; r < rows.dims()[0]; ++r) {
        const int64_t first = flat(rows, r, t.dims()) * inner;
        for (int64_t i = 0; i < inner; ++i) add(first + i);
      }
    }
    if (isFloat(t.dtype())) {
      bounds_[o].relative = 1e-3;
      bounds_[o].absolute = 1e-4 * std::max(1.0, largest / 10);
    } else if (usesFloats(kernel)) {
      bounds_[o].absolute = 1;
    }
    bounds_[o].winograd = bounds_[o].anywhere = bounds_[o].absolute;
  }
  return Status::ok();
}

double Oracle::finiteShare() const {
  if (places_.empty()) return 1;
  auto finite = std::count_if(places_.begin(), places_.end(), [](const Place& p) { return std::isfinite(p.want); });
  return static_cast<double>(finite) / static_cast<double>(places_.size());
}

std::string Oracle::check(const std::vector<Tensor>& outputs, bool isWinograd, bool isPartial) const {
  double worst = 0;
  std::string what;
  for (const Place& p : places_) {
    if (isPartial && isPoison(outputs[p.output], p.index)) continue;
    const Bound& b = bounds_[p.output];
    const double have = outputs[p.output].elementAsDouble(p.index);
    const double allowed = b.absolute + b.relative * std::fabs(p.want) + (isWinograd ? b.winograd : p.slack);
    const double over = excess(p.want, have, allowed);
    if (over > worst) {
      worst = over;
      what = text(p.index, have, p.want, allowed);
    }
  }
  return what;
}

std::string Oracle::compare(const std::vector<Tensor>& want, const std::vector<Tensor>& have, bool isWinograd,
                            bool isPartial) const {
  for (size_t o = 0; o < want.size(); ++o) {
    const Bound& b = bounds_[o];
    // Both may be off, and the places of the largest slack may not be among those that are known.
    const double absolute = 2 * b.absolute + 4 * (isWinograd ? b.winograd : b.anywhere), relative = 2 * b.relative;
    const int64_t n = want[o].elements();
    for (int64_t from = 0; from < n; from += kBlock) {
      const int64_t to = std::min(from + kBlock, n);
      if (want[o].dtype() == DType::F32 && to - from == kBlock &&
          isNear(want[o].data<float>() + from, have[o].data<float>() + from, static_cast<float>(absolute)))
        continue;
      for (int64_t i = from; i < to; ++i) {
        if (isPartial && isPoison(have[o], i)) continue;
        const double w = want[o].elementAsDouble(i), h = have[o].elementAsDouble(i);
        const double allowed = absolute + relative * std::fabs(w);
        if (excess(w, h, allowed) > 0) return text(i, h, w, allowed);
      }
    }
  }
  return "";
}

}  // namespace locution::tune
