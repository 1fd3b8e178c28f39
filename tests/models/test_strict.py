"""--strict: no algorithm that rounds more than the plain sum of products, and what that is worth."""
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

CHANNELS, SIZE = 64, 28


@pytest.fixture(scope="module")
def convolution(tmp_path_factory):
    """3x3, which Winograd is made for, with values whose products differ much in size."""
    rng = np.random.default_rng(5)
    weights = rng.standard_normal((CHANNELS, CHANNELS, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, CHANNELS, SIZE, SIZE])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(weights, "w")])
    path = tmp_path_factory.mktemp("strict") / "conv.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    x = rng.standard_normal((1, CHANNELS, SIZE, SIZE)).astype(np.float32)
    np.save(path.parent / "x.npy", x)
    padded, exact = np.pad(x[0].astype(np.float64), ((0, 0), (1, 1), (1, 1))), np.zeros((CHANNELS, SIZE, SIZE))
    for r in range(3):
        for s in range(3):
            exact += np.tensordot(weights[:, :, r, s].astype(np.float64), padded[:, r:r + SIZE, s:s + SIZE], axes=1)
    return path, exact


def plans(binary, path, *options):
    done = subprocess.run([binary, "show", path, "--stage", "loops", "--cpu", "x86-64-v3", *options], check=True, capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if line.startswith("plan: ")]


def error(binary, path, exact, folder, *options):
    subprocess.run([binary, "run", path, "--input", f"x={path.parent / 'x.npy'}", "--output-dir", folder, *options], check=True, capture_output=True)
    return np.abs(np.load(folder / "output_0.npy")[0] - exact).max() / np.abs(exact).max()


def test_strict_rules_winograd_out(binary, convolution):
    path, _ = convolution
    assert any("winograd" in p for p in plans(binary, path))  # else the next line says nothing
    assert not any("winograd" in p for p in plans(binary, path, "--strict"))


def test_strict_is_as_exact_as_a_sum_in_float32(binary, convolution, tmp_path):
    path, exact = convolution
    usual, strict = error(binary, path, exact, tmp_path / "a"), error(binary, path, exact, tmp_path / "b", "--strict")
    assert usual <= 1e-4
    assert strict <= 9 * CHANNELS * 2.0 ** -24 / 16 and strict <= usual


def test_strict_is_kept_in_the_file(binary, convolution, tmp_path):
    path, _ = convolution
    files = []
    for options in ([], ["--strict"]):
        files.append(tmp_path / f"{len(files)}.loc")
        subprocess.run([binary, "compile", path, "-o", files[-1], *options], check=True, capture_output=True)
    assert b"strict = false" in files[0].read_bytes() and b"strict = true" in files[1].read_bytes()


def test_strict_adds_long_sums_apart(binary, tmp_path):
    """A row times a matrix: 8192 terms of one sign, which one chain of additions rounds the most."""
    rng = np.random.default_rng(6)
    x, weights = rng.random((1, 8192), np.float32), rng.random((8192, 64), np.float32)
    np.save(tmp_path / "x.npy", x)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(weights, "w")])
    path = tmp_path / "row.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    exact = (x.astype(np.float64) @ weights.astype(np.float64))[0]
    usual, strict = error(binary, path, exact, tmp_path / "a"), error(binary, path, exact, tmp_path / "b", "--strict")
    assert strict < usual / 2
