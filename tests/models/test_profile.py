"""bench --profile and --trace: every kernel is there, says what it computes, and the times account for the run."""
import json
import subprocess

import networks
import pytest


@pytest.fixture(scope="module")
def told(binary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("profile")
    networks.residual(folder / "net.onnx", image=64, width=32)
    shape = ("--shape", "x=1x3x64x64")
    subprocess.run([binary, "compile", folder / "net.onnx", "-o", folder / "net.loc", *shape], check=True, capture_output=True)
    reports = {}
    for name, options in {"net.onnx": shape, "net.loc": ()}.items():
        done = subprocess.run([binary, "bench", folder / name, *options, "--duration", "0.3", "--warmup", "20", "--profile", "--json", folder / "report.json",
                               "--trace", folder / "trace.json"], check=True, capture_output=True, text=True)
        reports[name] = json.loads((folder / "report.json").read_text()), done.stdout, json.loads((folder / "trace.json").read_text())
    return reports


def test_kernels_account_for_the_run(told):
    report, text, _ = told["net.onnx"]
    kernels = report["kernels"]
    assert sum(k["ms"] for k in kernels) == pytest.approx(report["kernels_ms"]) == pytest.approx(sum(o["ms"] for o in report["by_op"]))
    assert sum(k["share"] for k in kernels) == pytest.approx(1)
    assert sum(o["count"] for o in report["by_op"]) == len(kernels)
    assert [o["ms"] for o in report["by_op"]] == sorted((o["ms"] for o in report["by_op"]), reverse=True)
    assert 0.7 < report["kernels_ms"] / report["latency_ms"]["median"] < 1.3  # 0.95 to 1.05 on a quiet machine
    for k in kernels:
        limits = max(k["gflops"] / (report["peak_gflops"]), k["gbs"] / report["read_gbs"])
        assert k["roofline_fraction"] == pytest.approx(limits, rel=1e-6) and k["bound"] in ("", "memory", "arithmetic")
    rows = [line for line in text.splitlines() if any(line.startswith(k["name"] + " ") for k in kernels)]
    times = [float(next(c for c in line.split() if c.count(".") == 1 and c.replace(".", "").isdigit())) for line in rows]
    assert len(rows) == len(kernels) and times == sorted(times, reverse=True)


def test_what_is_fused_is_told_of_a_compiled_file_too(told):
    ops = [k["ops"] for k in told["net.onnx"][0]["kernels"]]
    assert any({"Conv", "Relu"} <= set(o) for o in ops) and all(ops)
    assert ops == [k["ops"] for k in told["net.loc"][0]["kernels"]]


def test_the_trace_is_one_viewers_take(told):
    report, _, trace = told["net.onnx"]
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert all(e["dur"] >= 0 and e["ts"] >= 0 and "pid" in e and "tid" in e for e in events)
    runs = [e for e in events if e["name"].startswith("run ")]
    assert len(runs) == 3
    for run in runs:
        inside = [e for e in events if e is not run and run["ts"] <= e["ts"] and e["ts"] + e["dur"] <= run["ts"] + run["dur"] + 1e-6]
        assert [e["name"] for e in inside] == [k["name"] for k in report["kernels"]]
        assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-6 for a, b in zip(inside, inside[1:]))
