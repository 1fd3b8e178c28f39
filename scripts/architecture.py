#!/usr/bin/env python3
"""Follows one small model through every stage and puts what the compiler prints into docs/architecture.md.
usage: architecture.py [--check]     --check: change nothing, exit 1 when the page is not what would be written
The page's text stays as it is; what stands in a fenced block after a line `<!-- dump: COMMAND -->` is replaced by the command's
output. `head N` at the end of a command keeps the first N lines."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
BLOCK = re.compile(r"(<!-- dump: (?P<command>.*?) -->\n```\w*\n).*?(\n```)", re.S)


def small_model(path):
    """A convolution with batch norm and activation, pooled, then a dense layer: every kind of kernel that matters here."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    rng = np.random.default_rng(0)
    weight = lambda name, *shape: numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
    node = helper.make_node
    nodes = [node("Conv", ["image", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
             node("BatchNormalization", ["c", "scale", "offset", "mean", "variance"], ["b"], name="norm"),
             node("Relu", ["b"], ["r"], name="relu"), node("GlobalAveragePool", ["r"], ["g"], name="pool"),
             node("Flatten", ["g"], ["f"], name="flatten"), node("Gemm", ["f", "v", "u"], ["class"], name="dense", transB=1)]
    one = lambda name, value: numpy_helper.from_array(np.full(16, value, np.float32), name)
    weights = [weight("w", 16, 3, 3, 3), one("scale", 2), one("offset", 1), one("mean", 0.5), one("variance", 0.25), weight("v", 10, 16), weight("u", 10)]
    graph = helper.make_graph(nodes, "small", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 8, 8])],
                              [helper.make_tensor_value_info("class", TensorProto.FLOAT, [1, 10])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def rendered(text, binary):
    with tempfile.TemporaryDirectory() as folder:
        small_model(Path(folder) / "small.onnx")

        def dump(match):
            words = match["command"].split()
            limit = None
            if "head" in words:
                limit = int(words[-1])
                words = words[:-2]
            # A fixed target, so that the page is the same on every machine.
            done = subprocess.run([binary, *words[1:], "--cpu", "x86-64-v3"], cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{match['command']}: {done.stderr}")
            lines = done.stdout.rstrip().splitlines()
            if limit and len(lines) > limit:
                lines = lines[:limit] + [f"... and {len(lines) - limit} more lines"]
            return match[1] + "\n".join(lines) + match[3]
        return BLOCK.sub(dump, text)


def main():
    binary = os.environ.get("LOCUTION") or str(ROOT / "build" / "release" / "locution")
    text = PAGE.read_text()
    new = rendered(text, binary)
    if "--check" in sys.argv[1:]:
        return int(new != text)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
