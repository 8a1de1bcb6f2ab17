"""Simulated cohorts against closed forms, digits, and the loaders on small files that look like the public ones."""

import gzip
import zipfile
from functools import partial

import numpy as np
import pytest

import scwormhole as wh
from scwormhole.datasets import _download, _shapes


def test_simplex_is_all_35_clouds_and_its_transport_is_not_euclidean():
    clouds, masses = wh.datasets.simplex(noise=0)
    assert len({tuple(row) for row in masses}) == len(clouds) == 35
    np.testing.assert_allclose(masses.sum(1), 1)
    corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    for cloud, mass in zip(clouds, masses, strict=True):
        np.testing.assert_allclose(cloud.points.mean(0), mass @ corners)
    apart = wh.ot.pairwise(clouds, "W2", solver="exact", progress=False)
    centre = np.eye(35) - 1 / 35
    values = np.linalg.eigvalsh(-centre @ apart @ centre / 2)
    assert values[0] < -0.05 * values[-1]


def test_noise_parts_points_that_coincide():
    clouds = wh.datasets.simplex(noise=0.02, rng=3).clouds
    assert len(np.unique(clouds.points, axis=0)) == 140
    assert 0.01 < np.std(clouds.points - clouds.points.round()) < 0.03
    with pytest.raises(ValueError, match="noise"):
        wh.datasets.simplex(noise=-1)


def test_gaussians_are_samples_of_what_is_said():
    clouds, means, covariances = wh.datasets.gaussians(4, 20_000, 3, rng=1)
    assert np.abs(clouds.points).max() == pytest.approx(3)
    for cloud, mean, covariance in zip(clouds, means, covariances, strict=True):
        spread = np.sqrt(np.trace(covariance))
        np.testing.assert_allclose(cloud.points.mean(0), mean, atol=0.03 * spread)
        np.testing.assert_allclose(np.cov(cloud.points.T), covariance, atol=0.05 * spread**2)
    with pytest.raises(ValueError, match="dim is 0"):
        wh.datasets.gaussians(dim=0)


def test_digits_are_upright_and_weighted_by_ink():
    from sklearn.datasets import load_digits

    clouds, labels = wh.datasets.digits()
    image = load_digits().images[3]
    drawn = np.zeros((8, 8))
    (right, up), weights = clouds[3].points.astype(int).T, clouds[3].weights
    drawn[7 - up, right] = weights
    np.testing.assert_allclose(drawn, image / image.sum())
    assert labels[3] == 3


def write_idx(folder, part, images, labels):
    folder.mkdir(exist_ok=True)
    (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(16) + images.tobytes()))
    (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes(8) + labels.tobytes()))


@pytest.mark.parametrize(
    ("load", "threshold"),
    [
        (wh.datasets.mnist, 127),
        (wh.datasets.fashion_mnist, 23),
        (partial(wh.datasets.mnist, threshold=200), 200),
        (partial(wh.datasets.fashion_mnist, threshold=0), 0),
    ],
)
def test_images_become_clouds_of_bright_pixels_in_place(load, threshold, tmp_path):
    images = np.zeros((3, 28, 28), np.uint8)
    images[0, 0, 27] = images[0, 27, 0] = 201
    images[1, 5, 5] = threshold  # not bright: the image is left out
    images[2, 13, 4] = threshold + 1
    write_idx(tmp_path / "idx", "t10k", images, np.array([7, 8, 9], np.uint8))
    clouds, labels = load(tmp_path / "idx", part="test")
    assert labels.tolist() == [7, 9]
    np.testing.assert_array_equal(clouds[0].points, [[1, 1], [-1, -1]])  # top right, bottom left
    np.testing.assert_allclose(clouds[1].points, [[4 * 2 / 27 - 1, 1 - 13 * 2 / 27]], rtol=1e-6)
    assert clouds.points.dtype == np.float32


def test_bad_folders_and_files_are_told(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"train-images-idx3-ubyte\.gz.*nothing"):
        wh.datasets.mnist(tmp_path / "none")
    with pytest.raises(ValueError, match="threshold is 255"):
        wh.datasets.mnist(tmp_path, threshold=255)
    with pytest.raises(ValueError, match="train"):
        wh.datasets.mnist(tmp_path, part="valid")
    write_idx(tmp_path / "cut", "train", np.zeros((2, 28, 28), np.uint8)[:, :20], np.zeros(2, np.uint8))
    with pytest.raises(ValueError, match="is not the file of mnist"):
        wh.datasets.mnist(tmp_path / "cut")
    write_idx(tmp_path / "odd", "train", np.zeros((2, 28, 28), np.uint8), np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match="2 images and 3 labels"):
        wh.datasets.mnist(tmp_path / "odd")


def test_a_download_is_kept_checked_and_its_failure_explained(tmp_path, monkeypatch):
    import hashlib

    monkeypatch.setenv(_download.CACHE, str(tmp_path / "cache"))
    (tmp_path / "file.txt").write_bytes(b"clouds")
    there, gone = (tmp_path / "file.txt").as_uri(), (tmp_path / "none.txt").as_uri()
    fetched = []

    def retrieve(url, known_hash, fname, path, progressbar):
        fetched.append(url)
        if url == gone:
            raise OSError("no such host")
        content = (tmp_path / "file.txt").read_bytes()
        if known_hash != "sha256:" + hashlib.sha256(content).hexdigest():
            raise ValueError("hash does not match")
        path.mkdir(parents=True, exist_ok=True)
        (path / fname).write_bytes(content)
        return str(path / fname)

    monkeypatch.setattr("pooch.retrieve", retrieve)
    right = hashlib.sha256(b"clouds").hexdigest()
    found = _download.find("toy", "file.txt", None, urls=(gone, there), sha256=right)
    assert found == tmp_path / "cache" / "toy" / "file.txt"
    assert fetched == [gone, there]
    with pytest.raises(OSError, match=r"toy is neither in .*no such host.*hash does not match.*give its folder"):
        _download.find("toy", "file.txt", None, urls=(gone, there), sha256="0" * 64)


CUBE = """OFF8 6 0
0 0 0
1 0 0
1 1 0
0 1 0
0 0 3
1 0 3
1 1 3
0 1 3
4 0 1 2 3
4 4 5 6 7
4 0 1 5 4
4 1 2 6 5
4 2 3 7 6
4 3 0 4 7
"""


def test_points_lie_evenly_on_the_surface_of_a_box():
    mesh = _shapes.read_off(CUBE)
    assert mesh.triangles.shape == (12, 3)
    points = _shapes.sample(mesh, 40_000, np.random.default_rng(0))
    on = np.isclose(points[:, :, None], np.array([[0, 1], [0, 1], [0, 3]])).any(2)
    assert on.any(1).all()
    assert on[:, 2].mean() == pytest.approx(2 / 14, abs=0.01)  # two of the faces are 1 by 1, four are 1 by 3
    np.testing.assert_allclose(points.mean(0), [0.5, 0.5, 1.5], atol=0.02)


def test_modelnet_is_read_from_meshes_by_part_and_normalised(tmp_path):
    with zipfile.ZipFile(tmp_path / "ModelNet10.zip", "w") as archive:
        archive.writestr("ModelNet10/chair/train/chair_0001.off", CUBE)
        archive.writestr("ModelNet10/sofa/train/sofa_0001.off", CUBE.replace("OFF8", "OFF\n8"))
        archive.writestr("ModelNet10/sofa/test/sofa_0002.off", CUBE)
        archive.writestr("__MACOSX/ModelNet10/sofa/test/._sofa_0002.off", "no mesh")
    clouds, labels = wh.datasets.modelnet10(tmp_path, n_points=50)
    assert labels.tolist() == ["chair", "sofa"]
    assert clouds.sizes.tolist() == [50, 50]
    assert np.abs(clouds[0].points).max() == pytest.approx(1)
    np.testing.assert_allclose(clouds[0].points.mean(0), 0, atol=1e-6)
    raw = wh.datasets.modelnet10(tmp_path, part="test", n_points=50, normalize=False)
    assert raw.clouds.points.max() > 2


def test_modelnet_is_read_from_stored_points(tmp_path):
    points = np.random.default_rng(0).normal(size=(3, 8, 3)).astype(np.float32)
    arrays = {"label": [1, 0, 1], "split": ["train", "test", "train"], "classes": ["bed", "desk"]}
    np.savez(tmp_path / "modelnet10_1024.npz", points=points, **arrays)
    clouds, labels = wh.datasets.modelnet10(tmp_path, n_points=5, normalize=False, rng=1)
    assert labels.tolist() == ["desk", "desk"]
    assert all(any((row == stored).all() for stored in points[0]) for row in clouds[0].points)
    assert len(np.unique(clouds[0].points, axis=0)) == 5
    with pytest.raises(ValueError, match="holds 8 a shape"):
        wh.datasets.modelnet10(tmp_path)
    np.savez(tmp_path / "modelnet10_1024.npz", points=points)
    with pytest.raises(ValueError, match="lacks classes, label, split"):
        wh.datasets.modelnet10(tmp_path)
