"""Two embeddings, trained once: niches of a small tissue, with a decoder, and patients.

The tissue has as many cells and genes as those in the examples of ``tl``, so that both compile once.
"""

import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import scwormhole as wh

N_CELLS, GENES = 60, ["Gad1", "Pvalb", "Sst"]
QUICK = {"n_components": 8, "progress": False}


def make_tissue(rng=0, n=N_CELLS):
    """Cells whose genes change along x."""
    generator = np.random.default_rng(rng)
    spatial = generator.uniform(0, 100, (n, 2))
    expression = generator.gamma(2.0, 0.3, size=(n, 3)) + 0.02 * spatial[:, :1] * np.array([1.0, 0.5, 0.0])
    adata = anndata.AnnData(
        sparse.csr_matrix(np.where(expression > 0.3, expression, 0).astype(np.float32)),
        obs=pd.DataFrame(
            {"side": pd.Categorical(np.where(spatial[:, 0] < 50, "left", "right")), "depth": spatial[:, 0]},
            index=[f"cell{i}" for i in range(n)],
        ),
        var=pd.DataFrame({"chromosome": ["2", "15", "16"]}, index=GENES),
        obsm={"spatial": spatial},
    )
    adata.uns["side_colors"] = np.array(["#ff0000", "#0000ff"])
    wh.pp.niches(adata, n_neighbors=5)
    return adata


def make_cohort(rng=0, n_patients=12, each=6):
    """Cells of patients in no order, of whom the odd ones are ill."""
    generator = np.random.default_rng(rng)
    patient = generator.permutation(np.repeat(np.arange(n_patients), each))
    adata = anndata.AnnData(
        generator.gamma(2.0, 0.3, size=(len(patient), 3)) + (patient % 2)[:, None],
        obs=pd.DataFrame(
            {
                "patient": [f"p{number}" for number in patient],
                "status": pd.Categorical(np.where(patient % 2, "ill", "well")),
                "batch": generator.choice(["x", "y"], len(patient)),
                "age": patient * 3.5,
            },
            index=[f"cell{i}" for i in range(len(patient))],
        ),
        var=pd.DataFrame(index=GENES),
    )
    adata.uns["status_colors"] = np.array(["#00ff00", "#ff00ff"])
    wh.pp.groups(adata, "patient")
    return adata


@pytest.fixture(scope="session")
def a_tissue():
    """What makes a tissue, with a seed and a number of cells."""
    return make_tissue


@pytest.fixture(scope="session")
def a_cohort():
    """What makes cells of patients."""
    return make_cohort


@pytest.fixture(scope="session")
def embedded():
    """Niches with their embedding; copy before you change it."""
    adata = make_tissue()
    with warnings.catch_warnings(action="ignore"):  # that it was not trained: the base features do, and are quick
        wh.tl.wormhole(adata, max_steps=0, **QUICK)
    return adata


@pytest.fixture
def tissue(embedded):
    return embedded.copy()


@pytest.fixture(scope="session")
def cohort_and_patients():
    adata = make_cohort()
    with warnings.catch_warnings(action="ignore"):
        patients = wh.tl.wormhole(adata, max_steps=10, coeff_dec=0, n_blocks=1, **QUICK)
    return adata, patients


@pytest.fixture
def patients(cohort_and_patients):
    return cohort_and_patients[1].copy()
