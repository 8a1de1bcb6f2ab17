"""``max_memory`` holds: a process that may take so much and no more embeds points that are larger."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("bounded.py")
LIMIT = 320  # MiB for the run: what is under way, and the cohort's own arrays, the vectors and the stacks of threads

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")


def run(folder, memory):
    command = [sys.executable, str(SCRIPT), str(folder), memory, str(LIMIT)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_memory_is_bounded_as_was_asked(tmp_path):
    assert run(tmp_path, "make").returncode == 0
    held = run(tmp_path, "128 MiB")
    assert held.returncode == 0, held.stderr
    assert json.loads(held.stdout.splitlines()[-1])["embedding"] < LIMIT
    free = run(tmp_path, "2 GiB")
    assert free.returncode != 0, "without a bound it takes more, or this test shows nothing"
    assert re.search("MemoryError|RESOURCE_EXHAUSTED", free.stderr), free.stderr  # NumPy's or XLA's, whoever asks last
