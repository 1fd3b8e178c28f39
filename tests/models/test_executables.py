"""Compiled files: the same bytes at any number of compile threads, the same bits at any number of run threads, memory in its bounds."""
import json
import resource
import subprocess
from pathlib import Path

import engines
import networks
import numpy as np
import pytest
from conftest import FULL


def peak_bytes(command):
    """VmHWM of the command, children included."""
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=2); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)"
    done = subprocess.run([engines.sys.executable, "-c", code, *map(str, command)], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    path = tmp_path_factory.mktemp("network") / "residual.onnx"
    networks.residual(path, image=64, width=32)
    return path


def compile_to(binary, model, output, *options):
    subprocess.run([binary, "compile", model, "-o", output, "--shape", "x=1x3x64x64", *options], check=True, capture_output=True)
    return Path(output).read_bytes()


def test_compiling_twice_gives_the_same_bytes(binary, network, tmp_path):
    one = compile_to(binary, network, tmp_path / "a.loc", "--jobs", "1")
    assert one == compile_to(binary, network, tmp_path / "b.loc", "--jobs", "1")
    assert one == compile_to(binary, network, tmp_path / "c.loc", "--jobs", "2")


def test_a_machine_profile_decides_the_bytes(binary, network, tmp_path):
    profile = tmp_path / "machine.txt"
    subprocess.run([binary, "machine", "-o", profile], check=True, capture_output=True)
    one = compile_to(binary, network, tmp_path / "a.loc", "--machine", profile)
    assert one == compile_to(binary, network, tmp_path / "b.loc", "--machine", profile, "--jobs", "2")


def test_a_run_gives_the_same_bits_every_time(binary, network, tmp_path):
    compile_to(binary, network, tmp_path / "net.loc", "--threads", "2")
    inputs = {"x": np.random.default_rng(0).standard_normal((1, 3, 64, 64)).astype(np.float32)}
    first, *others = (engines.Locution(threads, binary).run(tmp_path / "net.loc", inputs) for threads in (1, 1, 2, 2, 3))
    for other in others:
        assert all(np.array_equal(a, b) for a, b in zip(first, other))


def test_memory(binary, network, tmp_path):
    weights = network.stat().st_size
    assert peak_bytes([binary, "compile", network, "-o", tmp_path / "net.loc", "--shape", "x=1x3x64x64"]) <= 1.5 * weights + 300e6
    report = tmp_path / "report.json"
    subprocess.run([binary, "bench", tmp_path / "net.loc", "--duration", "0.1", "--warmup", "0", "--json", report], check=True, capture_output=True)
    told = json.loads(report.read_text())
    held = told["weight_bytes"] + told["arena_bytes"] + 4 * (3 * 64 * 64 + 10) + 60e6
    assert told["peak_rss_bytes"] <= held
    assert peak_bytes([binary, "run", tmp_path / "net.loc"]) <= held


def test_the_runner_needs_neither_llvm_nor_protobuf(binary):
    runner = Path(binary).parent / "locution-runner"
    needed = subprocess.run(["ldd", runner], check=True, capture_output=True, text=True).stdout
    assert "LLVM" not in needed and "protobuf" not in needed


def test_verify_finds_all_kernels_equal(binary, network):
    done = subprocess.run([binary, "verify", network, "--shape", "x=2x3x64x64"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "equal to the reference interpreter" in done.stdout


def test_an_input_that_decides_shapes_takes_no_other_value(binary, tmp_path):
    import onnx
    from onnx import TensorProto, helper
    graph = helper.make_graph([helper.make_node("Reshape", ["x", "shape"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6]), helper.make_tensor_value_info("shape", TensorProto.INT64, [2])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "reshape.onnx")
    np.save(tmp_path / "one.npy", np.array([2, 3]))
    np.save(tmp_path / "other.npy", np.array([3, 2]))
    call = lambda *arguments: subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True)
    assert "'shape'" in call("compile", tmp_path / "reshape.onnx", "-o", tmp_path / "r.loc").stderr
    assert call("compile", tmp_path / "reshape.onnx", "-o", tmp_path / "r.loc", "--value", f"shape={tmp_path / 'one.npy'}").returncode == 0
    assert call("run", tmp_path / "r.loc").returncode == 0
    assert call("run", tmp_path / "r.loc", "--input", f"shape={tmp_path / 'one.npy'}").returncode == 0
    wrong = call("run", tmp_path / "r.loc", "--input", f"shape={tmp_path / 'other.npy'}")
    assert wrong.returncode == 1
    assert 'compiled in as [2, 3]; to run with [3, 2], compile again' in wrong.stderr


# Constants of a few bytes that fold to a gigabyte: in one piece, and in forty that each stay below the cap (64 MiB).
@pytest.mark.parametrize("count, megabytes", [(1, 1024), (40, 32)])
def test_folding_never_costs_more_memory_than_its_cap(binary, tmp_path, count, megabytes):
    model = tmp_path / "grows.onnx"
    networks.growing_constants(model, count, megabytes << 18)
    folded = peak_bytes([binary, "compile", model, "-o", tmp_path / "a.loc", "--jobs", "1"])
    plain = peak_bytes([binary, "compile", model, "-o", tmp_path / "b.loc", "--jobs", "1", "--disable-pass", "fold-constants"])
    print(f"{count} x {megabytes} MB: {folded / 2**20:.0f} MB, without folding {plain / 2**20:.0f} MB")
    assert plain < 400 << 20
    assert folded <= plain + (64 << 20) + (32 << 20)  # what the cap allows, and a margin


@pytest.mark.skipif(not FULL, reason="a minute of compiling")
def test_compiling_takes_time_in_proportion_to_the_nodes(binary, tmp_path):
    seconds = []
    for blocks in (250, 500, 1000, 2000):
        model, times = tmp_path / f"chain{blocks}.onnx", []
        networks.chain(model, blocks)
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([binary, "compile", model, "-o", tmp_path / "chain.loc", "--jobs", "1", "--cache", "off"], check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)  # what else runs must not matter
        seconds.append(min(times))
    print("seconds:", ", ".join(f"{s:.2f}" for s in seconds))
    # What is quadratic anywhere would show as 4; caches that overflow cost a tenth.
    for small, large in zip(seconds, seconds[1:]):
        assert large <= 2.3 * small, seconds
