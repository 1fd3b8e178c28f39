"""bench/: the commands on a model that takes no time, and the parts that decide what counts as equal and what a row says."""
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "lib"))
import equality  # noqa: E402
import plot  # noqa: E402
import reference  # noqa: E402
import report  # noqa: E402


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a command of bench/ with this interpreter's engines, in a folder of its own."""
    folder = tmp_path_factory.mktemp("bench")
    env = dict(os.environ, LOCUTION_BENCH_PYTHON="this", LOCUTION_BENCH_CACHE=str(folder / "cache"),
               LOCUTION=os.environ.get("LOCUTION") or str(ROOT / "build" / "release" / "locution"))

    def call(command, *options):
        done = subprocess.run([sys.executable, ROOT / "bench" / command, *options], capture_output=True, text=True, env=env, timeout=600)
        return done.returncode, done.stdout, done.stderr
    call.folder = folder
    return call


def test_compare_measures_checks_and_records(run):
    results = run.folder / "results"
    code, out, err = run("compare", "--models", "tiny", "--engines", "locution,onnxruntime", "--rounds", "3", "--block", "0.02", "--record", "always", "--results", results)
    assert code == 0, out + err
    assert "geometric mean at 2 threads" in out and "| tiny |" in out
    (row,) = results.glob("*.json")
    figures = json.loads(row.read_text())
    assert {(r["model"], r["threads"]) for r in figures["rows"]} == {("tiny", 1), ("tiny", 2)}
    for r in figures["rows"]:
        assert r["ratio"][1] <= r["ratio"][0] <= r["ratio"][2] and r["best_peer"] == "onnxruntime"
        assert r["engines"]["locution"]["ms"] > 0 and r["engines"]["locution"]["compile_s"] > 0
    assert xml.parse(row.with_suffix(".svg")).getroot().tag.endswith("svg")
    assert figures["machine"]["name"] in (results / "README.md").read_text()
    # A run again, from its file.
    (whole,) = (run.folder / "cache" / "runs").glob("*.json")
    code, again, err = run("compare", "--report", whole, "--results", results)
    assert code == 0 and "| tiny |" in again, err


def test_an_engine_that_fails_is_named(run):
    code, out, _ = run("compare", "--models", "tiny", "--engines", "locution,onnxruntime", "--threads", "1", "--rounds", "1", "--block", "0.01", "--scheduler", "nobody")
    assert code == 1 and "Locution is left out: " in out and "unknown scheduler 'nobody'" in out
    assert "no row written" in out
    code, _, err = run("compare", "--models", "huge")
    assert code == 1 and "there is no model 'huge'" in err


@pytest.mark.parametrize("options", [[], ["--strict"]])
def test_accuracy(run, options):
    code, out, err = run("accuracy", "--models", "tiny", "--json", run.folder / "accuracy.json", *options)
    assert code == 0, out + err
    (row,) = json.loads((run.folder / "accuracy.json").read_text())["models"]
    assert 0 < row["error"] <= row["bar"] and row["onnxruntime"] < 1e-5


def test_what_counts_as_equal():
    x = np.array([1, 1000, np.nan, np.inf], np.float32)
    equal = lambda y: equality.difference([x], [np.array(y, np.float32)]) is None
    assert equal(x) and equal([1.001, 1000.9, np.nan, np.inf])
    assert not equal([1, 1012, np.nan, np.inf]) and not equal([1, 1000, 0, np.inf]) and not equal([1, 1000, np.nan, -np.inf])
    assert equality.difference([x], []) and equality.difference([x], [x.astype(np.float64)]) and equality.difference([x], [x.reshape(2, 2)])
    assert equality.difference([np.array([1, 2])], [np.array([1, 3])]) and not equality.difference([np.array([1, 2])], [np.array([1, 2])])
    assert equality.error([np.array([0.0, 4.0])], [np.array([0.0, 4.4])]) == pytest.approx(0.1)
    assert equality.error([np.zeros(2)], [np.zeros(3)]) == float("inf")


@pytest.mark.parametrize("op", ["Conv", "MaxPool", "AveragePool"])
def test_float64_windows_are_what_onnxruntime_computes(op, tmp_path):
    import onnxruntime
    from onnx import TensorProto, helper, save
    rng = np.random.default_rng(0)
    for attributes in (dict(pads=[1, 0, 2, 1]), dict(strides=[2, 3]), dict(auto_pad="SAME_UPPER", strides=[2, 2]), dict(ceil_mode=1, strides=[2, 2], pads=[1, 1, 0, 0])):
        if op == "Conv":
            attributes.pop("ceil_mode", None)
            attributes.update(group=2, dilations=[1, 2] if "auto_pad" not in attributes else [1, 1])
        inputs = {"x": rng.standard_normal((2, 4, 9, 11)).astype(np.float32)}
        if op == "Conv":
            inputs["w"] = rng.standard_normal((6, 2, 3, 2)).astype(np.float32)
        node = helper.make_node(op, list(inputs), ["y"], kernel_shape=[3, 2], **attributes)
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in inputs.items()], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        save(model, tmp_path / "one.onnx")
        (want,) = onnxruntime.InferenceSession(str(tmp_path / "one.onnx"), providers=["CPUExecutionProvider"]).run(None, inputs)
        (have,) = reference.run(str(tmp_path / "one.onnx"), inputs)
        assert have.dtype == np.float64 and want.shape == have.shape, attributes
        assert np.allclose(want, have, atol=1e-5), attributes


def test_rows_and_pictures():
    ms = {"locution": 1.0, "onnxruntime": 2.0, "openvino": 1.25}
    row = {"model": "resnet50", "threads": 1, "operations": 1, "best_peer": "openvino", "ratio": [1.25, 1.2, 1.3], "engines": {e: {"ms": v, "compile_s": 0.5} for e, v in ms.items()}}
    bad = {"model": "gpt2", "threads": 1, "operations": 1, "engines": {"locution": {"bad": "not equal"}, "onnxruntime": {"ms": 3.0, "compile_s": 1}}}
    text = report.as_text([row, bad])
    assert "1.250 (1.200-1.300)" in text and "gpt2, 1 threads: Locution is left out: not equal" in text and text.endswith("geometric mean at 1 thread: 1.250")
    assert "| ResNet-50, 224 | 1 | 2 | 1.25 | 0.5 |" in report.as_markdown([row, bad])
    assert report.slug({"name": "AMD EPYC Zen 3", "isa": "AVX2"}) == "amd-epyc-zen-3-avx2"
    picture = plot.speeds("a & b", [("ResNet-50", {1: ms})], {"locution": "Locution", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"})
    widths = [float(r.get("width")) for r in xml.fromstring(picture).iter("{http://www.w3.org/2000/svg}rect") if r.get("height") == "11" and r.get("y") != "14"]
    assert len(widths) == 3 and widths[0] == pytest.approx(1.25 * widths[2], abs=0.1) and widths[0] == pytest.approx(2 * widths[1], abs=0.1)
