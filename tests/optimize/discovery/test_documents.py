"""What was discovered, as data, as a table and in words: every number in its place."""

import csv
import io
from dataclasses import replace

import pytest

from loop import __version__
from loop.core.paths import bundled
from loop.labels.taxonomy import read_taxonomy
from loop.optimize.discovery.discover import (
    Discovery,
    FindingCluster,
    MentionShares,
    ShownPhrase,
    name_cluster,
)
from loop.optimize.discovery.documents import (
    cluster_data,
    cluster_rows,
    discovery_data,
    discovery_notes,
    render_discovery_csv,
    render_discovery_html,
)

TAXONOMY = read_taxonomy(bundled() / "labels")

HERNIA = FindingCluster(
    id="c1",
    phrases=(
        ShownPhrase("hernia", 10, 2, 1, (), ("fracture",)),
        ShownPhrase("hiatal hernia", 8, 1, 0, (), ()),
    ),
    asserted=tuple(f"r{n}" for n in range(7)),
    hedged=2,
    denied=1,
    places=(("hiatal", 8), ("chest", 5)),
    near="c2",
    found=(("edema", 4), ("fracture", 3), ("pneumonia", 2), ("atelectasis", 1)),
    unlabelled=3,
)
EFFUSION = FindingCluster(
    id="c2",
    phrases=(
        ShownPhrase("effusion", 6, 0, 9, ("pleural_effusion",), ()),
        ShownPhrase("=fluid", 5, 0, 0, (), ("pleural_effusion", "edema")),
    ),
    asserted=("r7", "r8"),
    hedged=0,
    denied=9,
    places=(),
    near="",
    found=(),
    unlabelled=0,
)


@pytest.fixture
def found():
    """Return two clusters by hand: one that no label names, and one that one does."""
    return Discovery(
        cohort="made",
        cohort_digest="c" * 64,
        language="en",
        cases=30,
        left_out=0,
        unit="case",
        min_reports=5,
        longest=4,
        cut=0.55,
        taxonomy=TAXONOMY,
        prompt="extractor@v1",
        prompt_digest="d" * 64,
        words_digest="e" * 64,
        cues={"en": "f" * 64},
        clusters=(HERNIA, EFFUSION),
        rare=1_234,
        names=0,
        beyond=0,
    )


def test_the_data_of_a_cluster_are_all_that_is_known_of_it():
    """Five examples at most; a label that is present somewhere is not uncertain."""
    assert cluster_data(HERNIA) == {
        "id": "c1",
        "name": "hiatal hernia",
        "asserted": 7,
        "hedged": 2,
        "denied": 1,
        "places": {"hiatal": 8, "chest": 5},
        "near": "c2",
        "covered_by": [],
        "left_uncertain": ["fracture"],
        "found": {"edema": 4, "fracture": 3, "pneumonia": 2, "atelectasis": 1},
        "no_label_found": 3,
        "examples": ["r0", "r1", "r2", "r3", "r4"],
        "phrases": [
            {
                "text": "hernia",
                "asserted": 10,
                "hedged": 2,
                "denied": 1,
                "labels": [],
                "left_uncertain": ["fracture"],
            },
            {
                "text": "hiatal hernia",
                "asserted": 8,
                "hedged": 1,
                "denied": 0,
                "labels": [],
                "left_uncertain": [],
            },
        ],
    }
    told = cluster_data(EFFUSION)
    assert (told["covered_by"], told["left_uncertain"]) == (
        ["pleural_effusion"],
        ["edema"],
    )


def test_the_data_hold_the_settings_and_what_was_left_out(found):
    """Everything but the taxonomy, which has a file of its own."""
    data = discovery_data(found)
    assert data.pop("clusters") == [cluster_data(HERNIA), cluster_data(EFFUSION)]
    assert data.pop("notes") == discovery_notes(found)
    assert data == {
        "cohort": "made",
        "cohort_digest": "c" * 64,
        "language": "en",
        "cases": 30,
        "left_out": 0,
        "unit": "case",
        "min_reports": 5,
        "longest": 4,
        "cut": 0.55,
        "prompt": "extractor@v1",
        "prompt_digest": "d" * 64,
        "words_digest": "e" * 64,
        "cues": {"en": "f" * 64},
        "digest": found.digest,
        "rare": 1_234,
        "names": 0,
        "beyond": 0,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"cohort_digest": "0" * 64},
        {"min_reports": 6},
        {"longest": 3},
        {"cut": 0.5},
        {"words_digest": "0" * 64},
        {"cues": {"en": "0" * 64}},
        {"clusters": (HERNIA,)},
    ],
)
def test_the_digest_is_of_all_that_decides_the_clusters(found, change):
    """And not of the order they stand in, nor of the prompt beside them."""
    assert replace(found, **change).digest != found.digest
    same = {"clusters": (EFFUSION, HERNIA), "prompt": "", "cases": 9}
    assert replace(found, **same).digest == found.digest


def test_clusters_that_no_label_names_are_lacking(found):
    """A label that is only left uncertain names nothing; phrases are of all."""
    assert found.lacking == (HERNIA,)
    assert found.phrases == 4
    assert HERNIA.shares == MentionShares(2 / 10, 1 / 10)
    assert EFFUSION.shares == MentionShares(0.0, 9 / 11)
    assert MentionShares.of(0, 0, 0) is None
    assert MentionShares.of(0, 1, 3) == MentionShares(0.25, 0.75)


@pytest.mark.parametrize(
    ("phrases", "name"),
    [
        ((("hernia", 10), ("hiatal hernia", 8)), "hiatal hernia"),
        ((("hernia", 10), ("hiatal hernia", 7)), "hernia"),
        ((("b", 5), ("a b c", 4), ("a b", 5)), "a b c"),
        ((("a", 5), ("c b", 5)), "a"),
        ((("a", 4), ("b", 5)), "b"),
        ((("a b", 5), ("b a", 5)), "a b"),
    ],
)
def test_a_longer_name_must_be_nearly_as_frequent(phrases, name):
    """Four fifths are, and it holds all words of the shorter one and more."""
    assert name_cluster(phrases) == name


def test_notes_say_what_is_not_shown_and_only_that(found):
    """Rarer phrases always; names, too many, other languages where there are any."""
    assert discovery_notes(found) == [
        "A phrase is shown when at least 5 cases hold it and assert it: 1,234 rarer "
        "ones are not shown.",
        "A cluster is a proposal. One cluster may hold two findings, and one finding "
        "may be spread over several clusters.",
        "What the prompt finds is the answer of rules with extractor@v1 about the same "
        "cases. These may be other findings of the same case.",
    ]
    more = replace(
        found, names=3, beyond=4_321, left_out=2_000, unit="patient", prompt=""
    )
    first, _, names, beyond, left, prompt = discovery_notes(more)
    assert "when cases of at least 5 patients hold it" in first
    assert names.startswith("3 words that may be names")
    assert beyond.startswith("4,321 phrases were left out")
    assert left.startswith("2,000 cases in other languages than en")
    assert prompt.startswith("There is no prompt for the labels")


def test_the_table_has_a_row_for_each_phrase(found):
    """With its cluster's numbers beside its own; no cell is a formula."""
    rows = list(csv.DictReader(io.StringIO(render_discovery_csv(found))))
    assert [row["phrase"] for row in rows] == [
        "hernia",
        "hiatal hernia",
        "effusion",
        "'=fluid",
    ]
    assert rows[2] == {
        "cluster": "c2",
        "cluster_name": "effusion",
        "cluster_asserted": "2",
        "cluster_hedged": "0",
        "cluster_denied": "9",
        "no_label_found": "0",
        "phrase": "effusion",
        "asserted": "6",
        "hedged": "0",
        "denied": "9",
        "labels": "pleural_effusion",
        "labels_left_uncertain": "",
    }
    assert rows[3]["labels_left_uncertain"] == "pleural_effusion; edema"


def test_the_lines_of_clusters_name_the_label_that_is_found_most():
    """Or that none is."""
    assert list(cluster_rows([HERNIA, EFFUSION])) == [
        ("hiatal hernia", "7", "2", "1", "3", "edema 4"),
        ("effusion", "2", "0", "9", "0", "-"),
    ]


def test_the_page_shows_each_cluster_in_its_section(found):
    """What no label names first; near ones by name, three labels and five cases."""
    page = " ".join(render_discovery_html(found).split())
    first, second = page.index("What no label names"), page.index("What labels name")
    hernia = page[first:second]
    assert first < second and "hiatal hernia" in hernia and "=fluid" not in hernia
    assert "=fluid" in page[second:] and "hiatal hernia" not in page[second:]
    assert "effusion" in hernia
    for label, said in (("edema", True), ("pneumonia", True), ("atelectasis", False)):
        name = next(one.name for one in TAXONOMY.labels if one.id == label)
        assert (name in hernia) is said
    assert "r4" in hernia and "r5" not in hernia
    assert __version__ in page
    bare = render_discovery_html(replace(found, prompt=""))
    assert "the names of the labels" in bare
