"""The language model's inference for SSE4.2 and AVX2 draws the same sentences under an emulator of CPUs that have no more than these."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

BINARY = Path(os.environ.get("LOCUTION", "build/release/locution")).resolve().parent / "test" / "tlm_embedded_test"


def sentences(instruction_set, *emulator):
    run = subprocess.run([*emulator, str(BINARY), "--gtest_filter=*DrawsTheSameSentences"], capture_output=True, text=True, timeout=600,
                         env={**os.environ, "LOCUTION_TLM_SENTENCES": instruction_set})
    assert run.returncode == 0, run.stdout + run.stderr
    return [line for line in run.stdout.splitlines() if line.startswith(("0x", "-0x"))]


@pytest.mark.skipif(not shutil.which("qemu-x86_64"), reason="no emulator")
@pytest.mark.skipif(not BINARY.exists(), reason="tlm_embedded_test is not built")
def test_emulated_machines_draw_the_same_sentences():
    first = sentences("x86-64-v2", "qemu-x86_64", "-cpu", "Nehalem")
    assert len(first) > 20
    assert first == sentences("x86-64-v3", "qemu-x86_64", "-cpu", "Haswell")
    assert first == sentences("x86-64-v2")
