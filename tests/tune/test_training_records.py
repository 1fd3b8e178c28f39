"""The records in models/tlm/records, which the language model learns from: what they hold, and that they hold nothing that was held out."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("LOCUTION") or str(ROOT / "build" / "release" / "locution")
FILES = sorted((ROOT / "models" / "tlm" / "records").glob("*.jsonl.zst"))


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    place = tmp_path_factory.mktemp("records") / "r.db"
    call("records", place, *(argument for file in FILES for argument in ("--import", file)))
    return place


@pytest.fixture(scope="module")
def rows(database):
    call("records", database, "--export", database.with_suffix(".jsonl"))
    return [r for r in map(json.loads, database.with_suffix(".jsonl").read_text().splitlines()) if "sentence" in r]


def call(*arguments):
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_small_and_distinct(rows):
    assert sum(file.stat().st_size for file in FILES) <= 25 << 20
    known = {(r["workload"], r["target"], r["sentence"]) for r in rows}
    assert len(known) > 100_000
    assert len({workload for workload, _, _ in known}) >= 400


def trained(cpu, threads, corpus):
    """Keys of the workloads of the corpus that was collected from, without those that are held out."""
    listed = call("collect", corpus, "--drawn", "500", "--seed", "1", "--held-out", ROOT / "models" / "tlm" / "held_out.txt",
                  "--part", "training", "--on", f"{cpu}:{threads}", "--list")
    return {line.split("\t")[7] for line in listed.splitlines()}


def test_nothing_that_was_held_out(database, rows, tmp_path):
    # "x86-64-v4 2 threads [10aeb3f5]": the target's name and the start of its key.
    targets = {key: (cpu, threads) for cpu, threads, key in re.findall(r"^(\S+) (\d+) threads? \[(\w{8})\]", call("records", database), re.M)}
    assert len(targets) >= 3 and ("x86-64-v3", "2") not in targets.values()
    subprocess.run([sys.executable, str(ROOT / "scripts" / "corpus.py"), str(tmp_path)], check=True, capture_output=True, timeout=300)
    for key, target in targets.items():
        measured = {r["workload"] for r in rows if r["target"][:8] == key}
        assert measured and not measured - trained(*target, tmp_path)
