"""What masked fields obey: rows carry positions, and earlier tokens never hear of later ones."""

import numpy as np
import pytest

from meanfield import Measure
from tests import oracles
from tests.contracts.attention import AttentionContract, close_to, default_positions, random_head, random_tokens


class CausalContract(AttentionContract):
    """A masked field: rows carry positions, earlier tokens never hear of later ones."""

    def law(self, tokens, weights=None, positions=None):
        positions = np.arange(len(tokens)) / len(tokens) if positions is None else positions
        return Measure.positioned(positions, tokens, weights)

    def places(self, x, positions=None):
        return np.column_stack([positions, x])

    def visible(self, positions, key_positions):
        return oracles.causal(positions, key_positions)

    def velocities(self, field, t, x, mu):
        moving = field(t, x, mu)
        assert moving.shape == (len(x), mu.points.shape[1])
        assert not moving[:, 0].any(), "positions are frozen"
        return moving[:, 1:]

    def test_a_measure_without_positions_is_refused_with_the_cure(self):
        mu = Measure(np.ones((4, 3)))
        with pytest.raises(ValueError, match=r"needs a measure with positions.*Measure\.positioned\(positions, tok"):
            self.field(random_head(50))(0.0, mu.points, mu)

    def test_a_query_before_all_tokens_sees_nothing_and_stands_still(self):
        tokens, weights = random_tokens(51)
        mu = self.law(tokens, weights, default_positions(7))
        found = self.velocities(self.field(random_head(51)), 0.0, self.places(tokens[:1], [-0.5]), mu)
        assert found.tolist() == [[0.0, 0.0, 0.0]]

    def test_later_tokens_change_earlier_velocities_not_at_all(self):
        head, (tokens, weights) = random_head(52), random_tokens(52)
        positions = np.linspace(0, 0.5, 7)
        other = tokens.copy()
        other[4:] += 3.0
        found, moved = (self.evaluate(head, rows, weights, positions) for rows in (tokens, other))
        assert found[:4] == close_to(moved[:4], 1e-14)

    def test_positions_count_only_by_their_order(self):
        head, (tokens, weights) = random_head(53), random_tokens(53)
        positions = default_positions(7)
        found = self.evaluate(head, tokens, weights, positions)
        assert self.evaluate(head, tokens, weights, 100 * positions**3 - 7) == close_to(found, 1e-14)


class LastBitContract(CausalContract):
    """A masked field of a normalised kernel: appending a token changes no bit of the tokens before it."""

    def first_token(self, head, x):
        """The velocity of a token that sees itself alone."""
        return head.value @ x

    def test_the_first_token_moves_by_its_values_alone(self):
        head, (tokens, weights) = random_head(54), random_tokens(54)
        found = self.evaluate(head, tokens, weights, np.arange(7) / 7)
        assert found[0] == close_to(self.first_token(head, tokens[0]), 1e-14)

    def test_appending_a_token_changes_no_bit_of_the_earlier_ones(self):
        head = random_head(55)
        tokens = np.random.default_rng(55).standard_normal((600, 3))
        whole = self.evaluate(head, tokens, None, np.arange(600.0))
        sizes = [*range(1, 71), 127, 128, 129, 200, 255, 256, 257, 300, 511, 512, 513, 599]
        for n in sizes:
            assert np.array_equal(self.evaluate(head, tokens[:n], None, np.arange(float(n))), whole[:n]), n

    def test_appending_a_token_is_unfelt_whatever_the_order_of_the_rows(self):
        head = random_head(56)
        rng = np.random.default_rng(56)
        tokens, positions = rng.standard_normal((40, 3)), rng.permutation(40) / 40.0
        found = self.evaluate(head, tokens, None, positions)
        more = self.evaluate(head, np.vstack([[[9.0, 9.0, 9.0]], tokens]), None, np.concatenate([[2.0], positions]))
        assert np.array_equal(more[1:], found)
