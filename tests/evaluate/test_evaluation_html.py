"""The page is self-contained, escaped, accessible, and holds no case text."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from loop.core.errors import DataError
from loop.documents.templates import render_template
from loop.evaluate.compare import compare_inputs
from loop.evaluate.documents import render_html
from loop.evaluate.evaluation import evaluate_inputs
from tests.evaluate.scenes import inputs, random_run, reference

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Outline(HTMLParser):
    """Collects tags, attributes and text, and checks that tags are balanced."""

    def __init__(self):
        """Start empty."""
        super().__init__()
        self.open, self.tags, self.words = [], [], []

    def handle_starttag(self, tag, attrs):
        """Note the tag."""
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """Note a tag that closes itself."""
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        """Check that the innermost open tag is closed."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Collect visible text."""
        if not self.open or self.open[-1] not in ("style", "title"):
            self.words.append(data)


def outline(page):
    """Parse a page."""
    parsed = Outline()
    parsed.feed(page)
    assert parsed.open == []
    return parsed


@pytest.fixture(scope="module")
def scene():
    """Two runs of different quality on the same cases."""
    before, standard = random_run(120, noise=2.0)
    after, _ = random_run(120, noise=0.5)
    return (
        inputs(before, standard),
        inputs(after, standard, run="later", prompt="extractor@v2"),
    )


def page_of(given_inputs, before=None):
    """Render a page with few resamples."""
    comparison = before and compare_inputs(before, given_inputs, resamples=50)
    return render_html(evaluate_inputs(given_inputs, resamples=50), comparison)


def test_no_network_and_no_script(scene):
    """The page works unplugged: nothing is loaded, nothing runs."""
    page = page_of(scene[1], scene[0])
    tags = outline(page).tags
    assert not {"script", "link", "iframe", "img", "object"} & {t for t, _ in tags}
    assert not re.search(r"https?://|url\(|@import", page)
    assert not any(name.startswith("on") for _, attrs in tags for name in attrs)
    policy = next(a["content"] for t, a in tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")


def test_hostile_names_are_text(scene):
    """Names from files are data: no tag of theirs reaches the page."""
    nasty = '"><script>alert(1)</script>{{ 7*7 }}'
    given_inputs = inputs(*random_run(20), source=nasty, licence=nasty, name=nasty)
    run = replace(given_inputs.run, engine=nasty, manifest={"x": nasty})
    page = page_of(replace(given_inputs, run=run))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "{{ 7*7 }}" in page


def test_every_label_has_a_row_with_word_shape_and_sentence(scene):
    """The verdict is told by word and shape, and the plot is described in words."""
    evaluation = evaluate_inputs(scene[1], resamples=50)
    parsed = outline(render_html(evaluation))
    plots = [a for t, a in parsed.tags if t == "svg" and a.get("class") == "plot"]
    assert len(plots) == 21
    for result, plot in zip(evaluation.labels, plots, strict=True):
        assert plot["role"] == "img"
        assert result.name in plot["aria-label"]
        assert plot["aria-label"].endswith(result.gate.verdict.value)


def test_tables_have_scoped_headers(scene):
    """A screen reader can say which row and column a number belongs to."""
    tags = outline(page_of(scene[1], scene[0])).tags
    headers = [attrs for tag, attrs in tags if tag == "th"]
    assert headers
    assert all("scope" in attrs for attrs in headers)


def test_never_prints_nan_or_none(scene):
    """A number without meaning is a dash, on an empty run as well."""
    for page in (page_of(scene[1], scene[0]), page_of(inputs([], reference({})))):
        words = " ".join(outline(page).words)
        assert not re.search(r"\b(nan|None|inf)\b", words)


def test_synthetic_cohorts_are_said_to_be(scene):
    """Nobody may take a demonstration for a result."""
    made_up = inputs(*random_run(20), source="Synthetic texts")
    assert "Synthetic cohort" in page_of(made_up)
    assert "Synthetic cohort" not in page_of(scene[1])


def test_case_ids_only_where_the_cohort_may_be_read(scene):
    """A holdout shows counts; which cases changed stays sealed."""
    before, after = scene
    assert "case-0" in page_of(after, before)
    sealed = replace(after, cohort=replace(after.cohort, role="holdout"))
    assert "case-0" not in page_of(sealed, before)
    assert "case-0" not in page_of(after)


def test_a_late_protocol_is_said_to_be_late(scene):
    """A claim fixed after the run is not a claim made before it."""
    evaluation = evaluate_inputs(scene[1], resamples=50)
    early = replace(evaluation, registered="2026-01-05T08:00:00Z")
    late = replace(evaluation, registered="2026-01-05T10:00:00Z")
    assert "registered after the run" not in render_html(early)
    assert "registered after the run" in render_html(late)
    assert "not registered in the ledger" in render_html(evaluation)


def test_who_says_no_finding_is_said(scene):
    """Answers derive it; a reference may hold what readers said of it themselves."""
    evaluation = evaluate_inputs(scene[1], resamples=50)
    read = evaluation.protocol.model_copy(update={"no_finding": "read"})
    said = "readers label it themselves in the reference"
    assert said not in render_html(evaluation)
    assert said in render_html(replace(evaluation, protocol=read))


def test_the_same_evaluation_gives_the_same_page(scene):
    """No clock and no random order: a page can be compared and signed."""
    assert page_of(scene[1], scene[0]) == page_of(scene[1], scene[0])


def test_a_broken_template_is_named(tmp_path):
    """Templates in a workspace may be edited; an error says where."""
    (tmp_path / "bad.html.jinja").write_text("ok\n{{ nothing }}\n")
    with pytest.raises(DataError, match=r"bad\.html\.jinja"):
        render_template(tmp_path, "bad.html.jinja", {})
