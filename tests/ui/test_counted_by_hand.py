"""What pages show of twelve cases and two versions that are counted by hand."""

import html
import re
import shutil

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.paths import WorkspacePaths
from loop.core.people.users import Right
from loop.review.status import read_kept
from loop.run.jobs import JobQueue
from loop.ui.pages import overview
from loop.ui.pages.files import events as files
from loop.ui.pages.readers import agreement_panel
from loop.ui.pages.review import events as review
from loop.ui.pages.review.verdict_form import ReviewForm
from loop.ui.pages.revise import events as revise
from loop.ui.pages.runs import events as runs
from loop.ui.pages.runs.state import RunsPlace
from loop.ui.pages.versions import events as versions
from loop.ui.pages.versions.view import render_versions
from tests.two_rounds import WHO, let_fail, make_rounds
from tests.ui.reviewed import context_of, seat
from tests.ui.revise.conftest import Visitor, finish_jobs
from tests.ui.visits import opened, visit


@pytest.fixture(scope="module")
def place(first_version, tmp_path_factory):
    """Return the workspace after both rounds."""
    return make_rounds(first_version, tmp_path_factory.mktemp("rounds"))[0]


def plain(shown):
    """Return the words of a page, as they are read."""
    return " ".join(re.sub(r"<[^>]*>", " ", html.unescape(shown)).split())


def both(context):
    """Return the ids of both runs, the first version's first."""
    return [run.id for run in reversed(context.store.find_runs())]


def at_any_time(shown):
    """Return the words of a part of a page, without dates and the ids of runs."""
    said = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "WHEN", plain(shown))
    return re.sub(r"\d{8}-\d{6}-[0-9a-f]{6}(-\d+)?", "RUN", said)


def test_runs_stand_with_what_was_asked_and_what_it_cost(place):
    """Who ran what, how each case ended, and what the engine was asked."""
    with opened(place) as context:
        page = runs.refresh(visit(context), "tiny", "dev")
        chosen = ("tiny", "dev", "run", "tiny@v2", "rules", [], "1")
        told = runs.estimate_chosen(visit(context), None, *chosen).estimate
        run = both(context)[1]
        cases = runs.act_on_runs(visit(context, do="cases", run=run), "", None)
    assert at_any_time(page.runs).partition("Begun, ended ")[2] == (
        "RUN tiny@v2 dev rules wrong Dr Runner 12 0 0 WHEN WHEN "
        "RUN tiny@v1 dev rules wrong Dr Runner 12 0 0 WHEN WHEN"
    )
    assert (
        at_any_time(page.costs)
        .partition(" Cost of it new ")[2]
        .endswith(" tiny rules 2 24 0")
    )
    assert plain(told) == (
        "Estimate; nothing was sent Run of tiny@v2 on dev with rules. What is answered "
        "already is not asked again. tiny@v2 on dev with rules: at most 12 requests "
        "for 12 cases, 221 prompt tokens, about 930 output tokens No model is asked, "
        "so that nothing is paid."
    )
    assert at_any_time(cases.detail) == (
        "Cases of run RUN Evaluate as a job Close tiny@v2 on dev with rules: 12 "
        "answered, 0 unparsed, 0 engine failed. A case opens its trace: what was "
        "asked, and what came back. Every case was answered. All cases in the order of "
        "the cohort c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 c10 c11"
    )


def test_runs_side_by_side_are_counted_case_by_case(place):
    """Label by label, then each answer with whether it is as the reference."""
    with opened(place) as context:
        ids = both(context)
        who = visit(context, do="compare", ticked=ids)
        page = runs.act_on_runs(who, "", RunsPlace(listed=tuple(ids)))
        lesion, every = (
            runs.act_on_detail(visit(context, act="differ", label=label), page.place)
            for label in ("lung_lesion", "")
        )
    head, *rows = (at_any_time(row) for row in page.detail.split("<tr>"))
    assert head == (
        "2 runs on dev Close A RUN tiny@v1 with rules, WHEN , Dr Runner B RUN tiny@v2 "
        "with rules, WHEN , Dr Runner Each run against A, the oldest; reference 1, "
        "uncertain answers wrong. Fixed and broken count cases that the reference and "
        "both runs decide. 5 answers about 5 of 12 cases differ."
    )
    nothing = " – → – = – – – 0"
    assert sum(row.endswith(nothing) for row in rows) == 19
    assert [row for row in rows if not row.endswith(nothing)][1:] == [
        "macro-F1 0.575 → 0.778 +0.203 [−0.455, +0.638] 5",
        "Lung Lesion 0.400 → 0.667 +2 −1 too few 1 – 4",
        "Pleural Effusion 0.750 → 0.889 +1 −0 too few – – 1",
    ]
    answers = (
        "c4 {}present absent ✗ present ✓ c5 {}present absent ✗ present ✓ c6 {}present "
        "present ✓ absent ✗ c10 {}present absent ✗ uncertain"
    )
    names = "An answer opens the trace of the case in that run. Case"
    assert at_any_time(lesion.differences) == (
        f"Lung Lesion: 4 cases on which the runs differ Fold up {names} Reference A "
        f"RUN B RUN {answers.format('', '', '', '')}"
    )
    assert at_any_time(every.differences) == (
        f"Any label: 5 answers in which the runs differ Fold up {names} Label "
        "Reference A RUN B RUN c3 Pleural Effusion present absent ✗ present ✓ "
        + answers.format(*("Lung Lesion ",) * 4)
    )


def test_the_overview_counts_what_the_command_line_counts(place):
    """Its summary, the gate of each label, and what changed since the parent."""
    with opened(place) as context:
        shown = overview.refresh(visit(context), "tiny", "dev")
    said = plain(shown)
    assert said.partition(" What these words mean")[0] == (
        "Synthetic cohort: made-up texts. These numbers say nothing about real "
        "reports. tiny@v2 on dev INSUFFICIENT 0 pass 0 fail 21 insufficient macro-F1 "
        "0.778 [0.250, 1.000] rules, uncertain answers wrong, reference 1 +0.203 "
        "[−0.455, +0.638] since tiny@v1 Versions tried here 2 all committed Score "
        "corrected for selection – macro-F1, the best of 2 versions Cases 12 0 "
        "unparsed , 0 engine failed"
    )
    needs = (
        "11 of at least 59 cases; 4 of at least 10 positives; 7 of at least 10 "
        "negatives; needs about 48 more cases (6 positives)"
    )
    rows = [plain(one) for one in shown.split("<tr ")[2:]]
    lesion, effusion = (
        next(row for row in rows if f"> {name} " in row)
        for name in ("Lung Lesion", "Pleural Effusion")
    )
    assert "INSUFFICIENT 11 4 0.818 [0.482, 0.977] Lung Lesion" in lesion
    assert lesion.endswith(f" 0.56 [0.06, 1.00] 0.667 +2 −1 {needs}")
    assert "INSUFFICIENT 11 4 0.909 [0.587, 0.998] Pleural Effusion" in effusion
    assert effusion.endswith(f" 0.81 [0.47, 1.00] 0.889 +1 −0 {needs}")
    assert (
        "0 of 21 labels pass, macro-F1 0.778; if read as absent: 0, 0.778; if read as "
        "present: 0, 0.873; if left out: 0, 0.844."
    ) in said


def test_the_versions_stand_with_their_scores(place):
    """Newest first, each with what was changed in it."""
    with opened(place) as context:
        said = plain(render_versions(context, "tiny", "dev"))
        page = versions.refresh(visit(context), "tiny", "dev")
    assert plain(page.difference) == (
        "tiny@v1 → tiny@v2 +2 terms , −1 term in 2 labels pleural effusion +1 added "
        "Change Kind Text + added term fluid lung lesion +1 added , −1 removed Change "
        "Kind Text − removed term mass + added term nodule"
    )
    assert (page.stale, page.unscored, page.seen) == ("", "", 8)
    assert plain(page.ledger).startswith(
        "Chain intact : 8 entries, each names the hash of the one before. Head "
    )
    newest, first = re.findall(
        r"Not to be trusted: not in the ledger (.*?)(?= v1 | Drafts )", said
    )
    assert newest == (
        "0 +2 terms, −1 term 0.778 [0.250, 1.000] rules, uncertain answers wrong, "
        "reference 1, 12 cases 0 of 21"
    )
    assert first == (
        "0 first version 0.575 [0.125, 0.900] rules, uncertain answers wrong, "
        "reference 1, 12 cases 0 of 21"
    )


def test_a_version_is_read_line_by_line(place):
    """What each part costs, what a model receives, and who each line is from."""
    with opened(place) as context:
        said = at_any_time(versions.read(visit(context), "tiny@v2"))
    first, second = (f"v{number} WHEN , Dr B. Example" for number in (1, 2))
    assert said == (
        "tiny@v2 beside tiny@v1 Dr B. Example, WHEN : a reason Tokens 10 of all calls "
        "about one case, without the case; estimated, +-5 % for English (the engine "
        "has no tokenizer) section tokens since v1 names and definitions 5 0 the rest "
        "of the instructions 5 0 label tokens since v1 pleural_effusion 3 0 "
        "lung_lesion 3 0 Each is what the prompt would be shorter by without it. As a "
        "model reads it joint: 10 tokens, 0 lines changed since v1 system from v1 : "
        "Read. user from v1 : Pleural Effusion Lung Lesion [text of the case] Who each "
        f"line is from instructions and settings v1 {first} plan joint contract "
        "label_values inputs text system.jinja Read. user.jinja {% for guide in guides "
        "%}{{ guide.name }} {% endfor %} {{ text }} pleural_effusion v2, v1 "
        f"{second} term fluid {first} name Pleural Effusion definition Fluid in the "
        f"pleural space. term collection lung_lesion v2, v1 {second} term nodule "
        f"{first} name Lung Lesion definition A nodule, mass or tumor of the lung."
    )


def test_what_can_be_exported_stands_with_what_cannot_yet(place):
    """Each file with what it holds; in place of a link why there is none."""
    with opened(place) as context:
        said = plain(files.refresh(visit(context), "tiny", "dev")[0])
    head, _, rows = said.partition(" What Holds Download ")
    assert head.endswith(
        "tiny on dev. Made when you ask; no copy stays on the server or in the "
        "browser. Tables open in a spreadsheet as text: nothing in them is run as a "
        "formula."
    )
    assert rows == (
        "Evaluation the newest run as a document: gates, intervals, what changed HTML "
        "MD Gate table one row per label CSV Labels what the newest run read out of "
        "every case: case ids and values; no text CSV XLSX PARQUET Failing cases case "
        "ids, labels, values and where the evidence stands; no text CSV Agreement how "
        "far readers agree, label by label no votes of readers yet Verdicts all that "
        "were given on this cohort, with their exemplars; can be imported again. The "
        "notes of reviewers are only in the files that say so no verdict yet History "
        "every version and draft: who, why, scores on every cohort CSV Ledger the "
        "chain as it stands JSONL"
    )


@pytest.fixture
def copied(place, tmp_path, monkeypatch):
    """Give a context on a copy of it, in which no process is started."""
    monkeypatch.setattr(JobQueue, "_launch", lambda self, connection, number: None)
    root = shutil.copytree(place.root, tmp_path / "ws")
    with context_of(WorkspacePaths(root)) as context:
        yield context


MISSED = ReviewForm(
    judgement="model_wrong", value="present", action="term", phrase="mass"
)
WAITING = (
    "Queue 3 of 3 pairs, and 1 of 1 right answer {} of 3 judged by you Hide "
    "others\N{RIGHT SINGLE QUOTATION MARK} verdicts until I have given mine Lung "
    "Lesion ◇ answered uncertain c10 rare, fails by 2, versions disagree ✓ right, "
    "drawn at random Lung Lesion ▽ false negative c6 {}rare, fails by 2, versions "
    "disagree Pleural Effusion ▲ false positive c7 rare, fails by 1 How the order is "
    "made"
)


def undrawn(shown):
    """Return the words of a queue or case without what the draw of the run decides."""
    right = r"(Lung Lesion|Pleural Effusion) (✓ right, drawn at random) c\d+ "
    said = re.sub(right, r"\2 ", plain(shown).replace(", audit", ""))
    return said.replace(" · audit", "").replace("; drawn at random", "")


def test_the_queue_has_each_failing_pair_with_why_it_stands_there(copied):
    """How many answers decide its gate; and one right answer, drawn from all."""
    ann = seat(copied)
    shown = ann.open()
    queue = undrawn(shown["queue"])
    assert queue.startswith(WAITING.format(0, ""))
    assert "1 of the 19 answers that agree with the reference" in queue
    assert undrawn(shown["case"]) == (
        "Lung Lesion c10 · en · 1 of 4 · Copy link All evidence ← Previous Next → ◇ "
        "Answered uncertain Possible nodule . Film 10. Model uncertain nodule "
        "Reference present version 1 Readers no votes on this cohort Other runs v1: "
        "absent Why here rare: 4 of at least 10 positives; fails by 2 answers; 2 runs "
        "of the prompt disagree; answered uncertain Guide of Lung Lesion tiny@v2 A "
        "nodule, mass or tumor of the lung. Terms nodule"
    )
    assert plain(shown["offer"]) == "Suggested: model wrong, right value present y"
    chosen = {"act": "open", "case": "c6", "label": "lung_lesion"}
    place = ann.act(review.choose, shown["place"], **chosen)["place"]
    done = ann.submit(place, MISSED)
    assert plain(done["status"]) == "Saved Lung Lesion, c6. Undo the verdict on c6"
    judged = WAITING.format(1, "✓ reviewed by Dr A. Example ")
    assert undrawn(done["queue"]).startswith(judged)
    assert undrawn(done["case"]) == (
        "Pleural Effusion c7 · en · 4 of 4 · Copy link All evidence ← Previous Next → "
        "▲ False positive Small collection . Film 7. Model present collection "
        "Reference absent version 1 Readers no votes on this cohort Other runs v1: "
        "present Why here rare: 4 of at least 10 positives; fails by 1 answer Guide of "
        "Pleural Effusion tiny@v2 Fluid in the pleural space. Terms collection fluid"
    )
    assert plain(done["offer"]) == "Suggested: model wrong, right value absent y"


def test_a_verdict_becomes_the_next_version(copied):
    """What it asks for, what that changes, what a check counts, and what is kept."""
    ann, editor = seat(copied), Visitor(copied)
    place = ann.open()["place"]
    chosen = {"act": "open", "case": "c6", "label": "lung_lesion"}
    ann.submit(ann.act(review.choose, place, **chosen)["place"], MISSED)
    editor.does(revise.refresh)
    asked = (
        "1 Verdicts 1 open on tiny, dev 1 on the wording of 1 label all verdicts on "
        "the wording Lung Lesion 1 verdict by Dr A. Example asks for what is wrong, "
        "cause cases by + term mass people, engine rules {}model wrong c6 Dr A. "
        "Example WHEN Build a draft from 0 ticked Begin an unchanged draft to edit by "
        "hand"
    )
    assert at_any_time(editor["verdicts"]) == asked.format("")
    (verdict,) = read_kept(copied.store, copied.workspace, "dev")
    editor.does(revise.act_on_verdicts, do="build", ticked=[verdict.id])
    assert at_any_time(editor["verdicts"]) == asked.format("in tiny@draft:dRUN ")
    assert at_any_time(editor["drafts"]) == (
        "2 Draft 1 open draft by last change from made of check why dRUN open Dr A. "
        "Example WHEN tiny@v2 1 verdict dev not checked 1 verdict on lung_lesion"
    )
    made = at_any_time(editor["draft"])
    assert (
        "Static tokens of one case 10 → 10 estimated Lint no errors 1 warning" in made
    )
    assert (
        "Changes tiny@v2 → tiny@draft:dRUN +1 term in 1 label lung lesion +1 added "
        "Change Kind Text + added term people, engine rules mass The prompt"
    ) in made
    assert plain(editor["decision"]) == "4 Commit Run the check first (step 3)."
    editor.does(revise.run_check, "rules", here=True)
    finish_jobs(copied)
    editor.does(revise.poll, here=True, right=Right.SEE)
    checked = at_any_time(editor["check"])
    assert checked.startswith(
        "tiny@draft:dRUN against tiny@v2 May be committed rules on dev:ref1, by Dr A. "
        "Example at WHEN targeted, fixed 1 answers fixed 1 broken 0 still wrong 2 "
        "still right 19 warning guide lung_lesion: term 'mass'"
    )
    rows = [plain(f"<tr{row}") for row in editor["check"].split("<tr")]
    nothing = " = 0 – no case = 0 – no case not worse"
    assert sum(nothing in row for row in rows) == 19
    assert (
        "Lung Lesion +1 −0 11 +0.091 [−0.191, +0.377] by counts +1 −0 4 +0.250 "
        "[−0.362, +0.699] by counts not worse"
    ) in rows
    assert (
        "Pleural Effusion = 11 0.000 [−0.259, +0.259] by counts = 4 0.000 [−0.490, "
        "+0.490] by counts not worse"
    ) in rows
    assert checked.endswith(
        "Cases Fixed: 1 wrong before, right now Lung Lesion 1 c6 absent → present "
        "Broken: none Still wrong: 2 before and after Pleural Effusion 1 c7 present "
        "Lung Lesion 1 c10 uncertain Changed where the reference decides nothing: none "
        "Cases without a readable answer: 0.0 % from the parent, 0.0 % from the draft, "
        "at most 1.0 %. Both runs are kept."
    )
    assert plain(editor["decision"]) == (
        "4 Commit Nothing stands against it. It becomes tiny@v3, in the ledger under "
        "the name Dr A. Example (editor)."
    )
    editor.does(revise.commit, "needed", False, here=True)
    finish_jobs(copied)
    editor.does(revise.poll, here=True, right=Right.SEE)
    assert at_any_time(editor["said"]) == (
        "tiny@draft:dRUN is tiny@v3 now Committed by Dr A. Example at WHEN : needed. "
        "See its gates · See it among the versions"
    )
    assert plain(editor["verdicts"]).startswith("1 Verdicts 0 open on tiny, dev ")
    where = ("--workspace", str(copied.workspace.root))
    listed, changed, jobs = (
        CliRunner(env=WHO).invoke(app, [*words, *where]).stdout
        for words in (("verdict", "list"), ("diff", "tiny@v2", "tiny@v3"), ("jobs",))
    )
    assert listed.splitlines()[:2] == [
        "dev:",
        f"{verdict.id}  model_wrong, lung_lesion in c6",
    ]
    assert listed.splitlines()[2].endswith(": addressed by tiny@v3")
    assert listed.splitlines()[3:] == ["1 verdict: 1 addressed"]
    assert changed == "tiny@v2 -> tiny@v3\n\nlung_lesion\n  + term: mass\n"
    assert re.search(r"\n1 +done +12 of 12 +Dr A\. Example ", jobs)


VOTES = "reader,case_id,label,value\n" + "".join(
    f"{reader},c8,pleural_effusion,absent\n"
    f"{reader},c0,pleural_effusion,{'present' if reader in 'ABC' else 'absent'}\n"
    for reader in "ABCDEF"
)
"""All six readers say that c8 has none; of c0 they are split three to three."""


def test_readers_and_the_model_are_held_against_the_other_readers(copied, tmp_path):
    """Of c0 the other five decide: the model is right in three of six panels.

    No reader is right there. On c8 all agree.
    """
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    where = ("--workspace", str(copied.workspace.root))
    taken = CliRunner(env=WHO).invoke(
        app, ["cohort", "votes", "dev", str(path), *where]
    )
    assert taken.exit_code == 0, taken.output
    who = visit(copied)
    agreement_panel.show_agreement(who, "tiny", "dev", None)
    finish_jobs(copied)
    shown = agreement_panel.show_agreement(who, "tiny", "dev", "pleural_effusion")
    said = at_any_time(shown.report)
    assert (
        "Readers, cases 6 , 12 12 votes, 0 uncertain Fleiss' kappa 0.20 – all labels "
        "Krippendorff's alpha 0.27 – all labels Mean reader against the others 0.500 – "
        "accuracy; kappa 0.00 Model against the same others 0.750 – minus mean reader: "
        "+0.250 "
    ) in said
    pairs = said.partition("Kappa of pairs of readers ")[2].partition(" A A ")[0]
    agrees = "kappa 1.000 [−0.684, 1.000], 2 cases."
    known = [
        (one, other, agrees if other in "BC" else "kappa 0.000, 2 cases.")
        for one in "ABC"
        for other in "BCDEF"
        if one < other
    ]
    known += [(*pair, "kappa –, 2 cases.") for pair in ("DE", "DF", "EF")]
    told = " ".join(f"{one} and {other}: {kappa}" for one, other, kappa in known)
    assert f"{pairs}." == told
    readers = " ".join(f"{one} 2 0 0.500 [0.013, 0.987] 0.00" for one in "ABCDEF")
    assert f" reader pairs no majority accuracy kappa {readers} Mean 0.500 0.00" in said
    assert (
        "The human ceiling: model and mean reader against the same panels on the same "
        "12 comparisons; uncertain answers and votes are wrong. measure mean reader "
        "model model minus reader accuracy 0.500 0.750 +0.250 kappa 0.000 0.500 +0.500 "
        "Model: tiny@v2, run RUN."
    ) in said
    assert said.endswith(
        "All labels 3 0 0.700 0.25 0.20 0.27 0.500 0.750 +0.250 Pleural Effusion 3 0 "
        "0.700 0.25 0.20 0.27 0.500 0.750 +0.250"
    )


def test_cases_without_an_answer_stand_beside_the_others(copied, monkeypatch):
    """On the overview, among the runs, case by case, and last in the queue."""
    where = ("--workspace", str(copied.workspace.root))
    done = CliRunner(env=WHO).invoke(app, [*let_fail(monkeypatch), *where])
    assert done.exit_code == 0, done.output
    who = visit(copied)
    shown = plain(overview.refresh(who, "tiny", "dev"))
    assert shown.partition(" What these words mean")[0].endswith(
        "macro-F1 0.829 [0.385, 1.000] failing, uncertain answers wrong, reference 1 "
        "no run of a parent to compare with Versions tried here 1 all committed Score "
        "corrected for selection – macro-F1; one version, so nothing was selected "
        "Cases 12 1 unparsed , 1 engine failed"
    )
    page = runs.refresh(who, "tiny", "dev")
    assert "tiny@v2 dev failing wrong Dr Runner 10 1 1 WHEN WHEN" in at_any_time(
        page.runs
    )
    first, second, last = both(copied)
    cases = runs.act_on_runs(visit(copied, do="cases", run=last), "", None)
    assert at_any_time(cases.detail) == (
        "Cases of run RUN Evaluate as a job Close tiny@v2 on dev with failing: 10 "
        "answered, 1 unparsed, 1 engine failed. A case opens its trace: what was "
        "asked, and what came back. Without an answer, by cause 1 unparsed: there is "
        "no JSON object in the answer c0 1 engine failed: timed out c1 All cases in "
        "the order of the cohort c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 c10 c11"
    )
    ids = [first, second, last]
    who = visit(copied, do="compare", ticked=ids)
    page = runs.act_on_runs(who, "", RunsPlace(listed=tuple(ids)))
    rows = [at_any_time(f"<tr{row}") for row in page.detail.split("<tr")]
    assert [
        row for row in rows if row.startswith(("macro", "Lung L", "Pleural E"))
    ] == [
        "macro-F1 0.575 → 0.778 +0.203 0.450 → 0.829 +0.379 7",
        "Lung Lesion 0.400 → 0.667 +2 −1 0.400 → 0.857 +2 −0 6",
        "Pleural Effusion 0.750 → 0.889 +1 −0 0.500 → 0.800 +1 −0 3",
    ]
    asked = visit(copied, act="differ", label="pleural_effusion")
    differing = at_any_time(runs.act_on_detail(asked, page.place).differences)
    assert differing.endswith(
        "Case Reference A RUN B RUN C RUN c0 present present ✓ present ✓ unparsed c1 "
        "present present ✓ present ✓ failed c3 present absent ✗ present ✓ present ✓"
    )
    queue = plain(seat(copied).open()["queue"])
    assert queue.startswith(
        "Queue 4 of 4 pairs, and 1 of 1 right answer 0 of 2 judged by you"
    )
    assert "1 of the 16 answers that agree with the reference" in queue
    assert re.findall(r"All labels . (\w+ ?\w*) c", queue) == [
        "unparsed",
        "engine failed",
    ]
