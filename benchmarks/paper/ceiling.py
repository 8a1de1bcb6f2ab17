"""What clouds of pixels can tell of clothes: the black and white images themselves, classified at several thresholds.

    python benchmarks/paper/ceiling.py --data FOLDER [--quick]

Fashion-MNIST, scikit-learn's MLP as it comes on all 784 pixels, trained on the first 50,000 training images and tested
on the last 10,000; no test image is looked at. The paper's clouds have 356 points and its labels 0.87.
"""

import time

import numpy as np
from report import Report, arguments

import scwormhole as wh

THRESHOLDS = (127, 63, 23)
N_TRAIN, N_TEST = 50_000, 10_000


def main() -> None:
    given = arguments(__doc__)
    report = Report("ceiling", ["threshold", "mean points", "labels, MLP on pixels", "seconds"], given)
    n_train = N_TRAIN // (10 if given.quick else 1)
    for threshold in THRESHOLDS:
        found = wh.datasets.fashion_mnist(given.data / "fashion_mnist", part="train", threshold=threshold)
        pixels = wh.baselines.Grid(side=28, box=(-1, 1)).fit_transform(found.clouds) > 0
        start = time.perf_counter()
        accuracy = wh.metrics.label_accuracy(
            pixels[:n_train].astype(np.float32),
            found.labels[:n_train],
            test_z=pixels[-N_TEST:].astype(np.float32),
            test_labels=found.labels[-N_TEST:],
        )
        mean = float(np.mean(found.clouds.sizes))
        report.add(threshold, f"{mean:.0f}", f"{accuracy:.3f}", time.perf_counter() - start)


if __name__ == "__main__":
    main()
