"""The C API on a model whose dims are left open: any shape runs, in one process, whose memory does not grow with their number."""
import json
import subprocess
import sys
from pathlib import Path

import networks
import pytest
from conftest import FULL

# Between the moment when the programs that are kept are all there (32 of them) and the end.
MOST_GROWTH_MB = 48

CHILD = r"""
import ctypes, json, sys
import numpy as np
build, model, count = sys.argv[1], sys.argv[2].encode(), int(sys.argv[3])
ctypes.CDLL(f"{build}/lib/liblocution_runtime.so", ctypes.RTLD_GLOBAL)
runtime, compiler = ctypes.CDLL(f"{build}/lib/liblocution_runtime.so"), ctypes.CDLL(f"{build}/liblocution_compiler.so")


class Error(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("status", ctypes.c_int), ("message", ctypes.c_char * 2048)]


class Tensor(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * 16),
                ("data", ctypes.c_void_p), ("capacity", ctypes.c_size_t)]


def tensor(array=None):
    t = Tensor(size=ctypes.sizeof(Tensor))
    if array is not None:
        t.rank, t.data = array.ndim, array.ctypes.data
        t.dims[:array.ndim] = array.shape
    return t


error = Error(size=ctypes.sizeof(Error))
handle, context = ctypes.c_void_p(), ctypes.c_void_p()
options = (ctypes.c_char_p * 1)(b"--jobs=1")
assert compiler.locution_compile_model(model, options, ctypes.c_size_t(1), None, ctypes.byref(handle), ctypes.byref(error)) == 0, error.message
assert runtime.locution_context_create(handle, None, ctypes.byref(context), ctypes.byref(error)) == 0, error.message


def run(array):
    x, y = tensor(array), tensor()
    status = runtime.locution_run(context, ctypes.byref(x), ctypes.c_size_t(1), ctypes.byref(y), ctypes.c_size_t(1), None, ctypes.byref(error))
    if status:
        return status, error.message.decode()
    shape = tuple(y.dims[:y.rank])
    flat = np.ctypeslib.as_array(ctypes.cast(y.data, ctypes.POINTER(ctypes.c_float)), (int(np.prod(shape)),))
    return 0, flat.reshape(shape).copy()


def megabytes():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]) / 1024


shapes = [(1 + i % 40, 1 + i // 40) for i in range(count)]
results, sizes = {}, []
for i, (rows, columns) in enumerate(shapes):
    status, y = run(np.random.default_rng(i).standard_normal((rows, columns, 64)).astype(np.float32))
    assert status == 0, y
    if i % 37 == 0:
        np.save(f"{sys.argv[4]}/y{i}.npy", y)
        results[i] = (rows, columns)
    sizes.append(megabytes())
wrong = run(np.zeros((2, 3), np.float32))
narrow = run(np.zeros((2, 3, 63), np.float32))
again = run(np.random.default_rng(0).standard_normal((*shapes[0], 64)).astype(np.float32))[1]
same = bool(np.array_equal(again, np.load(f"{sys.argv[4]}/y0.npy")))
runtime.locution_context_free(context)
runtime.locution_model_free(handle)
print(json.dumps({"sizes": sizes, "results": results, "wrong": wrong, "narrow": narrow, "same": same}))
"""


@pytest.mark.parametrize("count", [50] + [2000] * FULL)
def test_many_shapes_in_one_process(binary, tmp_path, count):
    import engines
    import compare
    import numpy as np
    model = tmp_path / "mixer.onnx"
    networks.mixer(model)
    done = subprocess.run([sys.executable, "-c", CHILD, str(Path(binary).parent), model, str(count), tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    held, end = told["sizes"][40], max(told["sizes"][40:])
    print(f"{count} shapes: {held:.0f} MB after 41 of them, at most {end:.0f} MB from there on")
    assert end - held <= MOST_GROWTH_MB
    assert told["same"]
    status, message = told["wrong"]
    assert status == 1 and message == 'input "x" must be float32[?x?x64], but is float32[2x3]'
    assert told["narrow"][0] == 1
    runtime = engines.OnnxRuntime(1, exact=True)
    for i, shape in told["results"].items():
        x = np.random.default_rng(int(i)).standard_normal((*shape, 64)).astype(np.float32)
        assert compare.equal(np.load(tmp_path / f"y{i}.npy"), runtime.run(model, {"x": x})[0]), shape


def test_the_example_in_c(binary, tmp_path):
    model = tmp_path / "mixer.onnx"
    networks.mixer(model)
    done = subprocess.run([Path(binary).parent / "examples" / "any_shape", model, "1x5x64", "2x7x64", "1x5x64"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "1x5x64 -> 1x5x64\n2x7x64 -> 2x7x64\n1x5x64 -> 1x5x64\n"
