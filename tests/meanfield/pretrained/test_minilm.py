"""MiniLM: the forward pass against plain loops (always) and against another implementation (with the weights)."""

import dataclasses
import importlib.metadata
import math

import numpy as np
import pytest

from meanfield.parameters import Head
from meanfield.pretrained import minilm
from meanfield.pretrained.minilm import Dense, Layer, MiniLM, ModelNotInstalledError, Norm, gelu, load_minilm

SENTENCE = "He sat on the bank of the canal and counted the passing boats."


@pytest.fixture(scope="module")
def real():
    try:
        return load_minilm()
    except ModelNotInstalledError as error:
        pytest.skip(f"{error}")  # the message ends with `make models`


def random_model(rng, d=6, heads=2, hidden=10, depth=2, vocabulary=11, longest=7):
    """A small model of the same kind, with gains and biases that are neither 1 nor 0."""

    def dense(out, into):
        return Dense(rng.standard_normal((out, into)), rng.standard_normal(out))

    def norm():
        return Norm(rng.standard_normal(d), rng.standard_normal(d), eps=1e-3)

    def layer():
        square = [dense(d, d) for _ in range(4)]
        return Layer(*square, norm(), dense(hidden, d), dense(d, hidden), norm(), heads=heads)

    tables = [rng.standard_normal(shape) for shape in ((vocabulary, d), (longest, d), (d,))]
    return MiniLM(*tables, norm(), tuple(layer() for _ in range(depth)))


def looped_norm(norm, row):
    mean = sum(row) / len(row)
    root = math.sqrt(sum((x - mean) ** 2 for x in row) / len(row) + norm.eps)
    return [g * (x - mean) / root + b for x, g, b in zip(row, norm.gain, norm.bias, strict=True)]


def looped_dense(dense, row):
    lines = zip(dense.weight, dense.bias, strict=True)
    return [b + sum(w * x for w, x in zip(line, row, strict=True)) for line, b in lines]


def looped_sum(a, b):
    return [x + y for x, y in zip(a, b, strict=True)]


def looped_layer(layer, tokens):
    """A post-norm layer, token by token and head by head, with nothing but sums."""
    q, k, v = ([looped_dense(part, row) for row in tokens] for part in (layer.query, layer.key, layer.value))
    width = len(tokens[0]) // layer.heads
    result = []
    for i, row in enumerate(tokens):
        joined = []
        for h in range(layer.heads):
            own = range(h * width, (h + 1) * width)
            mass = [math.exp(sum(q[i][c] * key[c] for c in own) / math.sqrt(width)) for key in k]
            joined += [sum(m * value[c] for m, value in zip(mass, v, strict=True)) / sum(mass) for c in own]
        u = looped_norm(layer.attention_norm, looped_sum(row, looped_dense(layer.output, joined)))
        wide = [x * 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in looped_dense(layer.expand, u)]
        result.append(looped_norm(layer.output_norm, looped_sum(u, looped_dense(layer.contract, wide))))
    return result


def test_hidden_states_equal_plain_loops():
    model = random_model(np.random.default_rng(0))
    ids = [3, 10, 0, 3, 7]
    tokens = [
        looped_norm(model.embedding_norm, list(model.words[i] + model.positions[place] + model.kind))
        for place, i in enumerate(ids)
    ]
    states = model.hidden_states(ids)
    assert len(states) == 3
    np.testing.assert_allclose(states[0], tokens, rtol=0, atol=1e-13)
    for layer, state in zip(model.layers, states[1:], strict=True):
        tokens = looped_layer(layer, tokens)
        np.testing.assert_allclose(state, tokens, rtol=0, atol=1e-11)  # round-off through two layers of order 10


def test_the_heads_add_up_to_the_attention_of_a_layer_without_biases():
    model = random_model(np.random.default_rng(1))
    full = model.layers[1]
    plain = {name: Dense(getattr(full, name).weight, np.zeros(6)) for name in ("query", "key", "value", "output")}
    layer = dataclasses.replace(full, **plain)
    x = np.random.default_rng(2).standard_normal((5, 6))
    total = np.zeros_like(x)
    heads = model.heads(1)
    for head, attention in zip(heads, layer.attention(x), strict=True):
        assert isinstance(head, Head)
        assert head.query.shape == (3, 6)
        assert head.scale == pytest.approx(3**-0.5, rel=1e-15)
        weights = np.exp(x @ head.A.T @ x.T)
        weights /= weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(attention, weights, rtol=1e-12, atol=1e-14)
        total += weights @ x @ head.value.T
    np.testing.assert_allclose(layer.attend(x), total, rtol=1e-12, atol=1e-12)


def test_gelu_is_the_exact_one():
    # x Phi(x) at 1 and -1 (Phi(1) = 0.841344746068543); the tanh approximation gives 0.84119199 at 1.
    np.testing.assert_allclose(gelu(np.array([0.0, 1.0, -1.0])), [0, 0.841344746068543, -0.158655253931457], atol=1e-15)


def test_attention_of_huge_logits_stays_finite():
    rng = np.random.default_rng(3)
    layer = random_model(rng).layers[0]
    weights = layer.attention(1e4 * rng.standard_normal((4, 6)))
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-14)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], r"1 to 7 whole numbers.*got shape \(0,\)"),
        ([0] * 8, r"1 to 7 whole numbers.*got shape \(8,\)"),
        ([[0, 1]], r"got shape \(1, 2\)"),
        ([0.0, 1.0], "dtype float64"),
        ([0, 11], r"ids must lie in \[0, 11\); got 0 to 11"),
        ([-1, 3], "got -1 to 3"),
    ],
)
def test_ids_that_are_none_of_the_vocabulary_are_refused(ids, message):
    with pytest.raises(ValueError, match=message):
        random_model(np.random.default_rng(4)).hidden_states(ids)


def test_a_layer_that_is_not_there_and_a_missing_tokenizer_are_refused():
    model = random_model(np.random.default_rng(5))
    with pytest.raises(ValueError, match="layer must be less than 2, the number of layers; got 2"):
        model.heads(2)
    with pytest.raises(ValueError, match=r"made without one. Use load_minilm\(\)"):
        model.encode("a")


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(minilm, "PACKAGE", "no-such-package-of-weights")
    with pytest.raises(ModelNotInstalledError, match=r"no-such-package-of-weights 0\.1\.0.*Run `make models`"):
        load_minilm()


def test_another_version_of_the_weights_is_refused(monkeypatch):
    pytest.importorskip("safetensors", reason="run `make models`")
    pytest.importorskip("tokenizers", reason="run `make models`")

    class Other:
        version = "9.9"

    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Other())
    with pytest.raises(ModelNotInstalledError, match=r"version 9\.9 is installed. Run `make models`"):
        load_minilm()


#: Entries [0, 0], [5, 100] and [15, 383] and the Frobenius norm of the states of SENTENCE after the embedding and after
#: each layer, made once by BertModel of transformers 5.24.0 on torch 2.13.0 (eager attention, weights as float64, CPU)
#: from the same file. On all twelve sentences of experiments/data the two agreed to 8e-15, attention weights to 5e-15.
REFERENCE = [
    [-0.176567509962, -0.220061131818, -0.0139932924954, 36.5403468649],
    [-0.00370348741233, -0.112170753799, 0.191655020226, 45.4332096247],
    [-0.0409955994313, -0.10366375277, 0.534732192936, 45.5089578529],
    [-0.0188457192445, -0.00373703510857, 0.320074479956, 45.1173494573],
    [-0.00330023786777, -0.0531272939998, 0.0636457219623, 48.384785365],
    [-0.045735219767, 0.228441761987, -0.135303087644, 41.3694712033],
    [0.215083976692, 0.979134463666, -0.0657666727448, 35.1108741867],
]


def test_the_real_model_equals_the_reference_implementation(real):
    ids, tokens = real.encode(SENTENCE)
    assert ids.tolist()[:7] == [101, 2002, 2938, 2006, 1996, 2924, 1997]
    assert ids.tolist()[7:] == [1996, 5033, 1998, 8897, 1996, 4458, 6242, 1012, 102]
    assert tokens == ["[CLS]", *SENTENCE.lower().replace(".", " .").split(), "[SEP]"]
    states = real.hidden_states(ids)
    got = [[x[0, 0], x[5, 100], x[15, 383], np.linalg.norm(x)] for x in states]
    assert all(x.shape == (16, 384) for x in states)
    np.testing.assert_allclose(got, REFERENCE, rtol=1e-11, atol=1e-12)  # the digits written above


def test_a_long_sentence_is_neither_padded_nor_cut(real):
    ids, tokens = real.encode("word " * 200)
    assert tokens == ["[CLS]", *["word"] * 200, "[SEP]"]
    assert len(ids) == 202


def test_the_heads_of_the_real_model_have_the_shapes_of_its_layers(real):
    heads = real.heads(5)
    assert len(real.layers) == 6
    assert len(heads) == 12
    for head in heads:
        assert head.query.shape == head.key.shape == (32, 384)
        assert head.value.shape == (384, 384)
        assert head.scale == 32**-0.5
    assert np.linalg.matrix_rank(heads[0].value) == 32  # the absorbed product goes through the head's own width


def test_sentences_of_one_meaning_have_nearer_mean_states_than_sentences_of_two(real):
    def embedding(sentence):
        ids, _ = real.encode(sentence)
        mean = real.hidden_states(ids)[-1].mean(axis=0)
        return mean / np.linalg.norm(mean)

    rain, shower, tax = map(embedding, ["It is raining hard.", "Heavy rain is falling.", "The tax office wrote to me."])
    assert rain @ shower > 0.7
    assert rain @ tax < 0.3
