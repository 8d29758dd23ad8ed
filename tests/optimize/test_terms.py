"""Wordings are mined from what a version gets wrong, and explained in counts."""

from dataclasses import replace
from math import comb

import numpy as np
import pytest
from scipy.stats import hypergeom

from loop.core.records import Clarification, Guide, Lexicon, UncertainAnswers, Value
from loop.labels.taxonomy import Label
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
from loop.prompts.version import PromptVersion
from tests.optimize.scenes import EFFUSION, FILLERS, LESION, learnable


def mined(
    bench,
    prompt="tiny",
    *,
    refused=(),
    labels=(EFFUSION, LESION),
    least_gain=0.01,
    policy="wrong",
    **options,
):
    """Return what is proposed by all cases of the cohort."""
    with open_objective(bench.workspace, prompt, "dev") as objective:
        ground = objective.ground
        protocol = ground.protocol.model_copy(
            update={"uncertain_answers": UncertainAnswers(policy)}
        )
        ground = replace(ground, protocol=protocol)
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


def bagged(*, lost=1, bags=10, tubes=4, left_open=0):
    """Return rows in which "collection" is wrong in a bag and in a tube.

    Of 20 positives `lost` are found by the bag alone.
    """
    bag, rows = "A collection bag overlies the chest.", []
    for number in range(60 + left_open):
        said, truth = FILLERS[number % 5], 0
        if number < 20:
            said, truth = "A collection is there.", 1
            said = said if number < 20 - lost else bag
        elif number >= 60:
            said, truth = bag, -1
        if 20 <= number < 20 + bags:
            said += f" {bag}"
        if 35 <= number < 35 + tubes:
            said += " A collection tube is old."
        rows.append([f"c{number}", "", f"{said} Film {number}.", truth, 0])
    return rows


def test_exclusions_are_weighed_one_after_the_other(bench):
    """Each on what those before it leave, drawn towards nothing, minus its length."""
    bench.cohort(bagged())
    bench.version(2, **{EFFUSION: ["collection"]})

    def f1(tp, fp, fn):
        return 2 * tp / (2 * tp + fp + fn)

    # Of 11 that the bag takes 10 are wrong: believed are 11 * 10.5 / 12.5 of them. Of
    # the 4 of the tube 4 * 4.5 / 5.5 are, beside 19 found, 4 wrong and 1 missed.
    bag, tube = 9.24, 4 * 4.5 / 5.5
    first, second = (
        f1(20 - (11 - bag), 14 - bag, 11 - bag) - f1(20, 14, 0) - 0.003,
        f1(19 - (4 - tube), 4 - tube, 1 + 4 - tube) - f1(19, 4, 1) - 0.003,
    )
    # Six wordings are as long as a bag or a tube; then the two of the tube are left.
    chances = [
        6 * (comb(14, 10) * comb(20, 1) + comb(14, 11)) / comb(34, 11),
        2 / comb(23, 4),
    ]
    one = proposal(ProposalKind.EXCLUSION, "collection bag")
    assert mined(bench, "tiny@v2") == (
        (
            replace(
                one,
                support=tuple(f"c{n}" for n in range(20, 30)),
                against=("c19",),
                fixed=10,
                gain=pytest.approx(first),
                p=pytest.approx(chances[0]),
            ),
            replace(
                one,
                wording="collection tube",
                support=("c35", "c36", "c37", "c38"),
                fixed=4,
                gain=pytest.approx(second),
                p=pytest.approx(chances[1]),
            ),
        ),
        7,
    )


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (bagged(lost=2), ["collection tube"]),
        (bagged(lost=0, bags=2, tubes=0), []),
        (bagged(lost=0, bags=3, tubes=0), ["collection bag"]),
        (bagged(lost=0, bags=2, tubes=2), []),
    ],
)
def test_an_exclusion_clears_three_cases_and_loses_a_tenth_at_most(bench, rows, found):
    """Two positives of ten cleared are too many; so few as two tell nothing."""
    bench.cohort(rows)
    bench.version(2, **{EFFUSION: ["collection"]})
    assert by_label(mined(bench, "tiny@v2")).get(EFFUSION, []) == found


def test_what_clears_more_open_cases_than_negatives_is_a_clarification(bench):
    """Eleven beside ten, of the cases looked at; a refusal is of both kinds."""
    bench.cohort(bagged(left_open=11))
    bench.version(2, **{EFFUSION: ["collection"]})
    every, bag = np.arange(71), "collection bag"
    for rows, kind, value in (
        (every, ProposalKind.CLARIFICATION, "uncertain"),
        (every[:-1], ProposalKind.EXCLUSION, ""),
    ):
        first, second = mined(bench, "tiny@v2", rows=rows).proposals
        assert (first.wording, first.kind, first.value) == (bag, kind, value)
        assert (len(first.support), first.against) == (10, ("c19",))
        assert (second.kind, second.value) == (ProposalKind.EXCLUSION, "")
    for kind in (ProposalKind.CLARIFICATION, ProposalKind.EXCLUSION):
        refused = [f"{EFFUSION}:{kind}:{bag}"]
        found = mined(bench, "tiny@v2", refused=refused).proposals
        assert {one.wording for one in found} == {
            "collection ... chest",
            "collection tube",
        }


def hedged(negatives):
    """Return rows: 12 of 20 positives assert a collection, 8 and `negatives` hedge."""
    said = ["A collection is there."] * 12 + ["Possible collection."] * (8 + negatives)
    said += ["No collection."] * (40 - negatives)
    return [
        [f"c{n}", "", f"{one} Film {n}.", +(n < 20), 0] for n, one in enumerate(said)
    ]


@pytest.mark.parametrize(
    ("policy", "gain"),
    [
        ("wrong", 24 / (24 + 10 + 8)),
        ("absent", 24 / (24 + 8)),
        ("present", 40 / (40 + 10)),
        ("excluded", 1.0),
    ],
)
def test_a_term_gains_what_an_evaluation_would_score(bench, policy, gain):
    """With hedges as the protocol counts them; one more is too many if they count."""
    bench.cohort(hedged(10))
    (one,) = mined(bench, policy=policy).proposals
    assert one == replace(
        proposal(ProposalKind.TERM, "collection"),
        support=tuple(f"c{n}" for n in range(12)),
        fixed=12,
        gain=pytest.approx(gain),
        # The number of the film was tested too.
        p=pytest.approx(2 * comb(20, 12) / comb(60, 12)),
    )
    bench.cohort(hedged(11), replace=True)
    spared = policy in {"excluded", "absent"}
    assert len(mined(bench, policy=policy).proposals) == spared


def lesions(said, negatives=(), cases=60):
    """Return rows: positives that say this, and negatives, most of them clear."""
    clear = ["Clear lungs."] * (cases - len(said) - len(negatives))
    return [
        [f"c{n}", "", f"{one} Film {n}.", 0, +(n < len(said))]
        for n, one in enumerate([*said, *negatives, *clear])
    ]


@pytest.mark.parametrize(
    ("nodules", "negatives", "named"), [(15, 0, True), (15, 1, False), (16, 0, False)]
)
def test_a_named_wording_is_added_where_a_label_has_many(
    bench, nodules, negatives, named
):
    """One finds three quarters of all at most, and the named one is right in both."""
    nodule, tumor = "A nodule is seen.", "A tumor is old."
    said = [f"{nodule} {tumor}"] * 2 + [nodule] * (nodules - 2)
    said += ["A mass is seen."] * (20 - nodules)
    bench.cohort(lesions(said, [tumor] * negatives))
    found = mined(bench)
    with_both = 1.0
    alone = 2 * 7 / (20 + 7) if named else 2 * (20 - nodules) / (40 - nodules)
    without = 2 * nodules / (20 + nodules)
    wanted = [
        ("nodule", nodules, nodules - 2 * named, with_both - alone),
        ("mass", 20 - nodules, 20 - nodules, with_both - without),
    ]
    if named:
        wanted.append(("tumor", 2, 0, 0.0))
    assert [
        (one.wording, len(one.support), one.fixed, pytest.approx(one.gain))
        for one in found.proposals
    ] == wanted
    # The number of the film, "old" and these three.
    assert found.tested == 5


def test_a_term_that_later_ones_make_superfluous_is_dropped(bench):
    """It found the most; the other two find all of its cases, and three more each."""
    first, second, third = (
        f"A {word} is seen. " for word in ("spicule", "thorn", "bristle")
    )
    said = [first + second] * 4 + [first + third] * 4 + [second] * 3 + [third] * 3
    bench.cohort(lesions(said))
    assert [
        (one.wording, len(one.support), one.fixed, one.gain)
        for one in mined(bench).proposals
    ] == [(word, 7, 7, pytest.approx(1 / 3)) for word in ("bristle", "thorn")]


def test_a_label_gets_ten_terms_at_most(bench):
    """Of equals the first by name, however many there are."""
    words = "alder birch cedar dogwood elder gorse hawthorn hazel juniper larch rowan"
    said = [f"A {word} is seen." for word in words.split() for _ in range(3)]
    bench.cohort(lesions(said, cases=160))
    found = mined(bench)
    assert by_label(found) == {LESION: words.split()[:10]}
    gain = 60 / (60 + 3) - 54 / (54 + 6)
    assert [one.gain for one in found.proposals] == [pytest.approx(gain)] * 10


@pytest.mark.parametrize(
    ("wording", "known", "holds"),
    [
        ("small collection", "collection", True),
        ("collection", "small collection", False),
        ("mass ... lung", "lung mass", True),
        ("lung ... mass", "lung ... mass", True),
        ("collections", "collect*", True),
        ("nodule", "collect*", False),
        ("collect*", "collection", False),
        ("collect* bag", "collection", True),
        ("collect* bag", "tube", False),
    ],
)
def test_a_wording_that_holds_a_known_one_finds_nothing_new(wording, known, holds):
    """In any order; an open ending alone stands for more than one of its words."""
    assert terms._holds(wording, known.split()) is holds


def test_wordings_are_related_to_labels_by_words_that_few_share():
    """By name, definition and what counts; three labels share "space", which is none.

    A name in parentheses and words of three letters tell nothing.
    """
    guides = [
        Guide(label=label, name=name, definition=definition, terms=names)
        for label, name, names, definition in (
            ("a", "Pleural Effusion (old)", ("hydrothorax",), "Fluid in a space."),
            ("b", "Lung Mass", (), "A mass of the lung, with space for the new."),
            ("c", "Lung Nodule", (), "A small mass in the lung space."),
        )
    ]
    meanings = [
        Label(id=label, name="", group="", definition=told, counts=counts, aliases=also)
        for label, told, counts, also in (
            ("a", "Water.", ("blunted angle",), ("Exudate",)),
            ("b", "A growth.", ("lumps",), ()),
            ("c", "Round.", (), ()),
        )
    ]
    rows = {
        # What it says of each, related to which, named by which, foreign to which.
        "fluid": ([1, 0, 0], "a", "a", ""),
        "space": ([1, 1, 1], "", "", ""),
        "lung mass": ([0, 2, 2], "bc", "bc", "a"),
        "lung fluid": ([1, 1, 1], "abc", "", ""),
        "effusion space": ([2, 1, 1], "a", "a", "bc"),
        "exudate or lump": ([1, 1, 0], "ab", "", ""),
        "old new": ([0, 0, 0], "", "", ""),
        "hydrothoraces": ([1, 0, 0], "a", "a", "bc"),
    }
    found = terms._relate(list(rows), guides, meanings)
    assert found.told.tolist() == [told for told, *_ in rows.values()]
    for place, mask in enumerate(found[1:], 1):
        assert ["".join(np.array(["a", "b", "c"])[row].tolist()) for row in mask] == [
            row[place] for row in rows.values()
        ]


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


def test_a_pattern_goes_to_the_lexicon_of_its_language():
    """The other languages stay before it, and what its own has stays in front."""
    before = Lexicon(language="en", terms=("fluid*",), exclusions=("no fluid*",))
    german = Lexicon(language="de", terms=("erguss*",))
    guide = Guide(
        label=EFFUSION, name="Effusion", definition="Fluid.", lexicon=(before, german)
    )
    version = PromptVersion(
        name="x", number=1, system="", user="{{ text }}", guides=(guide,)
    )
    found = [
        proposal(ProposalKind.TERM, "collect*"),
        proposal(ProposalKind.EXCLUSION, "collect* bag"),
        proposal(ProposalKind.CLARIFICATION, "some ... fluid", "uncertain"),
    ]
    assert apply_proposals(version, found) == {
        EFFUSION: replace(
            guide,
            lexicon=(
                german,
                replace(
                    before,
                    terms=("fluid*", "collect*"),
                    exclusions=("no fluid*", "collect* bag"),
                    clarifications=(
                        Clarification(phrase="some ... fluid", value=Value.UNCERTAIN),
                    ),
                ),
            ),
        )
    }
    (made,) = apply_proposals(version, found[:1], "fr").values()
    assert made.lexicon == (
        before,
        german,
        Lexicon(language="fr", terms=("collect*",)),
    )
    with pytest.raises(ValueError, match="x@v1 has no guide for lung_lesion"):
        apply_proposals(version, [replace(found[0], label=LESION)])


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
