"""A simulated cortex: layers with their own mix of cell types, interneurons that only their niche tells apart."""

import numpy as np
from anndata import AnnData
from numpy.typing import NDArray

from ._checks import check_whole

LAYERS = ("L1", "L2/3", "L4", "L5", "L6", "WM")
BORDERS = np.array([0.12, 0.34, 0.47, 0.67, 0.88])  # depth at which one layer ends and the next begins
BLUR = 0.012  # how far layers reach into one another
THICKNESS = 1000.0  # um from the pia to the end of the white matter
RADIUS = 3000.0  # um, by which the sheet is bent in its middle
WIDEST = 2.0  # radians that a sheet may span; a wider one is bent less
DENSITY = 22 / (np.pi * 50**2)  # cells per um^2: 22 within 50 um
SPARSE = 0.75  # the first layer's share of that

# share of each type in each layer, in the order of LAYERS; columns are scaled to sum to one
MIX = {
    "L2/3 IT": (0, 50, 4, 0, 0, 0),
    "L4 IT": (0, 2, 50, 3, 0, 0),
    "L5 IT": (0, 0, 3, 32, 3, 0),
    "L5 ET": (0, 0, 0, 14, 1, 0),
    "L6 IT": (0, 0, 0, 2, 14, 0),
    "L6 CT": (0, 0, 0, 1, 38, 1),
    "Pvalb": (1, 5, 6, 7, 5, 1),
    "Sst": (1, 3, 3, 6, 4, 1),
    "Vip": (5, 5, 3, 2, 1, 0),
    "Lamp5": (18, 4, 2, 2, 2, 0),
    "Astro": (34, 12, 11, 11, 11, 14),
    "Oligo": (4, 3, 4, 8, 11, 62),
    "Micro": (8, 5, 5, 5, 5, 8),
    "Endo": (13, 11, 9, 7, 5, 9),
    "VLMC": (14, 0, 0, 0, 0, 0),
}
TYPES = tuple(MIX)
EXCITATORY, INTERNEURONS = TYPES[:6], TYPES[6:10]
MARKERS = {
    "Slc17a7": EXCITATORY,
    "Cux2": ("L2/3 IT", "L4 IT"),
    "Otof": ("L2/3 IT",),
    "Rorb": ("L4 IT", "L5 IT"),
    "Rspo1": ("L4 IT",),
    "Deptor": ("L5 IT", "L6 IT"),
    "Fezf2": ("L5 ET", "L6 CT"),
    "Pou3f1": ("L5 ET",),
    "Osr1": ("L6 IT",),
    "Foxp2": ("L6 CT",),
    "Syt6": ("L6 CT",),
    "Gad1": INTERNEURONS,
    "Gad2": INTERNEURONS,
    "Pvalb": ("Pvalb",),
    "Tac1": ("Pvalb",),
    "Sst": ("Sst",),
    "Vip": ("Vip",),
    "Lamp5": ("Lamp5",),
    "Aqp4": ("Astro",),
    "Slc1a3": ("Astro",),
    "Mog": ("Oligo",),
    "Plp1": ("Oligo",),
    "Cx3cr1": ("Micro",),
    "C1qa": ("Micro",),
    "Cldn5": ("Endo",),
    "Flt1": ("Endo",),
    "Dcn": ("VLMC",),
    "Igf2": ("VLMC",),
}
ON, OFF = np.log(8.0), np.log(0.15)  # mean counts of a marker in its types and elsewhere
SLOPE = 1.5  # how excitatory neurons and astrocytes change with depth, in logs from pia to white matter
SIZES = 0.3  # spread of how much is captured of a cell, in logs
CAPTURE = 0.02  # and of how well a gene is captured in a library
DISPERSION = 4.0  # a count of mean m has variance m + m**2 / 4


def cortex(n_cells: int = 4000, n_genes: int = 100, n_libraries: int = 2, *, rng: int = 0) -> AnnData:
    """Return a simulated cortex whose cells are counted in place, with the true depth of each.

    Each library is a bent sheet, one millimetre thick, with six layers. Excitatory neurons belong to layers and change
    with depth; interneurons such as Pvalb cells lie in all layers and are the same in all of them, so that only their
    niche tells how deep they are. About 20 cells lie within 50 um. Counts are negative binomial.

    Parameters
    ----------
    n_cells
        Cells of all libraries together; a library with more is wider.
    n_genes
        Genes, at least 28: the markers of the types, and more that tell types apart a little.
    n_libraries
        Libraries, of about as many cells each, which lie in coordinates of their own that overlap.
    rng
        Seed.

    Returns
    -------
    AnnData with counts in ``X`` (sparse), positions in um in ``obsm["spatial"]``, and in ``obs`` ``library``,
    ``layer``, ``cell_type`` and ``depth``, from 0 at the pia to 1 at the end of the white matter.

    Examples
    --------
    >>> import scwormhole as wh
    >>> adata = wh.datasets.cortex(n_cells=500, n_libraries=1)
    >>> adata.shape, list(adata.obs)
    ((500, 100), ['library', 'layer', 'cell_type', 'depth'])
    """
    import pandas as pd
    from scipy.sparse import csr_matrix

    check_whole("n_cells", n_cells)
    check_whole("n_genes", n_genes, len(MARKERS))
    check_whole("n_libraries", n_libraries, 1)
    if n_cells < n_libraries:
        raise ValueError(f"n_cells is {n_cells} for {n_libraries} libraries; give at least one cell a library.")
    generator = np.random.default_rng(rng)
    library = np.sort(np.arange(n_cells) % n_libraries)
    placed = [_positions(size, generator) for size in np.bincount(library)]
    depth = np.concatenate([found[0] for found in placed])
    kind = _types(depth, generator)
    counts = _counts(depth, kind, library, n_genes, generator)
    genes = [*MARKERS, *(f"Gene{i}" for i in range(len(MARKERS) + 1, n_genes + 1))]
    obs = {
        "library": pd.Categorical([f"slice {i + 1}" for i in library]),
        "layer": pd.Categorical([LAYERS[i] for i in np.searchsorted(BORDERS, depth)], LAYERS, ordered=True),
        "cell_type": pd.Categorical([TYPES[i] for i in kind], TYPES),
        "depth": depth,
    }
    return AnnData(
        csr_matrix(counts),
        obs=pd.DataFrame(obs, index=[f"cell{i}" for i in range(n_cells)]),
        var=pd.DataFrame(index=genes),
        obsm={"spatial": np.concatenate([found[1] for found in placed])},
    )


def _positions(n: int, generator: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return depths and places of cells that keep some distance from one another."""
    plastic = 1.32471795724474602596  # its powers make a sequence that fills a square evenly
    even = np.arange(n)[:, None] / plastic ** np.array([1, 2]) + generator.random(2)
    width = n / DENSITY / THICKNESS
    jitter = generator.normal(size=(n, 2)) * 0.2 / np.sqrt(DENSITY) / (THICKNESS, width)
    across, along = ((even + jitter) % 1).T
    share = np.array([0.0, SPARSE * BORDERS[0], SPARSE * BORDERS[0] + 1 - BORDERS[0]])
    depth = np.interp(across, share / share[-1], [0.0, BORDERS[0], 1.0])
    radius = max(RADIUS, width / WIDEST)
    angle = (along - 0.5) * width / radius
    height = radius + (0.5 - depth) * THICKNESS
    place = np.stack([height * np.sin(angle), height * np.cos(angle)], axis=1)
    turn = generator.uniform(-0.3, 0.3)
    place = place @ np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return depth, place - place.min(0)


def _types(depth: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw the type of each cell from the mix of its layer, blurred where layers meet."""
    below = 1 / (1 + np.exp(-(depth[:, None] - BORDERS) / BLUR))
    layer = -np.diff(below, axis=1, prepend=1.0, append=0.0)
    mix = np.array(list(MIX.values()), np.float64)
    chance = np.cumsum(layer @ (mix / mix.sum(0)).T, axis=1)
    return np.asarray((generator.random((len(depth), 1)) * chance[:, -1:] > chance).sum(1))


def _counts(
    depth: NDArray[np.float64],
    kind: NDArray[np.int64],
    library: NDArray[np.int64],
    n_genes: int,
    generator: np.random.Generator,
) -> NDArray[np.float32]:
    profile = generator.normal(-0.2, 0.7, n_genes) + generator.normal(0, 0.35, (len(TYPES), n_genes))
    for gene, types in enumerate(MARKERS.values()):
        profile[:, gene] = [ON if name in types else OFF for name in TYPES]
    slope = SLOPE * generator.normal(size=(len(TYPES), n_genes)) * (generator.random(n_genes) < 0.4)
    slope[:, : len(MARKERS)] = 0  # markers stay what they are
    slope[[name not in (*EXCITATORY, "Astro") for name in TYPES]] = 0
    log_mean = profile[kind] + slope[kind] * (depth - 0.5)[:, None]
    log_mean += generator.normal(0, SIZES, (len(depth), 1))
    log_mean += generator.normal(0, CAPTURE, (library.max() + 1, n_genes))[library]
    rate = generator.gamma(DISPERSION, np.exp(log_mean) / DISPERSION)
    return generator.poisson(rate).astype(np.float32)
