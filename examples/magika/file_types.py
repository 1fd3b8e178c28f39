#!/usr/bin/env python3
"""Names the type of files with Magika's trained model: bytes in, one of 214 types out.
usage: file_types.py FILE ... [--engine locution|onnxruntime] [--threads N]
Pre- and post-processing follow the magika package: up to 1024 bytes from the start and from the end, without the white
space around them, padded; a prediction below its type's threshold becomes "txt" or "unknown"."""
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import engines  # noqa: E402

PACKAGE = engines.MODELS / "magika" / "magika"
FOLDER = PACKAGE / "models" / "standard_v3_3"
MODEL = FOLDER / "model.onnx"


def config():
    return json.loads((FOLDER / "config.min.json").read_text())


def features(path, cfg):
    """int32 [beg_size + end_size]: the file's first and last bytes, padding_token where it is too short."""
    size = path.stat().st_size
    block = min(cfg["block_size"], size)
    with open(path, "rb") as f:
        begin = f.read(block).lstrip()[:cfg["beg_size"]]
        f.seek(size - block)
        end = f.read(block).rstrip()[-cfg["end_size"]:]
    out = np.full(cfg["beg_size"] + cfg["end_size"], cfg["padding_token"], np.int32)
    out[:len(begin)] = np.frombuffer(begin, np.uint8)
    out[len(out) - len(end):] = np.frombuffer(end, np.uint8)
    return out


def inputs(paths):
    cfg = config()
    return {"bytes": np.stack([features(p, cfg) for p in paths])}


def labels(scores):
    """[(type, description, score)] of the model's output [files, types]."""
    cfg = config()
    known = json.loads((PACKAGE / "config" / "content_types_kb.min.json").read_text())
    out = []
    for row in scores:
        best = int(row.argmax())
        raw = cfg["target_labels_space"][best]
        label = cfg["overwrite_map"].get(raw, raw)
        if row[best] < cfg["thresholds"].get(raw, cfg["medium_confidence_threshold"]):
            label = "txt" if known[label]["is_text"] else "unknown"
        out.append((label, known[label]["description"] or label, float(row[best])))
    return out


def main():
    options = engines.arguments("Names the type of files.", files="the files to look at")
    minimum = config()["min_file_size_for_dl"]
    paths = []
    for path in options.files:
        if not path.is_file() or path.stat().st_size < minimum:
            print(f"{path}: not a file of at least {minimum} bytes, left out", file=sys.stderr)
        else:
            paths.append(path)
    if not paths:
        sys.exit("nothing to look at")
    scores = engines.engine(options).run(MODEL, inputs(paths))[0]
    width = max(len(str(p)) for p in paths)
    for path, (label, description, score) in zip(paths, labels(scores)):
        print(f"  {str(path):{width}}  {label:12} {description}, {score:.1%}")


if __name__ == "__main__":
    main()
