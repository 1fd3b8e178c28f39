"""A PostgreSQL server for tests of what processes share."""
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


@pytest.fixture
def server():
    """A PostgreSQL server of the test's own, in a folder that its user may read."""
    if not SERVERS:
        pytest.skip("no PostgreSQL server is installed (Debian's package postgresql)")
    programs, folder = SERVERS[-1].parent, tempfile.mkdtemp(prefix="locution-postgres-")
    user = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        user = dict(user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, env={**os.environ, "LC_ALL": "C"}, **user)
    subprocess.run([programs / "initdb", "-D", f"{folder}/data", "-U", "locution", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"], check=True, **quiet)
    process = subprocess.Popen([programs / "postgres", "-D", f"{folder}/data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"], **quiet)
    for _ in range(600):
        if subprocess.run([programs / "pg_isready", "-q", "-h", folder, "-U", "locution"], **quiet).returncode == 0:
            break
        time.sleep(0.05)
    yield f"postgresql://locution@/postgres?host={folder}"
    process.terminate()
    process.wait()
    shutil.rmtree(folder)
