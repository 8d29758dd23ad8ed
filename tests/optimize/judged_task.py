"""Pairs that a judge counts more errors in than readers do, and what learns it."""

import csv
import json
import random
import re
from dataclasses import replace

from loop.core.ledger import Event, append_event
from loop.core.records import Clarification, Completion, ErrorWeight
from loop.labels.cohort import read_cohort
from loop.labels.error_categories import read_errors
from loop.labels.expert_ratings import (
    Judgements,
    MarkedError,
    RatingsTaking,
    add_ratings,
)
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import write_version
from loop.prompts.first_judge import first_judge
from loop.prompts.guides import dump_guides, parse_guides
from loop.prompts.outputs.base import get_contract
from loop.prompts.version import PromptVersion
from tests.optimize.made_task import StubReflector
from tests.review.scenes import EDITOR, WHEN

HARMLESS = ("quokka", "wombat", "numbat", "bilby")
"""What candidates add and no reader counts."""

FINDINGS = ("effusion", "fracture", "nodule", "mass", "edema", "consolidation")
CATEGORIES = ("false_finding", "omission")


def tell(names):
    """Return a report of findings."""
    return " ".join(f"There is one {name}." for name in names) or "Clear lungs."


def made_pairs(count=120, seed=1, *, chance=False):
    """Return pairs, and what two readers count of each: false findings, omissions.

    With `chance` the counts have nothing to do with the texts.
    """
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        known = rng.sample(FINDINGS, rng.randint(1, 3))
        kept = [one for one in known if rng.random() < 0.7]
        new = [one for one in FINDINGS if one not in known and rng.random() < 0.12]
        more = [one for one in HARMLESS if rng.random() < 0.3]
        counts = (len(new), len(known) - len(kept))
        if chance:
            counts = (rng.choice((0, 0, 1)), rng.choice((0, 0, 1, 2)))
        given = tell([*kept, *new, *more])
        rows.append((f"p{number:03}", f"{tell(known)} Film {number}.", given, counts))
    return rows


_USER = """\
{% for guide in guides %}
{{ guide.label }}: {{ guide.definition }}
{% for rule in guide.clarifications %}
- {{ rule.phrase }}: {{ rule.value }}
{% endfor %}
{% for one in guide.exemplars %}
- {{ one.text }}: {{ one.value }}
{% endfor %}
{% endfor %}

{# frozen: answer #}
[answer]{# end frozen #}

<reference>
{{ reference }}
</reference>
<candidate>
{{ candidate }}
</candidate>
"""


def make_judge(workspace) -> PromptVersion:
    """Write the judge ``tally``, with a short prompt, and return it."""
    errors = read_errors(workspace.labels)
    asked = [one for one in errors.categories if one.id in CATEGORIES]
    contract = get_contract("error_list")
    made = replace(
        first_judge("tally", asked, contract),
        user=_USER.replace("[answer]", contract.instruction),
        author=EDITOR.name,
        time="2026-01-05T09:00:00Z",
        why="a start",
    )
    write_version(workspace, made)
    event = Event(
        action="draft_committed",
        subject=made.ref,
        reason="a start",
        payload={"digest": made.digest},
    )
    append_event(workspace.ledger, event, EDITOR, now=lambda: WHEN)
    return made


def add_pairs(workspace, folder, rows, *, name="rp", role="dev", marked=True):
    """Import pairs, three to a patient, with what two readers marked."""
    path = folder / f"{name}.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "patient", "reference", "candidate"])
        for number, (case, *texts, _) in enumerate(rows):
            writer.writerow([case, f"x{number // 3}", *texts])
    options = ImportOptions(name=name, role=role, source="synthetic", licence="-")
    import_cohort(workspace, path, options, actor=EDITOR)
    if marked:
        given = Judgements(errors=tuple(mark_errors(rows)))
        how = RatingsTaking(actor=EDITOR)
        add_ratings(workspace, read_cohort(workspace, name), given, how)


def mark_errors(rows):
    """Yield what two readers, who agree, mark in each pair."""
    for case, *_, counts in rows:
        for reader in ("r1", "r2"):
            if not any(counts):
                yield MarkedError(case, reader)
            for category, count in zip(CATEGORIES, counts, strict=True):
                for _ in range(count):
                    yield MarkedError(case, reader, category, "significant")


def nouns(text):
    """Return the findings that a report names."""
    return re.findall(r"one (\w+)", text)


class CountingJudge:
    """Counts what only one report names, unless a guide says that it is no error."""

    failing: frozenset[str] = frozenset()
    """Words of candidates on which it fails."""

    unread: frozenset[str] = frozenset()
    """Words of candidates of which its answer cannot be read."""

    def __init__(self, rest, settings):
        """Take what the registry gives an engine."""

    def identity(self):
        """Return what it is."""
        return {"engine": "counting"}

    def complete(self, prompts):
        """Yield an answer for each pair."""
        for index, prompt in enumerate(prompts):
            yield index, self._answer(prompt)

    def _answer(self, prompt):
        texts = prompt.item.variables
        theirs, given = nouns(texts["reference"]), nouns(texts["candidate"])
        if self.failing & set(given):
            return Completion("", "error", "lost")
        if self.unread & set(given):
            return Completion("I would rather not say.")
        ruled = {
            (guide.label, rule.phrase): rule.value
            for guide in prompt.frame.guides
            for rule in guide.clarifications
        }
        ruled |= {
            (guide.label, one.evidence): one.value
            for guide in prompt.frame.guides
            for one in guide.exemplars
        }
        listed = []
        for category, only, other in (
            ("false_finding", given, theirs),
            ("omission", theirs, given),
        ):
            for word in only:
                weight = ruled.get((category, word), ErrorWeight.SIGNIFICANT)
                if word not in other and weight is not ErrorWeight.NO_ERROR:
                    error = {"category": category, "why": "only there"}
                    error |= {"significant": weight is ErrorWeight.SIGNIFICANT}
                    error |= {"reference": "", "candidate": word}
                    listed.append(error)
        matched = len(set(theirs) & set(given))
        return Completion(json.dumps({"errors": listed, "matched_findings": matched}))


_GUIDE = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
_PAIR = re.compile(
    r"## Answer about (\w+)\n(\d+) significant, (\d+) \w+; right is (\d+) sign"
    r".*?\n\n## Listed as \w+\n(.*?)\n\n",
    re.DOTALL,
)


def propose_ruling(question):
    """Return the guide of a question with a word that is no error, if one is listed.

    Of a question that shows no pair, names that it may go by chance.
    """
    if "## basic_instruction\n" in question:
        text = question.rpartition("## basic_instruction\n")[2].partition("\n\n## ")[0]
        (guide,) = parse_guides(text.strip() + "\n", "the question")
        words = random.Random(len(question)).sample((*HARMLESS, FINDINGS[0]), 3)
        return dump_guides([_with(guide, *words)])
    (guide,) = parse_guides(_GUIDE.search(question)[1], "the question")
    known = {one.phrase for one in guide.clarifications}
    for _, counted, _, right, listed in _PAIR.findall(question):
        if int(counted) > int(right):
            for word in re.findall(r"significant: (\w+)", listed):
                if word not in known:
                    return f"```yaml\n{dump_guides([_with(guide, word)])}```"
    return f"```yaml\n{dump_guides([guide])}```"


def _with(guide, *words):
    rules = tuple(
        Clarification(phrase=one, value=ErrorWeight.NO_ERROR) for one in words
    )
    return replace(guide, clarifications=(*guide.clarifications, *rules))


class JudgeReflector(StubReflector):
    """Proposes by `propose_ruling`, and keeps what it was asked."""

    asked: tuple[str, ...] = ()

    def complete(self, prompts):
        """Yield a proposal for each question."""
        for index, prompt in enumerate(prompts):
            question = prompt.messages[-1].content
            JudgeReflector.asked = (*JudgeReflector.asked, question)
            yield index, Completion(propose_ruling(question))
