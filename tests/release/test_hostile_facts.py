"""Whatever a signed release says, checking it comes to an end and says yes or no."""

import shutil
from copy import deepcopy
from math import inf, nan

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loop.core.digests import canonical_json
from loop.core.errors import DataError
from loop.release.folder import Contents, read_contents
from loop.release.release_json import predicate_of
from loop.release.statement import ENVELOPE, sign_release
from loop.release.verify import verify_contents
from tests.release.documents.example import changed, full_facts
from tests.release.small import make_small, typed

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 10**8),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["", "PASS", "FAIL", "subset", "lower", "locked", "\ud7ff", "=1+1"]
    ),
    st.builds(list),
    st.builds(dict),
)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Make the release once."""
    folder = tmp_path_factory.mktemp("hostile")
    made = make_small(folder)
    files = dict(read_contents(made.folder).files)
    shutil.rmtree(folder)
    return made, files


def leaves(value, path=()):
    """Yield the path of everything in JSON data, containers too."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(inner, (*path, number))


def put(facts, path, value):
    """Set what is at `path`."""
    place = facts
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_facts_make_the_check_stumble(small, data):
    """Wrong kinds, huge and absurd numbers, signed by the right people."""
    made, files = small
    facts = deepcopy(dict(made.facts))
    paths = list(leaves(facts))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(paths))
        try:
            put(facts, path, data.draw(VALUES))
        except (KeyError, IndexError, TypeError):
            continue
    if facts == made.facts:
        return
    files = {name: raw for name, raw in files.items() if name != ENVELOPE}
    files["release.json"] = canonical_json(facts) + b"\n"
    envelope = sign_release(files, predicate_of(typed(made.facts)), made.signers)
    found = verify_contents(Contents({**files, ENVELOPE: envelope}, ()), made.trusted)
    assert isinstance(found.holds, bool)
    assert len(found.findings) >= 16


@pytest.mark.parametrize("accuracy", [0.5, 0.95, 0.999999])
@pytest.mark.parametrize("wrong", [0, 1, 10**6, 5 * 10**7])
def test_absurd_counts_come_to_an_end(small, accuracy, wrong):
    """A hundred million cases are judged as fast as sixty."""
    made, files = small
    facts = deepcopy(dict(made.facts))
    facts["protocol"]["content"] |= {"rule": "lower", "accuracy": accuracy}
    facts["protocol"]["content"] |= {"min_positives": 14, "sensitivity_floor": accuracy}
    label = facts["evaluations"][0]["labels"][0]
    label |= {"tp": 10**8 - wrong, "fn": wrong, "fp": wrong, "tn": 10**8}
    files = {**files, "release.json": canonical_json(facts) + b"\n"}
    assert not verify_contents(Contents(files, ()), made.trusted).holds


F1 = ("evaluations", 0, "labels", 0, "f1")
CASES = ("cohorts", 0, "cases")
REFERENCE = ("cohorts", 0, "reference")


@pytest.mark.parametrize(
    ("path", "taken", "refused"),
    [
        (F1, [0.0, 0.5, None], [nan, inf, -inf, "0.5"]),
        (CASES, [0, 10**8], [-1, 10**8 + 1, 1.0, "1", True]),
        (REFERENCE, [1, 10**8, None], [0, -1, 10**8 + 1, 1.0, "1", True]),
        (("development_only",), [True, False], [0, 1, "yes"]),
        (("tool", "another"), [], ["0.1.0"]),
    ],
)
def test_a_fact_has_its_kind_and_its_range(path, taken, refused):
    """What is signed is read by others, who do not guess what was meant."""
    for value in taken:
        assert typed(changed(full_facts(), path, value))
    for value in refused:
        with pytest.raises(DataError, match=str(path[-1])):
            typed(changed(full_facts(), path, value))
