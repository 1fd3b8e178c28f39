"""Whole models against ONNX Runtime with its optimisations off, as shipped (dynamic dims and all), at two input shapes each."""
import compare
import engines
import networks
import numpy as np
import pytest
from conftest import FULL, seeded

SEEDS = (0, 1, 2) if FULL else (0,)
OCR = engines.MODELS / "rapidocr" / "rapidocr_onnxruntime" / "models"
# model -> two shapes of its inputs
FILES = {
    "magika": next(engines.MODELS.glob("magika/**/model.onnx"), None),
    "ppocr_det": OCR / "ch_PP-OCRv4_det_infer.onnx",
    "ppocr_rec": OCR / "ch_PP-OCRv4_rec_infer.onnx",
    "ppocr_cls": OCR / "ch_ppocr_mobile_v2.0_cls_infer.onnx",
}
TRAINED = {
    "magika": [{"bytes": ([1, 2048], "byte")}, {"bytes": ([3, 2048], "byte")}],
    "ppocr_det": [{"x": ([1, 3, 160, 224], "randn")}, {"x": ([1, 3, 320, 320], "randn")}],
    "ppocr_rec": [{"x": ([1, 3, 48, 320], "randn")}, {"x": ([2, 3, 48, 160], "randn")}],
    "ppocr_cls": [{"x": ([1, 3, 48, 192], "randn")}, {"x": ([4, 3, 48, 192], "randn")}],
}


def same(binary, path, inputs, threads):
    wanted = engines.OnnxRuntime(1, exact=True).run(path, inputs)
    got = engines.Locution(threads, binary).run(path, inputs)
    assert len(got) == len(wanted)
    for i, (g, w) in enumerate(zip(got, wanted)):
        assert compare.equal(g, w), f"output {i}: {g.dtype}{g.shape}, {w.dtype}{w.shape}"
    return got


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [0, 1])
@pytest.mark.parametrize("name", TRAINED)
def test_trained(binary, name, shape, threads):
    for seed in SEEDS:
        same(binary, FILES[name], seeded(name, TRAINED[name][shape], seed), threads)


@pytest.mark.parametrize("n", [1, 3])
def test_networks_give_the_same_bits_at_any_number_of_threads(binary, tmp_path, n):
    networks.residual(tmp_path / "residual.onnx")
    networks.transformer(tmp_path / "transformer.onnx")
    rng = np.random.default_rng(3)
    cases = {"residual": {"x": rng.standard_normal((n, 3, 32, 32)).astype(np.float32)}, "transformer": {"ids": rng.integers(0, 100, (n, 17))}}
    for name, inputs in cases.items():
        one, two = (same(binary, tmp_path / f"{name}.onnx", inputs, threads) for threads in (1, 2))
        assert all(np.array_equal(a, b) for a, b in zip(one, two))
