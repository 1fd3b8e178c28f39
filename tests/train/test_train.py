"""`locution train` on what the rules write for drawn networks: no records are needed."""
import json
import os
import subprocess
from pathlib import Path

BINARY = os.environ.get("LOCUTION") or str(Path(__file__).resolve().parent.parent.parent / "build" / "release" / "locution")
SMALL = ["--layers", "1", "--width", "16", "--heads", "2", "--sentences", "8", "--group", "1", "--every", "2"]


def train(folder, *arguments, code=0):
    done = subprocess.run([BINARY, "train", *arguments], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    return done


def test_drawn_sentences_are_learnt_the_same_each_time(tmp_path):
    arguments = ["--drawn", "60", "--on", "x86-64-v2:1", "--on", "x86-64-v4:2", "--steps", "6", *SMALL]
    for name in ("a", "b"):
        train(tmp_path, *arguments, "--output-dir", name)
    assert (tmp_path / "a" / "weights.safetensors").read_bytes() == (tmp_path / "b" / "weights.safetensors").read_bytes()
    log = [json.loads(line) for line in (tmp_path / "a" / "train.jsonl").read_text().splitlines()]
    assert [line["step"] for line in log] == [2, 4, 6]
    assert log[-1]["policy"] < log[0]["policy"]
    assert (tmp_path / "a" / "train.svg").read_text().startswith("<svg")


def test_held_out_workloads_are_not_drawn(tmp_path):
    (tmp_path / "held.txt").write_text("factor 13\n")

    def workloads(*arguments):
        text = train(tmp_path, "--drawn", "40", "--steps", "2", *SMALL, *arguments, "--output-dir", "w" + str(len(arguments))).stderr
        return int(text.split(" workloads (")[0].split()[-1])

    assert 0 < workloads("--held-out", "held.txt") < workloads()


def test_nothing_to_learn_from(tmp_path):
    done = train(tmp_path, "--output-dir", "w", code=1)
    assert "want --records with measured sentences, or --drawn N networks, to learn from" in done.stderr
