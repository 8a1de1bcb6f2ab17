"""Several devices, and several processes, give what one device gives."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("several.py")


def start(out, n_devices, process=0, n_processes=1, port=0, **env):
    flags = f"--xla_force_host_platform_device_count={n_devices}"
    env = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", **env}
    command = [sys.executable, str(SCRIPT), str(out), str(process), str(n_processes), str(port)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(*running):
    for process in running:
        said = process.communicate(timeout=300)[0]
        assert process.returncode == 0, said


def together(out, **env):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    ended(*(start(out, 1, process, 2, port, **env) for process in range(2)))
    return [dict(np.load(f"{out}{process}.npz")) for process in range(2)]


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    out = tmp_path_factory.mktemp("devices")
    ended(start(out / "one", 1), start(out / "two", 2))
    ended(start(out / "eight", 8))
    return {name: dict(np.load(out / f"{name}0.npz")) for name in ("one", "two", "eight")}


def check_same(found, expected):
    """Twenty steps make more of the last digits; embedding alone makes nothing of them."""
    size = np.abs(expected["z"]).max()
    np.testing.assert_allclose(found["untrained"], expected["untrained"], atol=1e-5 * size)
    for name in ("z", "decoded", "alone"):
        np.testing.assert_allclose(found[name], expected[name], atol=2e-3 * np.abs(expected[name]).max(), err_msg=name)
    np.testing.assert_allclose(found["error"], expected["error"], rtol=2e-3)
    np.testing.assert_array_equal(found["step"], expected["step"])


@pytest.mark.parametrize(("name", "count"), [("two", 2), ("eight", 8)])
def test_devices_give_what_one_gives(one, name, count):
    assert one["one"]["n_devices"] == 1
    assert one[name]["n_devices"] == count
    check_same(one[name], one["one"])


def test_processes_give_what_one_gives(one, tmp_path):
    first, second = together(tmp_path / "both")
    assert first["n_devices"] == 2
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
    check_same(first, one["one"])


def test_processes_agree_when_time_is_up(tmp_path):
    first, second = together(tmp_path / "timed", SECONDS="6")
    np.testing.assert_array_equal(first["step"], second["step"])
    np.testing.assert_array_equal(first["z"], second["z"])
