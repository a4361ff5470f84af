"""Many judged runs through run_cases."""

import pickle

import numpy as np

import meanfield as mf
from meanfield.analysis.judged_runs import JudgedRun
from meanfield.analysis.merging import MergingDetector
from meanfield.analysis.metastability import ClusterCount, MetastabilityDetector


def contracted(case, rng):
    return mf.simulate(shrink, mf.Measure(rng.normal(size=(6, 2))), np.linspace(0, case["horizon"], 9), progress=False)


def shrink(t, x, mu):
    return -x


def tokens(trajectory):
    return len(trajectory[0])


JUDGES = {
    "clustering": mf.ClusteringDetector(0.1),
    "merging": MergingDetector(0.1),
    "rest": MetastabilityDetector(ClusterCount(0.1), 1.0),
    "tokens": tokens,
}


def test_every_detector_speaks_on_every_case_and_the_task_travels():
    task = pickle.loads(pickle.dumps(JudgedRun(contracted, JUDGES)))
    results = mf.run_cases(task, [{"horizon": 6.0}, {"horizon": 1e-3}], progress=False)
    assert not [result.message for result in results if result.failed]
    merged, apart = (result.arrays for result in results)
    assert (merged["clustering.happened"], apart["clustering.happened"]) == (1, 0)
    assert merged["clustering.time"] == merged["merging.consensus_time"]
    assert np.isnan(apart["clustering.time"])
    assert apart["merging.consensus_time"] == np.inf
    assert len(merged["merging.times"]) == 5
    assert merged["tokens"] == 6
    assert apart["rest.happened"] == 0


def test_an_undecided_verdict_is_nan():
    broken = JudgedRun(lambda case, rng: None, {"x": lambda trajectory: mf.Verdict("x", None)})
    found = broken({}, None)
    assert np.isnan(found["x.happened"])
    assert np.isnan(found["x.time"])
