"""Texts and labels of both sides become codes under stated conventions."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.core.paths import bundled
from loop.core.records import Value, ValueCode
from loop.labels.taxonomy import NO_FINDING, NoFindingPolicy, read_taxonomy
from loop.score.counting import GRADED_CODES
from loop.score.extractor import Extractor
from loop.score.grading import derive_no_finding, find_no_finding, grade, ungraded
from loop.score.records import Joined, NoFinding, PairSide

TAXONOMY = read_taxonomy(bundled() / "labels")
IDS = TAXONOMY.ids
PLACE = IDS.index(NO_FINDING)
VALUES = {
    ValueCode.PRESENT: Value.PRESENT,
    ValueCode.ABSENT: Value.ABSENT,
    ValueCode.UNCERTAIN: Value.UNCERTAIN,
}


@pytest.fixture(scope="module")
def extractor():
    """Open the shipped extractor with `rules`."""
    with Extractor.open(None, "extractor@v7") as opened:
        yield opened


def join(reference, *systems, languages=None):
    """Return one joined table of texts, or of given codes."""
    columns = [
        PairSide(name=f"s{number}", texts=None, codes=side)
        if isinstance(side, np.ndarray)
        else PairSide(name=f"s{number}", texts=tuple(side))
        for number, side in enumerate((reference, *systems))
    ]
    return Joined(
        case_ids=tuple(f"c{row}" for row in range(len(reference))),
        reference=columns[0],
        systems=tuple(columns[1:]),
        coverage=(),
        languages=("en",) * len(reference) if languages is None else languages,
    )


def values(row):
    """Return label id to code, without those that are absent."""
    return {
        IDS[place]: int(row[place]) for place in np.flatnonzero(row != ValueCode.ABSENT)
    }


def test_a_silent_candidate_finds_nothing_and_is_not_normal(extractor):
    """All labels absent, "No Finding" too: nothing is no statement of normality."""
    graded = grade(join(["Normal chest."], [""], [" ."]), TAXONOMY, extractor)
    assert values(graded.reference[0]) == {NO_FINDING: ValueCode.PRESENT}
    assert (graded.candidates == ValueCode.ABSENT).all()


def test_a_case_without_a_candidate_is_missing(extractor):
    """Not absent: the system did not say that nothing is there."""
    graded = grade(join(["Edema.", "Edema."], [None, "Edema."]), TAXONOMY, extractor)
    assert (graded.candidates[0, 0] == ValueCode.MISSING).all()
    assert values(graded.candidates[0, 1]) == {"edema": ValueCode.PRESENT}


def test_every_text_stands_at_its_own_place(extractor):
    """Columns are read together and taken apart again."""
    texts = ["Edema.", "Pneumothorax.", "Cardiomegaly."]
    graded = grade(join(texts, texts[::-1], texts), TAXONOMY, extractor)
    assert (graded.candidates[1] == graded.reference).all()
    assert (graded.candidates[0] == graded.reference[::-1]).all()
    assert graded.outcomes["answered"] == 3


def test_a_text_that_cannot_be_read_is_unanswered_and_named(extractor):
    """With the id of its case, never its words."""
    german = "Kein Erguss und kein Infiltrat, das Herz ist nicht groß."
    graded = grade(join(["Edema.", "Edema."], ["Edema.", german]), TAXONOMY, extractor)
    assert (graded.candidates[0, 1] == ValueCode.UNANSWERED).all()
    (problem,) = graded.problems
    assert (problem.cases, problem.examples) == (1, ("c1",))
    assert "Erguss" not in str(graded.problems)
    assert graded.outcomes["engine_failed"] == 1


def test_languages_may_differ_within_a_case(extractor):
    """A Chinese reference, an English candidate; and the other way round."""
    pair = ["左侧胸腔积液。", "Left pleural effusion."]
    joined = join(pair, pair[::-1], languages=("zh", "en"))
    graded = grade(joined, TAXONOMY, extractor)
    place = IDS.index("pleural_effusion")
    assert graded.reference[:, place].tolist() == [ValueCode.PRESENT, ValueCode.PRESENT]
    assert graded.candidates[0, :, place].tolist() == [
        ValueCode.PRESENT,
        ValueCode.PRESENT,
    ]


@pytest.mark.parametrize("said", ["zh", "de", "zz"])
def test_a_copy_is_read_as_its_reference_is(extractor, said):
    """Also where the language was said wrong: else a copy differs from itself."""
    texts = ["Small left pleural effusion. The heart is enlarged."]
    graded = grade(join(texts, texts, languages=(said,)), TAXONOMY, extractor)
    assert (graded.candidates[0] == graded.reference).all()
    assert graded.outcomes["answered"] + graded.outcomes["engine_failed"] == 1


def test_a_script_that_nothing_reads_is_not_read_as_normal(extractor):
    """A report in Cyrillic under an English case has no answer; figures have."""
    joined = join(["Edema."] * 3, ["Отёк лёгких.", "12 : 30", "½"])
    graded = grade(joined, TAXONOMY, extractor)
    unread, *figures = graded.candidates[0]
    assert (unread == ValueCode.UNANSWERED).all()
    for one in figures:
        assert one[TAXONOMY.ids.index("edema")] == ValueCode.ABSENT


def test_a_short_candidate_has_the_language_of_its_case(extractor):
    """One word cannot be told from English; as German it is refused, not guessed."""
    joined = join(["Erguss."], ["Pneumothorax."], languages=("de",))
    graded = grade(joined, TAXONOMY, extractor)
    assert (graded.candidates == ValueCode.UNANSWERED).all()


@pytest.mark.parametrize("policy", ["ran", "chexpert"])
def test_no_finding_is_derived_as_everywhere_else(policy):
    """The taxonomy's own rule, case by case, over all kinds of rows."""
    devices = IDS.index("support_devices")
    rows = []
    for first, device in itertools.product(GRADED_CODES, repeat=2):
        row = np.zeros(len(IDS), dtype=np.int8)
        row[0], row[devices] = first, device
        rows.append(row)
    found = derive_no_finding(np.array(rows), TAXONOMY, NoFinding(policy))
    for before, after in zip(rows, found, strict=True):
        known = {
            name: VALUES[int(code)]
            for name, code in zip(IDS, before, strict=True)
            if int(code) in VALUES
        }
        wanted = TAXONOMY.derive_no_finding(known, NoFindingPolicy(policy))
        assert VALUES.get(int(after[PLACE])) == wanted


def test_nothing_is_derived_from_an_incomplete_row():
    """What kept a value away says why this one is not there."""
    rows = np.zeros((2, len(IDS)), dtype=np.int8)
    rows[0, 0], rows[1, 0], rows[1, 1] = (
        ValueCode.MISSING,
        ValueCode.MISSING,
        ValueCode.UNANSWERED,
    )
    found = derive_no_finding(rows, TAXONOMY, NoFinding.RAN)
    assert found[:, PLACE].tolist() == [ValueCode.MISSING, ValueCode.UNANSWERED]
    assert (rows[:, PLACE] == ValueCode.ABSENT).all()


def test_given_labels_need_no_extractor():
    """No Finding is derived for them too, or left as it was read."""
    codes = np.zeros((2, len(IDS)), dtype=np.int8)
    codes[0, 0] = ValueCode.PRESENT
    codes[0, PLACE] = ValueCode.PRESENT
    derived = grade(join(codes, codes), TAXONOMY, None)
    assert derived.reference[:, PLACE].tolist() == [ValueCode.ABSENT, ValueCode.PRESENT]
    assert derived.extractor.ref == "given" and derived.outcomes is None
    as_read = grade(join(codes, codes), TAXONOMY, None, NoFinding.READ)
    assert as_read.candidates[0, :, PLACE].tolist() == [
        ValueCode.PRESENT,
        ValueCode.ABSENT,
    ]


def test_given_labels_beside_texts_are_said_to_be_given(extractor):
    """A score between a reader and an extractor is not one between two texts."""
    codes = np.zeros((1, len(IDS)), dtype=np.int8)
    graded = grade(join(codes, ["Normal chest."]), TAXONOMY, extractor)
    assert graded.extractor.ref == "given+extractor@v7"
    assert (graded.candidates[0] == graded.reference).all()


def test_texts_without_an_extractor_are_refused():
    """Nothing may read labels out of them by accident."""
    with pytest.raises(DataError, match=r"s0, s1: texts are given.*Name an extractor"):
        grade(join(["Edema."], ["Edema."]), TAXONOMY, None)


def test_no_finding_cannot_be_read_from_texts(extractor):
    """It is derived, under a policy that the signature names."""
    with pytest.raises(DataError, match="only be read where labels are given"):
        grade(join(["Edema."], ["Edema."]), TAXONOMY, extractor, NoFinding.READ)


def test_tables_that_were_given_are_not_written_to():
    """The same table may be graded under another policy next."""
    codes = np.zeros((1, len(IDS)), dtype=np.int8)
    codes.setflags(write=False)
    grade(join(codes, codes), TAXONOMY, None)


def test_what_is_not_read_is_missing_throughout():
    """Names, cases and patients stay; nothing was asked."""
    joined = replace(join(["a", "b"], ["x", "y"], ["z", None]), patients=("p", "q"))
    found = ungraded(joined, TAXONOMY)
    assert (found.case_ids, found.systems) == (("c0", "c1"), ("s1", "s2"))
    assert (found.labels, found.patients) == (IDS, ("p", "q"))
    assert found.reference.shape == (2, 21)
    assert found.candidates.shape == (2, 2, 21)
    for codes in (found.reference, found.candidates):
        assert codes.dtype == np.int8
        assert (codes == ValueCode.MISSING).all()
    assert (found.outcomes, found.problems) == (None, ())


def test_a_value_that_was_read_goes_before_a_derived_one():
    """Missing is what was not asked; any other answer stays, under every policy."""
    rows = np.zeros((5, len(IDS)), dtype=np.int8)
    rows[:, PLACE] = GRADED_CODES
    rows[0, 0] = ValueCode.PRESENT
    for policy in NoFinding:
        found = find_no_finding(rows, TAXONOMY, policy)
        expected = [1, 0, -1, int(ValueCode.UNANSWERED)]
        last = ValueCode.MISSING if policy is NoFinding.READ else ValueCode.PRESENT
        assert found[:, PLACE].tolist() == [*expected, int(last)]
        assert (np.delete(found, PLACE, axis=1) == np.delete(rows, PLACE, axis=1)).all()


def test_without_no_finding_among_the_labels_nothing_is_derived():
    """A taxonomy of one's own; what comes back is another table all the same."""
    bare = replace(
        TAXONOMY, labels=tuple(one for one in TAXONOMY.labels if one.id != NO_FINDING)
    )
    rows = np.zeros((2, len(bare.ids)), dtype=np.int8)
    for derive in (derive_no_finding, find_no_finding):
        found = derive(rows, bare, NoFinding.RAN)
        assert found is not rows and (found == rows).all()
    kept = derive_no_finding(rows, TAXONOMY, NoFinding.READ)
    assert kept is not rows and (kept == rows).all()


def test_every_kind_of_answer_is_counted(extractor):
    """Distinct texts by what became of them, and who read them."""
    german = "Kein Erguss und kein Infiltrat, das Herz ist nicht groß."
    texts = ["Pleural plaques.", "Pleural plaques.", german, ""]
    graded = grade(join(texts, texts), TAXONOMY, extractor)
    assert set(graded.outcomes) == {
        "answered",
        "unparsed",
        "engine_failed",
        "asked",
        "cached",
    }
    assert graded.outcomes["answered"] + graded.outcomes["engine_failed"] == 2
    assert graded.extractor == extractor.facts
    assert graded.no_finding is NoFinding.RAN
    chexpert = grade(join(texts, texts), TAXONOMY, extractor, NoFinding.CHEXPERT)
    assert chexpert.no_finding is NoFinding.CHEXPERT
