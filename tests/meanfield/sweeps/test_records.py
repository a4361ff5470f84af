"""Records are whole or absent, deterministic in their arrays, strict in their header, and never unpickled."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest

from meanfield.sweeps.records import atomic_file, load_record, remove_stale_temporaries, save_record

ARRAYS = {
    "x": np.arange(6.0).reshape(2, 3),
    "file": np.array([np.nan, np.inf, -0.0]),
    "0/self": np.array(["a", "é"]),
    "count": 3,
    "mask": np.array([True]),
    "empty": np.zeros((0, 2), dtype=np.float32),
}
HEADER = {"parameters": {"beta": 0.1, "sizes": (1, 2)}, "seed": 2**70, "note": None}


class Bomb:
    """Touches a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path, **changes):
    """The file again, with some members replaced by other bytes."""
    content = members(path) | {f"{name}.npy": data for name, data in changes.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def test_a_record_gives_back_bits_dtypes_and_header(tmp_path):
    path = save_record(tmp_path / "new" / "a.npz", ARRAYS, HEADER)
    record = load_record(str(path))
    assert record.path == path
    assert list(record.arrays) == list(ARRAYS)
    for name, value in ARRAYS.items():
        array = np.asarray(value)
        assert (record.arrays[name].dtype, record.arrays[name].shape) == (array.dtype, array.shape)
        assert record.arrays[name].tobytes() == array.tobytes()
    assert record.header["parameters"] == {"beta": 0.1, "sizes": [1, 2]}
    assert record.header["seed"] == 2**70
    assert record.header["numpy_version"] == np.__version__
    assert {"format_version", "meanfield_version", "scipy_version", "python_version", "written"} < set(record.header)
    assert os.listdir(path.parent) == ["a.npz"]


def test_a_loaded_record_can_be_saved_again_and_numpy_reads_it_too(tmp_path):
    first = load_record(save_record(tmp_path / "a.npz", ARRAYS, HEADER))
    save_record(tmp_path / "b.npz", first.arrays, first.header)
    with np.load(tmp_path / "b.npz", allow_pickle=False) as archive:
        assert json.loads(str(archive["header"]))["seed"] == 2**70
        np.testing.assert_array_equal(archive["x"], ARRAYS["x"])


def test_the_bytes_of_arrays_depend_on_their_values_only(tmp_path):
    x = np.arange(6.0).reshape(2, 3)
    one = members(save_record(tmp_path / "a.npz", {"x": x}, {}))
    two = members(save_record(tmp_path / "b.npz", {"x": np.asfortranarray(x)}, {"other": 1}))
    assert one["x.npy"] == two["x.npy"]


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"a": {"b": [1.0, float("nan")]}}, r"header\['a'\]\['b'\]\[1\] must be finite"),
        ({"a": np.inf}, "strict JSON"),
        ({1: 2}, r"keys of header must be strings; got 1\. Write '1'"),
        ({"a": np.zeros(2)}, "Put arrays into `arrays`"),
        ({"a": {1, 2}}, "got set"),
        ([1], "header must be a dict"),
    ],
)
def test_a_header_that_is_not_strict_json_is_refused(tmp_path, header, said):
    with pytest.raises(ValueError, match=said):
        save_record(tmp_path / "a.npz", {}, header)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"x": np.array([{}, None])}, "array 'x' must hold numbers.*dtype object"),
        ({"x": [[1], [1, 2]]}, "rows of one length"),
        ({"x": np.ma.masked_array([1.0], [True])}, "no mask"),
        ({"header": 1}, "not 'header'"),
        ({3: 1}, "names of arrays must be"),
        ([1], "arrays must be a dict"),
    ],
)
def test_arrays_that_need_pickle_or_have_no_name_are_refused(tmp_path, arrays, said):
    with pytest.raises(ValueError, match=said):
        save_record(tmp_path / "a.npz", arrays, {})
    assert os.listdir(tmp_path) == []


def test_a_name_without_npz_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"end in \.npz; got 'a\.txt'\. Use 'a\.npz'"):
        save_record(tmp_path / "a.txt", {}, {})


def test_a_failed_write_leaves_the_old_file_and_no_temporary(tmp_path, monkeypatch):
    path = save_record(tmp_path / "a.npz", {"x": 1}, {})
    before = path.read_bytes()

    def full(handle):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        save_record(path, {"x": 2}, {})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.npz"]


def test_no_cut_and_no_flipped_byte_gives_wrong_numbers(tmp_path):
    path = save_record(tmp_path / "a.npz", ARRAYS, HEADER)
    whole, expected = path.read_bytes(), load_record(path)
    rng = np.random.default_rng(5)
    cuts = [whole[: int(k)] for k in rng.integers(0, len(whole), 150)]
    flips = []
    for where, bit in zip(rng.integers(0, len(whole), 600), rng.integers(0, 8, 600), strict=True):
        damaged = bytearray(whole)
        damaged[where] ^= 1 << int(bit)
        flips.append(bytes(damaged))
    refused = 0
    for content in cuts + flips:
        path.write_bytes(content)
        try:
            record = load_record(path)
        except ValueError as error:
            refused += str(path) in str(error)
            continue
        # Dates and flags in the archive's own tables carry no data; a name's damage is seen by its reader.
        assert record.header == expected.header
        for name in set(record.arrays) & set(expected.arrays):
            assert record.arrays[name].tobytes() == expected.arrays[name].tobytes()
    assert refused > 500


@pytest.mark.parametrize(
    "kind", ["pickle", "object member", "text", "empty", "foreign npz", "nan header", "compressed"]
)
def test_foreign_and_hostile_files_are_named_and_never_unpickled(tmp_path, kind):
    path, mark = save_record(tmp_path / "bad.npz", {"x": 1.0}, {}), tmp_path / "executed"
    bomb = np.array([Bomb(mark)], dtype=object)
    if kind == "pickle":
        path.write_bytes(pickle.dumps(Bomb(mark)))
    elif kind == "object member":
        rewritten(path, x=npy(bomb, allow_pickle=True))
    elif kind == "text":
        path.write_text("beta,gamma\n1,2\n")
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "foreign npz":
        np.savez(path, x=np.zeros(2))
    elif kind == "nan header":
        rewritten(path, header=npy(np.array('{"format_version": 1, "seed": NaN}')))
    else:
        np.savez_compressed(path, x=np.zeros(2), header=np.array('{"format_version": 1}'))
    with pytest.raises(ValueError, match=r"bad\.npz must be a whole record written by save_record"):
        load_record(path)
    assert not mark.exists()


def test_a_shape_that_would_fill_the_memory_is_refused(tmp_path):
    path = save_record(tmp_path / "bad.npz", {"x": np.zeros(2)}, {})
    huge = npy(np.zeros(2)).replace(b"(2,), }" + b" " * 13, b"(10000000000000,), }")
    assert b"(10000000000000,)" in huge
    with pytest.raises(ValueError, match=r"bad\.npz must be a whole record"):
        load_record(rewritten(path, x=huge))


def test_a_record_of_a_later_format_names_its_writer(tmp_path):
    path = save_record(tmp_path / "a.npz", {}, {})
    rewritten(path, header=npy(np.array('{"format_version": 99, "meanfield_version": "7.0"}')))
    with pytest.raises(ValueError, match=r"it has 99\. Read it with meanfield '7\.0'"):
        load_record(path)


def test_a_missing_record_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no record at"):
        load_record(tmp_path / "none.npz")


def test_only_temporaries_of_dead_writers_are_swept(tmp_path):
    with atomic_file(tmp_path / "a.npz") as handle:
        ours = next(iter(tmp_path.glob(".*.tmp")))
        handle.write(b"x")
    host = ours.name.split(".")[3]
    dead, living, far = (f".a.npz.{where}.0123abcd.tmp" for where in (f"{host}.99999999", f"{host}.1", "elsewhere.5"))
    for name in (dead, living, far, ".not-ours.tmp", "notes.tmp"):
        (tmp_path / name).touch()
    assert remove_stale_temporaries(tmp_path) == [dead]
    os.utime(tmp_path / far, (0, 0))
    assert remove_stale_temporaries(tmp_path) == [far]
    assert sorted(os.listdir(tmp_path)) == sorted([living, ".not-ours.tmp", "a.npz", "notes.tmp"])
