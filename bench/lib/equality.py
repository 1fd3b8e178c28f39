"""When two engines' outputs count as equal, and how far apart they are."""
import numpy as np


def difference(want, have):
    """None when equal, else what is off. Floats: |difference| <= 1e-3 |x| + 1e-4 max(1, max|x| / 10), not-a-numbers and infinities in
    the same places; all else identical."""
    if len(want) != len(have):
        return f"{len(have)} outputs, not {len(want)}"
    for i, (x, y) in enumerate(zip(want, have)):
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"output {i}: {y.dtype}{list(y.shape)}, not {x.dtype}{list(x.shape)}"
        if x.dtype.kind != "f":
            if not np.array_equal(x, y):
                return f"output {i}: {int(np.sum(x != y))} of {x.size} elements differ"
            continue
        x, y = x.astype(np.float64), y.astype(np.float64)
        odd = ~np.isfinite(x)
        if not np.array_equal(odd, ~np.isfinite(y)) or not np.array_equal(x[odd], y[odd], equal_nan=True):
            return f"output {i}: not-a-numbers or infinities in different places"
        x, y = x[~odd], y[~odd]
        if not x.size:
            continue
        off = np.abs(x - y) - (1e-3 * np.abs(x) + 1e-4 * max(1.0, np.abs(x).max() / 10))
        if off.max() > 0:
            at = int(off.argmax())
            return f"output {i}: {y[at]:.7g} for {x[at]:.7g}"
    return None


def error(reference, have):
    """The largest difference over the largest value, of all float outputs; infinite where the outputs don't match at all."""
    worst = 0.0
    for x, y in zip(reference, have):
        if x.shape != y.shape:
            return float("inf")
        x, y = x.astype(np.float64), y.astype(np.float64)
        if not np.array_equal(np.isfinite(x), np.isfinite(y)):
            return float("inf")
        x, y = x[np.isfinite(x)], y[np.isfinite(y)]
        if x.size:
            worst = max(worst, float(np.abs(x - y).max() / max(np.abs(x).max(), 1e-30)))
    return worst if len(reference) == len(have) else float("inf")
