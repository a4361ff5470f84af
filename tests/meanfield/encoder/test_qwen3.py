"""The 22 steps of a Qwen3-style layer: plain loops, the transformers library, digits, causality to the bit."""

import importlib.util
import math
from dataclasses import replace

import numpy as np
import pytest

from meanfield.encoder.operators import rms_norm
from meanfield.encoder.qwen3 import STEPS, Qwen3Layer, repeat_heads, rotary

PRINTED = 5e-9  # half a unit of the last printed digit

SIZES = {"d": 12, "width": 6, "heads": 4, "kv_heads": 2, "hidden": 20}


@pytest.fixture(scope="module")
def layer():
    return Qwen3Layer.random(np.random.default_rng(8), **SIZES)


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(9).normal(size=(7, 12))


@pytest.mark.parametrize(
    ("eps", "want"),
    [
        (0, (0.84852814, 1.13137085)),
        (1e-6, (0.28284271, 0.37712362)),
        (1e-5, (0.09428090, 0.12570787)),
    ],
)
def test_case_a08_eps_decides_the_norm_of_a_short_vector(eps, want):
    np.testing.assert_allclose(rms_norm([3e-4, 4e-4], eps=eps), want, atol=PRINTED, rtol=0)


def test_case_a08_the_layer_hands_its_eps_to_every_norm(layer, x):
    ours = replace(layer, eps=1e-2).steps(1e-2 * x)
    np.testing.assert_array_equal(ours[0].value, rms_norm(1e-2 * x, layer.attention_norm, eps=1e-2))
    np.testing.assert_array_equal(ours[5].value, rms_norm(ours[4].value[:4], layer.query_norm, eps=1e-2))
    np.testing.assert_array_equal(ours[6].value, rms_norm(ours[4].value[4:6], layer.key_norm, eps=1e-2))
    np.testing.assert_array_equal(ours[19].value, rms_norm(ours[18].value, layer.mlp_norm, eps=1e-2))
    assert layer.eps == 1e-6


@pytest.mark.parametrize(
    ("layout", "want"),
    [
        ("half", (-1.98411065, 1.95990067, 2.46237790, 4.01979967)),
        ("interleaved", (-1.14263966, 1.92207560, 2.95985067, 4.02979950)),
    ],
)
def test_case_a09_the_layout_of_a_rotation_is_told_by_its_digits(layout, want):
    np.testing.assert_allclose(rotary([[1, 2, 3, 4]], [1], layout=layout)[0], want, atol=PRINTED, rtol=0)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_case_a09_rotated_products_depend_on_the_difference_of_positions(layout):
    q, k = np.random.default_rng(0).normal(size=(2, 1, 6))
    near, far = (
        (rotary(q, [s], 100.0, layout) @ rotary(k, [r], 100.0, layout).T).item() for s, r in ((5, 2), (45, 42))
    )
    assert near == pytest.approx(far, rel=1e-12)
    assert near != pytest.approx((q @ k.T).item(), rel=1e-3)


@pytest.mark.parametrize("layout", [None, "split", 1])
def test_case_a09_a_layout_must_be_named(layout):
    with pytest.raises(ValueError, match="layout must be one of half, interleaved; got"):
        rotary([[1.0, 2.0]], [0], layout=layout)


@pytest.mark.parametrize("shape", [(2, 3), (4,), (2, 0)])
def test_odd_sizes_and_single_rows_are_refused(shape):
    with pytest.raises(ValueError, match=r"x must have shape \(..., n, d\) with an even d"):
        rotary(np.ones(shape), [0, 1], layout="half")


def test_a_rotation_needs_a_position_a_row():
    with pytest.raises(ValueError, match="one number a row, 2 here; got 3"):
        rotary(np.ones((2, 4)), [0, 1, 2], layout="half")


def test_case_a10_query_heads_read_key_value_heads_in_a_row():
    values = np.array([1.0, -1.0])[:, None, None] * np.ones((2, 3, 1))
    np.testing.assert_array_equal(repeat_heads(values, 2)[:, 0, 0], [1, 1, -1, -1])
    with pytest.raises(ValueError, match=r"x must have shape \(heads, n, d\)"):
        repeat_heads(np.ones((3, 1)), 2)


def test_case_a10_the_layer_uses_that_order(layer, x):
    steps = layer.steps(x)
    for h in range(4):
        np.testing.assert_array_equal(steps[9].value[h], steps[8].value[h // 2])
        np.testing.assert_array_equal(steps[10].value[h], steps[4].value[6 + h // 2])


def loop_layer(layer, x):
    """The same layer token by token, one number after the other."""

    def norm(row, gain):
        size = math.sqrt(sum(a * a for a in row) / len(row) + layer.eps)
        return [g * a / size for g, a in zip(gain, row, strict=True)]

    def times(matrix, row):
        return [sum(w * a for w, a in zip(weights, row, strict=True)) for weights in matrix]

    def turned(row, s):
        half = len(row) // 2
        out = list(row)
        for i in range(half):
            z = complex(row[i], row[i + half]) * complex(math.cos(a := s * layer.base ** (-i / half)), math.sin(a))
            out[i], out[i + half] = z.real, z.imag
        return out

    def head(row, h, width):
        return row[h * width : (h + 1) * width]

    w, groups = layer.width, layer.heads // layer.kv_heads
    normed = [norm(row, layer.attention_norm) for row in x]
    queries, keys, values = ([times(m, row) for row in normed] for m in (layer.query, layer.key, layer.value))
    streams, results = [], []
    for s, row in enumerate(x):
        joined = []
        for h in range(layer.heads):
            q = turned(norm(head(queries[s], h, w), layer.query_norm), s)
            past = range(s + 1)
            k = [turned(norm(head(keys[r], h // groups, w), layer.key_norm), r) for r in past]
            p = [math.exp(sum(a * b for a, b in zip(q, one, strict=True)) / math.sqrt(w)) for one in k]
            v = [head(values[r], h // groups, w) for r in past]
            joined += [sum(p[r] * v[r][i] for r in past) / sum(p) for i in range(w)]
        u = [a + b for a, b in zip(row, times(layer.output, joined), strict=True)]
        m = norm(u, layer.mlp_norm)
        gates = [z / (1 + math.exp(-z)) for z in times(layer.gate, m)]
        inner = [g * b for g, b in zip(gates, times(layer.up, m), strict=True)]
        streams.append(u)
        results.append([a + b for a, b in zip(u, times(layer.down, inner), strict=True)])
    return streams, results


def test_the_layer_agrees_with_plain_loops(layer, x):
    streams, results = loop_layer(layer, x)
    steps = layer.steps(x)
    np.testing.assert_allclose(steps[18].value, streams, rtol=0, atol=1e-13)
    np.testing.assert_allclose(steps[21].value, results, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(layer(x), steps[21].value)


#: Rows 0, 3 and 6 of Qwen3DecoderLayer of transformers 5.24.0 on torch 2.13.0 (CPU, float64, sdpa), whose norms and
#: rotations are in single precision; weights and tokens are those of the fixtures, made by `transformers_layer`.
STORED = np.reshape(
    [
        -2.24839649, 1.15818694, -2.801499109, 2.365182639, -3.439658269, 0.581850294,
        0.741987206, -2.279378255, -0.793619916, -2.283212992, 0.173962426, 0.653255024,
        -0.64682858, 3.028679976, 2.488025881, -0.212791087, -1.917847799, -0.722654001,
        -0.133205979, 1.712942064, -3.398684404, -0.82885982, -0.898760196, 0.961301524,
        -3.053436008, 1.366444001, -2.167282514, 3.822371106, -2.46657716, -1.212685235,
        1.221228278, -0.382916159, 3.464081717, -1.145748533, 1.518914847, 0.278004867,
    ],
    (3, 12),
)


def test_the_layer_agrees_with_stored_values_of_the_transformers_library(layer, x):
    np.testing.assert_allclose(layer(x)[[0, 3, 6]], STORED, rtol=0, atol=1e-6)


#: Where transformers keeps each array.
PLACES = {
    "attention_norm": "input_layernorm",
    **{name: f"self_attn.{name[0]}_proj" for name in ("query", "key", "value", "output")},
    **{f"{name}_norm": f"self_attn.{name[0]}_norm" for name in ("query", "key")},
    "mlp_norm": "post_attention_layernorm",
    **{name: f"mlp.{name}_proj" for name in ("gate", "up", "down")},
}


def transformers_layer(layer, x):
    """The tokens after Qwen3DecoderLayer with the same weights."""
    import torch
    from transformers.models.qwen3 import modeling_qwen3 as qwen3

    config = qwen3.Qwen3Config(
        hidden_size=x.shape[1],
        num_attention_heads=layer.heads,
        num_key_value_heads=layer.kv_heads,
        head_dim=layer.width,
        intermediate_size=len(layer.gate),
        num_hidden_layers=1,
        rms_norm_eps=layer.eps,
        rope_parameters={"rope_type": "default", "rope_theta": layer.base},
        attn_implementation="sdpa",
    )
    theirs = qwen3.Qwen3DecoderLayer(config, 0).double().eval()
    theirs.load_state_dict({f"{place}.weight": torch.tensor(getattr(layer, n)) for n, place in PLACES.items()})
    tokens, positions = torch.tensor(x)[None], torch.arange(len(x))[None]
    with torch.no_grad():
        out = theirs(
            tokens,
            attention_mask=torch.full((len(x), len(x)), -torch.inf, dtype=torch.float64).triu(1)[None, None],
            position_ids=positions,
            position_embeddings=qwen3.Qwen3RotaryEmbedding(config)(tokens, positions),
        )
    return (out[0] if isinstance(out, tuple) else out).reshape(x.shape).numpy()


@pytest.mark.skipif(
    not (importlib.util.find_spec("transformers") and importlib.util.find_spec("torch")),
    reason="transformers and torch are not installed",
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_the_layer_agrees_with_the_transformers_library(layer, x):
    np.testing.assert_allclose(layer(x), transformers_layer(layer, x), rtol=0, atol=1e-6)


def test_there_are_22_steps_with_names_formulas_and_shapes(layer, x):
    steps = layer.steps(x)
    assert [step.number for step in steps] == list(range(1, 23))
    assert [(step.name, step.formula) for step in steps] == list(STEPS)
    assert len({step.name for step in steps}) == 22
    h, kv, w, n, d = 4, 2, 6, 7, 12
    shapes = [(n, d), (n, h * w), (n, kv * w), (n, kv * w), (h + 2 * kv, n, w), (h, n, w), (kv, n, w), (h, n, w)]
    shapes += [(kv, n, w), (h, n, w), (h, n, w)] + 4 * [(h, n, n)] + [(h, n, w), (n, h * w)] + 5 * [(n, d)]
    assert [step.shape for step in steps] == shapes


def test_an_edit_of_the_last_token_changes_no_earlier_bit_of_any_step(layer, x):
    edited = x.copy()
    edited[-1] = 1e3 * np.arange(12)
    for before, after in zip(layer.steps(x), layer.steps(edited), strict=True):
        # Scores before the mask have a column for the last token; every other step has tokens in rows only.
        columns = slice(None, -1 if before.number in (12, 13) else None)
        np.testing.assert_array_equal(before.value[..., :-1, columns], after.value[..., :-1, columns])
    assert not np.array_equal(layer(x)[-1], layer(edited)[-1])


def test_without_the_mask_the_same_edit_reaches_every_token(layer, x):
    edited = x.copy()
    edited[-1] += 1
    both = (layer(tokens, visible=lambda s, r: (r == r) & (s == s)) for tokens in (x, edited))
    assert (np.abs(np.subtract(*both)).max(axis=1) > 1e-3).all()


def test_a_token_that_sees_nothing_is_refused(layer, x):
    with pytest.raises(ValueError, match="every token must see at least one; token 0 sees none"):
        layer(x, visible=lambda s, r: r < s)


def test_only_differences_of_positions_count(layer, x):
    np.testing.assert_allclose(layer(x, positions=np.arange(7) + 100), layer(x), rtol=0, atol=1e-10)
    assert np.abs(layer(x, positions=2 * np.arange(7)) - layer(x)).max() > 1e-3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"value": np.ones((6, 12))}, r"value must have shape \(12, 12\) to fit the others; got \(6, 12\)"),
        ({"query": np.ones((10, 12))}, "query must have a multiple of 6 rows, the size of a head; got 10"),
        ({"query": np.ones((18, 12))}, "query heads must be a multiple of key-value heads; got 3 and 2"),
        ({"down": np.full((12, 20), np.nan)}, "down must be finite"),
        ({"base": 0}, "base must be greater than 0"),
    ],
)
def test_arrays_that_do_not_fit_are_named(layer, change, said):
    with pytest.raises(ValueError, match=said):
        replace(layer, **change)


def test_tokens_of_another_size_are_refused(layer):
    with pytest.raises(ValueError, match=r"x must have 12 columns to fit this layer; got shape \(3, 4\)"):
        layer(np.ones((3, 4)))
