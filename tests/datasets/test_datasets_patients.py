"""Simulated patients: severity decides the mix of cells and the share in the state, as it is said to."""

import anndata
import numpy as np
import pytest
from scipy.sparse import issparse

import scwormhole as wh
from scwormhole.datasets import _patients


@pytest.fixture(scope="module")
def adata():
    return wh.datasets.patients(n_patients=30, n_cells=600, n_genes=40, rng=0)


def by_patient(adata):
    return adata.obs.groupby("patient", observed=True)


def test_what_is_there(adata):
    assert adata.n_vars == 40
    assert {"CD14", "IFI27", "GENE40"} <= {*adata.var_names}
    assert adata.var_names.is_unique
    assert adata.obs_names.is_unique
    assert list(adata.obs["patient"].cat.categories[[0, 29]]) == ["patient 01", "patient 30"]
    assert issparse(adata.X)
    np.testing.assert_array_equal(adata.X.data, adata.X.data.round())


def test_severity_is_the_patients_and_even_and_decides_the_condition(adata):
    held = by_patient(adata)[["severity", "condition"]].agg(["nunique", "first"])
    assert (held.xs("nunique", axis=1, level=1) == 1).all(axis=None)
    severity = held["severity", "first"].to_numpy()
    np.testing.assert_allclose(np.sort(severity), np.linspace(0, 1, 30))
    assert (np.diff(severity) < 0).any()  # in an order of its own
    assert (held["condition", "first"] == np.where(severity > 0.5, "severe", "mild")).all()


def test_shares_of_types_follow_severity_as_designed(adata):
    share = by_patient(adata)["cell_type"].value_counts(normalize=True).unstack()
    severity = by_patient(adata)["severity"].first().loc[share.index].to_numpy()
    for name, (mild, severe) in _patients.MIX.items():
        slope, start = np.polyfit(severity, share[name], 1)
        assert start == pytest.approx(mild, abs=0.05)
        assert start + slope == pytest.approx(severe, abs=0.05)


def test_the_state_is_of_monocytes_grows_with_severity_and_raises_its_genes(adata):
    monocytes = adata[adata.obs["cell_type"] == "CD14 Mono"]
    assert adata.obs["active"].sum() == monocytes.obs["active"].sum() > 0
    share = by_patient(monocytes)["active"].mean()
    slope, start = np.polyfit(by_patient(monocytes)["severity"].first().loc[share.index], share, 1)
    assert start == pytest.approx(_patients.CALM, abs=0.05)
    assert start + slope == pytest.approx(_patients.ACTIVE, abs=0.05)
    means = [monocytes[monocytes.obs["active"] == on, list(_patients.STATE)].X.toarray().mean() for on in (False, True)]
    assert means[1] / means[0] == pytest.approx(8, rel=0.1)


def test_patients_differ_in_how_many_cells_they_have():
    sizes = wh.datasets.patients(n_patients=200, n_cells=100, n_genes=20).obs["patient"].value_counts()
    assert np.median(sizes) == pytest.approx(100, rel=0.1)
    assert np.log(sizes).std() == pytest.approx(0.4, rel=0.15)


def test_the_seed_decides():
    one, same, other = (wh.datasets.patients(4, 20, rng=seed) for seed in (1, 1, 2))
    assert one.shape == same.shape
    assert (one.X != same.X).nnz == 0
    assert (one.obs == same.obs).all(axis=None)
    assert one.shape != other.shape or (one.X != other.X).nnz > 0


def test_it_can_be_written(tmp_path):
    adata = wh.datasets.patients(3, 10)
    adata.write_h5ad(tmp_path / "patients.h5ad")
    back = anndata.read_h5ad(tmp_path / "patients.h5ad")
    assert (back.obs == adata.obs).all(axis=None)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"n_patients": 1}, "n_patients is 1; give at least 2"), ({"n_cells": 0}, "at least 1"), ({"n_genes": 5}, "20")],
)
def test_too_little_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        wh.datasets.patients(**options)


@pytest.mark.parametrize("name", ["n_patients", "n_cells", "n_genes"])
def test_numbers_must_be_whole(name):
    with pytest.raises(TypeError, match=f"{name} is 1000.0; give a whole number"):
        wh.datasets.patients(**{name: 1e3})
