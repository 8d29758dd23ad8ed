"""A try: what a wording answers, what it leaves behind, and no check rests on it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime

import pytest

from loop.core.errors import DataError, EngineError
from loop.core.ledger import Actor, read_ledger
from loop.core.records import Value
from loop.engines import base
from loop.labels.cohort import read_cohort, texts_path
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import list_drafts, read_version, version_folder
from loop.prompts.guides import dump_guides
from loop.prompts.instructions import instructions_text
from loop.prompts.version import CallPlan
from loop.review.revise import edit as edit_module
from loop.review.revise.check import CheckTarget, TargetOutcome
from loop.review.revise.check_record import recall_check
from loop.review.revise.commit import CommitDecision, commit_checked, discard_draft
from loop.review.revise.draft_files import DraftLineage, beside
from loop.review.revise.draws import TargetDraws
from loop.review.revise.edit import (
    GuideEdit,
    SettingsEdit,
    edit_draft,
    guide_text,
    restore_tried,
)
from loop.review.revise.run_check import Examination
from loop.review.revise.tries import (
    MOST_WORDINGS,
    DraftWording,
    NotedTry,
    count_tries,
    find_wording,
    list_tries,
    note_try,
    note_wordings,
)
from loop.review.revise.tryout import (
    PairsTryout,
    TriedLabel,
    TryRequest,
    _find_expected,
    pairs_data,
    refuse_holdout,
    try_case,
    try_pairs,
    try_text,
    tryout_data,
)
from loop.review.verdict import Edits
from loop.run.asking import hold_engine
from loop.run.manifest import find_run
from loop.run.task import run_prompt
from tests.engines.scripted import Scripted, serving, streaming
from tests.review.revise.stepping import (
    FLUID,
    USELESS,
    Wavering,
    begin,
    check,
    overtake,
)
from tests.servers.answers import plain_answer


@pytest.fixture
def draft(setting, store):
    """Begin a draft that fixes four cases."""
    return begin(setting, store, FLUID).draft


def on_case(setting, store, draft, case_id, engine="rules", *, heard=None, **options):
    """Try `draft` on a case."""
    request = TryRequest(prompt=draft.ref, **options)
    place, who = setting.workspace, setting.editor
    with hold_engine(place, engine) as held:
        return try_case(place, store, request, case_id, who, engine=held, heard=heard)


def on_text(setting, store, draft, text, engine="rules", **options):
    """Try `draft` on pasted words."""
    request = TryRequest(prompt=draft.ref)
    place = setting.workspace
    with hold_engine(place, engine) as held:
        return try_text(place, store, request, text, engine=held, **options)


def on_pairs(setting, store, draft, engine="rules", *, heard=None, **options):
    """Try `draft` on the pairs of its verdicts and the pinned ones."""
    request = TryRequest(prompt=draft.ref, **options)
    place, who = setting.workspace, setting.editor
    with hold_engine(place, engine) as held:
        return try_pairs(place, store, request, who, engine=held, heard=heard)


def test_a_draft_answers_beside_its_parent(setting, store, draft):
    """Label by label, with evidence and why: what a check will find in this case."""
    found = on_case(setting, store, draft, "f2")
    effusion, heart = found.labels
    assert effusion == ("pleural_effusion", "present", ("absent",), ("present",))
    assert effusion.differs and not effusion.fails
    assert heart == ("cardiomegaly", "absent", ("absent",), ("absent",))
    assert not heart.differs
    (span,) = found.after.outcomes[0].fields["pleural_effusion"].spans
    text = found.item.variables["text"]
    assert text[span.start : span.end] == "Fluid layers at the left base"
    (mention,) = found.after.rules["pleural_effusion"].mentions
    assert (mention.wording, mention.decides) == ("fluid ... base", True)
    assert found.before.rules["pleural_effusion"].mentions == ()
    changes = check(setting, store, draft).changes
    assert ("f2", "pleural_effusion", "present", "absent", "present") in [
        tuple(one) for one in changes.fixed
    ]


def test_a_draft_is_tried_as_it_stands(setting, store, draft):
    """What was edited a moment ago is what is asked."""
    assert on_case(setting, store, draft, "f2").labels[0].differs
    bare = replace(draft.guides[0], terms=("pleural effusion",), lexicon=())
    edit = GuideEdit(label=bare.label, text=guide_text(bare))
    edit_draft(setting.workspace, draft.ref, (edit,), setting.editor)
    assert on_case(setting, store, draft, "f2").labels[0].fails


def test_a_try_is_no_run(setting, store, draft):
    """Nothing of it is an outcome, in the history, or what `latest` names."""
    before = setting.workspace.ledger.read_bytes()
    on_case(setting, store, draft, "f2")
    on_pairs(setting, store, draft)
    assert store.find_runs() == []
    assert store.read("SELECT count(*) FROM outcomes") == [(0,)]
    with pytest.raises(DataError):
        find_run(setting.workspace, "latest")
    assert setting.workspace.ledger.read_bytes() == before


def test_a_first_version_has_nothing_beside_it(setting, store):
    """It is tried all the same."""
    found = on_case(setting, store, setting.tiny, "e0", cohort="dev")
    assert found.before is None
    assert found.labels[0] == ("pleural_effusion", "present", (), ("present",))
    with pytest.raises(DataError, match="no parent"):
        on_pairs(setting, store, setting.tiny, cohort="dev")


def test_a_holdout_is_tried_by_nobody(setting, store, draft):
    """Neither by the id of a case, nor by its words."""
    words = "Effusion known to nobody."
    setting.add_cohort("hold", "holdout", [("h0", words, 1, 0)])
    with pytest.raises(DataError, match="role holdout"):
        on_case(setting, store, draft, "h0", cohort="hold")
    with pytest.raises(DataError, match="case of holdout hold") as refused:
        on_text(setting, store, draft, f"  {words}\n")
    assert words not in str(refused.value)
    assert on_text(setting, store, draft, f"{words} Indeed.").after
    (setting.workspace.labels / "cohorts" / "hold" / "cases.csv").unlink()
    with pytest.raises(DataError, match="cannot read the cases of holdout hold"):
        on_text(setting, store, draft, words)


def test_words_of_a_holdout_stay_unseen_however_they_are_pasted(setting, store, draft):
    """With the line ends of another system, and whichever record says what it is."""
    words = "Effusion known to nobody.\nClear else."
    setting.add_cohort("hold", "holdout", [("h0", words, 1, 0)])
    folder = setting.workspace.labels / "cohorts" / "hold"
    about = (folder / "cohort.yaml").read_text()
    ledger = setting.workspace.ledger.read_bytes()
    for role, entries in (
        ("holdout", ledger),
        # Edited by hand; and copied into a workspace whose ledger does not know it.
        ("dev", ledger),
        ("holdout", b"".join(ledger.splitlines(keepends=True)[:2])),
    ):
        (folder / "cohort.yaml").write_text(
            about.replace("role: holdout", f"role: {role}")
        )
        setting.workspace.ledger.write_bytes(entries)
        for pasted in (words, words.replace("\n", "\r\n")):
            with pytest.raises(DataError, match="that of a case of holdout hold"):
                refuse_holdout(setting.workspace, pasted)


def test_what_the_reference_cannot_judge_is_not_told_as_right(setting, store, draft):
    """A label of another definition than the readers had."""
    before = on_case(setting, store, draft, "f2")
    assert {one.label: one.expected for one in before.labels} == {
        "pleural_effusion": "present",
        "cardiomegaly": "absent",
    }
    item = before.item
    cohort = replace(
        read_cohort(setting.workspace, "dev"),
        not_comparable={"cardiomegaly": "another definition"},
    )
    right = _find_expected(setting.workspace, cohort, item, ())
    assert right["pleural_effusion"] == "present"
    assert "cardiomegaly" not in right


def test_either_text_of_a_held_out_pair_is_tried_by_nobody(setting, store, draft):
    """The digest of a pair is that of both; its texts are what must stay unseen."""
    texts = ("Fluid that nobody knows of.", "Clear, say all.")
    path = setting.folder / "pairs.csv"
    path.write_text(f'id,reference,candidate\np0,"{texts[0]}","{texts[1]}"\n')
    options = ImportOptions(name="hold", role="holdout", source="made up", licence="-")
    import_cohort(setting.workspace, path, options, actor=setting.editor)
    for words in texts:
        with pytest.raises(DataError, match="case of holdout hold") as refused:
            on_text(setting, store, draft, f"{words}\r\n")
        assert words not in str(refused.value)
    assert on_text(setting, store, draft, "Fluid that everybody knows of.").after
    texts_path(setting.workspace, "hold").unlink()
    with pytest.raises(DataError, match="pairs of holdout hold are not on this"):
        on_text(setting, store, draft, texts[0])


def test_a_version_whose_parent_is_gone_is_no_first_version(setting, store):
    """Alone it would seem to answer everything for the first time."""
    overtake(setting)
    folder = version_folder(setting.workspace, setting.tiny)
    folder.rename(folder.parent / "gone")
    request = TryRequest(prompt="tiny@v2", cohort="dev")
    with (
        hold_engine(setting.workspace, "rules") as held,
        pytest.raises(DataError, match="Restore the missing folder"),
    ):
        try_text(setting.workspace, store, request, "Fluid.", engine=held)


def test_a_case_of_an_external_cohort_is_not_tried(setting, store, draft):
    """What is only to be measured is not revised on."""
    setting.add_cohort("other", "external", [("x0", "Fluid elsewhere.", 1, 0)])
    with pytest.raises(DataError, match="role external"):
        on_case(setting, store, draft, "x0", cohort="other")


@pytest.mark.parametrize("engine", ["rules", "wavering"])
def test_pasted_words_are_kept_nowhere(setting, store, draft, wavering, engine):
    """Neither they nor what is answered to them, by whatever engine."""
    kept = store.count_completions()
    found = on_text(setting, store, draft, "Quokka fluid at the base.\r\n", engine)
    assert found.item.variables["text"] == "Quokka fluid at the base."
    assert "Quokka" in str(tryout_data(found))
    assert "Quokka" not in repr(found)
    assert store.count_completions() == kept
    files = [one for one in setting.workspace.root.rglob("*") if one.is_file()]
    assert [one for one in files if b"Quokka" in one.read_bytes()] == []
    assert list_tries(setting.workspace, draft) == ()


def test_a_text_that_cannot_be_read_gets_no_answer(setting, store, draft):
    """It is never absent."""
    found = on_text(setting, store, draft, "Pleuraerguss.", language="xx")
    assert found.labels[0].after == ("engine failed",)
    chinese = on_text(setting, store, draft, "左侧胸腔积液，右侧少量")
    assert chinese.item.language == "zh"
    assert on_text(setting, store, draft, "Clear.").item.language == "en"
    for text, why in ((" \n", "empty"), ("a" * 1_000_001, "at most 1,000,000")):
        with pytest.raises(DataError, match=why):
            on_text(setting, store, draft, text)


def test_all_pairs_and_anchors_are_tried_before_the_check(setting, store):
    """Which still fail and which broke, from a few cases instead of the cohort."""
    pinned = replace(FLUID, case_ids=("e0", "e1"), edits=Edits(), anchor=True)
    begin(setting, store, replace(pinned, correct_value="present"))
    good = begin(setting, store, FLUID).draft
    found = on_pairs(setting, store, good)
    assert [one.case_id for one in found.targets] == ["f0", "f1"]
    assert {(one.case_id, one.label) for one in found.anchors} == {
        ("e0", "pleural_effusion"),
        ("e1", "pleural_effusion"),
    }
    assert found.failing == () and found.broken == ()
    useless = begin(setting, store, USELESS).draft
    assert [one.case_id for one in on_pairs(setting, store, useless).failing] == [
        *("f0", "f1")
    ]
    bare = replace(good.guides[0], name="Fluid", terms=("fluid ... base",), lexicon=())
    edit = GuideEdit(label=bare.label, text=guide_text(bare))
    edit_draft(setting.workspace, good.ref, (edit,), setting.editor)
    assert [one.case_id for one in on_pairs(setting, store, good).broken] == [
        *("e0", "e1")
    ]
    with pytest.raises(DataError, match="no verdict on a case"):
        on_pairs(setting, store, good, label="cardiomegaly")


def test_no_draw_of_a_try_is_one_of_a_check(setting, store, draft, wavering):
    """A check rests on answers that nobody has seen, however much was tried."""
    how = Examination(engine="wavering", draws=3, max_draws=3)
    found = on_pairs(setting, store, draft, "wavering", draws=3)
    assert found.draws == 3
    assert [one[2:] for one in found.counts] == [
        (one.before, one.after, 3) for one in found.counts
    ]
    assert [found.counts_of(one) for one in found.targets] == list(found.counts)
    assert replace(found, counts=()).counts_of(found.targets[0]) is None
    spread = on_case(setting, store, draft, "f2", "wavering", draws=5)
    assert len(spread.labels[0].after) == len(spread.labels[0].before) == 5
    tried, streams = store.count_completions(), set(wavering.asked)
    check(setting, store, draft, how)
    # 3 draws of 2 versions on 25 cases, none of them taken from a try.
    assert store.count_completions() - tried == 150
    seeds = {seed for seed, _ in set(wavering.asked) - streams}
    assert seeds.isdisjoint({seed for seed, _ in streams})


def test_a_try_in_one_draw_is_the_answer_that_a_run_has(
    setting, store, draft, wavering
):
    """The failing pair is seen as it failed, and its parent is not asked again."""
    run_prompt(setting.workspace, "tiny@v1", "dev", engine="wavering")
    asked = len(wavering.asked)
    found = on_case(setting, store, draft, "f2", "wavering")
    assert len(wavering.asked) == asked + 1
    (outcome,) = found.before.outcomes
    (kept,) = (
        one
        for one in store.read_outcomes(find_run(setting.workspace, "latest").id)
        if one.item_id == "f2"
    )
    assert outcome == kept
    assert found.chance


def test_draws_of_an_engine_that_repeats_itself_are_refused(setting, store, draft):
    """They would show nothing, and look as if they did."""
    with pytest.raises(EngineError, match="Leave out --draws"):
        on_case(setting, store, draft, "f2", draws=3)


def test_a_label_that_nobody_asks_about_is_refused_before_asking(
    setting, store, draft, wavering
):
    """A server's answer costs money."""
    with pytest.raises(DataError, match=r"neither .* asks about 'nothing'"):
        on_case(setting, store, draft, "f2", "wavering", label="nothing")
    assert wavering.asked == ()
    (only,) = on_case(setting, store, draft, "f2", label="cardiomegaly").labels
    assert only.label == "cardiomegaly"


def test_of_one_label_only_its_calls_are_made(setting, store, draft, wavering):
    """A plan of a call per label would else take them all."""
    settings = SettingsEdit(plan=CallPlan.PER_LABEL)
    edit_draft(setting.workspace, draft.ref, (), setting.editor, settings=settings)
    found = on_case(setting, store, draft, "f2", "wavering", label="cardiomegaly")
    # One of the parent, which asks about both at once, and one of the draft.
    assert store.count_completions() == 2
    assert list(found.after.outcomes[0].fields) == ["cardiomegaly"]
    bare = replace(draft.guides[0], label="edema", name="Edema")
    edit = GuideEdit(label="edema", text=guide_text(bare))
    edit_draft(setting.workspace, draft.ref, (edit,), setting.editor)
    (edema,) = on_case(setting, store, draft, "f2", label="edema").labels
    assert edema.before == ("not asked",)
    assert edema.after in (("absent",), ("present",))


def test_a_check_and_the_ledger_say_how_much_was_tried(setting, store, draft):
    """Wordings chosen on these cases are part of what an auditor weighs."""
    on_case(setting, store, draft, "f2")
    on_case(setting, store, draft, "n0")
    changed = replace(draft.guides[0], definition="Any fluid.")
    edit = GuideEdit(label=changed.label, text=guide_text(changed))
    edit_draft(setting.workspace, draft.ref, (edit,), setting.editor)
    on_pairs(setting, store, draft)
    checked = check(setting, store, draft)
    assert checked.tried == (2, 4)
    who = setting.editor
    commit_checked(
        setting.workspace, store, draft.ref, who, CommitDecision("better", "")
    )
    entry = read_ledger(setting.workspace.ledger)[-1]
    assert entry.payload["check"]["tried"] == {"wordings": 2, "cases": 4}
    assert not beside(setting.workspace, draft).tries.exists()


def test_a_draft_that_was_never_tried_is_recorded_as_before(setting, store, draft):
    """What is written is what an earlier version wrote."""
    checked = check(setting, store, draft)
    assert checked.tried is None
    discard_draft(setting.workspace, draft.ref, setting.editor, "not now")
    entry = read_ledger(setting.workspace.ledger)[-1]
    assert "tried" not in entry.payload["check"]


def test_two_people_who_try_one_draft_are_both_noted(setting, draft):
    """Neither note overwrites the other, and a damaged file is not no try."""
    place = setting.workspace

    def note(number):
        who = Actor(name=f"Dr {number % 2}")
        note_try(place, draft, (f"c{number}",), "rules", who)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(note, range(24)))
    assert {one.by: len(one.cases) for one in list_tries(place, draft)} == {
        "Dr 0": 12,
        "Dr 1": 12,
    }
    assert count_tries(place, draft) == (1, 24)
    file = beside(place, draft).tries
    file.write_text("[{")
    with pytest.raises(DataError, match="it says what was tried of tiny@draft"):
        count_tries(place, draft)
    with pytest.raises(DataError, match="Restore it from a backup; or remove it"):
        note(1)
    assert file.read_text() == "[{"
    file.unlink()
    assert count_tries(place, draft) is None


def test_a_verdict_is_tried_before_it_is_kept(setting, store):
    """Who writes it sees at once whether the wording does what it is meant to."""
    request = {"prompt": "tiny@v1", "cohort": "dev", "verdict": FLUID}
    place, who = setting.workspace, setting.editor
    with hold_engine(place, "rules") as held:
        request = TryRequest(**request)
        found = try_case(place, store, request, "f0", who, engine=held)
        pairs = try_pairs(place, store, request, who, engine=held)
        useless = replace(request, verdict=USELESS)
        again = try_pairs(place, store, useless, who, engine=held)
    assert (found.before.ref, found.after.ref) == ("tiny@v1", "tiny@draft:unsaved")
    assert found.labels[0][1:] == ("present", ("absent",), ("present",))
    assert [one.case_id for one in pairs.targets] == ["f0", "f1"]
    assert pairs.failing == ()
    assert [one.case_id for one in again.failing] == ["f0", "f1"]
    assert list_drafts(place, "tiny") == () and setting.kept_ids() == []
    # Two wordings on two cases, which a draft of that guide is charged with.
    assert {one.label for one in list_tries(place, setting.tiny)} == {FLUID.label}
    assert count_tries(place, begin(setting, store, FLUID).draft) == (2, 2)


class Writing(Wavering):
    """The wavering model; it thinks first, and tells each character that it writes."""

    def redraw(self, draw):
        """Return the engine with another seed."""
        return Writing("", self.settings, draw)

    def stream(self, prompts, tell):
        """Yield an answer to each prompt, written character by character."""
        for index, completion in self.complete(prompts):
            text = f"<think>is it {{}}?</think>{completion.text}"
            for end in range(len(text)):
                tell(index, text[: end + 1])
            yield index, completion._replace(text=text)


@pytest.fixture
def writing(monkeypatch):
    """Register the engine ``writing`` for one test."""
    monkeypatch.setitem(base._FACTORIES, "writing", Writing)


def texts_of(heard):
    """Return (version, draw, call, calls) to all texts that were heard of it."""
    texts = {}
    for *place, text in heard:
        texts.setdefault(tuple(place), []).append(text)
    return texts


def test_a_servers_answer_is_heard_while_it_is_written(setting, store, draft, writing):
    """The parent's, then the draft's: every step of it, and nothing of its thinking."""
    heard = []
    found = on_case(setting, store, draft, "f2", "writing", heard=heard.append)
    texts = texts_of(heard)
    assert list(texts) == [("tiny@v1", 0, 1, 1), (draft.ref, 0, 1, 1)]
    for steps in texts.values():
        assert steps[0] == "{" and steps[-1].endswith("}")
        assert [len(one) for one in steps] == list(range(1, len(steps) + 1))
    assert (found.before.ref, found.after.ref) == ("tiny@v1", draft.ref)


def test_each_draw_and_each_call_is_heard_as_such(setting, store, draft, writing):
    """Calls are counted over the items, and a call keeps its place among them."""
    heard = []
    on_pairs(setting, store, draft, "writing", heard=heard.append, draws=3)
    assert list(texts_of(heard)) == [
        (version, draw, call, 2)
        for version in ("tiny@v1", draft.ref)
        for draw in (1, 2, 3)
        for call in (1, 2)
    ]
    per_label = SettingsEdit(plan=CallPlan.PER_LABEL)
    edit_draft(setting.workspace, draft.ref, (), setting.editor, settings=per_label)
    one, both = [], []
    on_case(setting, store, draft, "n1", "writing", heard=both.append)
    assert [(one.version, one.call, one.calls) for one in both if one.text == "{"] == [
        ("tiny@v1", 1, 1),
        (draft.ref, 1, 2),
        (draft.ref, 2, 2),
    ]
    wanted = {"label": "cardiomegaly", "heard": one.append}
    on_case(setting, store, draft, "n0", "writing", **wanted)
    assert {each[2:4] for each in one} == {(1, 1)}


def test_what_is_there_already_is_not_heard(setting, store, draft, writing):
    """Nor what `rules` answers, or an engine that cannot stream."""
    heard = []
    on_case(setting, store, draft, "f2", "writing")
    on_case(setting, store, draft, "f2", "writing", heard=heard.append)
    on_case(setting, store, draft, "f2", heard=heard.append)
    on_pairs(setting, store, draft, heard=heard.append)
    assert heard == []


def test_pasted_words_are_heard_and_kept_nowhere(setting, store, draft, writing):
    """As without streaming."""
    heard = []
    words = "Fluid at the base."
    on_text(setting, store, draft, words, "writing", heard=heard.append)
    assert {one.version for one in heard} == {"tiny@v1", draft.ref}
    assert store.read("SELECT count(*) FROM completions") == [(0,)]


def test_a_bug_in_who_hears_is_not_swallowed(setting, store, draft, writing):
    """The try ends with it."""

    def fall(heard):
        raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError, match="a bug"):
        on_case(setting, store, draft, "f2", "writing", heard=fall)


def test_a_streamed_answer_is_kept_under_the_key_of_an_unstreamed_one(
    setting, store, draft
):
    """How it came is no part of what was asked, nor of what was answered."""
    heard = []
    script = Scripted(other=streaming(plain_answer))
    with serving(script) as url:
        engine = f"openai:m@{url}"
        found = on_case(setting, store, draft, "f2", engine, heard=heard.append)
        asked = [body for _, body in script.seen if body.get("stream")]
        seen = len(script.seen)
        again = on_case(setting, store, draft, "f2", engine)
        # The second engine looks whether it is the same server, and asks nothing else.
        new = [body for _, body in script.seen[seen:] if "Fluid layers" in str(body)]
    assert len(asked) == 2 and new == []
    assert tryout_data(again) == tryout_data(found)
    rows = store.read("SELECT text, prompt_tokens, cached_tokens FROM completions")
    ((text, prompt_tokens, cached_tokens),) = set(rows)
    assert (prompt_tokens, cached_tokens) == (100, 90)
    assert {one[-1] for one in texts_of(heard).values()} == {text}


def reworded(setting, draft, definition):
    """Save another definition in the draft, and return it."""
    guide = replace(draft.guide("pleural_effusion"), definition=definition)
    edit = GuideEdit(label="pleural_effusion", text=guide_text(guide))
    edited = edit_draft(setting.workspace, draft.ref, (edit,), setting.editor)
    return edited.draft


def test_a_wording_that_was_tried_can_be_taken_back(setting, store, draft):
    """Guides, instructions and plan; whatever was changed since."""
    on_case(setting, store, draft, "f2")
    place, who = setting.workspace, setting.editor
    longer = instructions_text(draft).replace("Read the report.", "Read all of it.")
    settings = SettingsEdit(plan=CallPlan.PER_LABEL, instructions=longer)
    edit_draft(place, draft.ref, (), who, settings=settings)
    now = reworded(setting, draft, "Fluid, free or loculated.")
    assert now.digest != draft.digest
    assert now.plan is not draft.plan
    assert "Read all of it." in now.system
    on_case(setting, store, now, "f3")
    back = restore_tried(place, draft.ref, draft.digest[:8], who)
    assert back.draft.digest == draft.digest
    assert read_version(place, draft.ref).digest == draft.digest
    assert back.draft.verdicts == draft.verdicts
    assert restore_tried(place, draft.ref, now.digest, who).draft.digest == now.digest
    assert len(list_tries(place, draft)) == 2


def test_a_check_of_what_was_replaced_is_stale_and_recorded(setting, store, draft):
    """Taking back is an edit: what was measured of the draft stands in the ledger."""
    on_case(setting, store, draft, "f2")
    place = setting.workspace
    now = reworded(setting, draft, "Fluid, free or loculated.")
    check(setting, store, now)
    before = len(read_ledger(place.ledger))
    restore_tried(place, draft.ref, draft.digest, setting.editor)
    assert recall_check(place, store, draft.ref).stale
    (entry,) = read_ledger(place.ledger)[before:]
    assert now.digest in str(entry.payload)


def test_only_the_last_wordings_are_kept_and_only_one_is_meant(setting, store, draft):
    """The others are still counted; what cannot be taken back says what can."""
    place, who = setting.workspace, setting.editor
    tried = []
    for number in range(MOST_WORDINGS + 2):
        now = reworded(setting, draft, f"Fluid, wording {number}.")
        note_try(place, now, ("f2",), "rules", who)
        tried.append(now.digest)
    note_try(place, now, ("f3",), "other", who)
    kept = [one.digest for one in list_tries(place, draft) if one.wording]
    assert kept == [*tried[2:], tried[-1]]
    assert count_tries(place, draft) == (len(tried), 2)
    with pytest.raises(DataError, match="is not kept: only that of the last 20") as no:
        restore_tried(place, draft.ref, tried[1], who)
    assert tried[2][:8] in str(no.value)
    assert tried[1][:8] in str(no.value)
    for unknown in ("", tried[5][:3], "0000"):
        with pytest.raises(DataError, match="no try of tiny@draft:"):
            restore_tried(place, draft.ref, unknown, who)
    assert restore_tried(place, draft.ref, tried[2], who).draft.digest == tried[2]


def test_four_characters_are_enough_where_they_mean_one_wording(setting, draft):
    """Of two that begin alike neither is taken."""
    place, who, beginning = setting.workspace, setting.editor, draft.digest[:4]
    note_try(place, draft, ("f2",), "rules", who)
    assert find_wording(place, draft, beginning).system == draft.system
    note_wordings(place, draft, {f"{beginning}x": ("f3",)}, "rules", who)
    with pytest.raises(DataError, match="several tries of tiny@draft:"):
        find_wording(place, draft, beginning)
    assert find_wording(place, draft, draft.digest[:5]).user == draft.user


def test_an_old_wording_meets_the_frozen_blocks(setting, store, draft, monkeypatch):
    """What a version holds fixed cannot be brought in by an old try."""
    on_case(setting, store, draft, "f2")
    block = "{# frozen: case #}\nReport:\n{# end frozen #}\n"
    parent = replace(setting.tiny, user=setting.tiny.user + block)
    line = DraftLineage(replace(draft, user=parent.user), parent, parent)
    monkeypatch.setattr(edit_module, "read_line", lambda *_: line)
    with pytest.raises(DataError, match="the frozen block 'case' of tiny@v1"):
        restore_tried(setting.workspace, draft.ref, draft.digest, setting.editor)


@pytest.mark.parametrize(
    ("expected", "before", "after", "differs", "telling", "right", "fails"),
    [
        ("present", "p", "p", False, False, 1, False),
        ("present", "a", "p", True, True, 1, False),
        ("present", "p", "a", True, True, 0, True),
        ("present", "pap", "ppa", False, True, 2, True),
        ("present", "paa", "ppa", True, True, 2, True),
        ("", "a", "a", False, False, 0, False),
        ("", "a", "p", True, True, 0, False),
        ("", "", "a", False, False, 0, False),
        ("", "", "p", False, True, 0, False),
        ("absent", "", "a", False, False, 1, False),
        ("absent", "", "p", False, True, 0, True),
    ],
)
def test_what_is_told_of_a_label_rests_on_its_answers(
    expected, before, after, differs, telling, right, fails
):
    """Draws count, and not their order; where nothing is right, nothing fails."""
    words = {"p": "present", "a": "absent"}
    one = TriedLabel(
        "edema",
        expected,
        tuple(words[letter] for letter in before),
        tuple(words[letter] for letter in after),
    )
    assert (one.differs, one.telling, one.right, one.fails) == (
        *(differs, telling, right, fails),
    )


def pair(case_id, expected, before, after):
    """Return a pair that was tried."""
    return CheckTarget(
        case_id=case_id,
        label="edema",
        expected=expected,
        before=before,
        after=after,
        progress=TargetOutcome.UNCHANGED,
    )


def test_all_that_was_tried_of_pairs_is_told_as_data():
    """What still fails, what broke, and how often each is right."""
    targets = (
        pair("a", "present", "absent", "present"),
        pair("b", "present", "absent", "uncertain"),
        pair("c", "", "absent", "absent"),
    )
    anchors = (
        pair("d", "present", "present", "present"),
        pair("e", "absent", "absent", "present"),
        pair("f", "absent", "present", "present"),
        pair("g", "", "absent", "present"),
    )
    counts = (
        TargetDraws("a", "edema", 0, 3, 3),
        TargetDraws("e", "edema", 3, 1, 3),
    )
    found = PairsTryout(
        prompt="tiny@draft:d1",
        parent="tiny@v1",
        engine="rules",
        cohort="dev",
        draws=3,
        chance=True,
        targets=targets,
        anchors=anchors,
        counts=counts,
    )
    assert [one.case_id for one in found.failing] == ["b", "c"]
    assert [one.case_id for one in found.broken] == ["e"]
    assert found.counts_of(anchors[1]) == counts[1]
    assert found.counts_of(targets[1]) is None
    other = replace(targets[0], label="mass")
    assert found.counts_of(other) is None
    told = pairs_data(found)
    assert told == {
        "prompt": "tiny@draft:d1",
        "parent": "tiny@v1",
        "engine": "rules",
        "cohort": "dev",
        "draws": 3,
        "targets": [asdict(one) for one in targets],
        "anchors": [asdict(one) for one in anchors],
        "counts": [
            {"case_id": "a", "label": "edema", "before": 0, "after": 3, "draws": 3},
            {"case_id": "e", "label": "edema", "before": 3, "after": 1, "draws": 3},
        ],
        "failing": 2,
        "broken": 1,
    }


def test_a_try_of_a_case_is_told_whole_as_data(setting, store, draft):
    """Its text, both sides with their evidence, and each label."""
    found = on_case(setting, store, draft, "f2")
    text = found.item.variables["text"]
    told = tryout_data(found)
    answers = told.pop("answers")
    assert told == {
        "prompt": draft.ref,
        "parent": "tiny@v1",
        "engine": "rules",
        "cohort": "dev",
        "case": "f2",
        "language": "en",
        "text": text,
        "draws": 1,
        "labels": [
            {
                "label": "pleural_effusion",
                "expected": "present",
                "before": ["absent"],
                "after": ["present"],
                "differs": True,
            },
            {
                "label": "cardiomegaly",
                "expected": "absent",
                "before": ["absent"],
                "after": ["absent"],
                "differs": False,
            },
        ],
    }
    ((before,), (after,)) = answers["before"], answers["after"]
    (span,) = found.after.outcomes[0].fields["pleural_effusion"].spans
    heart = {"value": "absent", "spans": []}
    assert before == {
        "status": "answered",
        "problem": "",
        "repairs": [],
        "fields": {
            "pleural_effusion": {"value": "absent", "spans": []},
            "cardiomegaly": heart,
        },
    }
    assert after["fields"] == {
        "pleural_effusion": {"value": "present", "spans": [span.data]},
        "cardiomegaly": heart,
    }
    pasted = tryout_data(on_text(setting, store, draft, "Fluid."))
    assert (pasted["cohort"], pasted["case"]) == (None, None)
    alone = tryout_data(on_case(setting, store, setting.tiny, "e0", cohort="dev"))
    assert (alone["parent"], alone["answers"]["before"]) == (None, None)


def test_a_verdict_s_value_is_right_of_its_own_cases_alone(setting, store):
    """Elsewhere, and of labels it does not name, the reference is."""
    unsure = replace(FLUID, case_ids=("f0",), correct_value=Value.UNCERTAIN)
    made = begin(setting, store, unsure).draft
    right = {
        case: [one.expected for one in on_case(setting, store, made, case).labels]
        for case in ("f0", "f1", "c1", "n0")
    }
    assert right == {
        "f0": ["uncertain", "absent"],
        "f1": ["present", "absent"],
        "c1": ["absent", "present"],
        "n0": ["absent", "absent"],
    }


def test_pairs_of_one_label_are_tried_alone(setting, store):
    """Of the verdicts and of the pins."""
    heart = replace(
        FLUID,
        label="cardiomegaly",
        case_ids=("c1", "s1"),
        edits=Edits(terms=("big heart",)),
        correct_value=Value.PRESENT,
    )
    pins = (
        replace(FLUID, case_ids=("e0",), edits=Edits(), anchor=True),
        replace(heart, case_ids=("c2",), edits=Edits(), anchor=True),
    )
    begin(setting, store, *pins)
    made = begin(setting, store, FLUID, heart).draft
    found = on_pairs(setting, store, made, label="cardiomegaly")
    assert [one.case_id for one in found.targets] == ["c1", "s1"]
    assert [one.case_id for one in found.anchors] == ["c2"]
    assert [one[:2] for one in found.counts] == [
        (case, "cardiomegaly") for case in ("c2", "c1", "s1")
    ]
    every = on_pairs(setting, store, made)
    assert {one.case_id for one in every.targets} == {"f0", "f1", "c1", "s1"}
    assert {one.case_id for one in every.anchors} == {"e0", "c2"}
    assert (every.prompt, every.parent, every.cohort) == (made.ref, "tiny@v1", "dev")
    assert (every.engine, every.draws, every.chance) == ("rules", 1, False)


def test_a_try_is_noted_whole_and_the_last_one_stands_last(setting, draft):
    """By wording, engine and person: cases together, the time of the last."""
    place = setting.workspace
    ann, ben = Actor(name="Ann"), Actor(name="Ben")
    times = iter(datetime(2026, 1, 5, 9, minute, tzinfo=UTC) for minute in range(1, 9))

    def note(actor, *cases, engine="rules", version=draft):
        note_try(place, version, cases, engine, actor, now=lambda: next(times))

    note(ann, "f1", "f0")
    note(ben, "f2")
    note(ann, "f3", engine="other")
    note(ann, "f4", "f1")
    wording = DraftWording(
        system=draft.system,
        user=draft.user,
        guides=dump_guides(draft.guides),
        plan=draft.plan,
        contract=draft.contract,
    )

    def noted(by, minute, *cases, engine="rules"):
        return NotedTry(
            digest=draft.digest,
            engine=engine,
            by=by,
            time=f"2026-01-05T09:0{minute}:00Z",
            cases=cases,
            wording=wording,
        )

    assert list_tries(place, draft) == (
        noted("Ben", 2, "f2"),
        noted("Ann", 3, "f3", engine="other"),
        noted("Ann", 4, "f0", "f1", "f4"),
    )
    assert count_tries(place, draft) == (1, 5)
    # A phrase that makes the same wording keeps its text and is of no guide.
    note_wordings(
        place,
        draft,
        {draft.digest: ("f9",)},
        "rules",
        ben,
        label="edema",
        now=lambda: next(times),
    )
    assert list_tries(place, draft)[-1] == noted("Ben", 5, "f2", "f9")
    before = list_tries(place, draft)
    note_wordings(place, draft, {}, "rules", ben)
    note(ann, "f1", version=setting.tiny)
    assert list_tries(place, draft) == before
    assert list_tries(place, setting.tiny) == ()
