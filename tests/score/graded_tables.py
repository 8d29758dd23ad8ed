"""Small graded tables for the tests of Ran Score."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from loop.core.records import ValueCode
from loop.score.records import Coverage, Graded


def graded(reference, candidates, **facts):
    """Return codes of one table, or of several systems, as `Graded`."""
    reference = np.asarray(reference, dtype=np.int8)
    candidates = np.asarray(candidates, dtype=np.int8)
    if candidates.ndim == 2:
        candidates = candidates[None]
    systems, cases, labels = candidates.shape
    given = {
        "case_ids": tuple(f"c{row:04d}" for row in range(cases)),
        "labels": tuple(f"label_{place}" for place in range(labels)),
        "systems": tuple("ABCDEFGH"[:systems]),
    }
    return Graded(reference=reference, candidates=candidates, **{**given, **facts})


def coverage(system, paired, missing=()):
    """Return what joining says of a system that lacks some candidates."""
    return Coverage(system, paired, paired, tuple(missing), (), (), ())


BINARY = (ValueCode.PRESENT, ValueCode.ABSENT)
VALUES = (*BINARY, ValueCode.UNCERTAIN)


def tables(codes, sides=2):
    """Arrays of some of these codes, all of one shape."""
    shape = st.tuples(st.integers(1, 12), st.integers(2, 5))
    return shape.flatmap(
        lambda size: arrays(np.int8, (sides, *size), elements=st.sampled_from(codes))
    )


def systems(n, cases=60, labels=6, seed=0, missing=()):
    """Return `n` systems that err more and more often, and the references."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((cases, labels)) < 0.3).astype(np.int8)
    told = np.stack(
        [
            np.where(rng.random(truth.shape) < 0.08 * k, 1 - truth, truth)
            for k in range(n)
        ]
    ).astype(np.int8)
    for system, rows in missing:
        told[system, rows] = ValueCode.MISSING
    return graded(truth, told)
