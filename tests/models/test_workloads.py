"""show --stage workloads: what a model's kernels are without their names."""
import re
import subprocess

import numpy as np
import onnx
import networks
from onnx import TensorProto, helper

HEAD = re.compile(r"^; workload ([0-9a-f]{16}) (\w+) x(\d+), (\d+) multiply-adds$", re.M)


def shown(binary, path, *options):
    done = subprocess.run([binary, "show", path, "--cpu", "x86-64-v3", *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def workloads(text):
    """[(hash, kind, kernels, multiply-adds)], after the first line's counts were found right."""
    found = [(h, kind, int(n), int(work)) for h, kind, n, work in HEAD.findall(text)]
    assert text.splitlines()[0] == f"; {sum(n for _, _, n, _ in found)} kernels, {len(found)} workloads"
    assert len({h for h, *_ in found}) == len(found) == text.count("\ncomputation kernel(")
    return found


def renamed(path, to):
    model = onnx.load(path)
    for node in model.graph.node:
        node.name = "other/" + node.name
        node.input[:] = [i if i in ("x", "ids") or not i else i + ":0" for i in node.input]
        node.output[:] = [o + ":0" for o in node.output]
    for w in model.graph.initializer:
        w.name += ":0"
    for o in model.graph.output:
        o.name += ":0"
    onnx.save(model, to)


def test_every_kernel_once_with_its_kind(binary, tmp_path):
    path = tmp_path / "net.onnx"
    networks.residual(path)
    options = ["--shape", "x=1x3x32x32"]
    found = workloads(shown(binary, path, "--stage", "workloads", *options))
    assert sum(n for _, _, n, _ in found) == shown(binary, path, "--stage", "loops", *options).count("\nplan: ")
    by_kind = {}
    for _, kind, n, work in found:
        by_kind.setdefault(kind, []).append((n, work))
    # The first convolution; three 3x3 ones of 64 channels on 8 x 8; 1x1 ones, the last without an activation; the head.
    assert by_kind["convolution"] == [(1, 16 * 16 * 16 * 27)]
    assert by_kind["depthwise"] == [(3, 8 * 8 * 64 * 9)]
    assert sum(n for n, _ in by_kind["contraction"]) == 6 and {work for _, work in by_kind["contraction"]} == {8 * 8 * 64 * 16}
    assert by_kind["gemv"] == [(1, 160)]


def test_names_are_not_part_of_it(binary, tmp_path):
    for make, options in ((networks.residual, ["--shape", "x=1x3x32x32"]), (networks.transformer, ["--shape", "ids=1x17"])):
        make(tmp_path / "a.onnx")
        renamed(tmp_path / "a.onnx", tmp_path / "b.onnx")
        a, b = (shown(binary, tmp_path / f, "--stage", "workloads", *options) for f in ("a.onnx", "b.onnx"))
        assert a == b
        words = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"^;.*$", "", a, flags=re.M)))
        assert not {w for w in words if re.match(r"(conv|gemm|matmul|w\d|t\d|x\b|ids)", w, re.I)}


def test_constants_and_shapes_are(binary, tmp_path):
    def matmul(name, rows, constant):
        weight = onnx.numpy_helper.from_array(np.ones((8, 8), np.float32), "w")
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 8])]
        inputs += [] if constant else [helper.make_tensor_value_info("w", TensorProto.FLOAT, [8, 8])]
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", inputs,
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 8])], [weight] if constant else [])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / name)
        (h, kind, _, work), = workloads(shown(binary, tmp_path / name, "--stage", "workloads"))
        return h, kind, work
    same, variable, taller = matmul("a.onnx", 4, True), matmul("b.onnx", 4, False), matmul("c.onnx", 5, True)
    assert matmul("d.onnx", 4, True) == same and len({same[0], variable[0], taller[0]}) == 3
    assert same[1:] == variable[1:] == ("contraction", 256) and matmul("e.onnx", 1, True)[1:] == ("gemv", 64)


def test_kernel_chooses_by_name(binary, tmp_path):
    path = tmp_path / "net.onnx"
    networks.residual(path)
    text = shown(binary, path, "--stage", "workloads", "--kernel", "gemm", "--shape", "x=1x3x32x32")
    assert [w[1:] for w in workloads(text)] == [("gemv", 1, 160)]
