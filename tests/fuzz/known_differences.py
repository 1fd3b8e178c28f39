"""Where ONNX Runtime and Locution are known to differ on one node that reads the same values: what the specification says, and what each
makes of it. An entry is as narrow as it can be: it names the operators and tells by the values whether it is what is met."""
import numpy as np


def why(node):
    """The reason, or None where none is known."""
    return next((reason for ops, holds, reason in KNOWN if node.op in ops and holds(node)), None)


def wild(array):
    return array is not None and array.dtype.kind == "f" and not np.isfinite(array).all()


def differing(node):
    """For each output of the same shape: both engines' elements where they differ."""
    for a, b in zip(node.ours, node.theirs):
        if a is not None and a.shape == b.shape:
            at = ~((a == b) | ((a != a) & (b != b)))
            yield a[at], b[at]


def reads_wild(node):
    return any(wild(a) for a in node.inputs)


def close(a, b):
    return np.isclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-2, atol=1e-2, equal_nan=True)


def nan_here(node):
    """Something read is not finite, and wherever they differ by more than a rounding there is NaN here."""
    return reads_wild(node) and all((np.isnan(a) | close(a, b)).all() for a, b in differing(node) if a.dtype.kind == "f")


def nan_there(node):
    return reads_wild(node) and all((np.isnan(b) | close(a, b)).all() for a, b in differing(node) if a.dtype.kind == "f")


def only_without_steps(node):
    """Y is the same, and the last states of all sequences but those of length 0."""
    if node.input(4) is None or (node.input(4) > 0).all():
        return False
    some = node.input(4) > 0
    pairs = [(a, b) for a, b in zip(node.ours[1:], node.theirs[1:]) if a is not None]
    return all(close(a[:, some], b[:, some]).all() for a, b in pairs)


def is_same(node):
    return node.attributes.get("auto_pad", b"").startswith(b"SAME")


def is_dilated(node):
    return any(d > 1 for d in node.attributes.get("dilations", []))


def kernel_below_stride(node):
    kernel = node.attributes.get("kernel_shape") or node.input(1).shape[2:]
    return any(k < s for k, s in zip(kernel, node.attributes.get("strides", [])))


def only_at_wild_places(node):
    wild_places = ~np.isfinite(node.input(1)).all(-1)
    return bool((close(node.ours[0], node.theirs[0]) | wild_places[:, None]).all())


def at_the_end_of_its_type(node, ours=False):
    ends = lambda a: np.isin(a, (np.iinfo(a.dtype).min, np.iinfo(a.dtype).max)).all()
    return all(ends(a if ours else b) for a, b in differing(node) if b.dtype.kind in "iu")


def equal_elements(node):
    return all(((np.isnan(b) & (a == 0)) | close(a, b)).all() for a, b in differing(node))


def largest_of_infinities(node):
    return all(((a == -np.inf) & (b == np.finfo(b.dtype).min)).all() for a, b in differing(node) if a.dtype.kind == "f")


def is_cut_once(node):
    x = node.input(0).astype(np.float64)
    axes = node.input(1)
    sums = np.exp(x).sum(tuple(axes) if axes is not None and axes.size else None)
    return np.array_equal(node.ours[0].reshape(sums.shape), np.trunc(np.log(sums)).astype(node.ours[0].dtype))


def out_of_range(node):
    target = np.iinfo(node.ours[0].dtype)
    with np.errstate(invalid="ignore"):
        whole = np.trunc(node.input(0).astype(np.float64))
    differ = node.ours[0] != node.theirs[0]
    return bool((~((whole >= target.min) & (whole <= target.max)) | ~differ).all())


def by_one(node):
    return all((np.abs(a.astype(np.int64) - b.astype(np.int64)) <= 1).all() for a, b in differing(node))


def backwards_from_beyond(node):
    steps = node.input(4)
    return steps is not None and bool(((steps < 0) & (node.input(2) >= np.iinfo(np.int32).max)).any())


def is_integer(node):
    return node.input(0).dtype.kind in "iu"


def aligned_fraction(node):
    if node.attributes.get("coordinate_transformation_mode") != b"align_corners" or node.input(2) is None:
        return False
    lengths = node.input(0).shape * node.input(2)
    return bool((lengths != np.floor(lengths)).any())


def nan_is_largest(node):
    x, axis = node.input(0), node.attributes.get("axis", -1 if node.op == "Hardmax" else 0)
    last = node.attributes.get("select_last_index", 0)
    at = (np.argmin if node.op == "ArgMin" else np.argmax)(np.flip(x, axis) if last else x, axis)
    at = np.expand_dims(x.shape[axis] - 1 - at if last else at, axis)
    if node.op == "Hardmax":
        return wild(x) and (np.take_along_axis(node.ours[0], at, axis) == 1).all() and np.count_nonzero(node.ours[0]) == at.size
    return wild(x) and np.array_equal(node.ours[0].reshape(at.shape), at)


def more_keys_than_queries(node):
    heads = "q_num_heads" in node.attributes  # rank 3: the length is the second dim, else the third
    return node.attributes.get("is_causal") == 1 and node.input(1).shape[1 if heads else 2] > node.input(0).shape[1 if heads else 2]


RECURRENT = {"RNN", "GRU", "LSTM"}
POOLS = {"AveragePool", "LpPool", "MaxPool"}
LARGEST = {"Max", "Min", "Clip", "Relu", "MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "ScatterElements", "ScatterND"}
SUMS = {"ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd", "ReduceMean"}
PLACES = {"Hardmax", "ArgMax", "ArgMin"}

KNOWN = [
    (RECURRENT, only_without_steps, "the last state of a sequence without steps, of which nothing is said: the initial one here, 0 there"),
    (RECURRENT, nan_here, "NaN goes through the activations of a cell; there it is clamped"),
    (POOLS, lambda n: is_same(n) and is_dilated(n), "'pad_shape[i] = (output_spatial_shape[i] - 1) * strides_spatial_shape[i] + ((kernel_spatial_shape[i] - 1) "
     "* dilations[i] + 1) - input_spatial_shape[i]': there the padding leaves dilations out"),
    (POOLS, lambda n: is_same(n) and kernel_below_stride(n), "padding 'can take any value greater than or equal to 0': there it is negative where the kernel is "
     "shorter than the stride"),
    ({"ConvTranspose"}, lambda n: is_same(n) and kernel_below_stride(n), "'output_shape[i] = input_shape[i] * strides[i]' for SAME_UPPER and SAME_LOWER: less "
     "there where the kernel is shorter than the stride"),
    ({"ConvTranspose"}, nan_here, "an element that is not finite reaches the outputs of all phases of its window (0 times it is NaN)"),
    (LARGEST, nan_here, "NaN is the largest and the smallest, as for numpy in the specification's reference; there it is what the comparison leaves"),
    (PLACES, nan_is_largest, "NaN is the largest, as for numpy.argmax in the specification's reference; there comparisons pass it over"),
    ({"GridSample"}, only_at_wild_places, "places that are infinite are outside and NaN gives NaN; there they become integers first"),
    ({"AffineGrid"}, lambda n: n.attributes.get("align_corners") == 1 and (n.input(1)[2:] == 1).any(),
     "aligned corners of one element divide by zero: -1 here (as the specification's reference code), 1 there"),
    ({"DFT"}, lambda n: n.attributes.get("inverse") == 1 and n.attributes.get("onesided") == 1,
     "'When onesided=1 and inverse=1, a full real signal is returned (IRFFT)': there the other half of the spectrum is 0"),
    ({"Resize"}, nan_here, "an element of weight 0 that is not finite is part of the sum; there it is left out"),
    ({"Squeeze"}, lambda n: n.input(1) is not None and n.input(1).size == 0, "'If axes is not provided, all the single dimensions will be removed': an empty list "
     "is provided, and names none; there it counts as absent"),
    ({"Attention"}, lambda n: nan_there(n) and n.input(3) is not None and n.input(3).dtype == bool,
     "'True indicates that the element should take part in attention': NaN in one that does not is not seen; there it is"),
    ({"Attention"}, more_keys_than_queries, "'query i attends key j iff j <= i + past_sequence_length': one query attends all keys there"),
    ({"LRN"}, nan_there, "the sum over one region of channels does not know of NaN in others; there it is carried along"),
    ({"ReduceLogSum", "ReduceLogSumExp"}, lambda n: is_integer(n) and at_the_end_of_its_type(n),
     "the logarithm of what is not positive, as an integer"),
    (RECURRENT, nan_there, "an infinite state stays infinite (times a gate above 0); there the product is NaN"),
    ({"MaxPool", "GlobalMaxPool"}, largest_of_infinities, "the largest of negative infinities is one of them; there the lowest finite number"),
    ({"DynamicQuantizeLinear"}, reads_wild, "the zero point of an infinite range, 0 - (-inf / inf): 0 here"),
    ({"ReduceLogSumExp"}, lambda n: is_integer(n) and is_cut_once(n), "exponentials and the logarithm are those of numbers, then it is cut to an integer; there every step is cut"),
    ({"Cast", "CastLike"}, lambda n: n.input(0).dtype.kind == "f" and n.ours[0].dtype.kind in "iu" and out_of_range(n),
     "'fixed point: undefined if OOR (out of range)': the nearest here, whatever the processor makes of it there"),
    ({"STFT", "DFT"}, nan_there, "a real signal is multiplied by real numbers, where infinity stays infinity; there by complex ones"),
    ({"Resize"}, lambda n: is_integer(n) and by_one(n), "what is cut to an integer depends on the last bit of a sum in float32"),
    ({"Resize"}, aligned_fraction, "length_resized of align_corners is length times scale, with its fraction, as in the specification's "
     "resize_downsample_scales_linear_align_corners; there it is a whole number"),
    (SUMS, lambda n: is_integer(n) and at_the_end_of_its_type(n), "sums of integers wrap around here and stop at the last one there"),
    ({"Shrink"}, lambda n: is_integer(n) and at_the_end_of_its_type(n, ours=True), "a number beyond the type becomes its last one here"),
    ({"Slice"}, backwards_from_beyond, "for negative steps the end is clamped to '-1 and dims[axes[i]]-1', so INT_MAX leaves nothing; there it goes to the start, as INT_MIN does"),
    ({"InstanceNormalization"}, lambda n: max(np.abs(n.input(0)).max(), 0) > 1e18, "squares of what is read are beyond the type, not those of differences to the mean"),
    ({"ReduceMean"}, lambda n: n.input(0).size == 0, "a mean of nothing: 0 / 0 is NaN here, 0 there"),
    ({"Pow"}, lambda n: is_integer(n) and at_the_end_of_its_type(n), "a power that is infinite or no number (of 0 or below), as an integer"),
    ({"MeanVarianceNormalization"}, equal_elements, "'(X-EX)/sqrt(E(X-EX)^2)' of equal elements is 0; there the variance is a difference of squares, rounded below 0"),
    ({"DeformConv"}, nan_there, "a pixel that no place reaches is not read; there it is, and multiplied by 0"),
    ({"DeformConv"}, nan_here, "an offset that is NaN names no place: NaN here, 0 there"),
]
