"""Another output contract is a revision: drafted, checked, committed."""

from dataclasses import replace

import pytest

from loop.core.errors import DataError
from loop.core.ledger import Event, append_event, read_ledger
from loop.core.records import PromptTask
from loop.prompts.catalog import latest_version, read_version, write_version
from loop.prompts.lint import has_errors, lint_version
from loop.prompts.outputs.base import get_contract, list_contracts
from loop.prompts.outputs.label_values import LabelValues
from loop.prompts.version import frozen_blocks
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.revise.edit import SettingsEdit, edit_draft
from loop.review.revise.revision import RevisionRequest, revise

FLUID = """
judgement: guideline_ambiguous
verdicts:
- {cases: [f0, f1], label: pleural_effusion, terms: [fluid ... base]}
"""
BINARY = SettingsEdit(contract="binary")
BACK = SettingsEdit(contract="label_values")
BLOCK = f"{{# frozen: answer #}}\n{LabelValues.instruction}{{# end frozen #}}\n"


@pytest.fixture
def marked(setting):
    """Return the setting with a second version that marks how to answer."""
    second = replace(
        setting.tiny,
        number=2,
        user=setting.tiny.user.replace("{{ text }}", BLOCK + "{{ text }}"),
        parent=setting.tiny.digest,
    )
    write_version(setting.workspace, second)
    event = Event(
        action="draft_committed",
        subject=second.ref,
        reason="mark the answer",
        payload={"digest": second.digest},
    )
    append_event(setting.workspace.ledger, event, setting.editor)
    return setting


def request(**changes):
    """Return a round that asks for the contract findings."""
    return RevisionRequest(
        **({"prompt": "tiny", "cohort": "dev", "contract": "findings"} | changes)
    )


def test_a_contract_alone_makes_the_next_version(marked):
    """No verdicts are needed, and no answer has to become better."""
    revision = revise(marked.workspace, request(why="cheaper"), marked.editor)
    assert revision.objections == ()
    assert revision.version.number == 3
    assert revision.version.contract == "findings"
    assert revision.version.why == "cheaper"
    block = frozen_blocks(revision.version.user)["answer"]
    assert block == f"\n{get_contract('findings').instruction}"
    assert (revision.check.lost, revision.check.gained) == (0, 0)
    assert read_version(marked.workspace, "tiny").digest == revision.version.digest
    last = read_ledger(marked.workspace.ledger)[-1]
    assert (last.action, last.reason) == ("draft_committed", "cheaper")


def test_without_a_reason_the_contract_is_the_reason(marked):
    """The ledger is never without one."""
    version = revise(marked.workspace, request(), marked.editor).version
    assert version.why == "answers in the contract findings"


def test_a_contract_and_verdicts_go_together(marked):
    """The verdicts' cases are checked in the new contract."""
    both = request(verdicts=marked.verdicts(FLUID))
    revision = revise(marked.workspace, both, marked.editor)
    assert revision.version.contract == "findings"
    assert revision.check.gained > 0
    assert len(revision.verdicts) == 1


@pytest.mark.parametrize("contract", list_contracts(PromptTask.JUDGE))
def test_a_contract_of_another_task_is_refused(marked, contract):
    """A prompt that reads one text is not answered about two."""
    said = f"no output contract '{contract}' for a prompt whose task is extract"
    known = r" \(known: binary, findings, label_values\)"
    with pytest.raises(DataError, match=said + known):
        revise(marked.workspace, request(contract=contract), marked.editor)


def test_verdicts_must_still_gain_in_another_contract(marked):
    """Only a contract by itself is excused from changing an answer to a right one."""
    text = FLUID.replace("fluid ... base", "never written anywhere")
    both = request(verdicts=marked.verdicts(text))
    revision = revise(marked.workspace, both, marked.editor)
    assert revision.version is None
    assert "no targeted case was fixed or improved" in revision.objections


def test_the_same_contract_again_makes_no_version(marked):
    """No wording changed."""
    same = request(contract="label_values")
    revision = revise(marked.workspace, same, marked.editor)
    assert revision.draft is revision.version is None
    assert latest_version(marked.workspace, "tiny").number == 2


def test_a_kept_draft_keeps_its_contract(marked):
    """A second round on the draft commits it as it is."""
    kept = revise(marked.workspace, request(keep_draft=True), marked.editor)
    assert kept.version is None
    assert not kept.objections
    again = request(prompt=kept.draft.ref, contract="")
    revision = revise(marked.workspace, again, marked.editor)
    assert revision.version.contract == "findings"


def test_a_contract_named_by_hand_needs_its_own_words(marked):
    """A draft that names one contract and asks in another's words is refused."""
    parent = latest_version(marked.workspace, "tiny")
    draft = replace(
        parent, number=0, draft="mixed", parent=parent.digest, contract="findings"
    )
    write_version(marked.workspace, draft)
    mixed = request(prompt="tiny@draft:mixed", contract="")
    revision = revise(marked.workspace, mixed, marked.editor)
    assert revision.version is None
    assert any("frozen block 'answer'" in found.what for found in revision.lint)


def test_other_frozen_blocks_stay_frozen(marked):
    """A new contract is no way around them."""
    kept = revise(marked.workspace, request(keep_draft=True), marked.editor)
    user = kept.draft.user.replace("Answer with one", "Please answer with one")
    write_version(marked.workspace, replace(kept.draft, draft="polite", user=user))
    polite = request(prompt="tiny@draft:polite", contract="")
    revision = revise(marked.workspace, polite, marked.editor)
    assert revision.version is None
    assert "lint found errors" in revision.objections


@pytest.mark.parametrize(
    ("contract", "problem"),
    [
        (
            "findngs",
            r"no output contract 'findngs' \(known: binary, findings, label_",
        ),
        ("", r"nothing says what to change in tiny@v2.*--verdicts.*--contract"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(
    marked, contract, problem
):
    """The message names the contracts, or the options."""
    before = marked.state()
    with pytest.raises(DataError, match=problem):
        revise(marked.workspace, request(contract=contract), marked.editor)
    assert marked.state() == before


def test_a_prompt_that_does_not_mark_how_to_answer_is_refused(setting):
    """Where the answer is described cannot be guessed."""
    before = setting.state()
    with pytest.raises(DataError, match="no template has a frozen block 'answer'"):
        revise(setting.workspace, request(), setting.editor)
    assert setting.state() == before


def test_a_contract_without_uncertain_is_a_revision_like_any_other(marked):
    """Drafted, checked on the same cases by `rules`, committed."""
    revision = revise(marked.workspace, request(contract="binary"), marked.editor)
    assert revision.objections == ()
    assert revision.version.contract == "binary"
    block = frozen_blocks(revision.version.user)["answer"]
    assert block == f"\n{get_contract('binary').instruction}"


def test_an_open_draft_may_change_its_contract_and_back(marked, store):
    """By itself or with a guide; what lint says of it is that it is clean."""
    begun = begin_draft(
        marked.workspace,
        store,
        DraftRequest(prompt="tiny", cohort="dev"),
        marked.editor,
    )
    ref = begun.draft.ref
    made = edit_draft(marked.workspace, ref, (), marked.editor, settings=BINARY)
    found = read_version(marked.workspace, ref)
    assert found == made.draft
    assert found.contract == "binary"
    assert not any("frozen block" in one.what for one in made.lint)
    back = edit_draft(marked.workspace, ref, (), marked.editor, settings=BACK)
    assert back.draft.digest == begun.draft.digest


def test_a_template_of_another_contract_than_is_read_is_found(marked):
    """A model told to answer in three values would be unreadable in two."""
    parent = latest_version(marked.workspace, "tiny")
    mixed = replace(parent, contract="binary")
    (line,) = [
        one.what for one in lint_version(mixed, labels=mixed.labels) if not one.holds
    ]
    assert line == (
        "frozen block 'answer' asks for the contract label_values, and prompt.yaml "
        "names binary"
    )
    assert not has_errors(lint_version(parent, labels=parent.labels))
