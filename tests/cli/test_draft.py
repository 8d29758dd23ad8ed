"""A revision in steps from the command line, as a person or a script does it."""

import csv
import json
import re

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import draft, history, revise
from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.records import Guide
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import list_drafts, list_versions, write_version
from loop.prompts.version import PromptVersion
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.revise.changes import CaseChange, Changes
from loop.review.verdict import Edits, Judgement, Verdict
from loop.run.store import open_store
from tests.review.revise.conftest import wavering as wavering

EDITOR = Actor(name="Dr A. Example")
FLUID = Verdict(
    label="pleural_effusion",
    judgement=Judgement.GUIDELINE_AMBIGUOUS,
    case_ids=("f0", "f1"),
    edits=Edits(terms=("fluid ... base",)),
    reviewer="Dr B. Example",
    comment="private words about a case",
)


@pytest.fixture
def place(workspace, tmp_path):
    """Return a workspace with a prompt and a dev cohort."""
    guide = Guide(label="pleural_effusion", name="Pleural Effusion", definition="Fluid")
    user = "{% for guide in guides %}{{ guide.definition }}{% endfor %}\n{{ text }}\n"
    version = PromptVersion(
        name="tiny", number=1, system="Read.\n", user=user, guides=(guide,)
    )
    write_version(workspace, version)
    event = Event(
        action="draft_committed",
        subject="tiny@v1",
        reason="a start",
        payload={"digest": version.digest},
    )
    append_event(workspace.ledger, event, EDITOR)
    with (tmp_path / "dev.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["case_id", "text", "pleural_effusion"])
        writer.writerows([f"f{n}", f"Fluid at the base, {n}.", 1] for n in range(4))
        writer.writerows([f"n{n}", f"Clear lungs, {n}.", 0] for n in range(4))
    options = ImportOptions(name="dev", role="dev", source="synthetic", licence="-")
    import_cohort(workspace, tmp_path / "dev.csv", options, actor=EDITOR)
    return workspace


@pytest.fixture
def call(place):
    """Return a function that calls a verb in the workspace."""
    app = typer.Typer()
    for module in (draft, history, revise):
        module.register(app)

    def invoke(*words, stdin=None):
        args = [*map(str, words), "--workspace", str(place.root)]
        return CliRunner().invoke(app, args, input=stdin)

    return invoke


@pytest.fixture
def keep_verdict(place):
    """Keep one verdict, as the workbench does."""
    with open_store(place) as store:
        request = DraftRequest(prompt="tiny", cohort="dev", verdicts=(FLUID,))
        made = begin_draft(place, store, request, EDITOR)
    return made.draft.ref


def data(result):
    """Return the one JSON object a verb printed."""
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return json.loads(result.stdout)


def begin(call, *more):
    """Begin a draft by hand and return its reference."""
    return data(call("draft", "begin", "tiny", "-c", "dev", *more, "--json"))["draft"]


TERM = (
    "pleural_effusion:\n  name: Pleural Effusion\n  definition: Fluid\n"
    "  terms:\n  - fluid ... base\n"
)


def test_the_steps_lead_to_a_version(call, place):
    """Begin, edit, check, commit: each prints what came of it."""
    ref = begin(call, "--why", "bases were missed")
    printed = call("draft", "show", ref, "--label", "pleural_effusion").stdout
    assert printed.startswith("pleural_effusion:\n  name: Pleural Effusion")
    edited = call("draft", "edit", ref, "pleural_effusion", "-", stdin=TERM)
    assert "  + term: fluid ... base" in edited.stdout
    checked = call("draft", "check", ref)
    assert checked.exit_code == 0
    assert "  f0 pleural_effusion: absent -> present" in checked.stdout
    done = call("draft", "commit", ref, "--why", "now they are not")
    assert done.stdout == "committed tiny@v2\n"
    assert "now they are not" in call("history", "tiny").stdout
    assert "has no open draft" in call("draft", "list", "tiny").stdout


def test_a_check_of_before_an_edit_is_no_leave_to_commit(call, place):
    """It is shown, and what comes next is another check."""
    ref = begin(call)
    call("draft", "edit", ref, "pleural_effusion", "-", stdin=TERM)
    call("draft", "check", ref)
    assert f"no objections: ranloop draft commit {ref}" in (
        call("draft", "show", ref).stdout
    )
    more = TERM + "  - fluid ... bases\n"
    call("draft", "edit", ref, "pleural_effusion", "-", stdin=more)
    shown = call("draft", "show", ref).stdout
    assert "the check does not hold any more: the draft was edited since" in shown
    assert shown.endswith(f"check it again: ranloop draft check {ref}\n")
    assert "no objections" not in shown


def test_every_step_has_its_json(call, place, tmp_path):
    """One object on stdout each time."""
    ref = begin(call)
    (tmp_path / "guide.yaml").write_text(TERM)
    edit = call(
        "draft", "edit", ref, "pleural_effusion", tmp_path / "guide.yaml", "--json"
    )
    assert data(edit)["diff"]["guides"]["pleural_effusion"][0]["kind"] == "term"
    assert data(call("draft", "check", ref, "--json"))["changes"]["kept"] > 0
    shown = data(call("draft", "show", ref, "--json"))
    assert (shown["stale"], shown["checked"]["passed"]) == ([], True)
    prompt = data(call("draft", "show", ref, "--prompt", "--json"))
    assert prompt["calls"][0]["messages"][1]["content"].endswith("of the case]\n")
    (listed,) = data(call("draft", "list", "tiny", "--json"))["drafts"]
    assert (listed["checked"], listed["origin"]) == ("passed", "hand")
    assert data(call("draft", "keep", ref, "--why", "later", "--json"))["entry"] > 1
    assert "nothing was written" not in call("draft", "rebase", ref).stdout
    assert data(call("draft", "rebase", ref, "--json"))["conflicts"] == []
    done = data(call("draft", "commit", ref, "--why", "now", "--json"))
    assert done["version"] == "tiny@v2"


def test_instructions_are_shown_edited_and_committed(call, place):
    """What is printed is what is taken back, changed in one place."""
    ref = begin(call)
    printed = call("draft", "show", ref, "--instructions").stdout
    assert printed.startswith("[system.jinja]\n")
    text = printed.replace("{{ text }}", "Read slowly.\n{{ text }}")
    edited = call("draft", "edit", ref, "--instructions", "-", stdin=text)
    assert "+Read slowly." in edited.stdout
    planned = call("draft", "edit", ref, "--plan", "per_label")
    assert "plan: per_label" in planned.stdout
    assert "Read slowly." in call("draft", "show", ref, "--instructions").stdout


@pytest.mark.parametrize("options", [(), ("pleural_effusion",)])
def test_an_edit_of_nothing_is_a_usage_error(call, options):
    """A label without a file, or neither, is a slip."""
    ref = begin(call)
    assert call("draft", "edit", ref, *options).exit_code == 2


def test_a_check_that_objects_exits_with_100(call):
    """A script can tell it from an error, and commit refuses."""
    ref = begin(call)
    call("draft", "edit", ref, "pleural_effusion", "-", stdin=TERM.replace("base", "x"))
    checked = call("draft", "check", ref)
    assert checked.exit_code == 100
    assert "  - no answer changed to a right one" in checked.stdout
    assert isinstance(call("draft", "commit", ref).exception, DataError)
    assert call("draft", "commit", ref, "--override").exit_code == 2
    done = call("draft", "commit", ref, "--override", "--why", "for the next site")
    assert done.exit_code == 0


def test_a_check_over_draws_prints_churn_harm_and_surplus(
    call, keep_verdict, wavering, place
):
    """The parent's own churn first, then what the draft adds to it."""
    shown = call("draft", "check", keep_verdict, "-e", "wavering", "--draws", 4)
    lines = shown.stdout.splitlines()
    start = "check on 8 cases, 4 draws of the parent and of the draft, asked in turns"
    churn = lines[lines.index(start) + 1]
    assert re.fullmatch(
        r"the parent against itself: \d+\.\d % of answers differ between two draws",
        churn,
    )
    assert re.search(r"^evidence of harm: none$", shown.stdout, re.MULTILINE)
    assert (
        "tests, 0 of which could find anything, at 3.3 % for all together at look 1"
        in (shown.stdout)
    )
    assert re.search(
        r"targeted cases: right in \d of 8 readings, the parent asked again in \d: "
        r"surplus \+\d+ % \([+-]\d+ to \+\d+ %\), (not )?shown",
        shown.stdout,
    )
    fewer = ("-e", "wavering", "--max-draws", 3)
    made = data(call("draft", "check", keep_verdict, *fewer, "--json"))
    drawn = made["check"]["over_draws"]
    assert "labels" not in made["check"]
    # Another look at the same draft, by fewer draws: the level is not spent again.
    assert (drawn["draws"], drawn["look"]) == (3, 2)
    (label,) = drawn["labels"]
    assert len(drawn["unjudged"]) == 20
    # Eight cases show nothing at the level of a second look.
    assert label["verdict"] == "INSUFFICIENT"
    assert [one["share"] for one in label["harm"]] == ["sensitivity", "specificity"]
    assert label["churn"]["n"] == 8
    assert set(drawn["surplus"]) == {
        *("before", "after", "readings", "interval", "least", "shown"),
    }
    assert len(drawn["targets"]) == 2
    assert len(made["runs"]) == 6


def test_a_dry_run_says_what_a_check_would_take(call, keep_verdict, wavering):
    """For a draft, and for one that is not made; nothing is asked."""
    shown = call("draft", "check", keep_verdict, "-e", "wavering", "--dry-run").stdout
    assert shown.splitlines()[:2] == [
        f"check of {keep_verdict} against tiny@v1 on dev with wavering",
        "NOTHING WAS SENT",
    ]
    assert "  draws     3 of each, 8 cases" in shown
    assert "  requests  64 at most" in shown
    assert re.search(r"pleural_effusion +not even all of 4 +not even all of 4", shown)
    made = call("revise", "tiny", "-c", "dev", "-e", "wavering", "--dry-run").stdout
    assert made.startswith("check of a draft as long against tiny@v1 on dev")
    found = data(call("draft", "check", keep_verdict, "--dry-run", "--json"))
    assert (found["sent"], found["requests"], found["losses"]) == (0, 16, [])
    assert wavering.asked == ()


def test_more_draws_of_an_engine_that_repeats_itself_are_refused(call, keep_verdict):
    """It would look like more evidence."""
    result = call("draft", "check", keep_verdict, "--draws", 3)
    assert "more draws show nothing" in str(result.exception)


def test_a_revision_over_draws_is_committed_with_its_evidence(
    call, keep_verdict, wavering, place
):
    """The version is run as any other, and the ledger says how it was checked."""
    result = call(
        "revise",
        keep_verdict,
        "-c",
        "dev",
        "-e",
        "wavering",
        "--draws",
        5,
        "--why",
        "-",
    )
    assert "committed tiny@v2" in result.stdout, result.stdout
    entry = read_ledger(place.ledger)[-1]
    assert (entry.action, entry.payload["check"]["form"]) == ("draft_committed", 2)
    assert entry.payload["check"]["draws"] == 5
    assert len(entry.payload["check"]["runs"]) == 10


def test_a_draft_left_behind_is_rebased(call, keep_verdict):
    """The conflicts are printed with what to write to decide them."""
    ref = begin(call)
    theirs = TERM.replace("definition: Fluid", "definition: Any fluid")
    call("draft", "edit", ref, "pleural_effusion", "-", stdin=theirs)
    ours = begin(call)
    mine = TERM.replace("definition: Fluid", "definition: Much fluid")
    call("draft", "edit", ours, "pleural_effusion", "-", stdin=mine)
    call("draft", "check", ref)
    call("draft", "commit", ref, "--why", "first")
    assert isinstance(call("draft", "check", ours).exception, ConflictError)
    assert "tiny@v1 (behind)" in call("draft", "list", "tiny").stdout
    behind = f"another version was committed: ranloop draft rebase {ours}\n"
    assert behind in call("draft", "show", ours).stdout
    open_conflicts = call("draft", "rebase", ours, "--json")
    assert open_conflicts.exit_code == 100
    (conflict,) = data(open_conflicts)["conflicts"]
    told = call("draft", "rebase", ours).stdout
    assert f"conflict {conflict['id']}: " in told
    assert told.endswith(
        "nothing was written; decide each with --resolve CONFLICT=ours or =theirs\n"
    )
    assert call("draft", "rebase", ours, "--resolve", "x=both").exit_code == 2
    done = call("draft", "rebase", ours, "--resolve", f"{conflict['id']}=ours")
    assert "+ definition: Much fluid" in done.stdout


def test_a_draft_that_is_kept_back_is_told_with_its_entry(call, place):
    """As a sentence, and as data."""
    ref = begin(call)
    told = call("draft", "keep", ref, "--why", "later").stdout
    entry = read_ledger(place.ledger)[-1]
    assert (entry.action, entry.reason) == ("draft_rejected", "later")
    assert told == f"kept {ref} as a draft, ledger entry {entry.seq}\n"
    again = data(call("draft", "keep", ref, "--why", "later still", "--json"))
    assert again == {"draft": ref, "entry": entry.seq + 1}
    assert "another version was committed" not in call("draft", "show", ref).stdout


@pytest.mark.parametrize(
    ("cases", "more"), [(20, ""), (21, "  and 1 more; see --json\n")]
)
def test_of_many_changes_twenty_of_a_kind_are_printed(capsys, cases, more):
    """Fixed and broken each; of the others how many there are."""

    def rows(number):
        return tuple(
            CaseChange(f"c{n}", "edema", "present", "absent", "present")
            for n in range(number)
        )

    draft._say_changes(
        Changes(fixed=rows(1), broken=rows(cases), unchanged=rows(3), kept=7)
    )
    row = "  c{} edema: absent -> present\n"
    assert capsys.readouterr().out == (
        f"fixed: 1\n{row.format(0)}broken: {cases}\n"
        f"{''.join(row.format(n) for n in range(20))}{more}"
        "still wrong: 3, still right: 7\n"
    )


def test_a_discarded_draft_is_gone(call, place):
    """One that was never checked leaves no trace."""
    ref = begin(call)
    assert call("draft", "discard", ref, "--why", "no").stdout == f"discarded {ref}\n"
    assert list_drafts(place, "tiny") == ()


def test_kept_verdicts_are_revised_in_one_go(call, keep_verdict, place):
    """All that are open, or those named."""
    done = data(call("revise", "tiny", "--kept", "-c", "dev", "--json"))
    assert (done["version"], done["verdicts"]) == ("tiny@v2", [FLUID.id])
    assert list_versions(place, "tiny") == (1, 2)
    again = call("revise", "tiny", "--kept", "-c", "dev")
    assert "no verdict on tiny is open" in str(again.exception)


def test_one_kept_verdict_may_be_named(call, keep_verdict):
    """The others stay open."""
    done = data(call("revise", "tiny", "--verdict", FLUID.id, "-c", "dev", "--json"))
    assert done["verdicts"] == [FLUID.id]
    unknown = call("revise", "tiny", "--verdict", "0123456789ab", "-c", "dev")
    assert "no verdict 0123456789ab" in str(unknown.exception)
    assert call("revise", "tiny", "--kept").exit_code == 2


def test_a_draft_begins_with_kept_verdicts_too(call, keep_verdict):
    """And is listed with them; their comments are not printed."""
    ref = begin(call, "--kept")
    listed = call("draft", "list", "tiny", "--json")
    assert [one["ref"] for one in data(listed)["drafts"]] == [keep_verdict, ref]
    shown = call("draft", "show", ref)
    assert "+ term: fluid ... base" in shown.stdout
    assert "private words" not in listed.stdout + shown.stdout


def test_a_wrong_guide_is_refused_with_its_line(call):
    """And a label nobody has, with those there are."""
    ref = begin(call)
    wrong = call("draft", "edit", ref, "pleural_effusion", "-", stdin=TERM + "  x: 1\n")
    assert "line 6, x: there is no such field" in str(wrong.exception)
    unknown = call("draft", "show", ref, "--label", "oedema_of_moon")
    assert "Name one of atelectasis" in str(unknown.exception)


def test_a_label_without_a_guide_has_a_template(call):
    """It has what the taxonomy says, can be saved as it is, and names what may come."""
    ref = begin(call)
    template = call("draft", "show", ref, "--label", "edema").stdout
    assert template.startswith("edema:\n  name: Edema\n") and "# terms:" in template
    saved = call("draft", "edit", ref, "edema", "-", "--json", stdin=template)
    assert "edema" in str(data(saved)["diff"])
    shown = call("draft", "show", ref, "--label", "edema").stdout
    assert shown.startswith("edema:\n  name: Edema\n") and "#" not in shown
