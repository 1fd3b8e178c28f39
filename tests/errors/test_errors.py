"""Bad input: one message on standard error, exit code 1, nothing half-written, nothing lost."""
import os
import random
import subprocess
from pathlib import Path

import bad_models
import cases
import numpy as np
import pytest

BINARY = os.environ.get("LOCUTION") or str(Path(__file__).resolve().parent.parent.parent / "build" / "release" / "locution")


def call(folder, *arguments):
    return subprocess.run([BINARY, *arguments], cwd=folder, capture_output=True, text=True, errors="replace", timeout=60)


def refused(folder, arguments, message):
    before = sorted(p.name for p in folder.iterdir())
    done = call(folder, *arguments)
    assert (done.returncode, done.stderr) == (1, f"locution {arguments[0]}: {message}\n")
    assert done.stdout == ""
    assert sorted(p.name for p in folder.iterdir()) == before, "something was left behind"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    d = tmp_path_factory.mktemp("errors")
    for name in ("good", "dynamic", *(n for n in bad_models.MODELS if n.startswith(("gather", "scatter")) and n != "gather_axis")):
        bad_models.build(name, d)
    (d / "text.onnx").write_text("hello, not a model")
    (d / "empty.onnx").write_bytes(b"")
    (d / "folder.onnx").mkdir()
    (d / "junk.npy").write_bytes(b"junk")
    np.save(d / "good.npy", np.zeros((1, 3, 8, 8), np.float32))
    np.save(d / "wrong_shape.npy", np.zeros((1, 3, 8, 9), np.float32))
    np.save(d / "wrong_dtype.npy", np.zeros((1, 3, 8, 8)))
    np.save(d / "table.npy", np.zeros((4, 2), np.float32))
    np.save(d / "index.npy", np.array([1, 9]))
    np.save(d / "tuples.npy", np.array([[3, 1], [-4, -3]]))
    for name, dims in (("tables", [2, 4, 2]), ("square", [2, 2]), ("pair", [2])):
        np.save(d / f"{name}.npy", np.zeros(dims, np.float32))
    assert call(d, "compile", "good.onnx", "-o", "good.loc").returncode == 0
    good = (d / "good.loc").read_bytes()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    (d / "flipped.loc").write_bytes(flipped)
    (d / "short.loc").write_bytes(good[:100])
    (d / "renamed.loc").write_bytes((d / "good.onnx").read_bytes())
    return d


@pytest.mark.parametrize("name", cases.MODELS)
def test_model(tmp_path, name):
    bad_models.build(name, tmp_path)
    refused(tmp_path, ["run", f"{name}.onnx"], cases.MODELS[name])
    refused(tmp_path, ["compile", f"{name}.onnx", "-o", "out.loc"], cases.MODELS[name]) if name != "strings" else None


@pytest.mark.parametrize("location,offset,size", cases.EXTERNAL)
def test_external_data(tmp_path, location, offset, size):
    model = bad_models.external(tmp_path, location, offset=offset, size=size)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    refused(tmp_path, ["run", "model.onnx"], "model.onnx: initializer: tensor 'w': " + cases.EXTERNAL[location, offset, size].replace("{d}", str(tmp_path)))


def test_external_data_through_a_link(tmp_path):
    (tmp_path / "secret").write_bytes(b"\0" * 16)
    inner = tmp_path / "inner"
    inner.mkdir()
    model = bad_models.external(inner, "link.bin", size=None)
    (inner / "model.onnx").write_bytes(model.SerializeToString())
    (inner / "link.bin").symlink_to("../secret")
    done = call(inner, "run", "model.onnx")
    assert done.returncode == 1
    assert "the location leads out of the model's folder through a symbolic link" in done.stderr


@pytest.mark.parametrize("arguments,message", cases.CALLS, ids=[a for a, _ in cases.CALLS])
def test_call(folder, arguments, message):
    refused(folder, arguments.split(), message.replace("{size}", str((folder / "good.loc").stat().st_size)))


def test_another_cpu(folder):
    flags = next(line for line in open("/proc/cpuinfo") if line.startswith("flags")).split()
    if "avx512_fp16" in flags:
        pytest.skip("this CPU has what the test's CPU has")
    assert call(folder, "compile", "good.onnx", "-o", "other.loc", "--cpu", "sapphirerapids").returncode == 0
    done = call(folder, "run", "other.loc")
    assert done.returncode == 1
    assert done.stderr.startswith("locution run: other.loc was compiled for sapphirerapids (needs ")
    (folder / "other.loc").unlink()


def test_an_existing_file_survives_a_failed_compile(folder):
    before = (folder / "good.loc").read_bytes()
    assert call(folder, "compile", "text.onnx", "-o", "good.loc").returncode == 1
    assert (folder / "good.loc").read_bytes() == before


def test_blocks_say_so_in_their_protocol(folder):
    done = call(folder, "bench", "text.onnx", "--blocks")
    assert done.returncode == 1
    assert done.stdout == '@@{"ok":0,"err":"text.onnx: not an ONNX model: damaged or truncated protobuf"}\n'


@pytest.mark.parametrize("seed", range(40))
def test_damaged_bytes_never_crash(folder, tmp_path, seed):
    """Truncations and flips of a model and of a compiled one, and noise: a message or (for a model) a run, never more."""
    rng = random.Random(seed)
    for source, name in (("gather.onnx", "m.onnx"), ("good.loc", "m.loc")):
        data = bytearray((folder / source).read_bytes())
        kind = seed % 3
        if kind == 0:
            data = data[:rng.randrange(len(data))]
        elif kind == 1:
            for _ in range(rng.randrange(1, 5)):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        else:
            data = bytearray(rng.randbytes(rng.randrange(2000)))
        (tmp_path / name).write_bytes(data)
        done = call(tmp_path, "run", name)
        assert done.returncode in ((0, 1) if name == "m.onnx" else (1,)), done.stderr
