"""Searches with GEPA: a language model reflects on errors and proposes guides.

GEPA proposes, and that is all it does here: its scores steer where it looks next, and
what it found is selected, estimated and decided on like any other candidate. It gets no
folder: a search that was killed is searched again, with every answer remembered, so
that nothing is asked twice and nothing is pickled.

References
----------
Agrawal LA, Tan S, Soylu D, et al. GEPA: reflective prompt evolution can outperform
reinforcement learning. arXiv 2507.19457, 2025.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import EngineError
from loop.core.records import Outcome, PromptTask
from loop.optimize.ground import Answers
from loop.optimize.objective import Objective
from loop.optimize.proposals import (
    INSTRUCTIONS,
    Objection,
    ProposalReader,
    Proposed,
    RefusedProposal,
)
from loop.optimize.reflect import Reflector
from loop.optimize.splits import Rows, SeenCases
from loop.prompts.diff import show_clarification, show_exemplar
from loop.prompts.guides import dump_guides
from loop.prompts.version import PromptVersion
from loop.review.status import KeptVerdict, VerdictState
from loop.review.verdict import Judgement, Verdict
from loop.run.task_fields import task_of

MINIBATCH: Final = 6
"""Cases that the engine reflects on at a time; a proposal is tried on the same."""

_MOST_RULES: Final = 12
"""Wordings of verdicts that a question lists at most."""

_GUIDE_TASK: Final = """\
You revise the guide of one label of a prompt that reads radiology reports. The guide
is YAML, and a clinician decides afterwards whether it is used. This is the guide:

```yaml
<curr_param>
```

These are reports that were read with it, what was answered about the label, what is
right, and what clinicians said:

<side_info>

Work out which wordings of reports the guide lacks or misreads, and change the guide so
that they are read rightly. Keep what works and change little. Its fields are:
- name, definition: leave them as they are.
- terms: wordings that name the finding. "..." between words stands for a few other
  words, and * after a word for any ending.
- exclusions: wordings that hold a term and are not the finding.
- clarifications: a list of phrase, value (present, absent or uncertain) and note.
- counts, does_not_count, uncertain_when: a few words each.
- lexicon: by language (en), more terms, exclusions and clarifications that no language
  model is shown; wordings with ... or * belong there.

Write in your own words. Never copy a sentence of a report, and never write anything of
one patient: no names, dates or numbers. A wording is the few words that name a finding.
Write no template code, no YAML tags, and no orders to the reader. Give the whole guide,
its first line the label, as YAML between lines of ``` and nothing else.
"""

_INSTRUCTIONS_TASK: Final = """\
You revise the general instructions of a prompt that reads radiology reports. A
clinician decides afterwards whether they are used. These are the instructions:

```
<curr_param>
```

These are reports that were read with them, what was answered, what is right, and what
clinicians said:

<side_info>

Work out which rule of reading is missing or wrong for all labels, and change the
instructions a little. Leave lines that begin with {# as they are. Write in your own
words; never copy a sentence of a report or anything of one patient. Give the whole
instructions between lines of ``` and nothing else.
"""


_JUDGE_GUIDE_TASK: Final = """\
You revise the guide of one category of errors of a prompt that compares a candidate
radiology report with a reference. The guide is YAML, and a clinician decides afterwards
whether it is used. This is the guide:

```yaml
<curr_param>
```

These are pairs of reports that were judged with it, how many errors of the category
were counted in the candidate, how many most readers count, and what clinicians said:

<side_info>

Work out which differences are counted and are no error for the readers, which ones the
readers count and the guide misses, and which are weighed otherwise, and change the
guide so that the counts are theirs. Keep what works and change little. Its fields are:
- name, definition: leave them as they are.
- counts, does_not_count: a few words each.
- clarifications: a list of phrase, value (significant, insignificant or no_error) and
  note. A phrase such as "small for trace" is about candidates that say the words before
  "for" where the reference says those after it.

Write in your own words. Never copy a sentence of a report, and never write anything of
one patient: no names, dates or numbers. Write no template code, no YAML tags, and no
orders to the reader. Give the whole guide, its first line the category, as YAML between
lines of ``` and nothing else.
"""

_JUDGE_INSTRUCTIONS_TASK: Final = (
    _INSTRUCTIONS_TASK.replace(
        "a prompt that reads radiology reports",
        "a prompt that compares a candidate\nradiology report with a reference",
    )
    .replace(
        "These are reports that were read with them",
        "These are pairs that were judged with them",
    )
    .replace("what was answered", "how many errors were\ncounted")
    .replace("rule of reading", "rule of comparing")
    .replace("for all labels", "for all categories")
)


def question_templates(
    components: Sequence[str], task: PromptTask = PromptTask.EXTRACT
) -> dict[str, str]:
    """Return for each component how an engine is asked to revise it.

    ``<curr_param>`` stands for the text and ``<side_info>`` for the cases.

    Parameters
    ----------
    task
        Of the prompt: guides of a judge are about errors.
    """
    judges = task is PromptTask.JUDGE
    guide = _JUDGE_GUIDE_TASK if judges else _GUIDE_TASK
    words = _JUDGE_INSTRUCTIONS_TASK if judges else _INSTRUCTIONS_TASK
    return {name: words if name == INSTRUCTIONS else guide for name in components}


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidByClinicians:
    """What standing verdicts say of cases and labels."""

    by_pair: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Case id and label to what was said, as one text."""

    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Label to wordings that clinicians asked for, on any case."""

    disputed: frozenset[tuple[str, str]] = frozenset()
    """Case id and label whose reference a clinician calls wrong, or whose text has a
    defect: no engine is to learn from them."""


def gather_verdicts(
    kept: Sequence[KeptVerdict], *, comments: bool = False
) -> SaidByClinicians:
    """Return what a reflecting engine learns from verdicts.

    Parameters
    ----------
    kept
        Verdicts on the cohort; those taken back or superseded are left out.
    comments
        Whether comments are told: they are private notes of the team.
    """
    by_pair: dict[tuple[str, str], str] = {}
    rules: dict[str, tuple[str, ...]] = {}
    disputed: set[tuple[str, str]] = set()
    for one in kept:
        if one.state in (VerdictState.WITHDRAWN, VerdictState.SUPERSEDED):
            continue
        verdict = one.verdict
        lines = list(_wordings_of(verdict))
        if lines:
            known = rules.get(verdict.label, ())
            rules[verdict.label] = tuple(dict.fromkeys((*known, *lines)))
        for pair in one.pairs:
            if verdict.judgement in (
                Judgement.REFERENCE_WRONG,
                Judgement.SOURCE_TEXT_DEFECT,
            ):
                disputed.add(pair)
            said = "; ".join((*_summary(verdict, comments=comments), *lines))
            by_pair[pair] = f"{by_pair[pair]}\n{said}" if pair in by_pair else said
    return SaidByClinicians(by_pair=by_pair, rules=rules, disputed=frozenset(disputed))


def _summary(verdict: Verdict, *, comments: bool) -> Iterator[str]:
    yield verdict.judgement.value.replace("_", " ")
    if verdict.context is not None:
        yield f"hard because of {verdict.context.value.replace('_', ' ')}"
    if verdict.correct_value is not None:
        yield f"right is {verdict.correct_value}"
    if verdict.correct_counts is not None:
        significant, other = verdict.correct_counts
        yield f"right is {significant} significant, {other} insignificant"
    if comments and verdict.comment.strip():
        yield f"comment: {verdict.comment.strip()}"


def _wordings_of(verdict: Verdict) -> Iterator[str]:
    edits = verdict.edits
    yield from (f"term: {one}" for one in edits.terms)
    yield from (f"exclusion: {one}" for one in edits.exclusions)
    yield from (f"rule: {show_clarification(one)}" for one in edits.clarifications)
    yield from (f"example: {show_exemplar(one)}" for one in edits.exemplars)
    yield from (f"general rule: {one}" for one in edits.general_rules)


def search_gepa(
    objective: Objective,
    reader: ProposalReader,
    reflector: Reflector,
    cases: SeenCases,
    *,
    labels: Sequence[str],
    budget: int,
    said: SaidByClinicians | None = None,
    seed: int = 0,
) -> Proposed:
    """Return what GEPA finds for some labels with a budget of scored cases.

    Parameters
    ----------
    reader
        Reads the proposals; its parent is the version that `objective` began with.
    cases
        Those of `search` are reflected on; GEPA keeps its Pareto front on `select`.
    labels
        Labels whose guides may change, those that need it most first.
    budget
        Cases that may be scored, one candidate on one case each. GEPA goes over it by
        less than two minibatches and the cases of `select`.
    said
        What clinicians said, for the questions.

    Raises
    ------
    EngineError
        The answering engine failed on too many cases, or the reflecting one gave too
        few answers.
    ValueError
        A label is none of those that are scored.
    """
    import gepa

    adapter = _Adapter(objective, reader, tuple(labels), said or SaidByClinicians())
    adapter.begin(cases.search)
    if not adapter.wrong:
        return Proposed((), 0)
    names = [*labels, *([INSTRUCTIONS] if _reads_words(objective, reader) else [])]
    task = task_of(reader.parent)
    proposing = _Proposing(reader, reflector, question_templates(names, task))
    result = gepa.optimize(
        seed_candidate={name: reader.components[name] for name in names},
        trainset=cases.search.tolist(),
        valset=cases.select.tolist(),
        adapter=adapter,
        frontier_type="hybrid",
        module_selector=_ByNeed(tuple(labels), INSTRUCTIONS in names),
        batch_sampler=_Minibatches(cases.search, adapter.wrong, seed),
        reflection_strategy=proposing,
        # Right everywhere, and of counts by every reader.
        perfect_score=objective.ground.best,
        max_metric_calls=budget,
        stop_callbacks=lambda _: proposing.error is not None or not adapter.wrong,
        logger=_Silence(),
        run_dir=None,
        track_best_outputs=False,
        seed=seed,
        raise_on_exception=True,
    )
    if proposing.error is not None:
        raise proposing.error
    read = [reader.read(one) for one in result.candidates]
    found = {
        one.digest: one
        for one in read
        if isinstance(one, PromptVersion) and one.digest != reader.parent.digest
    }
    return Proposed(
        candidates=tuple(found.values()),
        calls=int(result.total_metric_calls or 0),
        proposals=proposing.proposals,
        refused=dict(proposing.refused),
    )


def _reads_words(objective: Objective, reader: ProposalReader) -> bool:
    """Whether the answering engine reads the system message, and it may change."""
    is_model = objective.engine.name.partition(":")[0] not in ("rules", "chexbert")
    return is_model and INSTRUCTIONS in reader.components


class _Silence:
    """GEPA's logger: its lines hold texts of candidates and tracebacks."""

    def log(self, message: str) -> None:
        """Drop a line."""


class _ScoredCase(NamedTuple):
    """How one candidate answered one case."""

    row: int
    answers: Answers
    points: NDArray[np.float64]
    """Of the searched labels; NaN where nothing decides."""

    wrong: NDArray[np.bool_]
    """Which of these labels are wrong."""

    lost: bool = False
    """Whether the engine failed."""


class _Adapter:
    """What GEPA asks of us: scores of candidates, and what to reflect on."""

    propose_new_texts = None

    def __init__(
        self,
        objective: Objective,
        reader: ProposalReader,
        labels: tuple[str, ...],
        said: SaidByClinicians,
    ) -> None:
        ground = objective.ground
        unknown = [one for one in labels if one not in ground.labels]
        if unknown or not labels:
            named = ", ".join(unknown) or "none named"
            raise ValueError(f"labels that are not scored: {named}")
        self._objective = objective
        self._reader = reader
        self._labels = labels
        self._said = said
        self._columns = [ground.labels.index(one) for one in labels]
        self._parent: dict[int, float] = {}
        self._searched: frozenset[int] = frozenset()
        self._best, self._worst = ground.best, ground.worst
        self.wrong: dict[int, None] = {}
        """Cases of the search that the candidate asked last answered wrongly, each by
        its place in the cohort, in the order in which that was seen."""

    def begin(self, rows: Rows) -> None:
        """Ask the parent about the cases of a search."""
        judged = self._judge(self._reader.parent, rows)
        self._searched = frozenset(rows.tolist())
        self._parent = {one.row: self._mean(one) for one in judged if not one.lost}
        self._note(judged)

    def _note(self, judged: Sequence[_ScoredCase]) -> None:
        for one in judged:
            if one.wrong.any():
                self.wrong.setdefault(one.row)
            else:
                self.wrong.pop(one.row, None)

    def evaluate(
        self,
        batch: list[int],
        candidate: dict[str, str],
        capture_traces: bool = False,
    ) -> Any:
        """Return GEPA's evaluation of `candidate` on the cases of `batch`."""
        from gepa import EvaluationBatch

        read = self._reader.read(candidate)
        if isinstance(read, RefusedProposal):  # nothing was asked, and nothing is spent
            return EvaluationBatch(
                outputs=[None] * len(batch),
                scores=[self._worst] * len(batch),
                trajectories=[],
                num_metric_calls=0,
            )
        judged = self._judge(read, np.array(batch, dtype=np.intp))
        self._note([one for one in judged if one.row in self._searched])
        return EvaluationBatch(
            outputs=[None] * len(batch),
            # What the engine failed on is no gain and no loss against the parent.
            scores=[
                self._parent.get(one.row, self._best) if one.lost else self._mean(one)
                for one in judged
            ],
            trajectories=judged if capture_traces else None,
            objective_scores=[
                {
                    label: float(one.points[place])
                    for place, label in enumerate(self._labels)
                    if not np.isnan(one.points[place])
                }
                for one in judged
            ],
        )

    def make_reflective_dataset(
        self, candidate: dict[str, str], batch: Any, components: list[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """Return what an engine is shown to revise each component."""
        judged: list[_ScoredCase] = batch.trajectories
        read = self._reader.read(candidate)
        # What is refused was not asked, and has nothing to be reflected on.
        version = self._reader.parent if isinstance(read, RefusedProposal) else read
        return {
            name: list(
                self._records(
                    version, judged, self._labels if name == INSTRUCTIONS else (name,)
                )
            )
            for name in components
        }

    def _records(
        self,
        version: PromptVersion,
        judged: Sequence[_ScoredCase],
        labels: Sequence[str],
    ) -> Iterator[dict[str, Any]]:
        ground = self._objective.ground
        yield {"Counts": self._confusions(judged, labels)}
        rules = [rule for label in labels for rule in self._said.rules.get(label, ())]
        if rules:
            yield {"Asked for by clinicians": "\n".join(rules[:_MOST_RULES])}
        rows = [
            one for one in judged if any(self._is_wrong(one, name) for name in labels)
        ]
        answered: tuple[Outcome | None, ...] = (None,) * len(rows)
        if ground.lists:
            items = [ground.items[one.row] for one in rows]
            # The answers that were scored: an engine with chance has them stored.
            answered = self._objective.ask_items(version, items)
        for one, outcome in zip(rows, answered, strict=True):
            case = ground.items[one.row].id
            wrong = [name for name in labels if self._is_wrong(one, name)]
            record: dict[str, Any] = {**ground.texts(one.row)}
            record |= {f"Answer about {it}": self._confusion(one, it) for it in wrong}
            if outcome is not None:
                for name in wrong:
                    said = ground.listed(outcome, name)
                    record |= {f"Listed as {name}": "\n".join(said)} if said else {}
            heard = [
                self._said.by_pair[case, name]
                for name in wrong
                if (case, name) in self._said.by_pair
            ]
            if heard:
                record["Said by clinicians"] = "\n".join(heard)
            yield record

    def _is_wrong(self, one: _ScoredCase, label: str) -> bool:
        return bool(one.wrong[self._labels.index(label)])

    def _confusion(self, one: _ScoredCase, label: str) -> str:
        column = self._columns[self._labels.index(label)]
        return self._objective.ground.tell(one.answers, one.row, column)

    def _confusions(self, judged: Sequence[_ScoredCase], labels: Sequence[str]) -> str:
        told = Counter(
            self._confusion(one, label)
            for one in judged
            for label in labels
            if self._is_wrong(one, label)
        )
        lines = [f"{count} answered {what}" for what, count in told.most_common()]
        columns = [self._labels.index(label) for label in labels]
        left_out = sum(int(np.isnan(one.points[columns]).sum()) for one in judged)
        if left_out:
            lines.append(f"{left_out} neither right nor wrong")
        cases = self._objective.ground.cases_name
        return "; ".join([*(lines or ["none wrong"]), f"of {len(judged)} {cases}"])

    def _judge(self, version: PromptVersion, rows: Rows) -> list[_ScoredCase]:
        ground = self._objective.ground
        answers = self._objective.answers(version, rows)
        points = ground.points(answers, rows)[:, self._columns]
        wrong = ground.wrong(answers, rows)[:, self._columns]
        lost = ground.lost(answers)
        for place, row in enumerate(rows):
            for column, label in enumerate(self._labels):
                if (ground.items[row].id, label) in self._said.disputed:
                    points[place, column] = np.nan
        # An answer that the protocol leaves out is neither right nor wrong.
        wrong &= ~np.isnan(points)
        return [
            _ScoredCase(int(row), *told)
            for row, *told in zip(
                rows, answers, points, wrong, lost.tolist(), strict=True
            )
        ]

    def _mean(self, one: _ScoredCase) -> float:
        """Return the mean points of decided answers; the best without any."""
        known = one.points[~np.isnan(one.points)]
        return float(known.mean()) if known.size else self._best


class _Proposing:
    """GEPA's reflection: asks our engine, and passes on what can be read."""

    def __init__(
        self, reader: ProposalReader, reflector: Reflector, templates: dict[str, str]
    ) -> None:
        from gepa.proposer.reflective_mutation.reflection_lm import (
            StatelessReflectionLM,
        )

        self._reader = reader
        self._reflector = reflector
        self._asking = StatelessReflectionLM(self._ask, templates, _Silence())
        self._seen: set[str] = set()
        self.error: EngineError | None = None
        self.proposals = 0
        self.refused: Counter[Objection] = Counter()

    def reflect(
        self,
        candidate: dict[str, str],
        dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components: list[str],
    ) -> tuple[Any, _Proposing]:
        """Return GEPA's proposal: texts that became a version, as it writes them."""
        from gepa.proposer.reflective_mutation.reflection_lm import ReflectionProposal

        kept: dict[str, str] = {}
        try:
            proposal, _ = self._asking.reflect(candidate, dataset, components)
        except _NoAnswerError:
            return ReflectionProposal(new_texts={}), self
        except EngineError as error:
            self.error = error
            return ReflectionProposal(new_texts={}), self
        for name, text in proposal.new_texts.items():
            self.proposals += 1
            read = self._reader.read({**candidate, name: text})
            if isinstance(read, RefusedProposal):
                self.refused[read.objection] += 1
            elif read.digest not in self._seen:
                self._seen.add(read.digest)
                guide = read.guide(name)
                kept[name] = text if guide is None else dump_guides([guide])
        return ReflectionProposal(new_texts=kept), self

    def _ask(self, prompt: str) -> str:
        answer = self._reflector.ask(prompt)
        if answer is None:
            raise _NoAnswerError
        return answer


class _NoAnswerError(Exception):
    """One question has no answer; the search goes on."""


class _ByNeed:
    """Chooses the guide to revise: of the labels wrong here, the one revised least.

    Among equals the order of the labels decides: those that fail their gate first.
    """

    def __init__(self, labels: tuple[str, ...], words: bool) -> None:
        self._labels = labels
        self._words = words
        self._chosen: Counter[str] = Counter()

    def __call__(
        self,
        state: object,
        trajectories: list[_ScoredCase],
        scores: list[float],
        candidate_idx: int,
        candidate: dict[str, str],
    ) -> list[str]:
        """Return the one component to revise."""
        wrong = [
            label
            for place, label in enumerate(self._labels)
            if any(one.wrong[place] for one in trajectories)
        ]
        names = wrong or list(self._labels)
        if self._words and len(wrong) > 1:
            # Errors of several labels may have one rule of reading in common.
            names.append(INSTRUCTIONS)
        name = min(names, key=lambda one: self._chosen[one])
        self._chosen[name] += 1
        return [name]


class _Minibatches:
    """Draws the cases to reflect on: half of them were wrong when last asked."""

    def __init__(self, rows: Rows, wrong: Mapping[int, None], seed: int) -> None:
        self._places = {int(row): place for place, row in enumerate(rows)}
        self._wrong = wrong
        self._seed = seed
        self._calls = 0

    def next_minibatch_ids(self, loader: object, state: object) -> list[int]:
        """Return places of cases in the training set."""
        rng = random.Random(f"{self._seed} {self._calls}")
        self._calls += 1
        wrong = list(self._wrong)
        others = [row for row in self._places if row not in self._wrong]
        half = min(len(wrong), MINIBATCH // 2)
        rest = min(len(others), MINIBATCH - half)
        drawn = rng.sample(wrong, half) + rng.sample(others, rest)
        return [self._places[row] for row in drawn]
