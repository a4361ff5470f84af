"""The figure on mean-field limits, from a few small cases."""

import numpy as np

from experiments import mean_field_limit
from figures import mean_field_limit as figure_module
from tests.figures.studies import study_of, texts


def test_it_draws_the_slopes_that_the_record_holds():
    small = {"d": 1, "sizes": [4, 8], "seeds": 2, "reference": 40}
    cases = [
        small | {"kind": kind, "variant": variant}
        for kind, variant in (("compact", "softmax"), ("compact", "linear"), ("normal", "l2"))
    ]
    cases += [small | {"kind": kind, "variant": "softmax"} for kind in ("pole", "bounded")]
    cases.append(small | {"kind": "dimension", "variant": "softmax", "d": 3})
    study = study_of(mean_field_limit, cases)
    said = texts(figure_module.draw(study))
    assert f"softmax {figure_module.signed(study.arrays[0]['slope'][-1])}" in said
    assert "$n^{-1/3}$" in said
    changes = [abs(run["slope"][-1] - run["slope"][0]) for run in (*study.arrays[:3], study.arrays[5])]
    assert f"no slope changes by more than {np.max(changes):.2f}" in said
