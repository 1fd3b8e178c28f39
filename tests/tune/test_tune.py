"""`locution tune` and the schedulers that measure or look records up, on a small network."""
import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

BINARY = os.environ.get("LOCUTION") or str(Path(__file__).resolve().parent.parent.parent / "build" / "release" / "locution")


def call(folder, *arguments, code=0):
    done = subprocess.run([BINARY, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array((rng.standard_normal(s) / 8).astype(np.float32), n)
               for n, s in (("w", (16, 8, 3, 3)), ("v", (16 * 20 * 20, 12)))]
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Flatten", ["b"], ["c"]), helper.make_node("MatMul", ["c", "v"], ["d"]),
             helper.make_node("Softmax", ["d"], ["y"])]
    graph = helper.make_graph(nodes, "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 20, 20])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 12])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "small.onnx")
    return tmp_path


def count(folder, where="1"):
    with sqlite3.connect(folder / "r.db") as db:
        return db.execute(f"SELECT count(DISTINCT workload || sentence) FROM records WHERE {where}").fetchone()[0]


def test_tune_then_compile_with_the_records(folder):
    tune = ("tune", "small.onnx", "--trials", "40", "--records", "r.db", "--seed", "3")
    out = call(folder, *tune)
    assert re.search(r"small.onnx: kernels [\d.]+ ms -> [\d.]+ ms, [\d.]+ times faster; 40 plans, [\d.]+ measured a second", out)
    assert re.search(r"^kernel +op +times", out)
    assert count(folder, "proposer = 'evolutionary' AND seed = 3") >= 35  # illegal ones are not kept
    known = count(folder)
    # Done before: nothing new is measured.
    assert "(40 from the records)" in call(folder, *tune) or count(folder) <= known + 5
    again = call(folder, "compile", "small.onnx", "-o", "a.loc", "--scheduler", "records", "--records", "r.db")
    assert "a.loc: " in again
    call(folder, "compile", "small.onnx", "-o", "b.loc", "--scheduler", "records", "--records", "r.db")
    assert (folder / "a.loc").read_bytes() == (folder / "b.loc").read_bytes()
    assert "equal to the reference" in call(folder, "verify", "small.onnx", "--scheduler", "records", "--records", "r.db")


def test_records_on_a_server(folder, server):
    assert "12 plans" in call(folder, "tune", "small.onnx", "--trials", "12", "--records", server)
    assert "(12 from the records)" in call(folder, "tune", "small.onnx", "--trials", "12", "--records", server)
    call(folder, "compile", "small.onnx", "-o", "a.loc", "--scheduler", "records", "--records", server)
    assert "equal to the reference" in call(folder, "verify", "small.onnx", "--scheduler", "records", "--records", server)


@pytest.mark.parametrize("search", ["random", "evolutionary"])
def test_measuring_while_compiling(folder, search):
    call(folder, "compile", "small.onnx", "-o", "a.loc", "--scheduler", f"{search}:24", "--records", "r.db")
    assert count(folder, f"proposer = '{search}'") >= 20
    assert "equal to the reference" in call(folder, "verify", "small.onnx", "--scheduler", f"{search}:8")


def test_an_interrupted_run_goes_on(folder):
    tune = (BINARY, "tune", "small.onnx", "--trials", "100000", "--records", "r.db")
    process = subprocess.Popen(tune, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    deadline = time.time() + 120
    while time.time() < deadline:
        time.sleep(0.5)
        if (folder / "r.db").exists() and count_or_none(folder) > 20:
            break
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "interrupted: the same command goes on" in out
    stored = count(folder, "proposer = 'evolutionary'")
    assert stored > 20
    out = call(folder, "tune", "small.onnx", "--trials", "10", "--records", "r.db")
    assert f"({stored} from the records)" in out
    assert count(folder, "proposer = 'evolutionary'") == stored


def count_or_none(folder):
    try:
        return count(folder, "proposer = 'evolutionary'")
    except sqlite3.OperationalError:
        return 0


def test_records_that_know_nothing_are_a_warning(folder):
    call(folder, "compile", "small.onnx", "-o", "a.loc", "--threads", "2", "--scheduler", "random:8", "--records", "r.db")
    done = subprocess.run([BINARY, "compile", "small.onnx", "-o", "b.loc", "--scheduler", "records", "--records", "r.db"],
                          cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert "knows none of the model's kernels on this target; the analytic plans were taken" in done.stderr
    call(folder, "compile", "small.onnx", "-o", "c.loc")
    assert (folder / "b.loc").read_bytes() == (folder / "c.loc").read_bytes()


def test_evaluate_holds_schedulers_against_the_records(folder):
    call(folder, "tune", "small.onnx", "--trials", "40", "--records", "r.db")
    out = call(folder, "evaluate", "small.onnx", "--records", "r.db", "--contender", "analytic", "--contender", "baseline", "--contender", "records:r.db",
               "--rounds", "3", "--least-trials", "5", "--json", "e.json")
    found = json.loads((folder / "e.json").read_text())
    rows = [r for r in found["workloads"] if "problem" not in r]
    assert rows and all(r["ratios"]["analytic"] == 1 for r in rows)
    assert all(0 < r["best"] <= 1 and r["trials"] >= 0 and r["seconds"] > 0 for r in rows)
    summary = found["summary"]
    assert summary["workloads"] == sum(r["trials"] >= 5 for r in rows) > 0
    assert summary["contenders"]["analytic"]["of_best"] == pytest.approx(summary["analytic"])
    assert summary["contenders"]["baseline"]["over_analytic"] < 1
    assert re.search(r"^records:r.db: [\d.]+ of the best known \(worst [\d.]+\)", out, re.M)


def test_a_sample_of_a_corpus_is_tuned_and_evaluated(folder):
    (folder / "held.txt").write_text("op Softmax\n")
    corpus = ("small.onnx", "--drawn", "12", "--most-points", "1e6", "--held-out", "held.txt", "--sample", "2")
    assert call(folder, "tune", *corpus, "--trials-each", "10", "--records", "r.db").count("%") == 0
    call(folder, "evaluate", *corpus, "--records", "r.db", "--contender", "analytic", "--rounds", "1", "--least-trials", "1", "--json", "e.json")
    found = json.loads((folder / "e.json").read_text())
    held = [r for r in found["workloads"] if r["held_out"] == ["op"]]
    assert 1 <= len(held) <= 2 and len(found["workloads"]) - len(held) == 2
    assert found["held_out"]["op"]["workloads"] <= len(held)
    with sqlite3.connect(folder / "r.db") as db:
        each = dict(db.execute("SELECT workload, count(DISTINCT sentence) FROM records WHERE proposer = 'evolutionary' GROUP BY workload"))
    assert each and max(each.values()) <= 10
