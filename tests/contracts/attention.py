"""What every attention field obeys, whatever its kernel: its formula in plain loops and the symmetries of a mean field.

A variant's test class inherits `AttentionContract` and says how a head becomes a field and which plain-loop matrix of
`tests.oracles` belongs to it. Variants that keep Gaussians also inherit `GaussianContract`, masked ones take
`CausalContract` instead. The hooks `law`, `places` and `velocities` hide whether rows carry a position.
"""

import numpy as np
import pytest

from meanfield import Head, Measure, Schedule
from tests import oracles

#: Sums of a dozen terms by two roads, relative to the largest number in the answer (or to one).
ROUND_OFF = 1e-12


def close_to(wanted, tolerance=ROUND_OFF):
    """Equality up to ``tolerance`` times the largest entry, or times one if that is larger."""
    wanted = np.asarray(wanted)
    return pytest.approx(wanted, abs=tolerance * max(1.0, np.abs(wanted).max(initial=0)), rel=0)


def loops(matrix, **options):
    """The hook `oracle_matrix` made of a plain-loop matrix of `tests.oracles`."""

    def oracle_matrix(self, x, tokens, weights, head, visible):
        return matrix(x, tokens, weights, head.query, head.key, head.scale, visible, **options)

    return oracle_matrix


def formulas(rate):
    """The hook `gaussian_oracle` made of a covariance formula of `tests.oracles`."""

    def gaussian_oracle(self, mean, S, head):
        return rate(mean, S, head.query, head.key, head.value, head.scale)

    return gaussian_oracle


def random_head(seed, d=3, k=2, scale=0.7):
    """A head with no symmetry at all, its logits of size one."""
    rng = np.random.default_rng(seed)
    return Head(rng.standard_normal((k, d)), rng.standard_normal((k, d)), rng.standard_normal((d, d)), scale=scale)


def random_tokens(seed, n=7, d=3):
    """Tokens, and unequal weights that sum to one."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.2, 1.0, n)
    return rng.standard_normal((n, d)), weights / weights.sum()


def random_rotation(seed, d=3):
    """An orthogonal matrix of determinant one."""
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    rotation[:, 0] *= np.linalg.det(rotation)
    return rotation


def rotated(head, rotation):
    """The head that does to rotated tokens what ``head`` does to the tokens."""
    return Head(head.query @ rotation.T, head.key @ rotation.T, rotation @ head.value @ rotation.T, scale=head.scale)


class AttentionContract:
    """Laws of every attention field; tests with a matrix skip nothing, they run where the hook gives one."""

    #: Rows of the matrix sum to one.
    normalised = True

    def field(self, head):
        """The field under test, made of one head (or of several made from it)."""
        raise NotImplementedError

    def oracle_matrix(self, x, tokens, weights, head, visible):
        """The plain-loop matrix, shape (m, n)."""
        raise NotImplementedError

    def oracle(self, x, tokens, weights, head, visible=None):
        """Plain-loop velocities."""
        return oracles.velocity(self.oracle_matrix(x, tokens, weights, head, visible), tokens, head.value)

    def law(self, tokens, weights=None, positions=None):
        """The measure; positions are for masked fields."""
        return Measure(tokens, weights)

    def places(self, x, positions=None):
        """Rows at which the field is asked."""
        return x

    def visible(self, positions, key_positions):
        """The boolean matrix that the oracle gets; None is "all"."""

    def velocities(self, field, t, x, mu):
        """The velocities of the tokens alone."""
        return field(t, x, mu)

    def evaluate(self, head, tokens, weights=None, positions=None, t=0.0):
        """Velocities of all tokens."""
        mu = self.law(tokens, weights, positions)
        return self.velocities(self.field(head), t, mu.points, mu)

    # --- the formula --------------------------------------------------------------------------------

    @pytest.mark.parametrize("seed", range(4))
    def test_velocities_at_tokens_are_those_of_the_plain_loops(self, seed):
        head, (tokens, weights) = random_head(seed), random_tokens(seed)
        positions = default_positions(7)
        wanted = self.oracle(tokens, tokens, weights, head, self.visible(positions, positions))
        assert self.evaluate(head, tokens, weights, positions) == close_to(wanted)

    @pytest.mark.parametrize("seed", range(4))
    def test_velocities_at_points_that_are_no_tokens_are_those_of_the_plain_loops(self, seed):
        head, (tokens, weights) = random_head(seed), random_tokens(seed)
        x = np.random.default_rng(100 + seed).standard_normal((5, 3))
        positions, asked = default_positions(7), np.array([-1.0, 0.0, 0.4, 0.55, 2.0])
        mu = self.law(tokens, weights, positions)
        wanted = self.oracle(x, tokens, weights, head, self.visible(asked, positions))
        found = self.velocities(self.field(head), 0.0, self.places(x, asked), mu)
        assert found == close_to(wanted)

    @pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 3), (4, 1)])
    def test_every_width_of_query_and_key_is_right(self, d, k):
        head, (tokens, weights) = random_head(5, d, k, scale=0.4), random_tokens(5, n=6, d=d)
        positions = default_positions(6)
        wanted = self.oracle(tokens, tokens, weights, head, self.visible(positions, positions))
        assert self.evaluate(head, tokens, weights, positions) == close_to(wanted)

    def test_weights_left_out_are_equal(self):
        head, (tokens, _) = random_head(6), random_tokens(6)
        equal = np.full(7, 1 / 7)
        positions = default_positions(7)
        wanted = self.oracle(tokens, tokens, equal, head, self.visible(positions, positions))
        assert self.evaluate(head, tokens, None, positions) == close_to(wanted)

    def test_one_token_alone_is_no_special_case(self):
        head = random_head(7)
        tokens = np.array([[0.5, -1.0, 2.0]])
        wanted = self.oracle(tokens, tokens, [1.0], head)
        found = self.evaluate(head, tokens, None, np.zeros(1))
        assert found == close_to(wanted)

    def test_a_head_that_moves_in_time_is_read_at_the_time_of_the_call(self):
        tokens, weights = random_tokens(8)
        positions = default_positions(7)
        schedule = Schedule(lambda t: random_head(8, scale=0.2 + t))
        for t in (0.0, 0.5):
            wanted = self.oracle(tokens, tokens, weights, schedule.at(t), self.visible(positions, positions))
            found = self.evaluate(schedule, tokens, weights, positions, t=t)
            assert found == close_to(wanted)

    # --- the matrix ---------------------------------------------------------------------------------

    def test_the_matrix_times_the_values_is_the_velocity(self):
        head, (tokens, weights) = random_head(9), random_tokens(9)
        x = np.random.default_rng(9).standard_normal((4, 3))
        positions, asked = default_positions(7), np.array([0.0, 0.3, 0.5, 1.0])
        mu, field = self.law(tokens, weights, positions), self.field(head)
        matrix = field.matrix(0.0, self.places(x, asked), mu)
        assert matrix.shape == (4, 7)
        found = self.velocities(field, 0.0, self.places(x, asked), mu)
        assert matrix @ tokens @ head.value.T == close_to(found)

    def test_the_matrix_is_that_of_the_plain_loops(self):
        head, (tokens, weights) = random_head(10), random_tokens(10)
        x = np.random.default_rng(10).standard_normal((4, 3))
        positions, asked = default_positions(7), np.array([0.0, 0.3, 0.5, 1.0])
        mu = self.law(tokens, weights, positions)
        matrix = self.field(head).matrix(0.0, self.places(x, asked), mu)
        wanted = self.oracle_matrix(x, tokens, weights, head, self.visible(asked, positions))
        assert matrix == close_to(wanted)
        if self.normalised:
            assert matrix.sum(axis=1) == close_to(np.ones(4))

    # --- the symmetries of a mean field -------------------------------------------------------------

    def test_the_order_of_the_tokens_does_not_matter(self):
        head, (tokens, weights) = random_head(11), random_tokens(11)
        positions = default_positions(7)
        order = np.random.default_rng(11).permutation(7)
        shuffled = self.evaluate(head, tokens[order], weights[order], positions[order])
        assert shuffled == close_to(self.evaluate(head, tokens, weights, positions)[order])

    def test_a_token_may_be_split_into_two_of_half_its_mass(self):
        head, (tokens, weights) = random_head(12), random_tokens(12)
        positions = default_positions(7)
        halves = np.concatenate([weights, [weights[3] / 2]])
        halves[3] /= 2
        split = self.evaluate(head, np.vstack([tokens, tokens[3]]), halves, np.append(positions, positions[3]))
        assert split[:7] == close_to(self.evaluate(head, tokens, weights, positions))
        assert split[7] == close_to(split[3])

    def test_padding_of_no_mass_is_seen_by_nobody_and_moved_along(self):
        head, (tokens, weights) = random_head(13), random_tokens(13)
        positions = default_positions(7)
        padded = np.vstack([[[1.0, 2.0, -1.5]], tokens, [[0.1, 0.2, 0.3]]])
        with_zeros = np.concatenate([[0.0], weights, [0.0]])
        places = np.concatenate([[0.0], positions, [1.0]])
        found = self.evaluate(head, padded, with_zeros, places)
        wanted = self.oracle(padded, padded, with_zeros, head, self.visible(places, places))
        assert found == close_to(wanted)
        alone = self.evaluate(head, padded[1:-1], weights, positions)
        assert found[1:-1] == close_to(alone)

    def test_rotating_tokens_and_head_together_rotates_the_velocity(self):
        head, (tokens, weights), turn = random_head(14), random_tokens(14), random_rotation(14)
        positions = default_positions(7)
        turned = self.evaluate(rotated(head, turn), tokens @ turn.T, weights, positions)
        assert turned == close_to(self.evaluate(head, tokens, weights, positions) @ turn.T)

    def test_two_tokens_in_one_place_have_one_velocity(self):
        head, (tokens, _) = random_head(15), random_tokens(15)
        tokens[5] = tokens[2]
        found = self.evaluate(head, tokens, None, np.zeros(7))
        assert found[5] == close_to(found[2], 1e-14)

    # --- doors and manners --------------------------------------------------------------------------

    def test_read_only_arrays_work_and_nothing_that_came_in_is_changed(self):
        head, (tokens, weights) = random_head(16), random_tokens(16)
        mu = self.law(tokens, weights, default_positions(7))
        x = self.places(tokens + 0.1, default_positions(7))
        x.setflags(write=False)
        before = x.tobytes(), mu.points.tobytes(), mu.weights.tobytes(), head.query.tobytes(), head.value.tobytes()
        field = self.field(head)
        first = field(0.0, x, mu)
        assert np.array_equal(field(0.0, x, mu), first)
        field.matrix(0.0, x, mu)
        after = x.tobytes(), mu.points.tobytes(), mu.weights.tobytes(), head.query.tobytes(), head.value.tobytes()
        assert after == before

    def test_tokens_of_another_dimension_are_refused_with_the_cure(self):
        mu = self.law(np.ones((4, 2)), None, np.zeros(4))
        with pytest.raises(ValueError, match=r"tokens must have the head's dimension d = 3; got d = 2\. Q and K need"):
            self.field(random_head(17))(0.0, mu.points, mu)

    @pytest.mark.parametrize("x", [np.ones(3), np.ones((2, 7)), [[1.0, 2.0, 3.0]]])
    def test_points_of_another_shape_are_refused_with_the_cure(self, x):
        mu = self.law(np.ones((4, 3)), None, np.zeros(4))
        with pytest.raises(ValueError, match=r"x must have (shape|rows).*(x\[None, :\]|first column)"):
            self.field(random_head(18))(0.0, x, mu)

    def test_a_bare_array_of_tokens_is_refused_with_the_cure(self):
        with pytest.raises(ValueError, match=r"Use Measure[.(]"):
            self.field(random_head(19))(0.0, np.ones((4, 3)), np.ones((4, 3)))


def default_positions(n):
    """Positions in [0, 1] out of order and with ties."""
    return np.array([0.5, 0.0, 0.3, 0.5, 0.9, 0.3, 0.7, 0.1, 1.0][:n])


class UnmaskedContract(AttentionContract):
    """What a field that reads no positions says about them."""

    def test_a_measure_with_positions_is_refused_with_the_cure(self):
        mu = Measure.positioned(np.zeros(4), np.ones((4, 2)))
        with pytest.raises(ValueError, match=r"does not read positions.*MaskedAttention\(field\)"):
            self.field(random_head(20, d=3))(0.0, mu.points, mu)
