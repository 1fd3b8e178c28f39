#!/usr/bin/env python3
"""Writes docs/command-line.md from the table of flags (tools/locution/flags.inc) and of subcommands (tools/locution/main.cpp).
usage: command_line.py [--check]     --check: change nothing, exit 1 when the page is old"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "command-line.md"
HEAD = """# The command line

Made by `scripts/command_line.py` from the tables in `tools/locution/`; don't edit.

MODEL is a .onnx file or a graph as text (`locution show --stage graph` prints one, `locution reduce` writes one); for run, bench and show
also a compiled .loc. RECORDS is a file of records, or the URI of a PostgreSQL database (`postgresql://user@host/name`). Exit code 0; 1 with one message on standard error for anything you
can mend; 70 for a bug of ours, with a file to report.

"""


def page():
    commands = re.findall(r'\{"(\w+)", \'(\w)\', "([^"]+)"', (ROOT / "tools/locution/main.cpp").read_text())
    flags = re.findall(r'^FLAG\("([^"]+)", \w+, "(\w+)",\s*"((?:[^"\\]|\\.)*)"\)', (ROOT / "tools/locution/flags.inc").read_text(), re.M)
    out = HEAD + "| command | what it does |\n|---|---|\n"
    out += "".join(f"| `locution {name}` | {text} |\n" for name, _, text in commands)
    out += "\n| flag | " + " | ".join(name for name, _, _ in commands) + " | meaning |\n|---|" + "---|" * (len(commands) + 1) + "\n"
    for flag, letters, text in flags:
        marks = " | ".join("x" if letter in letters else "" for _, letter, _ in commands)
        out += f"| `{flag}` | {marks} | {text} |\n".replace("\\|", "|")
    return out


def main():
    if "--check" in sys.argv[1:]:
        return int(not PAGE.exists() or PAGE.read_text() != page())
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
