"""Animations: one frame an output time, whole or absent, and a plain word where ffmpeg is missing."""

import matplotlib.animation
import numpy as np
import pytest
from PIL import Image

from meanfield.plotting import animate

from .runs import gaussian, tokens


def frames(path):
    """Frames of a GIF as arrays."""
    with Image.open(path) as picture:
        found = []
        for k in range(picture.n_frames):
            picture.seek(k)
            found.append(np.asarray(picture.convert("RGB")))
    return found


@pytest.mark.parametrize(
    "run",
    [tokens(1, 1), tokens(3, 2), tokens(3, 3), gaussian(2), gaussian(1, 3)],
    ids=["line", "plane", "space", "law", "law in space"],
)
def test_a_gif_has_a_frame_for_each_output_time_in_fixed_axes(run, tmp_path):
    told = []
    path = animate(run, tmp_path / "new" / "run.gif", dpi=40, title="run", progress=lambda k, of: told.append((k, of)))
    pictures = frames(path)
    assert len(pictures) == len(run) == 4
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [file.name for file in path.parent.iterdir()] == ["run.gif"]
    rows = [np.flatnonzero((picture < 128).all(axis=2).any(axis=1)) for picture in pictures]
    assert len({row.max() for row in rows}) == 1, "nothing but the run and the clock moves"


def test_one_output_time_is_one_frame(tmp_path):
    assert len(frames(animate(tokens(2, 2, k=1), tmp_path / "one.gif", dpi=40))) == 1


def test_mp4_without_ffmpeg_names_it_before_a_frame_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(matplotlib.animation.FFMpegWriter, "isAvailable", classmethod(lambda cls: False))
    monkeypatch.setattr("meanfield.plotting.animation.panel", None)  # would fail if anything were drawn
    with pytest.raises(RuntimeError, match=r"'run.mp4' needs the program ffmpeg.*save 'run.gif'"):
        animate(tokens(2, 2), tmp_path / "run.mp4")
    assert list(tmp_path.iterdir()) == []


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"saved as .gif or .mp4; got 'run.avi'"):
        animate(tokens(2, 2), tmp_path / "run.avi")


def test_a_run_that_fails_in_the_middle_leaves_no_file(tmp_path):
    def stop(k, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        animate(tokens(2, 2), tmp_path / "run.gif", dpi=40, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_gaussian_on_a_line_is_refused_with_the_cure(tmp_path):
    with pytest.raises(ValueError, match="animated in 2 or 3 dimensions; got 1"):
        animate(gaussian(1, 1), tmp_path / "law.gif")
