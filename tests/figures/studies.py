"""Studies computed on the spot, from a few small cases of an experiment, for the tests of its figure."""

import numpy as np
from matplotlib.text import Text

from meanfield.plotting.labels import EndLabels
from meanfield.sweeps.studies import Study


def study_of(module, cases, seed=0):
    """The study of an experiment's module on the given cases."""
    arrays = [
        {name: np.asarray(array) for name, array in module.run(case, np.random.default_rng([seed, k])).items()}
        for k, case in enumerate(cases)
    ]
    return Study(module.__name__.split(".")[-1], module.CLAIM, True, seed, cases, arrays)


def texts(figure):
    """Everything written in a figure, as one string."""
    ends = [text for labels in figure.findobj(EndLabels) for text in labels.texts]
    return "\n".join(text.get_text() for text in (*figure.findobj(Text), *ends))
