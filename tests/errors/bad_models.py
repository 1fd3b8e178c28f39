"""Small models that are wrong in one way each; `build(name, folder)` writes one and returns its path."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F, I = TensorProto.FLOAT, TensorProto.INT64
node, info = helper.make_node, helper.make_tensor_value_info


def weight(name, *shape, dtype=np.float32):
    return numpy_helper.from_array(np.zeros(shape, dtype), name)


def model(nodes, inputs, outputs=("y",), weights=(), opset=17, opsets=None, ir=8):
    graph = helper.make_graph(list(nodes), "bad", [info(n, t, s) for n, t, s in inputs], [info(o, F, None) for o in outputs], list(weights))
    imports = opsets or [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir)


X = ("x", F, [1, 3, 8, 8])
MODELS = {
    "good": lambda: model([node("Relu", ["x"], ["y"], name="act")], [X]),
    "unsupported": lambda: model([node("Relu", ["x"], ["a"], name="fine"), node("Frobnicate", ["a"], ["b"], name="frob"), node("Whirl", ["b"], ["y"], name="whirl", domain="com.example")],
                                 [X], opsets=[helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]),
    "opset_too_new": lambda: model([node("Relu", ["x"], ["y"])], [X], opset=99),
    "opset_too_old": lambda: model([node("Relu", ["x"], ["y"])], [X], opset=5),
    "conv_channels": lambda: model([node("Conv", ["x", "w"], ["y"], name="conv")], [X], weights=[weight("w", 4, 5, 3, 3)]),
    "matmul_k": lambda: model([node("MatMul", ["a", "b"], ["y"], name="mm")], [("a", F, [2, 3]), ("b", F, [4, 5])]),
    "broadcast": lambda: model([node("Add", ["a", "b"], ["y"], name="add")], [("a", F, [2, 3]), ("b", F, [4, 3])]),
    "reshape_size": lambda: model([node("Reshape", ["x", "s"], ["y"], name="view")], [X], weights=[numpy_helper.from_array(np.array([7, 5]), "s")]),
    "concat": lambda: model([node("Concat", ["a", "b"], ["y"], name="cat", axis=1)], [("a", F, [2, 3]), ("b", F, [4, 3])]),
    "gather_axis": lambda: model([node("Gather", ["x", "i"], ["y"], name="pick", axis=7)], [X, ("i", I, [1])]),
    "cycle": lambda: model([node("Add", ["x", "b"], ["a"], name="one"), node("Relu", ["a"], ["b"], name="two"), node("Relu", ["b"], ["y"], name="three")], [X]),
    "duplicate": lambda: model([node("Relu", ["x"], ["y"], name="one"), node("Relu", ["x"], ["y"], name="two")], [X]),
    "dangling": lambda: model([node("Add", ["x", "nowhere"], ["y"], name="add")], [X]),
    "missing_output": lambda: model([node("Relu", ["x"], ["a"], name="act")], [X]),
    "dtype": lambda: model([node("Add", ["a", "b"], ["y"], name="add")], [("a", F, [2]), ("b", I, [2])]),
    "weight_size": lambda: broken_weight(),
    "dynamic": lambda: model([node("Relu", ["x"], ["y"])], [("x", F, ["batch", 3])]),
    "two_inputs": lambda: model([node("Add", ["a", "b"], ["y"], name="add")], [("a", F, [2]), ("b", F, [2])]),
    "gather": lambda: model([node("Gather", ["x", "i"], ["y"], name="pick", axis=0)], [("x", F, [4, 2]), ("i", I, [2])]),
    "gather_elements": lambda: model([node("GatherElements", ["x", "i"], ["y"], name="pick", axis=1)], [("x", F, [4, 2]), ("i", I, [2, 2])]),
    "gather_nd": lambda: model([node("GatherND", ["x", "i"], ["y"], name="pick")], [("x", F, [4, 2]), ("i", I, [2, 2])]),
    "gather_nd_batch": lambda: model([node("GatherND", ["x", "i"], ["y"], name="pick", batch_dims=1)], [("x", F, [2, 4, 2]), ("i", I, [2, 2])]),
    "gather_nd_computed": lambda: model([node("Add", ["i", "i"], ["j"], name="twice"), node("GatherND", ["x", "j"], ["y"], name="pick")],
                                        [("x", F, [4, 2]), ("i", I, [2, 2])]),
    "scatter_elements": lambda: model([node("ScatterElements", ["x", "i", "u"], ["y"], name="put", axis=1)], [("x", F, [4, 2]), ("i", I, [2, 2]), ("u", F, [2, 2])]),
    "scatter_nd": lambda: model([node("ScatterND", ["x", "i", "u"], ["y"], name="put", reduction="add")], [("x", F, [4, 2]), ("i", I, [2, 2]), ("u", F, [2])]),
    "strings": lambda: model([node("StringNormalizer", ["x"], ["y"], name="norm")], [("x", TensorProto.STRING, [2])]),
    "bad_attribute": lambda: model([node("Conv", ["x", "w"], ["y"], name="conv", strides=[0, 1])], [X], weights=[weight("w", 4, 3, 3, 3)]),
    "attribute_type": lambda: model([node("Softmax", ["x"], ["y"], name="soft", axis="last")], [X]),
}


def broken_weight():
    m = MODELS["conv_channels"]()
    m.graph.initializer[0].raw_data = b"\0" * 12
    return m


def external(folder, location, offset=0, length=16, size=16):
    m = model([node("Add", ["x", "w"], ["y"], name="add")], [("x", F, [4])])
    t = m.graph.initializer.add()
    t.name, t.data_type, t.data_location = "w", F, TensorProto.EXTERNAL
    t.dims.append(4)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        e = t.external_data.add()
        e.key, e.value = key, str(value)
    if size is not None:
        (folder / "w.bin").write_bytes(b"\0" * size)
    return m


def build(name, folder):
    path = folder / f"{name}.onnx"
    path.write_bytes(MODELS[name]().SerializeToString())
    return path
