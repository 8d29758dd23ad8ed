"""The page of a matrix: self-contained, escaped, readable without colour."""

import re
import subprocess
from dataclasses import replace
from itertools import pairwise

import pytest

from loop.core.records import ValueCode
from loop.evaluate.matrix.documents import render_matrix_html, tones
from tests.documents.test_in_browser import CHROMIUM, FLAGS, PROBE
from tests.evaluate.matrix_scenes import answering, matrix_of, run_of
from tests.evaluate.test_evaluation_html import outline

LONG = "openai:Qwen/Qwen3-4B-Instruct-2507@http://127.0.0.1:8000/v1"


@pytest.fixture(scope="module")
def matrix():
    """Return three engines and one that failed."""
    return matrix_of(
        run_of([289, 240, 286], engine="rules"),
        answering(run_of([299] * 21, engine=LONG), "edema", {9: ValueCode.UNCERTAIN}),
        run_of([200] * 21, engine="vllm:small"),
        failed={"vllm:big": "no server answered"},
    )


@pytest.fixture(scope="module")
def page(matrix):
    """Return their page."""
    return render_matrix_html(matrix)


def cells_of(page, kind=""):
    """Return class and sentence of the cells of the table of labels."""
    found = re.findall(r'<td class="cell ([^"]*)" title="([^"]*)"', page)
    return [one for one in found if kind in one[0].split() or not kind]


def test_no_network_and_no_script(page):
    """The page works unplugged: nothing is loaded, nothing runs."""
    tags = outline(page).tags
    assert not {"script", "link", "iframe", "img", "object"} & {t for t, _ in tags}
    assert not re.search(r"url\(|@import|src=", page)
    assert not any(name.startswith("on") for _, attrs in tags for name in attrs)
    policy = next(a["content"] for t, a in tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")


def test_hostile_names_are_text():
    """An engine name comes from a command line, a failure from a server."""
    nasty = '"><script>alert(1)</script>{{ 7*7 }}'
    run = run_of([290], engine=nasty)
    run = replace(run, cohort=replace(run.cohort, name=nasty, source=nasty))
    page = render_matrix_html(matrix_of(run, failed={nasty + "2": nasty}))
    assert "<script" not in page
    assert page.count("{{ 7*7 }}") > 3
    outline(page)


def test_every_cell_says_its_numbers_in_words(page, matrix):
    """Colour, star and shape are repeated in a sentence for who does not see them."""
    cells = cells_of(page)
    assert len(cells) == 21 * 4
    tone, says = cells[0]
    assert tone == "a1" and says.startswith(
        "Atelectasis, rules: accuracy 0.963, interval [0.935, 0.982], 289 of 300 right"
    )
    assert "worse than the best, against the best 10 cases lost and 0 gained" in says
    words = " ".join(outline(page).words)
    assert says in words


def test_marks_and_tints_are_those_of_the_matrix(page):
    """Best engines are bold; a cell without evidence is striped, not tinted."""
    assert sum("isbest" in tone for tone, _ in cells_of(page)) == 21
    # 0.963, 0.800, 0.953; then 0.997; then 0.667.
    tints = {tone.split()[0] for tone, _ in cells_of(page)}
    assert tints == {"a1", "b2", "a3", "b3", "none"}
    thin = render_matrix_html(
        matrix_of(run_of([300], positives=3), run_of([9], engine="b", positives=3))
    )
    assert {tone for tone, _ in cells_of(thin)} == {"thin"}
    assert "★</span><span>" not in thin


def test_an_accuracy_at_an_edge_has_the_lighter_tint():
    """The threshold belongs to what reaches it; nothing right is the darkest."""
    page = render_matrix_html(matrix_of(run_of([285, 284, 0, 300])))
    tints = [tone.split()[0] for tone, _ in cells_of(page)[:4]]
    assert tints == ["a1", "b1", "b3", "a3"]


def test_what_is_not_ranked_is_never_left_without_a_mark():
    """No mark means worse than the best by a test; here nothing was tested."""
    unsure = answering(
        run_of([300], engine="unsure", positives=10),
        "atelectasis",
        {0: ValueCode.UNCERTAIN},
    )
    page = render_matrix_html(
        matrix_of(unsure, run_of([200], engine="b", positives=10))
    )
    first = [says for _, says in cells_of(page)[:2]]
    assert all(says.endswith("not ranked") for says in first)
    tones = [tone for tone, _ in cells_of(page)[:2]]
    assert tones == ["thin", "b3"]
    row = page[page.index("Atelectasis</th>") :].split("</tr>")[0]
    assert row.count('<span class="mark dim">?</span>') == 2


def test_an_engine_without_a_run_tells_why(page):
    """Where its numbers would stand."""
    words = " ".join(outline(page).words)
    assert "No run." in words and "no server answered" in words
    assert len(cells_of(page, "none")) == 21


def test_n_stands_where_it_is_less_than_the_labels_own(page):
    """A denominator that differs is never silent."""
    assert page.count(">n 299<") == 1


def test_tables_have_scoped_headers_and_nothing_is_nan(page):
    """A screen reader can say which row and column a number belongs to."""
    parsed = outline(page)
    headers = [attrs for tag, attrs in parsed.tags if tag == "th"]
    assert all("scope" in attrs for attrs in headers)
    assert not re.search(r"\b(nan|None|inf)\b", " ".join(parsed.words))


def test_case_ids_never_stand_on_the_page(page):
    """Counts are enough here, and holdouts stay sealed."""
    assert "case-0" not in page


def test_what_accuracy_hides_stands_on_the_page(page):
    """Prevalence, choosing the best on the same cases, and marks that are no tests."""
    words = " ".join(outline(page).words)
    assert "an engine that finds nothing in any case would have 0.862" in words
    assert "The best is chosen on the same cases" in words
    assert "not a claim of significance" in words


@pytest.mark.parametrize("threshold", [0.01, 0.5, 0.95, 0.99])
def test_tints_cover_every_accuracy(threshold):
    """From 0 to 1 without a gap; the threshold is where the colour changes."""
    steps = tones(threshold)
    assert (steps[0].low, steps[-1].high) == (0.0, 1.0)
    assert all(one.high == two.low for one, two in pairwise(steps))
    assert next(one for one in steps if one.name == "a1").low == threshold


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
