#include "passes/fold_evaluate.h"

#include <algorithm>

#include "hostops/host_op.h"
#include "loop/interpreter.h"
#include "loop/passes.h"
#include "ops/contexts.h"
#include "passes/rewrite.h"

namespace locution::passes {
namespace {

template <typename F>
void rowLoop(const float* a, const float* b, float* out, int64_t n, bool aMoves, bool bMoves, F f) {
  if (aMoves && bMoves) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  } else if (aMoves) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], *b);
  } else if (bMoves) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(*a, b[i]);
  } else {
    std::fill(out, out + n, f(*a, *b));
  }
}

/// Dims of the result with the elements that each operand moves by (0 where it is broadcast); neighbours that move alike are one.
struct Broadcast {
  Ints dims, strideA, strideB;
};

std::optional<Broadcast> broadcastOf(const Ints& a, const Ints& b, Ints* result) {
  const size_t rank = std::max(a.size(), b.size());
  Broadcast out;
  int64_t stepA = 1, stepB = 1;
  result->assign(rank, 1);
  for (size_t i = 0; i < rank; ++i) {  // from the innermost dim
    const int64_t da = i < a.size() ? a[a.size() - 1 - i] : 1, db = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (da != db && da != 1 && db != 1) return std::nullopt;
    const int64_t d = da == 1 ? db : da;
    (*result)[rank - 1 - i] = d;
    const int64_t sa = da == 1 ? 0 : stepA, sb = db == 1 ? 0 : stepB;
    stepA *= da;
    stepB *= db;
    if (d == 1) continue;
    if (!out.dims.empty() && sa == out.strideA.back() * out.dims.back() && sb == out.strideB.back() * out.dims.back()) {
      out.dims.back() *= d;
      continue;
    }
    out.dims.push_back(d);
    out.strideA.push_back(sa);
    out.strideB.push_back(sb);
  }
  if (out.dims.empty()) {
    out.dims = {1};
    out.strideA = out.strideB = {0};
  }
  return out;
}

template <typename F>
Tensor binaryLoop(const Tensor& a, const Tensor& b, const Broadcast& plan, const Ints& dims, F f) {
  Tensor out(DType::F32, dims);
  if (out.elements() == 0) return out;
  const float *pa = a.data<float>(), *pb = b.data<float>();
  float* po = out.data<float>();
  const int64_t row = plan.dims[0];
  Ints at(plan.dims.size(), 0);
  for (;;) {
    rowLoop(pa, pb, po, row, plan.strideA[0] != 0, plan.strideB[0] != 0, f);
    po += row;
    size_t i = 1;
    for (; i < at.size(); ++i) {
      pa += plan.strideA[i];
      pb += plan.strideB[i];
      if (++at[i] < plan.dims[i]) break;
      at[i] = 0;
      pa -= plan.strideA[i] * plan.dims[i];
      pb -= plan.strideB[i] * plan.dims[i];
    }
    if (i == at.size()) return out;
  }
}

Result<std::vector<Tensor>> runOnHost(const hostops::HostOp& op, const Graph& graph, const Node& node) {
  std::vector<hostops::HostValue> inputs, outputs;
  for (ValueId v : node.inputs)
    inputs.push_back(v.isValid() ? hostops::HostValue(*graph.constant(v)) : hostops::HostValue());
  LOCUTION_RETURN_IF_ERROR(hostops::runHostOp(op, {inputs, node.attrs, node.outputs.size(), 0}, outputs));
  std::vector<Tensor> tensors(node.outputs.size());
  for (size_t i = 0; i < outputs.size() && i < tensors.size(); ++i) {
    if (!node.outputs[i].isValid()) continue;
    if (!outputs[i].isTensor()) return Status::error("an output that is no tensor");
    tensors[i] = outputs[i].tensor;
  }
  return tensors;
}

Result<std::vector<Tensor>> runAsLoops(const Graph& graph, NodeId id, const PassContext& context) {
  LOCUTION_ASSIGN_OR_RETURN(ops::NodeComputation loops, ops::computeNodeWithValues(graph, id));
  std::vector<Tensor> inputs;
  for (ValueId v : loops.inputs) {
    if (!graph.constant(v)) return Status::error("input '" + graph.value(v).name + "' is no constant");
    inputs.push_back(*graph.constant(v));
  }
  std::vector<Tensor> results;
  if (context.evaluate) {
    LOCUTION_ASSIGN_OR_RETURN(results, context.evaluate(loops.computation, inputs));
  } else {
    for (const loop::BufferRef& b : loops.computation.outputs) inputs.emplace_back(b->element.dtype, loop::extents(*b));
    LOCUTION_RETURN_IF_ERROR(loop::interpret(loop::naiveLoops(loops.computation), inputs));
    results.assign(inputs.begin() + static_cast<std::ptrdiff_t>(loops.inputs.size()), inputs.end());
  }
  const Node& node = graph.node(id);
  std::vector<Tensor> out(node.outputs.size());
  for (size_t i = 0; i < loops.outputs.size(); ++i) {
    auto at = std::find(node.outputs.begin(), node.outputs.end(), loops.outputs[i]);
    out[static_cast<size_t>(at - node.outputs.begin())] = results[i];
  }
  return out;
}

}  // namespace

std::optional<Tensor> foldBinary(std::string_view op, const Tensor& a, const Tensor& b) {
  if (a.dtype() != DType::F32 || b.dtype() != DType::F32) return std::nullopt;
  Ints dims;
  std::optional<Broadcast> plan = broadcastOf(a.dims(), b.dims(), &dims);
  if (!plan) return std::nullopt;
  if (op == "Add") return binaryLoop(a, b, *plan, dims, [](float x, float y) { return x + y; });
  if (op == "Sub") return binaryLoop(a, b, *plan, dims, [](float x, float y) { return x - y; });
  if (op == "Mul") return binaryLoop(a, b, *plan, dims, [](float x, float y) { return x * y; });
  if (op == "Div") return binaryLoop(a, b, *plan, dims, [](float x, float y) { return x / y; });
  return std::nullopt;
}

Result<std::vector<Tensor>> evaluateNode(const Graph& graph, NodeId id, const PassContext& context) {
  const Node& node = graph.node(id);
  const ops::Pattern pattern = patternOf(node);
  std::optional<Ints> dims;
  if (node.outputs.size() == 1 && node.outputs[0].isValid()) dims = staticExtents(graph, node.outputs[0]);
  const Tensor* first = graph.constant(node.input(0));
  if (pattern == ops::Pattern::Alias && dims && first && first->elements() == elementsOf(*dims))
    return std::vector<Tensor>{first->reshaped(*dims)};
  if (node.op == "Transpose" && first && first->dtype() != DType::String)
    return std::vector<Tensor>{permuted(*first, permutationOf(graph, node))};
  if (node.inputs.size() == 2 && first && node.hasInput(1))
    if (std::optional<Tensor> t = foldBinary(node.op, *first, *graph.constant(node.input(1))))
      return std::vector<Tensor>{*t};
  const ops::OpDef* op = ops::findOp(node.op);
  bool isLoops = op && op->compute;
  for (ValueId v : node.inputs) isLoops = isLoops && (!v.isValid() || isNumericTensor(graph.type(v)));
  for (ValueId v : node.outputs)
    isLoops = isLoops && (!v.isValid() || (isNumericTensor(graph.type(v)) && staticExtents(graph, v)));
  if (isLoops) return runAsLoops(graph, id, context);
  if (const hostops::HostOp* host = hostops::findHostOp(node.op)) return runOnHost(*host, graph, node);
  return Status::error(node.op + " isn't computed at compile time");
}

}  // namespace locution::passes
