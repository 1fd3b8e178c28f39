#!/usr/bin/env python3
"""Writes the models whose kernels the records are about: scripts/corpus.py FOLDER   (after scripts/setup)

The families of the README's table (ResNet, MobileNet, EfficientNet, BERT, GPT-2, LLaMA) at several sizes and batches, none of them a size
that the README or its variants are measured at beyond the standard one. A layer that a network repeats stands in once or twice, for its
kernels are the same each time. All weights lie in one file, at different places of it: no schedule depends on what they are. Beside them
stand the trained models that are held out (models/tlm/held_out.txt), with input shapes written in."""
import math
import os
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench" / "lib"))
import builder  # noqa: E402

WEIGHTS, BYTES, PAGE = "weights.bin", 96 << 20, 4096


class Builder(builder.Builder):
    """With a batch, and with weights that are places in the file."""

    def __init__(self, name, batch=1):
        super().__init__(name)
        self.batch, self.place = batch, 0

    def normal(self, *shape, scale=1.0):
        return np.broadcast_to(np.float32(scale), shape)  # a shape is all that is needed

    def weight(self, array):
        size = array.size * 4
        if size <= PAGE // 4:  # small ones stand in the model
            values = np.random.default_rng(self.place + len(self.weights)).standard_normal(array.shape, dtype=np.float32)
            return super().weight(np.abs(values) + 0.5)
        if size > BYTES:
            sys.exit(f"{self.name}: a weight of {size} bytes")
        self.place = (self.place + 7 * PAGE) % max(PAGE, (BYTES - size) // PAGE * PAGE)
        tensor = TensorProto(name=f"weight_{len(self.weights)}", data_type=TensorProto.FLOAT, dims=array.shape, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", WEIGHTS), ("offset", self.place), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        self.weights.append(tensor)
        return tensor.name

    def to_heads(self, x, length, heads, width):
        return self.op("Transpose", self.op("Reshape", x, self.ints(self.batch, length, heads, width)), perm=[0, 2, 1, 3])

    def attention(self, q, k, v, length, heads, width, mask=None):
        scores = self.op("Div", self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2])), self.literal(math.sqrt(width)))
        scores = self.op("Add", scores, mask) if mask else scores
        mixed = self.op("Transpose", self.op("MatMul", self.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return self.op("Reshape", mixed, self.ints(self.batch, length, heads * width))

    def save(self, path):
        declared = [helper.make_tensor_value_info(n, builder.TYPES[s["dtype"]], s["shape"]) for n, s in self.inputs.items()]
        graph = helper.make_graph(self.nodes, self.name, declared, self.outputs, self.weights)
        opsets = [helper.make_opsetid("", self.opset)]
        path.write_bytes(helper.make_model(graph, opset_imports=opsets, producer_name="locution-corpus", ir_version=8).SerializeToString())


def resnet(b, image, blocks, deep):
    """He et al. 2015: bottlenecks (50 layers and more) or pairs of 3x3 (18 and 34)."""
    x = b.conv_norm(b.input("input", [b.batch, 3, image, image]), 3, 64, 7, stride=2, act=b.relu)
    x, channels = b.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 64
    for width, first in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for i in range(blocks):
            stride, after = first if i == 0 else 1, 4 * width if deep else width
            if deep:
                y = b.conv_norm(b.conv_norm(x, channels, width, 1, act=b.relu), width, width, 3, stride=stride, act=b.relu)
                y = b.conv_norm(y, width, after, 1)
            else:
                y = b.conv_norm(b.conv_norm(x, channels, width, 3, stride=stride, act=b.relu), width, width, 3)
            shortcut = x if stride == 1 and channels == after else b.conv_norm(x, channels, after, 1, stride=stride)
            x, channels = b.relu(b.op("Add", y, shortcut)), after
    b.output(b.classifier(x, channels), "output", [b.batch, 1000])


def mobile(b, image, factor, efficient):
    """Sandler et al. 2018, and with squeeze and excitation Tan and Le 2019."""
    def channels_of(c):
        return max(8, int(c * factor + 4) // 8 * 8)

    act = b.silu if efficient else b.relu6
    stages = ((1, 16, 1, 3), (6, 24, 2, 3), (6, 40, 2, 5), (6, 80, 2, 3), (6, 112, 1, 5), (6, 192, 2, 5), (6, 320, 1, 3)) if efficient else \
             ((1, 16, 1, 3), (6, 24, 2, 3), (6, 32, 2, 3), (6, 64, 2, 3), (6, 96, 1, 3), (6, 160, 2, 3), (6, 320, 1, 3))
    x, channels = b.conv_norm(b.input("input", [b.batch, 3, image, image]), 3, channels_of(32), 3, stride=2, act=act), channels_of(32)
    for expand, width, first, kernel in stages:
        for i in range(2):
            width, stride, hidden, y = channels_of(width) if i == 0 else width, first if i == 0 else 1, channels * expand, x
            if expand > 1:
                y = b.conv_norm(y, channels, hidden, 1, act=act)
            y = b.conv_norm(y, hidden, hidden, kernel, stride=stride, groups=hidden, act=act)
            if efficient:
                few = max(1, channels // 4)
                squeezed = b.silu(b.conv(b.op("GlobalAveragePool", y), hidden, few, 1, bias=True))
                y = b.op("Mul", y, b.op("Sigmoid", b.conv(squeezed, few, hidden, 1, bias=True)))
            y = b.conv_norm(y, hidden, width, 1)
            x, channels = b.op("Add", x, y) if stride == 1 and channels == width else y, width
    x = b.conv_norm(x, channels, channels_of(1280), 1, act=act)
    b.output(b.classifier(x, channels_of(1280)), "output", [b.batch, 1000])


def bert(b, tokens, width, heads):
    """Devlin et al. 2018."""
    ids, head = b.input("input_ids", [b.batch, tokens], "int64", "integer", 8192), width // heads
    x = b.op("Gather", b.weight(b.normal(8192, width)), ids, axis=0)
    x = b.layer_norm(b.op("Add", x, b.weight(b.normal(1, tokens, width))), width, 1e-12)
    mask = b.input("mask", [b.batch, 1, 1, tokens])
    q, k, v = (b.to_heads(b.linear(x, width, width), tokens, heads, head) for _ in range(3))
    x = b.layer_norm(b.op("Add", b.linear(b.attention(q, k, v, tokens, heads, head, mask), width, width), x), width, 1e-12)
    y = b.linear(b.gelu(b.linear(x, width, 4 * width)), 4 * width, width)
    b.output(b.layer_norm(b.op("Add", y, x), width, 1e-12), "output", [b.batch, tokens, width])


def gpt(b, tokens, width, heads, words=8192):
    """Radford et al. 2019."""
    ids, head = b.input("input_ids", [b.batch, tokens], "int64", "integer", words), width // heads
    x = b.op("Add", b.op("Gather", b.weight(b.normal(words, width)), ids, axis=0), b.weight(b.normal(1, tokens, width)))
    mask = b.input("mask", [1, 1, tokens, tokens])
    y = b.op("Split", b.linear(b.layer_norm(x, width), width, 3 * width), b.ints(width, width, width), count=3, axis=2)
    q, k, v = (b.to_heads(part, tokens, heads, head) for part in y)
    x = b.op("Add", x, b.linear(b.attention(q, k, v, tokens, heads, head, mask), width, width))
    x = b.op("Add", x, b.linear(b.gelu_tanh(b.linear(b.layer_norm(x, width), width, 4 * width)), 4 * width, width))
    b.output(b.op("MatMul", b.layer_norm(x, width), b.weight(b.normal(width, words))), "logits", [b.batch, tokens, words])


def llama(b, tokens, past, width, heads, hidden, words=8192):
    """Touvron et al. 2023; `past` tokens were read before."""
    head = width // heads
    x = b.input("embedded", [b.batch, tokens, width])
    cosine, sine = b.input("cosine", [1, 1, tokens, head]), b.input("sine", [1, 1, tokens, head])
    mask = b.input("mask", [1, 1, tokens, past + tokens]) if tokens > 1 else None

    def rotate(y):
        left, right = b.op("Split", y, b.ints(head // 2, head // 2), count=2, axis=3)
        return b.op("Add", b.op("Mul", y, cosine), b.op("Mul", b.op("Concat", b.op("Neg", right), left, axis=3), sine))

    y = b.rms_norm(x, width)
    q, k, v = (b.to_heads(b.linear(y, width, width, bias=False), tokens, heads, head) for _ in range(3))
    q, k = rotate(q), rotate(k)
    if past:
        k, v = (b.op("Concat", b.input(f"past_{n}", [b.batch, heads, past, head]), t, axis=2) for n, t in (("key", k), ("value", v)))
    x = b.op("Add", x, b.linear(b.attention(q, k, v, tokens, heads, head, mask), width, width, bias=False))
    y = b.rms_norm(x, width)
    gate, up = b.silu(b.linear(y, width, hidden, bias=False)), b.linear(y, width, hidden, bias=False)
    x = b.op("Add", x, b.linear(b.op("Mul", gate, up), hidden, width, bias=False))
    b.output(b.op("MatMul", b.rms_norm(x, width), b.weight(b.normal(width, words))), "logits", [b.batch, tokens, words])


MODELS = {
    **{f"resnet18_{i}_b{n}": (resnet, n, dict(image=i, blocks=2, deep=False)) for i, n in ((224, 1), (160, 1), (112, 1), (112, 4), (64, 8))},
    **{f"resnet50_{i}_b{n}": (resnet, n, dict(image=i, blocks=2, deep=True)) for i, n in ((224, 1), (160, 1), (128, 1), (96, 2), (112, 4), (64, 8))},
    **{f"mobilenet_{f}_{i}_b{n}": (mobile, n, dict(image=i, factor=f / 100, efficient=False))
       for f, i, n in ((100, 224, 1), (50, 224, 1), (140, 160, 1), (75, 128, 1), (100, 128, 4), (35, 96, 8))},
    **{f"efficientnet_{f}_{i}_b{n}": (mobile, n, dict(image=i, factor=f / 100, efficient=True))
       for f, i, n in ((100, 224, 1), (110, 240, 1), (60, 160, 1), (80, 128, 1), (100, 128, 4), (50, 96, 8))},
    **{f"bert_{w}_{t}_b{n}": (bert, n, dict(tokens=t, width=w, heads=w // 64))
       for w, t, n in ((768, 128, 1), (768, 32, 1), (768, 384, 1), (512, 64, 4), (256, 128, 8), (1024, 64, 1), (384, 20, 1), (768, 8, 1))},
    **{f"gpt_{w}_{t}_b{n}": (gpt, n, dict(tokens=t, width=w, heads=w // 64))
       for w, t, n in ((768, 128, 1), (768, 24, 1), (1024, 64, 1), (512, 256, 1), (384, 48, 4), (768, 1, 1), (1280, 16, 1))},
    **{f"llama_{w}_{t}_{p}_b{n}": (llama, n, dict(tokens=t, past=p, width=w, heads=w // 64, hidden=h))
       for w, h, t, p, n in ((2048, 5632, 128, 0, 1), (2048, 5632, 1, 128, 1), (1024, 2816, 64, 0, 1), (1024, 2816, 1, 512, 1), (512, 1408, 32, 0, 4),
                             (768, 2048, 1, 64, 8), (1536, 4096, 12, 48, 1))},
}


WHEELS = Path.home() / ".cache" / "locution" / "models"
# name -> file in a wheel that scripts/setup has unpacked, input, shape
HELD_OUT = {
    "ppocr_det": ("rapidocr/rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", "x", [1, 3, 640, 640]),
    "ppocr_rec": ("rapidocr/rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", "x", [1, 3, 48, 320]),
    "yolo_320n": ("nudenet/nudenet/320n.onnx", "images", [1, 3, 320, 320]),
    "captcha_det": ("ddddocr/ddddocr/common_det.onnx", "images", [1, 3, 416, 416]),
}


def with_shape(model, name, shape):
    """The input has that shape; what the file says of other shapes, which follow from it, is left out."""
    graph = model.graph
    initial = {t.name for t in graph.initializer}
    for value in graph.input:
        if value.name == name:
            for dim, extent in zip(value.type.tensor_type.shape.dim, shape):
                dim.Clear()
                dim.dim_value = extent
        elif value.name not in initial:
            sys.exit(f"an input '{value.name}' besides '{name}'")
    del graph.value_info[:]
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    return model


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    weights = folder / WEIGHTS
    if not weights.exists() or weights.stat().st_size != BYTES:
        part = weights.with_suffix(".part")
        part.write_bytes((np.abs(np.random.default_rng(1).standard_normal(BYTES // 4, dtype=np.float32)) + 0.1).astype(np.float32).tobytes())
        os.replace(part, weights)
    for name, (make, batch, sizes) in MODELS.items():
        b = Builder(name, batch)
        make(b, **sizes)
        b.save(folder / f"{name}.onnx")
    onnx.checker.check_model(str(folder / f"{next(iter(MODELS))}.onnx"))
    for name, (file, value, shape) in HELD_OUT.items():
        onnx.save(with_shape(onnx.load(WHEELS / file), value, shape), folder / f"{name}.onnx")
    print(f"{len(MODELS) + len(HELD_OUT)} models in {folder}")


if __name__ == "__main__":
    main()
