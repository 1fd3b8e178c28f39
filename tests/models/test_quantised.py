"""Quantised networks: products of dequantised tensors are summed in integers, and results are within one step of exact arithmetic."""
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

TYPES = {np.dtype("uint8"): TensorProto.UINT8, np.dtype("int8"): TensorProto.INT8}
SIZE = 9
# name, channels, outputs, group, kernel, pads, stride
LAYERS = [("pointwise", 17, 24, 1, 1, 0, 1), ("three", 16, 19, 1, 3, 1, 1), ("strided", 8, 16, 1, 3, 1, 2),
          ("depthwise", 24, 24, 24, 3, 1, 1), ("grouped", 16, 16, 2, 3, 1, 1), ("picture", 3, 16, 1, 3, 1, 2), ("wide", 136, 8, 1, 3, 1, 1)]


def random_bytes(rng, dtype, shape):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def save(path, nodes, inputs, outputs, constants):
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(v, k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def run(binary, path, folder, **inputs):
    arguments = []
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
        arguments += ["--input", f"{name}={folder / f'{name}.npy'}"]
    subprocess.run([binary, "run", path, *arguments, "--output-dir", folder / "out"], check=True, capture_output=True)
    return np.load(folder / "out" / "output_0.npy")


def fused(binary, path):
    return subprocess.run([binary, "show", path, "--stage", "fused"], check=True, capture_output=True, text=True).stdout


def convolve(x, w, group, pads, stride):
    """Exact, in float64, which holds every sum of these."""
    padded = np.pad(x, ((0, 0), (pads, pads), (pads, pads)))
    size = (padded.shape[1] - w.shape[2]) // stride + 1
    out, each, per = np.zeros((w.shape[0], size, size)), w.shape[1], w.shape[0] // group
    for o in range(w.shape[0]):
        first = o // per * each
        for r in range(w.shape[2]):
            for s in range(w.shape[3]):
                window = padded[first:first + each, r:r + stride * size:stride, s:s + stride * size:stride][:, :size, :size]
                out[o] += np.tensordot(w[o, :, r, s], window, axes=1)
    return out


def steps(actual, exact, scale, zero, dtype):
    """How many steps each element is away from the exactly rounded one."""
    info = np.iinfo(dtype)
    return np.abs(actual.astype(np.int64) - np.clip(np.rint(exact / scale) + zero, info.min, info.max).astype(np.int64))


@pytest.mark.parametrize("x_type,w_type", [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8")])
@pytest.mark.parametrize("layer", LAYERS, ids=[l[0] for l in LAYERS])
def test_convolution(binary, tmp_path, layer, x_type, w_type):
    name, channels, outputs, group, kernel, pads, stride = layer
    rng = np.random.default_rng(len(name) + len(x_type) + 3 * len(w_type))
    x = random_bytes(rng, x_type, (1, channels, SIZE, SIZE))
    w = random_bytes(rng, w_type, (outputs, channels // group, kernel, kernel))
    zx = 121 if x_type == "uint8" else -9
    # Of some channels the weights less their zero points are no bytes.
    zw = 128 + np.arange(outputs) % 23 - 11 if w_type == "uint8" else np.zeros(outputs, int)
    scale_w = rng.uniform(0.001, 0.004, outputs).astype(np.float32)
    bias = rng.standard_normal(outputs).astype(np.float32)
    real_x, real_w = (x.astype(np.float64) - zx) * np.float32(0.02), (w.astype(np.float64) - zw[:, None, None, None]) * scale_w[:, None, None, None]
    exact = convolve(real_x[0], real_w, group, pads, stride) + bias[:, None, None]
    scale_y = np.float32(np.abs(exact).max() / 100)
    constants = dict(w=w, sx=np.float32(0.02), zx=np.array(zx, x_type), sw=scale_w, zw=zw.astype(w_type), bias=bias,
                     sy=scale_y, zy=np.array(3, x_type))
    nodes = [helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["dx"]),
             helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["dw"], axis=0),
             helper.make_node("Conv", ["dx", "dw", "bias"], ["c"], kernel_shape=[kernel] * 2, pads=[pads] * 4, strides=[stride] * 2, group=group),
             helper.make_node("QuantizeLinear", ["c", "sy", "zy"], ["y"])]
    path = tmp_path / "conv.onnx"
    save(path, nodes, [helper.make_tensor_value_info("x", TYPES[x.dtype], x.shape)],
         [helper.make_tensor_value_info("y", TYPES[x.dtype], None)], constants)
    assert ("ConvInteger" in fused(binary, path)) == (name != "picture")
    off = steps(run(binary, path, tmp_path, x=x)[0], exact, scale_y, 3, x_type)
    assert off.max() <= 1 and (off > 0).mean() < 2e-3


@pytest.mark.parametrize("layer", LAYERS[:4], ids=[l[0] for l in LAYERS[:4]])
def test_quantised_convolution(binary, tmp_path, layer):
    """QLinearConv with constant weights: exactly what its formula says."""
    _, channels, outputs, group, kernel, pads, stride = layer
    rng = np.random.default_rng(channels)
    x, w = random_bytes(rng, "uint8", (1, channels, SIZE, SIZE)), random_bytes(rng, "int8", (outputs, channels // group, kernel, kernel))
    sx, sw = np.float32(0.02), rng.uniform(0.001, 0.004, outputs).astype(np.float32)
    bias, zx, zy = rng.integers(-9999, 9999, outputs).astype(np.int32), 99, 130
    sums = convolve(x[0].astype(np.float64) - zx, w.astype(np.float64), group, pads, stride) + bias[:, None, None]
    sy = np.float32(np.abs(sums).max() * 0.02 * 0.002 / 100)
    path = tmp_path / "q.onnx"
    names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "bias"]
    node = helper.make_node("QLinearConv", names, ["y"], kernel_shape=[kernel] * 2, pads=[pads] * 4, strides=[stride] * 2, group=group)
    save(path, [node], [helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape)], [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
         dict(sx=sx, zx=np.array(zx, "uint8"), w=w, sw=sw, zw=np.zeros(outputs, "int8"), sy=sy, zy=np.array(zy, "uint8"), bias=bias))
    assert "ConvInteger" in fused(binary, path)
    scaled = sums.astype(np.float32) * (sx * sw / sy)[:, None, None]
    np.testing.assert_array_equal(run(binary, path, tmp_path, x=x)[0], np.clip(np.rint(scaled) + zy, 0, 255).astype(np.uint8))


@pytest.mark.parametrize("op", ["MatMul", "Gemm"])
def test_matrices(binary, tmp_path, op):
    rng = np.random.default_rng(7)
    x, w = random_bytes(rng, "uint8", (13, 70)), random_bytes(rng, "int8", (30, 70))
    scale = rng.uniform(0.001, 0.004, 30).astype(np.float32)
    bias = rng.standard_normal(30).astype(np.float32)
    exact = ((x.astype(np.float64) - 100) * np.float32(0.02)) @ (w * scale[:, None].astype(np.float64)).T + bias
    constants = dict(w=w if op == "Gemm" else np.ascontiguousarray(w.T), sx=np.float32(0.02), zx=np.array(100, "uint8"), sw=scale,
                     zw=np.zeros(30, "int8"), bias=bias)
    nodes = [helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["dx"]),
             helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["dw"], axis=0 if op == "Gemm" else 1)]
    if op == "Gemm":
        nodes.append(helper.make_node("Gemm", ["dx", "dw", "bias"], ["y"], transB=1))
    else:
        nodes += [helper.make_node("MatMul", ["dx", "dw"], ["p"]), helper.make_node("Add", ["p", "bias"], ["y"])]
    path = tmp_path / "m.onnx"
    save(path, nodes, [helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape)],
         [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants)
    assert "MatMulInteger" in fused(binary, path)
    np.testing.assert_allclose(run(binary, path, tmp_path, x=x), exact, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("pads,zw", [(0, 128), (1, 128), (0, 90), (1, 255)])
def test_dynamic_zero_point(binary, tmp_path, pads, zw):
    """ConvInteger with a zero point that is only known at run time: exact."""
    rng = np.random.default_rng(3)
    x, w = random_bytes(rng, "uint8", (1, 12, SIZE, SIZE)), random_bytes(rng, "uint8", (20, 12, 3, 3))
    nodes = [helper.make_node("ConvInteger", ["x", "w", "zx", "zw"], ["y"], kernel_shape=[3, 3], pads=[pads] * 4)]
    path = tmp_path / "c.onnx"
    save(path, nodes, [helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape), helper.make_tensor_value_info("zx", TensorProto.UINT8, [])],
         [helper.make_tensor_value_info("y", TensorProto.INT32, None)], dict(w=w, zw=np.array(zw, "uint8")))
    exact = convolve(x[0].astype(np.float64) - 77, w.astype(np.float64) - zw, 1, pads, 1)
    np.testing.assert_array_equal(run(binary, path, tmp_path, x=x, zx=np.array(77, "uint8"))[0], exact.astype(np.int32))


def test_residuals_stay_bytes(binary, tmp_path):
    """What an epilogue adds is dequantised where it is read, and kernels hand bytes to each other."""
    rng = np.random.default_rng(4)
    x, w = random_bytes(rng, "uint8", (1, 16, SIZE, SIZE)), random_bytes(rng, "int8", (16, 16, 1, 1))
    constants = dict(w=w, sw=np.float32(0.003), zw=np.array(0, "int8"), s=np.float32(0.02), z=np.array(120, "uint8"), t=np.float32(0.05))
    nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["dx"]), helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["dw"]),
             helper.make_node("Conv", ["dx", "dw"], ["c"]), helper.make_node("QuantizeLinear", ["c", "t", "z"], ["qc"]),
             helper.make_node("DequantizeLinear", ["qc", "t", "z"], ["dc"]), helper.make_node("Add", ["dc", "dx"], ["a"]),
             helper.make_node("QuantizeLinear", ["a", "t", "z"], ["y"])]
    path = tmp_path / "r.onnx"
    save(path, nodes, [helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape)],
         [helper.make_tensor_value_info("y", TensorProto.UINT8, None)], constants)
    text = fused(binary, path)
    assert 'anchor = "ConvInteger"' in text and 'anchor = "DequantizeLinear"' not in text
    real = (x[0].astype(np.float64) - 120) * np.float32(0.02)
    conv = convolve(real, w * np.float64(np.float32(0.003)), 1, 0, 1)
    t = np.float64(np.float32(0.05))
    added = (np.clip(np.rint(conv / t) + 120, 0, 255) - 120) * t + real
    off = steps(run(binary, path, tmp_path, x=x)[0], added, t, 120, "uint8")
    assert off.max() <= 1 and (off > 0).mean() < 0.01
