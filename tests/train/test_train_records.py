"""`locution train` on measured records; killed and started again it ends with the same bytes."""
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

BINARY = os.environ.get("LOCUTION") or str(Path(__file__).resolve().parent.parent.parent / "build" / "release" / "locution")
STEPS = 24


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    place = tmp_path_factory.mktemp("records") / "r.db"
    done = subprocess.run([BINARY, "collect", "--drawn", "4", "--plans", "10", "--seed", "5", "--most-points", "1e6", "--records", str(place)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return place


FLAGS = {"--steps": STEPS, "--every": 4, "--sentences": 8, "--layers": 1, "--width": 32, "--heads": 2, "--seed": 3, "--validation": 0.2}


def command(records, folder, changed=None):
    flags = {"--records": records, "--output-dir": folder, **FLAGS, **(changed or {})}
    return [BINARY, "train", *(str(word) for pair in flags.items() for word in pair)]


def train(records, folder):
    done = subprocess.run(command(records, folder), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_says_how_it_goes_and_ends_with_the_same_bytes_after_a_kill(records, tmp_path):
    said = train(records, tmp_path / "straight")
    assert f"step {STEPS} of {STEPS}: loss" in said and "tokens/s" in said and "left" in said
    weights = (tmp_path / "straight/weights.safetensors").read_bytes()
    lines = [json.loads(line) for line in (tmp_path / "straight/train.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(4, STEPS + 1, 4))
    assert lines[-1]["policy"] < lines[0]["policy"]
    assert "held_out_accuracy" in lines[0]
    assert (tmp_path / "straight/train.svg").read_text().startswith("<svg")

    process = subprocess.Popen(command(records, tmp_path / "killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    checkpoint = tmp_path / "killed/checkpoint.safetensors"
    for _ in range(6000):
        if checkpoint.exists() or process.poll() is not None:
            break
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert checkpoint.exists()
    if not (tmp_path / "killed/weights.safetensors").exists():
        assert "goes on after step" in train(records, tmp_path / "killed")
    assert (tmp_path / "killed/weights.safetensors").read_bytes() == weights


def test_weights_write_plans(records, tmp_path):
    train(records, tmp_path / "w")
    model = tmp_path / "product.txt"
    model.write_text('graph "product" {\n  input %a: float32[64x96]\n  input %b: float32[96x48]\n  %y: float32[64x48] = MatMul(%a, %b)\n  output %y\n}\n')
    done = subprocess.run([BINARY, "verify", str(model), "--scheduler", "tlm:greedy", "--tlm-weights", str(tmp_path / "w/weights.safetensors")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_another_training_in_the_same_folder_is_an_error(records, tmp_path):
    train(records, tmp_path / "w")
    done = subprocess.run(command(records, tmp_path / "w", {"--rate": 0.5}), capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "checkpoint.safetensors: was made with schedule" in done.stderr


@pytest.mark.parametrize("changed, message", [
    ({"--heads": 5}, "--width: want a multiple of --heads"),
    ({"--sentences": 6, "--group": 4}, "a step of 6 sentences can't be cut in groups of 4"),
    ({"--steps": 0}, "--steps: at least 1"),
    ({"--validation": 1}, "--validation: want 0 to 1"),
])
def test_says_what_is_wrong(records, tmp_path, changed, message):
    done = subprocess.run(command(records, tmp_path / "w", changed), capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert message in done.stderr
