"""`locution collect`: the same plans whoever measures them, and nothing lost by whoever is killed."""
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

BINARY = os.environ.get("LOCUTION") or str(Path(__file__).resolve().parent.parent.parent / "build" / "release" / "locution")
FULL = os.environ.get("LOCUTION_FULL") == "1"


def command(where, *arguments, seed=5, plans=12, drawn=3):
    return [BINARY, "collect", "--drawn", str(drawn), "--plans", str(plans), "--seed", str(seed), "--most-points", "1e6", "--records", str(where), *arguments]


def collect(where, *arguments, **numbers):
    done = subprocess.run(command(where, *arguments, **numbers), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def everything(where, proposer=None):
    """What a database holds, as (workload, target, sentence), by way of an export."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/all.jsonl"
        done = subprocess.run([BINARY, "records", str(where), "--export", file], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

        rows = [json.loads(line) for line in Path(file).read_text().splitlines()]
    return [(r["workload"], r["target"], r["sentence"]) for r in rows if "proposer" in r and proposer in (None, r["proposer"])]


def measured(where):
    return everything(where, "collect")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    place = tmp_path_factory.mktemp("alone") / "r.db"
    out = collect(place)
    assert "measured in" in out
    found = measured(place)
    assert len(found) == len(set(found)) >= 20
    return set(found)


def test_the_seed_says_what_is_measured(alone, tmp_path):
    assert "are done by others or before" in collect(tmp_path / "r.db") + collect(tmp_path / "r.db")
    assert set(measured(tmp_path / "r.db")) == alone
    collect(tmp_path / "other.db", seed=6)
    assert set(measured(tmp_path / "other.db")).isdisjoint(alone)


def together(where):
    both = [subprocess.Popen(command(where, "--jobs", "1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors


def test_two_collectors_share_a_file(alone, tmp_path):
    together(tmp_path / "r.db")
    assert set(measured(tmp_path / "r.db")) == alone


def test_two_collectors_share_a_server(alone, server):
    together(server)
    assert set(measured(server)) == alone


def test_kills_lose_nothing(tmp_path):
    place, times = tmp_path / "r.db", random.Random(1)
    stored = set()
    for _ in range(500 if FULL else 8):
        process = subprocess.Popen(command(place, drawn=40, plans=60), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(times.uniform(0.1, 1.5))
        process.kill()
        process.wait()
        try:
            with sqlite3.connect(f"file:{place}?mode=ro", uri=True) as db:
                now = {row[0] for row in db.execute("SELECT id FROM records")}
        except sqlite3.OperationalError:
            now = set()  # killed before there was a file, or a table in it
        assert stored <= now
        stored = now
    done = subprocess.run([BINARY, "records", str(place)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert stored


HELD_OUT = """# what learning may not see
op LayerNormalization
depthwise 5x5  # EfficientNet's
factor 13
target x86-64-v2 3
"""


def test_held_out_workloads(tmp_path):
    (tmp_path / "held.txt").write_text(HELD_OUT)

    def listed(*arguments):
        done = subprocess.run([BINARY, "collect", "--drawn", "120", "--list", "--held-out", str(tmp_path / "held.txt"), *arguments],
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]

    everything = listed()
    groups = {g for row in everything for g in row[6].split(",")}
    assert {"op LayerNormalization", "depthwise 5x5", "factor 13", "-"} <= groups
    for row in everything:
        assert ("op LayerNormalization" in row[6]) == ("LayerNormalization" in row[5].split(","))
    training, held = listed("--part", "training"), listed("--part", "held-out")
    assert all(row[6] == "-" for row in training) and all(row[6] != "-" for row in held)
    assert sorted(training + held) == sorted(everything)
    assert not {row[0] for row in training} & {row[0] for row in held}
    assert all("target x86-64-v2 3" in row[6] for row in listed("--on", "x86-64-v2:3"))


def test_the_corpus_and_what_is_held_out_of_it(tmp_path):
    root = Path(__file__).resolve().parent.parent.parent
    subprocess.run([sys.executable, root / "scripts" / "corpus.py", tmp_path], check=True, capture_output=True)
    done = subprocess.run([BINARY, "collect", str(tmp_path), "--list", "--held-out", str(root / "models" / "tlm" / "held_out.txt")],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert sum(row[6] == "-" for row in rows) >= 400
    for group in ("model ppocr_det", "model ppocr_rec", "model yolo_320n", "model captcha_det", "factor 13", "depthwise 5x5"):
        assert sum(group in row[6].split(",") for row in rows) >= 25, group
    assert len({row[0] for row in rows}) == len(rows)


@pytest.mark.parametrize("text, message", [
    ("model", "held.txt:1: want a group and its name, not 'model'"),
    ("\nextent 13", "held.txt:2: there is no group 'extent' (there are: model, op, depthwise, factor, target)"),
    ("depthwise 5", "held.txt:1: 'depthwise 5' has no valid number"),
    ("target x86-64-v3 none", "held.txt:1: 'target x86-64-v3 none' has no valid number"),
])
def test_a_list_that_is_none(tmp_path, text, message):
    (tmp_path / "held.txt").write_text(text)
    done = subprocess.run([BINARY, "collect", "--drawn", "1", "--list", "--held-out", str(tmp_path / "held.txt")], capture_output=True, text=True)
    assert done.returncode == 1 and message in done.stderr


def test_records_are_measured_again(tmp_path):
    collect(tmp_path / "r.db")
    command = [BINARY, "records", str(tmp_path / "r.db"), "--again", "8", "-v"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    *lines, last = done.stdout.splitlines()
    assert last.startswith("8 of 8 records measured again; the ratio to the incumbent differs by ")
    sentences = [line.split("  ")[-1] for line in lines]
    assert len(sentences) == 8 and set(sentences) <= {s for _, _, s in everything(tmp_path / "r.db")}
    assert [line.split("  ")[-1] for line in subprocess.run(command, capture_output=True, text=True, timeout=300).stdout.splitlines()[:-1]] == sentences


def test_nothing_to_measure_again(tmp_path):
    sample = Path(__file__).resolve().parent.parent / "records" / "sample.jsonl"
    subprocess.run([BINARY, "records", str(tmp_path / "r.db"), "--import", str(sample)], check=True, capture_output=True, timeout=60)
    done = subprocess.run([BINARY, "records", str(tmp_path / "r.db"), "--again", "3"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "no record was timed on a machine like this one" in done.stderr
