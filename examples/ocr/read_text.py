#!/usr/bin/env python3
"""Reads a line of text from a picture with the PP-OCRv4 recogniser.
usage: read_text.py PICTURE ... [--engine locution|onnxruntime] [--threads N]
The picture becomes 48 pixels high, its values -1 to 1; the network answers with a distribution over characters for every
8 columns, which greedy CTC decoding turns into text: the best of each column, repeats merged, blanks dropped."""
import math
import sys
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import engines  # noqa: E402

MODEL = engines.MODELS / "rapidocr" / "rapidocr_onnxruntime" / "models" / "ch_PP-OCRv4_rec_infer.onnx"
HEIGHT, MIN_WIDTH = 48, 320


def inputs(path):
    """float32 [1, 3, 48, width] in BGR, the order the network was trained in; a short line is padded to 320 columns."""
    picture = Image.open(path).convert("RGB")
    width = math.ceil(HEIGHT * picture.width / picture.height)
    pixels = np.asarray(picture.resize((width, HEIGHT), Image.Resampling.BILINEAR), np.float32)[:, :, ::-1]
    x = np.zeros((1, 3, HEIGHT, max(width, MIN_WIDTH)), np.float32)
    x[0, :, :, :width] = (pixels.transpose(2, 0, 1) / 255 - 0.5) / 0.5
    return {"x": x}


def alphabet():
    """Class 0 is CTC's blank, the last one the space; those between stand in the model's metadata, one a line."""
    import onnx
    model = onnx.load(MODEL, load_external_data=False)
    listed = next(p.value for p in model.metadata_props if p.key == "character")
    return ["", *listed.splitlines(), " "]


def decode(probabilities):
    """(text, mean probability of its characters) of the model's output [columns, classes]."""
    best = probabilities.argmax(axis=1)
    kept = [i for i, c in enumerate(best) if c != 0 and (i == 0 or best[i - 1] != c)]
    characters = alphabet()
    score = float(probabilities.max(axis=1)[kept].mean()) if kept else 0.0
    return "".join(characters[best[i]] for i in kept).strip(), score


def main():
    options = engines.arguments("Reads a line of text from a picture.", pictures="pictures of one line of text")
    for path in options.pictures:
        text, score = decode(engines.engine(options).run(MODEL, inputs(path))[0][0])
        print(f"  {path}  \"{text}\"  {score:.1%}")


if __name__ == "__main__":
    main()
