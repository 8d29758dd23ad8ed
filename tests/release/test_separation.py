"""A prompt must hold no text of the holdout, and no patient be on both sides."""

import csv
import shutil
from dataclasses import replace

import pytest

from loop.core.errors import LedgerError
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


def measured_on(place, cohort, action="evaluated"):
    """Write into the ledger that a version was measured on a cohort."""
    event = Event(
        action=action, subject="tiny@v1", reason="-", payload={"cohort": cohort}
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


def test_all_that_was_compared_is_said_in_full(place, add):
    """How many wordings, with whom, and by what; each cohort of another role."""
    add("more", "external", [("m1", "The trachea is in the middle.")])
    full = Guide(
        label="edema",
        name="Edema",
        definition="Fluid.",
        counts=("water", "congestion"),
        does_not_count=("effusion",),
        uncertain_when=("vessels are wide",),
        terms=("edema", "oedema"),
        exclusions=("no edema",),
        clarifications=(
            Clarification(phrase="wet lung", value=Value.PRESENT, note="as said"),
        ),
        exemplars=(
            Exemplar(text="Wet.", value=Value.PRESENT, evidence="Wet", why="said"),
            Exemplar(text="Dry.", value=Value.ABSENT, evidence="Dry", why="denied"),
        ),
    )
    bare = Guide(label="mass", name="Mass", definition="A lump.")
    found = measure_separation(place, replace(version(), guides=(full, bare)), "held")
    # 1 + 2 + 1 + 1 + 2 + 1 + 2 + 3 * 2, the other definition, and two templates.
    alike = "texts are near-duplicates when four fifths of their runs of 5 words are"
    assert found == (
        (
            "2 exemplars and 19 wordings of tiny@v1 were compared with the texts of "
            "held: no 6 consecutive words may be the same.",
            f"Cases, patients and texts of held were compared with those of dev; "
            f"{alike} the same.",
            f"Cases and texts of held were compared with those of more; {alike} the "
            "same.",
        ),
        (),
        (
            "held and more were not compared by patients: not named for every case of "
            "more",
        ),
    )


def test_every_objection_names_its_place_and_its_case(place, add):
    """Several at once: each is said, in the order in which it was looked for."""
    add("zeta", "external", [("h1", "Heart size is normal.", "P2")])
    worked = [
        Exemplar(text=text, value=Value.PRESENT, evidence="", why="")
        for text in ("Own.", "Heart size is normal!", "!", LONG.replace("film", "one"))
    ]
    guide = replace(version().guides[0], exemplars=tuple(worked))
    found = objections(place, replace(version(), guides=(guide,)), "held")
    assert found == (
        "edema, exemplar: 6 or more consecutive words also occur in case h1 of holdout "
        "held",
        "edema, exemplar 2: its text is that of case h2 of holdout held, or nearly so",
        "edema, exemplar 4: its text is that of case h1 of holdout held, or nearly so",
        "zeta and held share 1 case: h1",
        "zeta and held share 1 patient: h1 = h2",
        "zeta and held share 1 text: h1 = h2",
    )


@pytest.mark.parametrize(
    ("words", "refused"),
    [("a small effusion on the", False), ("a small effusion on the left", True)],
)
def test_six_words_in_a_row_are_too_many(place, words, refused):
    """Five may be the same in any two reports."""
    found = objections(place, version(definition=f"{words} lung"), "held")
    assert bool(found) is refused


def test_five_of_what_is_shared_are_named(place, add):
    """The number is of all of them."""
    ids = [f"h{n}" for n in range(3, 9)]
    rows = [(one, f"Report {n} of all.", f"Q{n}") for n, one in enumerate(ids)]
    add("held", "holdout", [*HELD, *rows], replace=True)
    add(
        "zeta",
        "dev",
        [(one, f"Quite other text {one}.", f"R{one}") for one in ids[::-1]],
    )
    assert objections(place, version(), "held") == (
        "zeta and held share 6 cases: h8, h7, h6, h5, h4",
    )


def test_without_its_texts_a_holdout_is_not_held_against_wording(place):
    """Each comparison that could not be made stands against the release."""
    texts_path(place, "held").unlink()
    found = measure_separation(place, version(definition=LONG), "held")
    assert found.objections == (
        "the wording of tiny@v1 could not be compared with holdout held: its texts are "
        "not on this machine",
        "held and dev were not compared by similar texts: the texts of held are not on "
        "this machine (equal ones were compared by digest)",
    )
    assert found.remarks == ()


def test_a_broken_ledger_is_no_cohort_that_could_not_be_compared(place):
    """Nothing said of the cohorts would rest on anything."""
    with place.ledger.open("a", encoding="utf-8") as stream:
        stream.write("{}\n")
    with pytest.raises(LedgerError):
        measure_separation(place, version(), "held")


def test_a_damaged_cohort_does_not_hide_the_next(place, add):
    """Nor is a cohort that is here told of as gone."""
    add("aaa", "dev", [("a1", "Nothing of note.", "P20")])
    add("zeta", "dev", [("h1", "Something else altogether here.", "P21")])
    (place.cohorts / "aaa" / "cases.csv").write_text("case_id,patient,sha256\n")
    (place.cohorts / "aaa" / "cohort.yaml").write_text("name: [")
    found = measure_separation(place, version(), "held")
    assert found.objections == (
        "held and aaa could not be compared: aaa is not as recorded",
        "zeta and held share 1 case: h1",
    )
    assert found.remarks == (
        "cases that are not here any more were not compared: aaa (entry 4)",
    )


def test_who_had_the_cases_open_is_named(place, add):
    """Every entry that says so, and no cohort of other cases."""
    add("first", "dev", HELD)
    add("second", "external", HELD)
    add("third", "dev", HELD)
    for name in ("first", "second", "third"):
        shutil.rmtree(place.cohorts / name)
    said = "the cases of holdout held were open before: entry"
    assert objections(place, version(), "held") == (
        f"{said} 4 of the ledger has them as first, dev",
        f"{said} 6 of the ledger has them as third, dev",
    )
    (found,) = find_earlier_looks(place, "held")
    assert found == (
        "the cases of held are no longer unseen: they were an open cohort before "
        "(first, entry 4, second, entry 5, third, entry 6 of the ledger), and versions "
        "were measured on them 0 times"
    )


def test_a_look_counts_by_its_cohort_its_kind_and_its_time(place, add):
    """An evaluation of a judge is one too; a search or another cohort is none."""
    shutil.rmtree(place.cohorts / "held")
    add("shown", "dev", HELD)
    measured_on(place, "shown")
    measured_on(place, "shown", "judge_evaluated")
    measured_on(place, "shown", "searched")
    measured_on(place, "dev")
    add("shown", "holdout", HELD, replace=True)
    measured_on(place, "shown")
    (found,) = find_earlier_looks(place, "shown")
    assert found == (
        "the cases of shown are no longer unseen: they were an open cohort before "
        "(shown, entry 4 of the ledger), and versions were measured on them 2 times"
    )


def test_every_open_cohort_of_the_same_source_is_told_of(place, add):
    """One that is here does not hide those that are gone; other files say nothing."""
    rows = [(f"n{n}", f"Case number {n} of them.", f"Q{n}") for n in range(4)]
    for name, role, kept in (
        ("here", "dev", 0),
        ("shut", "holdout", 1),
        ("gone", "dev", 1),
        ("lost", "external", 2),
        ("late", "holdout", 3),
    ):
        ids = [one[0] for n, one in enumerate(rows) if n != kept]
        add(name, role, rows, exclude=tuple(ids))
    add("other", "dev", [("o1", "Of another file.", "Q9")])
    for name in ("shut", "gone", "lost", "other"):
        shutil.rmtree(place.cohorts / name)
    assert find_earlier_looks(place, "late") == tuple(
        f"{name} (entry {seq} of the ledger) was an open cohort from a source file "
        "that late comes from too; it is not here any more, so the cases they share "
        "are unknown"
        for name, seq in (("gone", 6), ("lost", 7))
    )
