"""What a release says of its change: which labels are better, worse or as before."""

from dataclasses import replace

import pytest

from loop.core.digests import digest_json
from loop.core.ledger import Actor, Event, append_event
from loop.core.records import Exemplar, Value
from loop.evaluate.compare import compare_inputs
from loop.evaluate.protocol import Protocol
from loop.prompts.catalog import write_version
from loop.prompts.diff import diff_data, diff_versions
from loop.prompts.version import CallPlan
from loop.release.change import (
    Base,
    Compared,
    DiffFacts,
    change_facts,
    diff_facts,
    find_base,
)
from loop.release.facts import ChangedLabelFacts
from loop.release.released import replay_releases
from loop.review.revise.draws import (
    DrawnAnswers,
    MarginTest,
    MeanDifference,
    ShareName,
    weigh_draws,
)
from tests.evaluate.scenes import inputs, outcome, reference
from tests.release.audit.scenes import entries_of
from tests.release.small_numbers import VERSION

BETTER, SAME, WORSE = "edema", "fracture", "pneumothorax"


def test_labels_are_sorted_by_what_was_gained_and_lost():
    """One case more or less is a change, and one gained for one lost is none."""
    said = {
        "c0": ({BETTER: 0, SAME: 0, WORSE: 1}, {BETTER: 1, SAME: 1, WORSE: 0}),
        "c1": ({BETTER: 1, SAME: 1, WORSE: 1}, {BETTER: 1, SAME: 0, WORSE: 1}),
    }
    standard = reference({c: dict.fromkeys((BETTER, SAME, WORSE), 1) for c in said})
    before, after = (
        inputs([outcome(case, both[at]) for case, both in said.items()], standard)
        for at in (0, 1)
    )
    comparison = compare_inputs(before, after, resamples=20)
    facts = change_facts(VERSION, Compared(Base(None, None), comparison))
    assert facts.improved == [BETTER]
    assert SAME in facts.unchanged
    assert not {BETTER, WORSE} & set(facts.unchanged)
    assert [(one.label, one.lost, one.gained) for one in facts.worse] == [(WORSE, 1, 0)]
    (worse,) = facts.worse
    assert (worse.before, worse.after) == (1.0, pytest.approx(2 / 3))
    # Of two cases one was lost: -0.5.
    assert -1 <= worse.low < -0.5 < worse.high <= 1
    (lost,) = Compared(Base(None, VERSION), comparison).losses
    assert lost.startswith("Pneumothorax: may be worse than in tiny@v1")
    # What the reference cannot judge is neither worse nor as before.
    after = replace(after, not_comparable={WORSE: "scoliosis is coded normal"})
    found = Compared(Base(None, VERSION), compare_inputs(before, after, resamples=20))
    facts = change_facts(VERSION, found)
    assert (facts.worse, found.losses, facts.improved) == ([], (), [BETTER])
    assert WORSE not in facts.unchanged


@pytest.mark.parametrize(("lost", "objected"), [(1, False), (4, True)])
def test_what_is_worse_within_the_margin_is_told_and_no_objection(lost, objected):
    """Of 300 cases one more is wrong: it is not worse by two cases of a hundred."""
    ids = [f"c{number}" for number in range(300)]
    standard = reference({case: {WORSE: 1} for case in ids})
    before, after = (
        inputs(
            [outcome(case, {WORSE: int(at >= wrong)}) for at, case in enumerate(ids)],
            standard,
        )
        for wrong in (0, lost)
    )
    comparison = compare_inputs(before, after, resamples=20)
    compared = Compared(Base(None, VERSION), comparison)
    worse = {one.label: one for one in change_facts(VERSION, compared).worse}
    assert (worse[WORSE].lost, worse[WORSE].gained) == (lost, 0)
    assert bool(compared.losses) is objected


@pytest.mark.parametrize("not_worse", [False, True])
def test_what_is_not_shown_is_a_loss_where_the_protocol_wants_it_shown(not_worse):
    """Whether so many cases could have shown it or not."""
    protocol = Protocol(rule="lower", min_positives=14, not_worse=not_worse)
    standard = reference({"c0": {BETTER: 1}})
    one = inputs([outcome("c0", {})], standard, protocol=protocol)
    drawn = DrawnAnswers((one.pairs, one.pairs), (one.pairs, one.pairs))
    evidence = weigh_draws(drawn, {}, protocol)
    nothing = MeanDifference(lost=0, gained=0, n=1)
    labels = [
        replace(
            evidence.labels[0],
            label=name,
            harm=(),
            margins=tuple(
                MarginTest(
                    share=ShareName.ACCURACY,
                    difference=nothing,
                    bound=bound,
                    margin=0.05,
                    reachable=reachable,
                )
                for bound, reachable in margins
            ),
        )
        for name, margins in (
            ("shown", [(-0.04, True)]),
            ("open", [(-0.06, True)]),
            ("few", [(-0.5, False)]),
        )
    ]
    over = replace(evidence, labels=tuple(labels), together=None)
    comparison = compare_inputs(one, one, resamples=20)
    losses = Compared(Base(None, VERSION), comparison, over).losses
    said = "open, few: not shown to be no worse than in tiny@v1"
    assert [loss.startswith(said) for loss in losses] == ([True] if not_worse else [])


def test_a_change_is_of_the_class_of_what_was_changed():
    """Wording that readers follow is a rule, whichever list of the guide it is in."""
    guide = VERSION.guides[0]
    example = Exemplar(text="Broken.", value=Value.PRESENT, evidence="Broken")
    for changes, classes in (
        ({"terms": ("break",)}, ["R1"]),
        ({"definition": "Another."}, ["R2"]),
        ({"counts": ("a crack",)}, ["R2"]),
        ({"exemplars": (example,)}, ["R3"]),
        ({"terms": ("break",), "counts": ("a crack",)}, ["R1", "R2"]),
    ):
        made = replace(VERSION, guides=(replace(guide, **changes), *VERSION.guides[1:]))
        facts = change_facts(made, Compared(Base(None, VERSION), None))
        assert facts.classes == classes, changes
    made = replace(VERSION, system="Read.\n", plan=CallPlan.PER_LABEL)
    facts = change_facts(made, Compared(Base(None, VERSION), None))
    assert facts.classes == ["template", "plan"]


GUIDE, OTHER = VERSION.guides
NEXT = replace(
    VERSION,
    number=2,
    parent=VERSION.digest,
    guides=(replace(GUIDE, terms=("break",), definition="Broken bone."), OTHER),
)
RELEASED = replay_releases(
    entries_of(("frozen", "tiny@v1", {"digest": VERSION.digest}))
)[0]


def test_a_change_is_told_in_words_from_what_it_is_held_against():
    """What came and what went of each label; and where one could go back to."""
    words = ["definition: Broken bone.", "term: break"]
    facts = diff_facts(NEXT, Base(None, VERSION))
    digest = digest_json(diff_data(diff_versions(VERSION, NEXT)))
    assert facts == DiffFacts(
        previous="",
        from_ref="tiny@v1",
        classes=["R1", "R2"],
        labels=[
            ChangedLabelFacts(
                label="fracture",
                added=words,
                removed=["definition: A broken bone."],
                changed=0,
            )
        ],
        diff_digest=digest,
        rollback="tiny@v1",
    )
    assert diff_facts(NEXT, Base(RELEASED, VERSION)) == facts._replace(
        previous="tiny-v1", rollback="tiny-v1"
    )
    (back,) = diff_facts(VERSION, Base(None, NEXT)).labels
    assert (back.added, back.removed) == (["definition: A broken bone."], words)
    assert diff_facts(VERSION, Base(None, None)) == DiffFacts("", "", [], [], "", "")


def test_a_version_is_held_against_the_release_in_use_or_its_parent(workspace):
    """A release that was withdrawn, or is this very version, is none."""

    def note(action, ref, digest):
        payload = {"release": ref.replace("@", "-"), "digest": digest}
        event = Event(action=action, subject=ref, reason="-", payload=payload)
        append_event(workspace.ledger, event, Actor(name="Dr A"))

    def found(version):
        base = find_base(workspace, version)
        return (
            base.release.name if base.release else "",
            base.version.ref if base.version else "",
        )

    third = replace(NEXT, number=3, parent=NEXT.digest, system="Read it.\n")
    for one in (VERSION, NEXT, third):
        write_version(workspace, one)
    assert [found(one) for one in (VERSION, NEXT, third)] == [
        ("", ""),
        ("", "tiny@v1"),
        ("", "tiny@v2"),
    ]
    note("frozen", "tiny@v1", VERSION.digest)
    assert [found(one) for one in (VERSION, NEXT, third)] == [
        ("", ""),
        ("tiny-v1", "tiny@v1"),
        ("tiny-v1", "tiny@v1"),
    ]
    note("withdrawn", "tiny@v1", VERSION.digest)
    assert found(third) == ("", "tiny@v2")
