"""A prompt must hold no text of the holdout, and no patient be on both sides."""

import csv
import shutil
from dataclasses import replace

import pytest

from loop.core.ledger import Actor, Event, append_event
from loop.core.records import Clarification, Exemplar, Guide, Value
from loop.labels.cohort import texts_path
from loop.labels.holdout import retire_holdout
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.version import PromptVersion
from loop.release.separation import find_earlier_looks, measure_separation

ACTOR = Actor(name="Dr. Example")
LONG = (
    "The lungs are hyperinflated with coarse interstitial markings at both bases and "
    "a small effusion on the left side that has grown since the earlier film."
)
HELD = [("h1", LONG, "P1"), ("h2", "Heart size is normal.", "P2")]
DEV = [("d1", "Quite another thing was seen here today.", "P8")]


def version(*, exemplar="", phrase="", definition="Fluid."):
    """Return a version whose guide holds these wordings."""
    worked = Exemplar(text=exemplar or "-", value=Value.PRESENT, evidence="", why="")
    rule = Clarification(phrase=phrase or "-", value=Value.ABSENT, note="")
    guide = Guide(
        label="edema",
        name="Edema",
        definition=definition,
        clarifications=(rule,) if phrase else (),
        exemplars=(worked,) if exemplar else (),
    )
    return PromptVersion(
        name="tiny", number=1, system="Read.\n", user="{{ text }}\n", guides=(guide,)
    )


@pytest.fixture
def add(workspace, tmp_path):
    """Return a function that imports rows of (id, text, patient) as a cohort."""

    def run(name, role, rows, **options):
        path = tmp_path / f"{name}.csv"
        header = ["case_id", "text", "patient"][: len(rows[0])]
        with path.open("w", newline="") as stream:
            csv.writer(stream).writerows([header, *rows])
        wanted = ImportOptions(name=name, role=role, **options)
        import_cohort(workspace, path, wanted, actor=ACTOR)

    return run


@pytest.fixture
def place(workspace, add):
    """Make a workspace with a holdout and a development cohort that are separate."""
    add("held", "holdout", HELD)
    add("dev", "dev", DEV)
    return workspace


def objections(place, made, holdout):
    """Return what stands against releasing a version on a holdout."""
    return measure_separation(place, made, holdout).objections


def test_separate_cohorts_and_own_words_leave_nothing_to_object(place):
    """What was compared is said all the same."""
    found = measure_separation(place, version(exemplar="Own words."), "held")
    assert (found.objections, found.remarks) == ((), ())
    assert any("1 exemplars" in one for one in found.checked)
    assert any("those of dev" in one for one in found.checked)


@pytest.mark.parametrize(
    "exemplar",
    [
        LONG,
        LONG.upper().replace(" ", "  "),
        LONG.replace("film", "one"),
        "seen: coarse interstitial markings at both bases and more",
        "Heart size is normal!",
    ],
)
def test_an_exemplar_from_the_holdout_is_objected_to(place, exemplar):
    """Equal, in other spelling, nearly equal, a piece of it, or short and equal."""
    found = objections(place, version(exemplar=exemplar), "held")
    assert any("edema, exemplar" in one and "holdout held" in one for one in found)
    assert not any("interstitial" in one or "Heart" in one for one in found)


@pytest.mark.parametrize("where", ["phrase", "definition"])
def test_any_wording_of_six_words_counts(place, where):
    """A clarified phrase may come from a case as well as an exemplar."""
    copied = version(**{where: "a small effusion on the left side"})
    (found,) = objections(place, copied, "held")
    assert "case h1 of holdout held" in found


def test_a_template_that_quotes_a_case_is_objected_to(place):
    """Templates are wording too."""
    quoting = replace(version(), system=f"For example: {LONG}\n")
    assert any("system.jinja" in one for one in objections(place, quoting, "held"))


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (("h1", "Something else altogether here.", "P9"), "case"),
        (("d2", "Something else altogether here.", "P1"), "patient"),
        (("d2", LONG, "P9"), "text"),
        (("d2", LONG.replace("film", "one"), "P9"), "near-duplicate text"),
    ],
)
def test_what_another_role_shares_is_objected_to(place, add, row, kind):
    """A case, a patient, a text, or one that is nearly the same."""
    add("more", "external", [row])
    found = objections(place, version(), "held")
    assert [one for one in found if f"share 1 {kind}:" in one and "more" in one]


def test_unknown_patients_are_a_remark(place, add):
    """Many sources name none; the release says so."""
    add("bare", "dev", [("b1", "No patient is named for this one.")])
    found = measure_separation(place, version(), "held")
    assert found.objections == ()
    assert found.remarks == (
        "held and bare were not compared by patients: not named for every case of bare",
    )
    said = next(one for one in found.checked if "those of bare" in one)
    assert said.startswith("Cases and texts of held were compared")
    known = next(one for one in found.checked if "those of dev" in one)
    assert known.startswith("Cases, patients and texts of held were compared")


def test_cases_that_are_gone_are_told_of(place, add):
    """A holdout of nearly the same cases could take the place of a used one."""
    add("held", "holdout", [*HELD, DEV[0]], replace=True)
    add("used", "holdout", [["u1", "Something else."]])
    shutil.rmtree(place.cohorts / "used")
    remarks = measure_separation(place, version(), "held").remarks
    assert remarks[0] == (
        "cases that are not here any more were not compared: held (entry 2), used "
        "(entry 5)"
    )


def test_missing_texts_are_an_objection(place):
    """What could not be compared may be the same."""
    texts_path(place, "dev").unlink()
    assert any("similar texts" in one for one in objections(place, version(), "held"))
    texts_path(place, "held").unlink()
    found = objections(place, version(), "held")
    assert any("not on this machine" in one and "wording" in one for one in found)


def test_a_damaged_cohort_is_an_objection(place):
    """It may hold what the holdout holds."""
    (place.cohorts / "dev" / "cases.csv").write_text("case_id,patient,sha256\n")
    found = objections(place, version(), "held")
    assert found == ("held and dev could not be compared: dev is not as recorded",)


def test_cases_that_were_open_before_are_objected_to(place, add):
    """Once retired, or once for development: somebody may have read them."""
    retire_holdout(place, "held", ACTOR, "given up")
    add("held", "holdout", HELD, replace=True)
    found = objections(place, version(), "held")
    assert any("were open before: entry" in one for one in found)


@pytest.mark.parametrize(
    ("field", "where"),
    [
        ("counts", "counts"),
        ("does_not_count", "does not count"),
        ("uncertain_when", "uncertain when"),
        ("terms", "term"),
        ("exclusions", "exclusion"),
        ("note", "clarification"),
    ],
)
def test_every_part_of_a_guide_is_looked_for(place, field, where):
    """A case may be copied into any of them."""
    copied = "a small effusion on the left side"
    guide = version(phrase="own").guides[0]
    changes = {field: (copied,)}
    if field == "note":
        changes = {"clarifications": (replace(guide.clarifications[0], note=copied),)}
    made = replace(version(), guides=(replace(guide, **changes),))
    (found,) = objections(place, made, "held")
    assert found.startswith(f"edema, {where}: ")


def test_the_user_message_is_looked_for_too(place):
    """It is shown to a model as the system message is."""
    quoting = replace(version(), user=f"Like: {LONG}\n{{{{ text }}}}\n")
    assert any("user.jinja" in one for one in objections(place, quoting, "held"))


def measured_on(place, cohort):
    """Write into the ledger that a version was measured on a cohort."""
    event = Event(
        action="evaluated", subject="tiny@v1", reason="-", payload={"cohort": cohort}
    )
    append_event(place.ledger, event, ACTOR)


@pytest.mark.parametrize(("looks", "said"), [(0, "0 times"), (1, "once"), (2, "2 t")])
def test_earlier_looks_are_those_before_the_cases_were_held_back(
    place, add, looks, said
):
    """At these cases and until then: what is measured on them now is the release."""
    shutil.rmtree(place.cohorts / "held")
    add("shown", "external", HELD)
    for _ in range(looks):
        measured_on(place, "shown")
    measured_on(place, "dev")
    add("shown", "holdout", HELD, replace=True)
    measured_on(place, "shown")
    (found,) = find_earlier_looks(place, "shown")
    assert f"versions were measured on them {said}" in found


def test_an_external_cohort_may_become_a_holdout(place, add):
    """It was measured on and never revised on, which whoever approves is told."""
    shutil.rmtree(place.cohorts / "held")
    add("shown", "external", HELD)
    add("shown", "holdout", HELD, replace=True)
    assert objections(place, version(), "shown") == ()
    assert len(find_earlier_looks(place, "shown")) == 1


def test_a_source_that_cases_were_taken_from_before_is_told_of(place, add):
    """Unless they are here to be compared, or were never open."""
    rows = [("n1", "One of them.", "P5"), ("n2", "And one more.", "P6")]
    add("closed", "holdout", rows, exclude=("n1",))
    shutil.rmtree(place.cohorts / "closed")
    add("open", "external", rows, exclude=("n2",))
    add("late", "holdout", rows, exclude=("n1",))
    assert find_earlier_looks(place, "late") == ()
    shutil.rmtree(place.cohorts / "open")
    (found,) = find_earlier_looks(place, "late")
    assert found.startswith("open (entry 5 of the ledger) was an open cohort")
