#!/usr/bin/env python3
"""The demo's last word: each example's model on Locution and on ONNX Runtime, same input, same threads.
usage: compare.py PICTURE FILE ... [--threads N]
Largest difference is against ONNX Runtime with its graph optimisations off; latencies are medians, ONNX Runtime's with
everything on. Exit code 1 when an output is not equal."""
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "magika"), str(HERE / "ocr")]
import engines  # noqa: E402
import file_types  # noqa: E402
import read_text  # noqa: E402


def equal(got, want):
    """Same shape and type, differences within 1e-3 |x| + 1e-4 max(1, max|x| / 10), NaN and infinities in the same places."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return False
    got, want = got[finite], want[finite]
    allowed = 1e-3 * np.abs(want) + 1e-4 * max(1.0, np.abs(want).max(initial=0) / 10)
    return bool((np.abs(got - want) <= allowed).all())


def row(name, model, inputs, threads):
    locution, runtime = engines.Locution(threads), engines.OnnxRuntime(threads)
    want = engines.OnnxRuntime(threads, exact=True).run(model, inputs)
    got = locution.run(model, inputs)
    same = len(got) == len(want) and all(equal(g, w) for g, w in zip(got, want))
    difference = max(float(np.abs(g - w).max()) for g, w in zip(got, want)) if same else float("nan")
    ours, theirs = locution.bench(model, inputs), runtime.bench(model, inputs)
    shape = "x".join(map(str, next(iter(inputs.values())).shape))
    return same, [name, shape, f"{ours['compile_s']:.2f} s", f"{ours['latency_ms']:.2f} ms", f"{theirs['latency_ms']:.2f} ms",
                  f"{difference:.1e}" if same else "NOT EQUAL"]


def main():
    options = engines.arguments(__doc__.splitlines()[0], files="a picture, then files")
    picture, *files = options.files
    heads = ["model", "input", "compile time", "latency", "ONNX Runtime", "largest difference"]
    done = [row("Magika", file_types.MODEL, file_types.inputs(files), options.threads),
            row("PP-OCRv4 recogniser", read_text.MODEL, read_text.inputs(picture), options.threads)]
    rows = [heads] + [cells for _, cells in done]
    widths = [max(len(r[i]) for r in rows) for i in range(len(heads))]
    for index, cells in enumerate(rows):
        print("  " + "  ".join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths))))
        if index == 0:
            print("  " + "  ".join("-" * w for w in widths))
    sys.exit(0 if all(same for same, _ in done) else 1)


if __name__ == "__main__":
    main()
