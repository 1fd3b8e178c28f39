"""A model in float64: the same graph with its float32 weights and inputs as float64, run by ONNX's reference evaluator. Its convolutions
and poolings are loops in Python, too slow for whole networks; here they are sums over the kernel's positions of matrix products."""
import math

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_average_pool import AveragePool_19
from onnx.reference.ops.op_max_pool import MaxPool as SlowMaxPool


def windows(x, kernel, strides, pads, dilations, auto_pad, fill, ceil=False):
    """The input's slices that each position of the kernel meets, in the kernel's order: views of the shape of the output."""
    rank = len(kernel)
    strides, dilations = list(strides or [1] * rank), list(dilations or [1] * rank)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        whole = [max(0, (math.ceil(n / s) - 1) * s + r - n) for n, s, r in zip(x.shape[2:], strides, reach)]
        small = [w // 2 for w in whole]
        begin, end = (small, [w - s for w, s in zip(whole, small)]) if auto_pad == "SAME_UPPER" else ([w - s for w, s in zip(whole, small)], small)
    else:
        pads = list(pads or [0] * 2 * rank)
        begin, end = pads[:rank], pads[rank:]
    out = []
    for i, n in enumerate(x.shape[2:]):
        steps = (n + begin[i] + end[i] - reach[i]) / strides[i]
        count = (math.ceil(steps) if ceil else math.floor(steps)) + 1
        if ceil and (count - 1) * strides[i] >= n + begin[i]:
            count -= 1  # a window that starts in the padding at the end
        end[i] = max(end[i], (count - 1) * strides[i] + reach[i] - n - begin[i])
        out.append(count)
    x = np.pad(x, [(0, 0), (0, 0), *zip(begin, end)], constant_values=fill)
    for position in np.ndindex(*kernel):
        yield position, x[(slice(None), slice(None), *(slice(p * d, p * d + (o - 1) * s + 1, s) for p, d, o, s in zip(position, dilations, out, strides)))]


class Conv(OpRun):
    op_domain = ""

    def _run(self, x, w, b=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, pads=None, strides=None):
        group = group or 1
        weights = w.reshape(group, w.shape[0] // group, *w.shape[1:])
        sum_ = None
        for position, view in windows(x, w.shape[2:], strides, pads, dilations, auto_pad, 0):
            shape = view.shape[2:]
            columns = view.reshape(x.shape[0], group, x.shape[1] // group, -1)
            product = np.matmul(weights[(slice(None), slice(None), slice(None), *position)], columns)
            sum_ = product if sum_ is None else sum_ + product
        y = sum_.reshape(x.shape[0], w.shape[0], *shape)
        return (y if b is None else y + b.reshape(1, -1, *[1] * len(shape)),)


class MaxPool(SlowMaxPool):
    op_domain = ""

    def _run(self, x, auto_pad=None, ceil_mode=None, dilations=None, kernel_shape=None, pads=None, storage_order=None, strides=None):
        if len(self.onnx_node.output) > 1:
            return super()._run(x, auto_pad=auto_pad, ceil_mode=ceil_mode, dilations=dilations, kernel_shape=kernel_shape, pads=pads, storage_order=storage_order, strides=strides)
        largest = None
        for _, view in windows(x, kernel_shape, strides, pads, dilations, auto_pad, -np.inf, bool(ceil_mode)):
            largest = view.copy() if largest is None else np.maximum(largest, view)
        return (largest,)


class AveragePool(AveragePool_19):
    op_domain = ""

    def _run(self, x, auto_pad=None, ceil_mode=None, count_include_pad=None, dilations=None, kernel_shape=None, pads=None, strides=None):
        if ceil_mode or (count_include_pad and auto_pad not in (None, "NOTSET")):
            return super()._run(x, auto_pad=auto_pad, ceil_mode=ceil_mode, count_include_pad=count_include_pad, dilations=dilations, kernel_shape=kernel_shape, pads=pads, strides=strides)
        total = sum(view for _, view in windows(x, kernel_shape, strides, pads, dilations, auto_pad, 0))
        inside = x if not count_include_pad else np.ones_like(x)
        if count_include_pad:
            return (total / math.prod(kernel_shape),)
        return (total / sum(view for _, view in windows(np.ones_like(inside), kernel_shape, strides, pads, dilations, auto_pad, 0)),)


class GlobalMaxPool(OpRun):
    """ONNX's own takes the wrong axes of what has one spatial dim."""
    op_domain = ""

    def _run(self, x):
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class BatchNormalization(OpRun):
    """ONNX's own trains where an old opset gives a momentum."""
    op_domain = ""

    def _run(self, x, scale, offset, mean, variance, epsilon=None, momentum=None, training_mode=None, spatial=None):
        by_channel = lambda v: v.reshape(1, -1, *[1] * (x.ndim - 2))
        epsilon = 1e-5 if epsilon is None else np.float64(np.float32(epsilon))
        return ((x - by_channel(mean)) / np.sqrt(by_channel(variance) + epsilon) * by_channel(scale) + by_channel(offset),)


class Erf(OpRun):
    """ONNX's own rounds to float32."""
    op_domain = ""
    each = np.vectorize(math.erf, otypes=[np.float64])

    def _run(self, x):
        return (self.each(x).reshape(x.shape),)


def widen(graph):
    """Casts and constants to float64, in place, in subgraphs as well."""
    for node in graph.node:
        for a in node.attribute:
            if a.type == AttributeProto.TENSOR and a.t.data_type == TensorProto.FLOAT:
                a.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(a.t).astype(np.float64), a.t.name))
            elif a.type == AttributeProto.GRAPH:
                widen(a.g)
            elif node.op_type == "Cast" and a.name == "to" and a.i == TensorProto.FLOAT:
                a.i = TensorProto.DOUBLE
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name in ("value_float", "value_floats"):
            a = node.attribute[0]
            value = np.asarray(a.f if a.name == "value_float" else list(a.floats), np.float64)
            node.attribute[0].CopyFrom(helper.make_attribute("value", numpy_helper.from_array(value)))


def run(path, inputs):
    """The outputs in float64 (what is not a float in its own type)."""
    model = onnx.load(path)
    widen(model.graph)
    evaluator = ReferenceEvaluator(model, new_ops=[Conv, MaxPool, AveragePool, GlobalMaxPool, BatchNormalization, Erf])
    del model
    wide = lambda array: array.astype(np.float64) if array.dtype == np.float32 else array
    evaluator.rt_inits_ = {name: wide(array) for name, array in evaluator.rt_inits_.items()}
    with np.errstate(all="ignore"):
        return evaluator.run(None, {name: wide(array) for name, array in inputs.items()})
