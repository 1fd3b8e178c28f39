"""Cases of fuzz_graphs (dump_case.cpp) as ONNX models, on ONNX Runtime with its optimisations off; and where the two differ, by which node."""
import faulthandler
import multiprocessing
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "examples"))
import compare  # noqa: E402

# ONNX Runtime has some operators in the second one only; they mean the same in both.
OPSETS = (23, 21)
NUMPY = {"float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"}
# Attributes that hold types by name here, and by number there.
TYPES = {"to", "dtype", "output_dtype", "stash_type"}


class Unsupported(Exception):
    pass


class Node(NamedTuple):
    """One node with the values that it read and wrote; None where an operand is left out."""
    op: str
    attributes: dict
    inputs: list
    ours: list
    theirs: list

    def input(self, i):
        return self.inputs[i] if i < len(self.inputs) else None


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


def typed(name, array):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def model_of(nodes, inputs, outputs, constants):
    graph = helper.make_graph(nodes, "case", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSETS[0])], ir_version=10)


def read(folder):
    """The case as an ONNX model, its inputs and what is expected."""
    constants, nodes, outputs, feeds, wanted = [], [], [], {}, {}
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
        elif what == "input":
            feeds[name] = array
        else:
            if name not in wanted:
                outputs.append(typed(name, array))
            wanted[name] = array
    return model_of(nodes, [typed(*f) for f in feeds.items()], outputs, constants), feeds, wanted


def run(model, feeds, names):
    """In the first opset that ONNX Runtime has all of."""
    said = []
    for opset in OPSETS:
        model.opset_import[0].version = opset
        results = _run_apart(model, feeds, names)
        if not isinstance(results, str):
            return results
        said.append(results)
    raise Unsupported(said[0])


def _run_apart(model, feeds, names):
    """In a process of its own: ONNX Runtime dies of some outputs that are left out. A string is what it says where it can't."""
    import onnxruntime  # noqa: F401  loaded once, before the forks
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_answer, args=(theirs, model, feeds, names))
    child.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        return "ONNX Runtime crashed"
    finally:
        child.join()


def _answer(pipe, model, feeds, names):
    import onnxruntime
    faulthandler.disable()
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
    return got.dtype == want.dtype and got.shape == want.shape and np.array_equal(got, want)


def every_value(binary, model, feeds, folder):
    """{name: array} of all that `model` computes, here."""
    names = [v for n in model.graph.node for v in n.output if v]
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    del whole.graph.output[:]
    whole.graph.output.extend(onnx.ValueInfoProto(name=v) for v in names)
    onnx.save(whole, folder / "every_value.onnx")
    command = [binary, "run", folder / "every_value.onnx", "--threads", "1", "--cache", "off", "--output-dir", folder]
    for name, array in feeds.items():
        np.save(folder / f"{name}.npy", array)
        command += ["--input", f"{name}={folder / name}.npy"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {name: np.load(folder / f"output_{i}.npy") for i, name in enumerate(names)}


def nodes_that_differ(binary, model, feeds, folder):
    """The nodes to which ONNX Runtime, given the values that they read here, has another answer. None: what differs is a rounding that
    the nodes behind it made much of."""
    values = feeds | every_value(binary, model, feeds, folder)
    constants = {t.name: t for t in model.graph.initializer}
    arrays = values | {name: numpy_helper.to_array(t) for name, t in constants.items()}
    out = []
    for node in model.graph.node:
        names, read = [v for v in node.output if v], {v for v in node.input if v}
        given = {v: values[v] for v in read if v not in constants}
        alone = model_of([node], [typed(*g) for g in given.items()], [typed(v, values[v]) for v in names], [constants[v] for v in read if v in constants])
        try:
            results = dict(zip(names, run(alone, given, names)))
        except Unsupported:
            continue
        if not all(equal(results[v], values[v]) for v in names):
            of = lambda source, listed: [source[v] if v else None for v in listed]
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            out.append(Node(node.op_type, attributes, of(arrays, node.input), of(values, node.output), of(results, node.output)))
    return out
