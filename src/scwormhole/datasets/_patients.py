"""Simulated blood of patients: severity moves the mix of cell types, and a state within one of them."""

import numpy as np
from anndata import AnnData

from ._checks import check_whole

# share of each type at severity 0 and at severity 1, on a straight line between
MIX = {
    "CD4 T": (0.34, 0.15),
    "CD8 T": (0.18, 0.10),
    "NK": (0.12, 0.07),
    "B": (0.12, 0.10),
    "Plasma": (0.01, 0.08),
    "CD14 Mono": (0.16, 0.46),
    "CD16 Mono": (0.05, 0.02),
    "DC": (0.02, 0.02),
}
TYPES = tuple(MIX)
STATEFUL, CALM, ACTIVE = "CD14 Mono", 0.05, 0.85  # the type with a state, and the share in it at severity 0 and at 1
MARKERS = {
    "CD3D": ("CD4 T", "CD8 T"),
    "IL7R": ("CD4 T",),
    "CD8A": ("CD8 T",),
    "NKG7": ("CD8 T", "NK"),
    "GNLY": ("NK",),
    "MS4A1": ("B",),
    "CD79A": ("B", "Plasma"),
    "MZB1": ("Plasma",),
    "LYZ": ("CD14 Mono", "CD16 Mono", "DC"),
    "CD14": ("CD14 Mono",),
    "FCGR3A": ("CD16 Mono", "NK"),
    "MS4A7": ("CD16 Mono",),
    "FCER1A": ("DC",),
    "CLEC10A": ("DC",),
}
STATE = ("IFI27", "ISG15", "IFI6", "MX1", "IFIT1", "SIGLEC1")  # genes that go up in the state
ON, OFF = np.log(8.0), np.log(0.15)  # mean counts of a marker in its types and elsewhere
LOW, RISE = np.log(0.5), np.log(8.0)  # of a gene of the state: its mean count without it, and how far it goes up
PEOPLE = 80.0  # how alike patients of one severity are in their mix: concentration of a Dirichlet
CELLS = 0.4  # spread of how many cells a patient has, in logs
CAPTURE = 0.05  # spread of how well a gene is captured in a patient, in logs
SIZES = 0.3  # and of how much is captured of a cell
DISPERSION = 4.0  # a count of mean m has variance m + m**2 / 4


def patients(n_patients: int = 40, n_cells: int = 200, n_genes: int = 60, *, rng: int = 0) -> AnnData:
    """Return simulated blood cells of patients, with the true severity of each patient's disease.

    With severity monocytes and plasma cells become more, lymphocytes fewer, and more of the CD14 monocytes are in an
    interferon state. Severities are even from 0 to 1, in random order. Patients of one severity differ a little in
    their mix of cells and in how well genes are captured, and much in how many cells they have. Counts are negative
    binomial.

    Parameters
    ----------
    n_patients
        Patients.
    n_cells
        Cells of a patient in the median; two thirds of the patients have between 0.7 and 1.5 times as many.
    n_genes
        Genes, at least 20: markers of the types, genes of the state, and more that tell types apart a little.
    rng
        Seed.

    Returns
    -------
    AnnData with counts in ``X`` (sparse), and in ``obs`` ``patient``, ``severity`` from 0 to 1, ``condition`` (mild up
    to a severity of one half, severe above), ``cell_type``, and ``active``, whether a cell is in the state.

    Examples
    --------
    >>> import scwormhole as wh
    >>> adata = wh.datasets.patients(n_patients=10, n_cells=50)
    >>> adata.n_vars, adata.obs["patient"].nunique(), list(adata.obs)
    (60, 10, ['patient', 'severity', 'condition', 'cell_type', 'active'])
    """
    import pandas as pd
    from scipy.sparse import csr_matrix

    check_whole("n_patients", n_patients, 2)
    check_whole("n_cells", n_cells, 1)
    check_whole("n_genes", n_genes, len(MARKERS) + len(STATE))
    generator = np.random.default_rng(rng)
    levels = generator.permutation(np.linspace(0, 1, n_patients))
    sizes = np.maximum(np.rint(n_cells * np.exp(generator.normal(0, CELLS, n_patients))), 1).astype(np.int64)
    patient = np.repeat(np.arange(n_patients), sizes)
    severity = levels[patient]
    mild, severe = np.array(list(MIX.values())).T
    mixes = [generator.dirichlet(PEOPLE * ((1 - level) * mild + level * severe)) for level in levels]
    kind = np.concatenate([generator.choice(len(TYPES), n, p=mix) for n, mix in zip(sizes, mixes, strict=True)])
    active = generator.random(len(kind)) < CALM + (ACTIVE - CALM) * severity
    active &= kind == TYPES.index(STATEFUL)

    profile = generator.normal(-0.2, 0.7, n_genes) + generator.normal(0, 0.35, (len(TYPES), n_genes))
    for gene, types in enumerate(MARKERS.values()):
        profile[:, gene] = [ON if name in types else OFF for name in TYPES]
    state = slice(len(MARKERS), len(MARKERS) + len(STATE))
    profile[:, state] = LOW
    log_mean = profile[kind]
    log_mean[active, state] += RISE
    log_mean += generator.normal(0, CAPTURE, (n_patients, n_genes))[patient]
    log_mean += generator.normal(0, SIZES, (len(kind), 1))
    counts = generator.poisson(generator.gamma(DISPERSION, np.exp(log_mean) / DISPERSION)).astype(np.float32)

    digits = len(str(n_patients))
    names = [f"patient {i + 1:0{digits}}" for i in range(n_patients)]
    obs = {
        "patient": pd.Categorical.from_codes(patient, names),
        "severity": severity,
        "condition": pd.Categorical(np.where(severity > 0.5, "severe", "mild"), ["mild", "severe"]),
        "cell_type": pd.Categorical.from_codes(kind, TYPES),
        "active": active,
    }
    genes = [*MARKERS, *STATE, *(f"GENE{i}" for i in range(state.stop + 1, n_genes + 1))]
    index = [f"cell{i}" for i in range(len(kind))]
    return AnnData(csr_matrix(counts), obs=pd.DataFrame(obs, index=index), var=pd.DataFrame(index=genes))
