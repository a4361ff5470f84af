"""The record of the two views: real tokens kept isometrically, steps that are whole, edits that stop at the mask."""

import numpy as np
import pytest

from experiments import two_views
from experiments.data import load_real_tokens
from meanfield.encoder.operators import layer_norm, rms_norm


@pytest.fixture(scope="module")
def toy():
    return two_views.run({"part": "toy"}, np.random.default_rng(0))


def test_sixteen_coordinates_keep_every_length_and_angle_of_the_real_embeddings():
    words, x, others = two_views.sentence_words()
    data = load_real_tokens()
    states = np.vstack([data[5][2][0][1:-2], data[9][2][0][10], data[10][2][0][18], data[1][2][0][12]])
    ours = np.vstack([x, others])
    gram = states @ states.T
    ratio = np.trace(ours @ ours.T) / np.trace(gram)
    np.testing.assert_allclose(ours @ ours.T, ratio * gram, rtol=0, atol=1e-10)
    assert np.sqrt(np.mean(ours**2)) == pytest.approx(2, rel=1e-12)
    assert " ".join(words) == "the bank raised its interest rate twice before the summer"
    assert [data[k][1][j] for k, j in ((9, 10), (10, 18), (1, 12))] == ["concert", "sofa", "money"]


def test_the_small_layer_has_its_22_steps_and_the_tokens_move_at_three_stops(toy):
    assert len(toy["names"]) == len(toy["formulas"]) == 22
    np.testing.assert_array_equal(toy["stops"], [0, 19, 22])
    for k, stop in enumerate(toy["stops"]):
        flat = (toy[f"step_{stop:02d}"] - toy["plane_mean"]) @ toy["plane_axes"].T
        np.testing.assert_allclose(toy["places"][k], flat, atol=1e-12)
    np.testing.assert_allclose(toy["plane_axes"] @ toy["plane_axes"].T, np.eye(2), atol=1e-12)
    weights, values, sums = (toy[f"step_{toy[f'{role}_step']:02d}"] for role in ("attention", "value", "output"))
    np.testing.assert_allclose(np.einsum("hij,hjp->hip", weights, values), sums, atol=1e-13)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-14)


def test_another_last_word_changes_no_earlier_bit_and_without_the_mask_every_token(toy):
    for k in (0, *range(1, 12), *range(14, 23)):
        edited, before = toy[f"edited_{k:02d}"], toy[f"step_{k:02d}"]
        np.testing.assert_array_equal(edited[..., :-1, :], np.broadcast_to(before, edited.shape)[..., :-1, :])
    assert (np.abs(toy["edited_22"] - toy["step_22"])[:, -1].max(axis=1) > 0.1).all()
    assert (np.abs(toy["open"][1:] - toy["open"][0]).max(axis=2) > 1e-3).all()
    assert np.abs(toy["open"][0] - toy["step_22"]).max() > 0.1


def test_norms_are_those_of_the_shifted_tokens_and_land_on_their_sets(toy):
    x, shifts = toy["step_00"], toy["shifts"]
    np.testing.assert_allclose(toy["layer_norm"][3], layer_norm(x + shifts[3], eps=1e-5), atol=1e-14)
    np.testing.assert_allclose(toy["rms_norm"][3], rms_norm(x + shifts[3], eps=1e-6), atol=1e-14)
    # LayerNorm forgets a shift, RMSNorm does not; both leave rms 1 up to eps / (twice a mean square of order one)
    assert np.ptp(toy["layer_norm"], axis=0).max() < 1e-12
    assert np.abs(toy["rms_norm"][0] - toy["rms_norm"][-1]).max() > 0.5
    before, centred, scaled = toy["moments"]
    np.testing.assert_allclose(before[..., 2] ** 2, before[..., 0] ** 2 + before[..., 1] ** 2, rtol=1e-12)
    np.testing.assert_allclose(centred, np.broadcast_to([0, 1, 1], centred.shape), atol=1e-4)
    np.testing.assert_allclose(scaled[..., 2], 1, atol=1e-5)


def test_the_depths_are_minilms_states_and_need_no_weights():
    view = two_views.run({"part": "depths"}, None)
    _, words, states = load_real_tokens()[5]
    assert list(view["tokens"]) == words
    assert view["attention_step"] == 0
    for k, state in enumerate(states):
        np.testing.assert_array_equal(view[f"step_{k:02d}"], state.astype(np.float32))


@pytest.mark.skipif(not two_views.weights_installed(), reason="MiniLM is not installed: make models")
def test_the_steps_of_minilm_end_at_its_recorded_states():
    view = two_views.run({"part": "minilm"}, None)
    _, _, states = load_real_tokens()[5]
    last = len(view["names"])
    np.testing.assert_allclose(view[f"step_{last:02d}"], states[1], rtol=0, atol=1e-4)  # single precision, 384 wide
    np.testing.assert_allclose(view["step_06"], view["step_05"] @ view["step_03"], rtol=0, atol=1e-5)


def test_flows_start_at_the_words_and_their_gaussian_at_their_moments():
    runs = {
        variant: two_views.run({"part": "flow", "variant": variant, "beta": 1.0, "sign": 1.0, "outputs": 5}, None)
        for variant in ("softmax", "linear", "masked")
    }
    start = runs["softmax"]["points"][0]
    np.testing.assert_allclose(start.mean(axis=0), 0, atol=1e-12)
    assert np.mean(np.sum(start**2, axis=1)) == pytest.approx(1, rel=1e-12)
    for run in runs.values():
        np.testing.assert_array_equal(run["points"][0], start)
    assert "gaussian_times" not in runs["masked"]
    # V = A = I: the Gaussian has its pole at 1 / (2 lambda_max) of its covariance; linear tokens share it, softmax none
    pole = 1 / (2 * np.linalg.eigvalsh(np.cov(start.T, ddof=0))[-1])
    assert runs["softmax"]["gaussian_blow_up"] == pytest.approx(pole, rel=1e-6)
    assert runs["linear"]["blow_up"] == pytest.approx(pole, rel=1e-6)
    assert np.isnan(runs["softmax"]["blow_up"])
    alone = np.exp(runs["masked"]["times"])[:, None] * start[0]
    np.testing.assert_allclose(runs["masked"]["points"][:, 0], alone, rtol=1e-6)


def test_a_quick_run_is_one_temperature_and_one_sign():
    quick, usual = two_views.cases(True), two_views.cases(False)
    assert {case["variant"] for case in quick if case["part"] == "flow"} == set(two_views.VARIANTS)
    assert all(case in usual for case in quick)
    assert len(usual) - len(quick) == 25
