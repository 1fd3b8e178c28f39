"""`locution records`: what it prints, and records in and out of files."""
import gzip
import json
import os
import statistics
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BINARY = os.environ.get("LOCUTION") or str(HERE.parent.parent / "build" / "release" / "locution")
# An exported file as it was first written; later versions must read it, and write it again byte by byte.
SAMPLE = HERE / "sample.jsonl"


def call(folder, *arguments):
    return subprocess.run([BINARY, "records", *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=120)


def ok(folder, *arguments):
    done = call(folder, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def filled(tmp_path):
    assert ok(tmp_path, "r.db", "--import", SAMPLE) == f"imported {SAMPLE}: 24 records (0 were there), 7 texts\n"
    return tmp_path


def best_ratios():
    """Of each target the geometric mean, over its workloads, of the lowest ratio of a sentence that never failed; stale ones don't count."""
    sentences = {}
    for r in map(json.loads, SAMPLE.read_text().splitlines()):
        if "sentence" in r and not r.get("stale"):
            sentences.setdefault((r["target"], r["workload"], r["sentence"]), []).append(r.get("ratio"))
    best = {}
    for (target, workload, _), ratios in sentences.items():
        if None not in ratios:
            kernels = best.setdefault(target[:8], {})
            kernels[workload] = min(kernels.get(workload, 9), statistics.median(ratios))
    return {target: f"{statistics.geometric_mean(kernels.values()):.3f}" for target, kernels in best.items()}


def test_sums_up(filled):
    lines = ok(filled, "r.db").splitlines()
    assert lines[0] == "r.db: 24 records (4 stale) of 3 workloads on 2 targets"
    assert lines[2].split() == "target workloads ok wrong crash timeout stale best ratio".split()
    assert sorted(line.split("[")[0].strip() for line in lines[3:]) == ["x86-64-v2 1 thread", "x86-64-v3 2 threads strict"]
    assert {line.split("[")[1][:8]: line.split()[-1] for line in lines[3:]} == best_ratios()


def test_names_the_best_sentences(filled):
    text = ok(filled, "r.db", "-v")
    assert "direct mr=" in text
    assert len([line for line in text.splitlines() if "cpu v64 | contraction" in line]) == 6


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.jsonl.zst"])
def test_gives_back_what_came_in(filled, name):
    assert ok(filled, "r.db", "--export", name) == f"exported {name}: 24 records\n"
    if name.endswith(".gz"):
        assert gzip.decompress((filled / name).read_bytes()) == SAMPLE.read_bytes()
    elif name.endswith(".jsonl"):
        assert (filled / name).read_bytes() == SAMPLE.read_bytes()
    assert ok(filled, "second.db", "--import", name).startswith(f"imported {name}: 24 records")
    ok(filled, "second.db", "--export", "again.jsonl")
    assert (filled / "again.jsonl").read_bytes() == SAMPLE.read_bytes()
    assert sorted(p.name for p in filled.iterdir()) == sorted({name, "again.jsonl", "r.db", "second.db"})


def test_merges(filled):
    assert ok(filled, "all.db", "--merge", "r.db", "--merge", "r.db").splitlines() == [
        "merged r.db: 24 records (0 were there), 7 texts", "merged r.db: 0 records (24 were there), 0 texts"]
    ok(filled, "all.db", "--export", "all.jsonl")
    assert (filled / "all.jsonl").read_bytes() == SAMPLE.read_bytes()


def test_says_what_is_wrong(filled):
    (filled / "text.db").write_text("no database, but long enough to be the header of one " * 4)
    (filled / "cut.jsonl").write_bytes(SAMPLE.read_bytes()[:-20])
    (filled / "empty.jsonl").write_bytes(b"")
    lines = SAMPLE.read_text().count("\n")
    for arguments, message in (
            (["missing.db"], "missing.db: no such file"),
            (["missing.db", "--export", "x.jsonl"], "missing.db: no such file"),
            (["text.db"], "text.db: is not a database of records"),
            (["r.db", "--import", "missing.jsonl"], "missing.jsonl: no such file"),
            (["r.db", "--import", "cut.jsonl"], f"cut.jsonl:{lines}: not a JSON object"),
            (["r.db", "--import", "empty.jsonl"], "empty.jsonl: is empty"),
            (["r.db", "--merge", "missing.db"], "missing.db: no such file"),
            (["r.db", "--merge", "text.db"], "text.db: is not a database of records"),
            (["r.db", "--export", "no/such/folder.jsonl"], "no/such/folder.jsonl: can't be written: No such file or directory"),
    ):
        done = call(filled, *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"locution records: {message}\n"), arguments
    done = call(filled, "postgresql://user:geheim@127.0.0.1:1/x")
    assert done.returncode == 1 and done.stderr.startswith("locution records: postgresql://127.0.0.1:1/x: no connection")
    assert "geheim" not in done.stderr
    assert sorted(p.name for p in filled.iterdir()) == ["cut.jsonl", "empty.jsonl", "r.db", "text.db"]
