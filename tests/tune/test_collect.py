"""`locution collect`: the same plans whoever measures them, and nothing lost by whoever is killed."""
import json
import os
import pwd
import random
import shutil
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

BINARY = os.environ.get("LOCUTION") or str(Path(__file__).resolve().parent.parent.parent / "build" / "release" / "locution")
FULL = os.environ.get("LOCUTION_FULL") == "1"
SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


def command(where, *arguments, seed=5, plans=12, drawn=3):
    return [BINARY, "collect", "--drawn", str(drawn), "--plans", str(plans), "--seed", str(seed), "--most-points", "1e6", "--records", str(where), *arguments]


def collect(where, *arguments, **numbers):
    done = subprocess.run(command(where, *arguments, **numbers), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def measured(where):
    """What a database holds, as (workload, target, sentence), by way of an export."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/all.jsonl"
        done = subprocess.run([BINARY, "records", str(where), "--export", file], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

        rows = [json.loads(line) for line in Path(file).read_text().splitlines()]
    return [(r["workload"], r["target"], r["sentence"]) for r in rows if r.get("proposer") == "collect"]


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


@pytest.fixture
def server():
    """A PostgreSQL server of the test's own, in a folder that its user may read."""
    if not SERVERS:
        pytest.skip("no PostgreSQL server is installed (Debian's package postgresql)")
    programs, folder = SERVERS[-1].parent, tempfile.mkdtemp(prefix="locution-postgres-")
    user = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        user = dict(user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, env={**os.environ, "LC_ALL": "C"}, **user)
    subprocess.run([programs / "initdb", "-D", f"{folder}/data", "-U", "locution", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"], check=True, **quiet)
    process = subprocess.Popen([programs / "postgres", "-D", f"{folder}/data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"], **quiet)
    for _ in range(600):
        if subprocess.run([programs / "pg_isready", "-q", "-h", folder, "-U", "locution"], **quiet).returncode == 0:
            break
        time.sleep(0.05)
    yield f"postgresql://locution@/postgres?host={folder}"
    process.terminate()
    process.wait()
    shutil.rmtree(folder)


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
        if not place.exists():
            continue
        with sqlite3.connect(place) as db:
            now = {row[0] for row in db.execute("SELECT id FROM records")}
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
