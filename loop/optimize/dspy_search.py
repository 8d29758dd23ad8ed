"""Searches with DSPy's optimizers, over a program whose predictors carry guides.

Each predictor has the text of one label's guide as its instructions and exemplars as
its demos; together they are a candidate version, which is asked over the same renderer
as any version. DSPy is given the ids of cases and exemplars and never a text of them,
so that nothing it logs, stores or shows to a model is case text. It reaches our engine
by its own engine contract. What it scores steers its search and decides nothing.

References
----------
Khattab O, Singhvi A, Maheshwari P, et al. DSPy: compiling declarative language model
calls into self-improving pipelines. ICLR 2024.
Opsahl-Ong K, Ryan MJ, Purtell J, et al. Optimizing instructions and demonstrations for
multi-stage language model programs. EMNLP 2024:9340-9366.
"""

from __future__ import annotations

import io
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from loop.core.digests import digest_json
from loop.core.errors import DataError, EngineError, LoopError
from loop.core.records import Exemplar, Item, PromptTask, ValueCode
from loop.optimize.ground import Answers
from loop.optimize.nearest import fit_exemplars
from loop.optimize.objective import Objective
from loop.optimize.proposals import (
    Objection,
    ProposalReader,
    Proposed,
    RefusedProposal,
)
from loop.optimize.reflect import Reflector
from loop.optimize.splits import Rows, SeenCases
from loop.prompts.guides import dump_guides, parse_guides
from loop.prompts.lint import fold_phrase
from loop.prompts.version import PromptVersion
from loop.run.task_fields import task_of

MOST_DEMOS: Final = 3
"""Exemplars that a guide is given at most, besides those that it has."""

_CASE, _EXEMPLAR = "case", "exemplar"

_HEAD: Final = "# YAML\n"
"""First line of instructions: DSPy takes away the indentation that all others share,
as of a docstring, and that of a guide means something."""

_TASKS: Final = {
    PromptTask.EXTRACT: """\
The instruction is the guide of one label of a prompt that reads radiology reports, as
YAML; a clinician decides afterwards whether it is used. Propose the whole guide as
YAML and nothing else, its first line the label. Keep name and definition. Its other
fields are terms, exclusions, clarifications (a list of phrase, value and note), counts,
does_not_count and uncertain_when. Write in your own words, no template code, no YAML
tags, and no orders to the reader.
""",
    PromptTask.JUDGE: """\
The instruction is the guide of one category of errors of a prompt that compares a
candidate radiology report with a reference, as YAML; a clinician decides afterwards
whether it is used. Propose the whole guide as YAML and nothing else, its first line the
category. Keep name and definition. Its other fields are counts, does_not_count and
clarifications (a list of phrase, value and note; a value is significant, insignificant
or no_error). Write in your own words, no template code, no YAML tags, and no orders to
the reader.
""",
}
"""Said to whatever proposes, before DSPy's own question, by task of the prompt."""


def search_bootstrap(
    objective: Objective,
    reader: ProposalReader,
    approved: Mapping[str, Sequence[Exemplar]],
    *,
    labels: Sequence[str],
    seed: int = 0,
) -> Proposed:
    """Return wordings with the approved exemplars that DSPy's BootstrapFewShot keeps.

    It takes first those that the prompt answers as clinicians do already, then others
    by chance: one wording a label, and one with all. No language model is asked what to
    propose.

    Parameters
    ----------
    approved
        Label to exemplars, see `loop.optimize.nearest.list_approved`. Those that a
        guide has already are left out.
    seed
        In which order they are tried.

    Raises
    ------
    EngineError
        The answering engine failed.
    """
    import dspy

    pool = _new_exemplars(reader.parent, approved, labels)
    texts: dict[str, str] = {}
    none = np.array([], dtype=np.intp)
    with _program(objective, reader, labels, pool, none) as made:
        for label, rows in pool.items():
            if not rows:
                continue
            optimizer = dspy.BootstrapFewShot(
                metric=made.program.is_right,
                max_bootstrapped_demos=MOST_DEMOS - 1,
                max_labeled_demos=MOST_DEMOS,
                max_errors=1,
            )
            order = np.random.default_rng(seed).permutation(len(rows))
            examples = [made.program.example(_EXEMPLAR, label, int(n)) for n in order]
            compiled = optimizer.compile(made.program.module, trainset=examples)
            made.require_engine()
            kept = made.program.exemplars_of(compiled, label)
            fitted = fit_exemplars(reader, label, kept) if kept else None
            if isinstance(fitted, RefusedProposal):
                made.program.note({label: fitted.detail}, fitted)
            elif fitted is not None:
                texts[label] = fitted
        wanted = [{label: text} for label, text in texts.items()]
        if len(texts) > 1:
            wanted.append(texts)
        return _proposed(reader, wanted, made)


def search_mipro(
    objective: Objective,
    reader: ProposalReader,
    reflector: Reflector,
    approved: Mapping[str, Sequence[Exemplar]],
    *,
    cases: SeenCases,
    labels: Sequence[str],
    budget: int,
    seed: int = 0,
) -> Proposed:
    """Return wordings that DSPy's MIPROv2 tries: proposed guides, approved exemplars.

    Its proposer is shown neither data nor code, and its own scores decide nothing.

    Parameters
    ----------
    cases
        It tries each combination on all of `select`; those of `search` it does not
        need, since its proposer is shown no data.
    budget
        Cases that may be scored; rounded down to whole trials, at least one.

    Raises
    ------
    DataError
        Optuna is not installed.
    EngineError
        An engine failed too often.
    """
    import dspy

    require_optuna()
    trials = max(1, budget // max(1, len(cases.select)) - 1)
    pool = _new_exemplars(reader.parent, approved, labels)
    shown = any(pool.values())
    with _program(objective, reader, labels, pool, cases.select) as made:
        examples = [
            made.program.example(_EXEMPLAR, label, number)
            for label, rows in pool.items()
            for number in range(len(rows))
        ] or [made.program.example(_CASE, "", int(row)) for row in cases.select]
        proposes = _Asking(reflector, made, task_of(reader.parent))
        asking = dspy.LM("ranloop/reflect", engine=proposes, cache=False)
        candidates = max(2, min(6, trials + 1))
        optimizer = dspy.MIPROv2(
            metric=made.program.is_right,
            prompt_model=asking,
            task_model=made.lm,
            max_bootstrapped_demos=MOST_DEMOS if shown else 0,
            max_labeled_demos=0,
            auto=None,
            num_candidates=candidates,
            num_threads=1,
            max_errors=1,
            seed=seed,
            track_stats=False,
        )
        try:
            optimizer.compile(
                made.program.module,
                trainset=examples,
                valset=[
                    made.program.example(_CASE, "", int(row)) for row in cases.select
                ],
                num_trials=trials,
                minibatch=False,
                data_aware_proposer=False,
                program_aware_proposer=False,
                fewshot_aware_proposer=False,
                tip_aware_proposer=True,
                seed=seed,
            )
        finally:
            # What an engine said is clearer than what DSPy makes of it.
            made.require_engine()
        return _proposed(reader, list(made.program.tried.values()), made)


def _proposed(
    reader: ProposalReader, wanted: Sequence[Mapping[str, str]], made: _HeldProgram
) -> Proposed:
    """Return what can be read of `wanted`, and what was refused on the way."""
    found: dict[str, PromptVersion] = {}
    for texts in wanted:
        read = reader.read(texts)
        if isinstance(read, RefusedProposal):
            made.program.note(texts, read)
        elif read.digest != reader.parent.digest:
            found.setdefault(read.digest, read)
    refused = Counter(made.program.refused.values())
    return Proposed(
        candidates=tuple(found.values()),
        calls=made.program.calls,
        proposals=len(found) + refused.total(),
        refused=dict(refused),
    )


def require_optuna() -> None:
    """Refuse to go on where Optuna, which MIPROv2 needs, is not installed.

    Raises
    ------
    DataError
        It is not; says how to install it.
    """
    try:
        import optuna  # noqa: F401
    except ImportError as error:
        raise DataError(
            "mipro needs Optuna, which is not installed. Install it with "
            "`pip install 'ranloop[optimize]'`."
        ) from error


def _new_exemplars(
    parent: PromptVersion,
    approved: Mapping[str, Sequence[Exemplar]],
    labels: Sequence[str],
) -> dict[str, tuple[Exemplar, ...]]:
    """Return the approved exemplars that the guides do not have."""
    found: dict[str, tuple[Exemplar, ...]] = {}
    for label in labels:
        guide = parent.guide(label)
        known = {fold_phrase(one.text) for one in guide.exemplars} if guide else set()
        found[label] = tuple(
            one for one in approved.get(label, ()) if fold_phrase(one.text) not in known
        )
    return found


class _AskedExample(NamedTuple):
    """What a predictor is asked about, by id."""

    kind: str
    label: str
    number: int

    @property
    def id(self) -> str:
        """As DSPy sees it: no text."""
        return f"{self.kind} {self.number}" + (
            f" of {self.label}" if self.label else ""
        )


_REFUSED: Final = "refused"
"""What a predictor answers whose instructions are no guide."""

_OPEN: Final = "open"
"""What one answers where nothing says what is right, or the engine failed."""


class _Program:
    """The program that DSPy changes, and what its texts become."""

    def __init__(
        self,
        objective: Objective,
        reader: ProposalReader,
        labels: Sequence[str],
        pool: Mapping[str, tuple[Exemplar, ...]],
        cases: Rows,
    ) -> None:
        self._objective = objective
        self._cases = cases
        self._reader = reader
        self._labels = tuple(labels)
        self._pool = pool
        self._asked: dict[str, _AskedExample] = {}
        self._now: PromptVersion | None = None
        self._exemplar_values: dict[tuple[str, str, int], str] = {}
        self._told: dict[str, Answers] = {}
        """Digest of a candidate to its answers about the cases."""

        self.error: LoopError | None = None
        self.calls = 0
        self.tried: dict[str, dict[str, str]] = {}
        """Digest of each candidate that was asked, to its texts."""

        self.refused: dict[tuple[tuple[str, str], ...], Objection] = {}
        self.module = _make_module(self, self._labels, reader.components)

    def __deepcopy__(self, memory: object) -> _Program:
        """Return itself: DSPy copies programs, and this holds a store."""
        return self

    def example(self, kind: str, label: str, number: int) -> Any:
        """Return DSPy's example of a case or an exemplar: its id alone."""
        import dspy

        asked = _AskedExample(kind, label, number)
        self._asked[asked.id] = asked
        return dspy.Example(case=asked.id).with_inputs("case")

    def labels_of(self, case: str) -> tuple[str, ...]:
        """Return the labels that are asked about `case`."""
        label = self._asked[case].label
        return (label,) if label else self._labels

    def texts(self, module: Any) -> dict[str, str]:
        """Return the text of each component that a program's predictors carry.

        An instruction that is no guide is given as it is.
        """
        found: dict[str, str] = {}
        for label, predictor in module.named_guides():
            text = predictor.signature.instructions.removeprefix(_HEAD)
            if text.strip() == self._reader.components[label].strip():
                text = self._reader.components[label]
            added = self._exemplars_of(label, predictor.demos)
            found[label] = _with_exemplars(label, text, added)
        return found

    def exemplars_of(self, module: Any, label: str) -> list[Exemplar]:
        """Return the exemplars that a program's predictor of one label carries."""
        predictors = dict(module.named_guides())
        return self._exemplars_of(label, predictors[label].demos)

    def _exemplars_of(self, label: str, demos: Sequence[Any]) -> list[Exemplar]:
        found: dict[str, Exemplar] = {}
        for demo in demos:
            asked = self._asked.get(str(demo.get("case", "")))
            if asked is not None and (asked.kind, asked.label) == (_EXEMPLAR, label):
                one = self._pool[label][asked.number]
                found.setdefault(fold_phrase(one.text), one)
        return list(found.values())

    def begin(self, module: Any) -> bool:
        """Take a program's texts as what is asked now; False where they are refused."""
        self._raise_again()
        texts = self.texts(module)
        read = self._reader.read(texts)
        if isinstance(read, RefusedProposal):
            self.note(texts, read)
            self._now = None
            return False
        self._now = read
        if read.digest not in self.tried:
            self.tried[read.digest] = texts
        return True

    def note(self, texts: Mapping[str, str], refusal: RefusedProposal) -> None:
        """Count a refused proposal, once."""
        # A refused combination names none of its texts.
        where = texts.get(refusal.component) or digest_json(dict(texts))
        self.refused.setdefault(((refusal.component, where),), refusal.objection)

    def answer(self, case: str, label: str) -> str:
        """Return the answer about one case or exemplar, as `is_right` reads it.

        Of a case that is what the answer is worth in points; of an exemplar what it
        says of the label.
        """
        self._raise_again()
        version = self._now
        if version is None:
            return _REFUSED
        try:
            return self._answer(version, self._asked[case], label)
        except LoopError as error:
            self.error = error
            raise

    def _raise_again(self) -> None:
        # DSPy goes on after an exception, with a score of 0.
        if self.error is not None:
            raise self.error

    def _answer(self, version: PromptVersion, asked: _AskedExample, label: str) -> str:
        if asked.kind == _CASE:
            return self._points(version, asked.number, label)
        exemplar = self._pool[asked.label][asked.number]
        if task_of(version) is PromptTask.JUDGE:
            # It is a wording and no pair: nobody can be asked what is wrong in it.
            return exemplar.value.name
        key = version.digest, asked.id, asked.number
        if key not in self._exemplar_values:
            self._exemplar_values[key] = self._ask_exemplar(version, exemplar, label)
        return self._exemplar_values[key]

    def _points(self, version: PromptVersion, row: int, label: str) -> str:
        """Return the points of a case; what the engine failed on has the parent's."""
        ground = self._objective.ground
        place, column = self._cases.tolist().index(row), ground.labels.index(label)
        for one in (version, self._reader.parent):
            # All at once: to ask an engine about each case by itself takes far longer.
            # And once: a case that the engine failed on would be asked every time.
            answers = self._told.get(one.digest)
            if answers is None:
                answers = self._objective.answers(one, self._cases)
                self._told[one.digest] = answers
            if not ground.lost(answers)[place]:
                points = float(ground.points(answers, self._cases)[place, column])
                if np.isnan(points):
                    # What is decided, and left open by the answer, is not right.
                    known = ground.truth[row, column] >= 0
                    return repr(ground.worst) if known else _OPEN
                return repr(points)
        return _OPEN

    def _ask_exemplar(
        self, version: PromptVersion, exemplar: Exemplar, label: str
    ) -> str:
        ground = self._objective.ground
        name = version.inputs[-1]
        item = Item(
            id="exemplar",
            variables=dict.fromkeys(version.inputs, "") | {name: exemplar.text},
            language=ground.cohort.language,
        )
        codes = ground.read(self._objective.ask_items(version, [item]))
        return ValueCode(int(codes[0, ground.labels.index(label)])).name

    def is_right(self, example: Any, prediction: Any, trace: Any = None) -> float:
        """Return DSPy's metric: the mean points; a bool while bootstrapping.

        What the engine failed on counts as it counts for the parent.
        """
        self.calls += trace is None
        asked = self._asked[example.case]
        if asked.kind == _EXEMPLAR:
            value = self._pool[asked.label][asked.number].value.name
            return bool(prediction[asked.label] == value)
        ground = self._objective.ground
        told = [prediction[label] for label in self._labels]
        known = [
            ground.worst if one == _REFUSED else float(one)
            for one in told
            if one != _OPEN
        ]
        mean = sum(known) / len(known) if known else ground.best
        return mean if trace is None else mean >= ground.best


def _with_exemplars(label: str, text: str, added: Sequence[Exemplar]) -> str:
    """Return the text of a guide with more exemplars; as it is where it is none."""
    if not added:
        return text
    try:
        guides = parse_guides(text, f"the proposed guide of {label}")
    except (DataError, ValueError):
        return text
    if len(guides) != 1:
        return text
    known = {fold_phrase(one.text) for one in guides[0].exemplars}
    more = [one for one in added if fold_phrase(one.text) not in known]
    return dump_guides([replace(guides[0], exemplars=(*guides[0].exemplars, *more))])


def _make_module(
    program: _Program, labels: Sequence[str], components: Mapping[str, str]
) -> Any:
    """Return the DSPy module: one predictor a label, its guide as instructions."""
    import dspy

    class Guides(dspy.Module):  # type: ignore[misc]
        """One predictor a guide; all of them together are one candidate."""

        def __init__(self) -> None:
            super().__init__()
            self.program = program
            for number, label in enumerate(labels):
                fields = {
                    "case": (str, dspy.InputField(desc="id of the case")),
                    label: (str, dspy.OutputField(desc="what the text says")),
                }
                signature = dspy.Signature(fields, _HEAD + components[label])
                setattr(self, f"guide_{number}", dspy.Predict(signature))

        def named_guides(self) -> Iterator[tuple[str, Any]]:
            """Yield each label with its predictor."""
            for number, label in enumerate(labels):
                yield label, getattr(self, f"guide_{number}")

        def forward(self, case: str) -> Any:
            """Return the answers about one case, by label."""
            self.program.begin(self)
            wanted = self.program.labels_of(case)
            found: dict[str, str] = {}
            for label, predictor in self.named_guides():
                if label in wanted:
                    found[label] = predictor(case=case)[label]
            return dspy.Prediction(**found)

    return Guides()


class _HeldProgram:
    """A program with what DSPy asks it through."""

    def __init__(self, program: _Program, lm: Any) -> None:
        self.program = program
        self.lm = lm
        self.error: EngineError | None = None
        """Why the reflecting engine gave too few answers."""

    def require_engine(self) -> None:
        """Raise what an engine said, which DSPy would have counted as a score of 0."""
        for error in (self.program.error, self.error):
            if error is not None:
                raise error


@contextmanager
def _program(
    objective: Objective,
    reader: ProposalReader,
    labels: Sequence[str],
    pool: Mapping[str, tuple[Exemplar, ...]],
    cases: Rows,
) -> Iterator[_HeldProgram]:
    """Hold the program for the length of the block, DSPy silent and without a cache."""
    import dspy

    program = _Program(objective, reader, labels, pool, cases)
    lm = dspy.LM("ranloop/answers", engine=_Answering(program), cache=False)
    silent = io.StringIO()
    context = dspy.context(lm=lm, adapter=_make_adapter(), track_usage=False)
    with _quiet(), redirect_stdout(silent), redirect_stderr(silent), context:
        yield _HeldProgram(program, lm)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the loggers of DSPy and Optuna: they write examples and scores."""
    names = ("dspy", "optuna")
    loggers = [logging.getLogger(name) for name in names]
    levels = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for one, level in zip(loggers, levels, strict=True):
            one.setLevel(level)


def _make_adapter() -> Any:
    """Return the adapter of the program and of what proposes: no words of its own."""
    import dspy

    class GuideAdapter(dspy.Adapter):  # type: ignore[misc]
        """Sends instructions and inputs as they are, and reads the answer as one."""

        def format(
            self, signature: Any, demos: list[Any], inputs: dict[str, Any]
        ) -> list[dict[str, Any]]:
            """Return the messages of one predictor."""
            (field,) = signature.output_fields
            given = (
                f"## {name}\n{inputs.get(name)}" for name in signature.input_fields
            )
            content = "\n\n".join((*given, f"## {field}"))
            return [
                {"role": "system", "content": signature.instructions or field},
                {"role": "user", "content": content},
            ]

        def parse(self, signature: Any, completion: str) -> dict[str, Any]:
            """Return the answer as the one output field."""
            (field,) = signature.output_fields
            return {field: completion}

    return GuideAdapter()


class _Answering:
    """Our engine under DSPy's engine contract: answers what a program asks."""

    supports_response_schema = False
    supported_params = ("temperature", "max_tokens", "seed")

    def __init__(self, program: _Program) -> None:
        self._program = program

    def __deepcopy__(self, memory: object) -> _Answering:
        """Return itself: there is one store."""
        return self

    def complete(self, request: Any) -> Any:
        """Return the answer to one predictor about one case."""
        _, case, *_, last = request.messages[-1].text.splitlines()
        label = last.removeprefix("## ")
        return _response(request, self._program.answer(case, label))

    def stream(self, request: Any) -> Any:
        """Return the events of `complete`."""
        from dspy.lm15 import response_to_events

        return response_to_events(self.complete(request))

    def close(self) -> None:
        """Close nothing: the engine is held by whoever opened it."""


class _Asking(_Answering):
    """The reflecting engine under DSPy's engine contract."""

    def __init__(
        self, reflector: Reflector, made: _HeldProgram, task: PromptTask
    ) -> None:
        super().__init__(made.program)
        self._reflector = reflector
        self._made = made
        self._task = _TASKS[task]

    def complete(self, request: Any) -> Any:
        """Return what the engine proposes; nothing where it gives no answer."""
        if self._made.error is not None:
            raise self._made.error
        system = request.system
        said = system if isinstance(system, str) else _joined(system)
        question = "\n\n".join(
            (self._task, said, *(message.text or "" for message in request.messages))
        )
        try:
            answer = self._reflector.ask(question)
        except EngineError as error:
            self._made.error = error
            raise
        return _response(request, _HEAD + _unfenced(answer or ""))


def _joined(parts: Any) -> str:
    return "\n".join(getattr(one, "text", "") or "" for one in parts or ())


def _unfenced(answer: str) -> str:
    """Return an answer without what stands around its fenced block, if it has one."""
    if "```" not in answer:
        return answer.strip()
    fenced = answer.split("```")[1]
    first, _, rest = fenced.partition("\n")
    return (rest if not first or first.isalpha() else fenced).strip()


def _response(request: Any, text: str) -> Any:
    from dspy.lm15 import Message, Response, TextPart, Usage

    return Response(
        id="ranloop",
        model=request.model,
        message=Message.assistant([TextPart(text)]),
        finish_reason="stop",
        usage=Usage(input_tokens=0, output_tokens=0),
    )
