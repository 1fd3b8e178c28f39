"""What ./check relies on: the layering rules find what they should, and the sum counts every kind of result."""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import layering  # noqa: E402
import tally  # noqa: E402


def found(path, text):
    return [message for _, message in layering.violations(Path(path), text)]


def test_an_include_against_the_direction_is_found():
    assert found("src/graph/a.h", '#include "passes/fuse.h"\n') == ["graph may not include passes (passes/fuse.h)"]
    assert found("src/runtime/a.h", '  #  include "loop/expr.h"\n') == ["runtime may not include loop (loop/expr.h)"]


def test_an_include_of_a_folder_below_is_allowed():
    assert found("src/passes/a.h", '#include "graph/graph.h"\n#include "support/status.h"\n#include "passes/b.h"\n') == []


def test_third_party_types_stay_in_their_folder():
    assert found("src/codegen/a.cpp", "#include <llvm/IR/Module.h>\n") != []
    assert found("src/targets/cpu/a.cpp", '#include "llvm/IR/Module.h"\n') == []
    assert found("src/driver/a.cpp", '#include "onnx.pb.h"\n') != []
    assert found("src/frontend/onnx/a.cpp", '#include "onnx.pb.h"\n') == []


def test_a_file_over_the_cap_is_found():
    assert found("src/core/a.cpp", "\n" * 1000) == []
    assert found("src/core/a.cpp", "\n" * 1001) != []


def test_a_new_folder_needs_a_rule():
    assert found("src/elsewhere/a.cpp", "") != []


def test_the_rules_have_no_cycle():
    assert layering.cycle(layering.EDGES) is None
    assert layering.cycle({"a": ["b"], "b": ["a"]}) == "a"


def results(folder, cases):
    """A CTest report of (name, status, output) cases."""
    (folder / "gtest").mkdir(parents=True)
    body = "".join(f'<testcase name="{n}" status="{s}"><system-out>{o}</system-out></testcase>' for n, s, o in cases)
    (folder / "ctest.xml").write_text(f"<testsuite>{body}</testsuite>")


def test_the_sum_counts_tests_lines_steps_and_crashes(tmp_path, capsys):
    results(tmp_path / "release", [("unit", "run", ""), ("crashed", "fail", ""), ("suite", "run", "x\n5 passed, 0 failed\n"),
                                   ("plain", "run", "no numbers")])
    report = {"testsuites": [{"testsuite": [{"result": "COMPLETED"}, {"result": "COMPLETED"}, {"result": "SKIPPED"}]}]}
    (tmp_path / "release" / "gtest" / "unit.json").write_text(json.dumps(report))
    (tmp_path / "format.count").write_text("1 0\n")
    assert tally.main(tmp_path) == 1
    assert capsys.readouterr().out == "9 passed, 1 failed\n"


def test_no_results_are_a_failure(tmp_path):
    assert tally.main(tmp_path) == 1
