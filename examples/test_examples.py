"""The examples' pre- and post-processing, on ONNX Runtime (which knows nothing of Locution) and on Locution."""
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "magika"), str(HERE / "ocr")]
import compare  # noqa: E402
import engines  # noqa: E402
import file_types  # noqa: E402
import make_picture  # noqa: E402
import read_text  # noqa: E402

BOTH = pytest.mark.parametrize("engine", [engines.OnnxRuntime(1), engines.Locution(1)], ids=["onnxruntime", "locution"])


@BOTH
def test_reads_the_sentence(engine):
    text, score = read_text.decode(engine.run(read_text.MODEL, read_text.inputs(HERE / "ocr" / "sentence.png"))[0][0])
    assert text == make_picture.TEXT
    assert score > 0.9


@BOTH
def test_names_file_types(engine):
    wanted = {HERE / "engines.py": "python", HERE / "ocr" / "sentence.png": "png", HERE.parent / "check": "shell",
              HERE.parent / "CMakePresets.json": "json", file_types.MODEL: "onnx"}
    labels = file_types.labels(engine.run(file_types.MODEL, file_types.inputs(list(wanted)))[0])
    assert [label for label, _, _ in labels] == list(wanted.values())


def test_features_of_a_short_file_are_padded_between_begin_and_end(tmp_path):
    path = tmp_path / "short"
    path.write_bytes(b"  \nabcd\n ")
    x = file_types.features(path, file_types.config())
    assert list(x[:7]) == [*b"abcd\n ", 256]
    assert list(x[-8:]) == [256, *b"  \nabcd"]
    assert set(x[7:-8]) == {256}


def test_equal_follows_the_rule():
    want = np.array([1.0, 100.0], np.float32)
    assert compare.equal(want + np.float32(1e-3), want)
    assert not compare.equal(want + np.array([5e-3, 0], np.float32), want)
    assert not compare.equal(want.astype(np.float64), want)
    holed = np.array([np.nan, 100], np.float32)
    assert compare.equal(holed, holed)
    assert not compare.equal(holed, want)
