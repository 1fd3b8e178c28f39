"""Two engines behind one interface, so that each example can be run on either and compared.
An engine has  run(model, inputs) -> outputs  and  bench(model, inputs) -> {"compile_s", "latency_ms"}; inputs are
{name: array}, outputs are arrays in the model's order. `exact` asks ONNX Runtime to leave its graph optimisations out,
as the reference that results are compared with."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
MODELS = Path.home() / ".cache" / "locution" / "models"


class Locution:
    """Calls the `locution` binary; arrays travel as .npy files."""

    def __init__(self, threads, binary=None):
        self.threads = threads
        self.binary = binary or os.environ.get("LOCUTION") or ROOT / "build" / "release" / "locution"

    def _call(self, command, model, inputs, folder, *options):
        if not Path(self.binary).is_file():
            sys.exit(f"no {self.binary}: ./demo builds it, or set LOCUTION to another one")
        arguments = [str(self.binary), command, str(model), "--threads", str(self.threads)]
        for name, array in inputs.items():
            path = Path(folder) / f"input_{len(arguments)}.npy"
            np.save(path, array)
            arguments += ["--input", f"{name}={path}"]
        done = subprocess.run(arguments + list(options), capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"locution {command} {model} ended with {done.returncode}:\n{done.stderr or done.stdout}")

    def run(self, model, inputs):
        with tempfile.TemporaryDirectory() as folder:
            self._call("run", model, inputs, folder, "--output-dir", folder)
            count = len(list(Path(folder).glob("output_*.npy")))
            return [np.load(Path(folder) / f"output_{i}.npy") for i in range(count)]

    def bench(self, model, inputs, seconds=2):
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            # The cache would turn the second demo's compile time into a file's load time.
            self._call("bench", model, inputs, folder, "--cache", "off", "--duration", str(seconds), "--json", str(report))
            result = json.loads(report.read_text())
        return {"compile_s": result["compile_s"], "latency_ms": result["latency_ms"]["median"]}


class OnnxRuntime:
    def __init__(self, threads, exact=False):
        self.threads, self.exact = threads, exact

    def _session(self, model):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        if self.exact:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])

    def run(self, model, inputs):
        return self._session(model).run(None, inputs)

    def bench(self, model, inputs, seconds=2):
        start = time.perf_counter()
        session = self._session(model)
        compile_s = time.perf_counter() - start
        for _ in range(3):
            session.run(None, inputs)
        times = []
        while sum(times) < seconds:
            start = time.perf_counter()
            session.run(None, inputs)
            times.append(time.perf_counter() - start)
        return {"compile_s": compile_s, "latency_ms": 1e3 * float(np.median(times))}


def cores():
    return len(os.sched_getaffinity(0))


def arguments(description, **positional):
    """The options every example has; `positional` are its own arguments, name=help."""
    parser = argparse.ArgumentParser(description=description)
    for name, text in positional.items():
        parser.add_argument(name, nargs="+", type=Path, help=text)
    parser.add_argument("--engine", choices=["locution", "onnxruntime"], default="locution")
    parser.add_argument("--threads", type=int, default=cores())
    return parser.parse_args()


def engine(options):
    return (Locution if options.engine == "locution" else OnnxRuntime)(options.threads)
