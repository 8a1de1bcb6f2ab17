"""The paper's figures of spectra: how Euclidean transport is, and what the nearest Euclidean distance matrix changes.

    python benchmarks/paper/spectrum.py --data FOLDER [--quick]

Spectra of the criterion matrix for the simplex, before and after, and for MNIST digits and MERFISH niches; and what
`wh.tl.embeddability` finds for the last two, as a table and as the figure of the guide.
"""

from report import Report, arguments, real_data, solved

import scwormhole as wh

GUIDE = "embeddability.png"


def main() -> None:
    given = arguments(__doc__)
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    n_clouds = 40 if given.quick else 256
    niches = real_data.merfish_halves(given.data, n_components=30).train
    cohorts = {"MNIST": real_data.mnist(given.data, n_clouds), "MERFISH niches": niches}
    tables = {"Simplex": solved(wh.datasets.simplex().clouds)}
    tables["Simplex, nearest"] = wh.mds.nearest_edm(tables["Simplex"], progress=False).distances
    tables["MNIST"] = solved(cohorts["MNIST"])
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.5), layout="constrained")
    for axis, (name, table) in zip(axes, tables.items(), strict=True):
        wh.pl.spectrum(table, ax=axis)
        axis.set_title(f"{name}: {axis.get_title()}", fontsize="medium")
    figure.savefig(given.out / "spectrum.png", dpi=110)
    columns = ["cohort", "epsilon", "exact", "halves", "means", "noise", "least error", "bounds", "width", "advice"]
    report = Report("embeddability", columns, given)
    for name, clouds in cohorts.items():
        found = wh.tl.embeddability(clouds, n_clouds=40 if given.quick else 100, progress=False)
        for step, exact, halves, means in zip(found.epsilons, found.exact, found.halves, found.means, strict=True):
            more = [None] * 5
            if step == found.epsilon:
                bounds = f"{found.lower:.1%} to {found.upper:.1%}"
                more = [f"{found.noise:.1%}", f"{found.least:.1%}", bounds, found.width, " ".join(found.advice)]
            report.add(name, float(step), float(exact), float(halves), float(means), *more)
        if name == "MNIST":
            figure = wh.pl.embeddability(found)[0].figure
            figure.savefig(given.out / GUIDE, dpi=110)


if __name__ == "__main__":
    main()
