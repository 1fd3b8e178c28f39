#!/usr/bin/env python3
"""Sums what ./check left in its results folder and prints "N passed, N failed"; exit code 1 when something failed.
usage: scripts/tally.py RESULTS
A GoogleTest binary counts by its tests; another CTest entry by the last line of its output that reads
"N passed, N failed", else as one; pytest by its tests; a step of ./check as one."""
import json
import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

SUM_LINE = re.compile(r"^(\d+) passed, (\d+) failed$", re.M)


def gtest(path):
    """(passed, failed) of a GoogleTest JSON report, or None when the binary ended before it was complete."""
    try:
        report = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    tests = [t for suite in report["testsuites"] for t in suite["testsuite"] if t.get("result") != "SKIPPED"]
    failed = sum(1 for t in tests if t.get("failures"))
    return len(tests) - failed, failed


def ctest(folder):
    """(passed, failed) of one preset's CTest run."""
    passed = failed = 0
    for case in xml.parse(folder / "ctest.xml").getroot().iter("testcase"):
        status = case.get("status")
        if status in ("disabled", "notrun") and case.find("failure") is None and case.find("skipped") is not None:
            continue
        ok = status == "run"
        counts = gtest(folder / "gtest" / f"{case.get('name')}.json")
        if counts is None:
            sums = SUM_LINE.findall(case.findtext("system-out") or "")
            counts = tuple(map(int, sums[-1])) if sums else (int(ok), 0)
        if not ok and counts[1] == 0:
            counts = counts[0], 1  # it crashed or ran out of time
        passed, failed = passed + counts[0], failed + counts[1]
    return passed, failed


def pytest(path):
    passed = failed = 0
    for suite in xml.parse(path).getroot().iter("testsuite"):
        bad = int(suite.get("failures")) + int(suite.get("errors"))
        failed += bad
        passed += int(suite.get("tests")) - bad - int(suite.get("skipped"))
    return passed, failed


def main(results):
    counts = [tuple(map(int, p.read_text().split())) for p in sorted(results.glob("*.count"))]
    counts += [ctest(p.parent) for p in sorted(results.glob("*/ctest.xml"))]
    if (results / "pytest.xml").is_file():
        counts.append(pytest(results / "pytest.xml"))
    passed, failed = (sum(c) for c in zip(*counts)) if counts else (0, 1)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
