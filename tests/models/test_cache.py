"""--cache: whole processes side by side, weights in files of their own, and how soon a model is ready."""
import json
import subprocess
import time

import networks
import numpy as np
import onnx
import pytest


def bench(binary, model, cache, *options):
    report = cache.parent / f"report-{time.monotonic_ns()}.json"
    subprocess.run([binary, "bench", model, "--cache", cache, "--duration", "0.01", "--warmup", "0", "--json", report, *options], check=True, capture_output=True)
    return json.loads(report.read_text())


@pytest.fixture
def model(tmp_path):
    networks.residual(tmp_path / "residual.onnx", image=32, width=16)
    time.sleep(0.05)  # a file of this moment might still be being written: it isn't cached
    return tmp_path / "residual.onnx"


SHAPE = ("--shape", "x=1x3x32x32")


def outputs(binary, model, cache, folder):
    subprocess.run([binary, "run", model, *SHAPE, "--seed", "3", "--cache", cache, "--output-dir", folder], check=True, capture_output=True)
    return [np.load(f) for f in sorted(folder.glob("output_*.npy"))]


def test_miss_then_hit_with_the_same_outputs(binary, model, tmp_path):
    wanted = outputs(binary, model, "off", tmp_path / "off")
    for state in ("miss", "hit"):
        assert bench(binary, model, tmp_path / "cache", *SHAPE)["cache"] == state
        got = outputs(binary, model, tmp_path / "cache", tmp_path / state)
        assert all(np.array_equal(a, b) for a, b in zip(got, wanted, strict=True))
    assert bench(binary, model, tmp_path / "cache", *SHAPE, "--threads", "2")["cache"] == "miss"
    off = subprocess.run([binary, "bench", model, *SHAPE, "--duration", "0.01", "--json", tmp_path / "off.json"], capture_output=True)
    assert off.returncode == 0 and json.loads((tmp_path / "off.json").read_text())["cache"] == "off"


def test_compile_writes_the_same_file_from_the_cache(binary, model, tmp_path):
    files = []
    for i in range(3):
        files.append(tmp_path / f"{i}.loc")
        cache = "off" if i == 0 else tmp_path / "cache"
        subprocess.run([binary, "compile", model, *SHAPE, "-o", files[-1], "--cache", cache], check=True, capture_output=True)
    assert len({f.read_bytes() for f in files}) == 1


def test_a_changed_weight_file_misses(binary, model, tmp_path):
    proto = onnx.load(model)
    apart = tmp_path / "apart.onnx"
    onnx.save(proto, apart, save_as_external_data=True, location="weights.bin", size_threshold=64)
    time.sleep(0.05)
    first = outputs(binary, apart, tmp_path / "cache", tmp_path / "first")
    assert bench(binary, apart, tmp_path / "cache", *SHAPE)["cache"] == "hit"
    weights = tmp_path / "weights.bin"
    original = weights.read_bytes()
    weights.write_bytes(original[:64] + (np.frombuffer(original[64:], np.float32) * 1.5).tobytes())
    time.sleep(0.05)
    changed = outputs(binary, apart, tmp_path / "cache", tmp_path / "changed")
    assert not np.array_equal(first[0], changed[0])
    assert np.array_equal(changed[0], outputs(binary, apart, "off", tmp_path / "plain")[0])
    weights.write_bytes(original)
    time.sleep(0.05)
    assert bench(binary, apart, tmp_path / "cache", *SHAPE)["cache"] == "hit"
    weights.unlink()
    done = subprocess.run([binary, "run", apart, *SHAPE, "--cache", tmp_path / "cache"], capture_output=True, text=True)
    assert done.returncode == 1 and "weights.bin" in done.stderr


def test_values_that_are_compiled_in_are_part_of_the_key(binary, tmp_path):
    from onnx import TensorProto, helper
    graph = helper.make_graph([helper.make_node("Reshape", ["x", "shape"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6]), helper.make_tensor_value_info("shape", TensorProto.INT64, [2])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "reshape.onnx")
    time.sleep(0.05)
    for i, shape in enumerate(([2, 3], [3, 2])):
        np.save(tmp_path / f"shape{i}.npy", np.array(shape))
    for state in ("miss", "hit"):
        for i, shape in enumerate(([2, 3], [3, 2])):
            given = ("--input", f"shape={tmp_path}/shape{i}.npy", "--output-dir", tmp_path / "out")
            assert bench(binary, tmp_path / "reshape.onnx", tmp_path / "cache", *given)["cache"] == state
            assert list(np.load(tmp_path / "out" / "output_0.npy").shape) == shape
    # Other inputs' values are not: they only have to be of the right shape.
    for i in range(2):
        np.save(tmp_path / "x.npy", np.full(6, i, np.float32))
        given = ("--input", f"shape={tmp_path}/shape0.npy", "--input", f"x={tmp_path}/x.npy")
        assert bench(binary, tmp_path / "reshape.onnx", tmp_path / "cache", *given)["cache"] == ("miss" if i == 0 else "hit")


def test_many_processes_share_a_folder(binary, tmp_path):
    """Eight at a time on three models, in a cache with room for two of them, while entries are damaged under their hands."""
    models = []
    for seed, width in enumerate((8, 12, 16)):
        models.append(tmp_path / f"{seed}.onnx")
        networks.residual(models[-1], image=32, width=width)
    time.sleep(0.05)
    wanted = [outputs(binary, m, "off", tmp_path / f"wanted{i}")[0] for i, m in enumerate(models)]
    cache = tmp_path / "cache"
    outputs(binary, models[2], cache, tmp_path / "size")
    limit = max(1, 2 * sum(f.stat().st_size for f in cache.iterdir()) >> 20)
    random = np.random.default_rng(0)
    for wave in range(3):
        running = []
        for n in range(8):
            which, folder = int(random.integers(3)), tmp_path / f"out{wave}.{n}"
            command = [binary, "run", models[which], *SHAPE, "--seed", "3", "--cache", cache, "--cache-limit", str(limit), "--jobs", "1", "--output-dir", folder]
            running.append((which, folder, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)))
        for entry in list(cache.glob("*.loc")):
            try:
                bytes_ = bytearray(entry.read_bytes())
                bytes_[len(bytes_) // 2] ^= 1
                (cache / "damaged").write_bytes(bytes_)
                (cache / "damaged").replace(entry)
            except FileNotFoundError:
                pass
        for which, folder, process in running:
            message = process.communicate(timeout=300)[1]
            assert process.returncode == 0, message
            assert "cannot" not in message
            assert np.array_equal(np.load(folder / "output_0.npy"), wanted[which])
    networks.residual(tmp_path / "last.onnx", image=32, width=4)
    time.sleep(0.05)
    assert bench(binary, tmp_path / "last.onnx", cache, *SHAPE, "--cache-limit", str(limit))["cache"] == "miss"  # makes room once more
    assert not list(cache.glob("*.tmp*"))
    assert sum(f.stat().st_size for f in cache.iterdir()) <= limit << 20


def test_what_is_compiled_on_first_use_is_not_cached(binary, tmp_path):
    """The rest of the graph hangs on a shape that only a run tells: there is no file that could hold it."""
    from onnx import TensorProto, helper
    nodes = [helper.make_node("NonZero", ["x"], ["at"]), helper.make_node("Cast", ["at"], ["f"], to=TensorProto.FLOAT), helper.make_node("Exp", ["f"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "open.onnx")
    time.sleep(0.05)
    for _ in range(2):
        assert bench(binary, tmp_path / "open.onnx", tmp_path / "cache")["cache"] == "miss"


@pytest.mark.parametrize("value", ["", "/dev/null"])
def test_what_is_no_folder_is_refused(binary, model, value):
    done = subprocess.run([binary, "run", model, *SHAPE, "--cache", value], capture_output=True, text=True)
    assert done.returncode == 1 and "--cache" in done.stderr
