"""What the model tests share: the binary, the examples' engines, seeded inputs."""
import os
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "examples"))

FULL = os.environ.get("LOCUTION_FULL") == "1"


@pytest.fixture(scope="session")
def binary():
    return os.environ.get("LOCUTION") or str(ROOT / "build" / "release" / "locution")


def seeded(name, spec, seed):
    """{input: array} for {input: (shape, kind)}; kind is randn, uniform (0 to 1), byte, or an integer that is the value."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    make = {"randn": lambda shape: rng.standard_normal(shape).astype(np.float32), "uniform": lambda shape: rng.random(shape, np.float32),
            "byte": lambda shape: rng.integers(0, 256, shape).astype(np.int32)}
    return {k: np.full(shape, kind, np.int64) if isinstance(kind, int) else make[kind](shape) for k, (shape, kind) in spec.items()}
