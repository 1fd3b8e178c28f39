"""Small networks with seeded weights, built with onnx.helper: one residual convolutional, one transformer. Their structure is what
the big ones consist of; they are built when a test needs them."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Builder:
    def __init__(self, seed):
        self.rng, self.nodes, self.weights = np.random.default_rng(seed), [], []

    def weight(self, *shape, scale=None):
        array = self.rng.standard_normal(shape) * (scale or (2 / max(1, int(np.prod(shape[1:])))) ** 0.5)
        return self.constant(array.astype(np.float32))

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def op(self, kind, *inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=f"{kind}_{len(self.nodes)}", **attributes))
        return name

    def save(self, path, inputs, output):
        graph = helper.make_graph(self.nodes, "network", [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
                                  [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, path)


def residual(path, image=32, width=16, blocks=3):
    b = Builder(1)

    def conv(x, ci, co, k, stride=1, group=1):
        x = b.op("Conv", x, b.weight(co, ci // group, k, k), strides=[stride] * 2, pads=[k // 2] * 4, group=group)
        one = np.ones(co, np.float32)
        return b.op("BatchNormalization", x, b.constant(one * 1.1), b.constant(one * 0.1), b.constant(one * 0.05), b.constant(one * 0.9))

    x = b.op("Relu", conv("x", 3, width, 3, 2))
    x = b.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for _ in range(blocks):
        y = b.op("Relu", conv(x, width, 4 * width, 1))
        y = conv(y, 4 * width, 4 * width, 3, group=4 * width)
        y = b.op("Mul", y, b.op("Sigmoid", y))
        x = b.op("Add", x, conv(y, 4 * width, width, 1))
    x = b.op("Flatten", b.op("GlobalAveragePool", x))
    x = b.op("Gemm", x, b.weight(10, width), b.weight(10, scale=0.1), transB=1)
    b.save(path, [("x", TensorProto.FLOAT, ["n", 3, image, image])], x)


def transformer(path, tokens=17, model=48, heads=4, layers=2):
    b, size = Builder(2), model // 4
    x = b.op("Gather", b.weight(100, model, scale=0.5), "ids")
    for _ in range(layers):
        h = b.op("LayerNormalization", x, b.constant(np.ones(model, np.float32)), b.constant(np.zeros(model, np.float32)), axis=-1)
        q, k, v = (b.op("Transpose", b.op("Reshape", b.op("MatMul", h, b.weight(model, model, scale=0.2)), b.constant(np.array([0, 0, heads, size]))),
                        perm=[0, 2, 1, 3]) for _ in range(3))
        scores = b.op("Div", b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2])), b.constant(np.float32(size ** 0.5)))
        y = b.op("Transpose", b.op("MatMul", b.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        y = b.op("MatMul", b.op("Reshape", y, b.constant(np.array([0, 0, model]))), b.weight(model, model, scale=0.2))
        x = b.op("Add", x, y)
        y = b.op("MatMul", x, b.weight(model, 4 * model, scale=0.2))
        y = b.op("Mul", y, b.op("Mul", b.op("Add", b.op("Erf", b.op("Div", y, b.constant(np.float32(2 ** 0.5)))), b.constant(np.float32(1))), b.constant(np.float32(0.5))))
        x = b.op("Add", x, b.op("MatMul", y, b.weight(4 * model, model, scale=0.1)))
    b.save(path, [("ids", TensorProto.INT64, ["n", "tokens"])], x)


def mixer(path, width=64, wide=512):
    """Rows of vectors: an attention-like mix over the rows, then a wide multilayer perceptron. Both leading dims are open."""
    b = Builder(3)
    scores = b.op("MatMul", b.op("MatMul", "x", b.weight(width, width, scale=0.1)), b.op("Transpose", "x", perm=[0, 2, 1]))
    x = b.op("Add", "x", b.op("MatMul", b.op("Softmax", scores, axis=-1), "x"))
    y = b.op("Relu", b.op("Add", b.op("MatMul", x, b.weight(width, wide, scale=0.1)), b.weight(wide, scale=0.1)))
    b.save(path, [("x", TensorProto.FLOAT, ["rows", "columns", width])], b.op("Add", x, b.op("MatMul", y, b.weight(wide, width, scale=0.05))))


def growing_constants(path, count, elements):
    """Sums of the input and of constants that Expand makes out of a few elements."""
    b = Builder(4)
    for i in range(count):
        row = b.constant(np.arange(256, dtype=np.float32) + i)
        grown = b.op("Mul", b.op("Expand", row, b.constant(np.array([elements // 256, 256]))), b.constant(np.float32(0.5)))
        top = b.op("ReduceMax", b.op("Add", grown, "x"), keepdims=0)
        total = top if i == 0 else b.op("Add", total, top)
    b.save(path, [("x", TensorProto.FLOAT, [256])], total)


def chain(path, blocks, width=16):
    """One block after the other, each with weights of its own: what compiling costs beyond making kernels."""
    b, x = Builder(5), "x"
    for _ in range(blocks):
        y = b.op("Add", b.op("MatMul", x, b.weight(width, width)), b.weight(width))
        y = b.op("Transpose", b.op("Reshape", y, b.constant(np.array([4, 2, width // 2]))), perm=[0, 2, 1])
        y = b.op("Softmax", b.op("Reshape", y, b.constant(np.array([4, width]))), axis=-1)
        x = b.op("Add", x, b.op("Mul", y, b.op("Sigmoid", y)))
    b.save(path, [("x", TensorProto.FLOAT, [4, width])], x)
