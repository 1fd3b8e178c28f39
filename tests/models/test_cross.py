"""Models compiled for AArch64, run by the cross-built runner under QEMU, beside the same models on this machine."""
import platform
import shutil
import subprocess

import compare
import light
import networks
import numpy as np
import onnx
import pytest
from conftest import FULL, ROOT

TARGET = ["--target", "aarch64-linux-gnu"]
RUNNER = ROOT / "build" / "aarch64" / "locution-runner"
HERE = platform.machine()

needs_runner = pytest.mark.skipif(not RUNNER.exists() or not shutil.which("qemu-aarch64"),
                                  reason="cmake --preset aarch64 && cmake --build --preset aarch64 makes the runner")


def compiled(binary, model, inputs, folder, options):
    shapes = [f"--shape={name}={'x'.join(map(str, value.shape))}" for name, value in inputs.items()]
    subprocess.run([binary, "compile", model, "-o", folder / "net.loc", *shapes, *options], check=True, capture_output=True)
    return folder / "net.loc"


def outputs(command, model, inputs, folder):
    given = []
    for i, (name, value) in enumerate(inputs.items()):
        np.save(folder / f"input_{i}.npy", value)
        given += ["--input", f"{name}={folder}/input_{i}.npy"]
    done = subprocess.run([*command, model, *given, "--output-dir", folder / "out"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [np.load(folder / "out" / f"output_{i}.npy") for i in range(len(list((folder / "out").glob("output_*.npy"))))]


def both(binary, model, inputs, folder, *options):
    (folder / "here").mkdir()
    (folder / "there").mkdir()
    here = outputs([binary, "run"], compiled(binary, model, inputs, folder / "here", options), inputs, folder / "here")
    there = outputs(["qemu-aarch64", RUNNER], compiled(binary, model, inputs, folder / "there", [*options, *TARGET]), inputs, folder / "there")
    assert len(here) == len(there) > 0
    for h, t in zip(here, there):
        assert compare.equal(t, h), f"largest difference {np.abs(t - h).max() if t.shape == h.shape else (t.shape, h.shape)}"


@needs_runner
@pytest.mark.parametrize("cpu", ["generic", "cortex-a55"] if FULL else ["generic"])
def test_a_network(binary, tmp_path, cpu):
    networks.residual(tmp_path / "net.onnx")
    x = np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32)
    here = outputs([binary, "run"], compiled(binary, tmp_path / "net.onnx", {"x": x}, tmp_path, []), {"x": x}, tmp_path)
    there = outputs(["qemu-aarch64", "-cpu", "max", RUNNER],
                    compiled(binary, tmp_path / "net.onnx", {"x": x}, tmp_path, [*TARGET, "--cpu", cpu]), {"x": x}, tmp_path)
    assert compare.equal(there[0], here[0])


@needs_runner
@pytest.mark.skipif(not FULL, reason="a minute under an emulator")
def test_a_transformer(binary, tmp_path):
    networks.transformer(tmp_path / "net.onnx")
    both(binary, tmp_path / "net.onnx", {"ids": np.random.default_rng(0).integers(0, 100, (2, 17))}, tmp_path)


@needs_runner
@pytest.mark.skipif(not FULL, reason="a minute under an emulator")
@pytest.mark.parametrize("name", ["resnet50", "shufflenet"])
def test_topologies(binary, tmp_path, name):
    model = light.load(name, 0)
    onnx.save(model, tmp_path / "net.onnx")
    both(binary, tmp_path / "net.onnx", light.image(model, 0), tmp_path)


@pytest.mark.skipif(HERE != "x86_64", reason="it would run here")
def test_a_file_for_another_machine_is_refused(binary, tmp_path):
    networks.residual(tmp_path / "net.onnx")
    loc = compiled(binary, tmp_path / "net.onnx", {"x": np.zeros((1, 3, 32, 32))}, tmp_path, TARGET)
    done = subprocess.run([binary, "run", loc], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip().endswith(f"{loc} was compiled for aarch64, and this machine is x86_64")


@needs_runner
def test_a_cpu_that_lacks_a_feature_refuses(binary, tmp_path):
    networks.residual(tmp_path / "net.onnx")
    loc = compiled(binary, tmp_path / "net.onnx", {"x": np.zeros((1, 3, 32, 32))}, tmp_path, [*TARGET, "--cpu", "neoverse-v1"])
    done = subprocess.run(["qemu-aarch64", "-cpu", "cortex-a57", RUNNER, loc], capture_output=True, text=True)
    assert done.returncode == 1
    assert "was compiled for neoverse-v1 (needs bf16, " in done.stderr
