"""Wordings are mined from what a version gets wrong, and explained in counts."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import hypergeom

from loop.core.records import Guide, Value
from loop.optimize import terms
from loop.optimize.mentions import find_wordings, read_mentions, read_sentences
from loop.optimize.objective import open_objective
from loop.optimize.terms import (
    LEVELS,
    ProposalKind,
    TermMiner,
    TermProposal,
    apply_proposals,
)
from tests.optimize.scenes import EFFUSION, FILLERS, LESION, learnable


def mined(
    bench,
    prompt="tiny",
    *,
    refused=(),
    labels=(EFFUSION, LESION),
    least_gain=0.01,
    **options,
):
    """Return what is proposed by all cases of the cohort."""
    with open_objective(bench.workspace, prompt, "dev") as objective:
        ground = objective.ground
        answers = objective.answers(ground.version)
        miner = TermMiner(bench.workspace, ground, answers, refused=refused)
        rows = options.pop("rows", np.arange(len(ground.items)))
        return miner.mine(rows, labels, least_gain=least_gain)


def by_label(found):
    """Return label to the wordings proposed for it."""
    made = {}
    for one in found.proposals:
        made.setdefault(one.label, []).append(one.wording)
    return made


def wordings(bench, texts, support=1):
    """Return the candidates of some texts."""
    bench.cohort([[f"x{n}", "", text, 0, 0] for n, text in enumerate(texts)])
    with open_objective(bench.workspace, "tiny", "dev") as objective:
        ground = objective.ground
        read = read_sentences(bench.workspace, ground.version, ground.items)
    return find_wordings(read, support)


def test_the_wordings_that_decide_are_found(taught):
    """With the cases that speak for each, and none against."""
    found = mined(taught)
    assert by_label(found) == {EFFUSION: ["collection"], LESION: ["nodule"]}
    (term,) = (one for one in found.proposals if one.label == EFFUSION)
    assert term.kind is ProposalKind.TERM
    assert len(term.support) == term.fixed == 20
    assert term.against == ()
    assert term.p < 1e-6
    assert "c000" in term.support
    assert found.tested > 2


def test_of_equal_chinese_wordings_the_one_that_names_the_finding_is_taken(bench):
    """Not a piece of it, nor its place: both stand in the very same cases."""
    rows = []
    for number in range(40):
        wet, mass = number % 4 == 0, number % 4 == 2
        side = "左右"[number // 4 % 2]
        said = f"{side}侧胸腔积液。" if wet else "未见胸腔积液。"
        said += f"{side}下肺野结节。" if mass else "未见明显结节。"
        rows.append([f"c{number}", f"p{number}", said, +wet, +mass])
    bench.cohort(rows)
    assert by_label(mined(bench)) == {EFFUSION: ["胸腔积液"], LESION: ["结节"]}


def test_a_denied_wording_speaks_for_nothing(bench):
    """Read as the engine asserts it: "no collection" stands in every negative."""
    rows = learnable()
    assert sum("No collection" in row[2] for row in rows) == 40
    bench.cohort(rows)
    assert mined(bench).proposals[0].against == ()


def test_only_the_cases_given_are_looked_at(taught):
    """What is kept for the estimate does not speak."""
    rows = np.arange(30)
    found = mined(taught, rows=rows)
    ids = {f"c{n:03}" for n in range(30)}
    assert found.proposals
    assert all(set(one.support) | set(one.against) <= ids for one in found.proposals)


def test_a_label_with_too_few_positives_is_left_alone(bench):
    """Below the protocol's minimum nothing can be claimed."""
    rows = learnable()
    kept = 0
    for row in rows:
        kept += row[4]
        row[4] = row[4] if kept <= 9 else 0
    bench.cohort(rows)
    assert LESION not in by_label(mined(bench))


def test_what_was_refused_is_not_proposed(taught):
    """Another wording may take its place."""
    found = mined(taught, refused=[f"{EFFUSION}:term:collection"])
    assert "collection" not in by_label(found).get(EFFUSION, [])


def test_what_a_guide_says_already_is_not_proposed(taught):
    """Nor a longer wording around it."""
    taught.version(2, **{EFFUSION: ["collection"], LESION: ["nodul*"]})
    assert by_label(mined(taught, "tiny@v2")) == {}


def test_an_exclusion_clears_what_is_wrongly_found(bench):
    """The term stands inside a longer wording in the negatives alone."""
    rows = []
    for number in range(60):
        positive = number % 3 == 0
        said = "Pleural collection is small." if positive else FILLERS[number % 5]
        if number % 6 == 1:
            said += " A collection bag overlies the chest."
        rows.append([f"c{number:03}", "", f"{said} Film {number}.", +positive, 0])
    bench.cohort(rows)
    bench.version(2, **{EFFUSION: ["collection"]})
    found = mined(bench, "tiny@v2")
    (one,) = found.proposals
    assert one.kind is ProposalKind.EXCLUSION
    assert "bag" in one.wording
    assert len(one.support) == 10
    assert one.against == ()


def test_rare_support_is_marked(bench):
    """Two cases are enough for a word that the guide's definition has, and are told."""
    rows = learnable()
    lesions = [row for row in rows if row[4]]
    for row in lesions[:2]:
        row[2] = row[2].replace("nodule", "tumor")
    bench.cohort(rows)
    found = {one.wording: one for one in mined(bench).proposals}
    assert found["tumor"].rare
    assert not found["nodule"].rare


def test_another_labels_name_is_not_proposed(bench):
    """Nodules that always go with effusions are no effusions."""
    rows = learnable()
    for row in rows:
        row[2] = row[2].replace("Small collection", "Small pleural effusion")
        if row[3]:
            row[2] += " The lung lesion is stable."
    bench.cohort(rows)
    proposed = by_label(mined(bench)).get(LESION, [])
    assert not any("effusion" in one for one in proposed)


def test_what_the_guide_does_not_speak_of_must_promise_the_most(bench):
    """Of two wordings at the lower level only the one that it speaks of."""
    said = ["nodule"] * 280 + ["tumor"] * 4 + ["spicule"] * 6
    rows = [
        [f"c{n}", "", f"A {word} is seen. Film {n}.", 0, 1]
        for n, word in enumerate(said)
    ]
    rows += [[f"d{n}", "", f"Clear lungs. Film {n}.", 0, 0] for n in range(60)]
    bench.cohort(rows)
    bench.version(2, **{LESION: ["nodule"]})
    low, high = (mined(bench, "tiny@v2", least_gain=one) for one in reversed(LEVELS))
    assert by_label(low) == {LESION: ["tumor"]}
    assert 0.005 <= low.proposals[0].gain < 0.01
    assert by_label(high) == {}


def test_part_of_a_name_is_not_proposed(bench):
    """An adjective that stands in all positives names nothing without its noun."""
    rows = learnable()
    for number, row in enumerate(row for row in rows if row[4]):
        noun = ("nodule", "tumor")[number % 2]
        row[2] = row[2].replace("A nodule", f"A bulky {noun}")
    bench.cohort(rows)
    found = by_label(mined(bench))[LESION]
    assert "bulky" not in found
    assert {"nodule", "tumor"} <= {word for one in found for word in one.split()}


def test_how_often_a_phrase_ends_counts_asserted_mentions(bench):
    """A few mentions tell little: the share is drawn to one half by one case."""
    texts = ["A bulky mass.", "A bulky shadow is old.", "Bulky mass, old.", "No bulk."]
    bench.cohort([[f"x{n}", "", text, 0, 0] for n, text in enumerate(texts)])
    with open_objective(bench.workspace, "tiny", "dev") as objective:
        ground = objective.ground
        read = read_sentences(bench.workspace, ground.version, ground.items)
        table = read_mentions(bench.workspace, read, support=1)
    share = dict(zip(table.wordings, table.closing.tolist(), strict=True))
    assert share["bulky"] == 0.5 / 4
    assert share["mass"] == 2.5 / 3
    assert share["shadow"] == 1.5 / 2
    assert share["bulk"] == 0.5


def test_wordings_stay_within_a_clause_and_name_something(bench):
    """None crosses a comma, and none begins or ends with a function word."""
    found = wordings(bench, ["The lung base, and the small heart is seen by XXXX."])
    assert "lung base" in found
    assert "small heart" in found
    assert not any("base small" in one or "xxxx" in one for one in found)
    assert not {"the", "and", "the lung", "heart is"} & set(found)


def test_families_and_gaps_are_wordings(bench):
    """``calcif*`` stands for two words, and a gap for what lies between."""
    texts = ["The calcified old node.", "The calcification of a node."]
    found = wordings(bench, texts)
    assert "calcifi*" in found
    assert "calcifi* ... node" in found
    assert "calcified ... node" in found
    assert "node*" not in found


def test_support_counts_cases(bench):
    """A word said twice in one case has one."""
    found = wordings(bench, ["Apex apex. Apex of the lung.", "A lung."], support=2)
    assert found == ("lung",)


def proposal(kind, wording, value=""):
    """Return a proposal for an effusion."""
    return TermProposal(
        label=EFFUSION,
        kind=kind,
        wording=wording,
        value=value,
        support=("a",),
        against=(),
        fixed=1,
        gain=0.1,
        p=0.5,
    )


def test_proposals_go_to_their_part_of_the_guide(taught):
    """Patterns to the lexicon, which a language model is not shown."""
    version = taught.version(2, **{EFFUSION: ["fluid"]})
    guide = apply_proposals(
        version,
        [
            proposal(ProposalKind.TERM, "collection"),
            proposal(ProposalKind.TERM, "collect*"),
            proposal(ProposalKind.EXCLUSION, "collection bag"),
            proposal(ProposalKind.CLARIFICATION, "some fluid", "uncertain"),
        ],
    )[EFFUSION]
    assert isinstance(guide, Guide)
    assert guide.terms == ("fluid", "collection")
    assert guide.exclusions == ("collection bag",)
    assert [(one.phrase, one.value) for one in guide.clarifications] == [
        ("some fluid", Value.UNCERTAIN)
    ]
    assert [(one.language, one.terms) for one in guide.lexicon] == [
        ("en", ("collect*",))
    ]


@pytest.mark.parametrize("kind", list(ProposalKind))
def test_an_id_names_a_proposal(kind):
    """It is what a refusal remembers."""
    assert proposal(kind, "a: b").id == f"{EFFUSION}:{kind}:a: b"


@pytest.mark.parametrize("positives, negatives", [(1, 1), (12, 288), (40, 7)])
def test_a_contrast_is_fishers_exact_test(positives, negatives):
    """One-sided, as SciPy has it; a wording of no positive tells nothing."""
    for right in range(positives + 1):
        for wrong in {0, 1, negatives // 2, negatives}:
            drawn = right + wrong
            p = terms._as_many_or_more(right, drawn, positives, negatives)
            wanted = hypergeom.sf(right - 1, positives + negatives, positives, drawn)
            assert p == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "value", "edits"),
    [
        (ProposalKind.TERM, "", {"terms": ["fluid"]}),
        (ProposalKind.EXCLUSION, "", {"exclusions": ["fluid"]}),
        (
            ProposalKind.CLARIFICATION,
            "absent",
            {"clarifications": [{"phrase": "fluid", "value": "absent"}]},
        ),
    ],
)
def test_a_proposal_is_the_form_of_a_verdict(kind, value, edits):
    """With its evidence in counts; said otherwise, what was proposed is told."""
    one = replace(
        proposal(kind, "fluid", value), support=("a", "b"), against=("c",), fixed=2
    )
    counts = "mined: 2 cases for it, 1 against, 2 that nothing else puts right"
    assert one.form() == {
        "cases": ["a", "b"],
        "label": EFFUSION,
        "judgement": "guideline_ambiguous",
        "comment": counts,
        **edits,
    }
    assert one.form(" fluid ")["comment"] == counts
    said = one.form("free fluid")
    assert said["comment"] == f"{counts}; proposed as fluid"
    (words,) = said[next(iter(edits))]
    assert "free fluid" in (words, *(words.values() if value else ()))
    assert said.keys() == one.form().keys()


@pytest.mark.parametrize(("cases", "rare"), [(2, True), (3, False)])
def test_fewer_than_three_cases_are_rare(cases, rare):
    """And the data say so."""
    one = replace(proposal(ProposalKind.TERM, "fluid"), support=tuple("abc"[:cases]))
    assert terms.MIN_SUPPORT == 3
    assert (one.rare, one.data["rare"]) == (rare, rare)
    assert one.data["id"] == f"{EFFUSION}:term:fluid"
