"""Whole models against ONNX Runtime with its optimisations off, as shipped (dynamic dims and all), at two input shapes each."""
import compare
import engines
import light
import networks
import numpy as np
import onnx
import pytest
from conftest import FULL, seeded

SEEDS = (0, 1, 2) if FULL else (0,)
OCR = engines.MODELS / "rapidocr" / "rapidocr_onnxruntime" / "models"
CAPTCHA = engines.MODELS / "ddddocr" / "ddddocr"
VOICE = engines.MODELS / "silero" / "silero_vad" / "data"
FILES = {
    "magika": next(engines.MODELS.glob("magika/**/model.onnx"), None),
    "ppocr_det": OCR / "ch_PP-OCRv4_det_infer.onnx",
    "ppocr_rec": OCR / "ch_PP-OCRv4_rec_infer.onnx",
    "ppocr_cls": OCR / "ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "yolo_320n": engines.MODELS / "nudenet" / "nudenet" / "320n.onnx",
    "captcha_det": CAPTCHA / "common_det.onnx",
    "captcha_rec": CAPTCHA / "common.onnx",
    "captcha_rec_int8": CAPTCHA / "common_old.onnx",
    "silero_vad": VOICE / "silero_vad.onnx",
    "silero_vad_16k": VOICE / "silero_vad_16k_op15.onnx",
    "silero_vad_half": VOICE / "silero_vad_half.onnx",
}


def voice(batch, samples, rate=None):
    return {"input": ([batch, samples], "randn"), "state": ([2, batch, 128], "randn")} | ({"sr": ([], rate)} if rate else {})


# model -> two shapes of its inputs; where none is dynamic, the one it takes
TRAINED = {
    "magika": [{"bytes": ([1, 2048], "byte")}, {"bytes": ([3, 2048], "byte")}],
    "ppocr_det": [{"x": ([1, 3, 160, 224], "randn")}, {"x": ([1, 3, 320, 320], "randn")}],
    "ppocr_rec": [{"x": ([1, 3, 48, 320], "randn")}, {"x": ([2, 3, 48, 160], "randn")}],
    "ppocr_cls": [{"x": ([1, 3, 48, 192], "randn")}, {"x": ([4, 3, 48, 192], "randn")}],
    "yolo_320n": [{"images": ([1, 3, 320, 320], "uniform")}, {"images": ([2, 3, 192, 256], "uniform")}],
    "captcha_det": [{"images": ([1, 3, 416, 416], "uniform")}],
    "captcha_rec": [{"input1": ([1, 1, 64, 160], "randn")}, {"input1": ([1, 1, 64, 96], "randn")}],
    "captcha_rec_int8": [{"input1": ([1, 1, 64, 160], "randn")}, {"input1": ([1, 1, 64, 96], "randn")}],
    "silero_vad": [voice(1, 576, 16000), voice(3, 288, 8000)],
    "silero_vad_16k": [voice(1, 576, 16000), voice(3, 576, 16000)],
    "silero_vad_half": [voice(1, 576), voice(3, 576)],
}
# Of a short run each shape takes one number of threads, the two shapes different ones.
CASES = [pytest.param(name, inputs, threads, id=f"{name}-{i}-{threads}") for name, shapes in TRAINED.items() for i, inputs in enumerate(shapes)
         for threads in ((1, 2) if FULL else (1 + i,))]


def reference(path, folder):
    """`path`, or a copy without the declared output shapes, where these have another rank than what comes out."""
    if path.parent != CAPTCHA:
        return path
    model = onnx.load(path)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    onnx.save(model, folder / path.name)
    return folder / path.name


def both(binary, path, wanted_path, inputs, threads):
    wanted = engines.OnnxRuntime(1, exact=True).run(wanted_path, inputs)
    got = engines.Locution(threads, binary).run(path, inputs)
    assert len(got) == len(wanted)
    return got, wanted


def same(binary, path, inputs, threads, wanted_path=None):
    got, wanted = both(binary, path, wanted_path or path, inputs, threads)
    for i, (g, w) in enumerate(zip(got, wanted)):
        assert compare.equal(g, w), f"output {i}: {g.dtype}{g.shape}, {w.dtype}{w.shape}, largest difference {np.abs(g - w).max() if g.shape == w.shape else None}"
    return got


@pytest.mark.parametrize("name, inputs, threads", [c for c in CASES if "int8" not in c.id])
def test_trained(binary, tmp_path, name, inputs, threads):
    for seed in SEEDS:
        same(binary, FILES[name], seeded(name, inputs, seed), threads, reference(FILES[name], tmp_path))


# DynamicQuantizeLinear turns a difference in the last bit into a whole step of 1/255: what comes out can't be equal to the last digits.
@pytest.mark.parametrize("name, inputs, threads", [c for c in CASES if "int8" in c.id])
def test_trained_in_integers(binary, tmp_path, name, inputs, threads):
    for seed in SEEDS:
        got, wanted = both(binary, FILES[name], reference(FILES[name], tmp_path), seeded(name, inputs, seed), threads)
        for g, w in zip(got, wanted):
            assert g.shape == w.shape and g.dtype == w.dtype
            difference, agree = np.abs(g - w).max() / np.abs(w).max(), np.mean(g.argmax(-1) == w.argmax(-1))
            print(f"{name} seed {seed}: largest difference {difference:.2e} of the largest value, the same argmax at {agree:.1%}")
            assert difference <= 0.02
            assert agree >= 0.99


# Two of the nine in every run: one of plain convolutions and concatenations, one of groups and transposes.
@pytest.mark.parametrize("name", light.NAMES if FULL else ("squeezenet", "shufflenet"))
def test_topologies_with_seeded_weights(binary, tmp_path, name):
    path = tmp_path / f"{name}.onnx"
    for seed in SEEDS:
        model = light.load(name, seed)
        onnx.save(model, path)
        for threads in (1, 2):
            same(binary, path, light.image(model, seed), threads)


@pytest.mark.parametrize("n", [1, 3])
def test_networks_give_the_same_bits_at_any_number_of_threads(binary, tmp_path, n):
    networks.residual(tmp_path / "residual.onnx")
    networks.transformer(tmp_path / "transformer.onnx")
    rng = np.random.default_rng(3)
    cases = {"residual": {"x": rng.standard_normal((n, 3, 32, 32)).astype(np.float32)}, "transformer": {"ids": rng.integers(0, 100, (n, 17))}}
    for name, inputs in cases.items():
        one, two = (same(binary, tmp_path / f"{name}.onnx", inputs, threads) for threads in (1, 2))
        assert all(np.array_equal(a, b) for a, b in zip(one, two))
