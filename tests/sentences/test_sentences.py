"""Schedules as text: printed, read back, edited, refused; and the space they come from, audited."""
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

LOCUTION = os.environ.get("LOCUTION", str(Path(__file__).resolve().parents[2] / "build/release/locution"))


def run(*args):
    return subprocess.run([LOCUTION, *map(str, args)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rng = np.random.default_rng(1)
    weight = numpy_helper.from_array(rng.standard_normal((24, 12, 3, 3), dtype=np.float32), "w")
    dense = numpy_helper.from_array(rng.standard_normal((24, 10), dtype=np.float32), "d")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["y"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "d"], ["m"]),
        helper.make_node("Softmax", ["m"], ["out"]),
    ]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 12, 19, 23])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, 10])], [weight, dense])
    path = tmp_path_factory.mktemp("model") / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def sentences(model, tmp_path_factory):
    shown = run("show", model, "--stage", "sentences", "--cpu", "x86-64-v3")
    assert shown.returncode == 0, shown.stderr
    path = tmp_path_factory.mktemp("schedule") / "net.schedule"
    path.write_text(shown.stdout)
    return path


def output(model, folder, *flags):
    done = run("run", model, "--seed", 3, "--cpu", "x86-64-v3", "--output-dir", folder, *flags)
    assert done.returncode == 0, done.stderr
    return np.load(folder / "output_0.npy")


def test_the_printed_sentences_are_the_schedule(model, sentences, tmp_path):
    for name, flags in [("a.loc", []), ("b.loc", ["--schedule", sentences])]:
        done = run("compile", model, "-o", tmp_path / name, "--cpu", "x86-64-v3", *flags)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.loc").read_bytes() == (tmp_path / "b.loc").read_bytes()
    again = run("show", model, "--stage", "sentences", "--cpu", "x86-64-v3", "--schedule", sentences)
    assert again.stdout == sentences.read_text()


def edited(sentences, tmp_path, old, new):
    text = sentences.read_text()
    assert old in text
    path = tmp_path / "edited.schedule"
    path.write_text(text.replace(old, new, 1))
    return path


def rows_of_the_first(sentences):
    """'mr=N' of the first sentence."""
    line = next(l for l in sentences.read_text().splitlines() if not l.startswith("#"))
    return next(w for w in line.split() if w.startswith("mr="))


def test_an_edited_sentence_changes_the_code_and_not_the_result(model, sentences, tmp_path):
    shared = re.search(r" par=[1-9]", sentences.read_text()).group()
    other = edited(sentences, tmp_path, shared, " par=0")
    plans = [run("show", model, "--stage", "loops", "--cpu", "x86-64-v3", *flags).stdout
             for flags in ([], ["--schedule", other])]
    assert plans[0] != plans[1]
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    np.testing.assert_allclose(output(model, tmp_path / "a"), output(model, tmp_path / "b", "--schedule", other),
                               rtol=1e-5, atol=1e-7)


def test_an_illegal_word_is_named_with_what_was_legal(model, sentences, tmp_path):
    bad = edited(sentences, tmp_path, " " + rows_of_the_first(sentences) + " ", " mr=31 ")
    done = run("compile", model, "-o", tmp_path / "x.loc", "--cpu", "x86-64-v3", "--schedule", bad)
    assert done.returncode == 1
    assert "edited.schedule, line 2: word" in done.stderr and '"mr=31": not legal here; legal: mr=1 mr=2' in done.stderr
    assert not (tmp_path / "x.loc").exists()


@pytest.mark.parametrize("text, message", [
    ("hello", "line 1: want the 16 digits of a workload"),
    ("0123456789abcdef a | b | c\n0123456789abcdef a | b | c", "line 2: workload 0123456789abcdef is named twice"),
])
def test_a_file_that_is_no_schedule(model, tmp_path, text, message):
    path = tmp_path / "bad.schedule"
    path.write_text(text)
    done = run("compile", model, "-o", tmp_path / "x.loc", "--schedule", path)
    assert done.returncode == 1 and message in done.stderr, done.stderr


def test_a_missing_schedule(model, tmp_path):
    done = run("compile", model, "-o", tmp_path / "x.loc", "--schedule", tmp_path / "none")
    assert done.returncode == 1 and "can't be read" in done.stderr


def test_sentences_of_another_target_are_refused(model, sentences, tmp_path):
    done = run("compile", model, "-o", tmp_path / "x.loc", "--cpu", "x86-64-v2", "--schedule", sentences)
    assert done.returncode == 1 and "the sentence is of another target" in done.stderr


def test_the_space_says_what_is_decided(model):
    shown = run("show", model, "--stage", "space", "--cpu", "x86-64-v3")
    assert shown.returncode == 0, shown.stderr
    legend, _, kernels = shown.stdout.partition("\n\n")
    assert "mr      rows of the register tile" in legend.splitlines()
    first = kernels.splitlines()
    assert "workload" in first[0] and float(first[1].split()[1]) > 1e5 and first[1].endswith("random walks)")
    assert any(l.split()[2:3] == ["mr"] for l in first)


def test_an_audit_finds_only_legal_and_right_plans(model):
    full = os.environ.get("LOCUTION_FULL") == "1"
    sentences, compiled = (200000, 1000) if full else (2000, 30)
    done = run("audit", model, "--sentences", sentences, "--compile", compiled, "--measure", 4, "--seed", 5)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"sentences {sentences}: legal 100 %, applied 100 %"
    assert lines[1].startswith(f"compiled {compiled}: equal to the interpreter 100 %")
    assert "convolution" in done.stdout and "gemv" in done.stdout
