"""Random graphs of fuzz_graphs, on ONNX Runtime with its optimisations off: a second opinion on what the operators mean. What it lacks
(a type, an operator, an opset) is skipped, and counted. Where the two differ, the nodes are asked one by one, on the values they read
here: each difference must be one of known_differences.py. LOCUTION_FUZZ_COUNT asks for more graphs than every run takes,
LOCUTION_FUZZ_SEED for others."""
import collections
import os
import subprocess
from pathlib import Path

import known_differences
import pytest
import second_opinion

FULL = os.environ.get("LOCUTION_FULL") == "1"
BINARY = Path(os.environ.get("LOCUTION") or second_opinion.ROOT / "build" / "release" / "locution")
FUZZER = BINARY.parent / "test" / "fuzz_graphs"


def text(node):
    shorten = lambda arrays: [a if a is None else f"{a.dtype}{list(a.shape)} {a.reshape(-1)[:6]}" for a in arrays]
    return f"{node.op} {node.attributes} of {shorten(node.inputs)}: {shorten(node.ours)}, ONNX Runtime says {shorten(node.theirs)}"


@pytest.mark.skipif(not FUZZER.is_file(), reason="the fuzzer is not built")
def test_random_graphs(tmp_path):
    count, seed = int(os.environ.get("LOCUTION_FUZZ_COUNT", 1000 if FULL else 150)), os.environ.get("LOCUTION_FUZZ_SEED", "7000000")
    cases = tmp_path / "cases"
    done = subprocess.run([FUZZER, "--seed", seed, "--count", str(count), "--seconds", "3600", "--dump", cases], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    compared, skipped, known, wrong, ops = 0, collections.Counter(), collections.Counter(), [], collections.Counter()
    for folder in sorted(cases.iterdir(), key=lambda f: int(f.name)):
        try:
            model, feeds, wanted = second_opinion.read(folder)
            results = second_opinion.run(model, feeds, list(wanted))
        except second_opinion.Unsupported as error:
            skipped[str(error)] += 1
            continue
        compared += 1
        ops.update({n.op_type for n in model.graph.node})
        if all(second_opinion.equal(got, wanted[name]) for name, got in zip(wanted, results)):
            continue
        nodes = second_opinion.nodes_that_differ(BINARY, model, feeds, tmp_path)
        known.update([known_differences.why(n) or "not known" for n in nodes] or ["a rounding that later nodes made much of"])
        wrong += [f"seed {folder.name}: {text(n)}" for n in nodes if not known_differences.why(n)]
    print(f"{compared} graphs of {len(ops)} operators compared, {sum(skipped.values())} skipped, {sum(known.values())} known differences")
    for what in (known, skipped):
        for reason, n in what.most_common(20):
            print(f"  {n} {reason}")
    assert compared >= count // 10
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:40])
