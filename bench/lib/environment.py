"""Where the benchmark keeps its things, and the virtual environment it runs in."""
import hashlib
import os
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
CACHE = Path(os.environ.get("LOCUTION_BENCH_CACHE") or Path.home() / ".cache" / "locution" / "bench")
MODELS, INPUTS, OUTPUTS, LOGS, RUNS = (CACHE / name for name in ("models", "inputs", "outputs", "logs", "runs"))


def enter():
    """Continues in the benchmark's environment, which is made when it is missing or its requirements have changed; with
    LOCUTION_BENCH_PYTHON=this, in the interpreter at hand."""
    if os.environ.get("LOCUTION_BENCH_PYTHON") == "this":
        return
    venv, wanted = CACHE / "venv", hashlib.sha256((BENCH / "requirements.txt").read_bytes()).hexdigest()
    python, stamp = venv / "bin" / "python", venv / ".requirements"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"making the environment in {venv}", file=sys.stderr, flush=True)
        venv.parent.mkdir(parents=True, exist_ok=True)
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", BENCH / "requirements.txt"], check=True)
        stamp.write_text(wanted)
    if Path(sys.prefix).resolve() != venv.resolve():
        os.execv(python, [str(python), *sys.argv])


def locution(given):
    """The binary: as given, or the release build's."""
    path = Path(given or os.environ.get("LOCUTION") or ROOT / "build" / "release" / "locution")
    if not path.exists():
        sys.exit(f"{path} does not exist: build it (cmake --preset release && cmake --build --preset release) or name one with --locution")
    return str(path)
