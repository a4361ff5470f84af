"""The tracked token states: what they are, and that the script still makes them."""

import numpy as np
import pytest

from experiments.data import REAL_TOKENS, load_attention_entropies, load_real_tokens
from experiments.data.make_real_tokens import make_arrays, read_sentences, write
from meanfield.pretrained.minilm import ModelNotInstalledError, load_minilm


def test_the_tracked_states_are_a_dozen_sentences_of_seven_finite_depths_in_under_3_mb():
    assert REAL_TOKENS.stat().st_size < 3e6
    with np.load(REAL_TOKENS) as data:
        assert data["states"].dtype == np.float32
    examples = load_real_tokens()
    assert [sentence for sentence, _, _ in examples] == read_sentences()
    assert len(examples) == 12
    for _, tokens, states in examples:
        assert tokens[0] == "[CLS]"
        assert tokens[-1] == "[SEP]"
        assert tokens.count("[SEP]") == 1
        assert len(states) == 7
        for state in states:
            assert state.shape == (len(tokens), 384)
            assert np.isfinite(state).all()


def test_the_tokens_spell_their_sentence():
    for sentence, tokens, _ in load_real_tokens():
        spelt = "".join(token.removeprefix("##") for token in tokens[1:-1])
        assert spelt == sentence.lower().replace(" ", "")


def test_every_state_has_just_passed_through_the_layer_norm_of_its_depth():
    with np.load(REAL_TOKENS) as data:
        states, gains, biases = (data[name].astype(np.float64) for name in ("states", "gains", "biases"))
    for state, gain, bias in zip(states, gains, biases, strict=True):
        u = (state - bias) / gain
        # float32 round-off 6e-8 of states up to 60 times their deviation, averaged over 384 features
        np.testing.assert_allclose(u.mean(axis=1), 0, atol=1e-6)
        np.testing.assert_allclose((u**2).mean(axis=1), 1, atol=1e-6)


def test_attention_entropies_lie_between_one_key_and_all_keys():
    for entropies, (_, tokens, _) in zip(load_attention_entropies(), load_real_tokens(), strict=True):
        assert entropies.shape == (6, 12, len(tokens))
        assert (entropies >= 0).all()
        assert (entropies <= np.log(len(tokens)) * (1 + 1e-6)).all()
        assert entropies.mean() > 0.1 * np.log(len(tokens))


def test_the_script_makes_the_tracked_file_again(tmp_path):
    try:
        model = load_minilm()
    except ModelNotInstalledError as error:
        pytest.skip(f"{error}")  # the message ends with `make models`
    made = make_arrays(model, read_sentences())
    with np.load(REAL_TOKENS) as tracked:
        assert set(tracked.files) == set(made)
        for name, array in made.items():
            assert tracked[name].dtype == array.dtype
            if array.dtype.kind == "f":
                # another BLAS may round the last bit of float32 the other way: 6e-8 of entries up to 10
                np.testing.assert_allclose(array, tracked[name], rtol=3e-7, atol=3e-7, err_msg=name)
            else:
                np.testing.assert_array_equal(array, tracked[name], err_msg=name)
    for name in ("first.npz", "second.npz"):
        write(tmp_path / name, made)
    assert (tmp_path / "first.npz").read_bytes() == (tmp_path / "second.npz").read_bytes()
