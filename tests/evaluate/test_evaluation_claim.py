"""A claim on some labels stands in the text, the page, the JSON and on the terminal."""

import pytest

from loop.cli.evaluate import show_evaluation
from loop.evaluate.documents import render_html, render_markdown
from loop.evaluate.evaluation import evaluate_inputs
from loop.evaluate.evaluation_json import claim_lines, evaluation_data
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import certify_evaluation
from tests.evaluate.scenes import inputs, random_run
from tests.evaluate.test_evaluation_html import outline

SUBSET = Protocol(rule="lower", min_positives=14, claim="subset")


def evaluated(protocol):
    """Return an evaluation of one made-up run under `protocol`."""
    outcomes, standard = random_run(300, noise=0.1)
    return evaluate_inputs(inputs(outcomes, standard, protocol=protocol), resamples=50)


@pytest.fixture(scope="module")
def subset():
    """Return an evaluation whose protocol claims some labels."""
    return evaluated(SUBSET)


def test_the_lines_name_what_is_certified_and_the_test(subset):
    """Verdict, names with their adjusted p-values, and how they were tested."""
    lines = claim_lines(certify_evaluation(subset))
    assert lines[0] == "claim on a subset: PASS"
    assert lines[1].startswith("certified: ") and "(p < 0.001)" in lines[1]
    assert "Holm-adjusted over 21 labels, is at most 0.05" in lines[2]


def test_every_document_carries_the_claim(subset, capsys):
    """Beside the verdict on all labels together, which it does not replace."""
    second = claim_lines(certify_evaluation(subset))[1]
    page = outline(render_html(subset))
    assert second in " ".join(page.words)
    assert "The claim: some labels" in page.words
    assert "## The claim: some labels" in render_markdown(subset)
    show_evaluation(subset)
    assert second in capsys.readouterr().out
    claim = evaluation_data(subset)["claim"]
    assert (claim["kind"], claim["verdict"]) == ("subset", "PASS")
    assert {"label", "p", "p_holm", "certified"} <= set(claim["labels"][0])


def test_the_verdict_of_a_document_is_the_one_of_its_claim(subset):
    """Some label fails, so all together do not pass; some are certified."""
    assert subset.verdict.value != "PASS"
    assert "<title>extractor@v1 on made_up: PASS</title>" in render_html(subset)
    assert render_markdown(subset).startswith("# extractor@v1 on made\\_up: PASS")


def test_a_claim_on_all_labels_changes_no_document():
    """Its verdict says it all; the JSON holds the tests nevertheless."""
    whole = evaluated(SUBSET.model_copy(update={"claim": "all"}))
    assert claim_lines(certify_evaluation(whole)) == ()
    assert "some labels" not in render_html(whole) + render_markdown(whole)
    claim = evaluation_data(whole)["claim"]
    assert claim["verdict"] == whole.verdict.value
