#!/usr/bin/env python3
"""Training steps of a GPT-2 in turns: Locution's compiled step against PyTorch eager with its fused AdamW, float32, the same data.
usage: bench/train_duel.py [--sentences 64 256] [--rounds 15] [--threads 2]     needs build/release/test/train_step and a Python with PyTorch
(LOCUTION_TORCH_PYTHON, or that of ~/.cache/locution-train-venv). One step each, in turns; the ratio is that of the medians."""
import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = Path(os.environ.get("LOCUTION_TORCH_PYTHON", Path.home() / ".cache/locution-train-venv/bin/python"))


class Partner:
    """A program that answers each line with one."""

    def __init__(self, command):
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.greeting = self.process.stdout.readline().strip()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def duel(shape, threads, rounds, folder):
    ours = Partner([ROOT / "build/release/test/train_step", *shape, threads])
    ours.ask(f"given {folder}/given")
    theirs = Partner([PYTHON, ROOT / "tests/train/torch_step.py", *shape, threads, f"{folder}/given"])
    times = {ours: [], theirs: []}
    for i in range(rounds + 3):
        for partner in (ours, theirs) if i % 2 else (theirs, ours):
            seconds = float(partner.ask("step 0.0001")[0])
            if i >= 3:
                times[partner].append(seconds)
    print(ours.greeting)
    for partner in times:
        partner.close()
    return times[ours], times[theirs]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=int, nargs=4, default=[4, 128, 4, 1400], help="layers, width, heads, words")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--sentences", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    for sentences in args.sentences:
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = duel((*args.model, args.length, sentences), args.threads, args.rounds, folder)
        tokens = sentences * args.length
        mine, other = statistics.median(ours), statistics.median(theirs)
        print(f"{sentences} sentences: {tokens / mine:.0f} tokens/s against {tokens / other:.0f}: {other / mine:.2f} times "
              f"(spread {min(ours) * 1e3:.0f}-{max(ours) * 1e3:.0f} ms against {min(theirs) * 1e3:.0f}-{max(theirs) * 1e3:.0f})")


if __name__ == "__main__":
    main()
