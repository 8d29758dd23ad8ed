"""Which wordings a cohort's sentences hold, and what is said of each in every case."""

import numpy as np
import pytest

from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Item
from loop.engines.rules.sentence import Stance
from loop.optimize.mentions import (
    CohortSentences,
    find_wordings,
    read_mentions,
    read_sentences,
)
from tests.optimize.made_task import TINY

PLACE = WorkspacePaths(bundled())


def sentences(*told, cases=None):
    """Return sentences as they are read; `told`: (case, sentence, decisive)."""
    rows = [
        one if isinstance(one, tuple) else (at, one, False)
        for at, one in enumerate(told)
    ]
    distinct = list(dict.fromkeys(text for _, text, _ in rows))
    return CohortSentences(
        sentences=tuple(distinct),
        case=np.array([case for case, _, _ in rows], dtype=np.intp),
        sentence=np.array([distinct.index(text) for _, text, _ in rows], dtype=np.intp),
        decisive=np.array([decides for _, _, decides in rows], dtype=bool),
        cases=cases or 1 + max(case for case, _, _ in rows),
    )


def found_in(*told, support=1):
    """Return the wordings of sentences."""
    return set(find_wordings(sentences(*told), support))


def test_a_wording_begins_and_ends_with_a_word_that_names():
    """Three letters at least, no function word; inside it any word may stand."""
    assert found_in("The heart is big at it.") == {"heart", "heart is big", "big"}
    assert found_in("Of an ox.") == set()
    assert found_in("A bag") == {"bag"}
    assert found_in("Level 12 node") == {
        "level",
        "level 12 node",
        "node",
        "level ... node",
    }


def test_a_wording_has_four_words_and_a_gap_reaches_the_sixth():
    """Of eight words: runs of up to four, and pairs with one to five words between."""
    words = ["alpha", "bravo", "cedar", "delta", "ember", "fjord", "gamma", "hotel"]
    found = found_in(" ".join(words))
    runs = {
        " ".join(words[start:stop])
        for start in range(8)
        for stop in range(start + 1, min(start + 4, 8) + 1)
    }
    gaps = {
        f"{words[first]} ... {words[last]}"
        for first in range(8)
        for last in range(first + 2, min(first + 6, 7) + 1)
    }
    assert found == runs | gaps


def test_the_words_of_a_gap_have_four_letters():
    """Short ones are too common to say much with something between them."""
    assert "node ... mass" in found_in("Node bag mass")
    found = found_in("Bag node sac mass lie")
    assert {one for one in found if "..." in one} == {"node ... mass"}


def test_nothing_crosses_the_end_of_a_clause():
    """Whatever ends it."""
    for sign in ",;:.()[]?!":
        found = found_in(f"Alpha{sign} bravo{sign} cedar")
        assert found == {"alpha", "bravo", "cedar"}


def test_what_was_removed_is_in_no_run_and_no_word_of_one():
    """Letters that are all the same hide a name; a gap says only that something is."""
    found = found_in("Node xxxx mass aaaa")
    assert found == {"node", "mass", "node ... mass"}
    assert "xxxx" not in " ".join(found)


def test_an_open_ending_stands_for_two_to_six_words():
    """The longest beginning of the same words; five letters at least."""

    def endings(*words):
        return {one for one in found_in(*words) if one.endswith("*")}

    assert endings("Calcified.", "Calcification.") == {"calcifi*"}
    assert endings("Calcified.") == set()
    assert endings("Calc.", "Calcs.") == set()
    assert endings("Masses.", "Masser.") == {"masse*"}
    assert endings("Massy.", "Massa.") == set()
    family = [f"Density{letter * 2}." for letter in "abcdef"]
    assert endings(*family) == {"density*"}
    assert endings(*family, "Densitygg.") == set()
    assert endings("Nodular.", "Nodules.", "Nodulus.", "Nodulation.") == {
        "nodul*",
        "nodula*",
    }


def test_open_endings_stand_in_runs_and_gaps_too():
    """At the end of a run, and on both sides of a gap."""
    found = found_in("Calcified old nodules.", "Calcification of nodular sort.")
    assert {one for one in found if "*" in one} == {
        "calcifi*",
        "nodul*",
        "calcified old nodul*",
        "old nodul*",
        "calcification of nodul*",
        "calcifi* ... nodul*",
        "calcifi* ... nodules",
        "calcifi* ... nodular",
        "calcified ... nodul*",
        "calcification ... nodul*",
        "calcifi* ... sort",
    }


def test_chinese_wordings_are_two_to_six_characters():
    """Every run of them, and none that leaves them."""
    text = "左肺下叶结节影"
    found = found_in(text)
    assert found == {
        text[start:stop]
        for start in range(7)
        for stop in range(start + 2, min(start + 6, 7) + 1)
    }
    mixed = found_in("双肺 node")
    assert mixed == {"双肺", "node"}


@pytest.mark.parametrize(("support", "kept"), [(2, True), (3, False)])
def test_support_is_of_cases_and_met_exactly(support, kept):
    """A sentence of two cases has two, however often it is said in each."""
    told = [
        (0, "Node.", False),
        (0, "Node.", True),
        (1, "Node.", False),
        (1, "Mass.", False),
    ]
    found = find_wordings(sentences(*told), support)
    assert found == (("node",) if kept else ())


def test_wordings_are_sorted():
    """Whatever the order of the sentences."""
    one = find_wordings(sentences("Node bag.", "Mass."), 1)
    assert (
        one == tuple(sorted(one)) == find_wordings(sentences("Mass.", "Node bag."), 1)
    )


def table_of(*told, cases=None):
    """Return the mentions of every wording of sentences."""
    return read_mentions(PLACE, sentences(*told, cases=cases), support=1)


def stances(table, wording):
    """Return what is said of one wording in each case."""
    return table.stances[table.wordings.index(wording)].tolist()


def test_a_case_says_the_strongest_of_its_sentences():
    """Present before uncertain before negated; 0 where it is not said."""
    told = ["There is a nodule.", "No nodule.", "Possible nodule.", "Clear mass."]
    rows = [
        (0, told[0], False),
        (0, told[1], False),
        (1, told[1], False),
        (1, told[2], False),
        (2, told[1], False),
        (3, told[3], False),
    ]
    found = stances(table_of(*rows, cases=5), "nodule")
    assert found == [Stance.PRESENT, Stance.UNCERTAIN, Stance.NEGATED, 0, 0]


def test_a_section_that_decides_goes_before_the_others():
    """Also where it denies what another states; it decides nothing it does not say."""
    said, denied = "There is a nodule.", "No nodule."
    rows = [
        (0, said, False),
        (0, denied, True),
        (1, denied, False),
        (1, said, True),
        (2, said, False),
        (2, "Clear mass.", True),
        (3, denied, True),
    ]
    found = stances(table_of(*rows), "nodule")
    assert found == [Stance.NEGATED, Stance.PRESENT, Stance.PRESENT, Stance.NEGATED]


def test_a_degree_that_is_denied_decides_only_where_nothing_else_is_said():
    """No large nodule leaves a small one, wherever it stands."""
    said, degree = "There is a nodule.", "No large nodule."
    rows = [(0, said, False), (0, degree, True), (1, degree, True), (2, degree, False)]
    found = stances(table_of(*rows), "nodule")
    assert found == [Stance.PRESENT, Stance.LIMITED, Stance.LIMITED]


def test_cases_of_a_sentence_are_each_counted_once():
    """However often it stands there."""
    rows = [
        (2, "Node.", False),
        (0, "Node.", False),
        (2, "Node.", True),
        (1, "Mass.", False),
    ]
    table = table_of(*rows)
    assert {key: one.tolist() for key, one in table.cases_of.items()} == {
        0: [0, 2],
        1: [1],
    }


def test_a_phrase_that_goes_on_is_weighed_by_its_cases():
    """Asserted in three cases, and followed by a noun in two of them."""
    rows = [
        (0, "There is a bulky mass.", False),
        (1, "There is a bulky mass.", False),
        (2, "It is bulky and old.", False),
        (3, "No bulky shadow.", False),
    ]
    table = table_of(*rows)
    closing = dict(zip(table.wordings, table.closing.tolist(), strict=True))
    assert closing["bulky"] == (1 + 0.5) / (3 + 1)
    assert closing["mass"] == (2 + 0.5) / (2 + 1)
    assert closing["shadow"] == 0.5


def test_longer_mentions_around_a_place_are_found():
    """Those that overlap it and are longer; not itself, nor what only touches it."""
    table = table_of("There is a bulky left mass.", "Clear lungs.")
    text = table.read.sentences[0].lower()

    def around(word, number=0):
        start = text.index(word)
        rows = table.around(number, start, start + len(word))
        return {table.wordings[row] for row in rows}

    every = set(table.wordings)
    for word in ("bulky", "left", "mass"):
        longer = {one for one in every if word in one.split() and one != word}
        assert longer <= around(word)
        assert word not in around(word)
    assert around("bulky left mass") == set()
    assert around("bulky", number=1) == set()
    assert table.around(99, 0, 5) == []


def test_pieces_of_longer_chinese_wordings_are_counted_by_sides():
    """Always the same sign beside it is a piece; an edge or two signs are none."""
    table = table_of("左侧胸腔积液。", "右侧胸腔积液。")
    sides = dict(zip(table.wordings, table.fragments.tolist(), strict=True))
    assert sides["侧胸"] == 1
    assert sides["胸腔"] == 2
    assert sides["左侧"] == 1
    assert sides["侧胸腔积液"] == 0
    assert sides["腔积"] == 2
    assert sides["积液"] == 1
    latin = table_of("There is a nodule.")
    assert latin.fragments.tolist() == [0] * len(latin.wordings)


def test_without_a_candidate_nothing_is_said():
    """Function words and numbers alone."""
    table = table_of("It is 12.", cases=2)
    assert table.wordings == () and table.stances.shape == (0, 2)
    assert table.around(0, 0, 3) == []
    assert table.closing.shape == table.fragments.shape == (0,)


def test_a_letter_alone_hides_nothing():
    """It may stand inside a wording, and neither begins nor ends one."""
    assert "alpha d bravo" in found_in("Alpha d bravo")
    assert not {one for one in found_in("Alpha d bravo d") if one.endswith(" d")}


def test_sentences_are_read_with_their_cases_and_sections():
    """Each distinct one once; what is asked about is not read."""
    texts = (
        "FINDINGS: There is a nodule. Clear lungs.\n\nIMPRESSION: There is a nodule.",
        "INDICATION: Rule out mass.\n\nFINDINGS: Clear lungs.",
        "There is a nodule.",
    )
    items = [Item(id=f"c{n}", variables={"text": one}) for n, one in enumerate(texts)]
    read = read_sentences(PLACE, TINY, items)
    said = [
        (int(case), read.sentences[number].strip(), bool(decides))
        for case, number, decides in zip(
            read.case, read.sentence, read.decisive, strict=True
        )
    ]
    assert said == [
        (0, "There is a nodule", False),
        (0, "Clear lungs", False),
        (0, "There is a nodule", True),
        (1, "Clear lungs", False),
        (2, "There is a nodule", False),
    ]
    assert read.cases == 3
    assert len(set(read.sentences)) == len(read.sentences) < len(said)
    nothing = read_sentences(PLACE, TINY, [])
    assert (nothing.sentences, nothing.cases, len(nothing.case)) == ((), 0, 0)
