"""The nine topologies that the onnx wheel ships without their weights, with seeded ones: ConstantOfShape nodes stand where the weights
were, all of one value, under which most of a network's mistakes cancel out."""
import math
import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19", "zfnet512")


def _weight(rng, user, place, dims):
    if user.op_type == "BatchNormalization":
        low, high = {1: (0.5, 1.5), 2: (-0.2, 0.2), 3: (-0.2, 0.2), 4: (0.5, 1.5)}[place]
    elif user.op_type in ("Conv", "Gemm"):
        transposed = user.op_type == "Gemm" and not any(a.name == "transB" and a.i for a in user.attribute)
        high = math.sqrt(6 / (dims[0] if transposed else math.prod(dims[1:]))) if place == 1 else 0.1
        low = -high
    else:
        low, high = 0.5, 1.5  # scales and shifts
    return rng.uniform(low, high, dims).astype(np.float32)


def load(name, seed):
    """The model, and what Softmax reads as a second output: behind it, differences of the largest logits would be all there is."""
    model = onnx.load(FOLDER / f"light_{name}.onnx")
    graph, rng = model.graph, np.random.default_rng([zlib.crc32(name.encode()), seed])
    shapes = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    constants = [n for n in graph.node if n.op_type == "ConstantOfShape"]
    assert constants and all(n.input[0] in shapes for n in constants)
    users = {}
    for node in graph.node:
        for place, value in enumerate(node.input):
            users.setdefault(value, (node, place))
    # A weight may reach its user through an Unsqueeze, which keeps its elements.
    for node in constants:
        user, place = users[node.output[0]]
        weight = _weight(rng, user, place, [int(d) for d in shapes[node.input[0]]])
        graph.initializer.append(numpy_helper.from_array(weight, node.output[0]))
        graph.node.remove(node)
    gone = {n.input[0] for n in constants} - {v for n in graph.node for v in n.input}
    for field in (graph.initializer, graph.input):
        for entry in [e for e in field if e.name in gone]:
            field.remove(entry)
    model.ir_version = 8  # initializers need not be inputs
    graph.output.extend(onnx.ValueInfoProto(name=n.input[0]) for n in graph.node if n.op_type == "Softmax")
    return model


def image(model, seed):
    held = {t.name for t in model.graph.initializer}
    given, = (v for v in model.graph.input if v.name not in held)
    dims = [d.dim_value for d in given.type.tensor_type.shape.dim]
    return {given.name: np.random.default_rng(seed).standard_normal(dims).astype(np.float32)}
