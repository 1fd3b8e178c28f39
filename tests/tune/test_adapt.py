"""`locution adapt`: a language model of random weights gets better on a small network, and only where it is asked to."""
import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = str(Path(os.environ.get("LOCUTION") or ROOT / "build" / "release" / "locution").resolve())
TLM = ("--scheduler", "tlm")


def locution(folder, *arguments, code=0):
    done = subprocess.run([BINARY, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def small_network(path):
    rng = np.random.default_rng(0)
    weight = lambda name, *shape: numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
    nodes = [helper.make_node("Conv", ["x", "a"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("Conv", ["r", "b"], ["d"], pads=[1, 1, 1, 1], strides=[2, 2]), helper.make_node("Softmax", ["d"], ["s"], axis=-1),
             helper.make_node("Flatten", ["s"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["y"])]
    graph = helper.make_graph(nodes, "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 32, 32])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 40])],
                              [weight("a", 24, 3, 3, 3), weight("b", 16, 24, 3, 3), weight("w", 4096, 40)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def made_weights(folder, name, seed):
    """A step of training on a few sentences: as good as random."""
    locution(folder, "train", "--drawn", "20", "--layers", "2", "--width", "32", "--heads", "2", "--steps", "1", "--sentences", "8", "--group", "1",
             "--seed", seed, "--output-dir", name)
    return folder / name / "weights.safetensors"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a network, weights, a machine profile, and an adapter beside it; what was so before stands in `before`."""
    folder = tmp_path_factory.mktemp("adapt")
    small_network(folder / "small.onnx")
    made_weights(folder, "w", 1)
    locution(folder, "machine", "-o", "m")
    time.sleep(0.05)  # a file of this moment might still be being written: it isn't cached
    (folder / "before").mkdir()
    (folder / "before" / "sentences").write_text(sentences(folder))
    (folder / "before" / "cache").write_text(cached(folder) + cached(folder))
    (folder / "summary").write_text(adapt(folder).stdout)
    return folder


def common(weights="w/weights.safetensors"):
    return ("--machine", "m", "--tlm-weights", weights)


def adapt(folder, *more, measurements=40):
    return locution(folder, "adapt", "small.onnx", *common(), "--measurements", measurements, "--seed", "3", *more)


def sentences(folder, *more, weights="w/weights.safetensors"):
    return locution(folder, "show", "small.onnx", "--stage", "sentences", *TLM, *common(weights), *more).stdout


def cached(folder, *more):
    locution(folder, "bench", "small.onnx", *TLM, *common(), "--cache", "cache", "--duration", "0.01", "--warmup", "0", "--json", "report.json", *more)
    return json.loads((folder / "report.json").read_text())["cache"] + " "


def test_the_adapter_lies_beside_the_profile_and_is_used(place):
    assert (place / "m.adapter").exists() and (place / "m.records").exists()
    assert not list(place.glob("*.partial"))
    summary = (place / "summary").read_text()
    assert re.match(r"40 plans of [3-9] workloads measured", summary) and "m.adapter: written" in summary
    found = re.search(r"with the best known plans ([\d.]+) \(worst ([\d.]+), (\d+) workloads changed\)", summary)
    assert float(found[1]) > 1 and float(found[2]) >= 1 and int(found[3]) >= 1
    before = (place / "before" / "sentences").read_text()
    adapted = sentences(place)
    assert adapted != before
    assert sentences(place, "--adapter", "off") == before
    assert sentences(place, "--adapter", "m.adapter") == adapted
    # Other schedulers know of no adapter.
    for name in ("a.loc", "b.loc"):
        locution(place, "compile", "small.onnx", "--machine", "m", "-o", name, *(("--adapter", "off") if name == "b.loc" else ()))
    assert (place / "a.loc").read_bytes() == (place / "b.loc").read_bytes()


def test_compiling_is_the_same_each_time_and_computes_the_same(place):
    for name in ("1.loc", "2.loc"):
        locution(place, "compile", "small.onnx", *TLM, *common(), "-o", name)
    assert (place / "1.loc").read_bytes() == (place / "2.loc").read_bytes()
    outputs = []
    for model, *more in (("1.loc",), ("small.onnx",)):
        locution(place, "run", model, *more, "--seed", "5", "--output-dir", "out")
        outputs.append(np.load(place / "out" / "output_0.npy"))
    np.testing.assert_allclose(*outputs, rtol=1e-3, atol=1e-4)


def test_caches_tell_adapters_apart(place):
    assert (place / "before" / "cache").read_text() == "miss hit "
    assert cached(place) + cached(place) == "miss hit "
    assert cached(place, "--adapter", "off") == "hit "
    kept = (place / "m.adapter").read_bytes()
    (place / "other.adapter").write_bytes(kept)
    assert cached(place, "--adapter", "other.adapter") == "hit "  # what is in it counts, not where it lies


def test_records_say_whose_proposals_they_hold(place):
    with sqlite3.connect(f"file:{place}/m.records?mode=ro", uri=True) as db:
        proposers = {row[0] for row in db.execute("SELECT DISTINCT proposer FROM records")}
    own = {p for p in proposers if p.startswith("adapt/")}
    assert "analytic" in proposers and own and all(re.fullmatch(r"adapt/[0-9a-f]{16}", p) for p in own)


def test_going_on_takes_what_was_measured(place, tmp_path):
    for name in ("small.onnx", "m", "m.records"):
        (tmp_path / name).write_bytes((place / name).read_bytes())
    weights = ("--tlm-weights", place / "w" / "weights.safetensors")
    # Without the adapter it is the same model and seed: all of it is known.
    again = locution(tmp_path, "adapt", "small.onnx", "--machine", "m", *weights, "--measurements", "40", "--seed", "3").stdout
    assert re.match(r"0 plans of \d+ workloads measured, \d\d were known", again), again
    assert "m.adapter: written" in again
    # With it, it is another one, which may measure more, into records of its own name.
    more = locution(tmp_path, "adapt", "small.onnx", "--machine", "m", *weights, "--measurements", "10", "--seed", "3").stdout
    assert re.match(r"10 plans of \d+ workloads measured, \d+ were known", more), more


@pytest.mark.parametrize("damage", ["cut", "flipped", "text"])
@pytest.mark.parametrize("beside", [True, False])
def test_a_damaged_adapter_is_one_message(place, tmp_path, damage, beside):
    whole = (place / "m.adapter").read_bytes()
    bytes_ = {"cut": whole[:-10], "flipped": whole[:-10] + bytes([whole[-10] ^ 4]) + whole[-9:], "text": b"no adapter at all"}[damage]
    (tmp_path / "m").write_bytes((place / "m").read_bytes())
    file = "m.adapter" if beside else "other"
    (tmp_path / file).write_bytes(bytes_)
    command = ("compile", place / "small.onnx", *TLM, "--machine", "m", "--tlm-weights", place / "w" / "weights.safetensors", "-o", "x.loc")
    done = locution(tmp_path, *command, *(() if beside else ("--adapter", file)), code=1)
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith(f"locution compile: --adapter: {file}: "), done.stderr
    assert not (tmp_path / "x.loc").exists()
    locution(tmp_path, *command, "--adapter", "off")


def test_an_adapter_of_other_weights(place):
    made_weights(place, "v", 2)
    weights = "v/weights.safetensors"
    plain = sentences(place, "--adapter", "off", weights=weights)
    done = locution(place, "compile", "small.onnx", *TLM, *common(weights), "-o", "v.loc")
    assert "warning: --adapter: m.adapter: the adapter belongs to other weights" in done.stderr
    assert sentences(place, weights=weights) == plain
    done = locution(place, "compile", "small.onnx", *TLM, *common(weights), "--adapter", "m.adapter", "-o", "v.loc", code=1)
    assert "--adapter: m.adapter: the adapter belongs to other weights" in done.stderr


def test_an_interrupt_ends_with_what_there_is(place, tmp_path):
    (tmp_path / "m").write_bytes((place / "m").read_bytes())
    process = subprocess.Popen([BINARY, "adapt", place / "small.onnx", "--machine", "m", "--tlm-weights", place / "w" / "weights.safetensors", "--minutes", "20"],
                               cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(600):  # until something is stored
        time.sleep(0.1)
        try:
            with sqlite3.connect(f"file:{tmp_path}/m.records?mode=ro", uri=True) as db:
                if db.execute("SELECT count(*) FROM records WHERE proposer != 'analytic'").fetchone()[0] > 60:
                    break
        except sqlite3.OperationalError:
            pass
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    assert "interrupted: going on with what there is" in errors
    assert "interrupted: the same command goes on" in out
    assert (tmp_path / "m.adapter").exists() == ("m.adapter: written" in out)


def test_an_adapter_by_train(place):
    locution(place, "train", "--records", "m.records", "--lora", "4", "--from", "w/weights.safetensors", "--steps", "4", "--sentences", "8", "--group", "4",
             "--output-dir", "trained")
    assert sentences(place, "--adapter", "trained/adapter.safetensors")
    done = locution(place, "train", "--records", "m.records", "--lora", "4", "--output-dir", "trained", code=1)
    assert "--lora: want a rank of at least 1, and --from WEIGHTS that it is for" in done.stderr


def test_evaluate_judges_with_and_without(place):
    rows = {}
    for adapter in ("m.adapter", "off"):
        locution(place, "evaluate", "small.onnx", *common(), "--adapter", adapter, "--contender", "tlm", "--records", "best.db", "--rounds", "1", "--json", "e.json")
        rows[adapter] = {r["workload"]: r["ratios"]["tlm"] for r in json.loads((place / "e.json").read_text())["workloads"]}
    assert rows["off"].keys() == rows["m.adapter"].keys() and len(rows["off"]) >= 3
    assert rows["off"] != rows["m.adapter"]


def test_a_machine_is_measured_where_it_has_no_profile(place, tmp_path):
    locution(tmp_path, "adapt", place / "small.onnx", "--machine", "new", "--tlm-weights", place / "w" / "weights.safetensors", "--measurements", "5")
    assert "peakGflops" in (tmp_path / "new").read_text()
    # Without a profile the built-in values are the machine, and the adapter has to be named.
    locution(tmp_path, "adapt", place / "small.onnx", "--adapter", "named", "--tlm-weights", place / "w" / "weights.safetensors", "--measurements", "5")
    assert (tmp_path / "named.records").exists()


@pytest.mark.parametrize("arguments, message", [
    (("--measurements", "5"), "want --machine FILE, the machine's profile"),
    (("--machine", "m", "--measurements", "-1"), "--measurements: at least 1, or 0 for no limit"),
    (("--machine", "m", "--minutes", "-1"), "--minutes: want a number of minutes"),
    (("--machine", "m", "--rank", "0"), "--rank: want 1 to 256"),
    (("--machine", "m", "--adapter", "off"), "--adapter off: there would be nothing to make"),
])
def test_what_cannot_be_asked(place, arguments, message):
    done = locution(place, "adapt", "small.onnx", "--tlm-weights", "w/weights.safetensors", *arguments, code=1)
    assert message in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.skipif((ROOT / "models" / "tlm" / "tlm.safetensors").exists(), reason="weights are built in")
def test_without_weights(place):
    done = locution(place, "adapt", "small.onnx", "--machine", "m", code=1)
    assert done.stderr == "locution adapt: this build has no weights of the language model; give some with --tlm-weights FILE\n"
