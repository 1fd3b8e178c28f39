"""Clauses of the ONNX specification that compiled code is prone to break: vector tails, traps, saturation, order among equals. What is
expected is written out here or computed by numpy from the specification's words; old opsets are compared with ONNX Runtime."""
import subprocess

import compare
import engines
import numpy as np
import onnx
import pytest
from conftest import FULL
from onnx import helper, numpy_helper

# Around the widths of vectors and of their unrolled loops; all of them in the full run.
SIZES = range(1, 68) if FULL else (1, 3, 8, 13, 31, 33, 67)
CPUS = ("native", "x86-64-v2") if FULL else ("native",)
cpus = pytest.mark.parametrize("cpu", CPUS)


class Model:
    """Nodes side by side, each with outputs of its own: one compilation for all."""

    def __init__(self, opset=22):
        self.opset, self.nodes, self.inputs, self.constants, self.outputs, self.wanted = opset, [], {}, [], [], []

    def input(self, array):
        name = f"x{len(self.inputs)}"
        self.inputs[name] = np.asarray(array)
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, *wanted, **attributes):
        """`wanted` are the values of its outputs."""
        names = [f"y{len(self.outputs) + i}" for i in range(max(1, len(wanted)))]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{op}_{len(self.nodes)}", **attributes))
        self.outputs += names
        self.wanted += wanted

    def save(self, path):
        value = lambda n, a: helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        outputs = [onnx.ValueInfoProto(name=n) for n in self.outputs]
        graph = helper.make_graph(self.nodes, "clauses", [value(n, a) for n, a in self.inputs.items()], outputs, self.constants)
        # Types of outputs may be left out, as far as we are concerned; ONNX Runtime wants them known.
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        onnx.save(model, path)
        return path

    def run(self, binary, folder, cpu="native", threads=1):
        path = self.save(folder / "clauses.onnx")
        command = [binary, "run", path, "--cpu", cpu, "--threads", threads, "--output-dir", folder, "--cache", "off"]
        for name, array in self.inputs.items():
            np.save(folder / f"{name}.npy", array)
            command += ["--input", f"{name}={folder / name}.npy"]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [np.load(folder / f"output_{i}.npy") for i in range(len(self.outputs))]

    def check(self, binary, folder, cpu="native", threads=1, equal=np.array_equal):
        got = self.run(binary, folder, cpu, threads)
        assert len(got) == len(self.wanted)
        wrong = [f"{n.name}: {g.tolist()}, not {np.asarray(w).tolist()}"[:500] for n, g, w in zip(self._owners(), got, self.wanted)
                 if g.dtype != np.asarray(w).dtype or g.shape != np.asarray(w).shape or not equal(g, w)]
        assert not wrong, "\n".join(wrong[:10])

    def _owners(self):
        return [n for n in self.nodes for _ in n.output]


def same_with_nan(got, want):
    return np.array_equal(np.isnan(got), np.isnan(want)) and compare.equal(got, want)


@cpus
@pytest.mark.parametrize("dtype", [np.float32, np.float16] + [np.float64] * FULL)
def test_nan_goes_through_extrema_at_any_place(binary, tmp_path, cpu, dtype):
    m, rng = Model(), np.random.default_rng(0)
    for n in SIZES:
        x = rng.standard_normal((4, n)).astype(dtype)
        x[0, 0] = x[1, -1] = x[2, n // 2] = np.nan
        y = rng.standard_normal((4, n)).astype(dtype)
        a, b = m.input(x), m.input(y)
        m.node("Max", [a, b], np.maximum(x, y))
        m.node("Max", [b, a], np.maximum(y, x))
        m.node("Min", [a, b], np.minimum(x, y))
        m.node("Min", [b, a], np.minimum(y, x))
        m.node("Relu", [a], np.maximum(x, dtype(0)))
        m.node("Clip", [a, m.constant(dtype(-0.5)), m.constant(dtype(0.5))], np.clip(x, dtype(-0.5), dtype(0.5)))
    m.check(binary, tmp_path, cpu, equal=same_with_nan)


@cpus
@pytest.mark.parametrize("axis", [0, 1])
def test_nan_goes_through_reductions_at_any_place(binary, tmp_path, cpu, axis):
    m, rng = Model(), np.random.default_rng(1)
    for n in SIZES:
        x = rng.standard_normal((4, n)).astype(np.float32)
        x[0, 0] = x[1, -1] = x[2, n // 2] = np.nan
        x = x if axis == 1 else np.ascontiguousarray(x.T)
        a, axes, keep = m.input(x), m.constant(np.array([axis])), {"axis": axis, "keepdims": True}
        for op, f in {"ReduceMax": np.max, "ReduceMin": np.min, "ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceProd": np.prod}.items():
            m.node(op, [a, axes], f(x, **keep))
        m.node("ReduceL1", [a, axes], np.abs(x).sum(**keep))
        m.node("ReduceL2", [a, axes], np.sqrt((x * x).sum(**keep)))
        m.node("ReduceSumSquare", [a, axes], (x * x).sum(**keep))
        m.node("ReduceLogSumExp", [a, axes], np.log(np.exp(x).sum(**keep)))
    m.check(binary, tmp_path, cpu, equal=same_with_nan)


@cpus
def test_nan_goes_through_max_pooling(binary, tmp_path, cpu):
    m, rng = Model(), np.random.default_rng(2)
    for n in SIZES:
        x = rng.standard_normal((1, 3, 1, n)).astype(np.float32)
        x[0, 0, 0, -1] = x[0, 1, 0, 0] = np.nan
        padded = np.concatenate([np.full((1, 3, 1, 1), -np.inf, np.float32), x, np.full((1, 3, 1, 1), -np.inf, np.float32)], 3)
        wanted = np.maximum(np.maximum(padded[..., :-2], padded[..., 1:-1]), padded[..., 2:])
        m.node("MaxPool", [m.input(x)], wanted, kernel_shape=[1, 3], pads=[0, 1, 0, 1])
        m.node("GlobalMaxPool", [m.input(x)], x.max((2, 3), keepdims=True))
    m.check(binary, tmp_path, cpu, equal=same_with_nan)


def truncated(a, b):
    return [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b)]


# A quotient or remainder by zero and the smallest number over -1 trap on this CPU; whatever the result, there must be one.
@cpus
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integer_division_truncates_and_never_traps(binary, tmp_path, cpu, bits):
    signed, unsigned = np.dtype(f"int{bits}"), np.dtype(f"uint{bits}")
    low, high = np.iinfo(signed).min, np.iinfo(signed).max
    rng, m = np.random.default_rng(3), Model()
    for n in SIZES:
        a, b = (rng.integers(low, high, n, signed, endpoint=True) for _ in range(2))
        a[rng.integers(n)], b[rng.integers(n)] = low, -1
        b[b == 0] = 7
        wrapped = lambda values: np.array([(v - low) % 2**bits + low for v in values], signed)
        dividends, divisors = [int(v) for v in a], [int(v) for v in b]
        x, y = m.input(a), m.input(b)
        m.node("Div", [x, y], wrapped(truncated(dividends, divisors)))
        m.node("Mod", [x, y], wrapped([p % q for p, q in zip(dividends, divisors)]))
        m.node("Mod", [x, y], wrapped([p - q * t for p, q, t in zip(dividends, divisors, truncated(dividends, divisors))]), fmod=1)
        m.node("Div", [x, m.constant(np.array([-3], signed))], wrapped(truncated(dividends, [-3] * n)))
        m.node("Div", [x, m.constant(np.array([-1], signed))], wrapped([-v for v in dividends]))
        m.node("Abs", [x], wrapped([abs(v) for v in dividends]))
        if bits < 64:
            m.node("Neg", [x], wrapped([-v for v in dividends]))
        u, v = a.view(unsigned), b.view(unsigned)
        p, q = m.input(u), m.input(v)
        m.node("Div", [p, q], u // v)
        m.node("Mod", [p, q], u % v)
    m.check(binary, tmp_path, cpu)
    zeros = Model()
    for dtype in (signed, unsigned):
        x, y = zeros.input(np.array([low if dtype == signed else 5, 1, 0] * 11, signed).view(dtype)), zeros.input(np.zeros(33, dtype))
        zeros.node("Div", [x, y])
        zeros.node("Mod", [x, y])
        if dtype == signed:
            zeros.node("Mod", [x, y], fmod=1)
    zeros.run(binary, tmp_path, cpu)


@cpus
def test_unsigned_times_signed_bytes_never_saturate(binary, tmp_path, cpu):
    m = Model()
    for n in SIZES:
        for value in (127, -128):
            a, b = np.full((5, n), 255, np.uint8), np.full((n, 19), value, np.int8)
            wanted = np.full((5, 19), 255 * value * n, np.int32)
            m.node("MatMulInteger", [m.input(a), m.input(b)], wanted)
            m.node("MatMulInteger", [m.input(a), m.constant(b)], wanted)
        a, b, scale = np.full((5, n), 255, np.uint8), np.full((n, 19), 127, np.int8), lambda v: m.constant(np.float32(v))
        m.node("QLinearMatMul", [m.input(a), scale(1 / 255), m.constant(np.uint8(0)), m.constant(b), scale(1 / 127), m.constant(np.int8(0)), scale(n / 200), m.constant(np.uint8(0))],
               np.full((5, 19), 200, np.uint8))
    x, w = np.full((1, 67, 9, 9), 255, np.uint8), np.full((8, 67, 3, 3), 127, np.int8)
    m.node("ConvInteger", [m.input(x), m.constant(w)], np.full((1, 8, 7, 7), 255 * 127 * 67 * 9, np.int32))
    m.check(binary, tmp_path, cpu)


@cpus
@pytest.mark.parametrize("threads", [1, 2])
def test_halves_are_summed_in_float32(binary, tmp_path, cpu, threads):
    n, m = 4099, Model()  # beyond 2048 adding 1 to a half changes nothing
    one = np.ones((3, n), np.float16)
    for axis, array in ((1, one), (0, np.ascontiguousarray(one.T))):
        x, axes = m.input(array), m.constant(np.array([axis]))
        total = np.full((3, 1) if axis else (1, 3), n, np.float16)
        m.node("ReduceSum", [x, axes], total)
        m.node("ReduceMean", [x, axes], np.ones_like(total))
        m.node("ReduceL1", [x, axes], total)
        m.node("ReduceSumSquare", [x, axes], total)
    m.node("MatMul", [m.input(one), m.input(np.ones((n, 5), np.float16))], np.full((3, 5), n, np.float16))
    m.node("MatMul", [m.input(one), m.constant(np.ones((n, 5), np.float16))], np.full((3, 5), n, np.float16))
    m.node("Gemm", [m.input(one), m.constant(np.ones((n, 5), np.float16))], np.full((3, 5), n, np.float16))
    m.node("Conv", [m.input(np.ones((1, 512, 5, 5), np.float16)), m.constant(np.ones((4, 512, 3, 3), np.float16))], np.full((1, 4, 3, 3), 4608, np.float16))
    m.node("GlobalAveragePool", [m.input(np.ones((1, 2, 64, 65), np.float16))], np.ones((1, 2, 1, 1), np.float16))
    m.node("AveragePool", [m.input(np.ones((1, 2, 64, 65), np.float16))], np.ones((1, 2, 1, 1), np.float16), kernel_shape=[64, 65])
    m.node("Softmax", [m.input(np.zeros((2, 4096), np.float16))], np.full((2, 4096), 1 / 4096, np.float16))
    m.node("Einsum", [m.input(one), m.input(one)], np.full((3, 3), n, np.float16), equation="ij,kj->ik")
    m.node("ConvTranspose", [m.input(np.ones((1, 4099, 1, 1), np.float16)), m.constant(np.ones((4099, 2, 1, 1), np.float16))], np.full((1, 2, 1, 1), n, np.float16))
    m.node("CumSum", [m.input(one[0]), m.constant(np.array(0))], np.arange(1, n + 1).astype(np.float16))
    # Sums beyond the largest half, 65504, on the way to what is none.
    hundred, axes = m.input(np.full((2, n), 100, np.float16)), m.constant(np.array([1]))
    m.node("ReduceMean", [hundred, axes], np.full((2, 1), 100, np.float16))
    m.node("ReduceL2", [hundred, axes], np.full((2, 1), 100 * n**0.5, np.float16))
    waves = (1000 + 500 * np.sin(np.arange(2 * n))).astype(np.float16).reshape(1, 2, n)
    exact = waves.astype(np.float64)
    normal = (exact - exact.mean(2, keepdims=True)) / np.sqrt(exact.var(2, keepdims=True) + 1e-5)
    unit, zero = np.ones(n, np.float16), np.zeros(2, np.float16)
    m.node("LayerNormalization", [m.input(waves), m.constant(unit)], normal.astype(np.float16), axis=-1)
    m.node("InstanceNormalization", [m.input(waves), m.constant(unit[:2]), m.constant(zero)], normal.astype(np.float16))
    m.node("GroupNormalization", [m.input(waves), m.constant(unit[:2]), m.constant(zero)], normal.astype(np.float16), num_groups=2)
    m.check(binary, tmp_path, cpu, threads, equal=lambda g, w: np.allclose(g.astype(np.float32), w.astype(np.float32), rtol=1e-3, atol=1e-3))


@cpus
def test_halves_to_powers_of_doubles(binary, tmp_path, cpu):
    m, x = Model(), np.array([0.25, 1.5, 3, 100], np.float16)
    for shape in ((4,), (1, 1, 4)):
        for exponent in (np.array(2.1935789), np.array([-1.0, 0.5, 2.25, 1.5])):
            y = np.power(x.astype(np.float64), exponent).astype(np.float16).reshape(shape)
            m.node("Pow", [m.input(x.reshape(shape)), m.constant(exponent)], y)
    m.node("Pow", [m.input(x[1].reshape(())), m.constant(np.array(2.1935789))], np.array(1.5**2.1935789, np.float16))
    m.check(binary, tmp_path, cpu, equal=lambda g, w: np.allclose(g.astype(np.float32), np.float32(w), rtol=1e-3))


@pytest.mark.parametrize("threads", [1, 2])
def test_sums_of_many_equal_numbers_are_right(binary, tmp_path, threads):
    n = 100_000_000 if FULL else 1_000_000
    for value in np.float32([0.1, 1 / 3]):
        m = Model()
        x, axes = m.input(np.full(n, value, np.float32)), m.constant(np.array([0]))
        for op, wanted in (("ReduceSum", float(value) * n), ("ReduceMean", float(value))):
            m.node(op, [x, axes], keepdims=0)
        total, mean = m.run(binary, tmp_path, threads=threads)
        assert abs(float(total) / (float(value) * n) - 1) <= 1e-6
        assert abs(float(mean) / float(value) - 1) <= 1e-6


@cpus
def test_the_first_or_last_among_equals(binary, tmp_path, cpu):
    m, rng = Model(), np.random.default_rng(4)
    for n in SIZES:
        x = rng.integers(0, 3, (5, n)).astype(np.float32)
        for axis, array in ((1, x), (0, np.ascontiguousarray(x.T))):
            a = m.input(array)
            backwards = np.flip(array, axis)
            for op, f in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
                m.node(op, [a], f(array, axis), axis=axis, keepdims=0)
                m.node(op, [a], n - 1 - f(backwards, axis), axis=axis, keepdims=0, select_last_index=1)
        k = (n + 1) // 2
        for largest in (0, 1):
            order = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :k]
            m.node("TopK", [m.input(x), m.constant(np.array([k]))], np.take_along_axis(x, order, 1), order, largest=largest)
    m.check(binary, tmp_path, cpu)


# Scale 2.5: positions fall half-way between elements.
@cpus
@pytest.mark.parametrize("mode, nearest", [("round_prefer_floor", lambda p: np.ceil(p - 0.5)), ("round_prefer_ceil", lambda p: np.floor(p + 0.5)),
                                           ("floor", np.floor), ("ceil", np.ceil)])
def test_resize_between_two_elements(binary, tmp_path, cpu, mode, nearest):
    m = Model(19)
    for n in SIZES:
        x = np.arange(2 * n, dtype=np.float32).reshape(1, 1, 2, n)
        for transform, scale, position in (("half_pixel", 0.5, lambda i, s: (i + 0.5) / s - 0.5), ("asymmetric", 2.0, lambda i, s: i / s)):
            out = int(n * scale)
            if out == 0:
                continue
            at = np.clip(nearest(position(np.arange(out), scale)), 0, n - 1).astype(int)
            m.node("Resize", [m.input(x), "", m.constant(np.array([1, 1, 1, scale], np.float32))], x[..., at], mode="nearest", nearest_mode=mode,
                   coordinate_transformation_mode=transform)
    m.check(binary, tmp_path, cpu)


@cpus
def test_numbers_beyond_an_integer_type_never_trap(binary, tmp_path, cpu):
    m = Model()
    for dtype in (np.float32, np.float64, np.float16):
        x = m.input(np.array([np.nan, np.inf, -np.inf, np.finfo(dtype).max, np.finfo(dtype).min, -1, 255, 3.99, -3.99] * 5, dtype))
        for to in (onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.INT16, onnx.TensorProto.INT32, onnx.TensorProto.INT64, onnx.TensorProto.UINT32,
                   onnx.TensorProto.UINT64, onnx.TensorProto.BOOL):
            m.node("Cast", [x], to=to)
    got = m.run(binary, tmp_path, cpu)
    for i, y in enumerate(got):
        if i % 8 in (3, 4):  # what fits is truncated
            assert list(y.reshape(5, 9)[:, 5:].reshape(-1)) == [-1, 255, 3, -3] * 5
        if i % 8 == 7:  # NaN is not zero
            assert y.all()
    shifts = Model()
    values, by = np.arange(33, dtype=np.uint32) * 77777777, np.arange(33, dtype=np.uint32) % 32
    for direction, wanted in (("LEFT", (values.astype(np.uint64) << by.astype(np.uint64)).astype(np.uint32)), ("RIGHT", values >> by)):
        shifts.node("BitShift", [shifts.input(values), shifts.input(by)], wanted, direction=direction)
    shifts.check(binary, tmp_path, cpu)


def window_sums(x, kernel, stride, pads, dilation, ceil, include):
    """AveragePool along the last axis by the specification: a window that begins in the padding at the end is left out; with
    count_include_pad what is counted ends with the padding."""
    n, reach = x.shape[-1], (kernel - 1) * dilation + 1
    span = n + pads[0] + pads[1] - reach
    count = (-(-span // stride) if ceil else span // stride) + 1
    if ceil and (count - 1) * stride >= n + pads[0]:
        count -= 1
    out = []
    for i in range(count):
        places = [i * stride - pads[0] + k * dilation for k in range(kernel)]
        inside = [p for p in places if 0 <= p < n]
        counted = [p for p in places if p < n + pads[1]] if include else inside
        out.append(sum(x[..., p] for p in inside) / np.float32(len(counted)))
    return np.stack(out, -1)


@cpus
def test_average_pooling_at_the_edges(binary, tmp_path, cpu):
    m, rng = Model(22), np.random.default_rng(5)
    for n in [n for n in SIZES if n > 4]:
        x = rng.standard_normal((1, 2, n)).astype(np.float32)
        a = m.input(x)
        for kernel, stride, pads, dilation in ((3, 2, (1, 1), 1), (3, 2, (0, 0), 1), (4, 3, (1, 2), 1), (2, 2, (1, 0), 2), (3, 3, (1, 1), 1)):
            for ceil in (0, 1):
                for include in (0, 1):
                    m.node("AveragePool", [a], window_sums(x, kernel, stride, pads, dilation, ceil, include), kernel_shape=[kernel], strides=[stride],
                           pads=list(pads), dilations=[dilation], ceil_mode=ceil, count_include_pad=include)
    m.check(binary, tmp_path, cpu, equal=compare.equal)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_same_padding_puts_the_odd_one_where_it_belongs(binary, tmp_path, mode):
    m, rng = Model(22), np.random.default_rng(6)
    for n in [n for n in SIZES if n > 4]:
        for kernel, stride in ((3, 2), (4, 1), (4, 3), (2, 2)):
            x, w = rng.standard_normal((1, 1, n)).astype(np.float32), rng.standard_normal((1, 1, kernel)).astype(np.float32)
            count = -(-n // stride)
            total = max(0, (count - 1) * stride + kernel - n)
            small, large = total // 2, total - total // 2
            padded = np.pad(x[0, 0], (small, large) if mode == "SAME_UPPER" else (large, small))
            windows = np.stack([padded[i * stride:i * stride + kernel] for i in range(count)])
            a = m.input(x)
            m.node("Conv", [a, m.constant(w)], (windows @ w[0, 0])[None, None], auto_pad=mode, strides=[stride], kernel_shape=[kernel])
            low = np.pad(x[0, 0], (small, large) if mode == "SAME_UPPER" else (large, small), constant_values=-np.inf)
            m.node("MaxPool", [a], np.stack([low[i * stride:i * stride + kernel].max() for i in range(count)])[None, None], auto_pad=mode, strides=[stride],
                   kernel_shape=[kernel])
    m.check(binary, tmp_path, equal=compare.equal)


def test_output_padding_adds_rows_at_the_end(binary, tmp_path):
    m, rng = Model(22), np.random.default_rng(7)
    for n in SIZES:
        for stride, extra, pads in ((2, 1, (1, 1)), (3, 2, (0, 1)), (3, 0, (1, 0))):
            x, w = rng.standard_normal((1, 2, n)).astype(np.float32), rng.standard_normal((2, 3, 3)).astype(np.float32)
            full = np.zeros((1, 3, (n - 1) * stride + 3 + extra), np.float32)
            for i in range(n):
                full[:, :, i * stride:i * stride + 3] += np.einsum("bc,cok->bok", x[..., i], w)
            wanted = full[..., pads[0]:full.shape[-1] - pads[1]]
            if wanted.shape[-1] > 0:
                m.node("ConvTranspose", [m.input(x), m.constant(w)], wanted, strides=[stride], output_padding=[extra], pads=list(pads))
    m.check(binary, tmp_path, equal=compare.equal)


@cpus
def test_negative_indices_count_from_the_end(binary, tmp_path, cpu):
    m, rng = Model(), np.random.default_rng(8)
    for n in SIZES:
        x, i = rng.standard_normal((n, 3)).astype(np.float32), rng.integers(-n, n, 21)
        i[:2] = -n, n - 1
        for dtype in (np.int32, np.int64):
            for index in (m.input(i.astype(dtype)), m.constant(i.astype(dtype))):
                m.node("Gather", [m.input(x), index], x[i])
        m.node("GatherElements", [m.input(x), m.input(np.repeat(i[:n, None], 3, 1))], np.take_along_axis(x, np.repeat(i[:n, None] % n, 3, 1), 0))
        m.node("GatherND", [m.input(x), m.input(np.stack([i, i % 3 - 3], 1))], x[i, i % 3 - 3])
        updated = x.copy()
        updated[i[:1], [-1]] = 7
        m.node("ScatterND", [m.input(x), m.input(np.array([[i[0], -1]])), m.input(np.float32([7]))], updated)
    m.check(binary, tmp_path, cpu)


X = np.random.default_rng(9).standard_normal((2, 3, 4)).astype(np.float32)
IMAGE = np.random.default_rng(10).standard_normal((2, 3, 6, 6)).astype(np.float32)
# opset, op, inputs, constants, outputs, attributes: forms that later opsets gave up.
OLD = [
    (11, "Softmax", [X], [], 1, {"axis": 1}), (11, "LogSoftmax", [X], [], 1, {"axis": 1}), (11, "Hardmax", [X], [], 1, {"axis": 1}),
    (11, "Softmax", [X], [], 1, {"axis": 0}), (11, "Softmax", [X], [], 1, {}), (11, "Hardmax", [X], [], 1, {"axis": -1}),
    (11, "ReduceSum", [X], [], 1, {"axes": [0, -1], "keepdims": 0}), (17, "ReduceMean", [X], [], 1, {"axes": [1]}), (17, "ReduceMax", [X], [], 1, {"axes": [2]}),
    (11, "Squeeze", [X[:, :1]], [], 1, {"axes": [1]}), (11, "Unsqueeze", [X], [], 1, {"axes": [0, -1]}), (11, "Split", [X], [], 2, {"axis": 2, "split": [1, 3]}),
    (10, "Pad", [X], [], 1, {"pads": [0, 1, 2, 0, 0, 1], "value": 1.5}), (9, "Slice", [X], [], 1, {"axes": [1, 2], "starts": [1, -3], "ends": [9, -1]}),
    (9, "TopK", [X], [], 2, {"axis": 1, "k": 2}), (10, "Clip", [X], [], 1, {"min": -0.5, "max": 0.25}), (10, "Dropout", [X], [], 1, {"ratio": 0.3}),
    (8, "BatchNormalization", [IMAGE], [np.float32([1, 2, 3]), np.float32([0, 1, 2]), np.float32([0.1, 0.2, 0.3]), np.float32([1, 2, 3])], 1, {"epsilon": 1e-3}),
    (9, "Upsample", [IMAGE], [np.float32([1, 1, 2, 2])], 1, {"mode": "nearest"}), (10, "Resize", [IMAGE], [np.float32([1, 1, 2, 3])], 1, {"mode": "linear"}),
    (8, "Upsample", [IMAGE], [], 1, {"mode": "linear", "scales": [1.0, 1.0, 2.0, 2.0]}),
    (10, "AveragePool", [IMAGE], [], 1, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    (7, "Gemm", [X[0], X[1].T.copy(), X[0, :, :1].T.copy() * 0 + 1], [], 1, {"alpha": 0.5, "beta": 2.0}), (12, "Pow", [np.abs(X), X], [], 1, {}),
    (8, "Cast", [X], [], 1, {"to": 7}), (8, "MaxPool", [IMAGE], [], 2, {"kernel_shape": [2, 2]}), (10, "Mod", [X, X + 3], [], 1, {"fmod": 1}),
]


def test_old_opsets_mean_what_they_meant(binary, tmp_path):
    for opset in sorted({case[0] for case in OLD}):
        m = Model(opset)
        for _, op, inputs, constants, outputs, attributes in (case for case in OLD if case[0] == opset):
            m.node(op, [m.input(a) for a in inputs] + [m.constant(c) for c in constants], *[None] * outputs, **attributes)
        got = m.run(binary, tmp_path)
        model = onnx.shape_inference.infer_shapes(onnx.load(tmp_path / "clauses.onnx"))
        types = {v.name: v for v in model.graph.value_info} | {v.name: v for v in model.graph.output}
        for value in model.graph.output:
            value.CopyFrom(types[value.name])
        onnx.save(model, tmp_path / "typed.onnx")
        want = engines.OnnxRuntime(1, exact=True).run(tmp_path / "typed.onnx", m.inputs)
        for node, g, w in zip(m._owners(), got, want):
            assert compare.equal(g, w), f"opset {opset}, {node.name}: {g}, not {w}"
