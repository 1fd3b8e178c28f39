"""Builds an ONNX model layer by layer: nodes, seeded weights, and the inputs that a run is given."""
import math
import os
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "int32": TensorProto.INT32}
EXTERNAL_BYTES = 256 << 20  # weights beyond this stand in a file of their own


class Builder:
    def __init__(self, name, opset=17):
        self.name, self.opset = name, opset
        self.nodes, self.weights, self.inputs, self.outputs = [], [], {}, []
        self.random = np.random.default_rng(zlib.crc32(name.encode()))
        self.literals = {}

    # ---- values
    def normal(self, *shape, scale=1.0):
        return self.random.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    def weight(self, array):
        name = f"weight_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array, dtype=np.float32), name))
        return name

    def literal(self, value, dtype=np.float32):
        array = np.asarray(value, dtype=dtype)
        key = (array.tobytes(), array.shape, array.dtype.str)
        if key not in self.literals:
            self.literals[key] = f"literal_{len(self.literals)}"
            self.weights.append(numpy_helper.from_array(array, self.literals[key]))
        return self.literals[key]

    def ints(self, *values):
        return self.literal(values, np.int64)

    def input(self, name, shape, dtype="float32", kind="normal", high=None):
        """kind: how a run fills it (inputs.py)."""
        self.inputs[name] = dict(shape=list(shape), dtype=dtype, kind=kind, high=high)
        return name

    def output(self, value, name, shape):
        self.nodes.append(helper.make_node("Identity", [value], [name], name=f"output_{name}"))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def op(self, kind, *inputs, count=1, **attributes):
        number = len(self.nodes)
        outputs = [f"{kind.lower()}_{number}" + (f"_{i}" if count > 1 else "") for i in range(count)]
        self.nodes.append(helper.make_node(kind, list(inputs), outputs, name=f"{kind}_{number}", **attributes))
        return outputs if count > 1 else outputs[0]

    # ---- convolutional layers
    def conv(self, x, before, after, kernel, stride=1, groups=1, bias=False):
        fan = before // groups * kernel * kernel
        parameters = [self.weight(self.normal(after, before // groups, kernel, kernel, scale=math.sqrt(2 / fan)))]
        if bias:
            parameters.append(self.weight(self.normal(after, scale=0.05)))
        return self.op("Conv", x, *parameters, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4, group=groups)

    def batch_norm(self, x, channels, gain=1.0):
        scale, offset = gain * (1 + 0.1 * self.normal(channels)), 0.1 * self.normal(channels)
        mean, variance = 0.05 * self.normal(channels), np.abs(1 + 0.1 * self.normal(channels))
        return self.op("BatchNormalization", x, *map(self.weight, (scale, offset, mean, variance)), epsilon=1e-5)

    def conv_norm(self, x, before, after, kernel, stride=1, groups=1, gain=1.0, act=None):
        y = self.batch_norm(self.conv(x, before, after, kernel, stride, groups), after, gain)
        return act(y) if act else y

    def relu(self, x):
        return self.op("Relu", x)

    def relu6(self, x):
        return self.op("Clip", x, self.literal(0.0), self.literal(6.0))

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def classifier(self, x, features, classes=1000):
        x = self.op("Flatten", self.op("GlobalAveragePool", x), axis=1)
        return self.op("Gemm", x, self.weight(self.normal(classes, features, scale=features ** -0.5)), self.weight(self.normal(classes, scale=0.01)), transB=1)

    # ---- transformer layers
    def linear(self, x, before, after, bias=True):
        y = self.op("MatMul", x, self.weight(self.normal(before, after, scale=0.02)))
        return self.op("Add", y, self.weight(self.normal(after, scale=0.02))) if bias else y

    def layer_norm(self, x, width, epsilon=1e-5):
        return self.op("LayerNormalization", x, self.weight(1 + 0.05 * self.normal(width)), self.weight(0.02 * self.normal(width)), axis=-1, epsilon=epsilon)

    def rms_norm(self, x, width, epsilon=1e-5):
        mean = self.op("ReduceMean", self.op("Mul", x, x), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.literal(epsilon)))
        return self.op("Mul", self.op("Div", x, root), self.weight(1 + 0.05 * self.normal(width)))

    def gelu(self, x):
        """As exporters write it: x (1 + erf(x / sqrt 2)) / 2."""
        erf = self.op("Erf", self.op("Div", x, self.literal(math.sqrt(2))))
        return self.op("Mul", self.op("Mul", x, self.op("Add", erf, self.literal(1.0))), self.literal(0.5))

    def gelu_tanh(self, x):
        """GPT-2's: x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2."""
        cube = self.op("Mul", self.op("Pow", x, self.literal(3.0)), self.literal(0.044715))
        inner = self.op("Mul", self.op("Add", x, cube), self.literal(math.sqrt(2 / math.pi)))
        return self.op("Mul", self.op("Mul", x, self.literal(0.5)), self.op("Add", self.op("Tanh", inner), self.literal(1.0)))

    def to_heads(self, x, length, heads, width):
        return self.op("Transpose", self.op("Reshape", x, self.ints(1, length, heads, width)), perm=[0, 2, 1, 3])

    def attention(self, q, k, v, length, heads, width, mask=None):
        """[1, length, heads * width] of queries, keys and values of [1, heads, ..., width]."""
        scores = self.op("Div", self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2])), self.literal(math.sqrt(width)))
        if mask:
            scores = self.op("Add", scores, mask)
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        return self.op("Reshape", self.op("Transpose", mixed, perm=[0, 2, 1, 3]), self.ints(1, length, heads * width))

    # ---- the file
    def save(self, path):
        """Writes the model, its weights beside it where they are large; returns the number of floating-point operations."""
        declared = [helper.make_tensor_value_info(n, TYPES[s["dtype"]], s["shape"]) for n, s in self.inputs.items()]
        graph = helper.make_graph(self.nodes, self.name, declared, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], producer_name="locution-bench", ir_version=8)
        operations = count_operations(model)
        large = sum(len(w.raw_data) for w in self.weights) > EXTERNAL_BYTES
        if large and os.path.exists(f"{path}.data"):
            os.remove(f"{path}.data")
        onnx.save(model, path, save_as_external_data=large, all_tensors_to_one_file=True, location=os.path.basename(path) + ".data", size_threshold=1024)
        onnx.checker.check_model(str(path))
        return operations


def count_operations(model):
    """Multiply-adds times two, of convolutions and matrix products."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model) if model.ByteSize() < EXTERNAL_BYTES else bare.CopyFrom(without_weights(model))
    known = onnx.shape_inference.infer_shapes(bare)
    shapes = {t.name: list(t.dims) for t in model.graph.initializer}
    for v in [*known.graph.input, *known.graph.value_info, *known.graph.output]:
        shapes[v.name] = [d.dim_value for d in v.type.tensor_type.shape.dim]
    total = 0
    for n in model.graph.node:
        if n.op_type == "Conv":
            total += 2 * math.prod(shapes[n.output[0]]) * math.prod(shapes[n.input[1]][1:])
        elif n.op_type in ("MatMul", "Gemm"):
            total += 2 * math.prod(shapes[n.output[0]]) * shapes[n.input[0]][-1]
    return total


def without_weights(model):
    """The same with large weights emptied: shape inference looks at types, and at the contents of small integers only."""
    bare = onnx.ModelProto()
    bare.ir_version, bare.producer_name = model.ir_version, model.producer_name
    bare.opset_import.extend(model.opset_import)
    bare.graph.name = model.graph.name
    bare.graph.node.extend(model.graph.node)
    bare.graph.input.extend(model.graph.input)
    bare.graph.output.extend(model.graph.output)
    for t in model.graph.initializer:
        if len(t.raw_data) > 4096:
            bare.graph.input.append(helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)))
        else:
            bare.graph.initializer.append(t)
    return bare
