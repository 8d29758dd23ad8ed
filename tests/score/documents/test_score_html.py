"""The page of a score: self-contained, escaped, readable without colour or pointer."""

import re
import subprocess
from dataclasses import replace

import pytest

from loop.score.documents.files import render_score_html
from tests.documents.test_in_browser import CHROMIUM, FLAGS, PROBE
from tests.evaluate.test_evaluation_html import outline
from tests.score.documents.score_scenes import NAMES, document_of, ran_score, under

LONG = "openai:Qwen/Qwen3-4B-Instruct-2507@http://127.0.0.1:8000/v1"


@pytest.fixture(scope="module")
def page():
    """Return the page of three systems."""
    return render_score_html(document_of("template", "drops sentences", LONG))


def words_of(page):
    """Return everything a reader is told, as one text."""
    return " ".join(" ".join(outline(page).words).split())


def test_no_network_and_no_script(page):
    """The page works unplugged: nothing is loaded, nothing runs."""
    tags = outline(page).tags
    assert not {"script", "link", "iframe", "img", "object"} & {t for t, _ in tags}
    assert not re.search(r"url\(|@import|src=", page)
    assert not any(name.startswith("on") for _, attrs in tags for name in attrs)
    policy = next(a["content"] for t, a in tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")


def test_hostile_names_are_text():
    """System names and case ids come from files."""
    nasty = '"><script>alert(1)</script>{{ 7*7 }}'
    score = ran_score((nasty, nasty + "2"))
    cases = tuple(replace_id(one, nasty) for one in score.cases)
    page = render_score_html(
        document_of(
            nasty,
            nasty + "2",
            score=replace(score, cases=cases),
            remarks=(nasty,),
        )
    )
    assert "<script" not in page
    assert page.count("{{ 7*7 }}") > 10
    outline(page)


def replace_id(case, name):
    """Return a case with another id."""
    return case._replace(case_id=name)


def test_every_tinted_cell_says_its_numbers_in_words(page):
    """Colour is repeated in a sentence with counts, for who does not see it."""
    said = words_of(page)
    assert (
        "Atelectasis, template: F1 0.915, found 27, invented 2, missed 3, of 298 pairs"
        in said
    )
    assert "Atelectasis, template: 0.100, 3 of 30 present in the reference" in said
    assert "Atelectasis, template: 0.007, 2 of 268 absent in the reference" in said
    last = NAMES["pulmonary_vascular_abnormal"]
    assert f"{last}, template: F1 not defined, no case has it on either side" in said
    assert f"{last}, template: no case present in the reference" in said


def test_every_number_carries_its_signature(page):
    """The conventions stand beside the score, not in a footnote elsewhere."""
    said = words_of(page)
    assert said.count("ran|extractor@v7:3f2a3f|rules:ababab|unc:excl|zd:skip") == 3
    assert "ran_errors|v1" in said


def test_missing_and_extra_ids_are_named_and_counted(page):
    """A lost row is told by its id, not found by a reader who counts."""
    said = words_of(page)
    assert "template: 2 references without a candidate, not scored: c1, c2" in said
    assert "template: 1 candidates without a reference, left out: x9" in said
    assert "references: 1 without a word, left out: c7" in said


def test_a_metric_that_did_not_run_says_why(page):
    """The rest of the table is there all the same."""
    assert "bertscore : no model: name one with --bert." in words_of(page)


@pytest.mark.parametrize(
    ("rule", "perfect", "told"),
    [
        ("skip", 1.0, "A perfect copy of the references scores 1.000"),
        ("zero", 0.143, "would score only 0.143, not 1: under zero_division zero"),
        ("one", 1.0, "counts 1 in the mean; that raises every score"),
        ("skip", None, "has no score here"),
    ],
)
def test_what_a_perfect_copy_would_score_stands_on_the_page(rule, perfect, told):
    """Three findings in three cases give 3/21 under zero: a reader must know."""
    assert told in words_of(render_score_html(under(rule, perfect, "a", "b")))


def test_one_system_has_no_ranking_and_no_differences():
    """Nothing is compared, so nothing pretends to be."""
    page = render_score_html(document_of("only"))
    said = words_of(page)
    assert "only on 300 cases" in said
    assert "What sets systems apart" not in said and "Ranking" not in said


def test_tables_have_scoped_headers_and_nothing_is_nan(page):
    """A screen reader can say which row and column a number belongs to."""
    parsed = outline(page)
    headers = [attrs for tag, attrs in parsed.tags if tag == "th"]
    assert headers and all("scope" in attrs for attrs in headers)
    assert not re.search(r"\b(nan|None|inf)\b", " ".join(parsed.words))


def test_both_papers_have_their_colours(page):
    """Dark pages are not light ones with a filter: both palettes are spelled out."""
    style = page[page.index("<style>") : page.index("</style>")]
    assert "--paper: #ffffff" in style and "--paper: #12181f" in style
    assert "prefers-color-scheme: dark" in style


@pytest.mark.slow
@pytest.mark.external
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [1280, 800, 500])
def test_page_fits_the_window_and_loads_nothing(page, tmp_path, width):
    """No sideways scrolling of the page on a desk or a phone, no request."""
    text, banned = re.subn(
        r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page
    )
    assert banned == 1
    probed = tmp_path / "page.html"
    probed.write_text(text.replace("</body>", PROBE), "utf-8")
    window = (f"--window-size={width},800", f"--user-data-dir={tmp_path / 'browser'}")
    done = subprocess.run(
        [CHROMIUM, *FLAGS, *window, probed.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert 'data-probe="false 0"' in done.stdout
