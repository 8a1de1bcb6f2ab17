"""The paper's table of classes never seen: Fashion-MNIST without one class in training, tested on that class alone.

    python benchmarks/paper/ood.py --data FOLDER [--quick] [--classes 8]

One model a class, trained on the others for 300 steps. Fidelity is over all pairs of 128 test clouds of the class that
was left out, five draws. "Labels" is how many of its test clouds a classifier (scikit-learn's MLP) knows that was given
the vectors of training clouds of all classes, the unseen one among them, as in the paper.
"""

import time

import numpy as np
from report import EPSILON, Report, arguments, real_data

import scwormhole as wh

CLASSES = ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
N_LABELLED = 10_000  # training clouds whose vectors the classifier sees
FLOOR = 0.998


def main() -> None:
    given = arguments(__doc__, classes={"type": int, "nargs": "+", "default": list(range(10)), "help": "0 to 9"})
    halves = real_data.images(given.data, "fashion_mnist")
    report = Report("ood", ["unseen class", f"fidelity ({FLOOR})", "MSE, scaled", "labels", "fit, s"], given)
    found = []
    for label in given.classes:
        seen = np.flatnonzero(halves.train_labels != label)
        unseen = halves.test[np.flatnonzero(halves.test_labels == label)]
        model = wh.Wormhole(**EPSILON, coeff_dec=0, progress=False, max_steps=100 if given.quick else 300)
        start = time.perf_counter()
        model.fit(halves.train[seen])
        took = time.perf_counter() - start
        f = wh.metrics.fidelity(model, unseen, n_exact=0, n_repeats=2 if given.quick else 5)
        labels = halves.train_labels[:N_LABELLED]
        accuracy = wh.metrics.label_accuracy(
            model.transform(halves.train[:N_LABELLED]),
            labels,
            test_z=model.transform(unseen),
            test_labels=np.full(len(unseen), label),
        )
        found.append((f.correlation, f.mse, accuracy))
        report.add(
            CLASSES[label], f"{f.correlation:.4f} ± {f.correlation_std:.4f}", f"{f.mse:.2e}", f"{accuracy:.2f}", took
        )
    means, spreads = np.mean(found, axis=0), np.std(found, axis=0)
    forms = (".4f", ".1e", ".2f")
    cells = (f"{mean:{form}} ± {spread:{form}}" for mean, spread, form in zip(means, spreads, forms, strict=True))
    report.add("all, mean ± standard deviation", *cells, None)
    report.add("the paper, 'Bag'", "0.995", "4.38e-05", "0.97", None)
    report.add("the paper, all", "0.998 ± 0.001", "3.14e-05 ± 2.22e-05", None, None)


if __name__ == "__main__":
    main()
