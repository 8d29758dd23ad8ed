"""A saved DSPy program, read back as the version that it is, or would become.

An exported program refuses to run once it is changed. What a DSPy optimizer made of it
can still come back: new instructions become words of the system message, demos become
exemplars, and everything else is refused with what could not be mapped. What comes
back is held as tight as any wording that a machine proposed.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from loop.core.clock import Clock, utc_now
from loop.core.errors import ConflictError, DataError
from loop.core.files import read_text
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Exemplar, Item, Value
from loop.core.safe_text import quoted
from loop.optimize.proposals import (
    INSTRUCTIONS,
    ProposalReader,
    RefusedProposal,
    draft_proposal,
    list_components,
    read_private_wording,
)
from loop.prompts.catalog import list_versions, read_version
from loop.prompts.guides import dump_guides
from loop.prompts.lint import fold_phrase
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import Call, plan_prompts
from loop.prompts.version import (
    CallPlan,
    PromptVersion,
    frozen_blocks,
    with_masked_shots,
)
from loop.review.revise.begin import find_start, require_dev
from loop.review.revise.wording import Authorship
from loop.review.status import read_kept
from loop.run.store import Store

_EMPTY: Final = "Answer about the case."
"""Instructions of a program whose prompt has no system message."""


class ReadProgram(NamedTuple):
    """What a saved program is."""

    version: PromptVersion
    """The version that it was exported from, with what was changed."""

    draft: str
    """Reference of the draft with it; empty where nothing was changed."""

    stated: bool = True
    """Whether it says which version it was exported from; DSPy drops that when it saves
    a program, and its words alone may be those of several versions."""


def begin_from_program(
    workspace: WorkspacePaths,
    store: Store,
    prompt: str,
    cohort: str,
    path: Path,
    actor: Actor,
    *,
    why: str = "",
    now: Clock = utc_now,
) -> ReadProgram:
    """Return what the program saved at `path` is; a draft is written if it changed.

    Parameters
    ----------
    prompt
        The newest version, which the program was exported from.
    cohort
        Dev cohort of the draft, which nothing in the program may be copied from.
    why
        Reason of the draft; where it was read from when empty.

    Raises
    ------
    DataError
        It is no saved program, was exported from a version that is not here, or
        something of it cannot be mapped; says what.
    ConflictError
        `prompt` is not the newest version, or the program is a changed one of an older.
    """
    base = find_start(workspace, prompt).base
    text = read_text(path)
    stated = _stated_digest(text)
    if stated and stated != base.digest:
        older = _find_version(workspace, base.name, stated, path)
        if read_program(ProposalReader(older), text, path).digest == older.digest:
            return ReadProgram(older, "")
        raise ConflictError(
            f"{path} was exported from {older.ref} and changed, and {base.ref} is "
            f"newer. Export {base.ref} and change that program, or write the wording "
            f"into a draft with `ranloop draft begin {base.name}`."
        )
    members = require_dev(workspace, cohort)
    comments = [one.verdict.comment for one in read_kept(store, workspace, cohort)]
    reader = ProposalReader(base, read_private_wording(workspace, members, comments))
    version = read_program(reader, text, path)
    if version.digest == base.digest:
        return ReadProgram(version, "", stated=bool(stated))
    reason = why or f"read from the DSPy program {path.name}"
    by = Authorship(actor.name, now(), reason)
    draft = draft_proposal(workspace, base, version, cohort, by)
    return ReadProgram(version, draft.ref, stated=bool(stated))


def _stated_digest(text: str) -> str:
    """Return the digest of the version that a program says it is of; empty for none."""
    try:
        stated = json.loads(text)["metadata"]["ranloop"]["digest"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return ""
    return stated if isinstance(stated, str) else ""


def _find_version(
    workspace: WorkspacePaths, name: str, digest: str, source: Path
) -> PromptVersion:
    """Return the committed version of a prompt with that digest."""
    for number in reversed(list_versions(workspace, name)):
        version = read_version(workspace, f"{name}@v{number}")
        if version.digest == digest:
            return version
    raise DataError(
        f"{source} was exported from a version that is none of {name} in this "
        f"workspace ({digest[:12]}). Export the newest one here, and change that."
    )


def read_program(
    reader: ProposalReader, text: str, source: Path | str
) -> PromptVersion:
    """Return the version that a saved program makes of the reader's version.

    A program that was saved as it was exported gives the same digest.

    Parameters
    ----------
    text
        State of a program as DSPy saves it: of ``program.json``, of ``dspy.Predict``,
        or of the loaded export.

    Raises
    ------
    DataError
        It is no saved program, or something of it cannot be mapped; says what, and
        quotes nothing.
    """
    version = reader.parent
    state = _read_state(text, source)
    plan = plan_prompts(
        with_masked_shots(version), get_contract(version.contract).schema
    )
    call = _find_call(plan.calls, state, source)
    expected = _instructions(call)
    _require_fields(version, state, source)
    texts: dict[str, str] = {}
    said = str(state["signature"]["instructions"])
    if said != expected:
        _require_joint(version, "instructions", source)
        texts[INSTRUCTIONS] = _words(version, said, source)
    demos = state.get("demos") or []
    if demos:
        _require_joint(version, "demos", source)
        texts |= _with_exemplars(version, call, demos, source)
    read = reader.read(texts)
    if isinstance(read, RefusedProposal):
        more = f" ({read.detail})" if read.detail else ""
        raise DataError(
            f"{source}: what was changed of {read.component} cannot come back: "
            f"{read.objection}{more}. Change the program, or write the wording into a "
            f"draft yourself with `ranloop draft begin {version.name}`."
        )
    return read


def _read_state(text: str, source: Path | str) -> Mapping[str, Any]:
    """Return the state of the one predictor that a saved program has."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_program(source) from error
    if not isinstance(data, dict):
        raise _no_program(source)
    if "signature" in data:
        found = [data]
    else:
        found = [
            one
            for name, one in data.items()
            if name != "metadata" and isinstance(one, dict) and "signature" in one
        ]
    if len(found) != 1:
        raise DataError(
            f"{source} has {len(found)} predictors, and an exported program has one. "
            "Save the program that `load` of its program.py returned."
        )
    state = found[0]
    signature = state["signature"]
    if not isinstance(signature, dict) or not isinstance(
        signature.get("instructions"), str
    ):
        raise _no_program(source)
    return state


def _no_program(source: Path | str) -> DataError:
    return DataError(
        f"{source} is not the state of a DSPy program. Save one with "
        "program.save('changed.json')."
    )


def _find_call(
    calls: Sequence[Call], state: Mapping[str, Any], source: Path | str
) -> Call:
    """Return the call that a program asks: of several, the one with its words."""
    if len(calls) == 1:
        return calls[0]
    said = state["signature"]["instructions"]
    found = [call for call in calls if _instructions(call) == said]
    if not found:
        raise DataError(
            f"{source}: its instructions are those of no call of this version, which "
            "asks about each label by itself: instructions of one label are no words "
            "of the prompt. Change the guide of that label in a draft."
        )
    return found[0]


def _instructions(call: Call) -> str:
    """Return what DSPy keeps of the system message of a call."""
    head, *_ = call.frame.messages
    return inspect.cleandoc(head.content) or _EMPTY


def _require_fields(
    version: PromptVersion, state: Mapping[str, Any], source: Path | str
) -> None:
    """Refuse a signature with other fields: they are no part of the prompt."""
    import dspy

    from loop.release.export.program import make_signature

    exported = {
        "inputs": [[name, ""] for name in version.inputs],
        "instructions": state["signature"]["instructions"],
    }
    expected = dspy.Predict(make_signature(exported)).dump_state()["signature"]
    found = state["signature"]
    if found.get("fields") != expected["fields"]:
        raise DataError(
            f"{source}: the fields of its signature were changed, and a prompt has no "
            "place for that. Leave them as they were exported."
        )


def _require_joint(version: PromptVersion, what: str, source: Path | str) -> None:
    if version.plan is not CallPlan.JOINT:
        raise DataError(
            f"{source}: its {what} were changed, and {version.ref} asks about each "
            "label by itself: what one program says of one label is not the prompt. "
            "Change the guide of that label in a draft."
        )


def _words(version: PromptVersion, said: str, source: Path | str) -> str:
    """Return the component of the system message that renders to `said`."""
    component = list_components(version).get(INSTRUCTIONS)
    if component is None:
        raise DataError(
            f"{source}: its instructions were changed, and the system message of "
            f"{version.ref} has template code or no words: what was changed cannot be "
            "told from the guides in it. Change them in a draft."
        )
    words = said.replace("{{", "{{'{'}}{").replace("{%", "{{'{'}}%")
    words = words.replace("{#", "{{'{'}}#")
    for name, source_text in frozen_blocks(version.system).items():
        block = source_text.strip("\n")
        if words.count(block) != 1:
            raise DataError(
                f"{source}: the frozen text {quoted(name)} was changed in its "
                "instructions. Put it back as it was."
            )
        marks = f"{{# frozen: {name} #}}\n{{# end frozen #}}"
        words = words.replace(block, marks)
    end = "\n" if component.endswith("\n") else ""
    return words + end


def _with_exemplars(
    version: PromptVersion, call: Call, demos: object, source: Path | str
) -> dict[str, str]:
    """Return the guides with an exemplar for each answer that a demo shows.

    A label that a demo's answer finds nowhere in its text gets none.
    """
    if version.inputs != ("text",) or not isinstance(demos, list):
        raise DataError(
            f"{source}: it has demos, and {version.ref} does not read single texts: "
            "they cannot become exemplars. Remove them from the program."
        )
    contract = get_contract(version.contract)
    guides = {guide.label: guide for guide in version.guides}
    for number, demo in enumerate(demos, 1):
        text, answer = _demo_texts(demo, number, source)
        item = Item(id=f"demo {number}", variables={"text": text})
        reading = contract.read(answer, call.frame.fields, item)
        made = {
            label: Exemplar(
                text=text,
                value=Value(field.value),
                evidence=text[field.spans[0].start : field.spans[0].end],
            )
            for label, field in (reading.fields or {}).items()
            if label in guides and field.spans and field.value in set(Value)
        }
        if not made:
            raise DataError(
                f"{source}: demo {number} says of no label where in its text the "
                "evidence stands, so it cannot become an exemplar. Remove it from the "
                "program."
            )
        for label, exemplar in made.items():
            guide = guides[label]
            known = {fold_phrase(one.text) for one in guide.exemplars}
            if fold_phrase(exemplar.text) not in known:
                guides[label] = replace(guide, exemplars=(*guide.exemplars, exemplar))
    return {
        guide.label: dump_guides([guides[guide.label]])
        for guide in version.guides
        if guides[guide.label] != guide
    }


def _demo_texts(demo: object, number: int, source: Path | str) -> tuple[str, str]:
    if isinstance(demo, dict):
        text, answer = demo.get("text"), demo.get("answer")
        if isinstance(text, str) and isinstance(answer, str):
            return text, answer
    raise DataError(
        f"{source}: demo {number} has no text with an answer, so it cannot become an "
        "exemplar. Remove it from the program."
    )
