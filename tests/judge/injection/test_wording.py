"""Other words for what injection writes: none that a judge or an extractor has."""

import re

import pytest

from loop.core.errors import DataError
from loop.core.paths import bundled
from loop.core.yaml_files import read_model
from loop.judge import InjectionOptions, inject_errors
from loop.judge.injection.injection_bank import (
    INJECTION,
    BankWording,
    read_bank,
    shipped_wording,
)
from loop.judge.injection.text_changes import apply_changes
from tests.judge.injection.test_inject import REPORTS
from tests.judge.scenes import call, table

LABELS = bundled() / "labels"
ALL = InjectionOptions(numbers=(1, 2), harmless=True, reread=False)


def fold(text):
    """Return words with single spaces, small, without marks."""
    return " " + " ".join(re.findall(r"\w+", text.casefold())) + " "


def written():
    """Yield every phrase that the shipped wording writes, without slots."""
    given = read_model(shipped_wording(), BankWording)
    for keys in given.sentences.values():
        for found in keys.values():
            for one in found:
                for text in (one.sentence, one.summary):
                    # Between slots stands what is written whatever fills them.
                    parts = re.split(r"\{\w+\}", text)
                    yield max(parts, key=len)
    yield from (one.to for one in given.degrees)
    yield from given.comparisons
    yield from (other for _, other in (*given.synonyms, *given.abbreviations))
    for one in (*given.style, *given.numbers):
        yield max(re.split(r"\\\d", one.becomes), key=len)


def read_files():
    """Return all that the embedded judge, the cues and the extractors hold."""
    paths = [
        LABELS / "judging.yaml",
        *(LABELS / "cues").glob("*.yaml"),
        *(bundled() / "prompts" / "extractor").glob("*/guides.yaml"),
    ]
    assert len(paths) >= 14
    return fold(" . ".join(path.read_text("utf-8") for path in paths))


def test_no_phrase_of_it_stands_in_a_file_of_the_judge_or_the_extractor():
    """So that nobody who wrote those lists had it in mind."""
    known = read_files()
    phrases = [fold(one) for one in written() if one.strip(" .,")]
    assert len(phrases) > 80
    assert [one for one in phrases if one in known] == []


def test_nor_in_the_bank():
    """It is another wording: the two tables are of other words."""
    bank = fold((LABELS / INJECTION).read_text("utf-8"))
    phrases = [fold(one) for one in written() if one.strip(" .,")]
    assert [one for one in phrases if one in bank] == []


def test_the_same_is_looked_for_and_other_words_are_written():
    """Of every finding that the bank writes, but those without other words."""
    bank = read_bank().bank
    read = read_bank(wording=shipped_wording())
    assert read.sha256 == read_bank().sha256 and read.wording
    assert read.bank.topics == bank.topics and read.bank.families == bank.families
    ours = read.bank.modality("chest_xray").false_findings
    theirs = {one.sentence for one in bank.modality("chest_xray").false_findings}
    assert len(ours) >= 20 and not theirs & {one.sentence for one in ours}
    assert {one.begins for one in read.bank.severity.degrees} <= {
        one.begins for one in bank.severity.degrees
    }


def test_changes_still_give_the_candidate():
    """As with the words of the bank."""
    made = inject_errors(REPORTS, ALL, wording=shipped_wording())
    assert len(made.pairs) > 20 and made.wording_digest
    for one in made.pairs:
        assert apply_changes(one.reference, one.changes) == one.candidate
    said = " ".join(one.candidate for one in made.pairs)
    assert "voluminous" in said and "film of last month" in said
    assert "large left" not in said


def test_what_is_read_otherwise_is_kept_on_request():
    """Then the reader does not decide which harmless variants there are."""
    kept = inject_errors(REPORTS, ALL)
    left = inject_errors(REPORTS, InjectionOptions(numbers=(1, 2), harmless=True))
    assert {one.id for one in left.pairs} <= {one.id for one in kept.pairs}
    assert not any(kept.read_otherwise.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 1\nwords: []\n", "words"),
        (
            "version: 1\nsentences: {chest_xray: {fracture: [{sentence: 'A {bone} is "
            "broken.'}]}}\n",
            "the slot 'bone'",
        ),
        (
            "version: 1\nsentences: {chest_xray: {nothing: [{sentence: A thing.}]}}\n",
            "no whole bank",
        ),
        ("version: 1\nstyle: [{pattern: '(', becomes: x}]\n", "no regular expression"),
    ],
)
def test_a_wording_that_fits_no_bank_is_refused(tmp_path, text, message):
    """By what is wrong with it."""
    path = tmp_path / "wording.yaml"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_bank(wording=path)
    with pytest.raises(DataError, match=r"injection_wording\.yaml"):
        read_bank(wording=tmp_path / "none.yaml")


def test_the_command_takes_the_shipped_wording(workspace, tmp_path):
    """Its digest stands in the folder; with a model there is none."""
    source = table(tmp_path / "r.csv", ("id", "text"), [*REPORTS.items()])
    out = tmp_path / "out"
    more = ("inject", source, "--wording", "shipped", "--no-reread", "--harmless")
    done = call(workspace, *more, "--out", out)
    assert done.exit_code == 0, done.output
    assert "saw more change" not in done.output
    said = (out / "inject.json").read_text()
    assert "wording_sha256" in said and '"reread": false' in said
    refused = call(workspace, *more, "--engine", "told:x", "--out", tmp_path / "two")
    assert "without --engine" in refused.output
