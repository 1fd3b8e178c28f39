#include "tune/reference.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "loop/interpreter.h"
#include "loop/passes.h"
#include "schedule/stages.h"

namespace locution::tune {

using namespace loop;  // NOLINT: builds loop IR

namespace {

double points(const Stage& s, size_t firstAxis) {
  double n = 1;
  for (size_t i = firstAxis; i < s.axes.size(); ++i) n *= static_cast<double>(s.axes[i].extent);
  for (const Axis& a : s.reduce) n *= static_cast<double>(a.extent);
  return n;
}

// One stage at given leading axes: plain loops over what is left.
Stmt stageAt(const Stage& s, const std::vector<Expr>& leading) {
  Substitution map;
  for (size_t i = 0; i < leading.size(); ++i) map[s.axes[i].var.get()] = leading[i];
  std::vector<Expr> where = leading;
  for (size_t i = leading.size(); i < s.axes.size(); ++i) where.push_back(s.axes[i].var);
  Stmt out;
  if (s.combiner == Combiner::None) {
    out = store(s.out, where, substitute(s.body, map));
  } else {
    BufferRef acc = makeBuffer("acc", {s.body->type.dtype, 1}, {}, Scope::Stack);
    Stmt sum = store(acc, {}, binary(combinerOp(s.combiner), load(acc, {}), substitute(s.body, map)));
    for (size_t i = s.reduce.size(); i-- > 0;)
      sum = forLoop(s.reduce[i].var, index(0), index(s.reduce[i].extent), LoopKind::Serial, sum);
    Expr value = load(acc, {});
    if (s.epilogue) {
      map[s.acc.get()] = value;
      value = substitute(s.epilogue, map);
    }
    out = allocate(acc,
                   block({store(acc, {}, identity(s.combiner, s.body->type.dtype)), sum, store(s.out, where, value)}));
  }
  for (size_t i = s.axes.size(); i-- > leading.size();)
    out = forLoop(s.axes[i].var, index(0), index(s.axes[i].extent), LoopKind::Serial, out);
  return out;
}

Function sampledLoops(const Computation& c, size_t shared, const BufferRef& samples, int64_t count) {
  VarRef row = makeVar("row");
  std::vector<Expr> leading;
  for (size_t i = 0; i < shared; ++i) leading.push_back(load(samples, {row, index(static_cast<int64_t>(i))}));
  std::vector<Stmt> parts;
  for (const Stage& s : c.stages) parts.push_back(stageAt(s, leading));
  Stmt body = forLoop(row, index(0), index(count), LoopKind::Serial, block(std::move(parts)));
  Function f;
  f.name = c.name + ".samples";
  f.params = c.inputs;
  f.params.push_back(samples);
  // Temporaries are written like outputs, so that nobody has to know where they live.
  for (const Stage& s : c.stages)
    if (std::find(c.outputs.begin(), c.outputs.end(), s.out) == c.outputs.end()) f.params.push_back(s.out);
  size_t temporaries = f.params.size() - c.inputs.size() - 1;
  f.params.insert(f.params.end(), c.outputs.begin(), c.outputs.end());
  f.outputCount = temporaries + c.outputs.size();
  f.body = body;
  return f;
}

}  // namespace

Tensor drawRows(const Computation& c, double maxPoints, uint64_t seed) {
  double whole = 0;
  for (const Stage& s : c.stages) whole += points(s, 0);
  bool scans = std::any_of(c.stages.begin(), c.stages.end(), [](const Stage& s) { return s.scan; });
  size_t shared = c.stages.size() == 1 ? c.stages[0].axes.size()
                  : c.stages.empty()   ? 0
                                       : static_cast<size_t>(schedule::sharedAxes(c));
  if (c.raw || scans || whole <= maxPoints || shared == 0) return {};
  double each = 0, rows = 1;
  for (const Stage& s : c.stages) each += points(s, shared);
  for (size_t i = 0; i < shared; ++i) rows *= static_cast<double>(c.stages[0].axes[i].extent);
  auto count = static_cast<int64_t>(std::clamp(maxPoints / each, 1.0, rows));
  Tensor where(DType::I64, {count, static_cast<int64_t>(shared)});
  std::mt19937_64 rng(seed);
  for (int64_t i = 0; i < count; ++i)
    for (size_t k = 0; k < shared; ++k) {
      int64_t extent = c.stages[0].axes[k].extent;
      // Corners first: tails are where schedules go wrong.
      where.data<int64_t>()[i * static_cast<int64_t>(shared) + static_cast<int64_t>(k)] =
          i == 0   ? 0
          : i == 1 ? extent - 1
                   : static_cast<int64_t>(rng() % static_cast<uint64_t>(extent));
    }
  return where;
}

Result<double> interpretReference(const Computation& c, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                                  double maxPoints, uint64_t seed) {
  return interpretRows(c, inputs, outputs, drawRows(c, maxPoints, seed), {});
}

Result<double> interpretRows(const Computation& c, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                             const Tensor& where, const InterpretOptions& options) {
  if (!where.isValid()) {
    Function f = naiveLoops(c);
    std::vector<Tensor> params = inputs;
    params.insert(params.end(), outputs.begin(), outputs.end());
    LOCUTION_RETURN_IF_ERROR(interpret(f, params, options));
    outputs.assign(params.end() - static_cast<long>(outputs.size()), params.end());
    return 1.0;
  }
  const int64_t count = where.dims()[0], shared = where.dims()[1];
  BufferRef samples = makeBuffer("samples", {DType::I64, 1}, {count, shared});
  Function f = sampledLoops(c, static_cast<size_t>(shared), samples, count);
  std::vector<Tensor> params = inputs;
  params.push_back(where);
  for (size_t i = params.size(); i + outputs.size() < f.params.size(); ++i)
    params.emplace_back(f.params[i]->element.dtype, extents(*f.params[i]));
  params.insert(params.end(), outputs.begin(), outputs.end());
  LOCUTION_RETURN_IF_ERROR(interpret(f, params, options));
  outputs.assign(params.end() - static_cast<long>(outputs.size()), params.end());
  double rows = 1;
  for (int64_t i = 0; i < shared; ++i) rows *= static_cast<double>(c.stages[0].axes[static_cast<size_t>(i)].extent);
  return static_cast<double>(count) / rows;
}

std::string differenceOf(const Tensor& want, const Tensor& have) {
  if (want.dtype() != have.dtype())
    return "dtype " + std::string(dtypeName(have.dtype())) + ", not " + std::string(dtypeName(want.dtype()));
  if (want.dims() != have.dims()) return "shape " + have.shape().str() + ", not " + want.shape().str();
  if (!isFloat(want.dtype())) return want.identical(have) ? "" : "integers differ";
  double largest = 0;
  for (int64_t i = 0; i < want.elements(); ++i)
    if (std::isfinite(want.elementAsDouble(i))) largest = std::max(largest, std::fabs(want.elementAsDouble(i)));
  double worst = 0;
  int64_t at = -1;
  for (int64_t i = 0; i < want.elements(); ++i) {
    double x = want.elementAsDouble(i), y = have.elementAsDouble(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y) continue;
    double over = std::isfinite(x) && std::isfinite(y)
                      ? std::fabs(x - y) / (1e-3 * std::fabs(x) + 1e-4 * std::max(1.0, largest / 10))
                      : HUGE_VAL;
    if (over > worst) {
      worst = over;
      at = i;
    }
  }
  if (worst <= 1) return "";
  return "element " + std::to_string(at) + " is " + std::to_string(have.elementAsDouble(at)) + ", not " +
         std::to_string(want.elementAsDouble(at));
}

}  // namespace locution::tune
