// What the compiler knows of an operator: facts that passes ask for. The list is ops.inc, one line an op; each family has a file.
// Internal ops carry the names and the meaning of the newest ai.onnx opset, attributes that became inputs being inputs; the
// importer brings older opsets into this form. Ops of our own (Kernel, channels-last forms by attribute) are marked there.
//
// Channels last: Conv, ConvTranspose, pooling and the other spatial ops take the attribute `channels_last` = 1, which means that
// data input 0 and the output are N, spatial..., C instead of N, C, spatial... (weights keep ONNX's order).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "loop/compute.h"
#include "support/status.h"

namespace locution::ops {

/// How an op's outputs depend on its inputs: what fusion may do with it.
enum class Pattern : uint8_t {
  Alias,        ///< the same bytes under another shape (Reshape, Flatten, Squeeze, Unsqueeze, Identity)
  Elementwise,  ///< out[i] from in[i], with broadcasting
  Injective,  ///< out[i] from in[f(i)], each output element from few inputs (Transpose, Slice, Concat, Gather, Pad, Expand, Resize)
  Reduction,    ///< reduces over axes, may take several stages (ReduceSum, Softmax, LayerNormalization, pooling)
  Contraction,  ///< a sum of products of two operands (MatMul, Gemm, Conv)
  Opaque,       ///< loops that fuse with nothing (Scatter, CumSum, recurrent cells)
  Host,         ///< C++ routine at run time (hostops/)
  Control,      ///< If, Loop, Scan
  Kernel,       ///< a fused group
};

/// Sees a node's inputs as far as they are known; sets output types.
class InferContext {
 public:
  virtual ~InferContext() = default;
  virtual const graph::Node& node() const = 0;
  virtual size_t inputCount() const = 0;
  virtual bool hasInput(size_t i) const = 0;
  /// Type of a present input.
  virtual const ValueType& input(size_t i) const = 0;
  /// The constant behind input i, or nullptr.
  virtual const Tensor* constant(size_t i) const = 0;
  /// Known integer contents of input i (a scalar or vector): from a constant, or propagated symbolically (Shape, Gather, Concat ...).
  virtual std::optional<std::vector<Dim>> inputDims(size_t i) const = 0;
  virtual size_t outputCount() const = 0;
  virtual bool wantsOutput(size_t i) const = 0;
  virtual void setOutput(size_t i, ValueType type) = 0;
  void setOutput(size_t i, DType dtype, Shape shape) {
    ValueType t;
    t.dtype = dtype;
    t.shape = std::move(shape);
    setOutput(i, std::move(t));
  }
  /// Declares the integer contents of output i.
  virtual void setOutputDims(size_t i, std::vector<Dim> dims) = 0;
  /// A fresh symbol for an extent that depends on data.
  virtual Dim freshDim() = 0;
};

/// Builds an op's stages. Shapes are static here; every input and output has a Global buffer with its dims.
class ComputeContext {
 public:
  virtual ~ComputeContext() = default;
  virtual const graph::Node& node() const = 0;
  virtual size_t inputCount() const = 0;
  virtual bool hasInput(size_t i) const = 0;
  virtual const ValueType& input(size_t i) const = 0;
  virtual const Tensor* constant(size_t i) const = 0;
  virtual size_t outputCount() const = 0;
  virtual bool wantsOutput(size_t i) const = 0;
  virtual const ValueType& output(size_t i) const = 0;
  virtual loop::BufferRef inputBuffer(size_t i) = 0;
  virtual loop::BufferRef outputBuffer(size_t i) = 0;
  /// A temporary of this kernel.
  virtual loop::BufferRef temporary(const std::string& stem, DType dtype, const std::vector<int64_t>& dims) = 0;
  virtual void addStage(loop::Stage stage) = 0;
  /// Instead of stages, for Opaque ops.
  virtual void setRaw(loop::Stmt body) = 0;
  /// Input i holds indices: before the kernel runs, every element is checked to lie in [low, high]; a violation is an error that
  /// names the node, the value and the range. What a constant violates is an error now.
  virtual void checkIndices(size_t i, int64_t low, int64_t high) = 0;

  // Conveniences over the above.
  std::vector<int64_t> inputExtents(size_t i) const { return input(i).shape.extents(); }
  std::vector<int64_t> outputExtents(size_t i = 0) const { return output(i).shape.extents(); }
  /// in_i[indices]
  loop::Expr at(size_t i, std::vector<loop::Expr> indices) { return loop::load(inputBuffer(i), std::move(indices)); }
};

struct OpDef {
  std::string_view name;
  Pattern pattern;
  /// Checks the inputs (message without the node: the caller adds it) and sets every wanted output's type.
  Status (*infer)(InferContext&);
  /// Null for Host, Control and Kernel. May return an error for what is not supported (clear, with the reason).
  Status (*compute)(ComputeContext&);
};

/// nullptr when there is no such op.
const OpDef* findOp(std::string_view name);
const std::vector<OpDef>& allOps();

}  // namespace locution::ops
