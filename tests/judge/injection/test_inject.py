"""What is drawn and counted: exact, alike everywhere, and told apart by the judge."""

import json
import re
import subprocess
import sys
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest

from loop.core.errors import DataError
from loop.core.paths import bundled
from loop.engines.rules.judging import GreenCategory, judge_answer
from loop.judge import InjectionOptions, inject_errors
from loop.judge.injection.chance import Chance
from loop.judge.injection.harmless import HarmlessKind
from loop.judge.injection.inject import (
    EMPTY,
    FEW_PLACES,
    FOREIGN,
    NO_PLACE,
    NO_WORSE,
    SILENT,
    TOO_LONG,
    _open_reader,
    inject_by_model,
)
from loop.judge.injection.injection_bank import read_bank
from loop.judge.injection.injection_files import read_injection_file
from loop.judge.injection.report_lines import read_findings
from loop.judge.injection.text_changes import apply_changes
from loop.prompts.outputs.report_changes import REWRITING

REPORTS = {
    "a": (
        "The heart is mildly enlarged. There is a small left pleural effusion. No "
        "pneumothorax. New right upper lobe consolidation. Bony structures are intact."
    ),
    "b": (
        "Clear lungs. Heart size is normal. There is a 12 mm nodule in the right upper "
        "lobe. No pleural effusion or pneumothorax."
    ),
    "c": "1. Severe pulmonary edema. 2. Moderate right effusion. 3. No pneumothorax.",
}
ALL = InjectionOptions(numbers=(1, 2, 3), harmless=True)


@pytest.fixture(scope="module")
def made():
    """Make all kinds of variants of the reports."""
    return inject_errors(REPORTS, ALL)


def test_changes_give_the_candidate_and_are_as_many_as_said(made):
    """From what is told of them alone."""
    assert len(made.pairs) > 30
    for one in made.pairs:
        assert one.reference == REPORTS[one.reference_id]
        assert apply_changes(one.reference, one.changes) == one.candidate
        assert {each.error for each in one.changes} == set(range(1, one.number + 1))
        assert {each.kind for each in one.changes} == {one.kind}
        assert one.significant is (one.kind in list(GreenCategory))
    assert len({one.id for one in made.pairs}) == len(made.pairs)


def test_every_kind_occurs(made):
    """All six, and all five."""
    found = {one.kind for one in made.pairs}
    assert found == {*map(str, GreenCategory), *map(str, HarmlessKind)}


def test_more_errors_are_those_before_and_another(made):
    """So that a score can be asked not to rise."""
    by = {(one.reference_id, one.kind, one.number): one for one in made.pairs}
    for (case, kind, number), one in by.items():
        if number > 1:
            before = by[case, kind, number - 1]
            kept = [each for each in one.changes if each.error < number]
            places = [(each.start, each.after) for each in before.changes]
            assert [(each.start, each.after) for each in kept] == places


def test_harmless_variants_read_the_same(made):
    """All findings, with all that is said of them."""
    reader = _open_reader().reader
    for one in made.pairs:
        if not one.significant:
            wanted = read_findings(reader, one.reference)
            assert read_findings(reader, one.candidate) == wanted


def test_the_order_of_the_cases_changes_nothing(made):
    """Nor does what else there is."""
    other = inject_errors(dict(reversed(REPORTS.items())), ALL)
    assert {one.id: one for one in other.pairs} == {one.id: one for one in made.pairs}
    assert [one for one in made.pairs if one.reference_id == "b"] == list(
        inject_errors({"b": REPORTS["b"]}, ALL).pairs
    )


def test_another_seed_draws_others(made):
    """Somewhere."""
    options = InjectionOptions(numbers=(1, 2, 3), harmless=True, seed=1)
    other = inject_errors(REPORTS, options)
    assert {one.candidate for one in other.pairs} != {
        one.candidate for one in made.pairs
    }


@pytest.mark.slow
def test_another_process_draws_the_same(made):
    """Whatever order its sets have."""
    code = (
        "import json, sys; from loop.judge import InjectionOptions, inject_errors; "
        "made = inject_errors(json.load(sys.stdin), "
        "InjectionOptions(numbers=(1, 2, 3), harmless=True)); "
        "print(json.dumps([[one.id, one.candidate] for one in made.pairs]))"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(REPORTS),
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(bundled())},
        )
        assert json.loads(done.stdout) == [[o.id, o.candidate] for o in made.pairs]


def test_a_severity_may_be_further_off():
    """At the same place and in the same direction; the others stay as they are."""
    both = inject_errors(REPORTS, InjectionOptions(errors="cd", severities=(1, 2)))
    worse = {one.id: one for one in both.pairs if one.severity == 2}
    assert {name: one.changes[0].after for name, one in worse.items()} == {
        "a-d1s2": "massively",
        "b-d1s2": "72 mm",
    }
    assert {one.number for one in worse.values()} == {1}
    plain = inject_errors(REPORTS, InjectionOptions(errors="cd"))
    assert [one for one in both.pairs if one.severity == 1] == list(plain.pairs)
    places = {f"{one.id}s2": one.changes[0].start for one in plain.pairs}
    for name, one in worse.items():
        assert one.changes[0].start == places[name]
    told = {(one.kind, one.reason): one.variants for one in both.left_out}
    # Of the third report another severity is written for "moderate", and none beyond.
    assert told["severity", NO_WORSE] == 1


def test_at_most_so_many_are_drawn(made):
    """Of each kind and number, and always the same ones."""
    options = InjectionOptions(numbers=(1, 2, 3), harmless=True, most=1)
    drawn = inject_errors(REPORTS, options)
    assert set(Counter((o.kind, o.number) for o in drawn.pairs).values()) == {1}
    assert {one.id for one in drawn.pairs} <= {one.id for one in made.pairs}


def test_severities_are_drawn_of_the_same_reports():
    """Else hardly a report would have both, and no step could be counted."""
    reports = {f"r{n}": REPORTS["a"] for n in range(40)}
    options = {"errors": "d", "most": 5}
    drawn = inject_errors(reports, InjectionOptions(severities=(1, 2), **options))
    cases = {
        level: {one.reference_id for one in drawn.pairs if one.severity == level}
        for level in (1, 2)
    }
    assert len(cases[1]) == 5 and cases[1] == cases[2]
    plain = inject_errors(reports, InjectionOptions(**options))
    assert cases[1] == {one.reference_id for one in plain.pairs}


def test_what_cannot_be_used_is_counted():
    """Nothing is dropped in silence."""
    texts = {
        "empty": " .. ",
        "missing": None,
        "foreign": "Kein Pleuraerguss und keine Stauung, das Herz ist nicht groß.",
        "silent": "INDICATION: Cough and fever.",
        "endless": "Small left pleural effusion. " * 40_000,
        "fine": "Small left pleural effusion.",
    }
    found = inject_errors(texts, InjectionOptions(errors="cf"))
    assert found.unused == {EMPTY: 2, FOREIGN: 1, SILENT: 1, TOO_LONG: 1}
    assert [one.id for one in found.pairs] == ["fine-c1"]
    assert [(o.kind, o.reason, o.variants) for o in found.left_out] == [
        ("omitted_change", FEW_PLACES, 1)
    ]


@pytest.mark.slow
def test_a_long_report_takes_no_longer_than_many_short_ones():
    """Places are bounded; 49,000 characters are within what is read."""
    text = "Small left pleural effusion at 3 cm. The heart is enlarged. " * 800
    found = inject_errors({"a": text}, ALL)
    assert all(one.reference == text for one in found.pairs)


def test_another_language_is_refused():
    """The bank has English words only."""
    with pytest.raises(DataError, match="no report is in the language of the bank"):
        inject_errors({"a": "双肺清晰,心影正常。"})
    with pytest.raises(DataError, match="no report is in the language"):
        inject_errors({"a": REPORTS["a"]}, languages={"a": "de"})


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"errors": "abz"}, "are not letters of abcdef"),
        ({"errors": "aa"}, "each at most once"),
        ({"errors": ""}, "nothing is to be made"),
        ({"numbers": (0,)}, "from 1 to 9"),
        ({"numbers": ()}, "and not none"),
        ({"numbers": (1, 1)}, "each once"),
        ({"numbers": (1, 10)}, "from 1 to 9, each once, and not 1, 10"),
        ({"severities": ()}, "severities are 1 and 2, each at most once"),
        ({"severities": (3,)}, "severities are 1 and 2, each at most once"),
        ({"severities": (1, 1)}, "severities are 1 and 2, each at most once"),
        ({"errors": "c", "severities": (1, 2)}, "severities are of errors d"),
        ({"errors": "", "harmless": True, "severities": (2,)}, "are of errors d"),
        ({"most": 0}, "are none"),
        ({"seed": -1}, "below 0"),
    ],
)
def test_wrong_options_are_refused(how, said):
    """With what they may be."""
    with pytest.raises(ValueError, match=said):
        InjectionOptions(**how)


def test_options_at_their_limits_are_taken():
    """In the order of the letters, whatever order they were given in."""
    most = InjectionOptions(
        errors="fdb", numbers=(9, 1), severities=(2,), most=1, seed=0
    )
    assert most.kinds == most.written == ("omission", "severity", "omitted_change")
    both = InjectionOptions(errors="c", severities=(1,), harmless=True)
    assert both.kinds == ("location", *map(str, HarmlessKind))
    assert both.written == ("location", REWRITING)
    assert InjectionOptions(errors="", harmless=True).kinds == (
        *map(str, HarmlessKind),
    )


@pytest.mark.parametrize(
    "how", [{"negated": True}, {"reread": False}, {"severities": (1, 2)}]
)
def test_a_model_is_not_asked_for_what_only_code_can_make(how):
    """Refused before anything is written."""
    with pytest.raises(ValueError, match="are for injection without a model"):
        inject_by_model({"a": "Clear."}, None, InjectionOptions(**how))


def test_a_report_without_a_place_is_counted_as_one():
    """It was read, and what was wanted of it is told by kind."""
    texts = {"a": "Normal heart.", "b": "Small left pleural effusion.", "c": ""}
    found = inject_errors(texts, InjectionOptions(errors="cf", numbers=(1, 2)))
    assert found.unused == {EMPTY: 1, NO_PLACE: 1}
    assert (found.cases, [one.id for one in found.pairs]) == (3, ["b-c1"])
    assert found.left_out == (
        ("location", 1, FEW_PLACES, 1),
        ("location", 2, FEW_PLACES, 2),
        ("omitted_change", 1, FEW_PLACES, 2),
        ("omitted_change", 2, FEW_PLACES, 2),
    )
    assert (found.tried, found.read_otherwise) == ({"location": 1}, {})
    assert found.kinds == ("location", "omitted_change")


def test_chance_is_even_and_weight_is_a_number_of_draws():
    """One of three is drawn in a third; three draws come before one in 3 of 4."""
    chance = Chance("0", "a")
    names = [f"n{number}" for number in range(4000)]
    drawn = Counter(chance.choose(name, 3) for name in names)
    assert [*sorted(drawn)] == [0, 1, 2]
    assert all(abs(count / 4000 - 1 / 3) < 0.03 for count in drawn.values())
    for weight, share in ((1, 1 / 2), (3, 3 / 4), (8, 8 / 9)):
        won = sum(
            chance.rank(f"x{name}", weight) < chance.rank(f"y{name}") for name in names
        )
        assert abs(won / 4000 - share) < 0.03
    others = [Chance(*one).rank("x") for one in (("0", "a"), ("0", "b"), ("0a",))]
    assert len({*others}) == 3


def test_a_modality_without_a_bank_is_refused():
    """The shipped bank has chest X-rays."""
    with pytest.raises(DataError, match=r"no modality 'mr', only chest_xray"):
        inject_errors(REPORTS, InjectionOptions(modality="mr"))


def test_a_bank_of_ones_own_is_used(tmp_path):
    """Other modalities have other false findings."""
    path = tmp_path / "bank.yaml"
    shipped = (bundled() / "labels" / "injection.yaml").read_text("utf-8")
    path.write_text(
        shipped.replace(
            "modalities:\n",
            "modalities:\n  chest_ct:\n    false_findings:\n"
            "      - {is: [pulmonary_embolism], contradicts: [], "
            'sentence: "There is a saddle embolus."}\n',
        ),
        encoding="utf-8",
    )
    options = InjectionOptions(errors="a", modality="chest_ct")
    found = inject_errors({"a": "The lungs are clear."}, options, bank=path)
    assert [one.candidate for one in found.pairs] == [
        "The lungs are clear. There is a saddle embolus."
    ]
    assert found.bank_digest != read_bank().sha256
    path.write_text("version: 1\n", encoding="utf-8")
    with pytest.raises(DataError, match="families"):
        read_bank(path)
    with pytest.raises(DataError, match=r"like the shipped labels/injection.yaml"):
        read_bank(tmp_path / "none.yaml")


def test_a_notebook_gets_a_table_and_no_text_by_accident():
    """From a Series to a DataFrame; what is shown are counts."""
    found = inject_errors(pd.Series(REPORTS), InjectionOptions(errors="c"))
    assert list(found.table.columns) == [
        *("id", "reference_id", "reference", "candidate"),
        *("kind", "significant", "number", "severity"),
    ]
    shown = found._repr_html_() + repr(found) + repr(found.pairs)
    assert "effusion" not in shown
    assert re.findall("<td>(.*?)</td>", found._repr_html_()) == ["location", "1", "3"]
    with pytest.raises(DataError, match="ids that another report has: 1 of 2 reports"):
        inject_errors(pd.Series(["Clear.", "Clear."], index=["a", "a"]))


@pytest.fixture(scope="module")
def openi(data_folder):
    """Make variants of the Open-i test reports."""
    source = read_injection_file(data_folder / "openi" / "reports_test.csv", None)
    return inject_errors(source.texts, ALL, languages=source.languages)


@pytest.mark.data
@pytest.mark.slow
def test_openi_gives_enough_variants(openi):
    """At least 600 with errors and 600 harmless, of every kind."""
    counts = Counter(one.significant for one in openi.pairs)
    assert counts[True] >= 600
    assert counts[False] >= 600
    found = Counter(one.kind for one in openi.pairs)
    assert found.keys() == {*map(str, GreenCategory), *map(str, HarmlessKind)}
    assert all(
        apply_changes(o.reference, o.changes) == o.candidate for o in openi.pairs
    )


@pytest.mark.data
@pytest.mark.slow
def test_the_embedded_judge_tells_errors_from_rewriting_on_openi(openi):
    """By each kind: the area under the curve, and scores of what is harmless.

    What is harmless reads the same by construction, so that its scores say nothing of
    the judge; `read_otherwise` does.
    """
    reader = _open_reader().reader
    scores = defaultdict(list)
    for one in openi.pairs:
        said = judge_answer(reader, one.reference, one.candidate)
        scores[one.kind if one.significant else "harmless"].append(said.score)
    harmless = np.sort(scores.pop("harmless"))
    assert np.mean(harmless >= 0.98) >= 0.9
    for kind, found in scores.items():
        above = len(harmless) - np.searchsorted(harmless, found, "right")
        ties = np.searchsorted(harmless, found, "right") - np.searchsorted(
            harmless, found
        )
        auc = float(np.mean(above + ties / 2) / len(harmless))
        assert auc >= (0.95 if kind in list(GreenCategory)[:3] else 0.85), kind


def test_bank_and_judge_share_no_file():
    """The bank is read by injection only, and says so."""
    said = (bundled() / "labels" / "injection.yaml").read_text("utf-8")
    assert "shares no file with the embedded judge" in " ".join(
        line.lstrip("# ") for line in said.splitlines()[:8]
    )
    rules = bundled() / "loop" / "engines" / "rules"
    assert not any("injection" in one.read_text("utf-8") for one in rules.glob("*.py"))
