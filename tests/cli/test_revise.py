"""How a round of revision is printed and given as JSON: in the order it happened."""

import json
from types import SimpleNamespace

import pytest

from loop.cli import revise
from loop.core.check_findings import Finding, FindingSeverity
from loop.review.revise.copies import Copy
from loop.review.revise.revision import Revision
from tests.cli.test_check import CHECK

PARENT = SimpleNamespace(ref="extractor@v1")
DRAFT = SimpleNamespace(ref="extractor@draft")
VERSION = SimpleNamespace(ref="extractor@v2")
VERDICT = SimpleNamespace(id="a1")


def revision(**parts):
    """Return what a round did: one verdict, a draft, nothing committed."""
    plain = {
        "parent": PARENT,
        "draft": DRAFT,
        "version": None,
        "verdicts": (VERDICT,),
        "cohort": "dev",
        "reference": None,
        "corrections": 0,
    }
    return Revision(**{**plain, **parts})


def printed(capsys, *, kept=False, **parts):
    """Return the printed lines of a round."""
    revise._show(revision(**parts), kept=kept)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("parts", "lines"),
    [
        ({"draft": None}, ["no wording changed: no new version"]),
        (
            {"draft": None, "objections": ("never said",)},
            ["no wording changed: no new version"],
        ),
        ({"version": VERSION}, ["committed extractor@v2"]),
        (
            {"version": VERSION, "objections": ("one", "two")},
            ["committed extractor@v2 against objections", "  - one", "  - two"],
        ),
        ({}, ["NOT committed; kept as extractor@draft"]),
        (
            {"objections": ("one",), "kept": True},
            ["NOT committed; kept as extractor@draft", "  - one"],
        ),
        (
            {"kept": True},
            [
                "NOT committed; kept as extractor@draft",
                "  - kept as a draft because of --keep-draft; the check passed",
            ],
        ),
        ({"version": VERSION, "kept": True}, ["committed extractor@v2"]),
    ],
)
def test_how_a_round_ended_is_said_last(capsys, parts, lines):
    """With what stands against it."""
    assert printed(capsys, **parts) == ["1 verdict on extractor@v1", "", *lines]


def test_a_round_is_printed_in_the_order_in_which_it_happened(capsys):
    """Reference, lint, notes, copies, check, end."""
    lines = printed(
        capsys,
        verdicts=(VERDICT, VERDICT),
        corrections=1,
        reference=3,
        lint=(
            Finding(
                check="x", severity=FindingSeverity.WARNING, what="is long", where="a"
            ),
        ),
        notes=("one was left out",),
        copies=(Copy("edema, term 2", "dev", "c7", 6),),
        check=CHECK,
        version=VERSION,
    )
    assert lines[:6] == [
        "2 verdicts on extractor@v1",
        "reference: 1 label corrected, now dev:ref3; earlier runs can be evaluated "
        "against it",
        "warning: a: is long",
        "note: one was left out",
        "warning: edema, term 2: 6 or more consecutive words also occur in case c7 of "
        "dev; say it in your own words",
        "",
    ]
    assert lines[6].startswith("check on 1,200 cases")
    assert lines[-2:] == ["", "committed extractor@v2"]


def test_a_reference_that_was_corrected_before_is_told(capsys):
    """Nothing is written twice."""
    lines = printed(capsys, corrections=2)
    assert lines[1] == "reference: already corrected as judged"
    assert not any("reference" in line for line in printed(capsys, reference=3))


def test_a_round_as_json_names_every_part():
    """What is not there is null or empty."""
    data = json.loads(json.dumps(revise._data(revision())))
    assert data == {
        "parent": "extractor@v1",
        "draft": "extractor@draft",
        "version": None,
        "committed": False,
        "verdicts": ["a1"],
        "reference": None,
        "corrections": 0,
        "diff": None,
        "lint": [],
        "copies": [],
        "not_searched_for_copies": [],
        "notes": [],
        "check": None,
        "runs": [],
        "objections": [],
    }
    data = revise._data(
        revision(
            draft=None,
            version=VERSION,
            skipped=(("elsewhere", "dev"),),
            copies=(Copy("a", "dev", "c7", 6),),
            check=CHECK,
            runs=("r1", "r2"),
            objections=("one",),
        )
    )
    assert (data["draft"], data["version"]) == (None, "extractor@v2")
    assert data["committed"] is True
    assert data["not_searched_for_copies"] == ["elsewhere"]
    assert data["copies"] == [
        {"where": "a", "cohort": "dev", "case_id": "c7", "words": 6}
    ]
    assert (data["check"]["cases"], data["runs"]) == (1200, ["r1", "r2"])
    assert data["objections"] == ["one"]
