#!/usr/bin/env python3
"""Checks what no compiler checks: who includes whom, where third-party types may appear, and how long a file may be.
usage: scripts/layering.py      prints each violation as file:line: message; exit code 1 if there is one"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# folder -> the folders it builds on directly; what those build on may be included too.
EDGES = {
    "support": [],
    "core": ["support"],
    "graph": ["core"],
    "loop": ["core"],
    "hostops": ["core"],
    "ops": ["graph", "loop", "hostops"],
    "frontend": ["ops"],
    "passes": ["ops"],
    "schedule": ["loop"],
    "runtime": ["core", "hostops"],
    "space": ["ops", "schedule"],
    "language": ["space"],
    "records": ["language"],
    "generator": ["language", "records", "runtime"],
    "codegen": ["loop", "runtime"],
    "targets": ["codegen", "schedule", "space"],
    "tune": ["generator", "records", "codegen", "runtime"],
    "driver": ["frontend", "passes", "ops", "targets", "tune"],
    "train": ["driver"],
}
TOP = {"include": ["runtime"], "tools": ["driver", "train"], "python": ["driver", "train"],
       "tests": ["driver", "train"], "bench": ["driver", "train"], "examples": []}

# Third-party headers, by pattern, and the only folders that may include them.
CONFINED = [
    (re.compile(r"(llvm|llvm-c|clang|lld)/"), "LLVM", ("src/targets/cpu/",)),
    (re.compile(r"google/protobuf/|onnx[\w-]*\.pb\.h|onnx/onnx"), "protobuf", ("src/frontend/onnx/",)),
    (re.compile(r"sqlite3\.h"), "SQLite", ("src/records/",)),
    (re.compile(r"libpq"), "libpq", ("src/records/",)),
    (re.compile(r"xgboost/"), "XGBoost", ("src/generator/search/",)),
    (re.compile(r"CLI/"), "CLI11", ("tools/",)),
]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
MAX_LINES = 1000


def reachable(folder, edges):
    """The folder and everything below it."""
    found, todo = {folder}, list(edges.get(folder, []))
    while todo:
        at = todo.pop()
        if at not in found:
            found.add(at)
            todo += edges.get(at, [])
    return found


def cycle(edges):
    """A folder that (indirectly) builds on itself, or None."""
    for folder, below in edges.items():
        if any(folder in reachable(b, edges) for b in below):
            return folder
    return None


def owner(path):
    """(name of the layer, the folders it may include) of a file, or (None, None) where no rule applies."""
    parts = path.parts
    if parts[0] == "src" and len(parts) > 2:
        if parts[1] not in EDGES:
            return parts[1], None
        return parts[1], reachable(parts[1], EDGES)
    if parts[0] in TOP:
        allowed = set()
        for folder in TOP[parts[0]]:
            allowed |= reachable(folder, EDGES)
        return parts[0], allowed
    return None, None


def violations(path, text):
    layer, allowed = owner(path)
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        yield 1, f"{len(lines)} lines; split it by theme (the cap is {MAX_LINES})"
    if path.suffix == ".py" or layer is None:
        return
    if allowed is None:
        yield 1, f"src/{layer} is not in scripts/layering.py: say which folders it builds on"
        return
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, name = match.groups()
        for pattern, library, homes in CONFINED:
            if pattern.match(name) and not str(path).startswith(homes):
                yield number, f"{library} is included only in {', '.join(homes)}: {name}"
        target = name.split("/")[0]
        if quote == '"' and "/" in name and target in EDGES and target not in allowed:
            yield number, f"{layer} may not include {target} ({name})"


def files():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            check=True, capture_output=True).stdout.decode().split("\0")
    keep = {".h", ".hpp", ".cpp", ".c", ".inc", ".py"}
    return sorted(Path(f) for f in listed if Path(f).suffix in keep and (ROOT / f).is_file())


def main():
    loop = cycle(EDGES)
    if loop:
        sys.exit(f"scripts/layering.py: {loop} builds on itself")
    bad = 0
    for path in files():
        for number, message in violations(path, (ROOT / path).read_text(errors="replace")):
            print(f"{path}:{number}: {message}")
            bad += 1
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
