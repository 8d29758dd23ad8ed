"""``score`` on RadPref: real texts, real experts, nothing of a text in a document."""

import csv
import io
import json
import re

import pytest

from loop.score.experts.radpref import read_radpref
from tests.cli.test_score import patch_as_released, run

LEXICAL = ("bleu", "rouge", "meteor", "chrf")

pytestmark = [pytest.mark.data, pytest.mark.slow]


@pytest.fixture(scope="module")
def scored(data_folder, tmp_path_factory):
    """Return the folder of documents of a scoring with every metric."""
    place = tmp_path_factory.mktemp("radpref")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch_as_released(patch)
        folder = data_folder / "radpref"
        run("--radpref", folder, "--bias", "auto", "--out", "out", "--resamples", "200")
    return place / "out"


def test_label_scores_agree_with_experts_better_than_any_lexical_metric(scored):
    """What the extractor is for: tau-b per case above BLEU, ROUGE, METEOR and chrF."""
    experts = json.loads((scored / "scores.json").read_text("utf-8"))["experts"]
    tau = {one["name"]: one["tau_b"]["value"] for one in experts["metrics"]}
    lexical = [value for name, value in tau.items() if name.startswith(LEXICAL)]
    assert len(lexical) >= 9
    assert min(tau["ran_score"], tau["ran_errors"]) > max(lexical)


def test_every_candidate_has_a_row_and_an_expert(scored):
    """Nothing is lost between files: as many rows as candidates, all of them rated."""
    text = (scored / "per_case.csv").read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    data = json.loads((scored / "scores.json").read_text("utf-8"))
    assert len(rows) == sum(one["paired"] for one in data["coverage"])
    assert (data["experts"]["rated"], data["experts"]["unrated"]) == (len(rows), 0)
    assert data["extractor"]["outcomes"]["unparsed"] == 0


def test_no_sentence_of_a_case_is_in_any_document(scored, data_folder):
    """Ids and numbers only, in every file that is written."""
    found = read_radpref(data_folder / "radpref")
    texts = [*found.references.values()]
    for system in found.candidates.values():
        texts += system.values()
    sentences = {
        sentence.strip()
        for text in texts
        for sentence in re.split(r"[.\n]", text)
        if len(sentence.split()) >= 4
    }
    assert len(sentences) > 100
    for path in scored.rglob("*.*"):
        written = path.read_text("utf-8")
        assert not [one for one in sentences if one in written], path.name
