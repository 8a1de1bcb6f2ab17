"""The demonstration: runs from the command line, writes what it says, and its embedding is true to transport."""

import re

import numpy as np
import pytest

from scwormhole.__main__ import digits, main


def test_digits_are_clouds_weighted_by_ink():
    clouds, labels = digits()
    assert len(clouds) == len(labels) == 1797
    assert clouds.dim == 2
    np.testing.assert_allclose(clouds[0].weights.sum(), 1)
    assert np.ptp(clouds[0].weights) > 0


def test_a_command_is_asked_for(capsys):
    with pytest.raises(SystemExit):
        main([])
    assert "demo" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ImportWarning")  # of UMAP, which looks for Tensorflow
def test_demo_writes_figures_and_reports_held_out_agreement(tmp_path, capsys):
    main(["demo", "--out", str(tmp_path / "demo")])
    said = capsys.readouterr().out
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {"distances.png", "map.png"}
    agreement = float(re.search(r"held-out digits: ([0-9.]+)", said)[1])
    accuracy = float(re.search(r"name them right: ([0-9.]+)%", said)[1])
    assert agreement > 0.97
    assert accuracy > 90
