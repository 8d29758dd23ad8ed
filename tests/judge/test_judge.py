"""A judge on pairs: each asked once, unreadable answers in no number, signatures."""

import csv
import io
import json
import re

import numpy as np
import pandas as pd
import pytest

from loop import __version__
from loop.core.errors import DataError
from loop.core.paths import bundled
from loop.core.records import Completion, Status
from loop.engines import base
from loop.judge import Judge, judge_pairs
from loop.judge.counts import find_score
from loop.judge.document import (
    JudgeOptions,
    judge_data,
    judge_systems,
    notes,
    render_files,
    score_lines,
)
from loop.judge.judge import list_judges
from loop.judge.meta_evaluation import judged_texts
from loop.judge.score_bins import bins_data, score_bins
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.outputs.green_sections import ParserMode
from loop.score.experts.error_counts import Empty
from loop.score.joining import join_pairs
from loop.score.metrics.base import Direction
from tests.judge.scenes import (
    CANDIDATES,
    REFERENCES,
    ToldJudge,
    call,
    errors,
    table,
    tell,
)

TEXT = (
    "[Explanation]: One is missed.\n\n[Clinically Significant Errors]:\n"
    "(b) Omitted finding: 2\n\n[Clinically Insignificant Errors]:\nNone\n\n"
    "[Matched Findings]:\n3. heart; lungs; bones"
)
"""The count of errors has no full stop: the published parser finds none."""

LOWER = Direction.LOWER
EMPTY_LISTS = json.dumps(
    {"matched_findings": [], "missed_findings": [], "false_findings": []}
)
SCORES = {
    "vert": ("green", "green_f1", "formula", "errors", "own"),
    "formula": ("green", "green_f1", "formula", "errors", "own"),
    "rubric": ("own",),
    "chexprompt": ("errors",),
    "finescore": ("line_sum", "line_max", "line_mean"),
    "crimson": ("crimson",),
}
"""The judges that `rules` answers, besides those of part one, and their scores."""

MISSED = {"category": "omission", "reference": "", "candidate": "", "why": "missed"}
PLAIN = json.dumps({"errors": [MISSED], "matched_findings": 1})
"""An answer that does not weigh its one error."""


def ask(engine, version="one_pass", workspace=None, candidates=CANDIDATES, **how):
    """Return what a judge says of the pairs."""
    with Judge.open(workspace, version, engine, **how) as judge:
        names = list(REFERENCES)
        return judge.judge(
            [REFERENCES[name] for name in names],
            [candidates[name] for name in names],
            ["en"] * len(names),
        )


def test_the_judges_that_ship():
    """Those that `rules` can answer name the extractor they read by."""
    found = {one.name: one for one in list_judges(None)}
    own = {"green", "green_text", "one_pass", "two_pass", "two_pass_list", "radfact"}
    assert set(found) == own | {*SCORES, "rating", "rating_pairwise"}
    rated = {name for name, one in found.items() if not one.reads}
    assert rated == {"rating", "rating_pairwise"}
    reads = {one.reads[-1].ref for one in found.values() if one.reads}
    assert reads == {"extractor@v11"}
    assert all(one.finders for one in found.values() if one.reads)


@pytest.mark.parametrize("name", SCORES)
def test_a_judge_has_the_scores_of_its_answers(name):
    """And no table of errors, where it counts none; a copy has the best score."""
    document = judge_pairs(REFERENCES, CANDIDATES, name).document
    titles = {
        one.metric.name.removeprefix(f"{name}_") for one in document.sheet.results
    }
    assert titles == set(SCORES[name])
    for one in document.sheet.results:
        best = one.metric.low if one.metric.direction is LOWER else one.metric.high
        copy = document.systems[0].case_ids.index("c")
        assert one.per_case[copy] == best
        assert not np.isnan(one.per_case).any()
    data = json.loads(json.dumps(judge_data(document)))
    counted = name in ("vert", "formula", "chexprompt")
    assert bool(data["systems"][0]["errors"]) is counted
    files = render_files(document)
    assert (b"## Errors" in files["judge.md"]) is counted
    header = files["counts.csv"].splitlines()[0].decode().split(",")
    assert ("matched" in header) is (name in ("vert", "formula"))
    assert ("significant.omission" in header) is counted


def test_pairs_that_do_not_fit_are_named_in_words_of_python():
    """Options of the command line are no help there."""
    with pytest.raises(DataError, match="x") as caught:
        judge_pairs({"a": "Normal."}, {"copy": {"x": "Normal."}})
    assert "--" not in str(caught.value)


def test_weights_need_matches_and_errors():
    """A judge that scores only has nothing to weigh."""
    options = JudgeOptions(weights=(1, 2, 0))
    with pytest.raises(DataError, match="answers in the contract overall_score do not"):
        judge_pairs(REFERENCES, CANDIDATES, "rubric", options=options)


def test_a_judge_is_told_what_is_known_of_the_patient(monkeypatch, tmp_path):
    """From a column of the pairs; where there is none, it says that it was not told."""
    path = table(
        tmp_path / "pairs.csv",
        ("id", "reference", "candidate", "context"),
        [
            ("a", "Left effusion.", "Left effusion.", "Aged 92."),
            ("b", "Left effusion.", "Clear.", ""),
        ],
    )
    seen = {}

    class Seeing(ToldJudge):
        def complete(self, prompts):
            for index, prompt in enumerate(prompts):
                seen[prompt.item.variables["candidate"]] = prompt.tail
                yield index, Completion(EMPTY_LISTS)

    monkeypatch.setitem(base._FACTORIES, "seeing", lambda *_: Seeing({}, []))
    joined = join_pairs(path, read_taxonomy(bundled() / "labels"))
    with Judge.open(None, "crimson", "seeing") as judge:
        document = judge_systems(joined, judge)
    assert "<context>\nAged 92.\n</context>" in seen["Left effusion."]
    assert "<context>\n\n</context>" in seen["Clear."]
    assert document.without_context == 1
    assert "1 pairs were judged without context" in "".join(notes(document))
    assert "context:1" in document.sheet.results[0].signature


def test_two_forms_of_one_judge_count_alike():
    """What `rules` finds is the same however it is asked to say it."""
    green, one_pass = ask("rules", "green").counts, ask("rules").counts
    np.testing.assert_array_equal(green.triples, one_pass.triples)
    np.testing.assert_array_equal(green.own, one_pass.own)
    wrong = dict(zip(green.categories, green.significant.T.tolist(), strict=True))
    assert wrong["location"] == [1, 0, 0, 0]
    assert wrong["omission"] == [0, 1, 0, 1]
    assert green.matched.tolist() == [0, 1, 0, 0]
    assert green.own[2] == 1 and green.own[3] == 0


def test_free_text_is_refused_by_rules_and_says_why():
    """It writes JSON; nothing is guessed, and nothing is without an error."""
    said = ask("rules", "green_text")
    assert set(said.counts.statuses) == {Status.ENGINE_FAILED}
    assert np.isnan(said.counts.triples).all()
    assert "contract of this version is free text" in said.problems[0].text


def test_each_distinct_pair_is_asked_once(monkeypatch, workspace):
    """Also over two openings; what was unreadable is asked again."""
    answers = {CANDIDATES["a"]: "I cannot say.", "": Completion("", "length")}
    asked = tell(monkeypatch, answers)
    twice = {**CANDIDATES, "c": CANDIDATES["b"]}
    first = ask("told", workspace=workspace, candidates=twice)
    assert (first.asked, len(asked)) == (4, 4)
    assert first.counts.count(Status.UNPARSED) == 2
    again = ask("told", workspace=workspace, candidates=twice)
    assert (again.asked, again.cached) == (0, 4)
    assert again.counts.statuses == first.counts.statuses


def test_an_empty_reference_is_not_asked_about(monkeypatch):
    """An empty candidate is: a system may say nothing."""
    asked = tell(monkeypatch, {})
    with Judge.open(None, "one_pass", "told") as judge:
        said = judge.judge(["  ", "Effusion."], ["Edema.", ""], ["en", "en"])
    assert asked == [""]
    assert said.counts.statuses == (None, Status.ANSWERED)


def test_forty_candidates_of_one_reference(monkeypatch):
    """Each is a different pair; the reference is the start of every prompt."""
    tell(
        monkeypatch,
        {f"Edema {n}.": errors(*[("omission", True)] * (n % 3)) for n in range(40)},
    )
    result = judge_pairs(
        {"r": "Edema."},
        {f"s{n}": {"r": f"Edema {n}."} for n in range(40)},
        "one_pass",
        "told",
    )
    values = result.table[result.table.score == "one_pass_errors"]["value"]
    # Errors without a word of either text are told apart by their reasons.
    assert values.tolist() == [n % 3 for n in range(40)]


def test_a_score_of_its_own_stands_beside_the_counts(monkeypatch):
    """A judge that calls itself perfect in spite of its errors is seen to."""
    tell(monkeypatch, {CANDIDATES["a"]: errors(("omission", True), rules_score=1.0)})
    result = judge_pairs(
        {"a": REFERENCES["a"]}, {"a": CANDIDATES["a"]}, "one_pass", "told"
    )
    by = result.table.set_index("score")["value"]
    assert (by["one_pass_own"], by["one_pass_green"]) == (1.0, 0.5)
    assert result.document.systems[0].own.mean_difference == pytest.approx(0.5)


def test_unreadable_answers_are_in_no_number(monkeypatch):
    """They are counted in the signature and in the documents."""
    tell(monkeypatch, {CANDIDATES["a"]: "no", CANDIDATES["b"]: errors()})
    result = judge_pairs(REFERENCES, CANDIDATES, "one_pass", "told")
    assert "unparsed:1" in result.signature and result.signature.endswith("n:3")
    assert "one_pass@v1:" in result.signature and "empty:1" in result.signature
    frame = result.pairs.set_index("id")
    assert frame.loc["a", "status"] == "unparsed"
    assert np.isnan(frame.loc["a", "one_pass_green"])
    assert frame.loc["b", "one_pass_green"] == 1
    shown = re.findall("<th>(.*?)</th>", result._repr_html_())
    assert shown == list(result.table.drop(columns="signature"))


def test_errors_that_were_not_weighed_are_not_called_none(monkeypatch, workspace):
    """A judge that says nothing of significance has no column of insignificant ones."""
    tell(monkeypatch, dict.fromkeys(CANDIDATES.values(), PLAIN))
    made = call(
        workspace, "prompt", "new", "plain", "--contract", "error_list_unweighted"
    )
    assert made.exit_code == 0, made.output
    document = judge_pairs(
        REFERENCES, CANDIDATES, "plain", "told", workspace=workspace
    ).document
    (system,) = document.systems
    assert system.total("omission", significant=True) == 4
    assert system.total("omission", significant=False) is None
    assert judge_data(document)["systems"][0]["errors"]["omission"] == {
        "significant": 4,
        "insignificant": None,
    }
    page = render_files(document)["judge.md"].decode()
    assert "| omission | 4 | – |" in page
    judged = judged_texts(
        [document], REFERENCES, {system.system: CANDIDATES}, score="plain_errors"
    )
    assert judged.counts[..., 1].max() == 0


def test_the_published_parser_reads_the_same_answers(monkeypatch, workspace):
    """Side by side, without asking anybody again: it sees none of the two errors."""
    asked = tell(monkeypatch, dict.fromkeys(CANDIDATES.values(), TEXT))
    said = ask("told", "green_text", workspace)
    theirs = ask("told", "green_text", workspace, parser=ParserMode.OFFICIAL)
    assert len(asked) == 4 and theirs.cached == 4
    assert said.counts.triples[0].tolist() == [3, 2, 0]
    assert theirs.counts.triples[0].tolist() == [3, 0, 0]
    with pytest.raises(DataError, match="reads the four sections of green_text only"):
        Judge.open(None, "green", parser=ParserMode.OFFICIAL)


def test_an_extractor_is_no_judge():
    """And a judge that does not exist is refused by name."""
    with pytest.raises(DataError, match="judges no pairs"):
        Judge.open(None, "extractor@v11")
    with pytest.raises(DataError, match="no prompt"):
        Judge.open(None, "gren")


def test_documents_hold_no_text_of_a_case(monkeypatch):
    """What a judge writes quotes the reports."""
    wrong = errors(("omission", True)).replace("error 0", "zebra seen")
    tell(monkeypatch, dict.fromkeys(CANDIDATES.values(), wrong))
    references = {name: f"{text} zebra" for name, text in REFERENCES.items()}
    result = judge_pairs(
        references,
        CANDIDATES,
        "one_pass",
        "told",
        options=JudgeOptions(empty=Empty.ZERO, weights=(1, 3, 0)),
    )
    files = render_files(result.document)
    assert b"zebra" not in b"".join(files.values())
    assert b"form_1_3_0" in files["per_pair.csv"]
    assert judge_data(result.document)["judge"]["empty"] == "0"


def test_labels_are_no_texts():
    """A judge compares words."""
    rows = pd.DataFrame({"edema": ["present", "absent"]}, index=["a", "b"])
    with pytest.raises(DataError, match="a judge compares texts"):
        judge_pairs(rows, {"s": rows})


def test_the_spread_of_scores_is_in_the_documents(monkeypatch, workspace):
    """Two candidates without an error, two with one: halves, and no text."""
    answers = {text: errors() for text in CANDIDATES.values()}
    answers[CANDIDATES["a"]] = answers[CANDIDATES["b"]] = errors(("omission", True))
    tell(monkeypatch, answers)
    document = judge_pairs(
        REFERENCES, CANDIDATES, "one_pass", "told", workspace=workspace
    ).document
    page = render_files(document)["judge.md"].decode()
    assert "GREEN of one\\_pass@v1" in page
    assert "0.5-0.6: 50.0 % (2), 0.9-1: 50.0 % (2)" in page
    scores = {one["metric"]: one for one in judge_data(document)["scores"]}
    counted = scores["one_pass_errors"]["spread"]
    assert sum(one["n"] for one in counted) == 4
    assert sum(one["share"] for one in counted) == 1


SAID = {
    "A 1.": errors(("omission", True), ("location", False), matched=2),
    "B 1.": "I cannot say.",
    "C 1.": errors(matched=0, rules_score=0.5),
    "A 2.": Completion("", "error", "lost"),
    "B 2.": errors(("omission", True), ("omission", True)),
    "C 2.": errors(("location", False), matched=3),
}
"""What a judge says of candidates of two systems."""


@pytest.fixture
def told_result(monkeypatch):
    """Return what is said of two systems."""
    tell(monkeypatch, SAID)
    references = {"a": "Edema.", "b": "Mass.", "c": "Normal."}
    systems = {
        name: {case: f"{case.upper()} {number}." for case in references}
        for name, number in (("one", 1), ("two", 2))
    }
    return judge_pairs(references, systems, "one_pass", "told")


def test_the_data_say_of_each_system_how_its_pairs_ended(told_result):
    """And how many errors of each category the readable answers count."""
    document = told_result.document
    data = judge_data(document)
    facts = document.facts
    none = {"significant": 0, "insignificant": 0}

    def system(name, ends, own, found):
        keys = ("pairs", "answered", "unparsed", "engine_failed", "not_asked", "asked")
        place = ["one", "two"].index(name)
        return {
            "system": name,
            **dict(zip(keys, ends, strict=True)),
            "cached": 0,
            "own_against_counts": own,
            "errors": {one: found.get(one, none) for one in document.categories},
            "problems": [
                {"text": one.text, "pairs": 1}
                for one in document.systems[place].answers.problems
            ],
        }

    apart = {"pairs": 1, "mean_difference": 0.5, "largest": 0.5}
    alone = {"pairs": 0, "mean_difference": None, "largest": None}
    wrong = {"significant": 1, "insignificant": 0}
    slight = {"significant": 0, "insignificant": 1}
    assert data.pop("systems") == [
        system("one", (3, 2, 1, 0, 0, 3), {"form": "green", **apart},
               {"omission": wrong, "location": slight}),
        system("two", (3, 2, 0, 1, 0, 3), {"form": "green", **alone},
               {"omission": {**wrong, "significant": 2}, "location": slight}),
    ]  # fmt: skip
    assert [len(one.answers.problems) for one in document.systems] == [1, 1]
    results = document.sheet.results
    assert data.pop("scores") == [
        {
            "metric": one.metric.name,
            "title": f"{find_score(one.metric.name[9:]).title} of one_pass@v1",
            "direction": "lower" if one.metric.name.endswith("errors") else "higher",
            "system": one.system,
            "value": one.estimate.value,
            "low": one.estimate.low,
            "high": one.estimate.high,
            "n": one.n,
            "undefined": 3 - one.n,
            "signature": one.signature,
            "spread": bins_data(
                score_bins(one.per_case, 0, None if "errors" in one.metric.name else 1)
            ),
        }
        for one in results
    ]
    values = {
        (one.system, one.metric.name[9:]): (one.estimate.value, one.n)
        for one in results
    }
    assert values == {
        ("one", "green"): (pytest.approx(5 / 6), 2),
        ("two", "green"): (pytest.approx((1 / 3 + 1) / 2), 2),
        ("one", "green_f1"): (pytest.approx((4 / 5 + 1) / 2), 2),
        ("two", "green_f1"): (pytest.approx((1 / 2 + 1) / 2), 2),
        ("one", "formula"): (pytest.approx((2 / 4.5 + 1) / 2), 2),
        ("two", "formula"): (pytest.approx((1 / 5 + 3 / 3.5) / 2), 2),
        ("one", "errors"): (0.5, 2),
        ("two", "errors"): (1.0, 2),
        ("one", "own"): (0.5, 1),
    }
    assert data == {
        "format": 1,
        "ranloop": __version__,
        "judge": {
            "prompt": "one_pass@v1",
            "digest": facts.digest,
            "contract": "error_list",
            "engine": "told",
            "identity": facts.identity,
            "parser": "tolerant",
            "empty": "1",
        },
        "sources": document.sources._asdict(),
        "resampled": "references",
        "confidence": 0.95,
        "official": [],
        "unavailable": [
            {"metric": "one_pass_own", "reason": "the judge gives itself no score"}
        ],
    }
    assert facts.sign == (
        f"one_pass@v1:{facts.digest[:8]}", f"told:{facts.identity[:8]}",
        "parser:tolerant",
    )  # fmt: skip
    first = results[0]
    assert first.signature == "|".join(
        (
            *("one_pass_green", *facts.sign, "empty:1", "unparsed:1", "mean:pairs"),
            "n:2",
        )
    )


def test_the_notes_of_systems_say_what_is_in_no_number(told_result):
    """Of each system its own, and none twice."""
    document = told_result.document
    one, two = (each.answers.problems[0].text for each in document.systems)
    assert notes(document) == [
        "one: of 3 pairs 1 have an unreadable answer, 0 have none, and 0 were not "
        "asked about; they are in no number.",
        f"one: {one} (1 pair)",
        "one: own score of one_pass@v1 is not defined for 1 answered pair, "
        "left out of it.",
        "one: the judge's own score and GREEN of its counts differ by 0.500 on "
        "average, by 0.500 at most (1 pair).",
        "two: of 3 pairs 0 have an unreadable answer, 1 have none, and 0 were not "
        "asked about; they are in no number.",
        f"two: {two} (1 pair)",
        *(f"{each.metric}: {each.reason}" for each in document.sheet.unavailable),
        *document.sources.notes,
    ]


def test_counts_are_a_row_for_each_pair(told_result):
    """Empty where nothing is known, and a column of each weight and category."""
    document = told_result.document
    header, *rows = csv.reader(
        io.StringIO(render_files(document)["counts.csv"].decode())
    )
    names = document.categories
    assert header == [
        *("id", "system", "status", "matched"),
        *(f"significant.{name}" for name in names),
        *(f"insignificant.{name}" for name in names),
    ]
    table = [dict(zip(header, row, strict=True)) for row in rows]
    assert [(one["id"], one["system"], one["status"]) for one in table] == [
        ("a", "one", "answered"), ("b", "one", "unparsed"), ("c", "one", "answered"),
        ("a", "two", "engine_failed"), ("b", "two", "answered"),
        ("c", "two", "answered"),
    ]  # fmt: skip
    counted = [{k: v for k, v in list(one.items())[3:] if v not in ("", "0")}
               for one in table]  # fmt: skip
    assert counted == [
        {"matched": "2", "significant.omission": "1", "insignificant.location": "1"},
        {},
        {},
        {},
        {"matched": "1", "significant.omission": "2"},
        {"matched": "3", "insignificant.location": "1"},
    ]
    silent = [one for one in table if one["status"] != "answered"]
    assert {one["significant.omission"] for one in silent} == {""}
    frame = told_result.pairs
    assert frame["status"].tolist() == [one["status"] for one in table]
    assert frame["system"].tolist() == ["one"] * 3 + ["two"] * 3
    na = np.nan
    for name, wanted in (
        ("matched", [2, na, 0, na, 1, 3]),
        ("insignificant.location", [1, na, 0, na, 0, 1]),
        ("one_pass_green", [2 / 3, na, 1, na, 1 / 3, 1]),
    ):
        np.testing.assert_allclose(frame[name], wanted)
    results = document.sheet.results
    assert told_result.table.to_dict("records")[0] == {
        "system": "one",
        "score": "one_pass_green",
        "value": results[0].estimate.value,
        "low": results[0].estimate.low,
        "high": results[0].estimate.high,
        "direction": "higher",
        "n": 2,
        "signature": results[0].signature,
    }
    assert len(told_result.table) == len(results)
    assert told_result.signature == results[0].signature
    lines = score_lines(document)
    assert [(one.title, one.way) for one in lines[:4:3]] == [
        ("GREEN of one_pass@v1", "higher is better"),
        ("GREEN-EC of one_pass@v1", "lower is better"),
    ]
    assert [one.system for one in lines[0].results] == ["one", "two"]
    own = next(one for one in lines if one.title.startswith("own"))
    assert own.results[1] is None and own.official == ()
