"""Random graphs of fuzz_graphs, on ONNX Runtime with its optimisations off: a second opinion on what the operators mean. What it lacks
(a type, an operator, an opset) is skipped, and counted. LOCUTION_FUZZ_COUNT asks for more graphs than every run takes: in the long run
the two differ where the specification is silent (NaN in MaxPool, sequences of length 0, a mean of nothing)."""
import collections
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "examples"))
import compare  # noqa: E402

FUZZER = Path(os.environ.get("LOCUTION") or ROOT / "build" / "release" / "locution").parent / "test" / "fuzz_graphs"
OPSET = 23
NUMPY = {"float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"}
# Attributes that hold types by name here, and by number there.
TYPES = {"to", "dtype", "output_dtype", "stash_type"}
# Where the specification leaves the choice.
OWN_WAYS = {
    "AffineGrid": "aligned corners of one element divide by zero: -1 here (as the specification's reference code), 1 there",
}


class Unsupported(Exception):
    pass


def attribute(folder, key, text):
    kind, value = text.split(":", 1)
    values = [v for v in value.split(",") if v]
    of = onnx.AttributeProto
    if key in TYPES and kind == "s":
        if value not in NUMPY:
            raise Unsupported(f"type {value}")
        return helper.make_attribute(key, helper.np_dtype_to_tensor_dtype(np.dtype(value)))
    if kind == "t":
        return helper.make_attribute(key, numpy_helper.from_array(np.load(folder / f"{value}.npy")))
    if kind in "ifs":
        return helper.make_attribute(key, {"i": int, "f": float, "s": str}[kind](value))
    convert, kind = {"I": (int, of.INTS), "F": (float, of.FLOATS), "S": (str, of.STRINGS)}[kind]
    return helper.make_attribute(key, [convert(v) for v in values], attr_type=kind)


def read(folder):
    """The case as an ONNX model, its inputs and what is expected."""
    inputs, constants, nodes, outputs, feeds, wanted = [], [], [], [], {}, {}
    for line in (folder / "case.txt").read_text().splitlines():
        what, rest = line.split(" ", 1)
        if what == "node":
            op, ins, outs, *attributes = rest.split("|")
            nodes.append(helper.make_node(op, ins.split(","), outs.split(",")))
            nodes[-1].attribute.extend(attribute(folder, *a.split("=", 1)) for a in attributes)
            continue
        name, dtype = rest.split(" ")
        if dtype not in NUMPY:
            raise Unsupported(f"type {dtype}")
        array = np.load(folder / f"{name}.npy")
        if what == "constant":
            constants.append(numpy_helper.from_array(array, name))
            continue
        info = helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        if what == "input":
            inputs.append(info)
            feeds[name] = array
        else:
            if name not in wanted:
                outputs.append(info)
            wanted[name] = array
    model = helper.make_model(helper.make_graph(nodes, "case", inputs, outputs, constants), opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    return model, feeds, wanted


def run(model, feeds, names):
    """In a process of its own: ONNX Runtime dies of some outputs that are left out."""
    import onnxruntime  # noqa: F401  loaded once, before the forks
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=answer, args=(theirs, model, feeds, names))
    child.start()
    theirs.close()
    try:
        results = ours.recv()
    except EOFError:
        results = "ONNX Runtime crashed"
    child.join()
    if isinstance(results, str):
        raise Unsupported(results)
    return results


def answer(pipe, model, feeds, names):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        pipe.send(session.run(names, feeds))
    except Exception as error:
        pipe.send(str(error).splitlines()[0][:120])


def equal(got, want):
    if want.dtype == np.float16:
        return got.shape == want.shape and np.allclose(got.astype(np.float32), want.astype(np.float32), rtol=4e-3, atol=4e-3, equal_nan=True)
    if want.dtype.kind == "f":
        return compare.equal(got, want)
    # Sums of integers that overflow wrap here and stop at the largest there.
    stopped = np.isin(got, (np.iinfo(got.dtype).min, np.iinfo(got.dtype).max)) if got.dtype in (np.int32, np.int64) else np.zeros(got.shape, bool)
    return got.dtype == want.dtype and got.shape == want.shape and bool((stopped | (got == want)).all())


@pytest.mark.skipif(not FUZZER.is_file(), reason="the fuzzer is not built")
def test_random_graphs(tmp_path):
    count = int(os.environ.get("LOCUTION_FUZZ_COUNT", 150))
    done = subprocess.run([FUZZER, "--seed", "7000000", "--count", str(count), "--seconds", "3600", "--dump", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    compared, skipped, wrong, ops = 0, collections.Counter(), [], collections.Counter()
    for folder in sorted(tmp_path.iterdir(), key=lambda f: int(f.name)):
        try:
            model, feeds, wanted = read(folder)
            kinds = {n.op_type for n in model.graph.node}
            if kinds & OWN_WAYS.keys():
                raise Unsupported("ways of its own")
            results = run(model, feeds, list(wanted))
        except Unsupported as error:
            skipped[str(error)] += 1
            continue
        compared += 1
        ops.update(kinds)
        for name, got in zip(wanted, results):
            if not equal(got, wanted[name]):
                wrong.append(f"seed {folder.name}: {name} of {sorted(kinds)}: {wanted[name].reshape(-1)[:6]}, ONNX Runtime says {got.reshape(-1)[:6]}")
    print(f"{compared} graphs of {len(ops)} operators compared, {sum(skipped.values())} skipped")
    for reason, n in skipped.most_common(20):
        print(f"  {n} {reason}")
    assert compared >= count // 10
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:40])
