"""Signatures: equal exactly when two scores may be compared."""

import pytest

from loop.score.records import Conventions, ExtractorFacts, NoFinding, Uncertain
from loop.score.signature import sign

FACTS = {"ref": "extractor@v7", "digest": "3f2a91c0" * 8, "engine": "rules"}
COUNTS = {"effective_labels": 19, "labels": 21, "n": 3000}


def test_a_signature_reads_as_documented():
    """The form that manual and documents show."""
    line = sign(ExtractorFacts(**FACTS), Conventions(), **COUNTS)
    assert line == (
        "ran|extractor@v7:3f2a91|rules|unc:wrong|zd:skip|nf:ran|L:19/21|n:3000"
    )


def test_given_labels_have_neither_digest_nor_engine():
    """No empty field stands for what is not there."""
    given = ExtractorFacts(ref="given", digest="", engine="")
    assert sign(given, Conventions(), **COUNTS).startswith("ran|given|unc:wrong|")


@pytest.mark.parametrize(
    ("facts", "conventions", "counts"),
    [
        ({"ref": "extractor@v6"}, {}, {}),
        ({"digest": "0" * 64}, {}, {}),
        ({"engine": "openai:small"}, {}, {}),
        ({"identity": "ab" * 32}, {}, {}),
        ({}, {"uncertain": Uncertain.PRESENT}, {}),
        ({}, {"zero_division": "zero"}, {}),
        ({}, {"no_finding": NoFinding.CHEXPERT}, {}),
        ({}, {"reading": "cd" * 32}, {}),
        ({}, {}, {"effective_labels": 18}),
        ({}, {}, {"labels": 14, "effective_labels": 14}),
        ({}, {}, {"n": 2999}),
    ],
)
def test_every_convention_changes_the_signature(facts, conventions, counts):
    """Two numbers that differ in any of these must not look comparable."""
    plain = sign(ExtractorFacts(**FACTS), Conventions(), **COUNTS)
    other = sign(
        ExtractorFacts(**{**FACTS, **facts}),
        Conventions(**conventions),
        **{**COUNTS, **counts},
    )
    assert other != plain


def test_each_reading_of_uncertain_values_keeps_its_name():
    """A signature of before says the same today."""
    given = ExtractorFacts(ref="given", digest="", engine="")
    found = [
        sign(given, Conventions(uncertain=policy), **COUNTS).split("|")[2]
        for policy in Uncertain
    ]
    assert found == ["unc:wrong", "unc:excl", "unc:pos", "unc:neg"]


def test_an_engine_that_reads_no_finding_itself_is_said_to():
    """On one side only, if the labels of the other were given."""
    conventions = Conventions(no_finding=NoFinding.CHEXPERT)
    found = [
        sign(ExtractorFacts(ref=ref, digest="", engine=engine), conventions, **COUNTS)
        for ref, engine in (
            ("labels@v1", "chexbert:f"),
            ("given+labels@v1", "chexbert:f"),
            ("given+labels@v1", "rules"),
        )
    ]
    assert [one.split("|")[5] for one in found] == [
        "nf:read",
        "nf:chexpert+read",
        "nf:chexpert",
    ]
    unasked = sign(ExtractorFacts(**FACTS), conventions, **COUNTS, derived=False)
    assert "nf:" not in unasked
