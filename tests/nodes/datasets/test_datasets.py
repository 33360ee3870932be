"""Data sets load to what they promise, from tiny files in the original formats, or say what is wrong with them."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nodes.datasets.published import Adult, Cifar10, FashionMnist, Mnist
from nodes.datasets.registry import DATASETS, Dataset, Digits, File, Synthetic, resolve_data_dir
from p2p.config.errors import UserError

IDX_FILES = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]
ADULT_ROWS = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40,"
    " United-States, <=50K\n"
    "52, ?, 209642, HS-grad, 9, Married, Exec, Husband, White, Male, 0, 0, 45, Cuba, >50K\n"
)


def pack_idx(array: NDArray[np.uint8]) -> bytes:
    """An array as the bytes of an idx file."""
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes() + array.tobytes()


def write_idx(folder: Path, ending: str = ".gz") -> list[NDArray[np.uint8]]:
    """Five training and three test images with labels."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    parts = [rng.integers(256, size=size, dtype=np.uint8) for size in ((5, 28, 28), (5,), (3, 28, 28), (3,))]
    parts[1] %= 10
    parts[3] %= 10
    for name, part in zip(IDX_FILES, parts, strict=True):
        blob = pack_idx(part)
        (folder / (name + ending)).write_bytes(gzip.compress(blob, mtime=0) if ending else blob)
    return parts


def write_cifar(folder: Path) -> None:
    """Two images in each of the six batches; image i of batch b is grey b * 10 + i with label i."""
    folder.mkdir(parents=True)
    for b, name in enumerate(Cifar10.SOURCE.checksums):
        (folder / name).write_bytes(b"".join(bytes([i]) + bytes([b * 10 + i]) * 3072 for i in range(2)))


def write_adult(folder: Path) -> None:
    """Two training rows, and two test rows of which one has an unseen category."""
    folder.mkdir(parents=True)
    (folder / "adult.data").write_text(ADULT_ROWS + "\n")
    test = "|1x3 Cross validator\n" + ADULT_ROWS.replace("Cuba", "Peru").replace("50K\n", "50K.\n")
    (folder / "adult.test.gz").write_bytes(gzip.compress(test.encode(), mtime=0))


def problems(attempt: Callable[[], object]) -> list[str]:
    """The problems of the UserError that `attempt` raises."""
    with pytest.raises(UserError) as caught:
        attempt()
    return caught.value.problems


@pytest.mark.slow
def test_digits_are_scaled_and_the_test_set_is_stratified(tmp_path: Path) -> None:
    """A fifth of each class is held out, the same for the same seed and another for another."""
    first, again, other = (Digits().load(tmp_path, seed) for seed in (1, 1, 2))
    assert first.train_x.shape == (Digits().records(), 1, 8, 8)
    assert first.test_x.shape == (359, 1, 8, 8)
    assert (first.train_x.min(), first.train_x.max()) == (0.0, 1.0)
    assert set(np.bincount(first.test_y)) == {35, 36, 37}
    assert tuple(np.bincount(first.train_y)) == Digits().class_counts()
    assert np.array_equal(first.test_x, again.test_x)
    assert not np.array_equal(first.test_x, other.test_x)


@pytest.mark.parametrize("ending", [".gz", ""])
def test_idx_files_are_read_packed_or_plain(tmp_path: Path, ending: str) -> None:
    """Pixels are standardised by the published mean and deviation."""
    parts = write_idx(tmp_path / "mnist", ending)
    loaded = Mnist().load(tmp_path, 0)
    assert loaded.train_x.shape == (5, 1, 28, 28)
    assert loaded.train_x.dtype == np.float32
    assert np.allclose(loaded.train_x[:, 0], (parts[0] / 255 - 0.1307) / 0.3081, atol=1e-5)
    assert loaded.train_y.tolist() == parts[1].tolist()
    assert loaded.test_y.dtype == np.int64
    assert len(loaded.test_x) == 3


def test_fashion_mnist_has_its_own_folder_and_mean(tmp_path: Path) -> None:
    """The same format under another name."""
    parts = write_idx(tmp_path / "fashion-mnist")
    loaded = FashionMnist().load(tmp_path, 0)
    assert np.allclose(loaded.test_x[:, 0], (parts[2] / 255 - 0.2860) / 0.3530, atol=1e-5)


def test_cifar_batches_are_read_in_order(tmp_path: Path) -> None:
    """Five training batches, one test batch, colour planes first."""
    write_cifar(tmp_path / "cifar10")
    loaded = Cifar10().load(tmp_path, 0)
    assert loaded.train_x.shape == (10, 3, 32, 32)
    assert loaded.test_y.tolist() == [0, 1]
    assert loaded.train_x[3, 2, 0, 0] == pytest.approx((11 / 255 - 0.44653) / 0.26159, abs=1e-5)


def test_adult_is_one_hot_and_standardised(tmp_path: Path) -> None:
    """Six standardised numbers, then one column per category of the training part; unknown ones are all zeros."""
    write_adult(tmp_path / "adult")
    loaded = Adult().load(tmp_path, 0)
    assert loaded.train_y.tolist() == loaded.test_y.tolist() == [0, 1]
    assert np.allclose(np.abs(loaded.train_x[:, [0, 1, 2, 3, 5]]), 1.0, atol=1e-5)
    assert np.all(loaded.train_x[:, 4] == 0)
    assert loaded.train_x[:, 6:].sum(axis=1).tolist() == [8, 8]
    assert loaded.test_x[:, 6:].sum(axis=1).tolist() == [8, 7]


def test_a_missing_file_says_which_where_from_and_its_checksum(tmp_path: Path) -> None:
    """Every missing file is one problem."""
    found = problems(lambda: Mnist().load(tmp_path, 0))
    assert len(found) == 4
    path = tmp_path / "mnist" / "train-images-idx3-ubyte.gz"
    assert found[0].startswith(f"data.name = mnist: the file {path} is missing; get it from the authors' page")
    assert "SHA-256 440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609" in found[0]
    assert "--data-dir DIR or PEERVEIL_DATA" in found[0]
    assert "MD5 803d5f7f4d78ea53de84dbe85f74fb6d" in problems(lambda: Cifar10().load(tmp_path, 0))[-1]
    assert "archive.ics.uci.edu" in problems(lambda: Adult().load(tmp_path, 0))[0]


@pytest.mark.parametrize(
    ("name", "blob", "fault"),
    [
        ("train-images-idx3-ubyte.gz", b"not gzip", "cannot be read"),
        ("train-images-idx3-ubyte.gz", gzip.compress(b"xx", mtime=0)[:-9], "cannot be read"),
        ("train-images-idx3-ubyte.gz", gzip.compress(b"short", mtime=0), "does not begin like an idx file"),
        (
            "t10k-labels-idx1-ubyte.gz",
            gzip.compress(pack_idx(np.zeros(3, dtype=np.uint8))[:-1], mtime=0),
            "says 3 bytes and holds 2",
        ),
        (
            "t10k-labels-idx1-ubyte.gz",
            gzip.compress(pack_idx(np.full(3, 10, dtype=np.uint8)), mtime=0),
            "has the label 10",
        ),
        (
            "t10k-labels-idx1-ubyte.gz",
            gzip.compress(pack_idx(np.zeros(4, dtype=np.uint8)), mtime=0),
            "3 images for 4 labels",
        ),
    ],
)
def test_a_broken_idx_file_is_a_users_error(tmp_path: Path, name: str, blob: bytes, fault: str) -> None:
    """The message names the file and the fault."""
    write_idx(tmp_path / "mnist")
    (tmp_path / "mnist" / name).write_bytes(blob)
    assert fault in problems(lambda: Mnist().load(tmp_path, 0))[0]


def test_broken_cifar_and_adult_files_are_users_errors(tmp_path: Path) -> None:
    """A cut batch, a cut row, a number that is none."""
    write_cifar(tmp_path / "cifar10")
    (tmp_path / "cifar10" / "data_batch_2.bin").write_bytes(b"123")
    assert "data_batch_2.bin: holds 3 bytes" in problems(lambda: Cifar10().load(tmp_path, 0))[0]
    write_adult(tmp_path / "adult")
    for text, fault in (("39, State-gov\n", "not 14 attributes"), (ADULT_ROWS.replace("39", "old"), "not a number")):
        (tmp_path / "adult" / "adult.data").write_text(text)
        assert fault in problems(lambda: Adult().load(tmp_path, 0))[0]


def test_synthetic_is_balanced_learnable_and_of_any_shape(tmp_path: Path) -> None:
    """Nearest centre classifies well separated clouds."""
    loaded = Synthetic(samples=300, test_samples=100, shape=(2, 4, 4), classes=3, spread=0.5).load(tmp_path, 1)
    assert loaded.train_x.shape == (300, 2, 4, 4)
    assert np.bincount(loaded.train_y).tolist() == [100, 100, 100]
    assert Synthetic(samples=11, classes=3).class_counts() == (4, 4, 3)
    centres = np.stack([loaded.train_x[loaded.train_y == label].mean(axis=0).ravel() for label in range(3)])
    distances = np.linalg.norm(loaded.test_x.reshape(100, 1, -1) - centres, axis=2)
    assert (distances.argmin(axis=1) == loaded.test_y).mean() > 0.95


def write_table(path: Path) -> None:
    """Twenty records with a number, a text, a label and an owner."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    columns = {
        "size": [float(i) for i in range(20)],
        "colour": ["red", "green"] * 10,
        "kind": ["a", "b", "c", "d"] * 5,
        "who": [f"user{i // 4}" for i in range(20)],
    }
    if path.suffix == ".npz":
        features = np.arange(20, dtype=np.int32).reshape(20, 1)
        np.savez(path, x=features, kind=np.array(columns["kind"]), who=np.array(columns["who"]))
    else:
        (csv.write_csv if path.suffix == ".csv" else parquet.write_table)(pa.table(columns), path)


@pytest.mark.parametrize(("ending", "features"), [("npz", 1), ("csv", 3), ("parquet", 3)])
def test_own_files_load_with_labels_and_owners(tmp_path: Path, ending: str, features: int) -> None:
    """Labels and owners become numbers; text becomes one column per word; features are standardised."""
    write_table(tmp_path / f"mine.{ending}")
    loaded = File(path=f"mine.{ending}", label="kind", client="who", test_share=0.2).load(tmp_path, 1)
    assert loaded.train_x.shape == (16, features)
    assert loaded.classes == 4
    assert len(loaded.test_y) == 4
    assert loaded.client is not None
    assert len(loaded.client) == 16
    assert set(loaded.client) <= set(range(5))
    assert np.allclose(loaded.train_x.mean(axis=0), 0, atol=1e-6)
    raw = File(path=str(tmp_path / f"mine.{ending}"), label="kind", client="who", standardise=False).load(tmp_path, 1)
    assert set(raw.train_x[:, 0]) <= set(range(20))


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("mine.txt", b"", "must end in .npz, .csv, .parquet"),
        ("mine.npz", b"junk", "cannot be read as npz"),
        ("mine.parquet", b"junk", "cannot be read as parquet"),
        ("mine.csv", b"", "cannot be read as csv"),
        ("mine.csv", b"a,b\n1,2\n3,4\n", "has no `label`, only a, b"),
        ("mine.csv", b"label\n1\n2\n", "has no column besides label and client"),
        ("mine.csv", b"a,label\n1,0\n,1\n3,0\n", "missing or infinite features"),
        ("mine.csv", b"a,label\n1,0\n2,\n", "labels have missing"),
        ("mine.csv", b"a,label\n1,0\n2,1\n", "leaves no records to train or to test on"),
    ],
)
def test_own_files_with_faults_are_users_errors(tmp_path: Path, name: str, content: bytes, fault: str) -> None:
    """Each says what to do about it."""
    (tmp_path / name).write_bytes(content)
    assert fault in problems(lambda: File(path=str(tmp_path / name)).load(tmp_path, 0))[0]


def test_an_absent_own_file_is_a_users_error(tmp_path: Path) -> None:
    """Named with its path."""
    assert "no such file" in problems(lambda: File(path="absent.csv").load(tmp_path, 0))[0]


def test_the_data_folder_is_option_then_environment_then_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this order."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PEERVEIL_DATA", str(tmp_path / "named"))
    assert resolve_data_dir(tmp_path) == tmp_path
    assert resolve_data_dir(None) == tmp_path / "named"
    monkeypatch.delenv("PEERVEIL_DATA")
    assert resolve_data_dir(None) == tmp_path / "cache" / "peerveil"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert resolve_data_dir(None) == Path.home() / ".cache" / "peerveil"


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "cifar10", "adult"])
def test_the_real_sets_are_what_their_class_says(name: str) -> None:
    """Counts, shapes and standardisation of the published files."""
    if "PEERVEIL_DATA" not in os.environ:
        pytest.skip("set PEERVEIL_DATA to a folder with the data sets")
    chosen = DATASETS[name]()
    loaded: Dataset = chosen.load(resolve_data_dir(None), 0)
    assert len(loaded.train_x) == chosen.records()
    assert tuple(np.bincount(loaded.train_y)) == chosen.class_counts()
    assert (loaded.shape, loaded.classes) == chosen.form()
    if name != "adult":
        assert abs(float(loaded.train_x.mean())) < 1e-3
        assert float(loaded.train_x.std()) == pytest.approx(1.0, abs=1e-3)
        assert len(loaded.test_y) == 10_000
