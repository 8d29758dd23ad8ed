"""Two systems compared by a judge in both orders, and rubrics of one's own."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from loop import __version__
from loop.cli.main import app
from loop.core.errors import DataError, OverlapError
from loop.core.paths import bundled
from loop.core.records import Completion
from loop.engines import base
from loop.judge.judge import Judge, find_judge
from loop.judge.pairwise import (
    compare_pairwise,
    pairwise_data,
    pairwise_notes,
    pairwise_rows,
)
from loop.judge.rubric import read_rubric, with_rubric
from loop.judge.shots import add_shots, request_shots
from loop.labels.shot_pool import SYNTHETIC, read_pool
from loop.labels.taxonomy import read_taxonomy
from loop.score.joining import join_texts
from tests.judge.scenes import table

REFERENCES = {name: f"Small left effusion {name}." for name in "abcde"}
RUBRIC = """\
name: Brevity
criterion: How short {{ 7 * 7 }} the candidate is.
descriptions:
  1: far too long
  2: too long
  3: neither
  4: short
  5: as short as it can be {% raw %}
"""


SHOTS = ("--shots", "random:3")


class Choosing:
    """Prefers the candidate that holds a word; else the one named by `first`."""

    def __init__(self, asked):
        self.asked = asked

    def identity(self):
        """Return the one model there is."""
        return {"engine": "choosing"}

    def complete(self, prompts):
        """Yield the answers in order."""
        for index, prompt in enumerate(prompts):
            texts = prompt.item.variables
            self.asked.append(prompt)
            good = [s for s in "AB" if "good" in texts[f"candidate_{s.lower()}"]]
            side = good[0] if len(good) == 1 else "A"
            if "unsure" in texts["candidate_a"]:
                side = "C"
            yield index, Completion(json.dumps({"feedback": "So.", "preference": side}))


@pytest.fixture
def asked(monkeypatch):
    """Register the engine ``choosing``, and return the prompts that it is asked."""
    found = []
    monkeypatch.setitem(base._FACTORIES, "choosing", lambda *_: Choosing(found))
    return found


def compared(ours, theirs, engine="choosing"):
    """Return what the shipped judge says of two systems."""
    joined = join_texts(
        REFERENCES,
        {"ours": ours, "theirs": theirs},
        read_taxonomy(bundled() / "labels"),
    )
    return compare_pairwise(joined, None, find_judge(None, "rating_pairwise"), engine)


def test_a_case_is_decided_where_both_orders_agree(asked):
    """Each is asked twice; what is preferred for its place is counted apart."""
    ours = {"a": "good", "b": "good x", "c": "bad", "d": "same", "e": "unsure"}
    theirs = {"a": "bad", "b": "bad x", "c": "good", "d": "same", "e": "bad"}
    found = compared(ours, theirs)
    assert len(asked) == 9, "d is the same prompt in both orders"
    assert found.preferred[3] == ("ours", "theirs")
    assert (found.wins("ours"), found.wins("theirs")) == (2, 1)
    assert (found.changed, found.changed_to_first, found.unanswered) == (1, 1, 1)
    share = found.share
    assert share.value == pytest.approx(2 / 3)
    assert (share.low, share.high) == pytest.approx((0.0943, 0.9916), abs=1e-4)
    assert json.loads(json.dumps(pairwise_data(found))) == {
        "format": 1,
        "ranloop": __version__,
        "judge": {
            "prompt": "rating_pairwise@v1",
            "digest": find_judge(None, "rating_pairwise").digest,
            "engine": "choosing",
            "identity": found.identity,
        },
        "systems": ["ours", "theirs"],
        "cases": 5,
        "preferred": {"ours": 2, "theirs": 1},
        "share": {
            "system": "ours",
            "value": share.value,
            "low": share.low,
            "high": share.high,
            "confidence": 0.95,
        },
        "changed_with_the_order": 1,
        "of_these_the_first": 1,
        "unanswered": 1,
        "problems": [
            {"text": one.text, "prompts": one.cases} for one in found.problems
        ],
        "by_case": [
            {"id": "a", "in_order": "ours", "turned": "ours"},
            {"id": "b", "in_order": "ours", "turned": "ours"},
            {"id": "c", "in_order": "theirs", "turned": "theirs"},
            {"id": "d", "in_order": "ours", "turned": "theirs"},
            {"id": "e", "in_order": None, "turned": "theirs"},
        ],
    }
    (problem,) = found.problems
    assert pairwise_notes(found) == [f"{problem.text} (1 prompt)"]
    turned = replace(
        found, preferred=(("theirs", "ours"), ("ours", "theirs"), ("ours", ""))
    )
    for one, values in (
        (found, (5, 2, 1, 1, 1, 0, 1)),
        (turned, (5, 0, 0, 2, 1, 1, 1)),
    ):
        assert pairwise_rows(one) == [
            ("cases", str(values[0])),
            ("ours preferred in both orders", str(values[1])),
            ("theirs preferred in both orders", str(values[2])),
            ("changed with the order", str(values[3])),
            ("of these, whichever was first", str(values[4])),
            ("of these, whichever was second", str(values[5])),
            ("without a readable answer", str(values[6])),
        ]


def test_a_judge_that_looks_at_places_only_decides_nothing(asked):
    """Its share is not one half: there is none."""
    found = compared(dict.fromkeys("abc", "x"), dict.fromkeys("abc", "y"))
    assert found.changed == found.changed_to_first == 3
    assert found.share.value is None and "no case is decided" in found.share.note


def test_only_cases_that_both_have_are_compared(asked):
    """One that one of them lacks would be decided by what is missing."""
    assert compared({"a": "good", "b": "x"}, {"a": "y"}).case_ids == ("a",)
    part = compared({"b": "x", "a": "good"}, {"c": "good", "b": "good"})
    assert (part.case_ids, part.preferred) == (("b",), (("theirs", "theirs"),))
    with pytest.raises(DataError, match="no case has candidates of both"):
        compared({"a": "good"}, {"b": "y"})


def test_rules_compares_nothing_and_says_so():
    """Its score is no rubric's."""
    found = compared({"a": "x"}, {"a": "y"}, "rules")
    assert found.unanswered == 1
    assert "the contract of this version asks for something else" in (
        found.problems[0].text
    )


@pytest.mark.parametrize(
    ("judge", "systems", "message"),
    [
        ("green", 2, "green@v1 does not compare two candidates"),
        ("rating_pairwise", 1, "compares two systems, but 1 were given"),
        ("rating_pairwise", 3, "compares two systems, but 3 were given"),
    ],
)
def test_what_cannot_be_compared_is_refused(judge, systems, message):
    """Before anything is asked."""
    names = {f"s{n}": {"a": "x"} for n in range(systems)}
    joined = join_texts(REFERENCES, names, read_taxonomy(bundled() / "labels"))
    with pytest.raises(DataError, match=message):
        compare_pairwise(joined, None, find_judge(None, judge))
    with pytest.raises(DataError, match="and not a reference with one candidate"):
        Judge.open(None, "rating_pairwise")


@pytest.mark.parametrize("side", ["reference", 0, 1])
def test_labels_are_no_texts_to_compare(asked, side):
    """On either of the three sides; nothing is asked."""
    taxonomy = read_taxonomy(bundled() / "labels")
    joined = join_texts(REFERENCES, {"x": REFERENCES, "y": REFERENCES}, taxonomy)
    if side == "reference":
        joined = replace(joined, reference=replace(joined.reference, texts=None))
    else:
        systems = list(joined.systems)
        systems[side] = replace(systems[side], texts=None)
        joined = replace(joined, systems=tuple(systems))
    with pytest.raises(DataError, match="compares texts, but labels were given"):
        compare_pairwise(joined, None, find_judge(None, "rating_pairwise"), "choosing")
    assert asked == []


def test_the_verb_compares_two_files(asked, tmp_path, monkeypatch):
    """With both orders in words, and the share with its limits."""
    monkeypatch.chdir(tmp_path)
    for name, word in (("ref", "Effusion"), ("one", "good"), ("two", "bad")):
        table(
            tmp_path / f"{name}.csv", ("id", "text"), [("a", f"{word}."), ("b", word)]
        )
    arguments = ["judge", "rating_pairwise", "A=one.csv", "B=two.csv", "-r", "ref.csv"]
    done = CliRunner().invoke(app, [*arguments, "-e", "choosing"])
    assert done.exit_code == 0, done.output
    assert "A preferred in both orders" in done.stdout
    assert "A preferred in 1.000 [0.158, 1.000] of the decided cases" in done.stdout
    refused = CliRunner().invoke(app, [*arguments, "--out", "x"])
    assert refused.exit_code == 2 and "scores no pair" in refused.output
    asked.clear()
    shown = CliRunner().invoke(app, [*arguments, "-e", "choosing", *SHOTS])
    assert shown.exit_code == 0, shown.output
    assert "note: Examples in the prompt: 3 of pool synthetic" in shown.stdout
    texts = [one.frame.messages[1].content for one in asked]
    assert texts and all(one.count("overall score, from 1 to 5:") == 3 for one in texts)


def test_where_nothing_is_decided_the_verb_says_so(asked, tmp_path, monkeypatch):
    """A share of no case is no number."""
    monkeypatch.chdir(tmp_path)
    for name in ("ref", "one", "two"):
        table(tmp_path / f"{name}.csv", ("id", "text"), [("a", name), ("b", name)])
    arguments = ["judge", "rating_pairwise", "A=one.csv", "B=two.csv", "-r", "ref.csv"]
    done = CliRunner().invoke(app, [*arguments, "-e", "choosing"])
    assert done.exit_code == 0, done.output
    assert "no case is decided" in done.stdout and "preferred in –" not in done.stdout


@pytest.mark.parametrize(
    ("engine", "cases", "lines", "code"),
    [
        (
            "choosing",
            {"a": "good", "b": "unsure", "c": "bad"},
            (
                *("cases 3", "ours preferred in both orders 1"),
                *("theirs preferred in both orders 0", "changed with the order 1"),
                "of these, whichever was first 1",
                "of these, whichever was second 0",
                "without a readable answer 1",
                "ours preferred in 1.000 [0.025, 1.000] of the decided cases (exact "
                "95 % limits, over cases)",
                "note: preference: it is neither A nor B (1 prompt)",
            ),
            0,
        ),
        (
            "choosing",
            {"b": "unsure"},
            (
                *("cases 1", "ours preferred in both orders 0"),
                *("theirs preferred in both orders 0", "changed with the order 0"),
                "of these, whichever was first 0",
                "of these, whichever was second 0",
                "without a readable answer 1",
                "not estimable: no case is decided",
                "note: preference: it is neither A nor B (1 prompt)",
            ),
            1,
        ),
    ],
)
def test_the_verb_tells_of_every_case_and_fails_where_none_was_compared(
    asked, tmp_path, monkeypatch, engine, cases, lines, code
):
    """A script reads the exit code: an answer about one case of three is a result."""
    monkeypatch.chdir(tmp_path)
    for name, texts in (
        ("ref", {case: f"Effusion {case}." for case in cases}),
        ("ours", cases),
        ("theirs", {case: f"bad {case}" for case in cases}),
    ):
        table(tmp_path / f"{name}.csv", ("id", "text"), texts.items())
    systems = ("ours=ours.csv", "theirs=theirs.csv", "-r", "ref.csv")
    done = CliRunner().invoke(app, ["judge", "rating_pairwise", *systems, "-e", engine])
    said = [" ".join(line.split()) for line in done.stdout.splitlines() if line]
    assert said == [
        f"rating_pairwise@v1 with {engine}, each case in both orders",
        *("answers n", "------------------------------- -"),
        *lines,
    ]
    assert done.exit_code == code
    assert ("no case was compared" in done.stderr) is bool(code)


def test_a_rubric_is_data(asked, tmp_path, monkeypatch):
    """Jinja in it reaches the model as it is written, and runs nowhere."""
    path = tmp_path / "rubric.yaml"
    path.write_text(RUBRIC)
    shipped = find_judge(None, "rating_pairwise")
    version = with_rubric(shipped, read_rubric(path))
    assert version.digest != shipped.digest
    joined = join_texts(
        {"a": "Effusion."},
        {"x": {"a": "good"}, "y": {"a": "bad"}},
        read_taxonomy(bundled() / "labels"),
    )
    found = compare_pairwise(joined, None, version, "choosing")
    assert found.digest == version.digest
    prompt = asked[0].messages[1].content
    assert "## Brevity\nHow short {{ 7 * 7 }} the candidate is.\n- 5: as short as" in (
        prompt
    )
    assert "{% raw %}" in prompt and "clinician" not in prompt


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RUBRIC.replace("  3: neither\n", ""), "each of 1, 2, 3, 4 and 5 points"),
        (RUBRIC + "  6: more\n", "each of 1, 2, 3, 4 and 5 points"),
        (RUBRIC.replace("criterion", "question"), "criterion"),
        ("criterion: x\ndescriptions: none\n", "descriptions"),
        (RUBRIC.replace("neither", "''"), "descriptions"),
    ],
)
def test_a_rubric_says_what_each_number_means(tmp_path, text, message):
    """A rating without a meaning is no rating."""
    path = tmp_path / "rubric.yaml"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_rubric(path)


def test_spaces_around_words_of_a_rubric_are_not_part_of_it(tmp_path):
    """Else two rubrics that read alike would have two digests."""
    path = tmp_path / "rubric.yaml"
    path.write_text(RUBRIC.replace("name: Brevity", 'name: " Brevity "'))
    assert read_rubric(path).name == "Brevity"


def test_a_judge_without_a_rubric_takes_none(tmp_path):
    """Categories of errors are no criterion."""
    path = tmp_path / "rubric.yaml"
    path.write_text(RUBRIC)
    with pytest.raises(DataError, match="green@v1 does not rate by a rubric"):
        with_rubric(find_judge(None, "green"), read_rubric(path))


def test_a_case_of_the_shots_is_not_compared(asked):
    """What stands in the prompt as an example is refused before anything is asked."""
    version = add_shots(
        None, find_judge(None, "rating_pairwise"), request_shots("random:2")
    )
    taxonomy = read_taxonomy(bundled() / "labels")
    known = next(
        one.reference
        for one in read_pool(None, SYNTHETIC).pairs
        if one.id == version.shots.pins[0].id
    )
    seen = {"x": known, **REFERENCES}
    systems = {"ours": dict.fromkeys(seen, "good"), "theirs": dict.fromkeys(seen, "")}
    with pytest.raises(OverlapError, match="1 of the pairs to judge shares something"):
        compare_pairwise(join_texts(seen, systems, taxonomy), None, version, "choosing")
    assert not asked
    others = {name: dict.fromkeys(REFERENCES, "good") for name in systems}
    found = compare_pairwise(
        join_texts(REFERENCES, others, taxonomy), None, version, "choosing"
    )
    assert pairwise_data(found)["judge"]["shots"]["kind"] == "random"
    (told,) = pairwise_notes(found)
    assert told.startswith("Examples in the prompt: 2 of pool synthetic (random:2")
    unknown = replace(found, patients_compared=False)
    assert "share a patient with the shots" in pairwise_notes(unknown)[1]
