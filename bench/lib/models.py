"""The models that can be measured: architectures.py's, made here, and trained ones from wheels that scripts/wheels.txt pins."""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib

import numpy as np
from environment import BENCH, INPUTS, MODELS, ROOT

import architectures


def floats(*shape):
    return dict(shape=list(shape), dtype="float32", kind="normal", high=None)


# name -> folder in scripts/wheels.txt, file in the wheel, inputs
TRAINED = {
    "magika": ("magika", "model.onnx", dict(bytes=dict(shape=[1, 2048], dtype="int32", kind="integer", high=256))),
    "ppocr_det": ("rapidocr", "ch_PP-OCRv4_det_infer.onnx", dict(x=floats(1, 3, 640, 640))),
    "ppocr_rec": ("rapidocr", "ch_PP-OCRv4_rec_infer.onnx", dict(x=floats(1, 3, 48, 320))),
    "ppocr_cls": ("rapidocr", "ch_ppocr_mobile_v2.0_cls_infer.onnx", dict(x=floats(1, 3, 48, 192))),
}
TABLE = list(architectures.TITLES)  # the README's
ALL = [*architectures.MAKERS, *TRAINED]


def path_of(name):
    return MODELS / f"{name}.onnx"


def recipe(name):
    """Changes when the model would."""
    sources = [BENCH / "lib" / "architectures.py", BENCH / "lib" / "builder.py"] if name in architectures.MAKERS else [ROOT / "scripts" / "wheels.txt"]
    return hashlib.sha256(b"".join(p.read_bytes() for p in sources)).hexdigest()[:16]


def obtain(name):
    """Makes or fetches the model unless it is there; returns {operations, inputs}."""
    if name not in ALL:
        sys.exit(f"there is no model '{name}' (there are: {', '.join(ALL)})")
    note = MODELS / f"{name}.json"
    if note.exists() and path_of(name).exists():
        known = json.loads(note.read_text())
        if known["recipe"] == recipe(name):
            return known
    print(f"{'making' if name in architectures.MAKERS else 'fetching'} {name}", file=sys.stderr, flush=True)
    MODELS.mkdir(parents=True, exist_ok=True)
    fresh = tempfile.mkdtemp(dir=MODELS)
    try:
        model = os.path.join(fresh, f"{name}.onnx")
        known = architectures.make(name, model) if name in architectures.MAKERS else extract(name, fresh, model)
        known["recipe"] = recipe(name)
        note.unlink(missing_ok=True)
        for file in os.listdir(fresh):
            if file.startswith(f"{name}.onnx"):
                os.replace(os.path.join(fresh, file), MODELS / file)
        (MODELS / f"{name}.part").write_text(json.dumps(known, indent=1))
        os.replace(MODELS / f"{name}.part", note)
    finally:
        shutil.rmtree(fresh)
    return known


def extract(name, folder, model):
    wheel, file, inputs = TRAINED[name]
    pins = [line.split("#")[0].split() for line in (ROOT / "scripts" / "wheels.txt").read_text().splitlines()]
    requirement = next(p[0] for p in pins if p and p[1] == f"models/{wheel}")
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "-d", folder, requirement], check=True)
    archive = next(f for f in os.listdir(folder) if f.endswith(".whl"))
    with zipfile.ZipFile(os.path.join(folder, archive)) as z:
        member = next(m for m in z.namelist() if os.path.basename(m) == file)
        with open(model, "wb") as out:
            out.write(z.read(member))
    return dict(operations=0, inputs=inputs)


def arrays(name, inputs):
    """What a run is given: seeded by the model's name, the same for every engine."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    out = {}
    for key, spec in inputs.items():
        shape, kind = spec["shape"], spec["kind"]
        if kind == "normal":
            array = random.standard_normal(shape)
        elif kind == "integer":
            array = random.integers(0, spec["high"], shape)
        elif kind == "mask":  # the last eighth is padding
            array = np.ones(shape)
            array[..., shape[-1] - shape[-1] // 8:] = 0
        else:
            array = np.full(shape, spec["high"] if kind == "constant" else 0)
        out[key] = np.ascontiguousarray(array, dtype=spec["dtype"])
    return out


def input_files(name, inputs):
    """The same as files: {input: path}."""
    folder = INPUTS / name
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for i, (key, array) in enumerate(arrays(name, inputs).items()):
        files[key] = folder / f"{i}.npy"
        np.save(folder / f".{os.getpid()}.{i}.npy", array)
        os.replace(folder / f".{os.getpid()}.{i}.npy", files[key])
    return files
