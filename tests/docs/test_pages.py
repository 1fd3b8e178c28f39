"""The dumps in docs/architecture.md are what the compiler prints today."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_page_is_up_to_date():
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "architecture.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or "run scripts/architecture.py and look at the difference"


def test_the_command_line_page_is_up_to_date():
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "command_line.py"), "--check"])
    assert done.returncode == 0, "run scripts/command_line.py"
