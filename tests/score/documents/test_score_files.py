"""The page, texts, data and folder of a score: escaped, consistent, all or nothing."""

import csv
import errno
import io
import json
import os
import re
import stat
import subprocess
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from loop import __version__
from loop.core.digests import digest_bytes
from loop.core.errors import DataError, WriteError
from loop.run.execute import Problem
from loop.score.bias import PanelRow, SensitivityPanel
from loop.score.documents import score_files as module
from loop.score.documents.score_files import (
    FORMAT,
    check_folder,
    document_variables,
    metric_data,
    render_errors_csv,
    render_files,
    render_score_html,
    render_score_markdown,
    score_data,
    write_folder,
)
from loop.score.experts.ratings import RaterAgreement
from loop.score.metrics.registry import METRICS
from loop.score.metrics.score_sheet import MetricCorrelations
from loop.score.records import Uncertain
from loop.score.scoring import Experts, MeanPoints, MetricAgainstExperts
from loop.stats.correlation import Correlations
from loop.stats.intervals import Estimate
from tests.documents.test_in_browser import CHROMIUM, FLAGS, PROBE
from tests.evaluate.test_evaluation_html import outline
from tests.score.documents.score_scenes import (
    FACTS,
    LABELS,
    NAMES,
    document_of,
    ran_score,
    under,
)

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
    assert said.count("ran|extractor@v7:3f2a3f|rules:ababab|unc:wrong|zd:skip") == 3
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


HOSTILE = ("=HYPERLINK(1)", "@x|<script>`")


@pytest.fixture(scope="module")
def document():
    """Return two systems with hostile names."""
    return document_of(*HOSTILE)


def test_markdown_tables_keep_their_columns(document):
    """A name with a bar in it is still one cell."""
    text = render_score_markdown(document)
    assert "<script" not in text
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) >= 10
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_markdown_names_the_conventions_and_the_signature(document):
    """A number that is copied out of the text takes its conventions along."""
    text = render_score_markdown(document)
    assert "zero division skip" in text
    assert text.count("zd:skip") == 2
    assert "A perfect copy of the references scores 1.000" in text
    assert not re.search(r"\b(nan|None|inf)\b", text)


def test_json_is_json_and_holds_every_number(document):
    """No NaN, which is no JSON: an undefined number is null."""
    data = json.loads(json.dumps(score_data(document), allow_nan=False))
    first = data["systems"][0]
    assert first["ran_score"]["value"] == 0.8
    assert first["perfect_copy"] == 1.0
    assert len(first["labels"]) == 21
    label = first["labels"][0]
    assert (label["tp"], label["fp"], label["fn"], label["tn"]) == (27, 2, 3, 266)
    assert label["false_negative_rate"] == pytest.approx(0.1)
    assert first["labels"][-1]["f1"] is None
    assert first["labels"][-1]["false_negative_rate"] is None
    assert data["metrics_not_run"][0]["metric"] == "bertscore"
    assert data["coverage"][0]["missing"] == ["c1", "c2"]


def test_errors_are_one_row_each_and_no_formula(document):
    """Ids and labels only; a spreadsheet does not run a system's name."""
    rows = list(csv.DictReader(io.StringIO(render_errors_csv(document))))
    assert len(rows) == 2 * 8 * 2
    assert rows[0] == {
        "id": "c000",
        "system": "'=HYPERLINK(1)",
        "label": LABELS[0],
        "error": "missed",
    }


def test_metrics_that_order_nothing_alike_are_null_and_not_a_number():
    """One of the two is constant; the numbers of the others stand as they are."""
    tau = np.array([[1.0, np.nan], [np.nan, -0.25]])
    found = MetricCorrelations(("a", "b"), tau, np.array([[6, 5], [5, 7]]))
    data = score_data(document_of("a", correlations=found))["correlations"]
    assert json.loads(json.dumps(data, allow_nan=False)) == {
        "metrics": ["a", "b"],
        "tau_b": [[1.0, None], [None, -0.25]],
        "n": [[6, 5], [5, 7]],
    }
    assert score_data(document_of("a", correlations=None))["correlations"] is None


def test_worst_cases_are_those_with_the_most_errors():
    """More errors first, then the lower F1, then the id: the order is no accident."""
    score = ran_score(("a",))
    one = score.cases[0]
    cases = (
        one._replace(case_id="z", errors=1),
        one._replace(case_id="y", errors=3, f1=0.2),
        one._replace(case_id="x", errors=3, f1=0.1),
        one._replace(case_id="w", errors=0, f1=1.0, missed=(), invented=()),
    )
    data = score_data(document_of("a", score=replace(score, cases=cases)))
    worst = [case["case_id"] for case in data["systems"][0]["worst_cases"]]
    assert worst == ["x", "y", "z"]


def test_pairs_stand_in_the_order_of_the_ranking():
    """The order in which tests were made means nothing to a reader."""
    score = ran_score(("a", "b", "c"))
    turned = replace(score, differences=score.differences[::-1])
    data = score_data(document_of("a", "b", "c", score=turned))
    pairs = [one["better"] + one["worse"] for one in data["differences"]]
    assert pairs == ["ab", "ac", "bc"]


def test_the_registry_is_data_too():
    """`--list --json` names direction, range and needs of every metric."""
    entries = [metric_data(one) for one in METRICS.values()]
    assert json.loads(json.dumps(entries, allow_nan=False)) == entries
    assert {one["direction"] for one in entries} == {"higher", "lower", "neither"}


def test_json_says_what_it_is_and_who_wrote_it(document):
    """A file found years later is read without the page beside it."""
    data = score_data(document)
    assert (data["format"], data["ranloop"]) == (FORMAT, __version__)
    assert data["label_names"] == {label: NAMES[label] for label in LABELS}
    cells = data["systems"][0]["cells"]
    assert (cells["decided"], cells["uncertain"]) == (298 * 21, 2 * 21)
    assert cells["share"] == pytest.approx(298 / 300)
    told = document.sources._replace(
        repeated_references=("c5",), notes=("Ids differ in case.",)
    )
    data = score_data(replace(document, sources=told))
    assert data["repeated_references"] == ["c5"]
    assert "Ids differ in case." in data["remarks"]


def test_markdown_has_no_table_without_rows():
    """No confusion and no error are told as such, not as an empty table."""
    score = replace(ran_score(("a",)), cases=())
    text = render_score_markdown(document_of("a", score=score, confused=()))
    assert "Nothing is missed in a case where something else is invented." in text
    assert "No case has an error." in text
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert all(len(table.splitlines()) > 2 for table in tables)


EVERY = {"score.html", "score.md", "scores.json", "per_case.csv", "errors.csv"}


def tree(folder):
    """Return every file of a folder with its bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def made():
    """Return the files of three systems."""
    return render_files(document_of("a", "b", "c"))


def test_all_files_are_there_and_readable(made, tmp_path):
    """Page, text, data, tables and every figure."""
    write_folder(tmp_path / "out", made)
    found = tree(tmp_path / "out")
    assert found == dict(made)
    assert set(found) >= EVERY and sum(name.endswith(".svg") for name in found) == 6
    data = json.loads(found.pop("scores.json"))
    named = {one["name"]: one["sha256"] for one in data["written_beside"]}
    assert named == {name: digest_bytes(one) for name, one in found.items()}
    for name, data in found.items():
        if name.endswith(".svg"):
            ElementTree.fromstring(data)
    assert os.listdir(tmp_path) == ["out"]


def test_an_earlier_score_is_replaced_as_a_whole(made, tmp_path):
    """A figure of three systems does not stay beside the page of one."""
    out = tmp_path / "out"
    write_folder(out, made)
    write_folder(out, render_files(document_of("only")))
    assert "figures/differences.svg" not in tree(out)
    assert b"only on 300 cases" in tree(out)["score.html"]
    assert os.listdir(tmp_path) == ["out"]


def test_files_of_someone_else_are_not_touched(made, tmp_path):
    """A folder that is mistyped keeps what it holds."""
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match=r"'thesis.tex', which are not touched\. Name"):
        write_folder(tmp_path, made)
    assert tree(tmp_path) == {"thesis.tex": b"years of work"}


def test_a_file_in_place_of_the_folder_is_refused(made, tmp_path):
    """The message says what it is."""
    (tmp_path / "out").write_text("a file")
    with pytest.raises(DataError, match=r"is a file\. Name a folder"):
        check_folder(tmp_path / "out")


def test_a_failure_in_the_middle_leaves_what_was_there(made, tmp_path, monkeypatch):
    """A full disk while the fourth file is written loses no earlier score."""
    out = tmp_path / "out"
    write_folder(out, made)
    before = tree(out)
    real, calls = module.write_atomic, []

    def failing(path, data):
        calls.append(path)
        if len(calls) == 4:
            raise WriteError("the disk is full")
        real(path, data)

    monkeypatch.setattr(module, "write_atomic", failing)
    with pytest.raises(WriteError):
        write_folder(out, render_files(document_of("other")))
    assert tree(out) == before
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_that_cannot_be_written_says_so(made, tmp_path):
    """The parent is a file: nothing is made anywhere."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(WriteError, match="cannot write"):
        write_folder(tmp_path / "file" / "out", made)


def test_a_folder_that_cannot_be_made_is_refused_before_the_work(tmp_path):
    """Texts are read for hours; that their page has no place is known at once."""
    (tmp_path / "ref.csv").write_text("id,text")
    with pytest.raises(WriteError, match="Not a directory"):
        check_folder(tmp_path / "ref.csv" / "out")
    check_folder(tmp_path / "new" / "deeper" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["ref.csv"]


def test_each_error_is_a_row_missed_ones_first():
    """Two missed and one invented by one system, one invented by the other."""
    score = ran_score(("a", "b"))
    one = score.cases[0]
    cases = (
        one._replace(case_id="x", missed=LABELS[:2], invented=LABELS[2:3]),
        one._replace(case_id="y", missed=(), invented=()),
        one._replace(case_id="x", system="b", missed=(), invented=LABELS[3:4]),
    )
    text = render_errors_csv(document_of("a", "b", score=replace(score, cases=cases)))
    assert list(csv.reader(io.StringIO(text))) == [
        ["id", "system", "label", "error"],
        ["x", "a", LABELS[0], "missed"],
        ["x", "a", LABELS[1], "missed"],
        ["x", "a", LABELS[2], "invented"],
        ["x", "b", LABELS[3], "invented"],
    ]


def test_every_number_of_a_system_is_in_the_data():
    """The whole record of the second of two, but its labels and cases."""
    data = json.loads(json.dumps(score_data(document_of("a", "b"))))
    second = data["systems"][1]
    labels, worst = second.pop("labels"), second.pop("worst_cases")
    readings = second.pop("ran_score_if_uncertain")
    assert second == {
        "system": "b",
        "rank": 2,
        "probability_best": 0.5,
        "cases": 300,
        "cells": {
            "decided": 6258,
            "uncertain": 42,
            "unanswered": 0,
            "unpaired": 0,
            "share": 6258 / 6300,
        },
        "ran_score": {
            "value": pytest.approx(0.69),
            "low": pytest.approx(0.65),
            "high": pytest.approx(0.73),
            "note": "",
        },
        "effective_labels": 20,
        "perfect_copy": 1.0,
        "micro_f1": {
            "value": pytest.approx(0.71),
            "low": pytest.approx(0.68),
            "high": pytest.approx(0.74),
            "note": "",
        },
        "micro_precision": pytest.approx(0.69),
        "micro_recall": pytest.approx(0.69),
        "micro_accuracy": 0.93,
        "macro_precision": pytest.approx(0.69),
        "macro_recall": None,
        "macro_accuracy": 0.93,
        "corrected": None,
        "signature": "ran|extractor@v7:3f2a3f|rules:ababab|unc:wrong|zd:skip|nf:ran"
        "|L:20/21|n:300",
    }
    assert readings["pos"] == {
        "ran_score": pytest.approx(0.69 + 0.03 * [*Uncertain].index("pos")),
        "cells": 6258,
    }
    assert set(readings) == {one.value for one in Uncertain}
    assert labels[0] == {
        "label": LABELS[0],
        "tp": 23,
        "fp": 5,
        "fn": 7,
        "tn": 263,
        "n": 298,
        "uncertain": 2,
        "unanswered": 0,
        "f1": 46 / 58,
        "precision": 23 / 28,
        "recall": 23 / 30,
        "specificity": 263 / 268,
        "accuracy": 286 / 298,
        "false_negative_rate": pytest.approx(7 / 30),
        "false_positive_rate": pytest.approx(5 / 268),
    }
    assert [case["case_id"] for case in worst] == [f"c{n:03}" for n in range(5)]
    assert data["differences"] == [
        {
            "better": "a",
            "worse": "b",
            "difference": {
                "value": 0.11,
                "low": 0.02,
                "high": pytest.approx(0.2),
                "note": "",
            },
            "p": 0.0004,
            "p_holm": 0.03,
            "exact": False,
        }
    ]


def test_everything_beside_the_systems_is_in_the_data():
    """Sampling, conventions, rows, metrics and files, each in its place."""
    given = replace(ran_score(("a",)), n_patients=41, seed=7, assumptions=("It errs.",))
    facts = replace(given.extractor, asked='{"engine": "rules"}')
    corrected = replace(given.systems[0], corrected=Estimate(0.9, None, None, "n"))
    given = replace(given, extractor=facts, systems=(corrected,))
    document = document_of(
        "a",
        score=given,
        twins={"t": "ran_score"},
        problems=(Problem("HTTP 503", 7, ("c1",)),),
        remarks=("First.",),
    )
    notes = document.sources._replace(notes=("Second.",))
    data = score_data(replace(document, sources=notes))
    assert data["systems"][0]["corrected"] == {
        "value": 0.9,
        "low": None,
        "high": None,
        "note": "n",
    }
    assert {name: data[name] for name in _BESIDE} == {
        "cases": 300,
        "patients": 41,
        "labels": list(LABELS),
        "conventions": {
            "uncertain": "wrong",
            "zero_division": "skip",
            "no_finding": "ran",
            "reading": None,
        },
        "extractor": {
            "ref": "extractor@v7",
            "digest": "3f2a" * 16,
            "engine": "rules",
            "identity": "ab" * 32,
            "release": "",
            "asked": {"engine": "rules"},
            "outcomes": {"answered": 590, "unparsed": 1, "asked": 591},
        },
        "sampling": {
            "resamples": 10_000,
            "permutations": 10_000,
            "seed": 7,
            "confidence": 0.95,
        },
        "differences": [],
        "confusions": [
            {
                "system": "a",
                "missed": LABELS[0],
                "invented": LABELS[5],
                "n": 4,
                "of_missed": 7,
                "of_invented": 9,
                "case_ids": ("c000", "c020"),
            }
        ],
        "metrics_not_run": [
            {"metric": "bertscore", "reason": "no model: name one with --bert."}
        ],
        "same_values_as": {"t": "ran_score"},
        "coverage": [
            {
                "system": "a",
                "rows": 301,
                "paired": 298,
                "missing": ["c1", "c2"],
                "extra": ["x9"],
                "repeated": [],
                "empty": ["c3"],
            }
        ],
        "empty_references": ["c7"],
        "repeated_references": [],
        "languages": {"en": 290, "zh": 10},
        "files": [
            {"name": "ref.csv", "sha256": "3f2a" * 16},
            {"name": "a.csv", "sha256": "3f2a" * 16},
        ],
        "assumptions": ["It errs."],
        "second_extractor": None,
        "experts": None,
        "problems": [{"text": "HTTP 503", "cases": 7, "examples": ("c1",)}],
        "remarks": ["First.", "Second."],
    }
    assert data["metrics"][1] == {
        "name": "ran_errors",
        "title": "Label errors",
        "family": "text",
        "direction": "lower",
        "low": 0.0,
        "high": None,
        "systems": [
            {
                "system": "a",
                "estimate": {"value": 0.5, "low": 0.4, "high": 0.6, "note": ""},
                "n": 3,
                "undefined": 1,
                "signature": "ran_errors|v1",
                "notes": [],
            }
        ],
    }
    plain = score_data(document_of("a", outcomes=None))
    assert plain["extractor"]["asked"] is plain["extractor"]["outcomes"] is None
    assert plain["patients"] is None


_BESIDE = (
    *("cases", "patients", "labels", "conventions", "extractor", "sampling"),
    *("differences", "confusions", "metrics_not_run", "same_values_as", "coverage"),
    *("empty_references", "repeated_references", "languages", "files", "assumptions"),
    *("second_extractor", "experts", "problems", "remarks"),
)


def test_a_second_extractor_is_in_the_data_with_whom_it_moves():
    """Both scores of each system, and what became of their order."""
    first = Estimate(0.8, 0.7, 0.9)
    row = PanelRow("a", first, Estimate(None, None, None, "n"), 1, 2, 9, 0.5, 0.1, None)
    found = SensitivityPanel(
        first=FACTS,
        second=replace(FACTS, ref="other@v1", asked="{}"),
        systems=(row,),
        tau=0.25,
        swapped=(("a", "b"),),
    )
    data = score_data(document_of("a", "b", panel=found))["second_extractor"]
    assert data["first"]["asked"] is None
    assert data["second"]["asked"] == {}
    assert (data["second"]["ref"], data["tau"]) == ("other@v1", 0.25)
    assert data["swapped"] == [["a", "b"]]
    assert data["systems"] == [
        {
            "system": "a",
            "first": {"value": 0.8, "low": 0.7, "high": 0.9, "note": ""},
            "second": {"value": None, "low": None, "high": None, "note": "n"},
            "first_rank": 1,
            "second_rank": 2,
            "cases": 9,
            "equal": 0.5,
            "gap": 0.1,
            "tau": None,
        }
    ]


def test_experts_are_in_the_data_with_every_metric():
    """What they agree on, what they gave, and how metrics follow them."""
    tau = Estimate(0.5, 0.4, 0.6)
    none = Estimate(None, None, None, "none")
    experts = Experts(
        points=(MeanPoints("a", 4.5, 2), MeanPoints("b", None, 0)),
        agreement=RaterAgreement(
            pairs=(),
            rest=(),
            ordinal=tau,
            interval=none,
            icc=tau._replace(value=0.55),
            candidates=3,
            complete=2,
            missing=1,
        ),
        metrics=(
            MetricAgainstExperts(
                "ran_errors", "Ran errors", True, Correlations(tau, none, tau, 3, 2)
            ),
        ),
        raters=("r1", "r2"),
        scale=(1.0, 5.0),
        rated=3,
        unrated=4,
        unscored=5,
    )
    estimate = {"value": 0.5, "low": 0.4, "high": 0.6, "note": ""}
    nothing = {"value": None, "low": None, "high": None, "note": "none"}
    assert score_data(document_of("a", "b", experts=experts))["experts"] == {
        "raters": ["r1", "r2"],
        "scale": [1.0, 5.0],
        "rated": 3,
        "unrated": 4,
        "unscored": 5,
        "alpha_ordinal": estimate,
        "alpha_interval": nothing,
        "icc_2_1": {**estimate, "value": 0.55},
        "tau_b_of_raters": None,
        "mean_points": [
            {"system": "a", "mean": 4.5, "n": 2},
            {"system": "b", "mean": None, "n": 0},
        ],
        "metrics": [
            {
                "name": "ran_errors",
                "negated": True,
                "n": 3,
                "tau_b": estimate,
                "spearman": nothing,
                "pearson": estimate,
            }
        ],
    }


def test_what_stands_on_the_page_is_of_its_system():
    """Confusions, examples and signatures are not those of a neighbour."""
    names = ("a", "b")
    document = document_of(*names)
    sheet = document.sheet
    results = tuple(
        one._replace(notes=("same", one.system), signature=f"s|{one.system}")
        if one.metric.name == "ran_errors"
        else one
        for one in sheet.results
    )
    document = replace(document, sheet=replace(sheet, results=results))
    found = document_variables(document)
    assert [one.key for one in found["systems"]] == ["A", "B"]
    for view in found["systems"]:
        assert {one.system for one in view.confused} == {view.score.system}
        assert {one.system for one in view.worst} == {view.score.system}
    first, second = found["metrics"]
    assert first.signatures == ("ran_score|v1",) and first.notes == ()
    assert second.signatures == ("s|a", "s|b")
    assert second.notes == ("same", "a", "b")
    assert (second.range, second.way) == ("0 to \N{INFINITY}", "lower is better")
    assert (found["title"], found["outcomes"]) == (
        "2 systems on 300 cases",
        "590 answered, 1 unparsed, 591 asked",
    )
    assert list(found["perfect"].values()) == [True]
    told = document_variables(under("zero", 0.99, "a"))
    assert list(told["perfect"].values()) == [False]
    assert list(document_variables(under("skip", None, "a"))["perfect"].values()) == [
        False
    ]
    assert document_variables(document_of("a", outcomes=None))["outcomes"] == ""


def test_only_a_number_is_tinted():
    """A cell without one has no style; what is below 0 takes the other colour."""
    score = ran_score(("a",))
    page = render_score_html(document_of("a", score=score))
    assert "color-mix(in srgb, var(--fail) 32%, transparent)" in page
    assert "color-mix(in srgb, var(--accent) 33%, transparent)" in page
    assert " 0%, transparent" not in page


def test_files_of_another_command_are_strange_here(tmp_path):
    """Each command names those that it may replace."""
    (tmp_path / "judge.html").write_text("x")
    check_folder(tmp_path, ("judge.html",))
    with pytest.raises(DataError, match=r"'judge\.html', which are not touched"):
        check_folder(tmp_path)
    write_folder(tmp_path, {"judge.html": b"y"}, ("judge.html",))
    assert tree(tmp_path) == {"judge.html": b"y"}
    (tmp_path / "b.txt").write_text("x")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(DataError, match=r"for example 'a\.txt'"):
        check_folder(tmp_path, ("judge.html",))


def test_a_full_place_is_told_for_a_folder_that_is_there_too(tmp_path, monkeypatch):
    """An earlier score lies there, and nothing can be written beside it any more."""
    (tmp_path / "out").mkdir()

    def full(**where):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module.tempfile, "mkdtemp", full)
    for name in ("out", "new"):
        with pytest.raises(WriteError, match=f"cannot write .*{name}: No space left"):
            check_folder(tmp_path / name)


def test_others_may_read_the_documents(made, tmp_path):
    """A folder that only its owner can open is of no use on a shared disk."""
    write_folder(tmp_path / "out", {"score.md": b"x"})
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o755
