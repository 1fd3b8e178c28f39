#!/usr/bin/env python3
"""Runs clang-tidy on the C++ that changed since it last passed. What a file's result depends on (its text, the project's
headers it includes, its compile command, .clang-tidy) is hashed from ninja's dependency log, so an unchanged tree costs
a second.
usage: scripts/tidy.py [--all]     (--all: forget what passed before)"""
import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
PASSED = ROOT / "build" / "tidy"
TIDY = "clang-tidy-22"


def dependencies():
    """object -> the project's files it was compiled from."""
    log = subprocess.run(["ninja", "-C", str(BUILD), "-t", "deps"], check=True, capture_output=True, text=True).stdout
    found, current = {}, []
    for line in log.splitlines():
        if line.startswith("    "):
            path = (BUILD / line.strip()).resolve()
            if path.is_relative_to(ROOT):
                current.append(path)
        elif ": #deps" in line:
            current = found.setdefault(line.split(": #deps")[0], [])
    return found


def jobs():
    """(source, key) of every file to lint; tests are left out: GoogleTest's macros trip half of the checks."""
    deps = dependencies()
    config = (ROOT / ".clang-tidy").read_bytes()
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        source = Path(entry["file"])
        if not source.is_relative_to(ROOT) or source.is_relative_to(ROOT / "build") or source.suffix != ".cpp":
            continue
        if re.search(r"_(test|bench)\.cpp$", source.name) or source.is_relative_to(ROOT / "tests"):
            continue
        key = hashlib.sha256(config + entry["command"].encode())
        output = re.search(r" -o (\S+)", entry["command"]).group(1)
        for path in sorted(deps.get(output, [source])):
            if path.is_file():
                key.update(str(path).encode() + path.read_bytes())
        yield source, key.hexdigest()


def lint(job):
    source, key = job
    done = subprocess.run([TIDY, "-p", str(BUILD), "--quiet", "--warnings-as-errors=*",
                           "--extra-arg=-Wno-deprecated-declarations", str(source)],
                          capture_output=True, text=True)
    if done.returncode == 0:
        (PASSED / key).touch()
        return True
    print(done.stdout or done.stderr, flush=True)
    return False


def main():
    PASSED.mkdir(parents=True, exist_ok=True)
    todo = [j for j in jobs() if "--all" in sys.argv or not (PASSED / j[1]).exists()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lint, todo))
    print(f"clang-tidy: {len(todo)} files looked at, {results.count(False)} with findings")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
