"""Engines in turns: each a process that has compiled and warmed up and waits; one short block after the other, so that what the machine
does meanwhile hits all of them. Ratios are taken round by round."""
import json
import math
import os
import queue
import shutil
import statistics
import subprocess
import sys
import threading
import time

import numpy as np
from environment import BENCH, LOGS, OUTPUTS
from equality import difference

import models

READY_SECONDS, BLOCK_SECONDS = 1200, 300
TRIES = 5
PEERS = ("onnxruntime", "openvino")
NAMES = {"locution": "Locution", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}


class Contestant:
    def __init__(self, engine, name, inputs, threads, locution, flags):
        self.engine, self.bad, self.rounds, self.samples, self.process = engine, None, [], [], None
        self.folder = OUTPUTS / f"{name}.{engine}.{threads}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        LOGS.mkdir(parents=True, exist_ok=True)
        self.log = LOGS / f"{name}.{engine}.{threads}.txt"
        given = [f"{k}={v}" for k, v in models.input_files(name, inputs).items()]
        model = str(models.path_of(name))
        if engine == "locution":
            command = [locution, "bench", model, "--threads", str(threads), "--blocks", "--output-dir", str(self.folder), *flags]
            command += [part for text in given for part in ("--input", text)]
        else:
            command = [sys.executable, str(BENCH / "lib" / "worker.py"), engine, model, str(threads), str(self.folder), *given]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                                            env=dict(os.environ, OMP_NUM_THREADS=str(threads)))
        self.lines = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()
        self.ready = self.answer(READY_SECONDS)
        if not self.ready.get("ok"):
            self.bad = self.ready.get("err", "does not start")

    def listen(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def answer(self, limit):
        end = time.perf_counter() + limit
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, end - time.perf_counter()))
            except queue.Empty:
                self.process.kill()
                return {"err": f"no answer in {limit} s"}
            if line is None:
                return {"err": f"ends with code {self.process.wait()}: {self.log.read_text()[-300:].strip()}"}
            if line.startswith("@@"):
                return json.loads(line[2:])

    def block(self, seconds):
        """One turn; again when its samples don't account for the time, for the machine may have been elsewhere."""
        for _ in range(TRIES):
            self.bad = self.turn(seconds)
            if not self.bad or not self.bad.startswith("its samples"):
                return

    def turn(self, seconds):
        start = time.perf_counter()
        try:
            self.process.stdin.write(f"{seconds}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer says why
        answer, passed = self.answer(BLOCK_SECONDS), time.perf_counter() - start
        if "s" not in answer:
            return answer.get("err", "no samples")
        told = self.ready.get("batch", 1) * sum(s for s, _ in answer["s"])
        if not 0.7 * passed - 0.1 < told < 1.05 * passed:
            return f"its samples add up to {told:.2f} s of {passed:.2f} s"
        # Samples in which another process had the core say nothing of the engine, unless there are no others.
        clean = [s for s, switches in answer["s"] if switches == 0] or [s for s, _ in answer["s"]]
        self.samples += clean
        self.rounds.append(statistics.median(clean))
        return None

    def outputs(self):
        files = sorted(self.folder.glob("output_*.npy"), key=lambda p: int(p.stem.split("_")[1]))
        return [np.load(f) for f in files]

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(20)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def spread(values):
    """Median, 10 % and 90 %."""
    v = sorted(values)
    return [statistics.median(v), v[int(0.1 * (len(v) - 1))], v[math.ceil(0.9 * (len(v) - 1))]]


def contest(name, threads, engines, locution, flags, rounds, block):
    """One model at one number of threads: {engine: {ms, p10, p90, ...} or {bad}} and the ratios of Locution."""
    known = models.obtain(name)
    contestants = []
    for engine in engines:
        contestants.append(Contestant(engine, name, known["inputs"], threads, locution, flags))
    try:
        seconds = max([block] + [5 * c.ready["est"] for c in contestants if not c.bad and c.ready["est"] < 3])
        for r in range(rounds):
            for c in contestants if r % 2 == 0 else contestants[::-1]:
                if not c.bad:
                    c.block(seconds)
        judge = next((c for c in contestants if c.engine in PEERS and not c.bad), None)
        for c in contestants:
            if judge and c is not judge and not c.bad:
                off = difference(judge.outputs(), c.outputs())
                if off:
                    c.bad = f"not equal to {NAMES[judge.engine]}: {off}"
    finally:
        for c in contestants:
            c.close()
    row = {"model": name, "threads": threads, "operations": known["operations"], "engines": {}}
    for c in contestants:
        if c.bad:
            row["engines"][c.engine] = {"bad": c.bad}
            continue
        ms, low, high = spread([s * 1e3 for s in c.samples])
        info = c.ready["info"]
        row["engines"][c.engine] = {"ms": ms, "p10": low, "p90": high, "rounds": [s * 1e3 for s in c.rounds], "compile_s": info["compile_s"], "rss_mb": info["rss_mb"]}
        if "version" in info:
            row["engines"][c.engine]["version"] = info["version"]
    good = {e: d for e, d in row["engines"].items() if "ms" in d}
    peers = [e for e in good if e in PEERS]
    if "locution" in good and peers:
        best = min(peers, key=lambda e: good[e]["ms"])
        row["best_peer"] = best
        row["ratio"] = spread([p / o for o, p in zip(good["locution"]["rounds"], good[best]["rounds"])])
        row["ratios"] = {e: spread([p / o for o, p in zip(good["locution"]["rounds"], good[e]["rounds"])]) for e in peers}
    return row


def geometric_mean(values):
    return math.exp(statistics.mean(map(math.log, values)))
