"""Several devices, and several processes, give what one device gives."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("several.py")


def start(out, common, n_devices, process=0, n_processes=1, port=0, **env):
    flags = f"--xla_force_host_platform_device_count={n_devices}"
    env = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", **env}
    command = [sys.executable, str(SCRIPT), str(out), str(common), str(process), str(n_processes), str(port)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(*running):
    for process in running:
        said = process.communicate(timeout=300)[0]
        assert process.returncode == 0, said


def together(out, common, **env):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    ended(*(start(out, common, 1, process, 2, port, **env) for process in range(2)))
    return [dict(np.load(f"{out}{process}.npz")) for process in range(2)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("devices")


@pytest.fixture(scope="module")
def found(folder):
    """What one, two and eight devices came to; what the one learned is embedded by all."""
    ended(start(folder / "one", folder / "model", 1))
    ended(*(start(folder / name, folder / "model", n) for name, n in (("two", 2), ("eight", 8))))
    return {name: dict(np.load(folder / f"{name}0.npz")) for name in ("one", "two", "eight")}


def check_same(found, expected):
    """Twenty steps make more of the last digits; embedding makes nothing of them."""
    for name, share in {"loaded": 1e-6, "alone": 1e-6, "z": 2e-3, "decoded": 2e-3}.items():
        atol = share * np.abs(expected[name]).max()
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=atol, err_msg=name)
    np.testing.assert_allclose(found["error"], expected["error"], rtol=2e-3)
    np.testing.assert_array_equal(found["step"], expected["step"])


@pytest.mark.parametrize(("name", "count"), [("two", 2), ("eight", 8)])
def test_devices_give_what_one_gives(found, name, count):
    assert found["one"]["n_devices"] == 1
    assert found[name]["n_devices"] == count
    check_same(found[name], found["one"])


def test_processes_give_what_one_gives(found, folder):
    first, second = together(folder / "both", folder / "model")
    assert first["n_devices"] == 2
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
    check_same(first, found["one"])


def test_processes_agree_when_time_is_up(found, folder):
    first, second = together(folder / "timed", folder / "model", SECONDS="8", SLOW="yes")
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
