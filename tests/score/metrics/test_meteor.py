"""METEOR is nltk's, its synonyms are named, and nothing is downloaded for them."""

import json
import subprocess
import sys

import nltk
import numpy as np
import pytest

from loop.score.metrics.meteor import measure_meteor, meteor, wordnet_version
from loop.score.metrics.registry import METRICS
from tests.score.metrics.scenes import ALONE, make_side

REFERENCE = "the chest x-ray shows evidence of pneumonia no pleural effusion is present"
CANDIDATE = "the lungs show infection and a small pleural effusion is visible"
SCRIPT = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
import nltk
nltk.data.path[:] = [sys.argv[2]]
from loop.score.metrics.meteor import meteor
from loop.score.metrics.registry import METRICS
from tests.score.metrics.scenes import ALONE, make_side

side = make_side(["growth"], ["tumor"])
scores = METRICS["meteor"].score(side, ALONE)
print(json.dumps([meteor(["growth"], ["tumor"]), scores.signature]))
"""


@pytest.fixture
def no_wordnet(monkeypatch):
    """Look for nltk's data nowhere."""
    monkeypatch.setattr(nltk.data, "path", [])


@pytest.mark.usefixtures("no_wordnet")
def test_the_review_notes_example_has_its_correct_value():
    """Five matches in three chunks, the fifth is show and shows."""
    score = meteor(REFERENCE.split(), CANDIDATE.split())
    assert score == pytest.approx(0.3747899159663865, abs=1e-15)


@pytest.mark.usefixtures("no_wordnet")
def test_without_wordnet_the_signature_says_that_there_are_no_synonyms():
    """The same name with and without synonyms would be two numbers."""
    side = make_side([REFERENCE], [CANDIDATE])
    assert "|syn:none|" in METRICS["meteor"].score(side, ALONE).signature


@pytest.mark.slow
def test_with_wordnet_synonyms_match_and_the_signature_says_so(tmp_path):
    """In a process of its own: nltk keeps the WordNet that it found first."""
    write_wordnet(tmp_path / "corpora" / "wordnet")
    path = [place for place in sys.path if place]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(path), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    score, signature = json.loads(done.stdout)
    assert score == 0.5
    assert "|syn:wordnet-3.0|" in signature


def write_wordnet(folder):
    """Write a WordNet of one noun with two lemmas; nltk looks them up by their stem."""
    folder.mkdir(parents=True)
    padding = "  1 WordNet 3.0 Copyright of nobody\n"
    offset = len(padding)
    data = f"{offset:08d} 03 n 02 tumor 0 growth 0 000 | made for a test  \n"
    entries = "".join(
        f"{lemma} n 1 0 1 0 {offset:08d}  \n" for lemma in ("tumor", "growth")
    )
    for part in ("noun", "verb", "adj", "adv"):
        noun = part == "noun"
        (folder / f"data.{part}").write_text(padding + data * noun)
        (folder / f"index.{part}").write_text(padding + entries * noun)
        (folder / f"{part}.exc").write_text("")
    senses = f"tumor%1:03:00:: {offset:08d} 1 0\ngrowth%1:03:00:: {offset:08d} 1 0\n"
    (folder / "index.sense").write_text(senses)
    (folder / "lexnames").write_text("".join(f"{n:02d}\tn.{n}\t1\n" for n in range(4)))


def test_a_damaged_wordnet_is_none(monkeypatch, tmp_path):
    """A half-unpacked corpus must not take the other metrics down with it."""
    (tmp_path / "corpora" / "wordnet").mkdir(parents=True)
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    side = make_side([REFERENCE], [CANDIDATE])
    assert "|syn:none|" in METRICS["meteor"].score(side, ALONE).signature


@pytest.mark.usefixtures("no_wordnet")
def test_looking_for_wordnet_downloads_nothing(monkeypatch):
    """A clinical machine has no network, and nothing may change on its own."""
    monkeypatch.setattr(nltk, "download", None)
    assert wordnet_version() is None


@pytest.mark.usefixtures("no_wordnet")
def test_texts_too_long_to_match_are_undefined_not_zero():
    """The limit is on the product of the two numbers of words."""
    long = "left " * 6000
    scores = measure_meteor([long, "left"], [long, "left"])
    assert np.isnan(scores[0, 0])
    side = make_side([long, "left"], [long, "left"])
    told = METRICS["meteor"].score(side, ALONE)
    assert told.value == 0.5
    assert told.notes == (
        "undefined for 1 of 2 cases: the numbers of words multiply to more than "
        "25,000,000",
    )


@pytest.mark.usefixtures("no_wordnet")
def test_without_a_word_it_is_zero():
    """Silence matches nothing."""
    assert not measure_meteor(["no effusion"] * 2, ["", "..."]).any()
