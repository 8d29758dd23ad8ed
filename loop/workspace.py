"""ranloop from Python: a workspace as an object, and its steps as methods."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from html import escape
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pandas as pd

from loop.core.config import read_config
from loop.core.errors import DataError, LedgerError
from loop.core.files import write_atomic
from loop.core.ledger import Actor, acting_name
from loop.core.paths import WorkspacePaths, find_workspace
from loop.core.people.roster import require_distinct
from loop.core.safe_text import unshielded
from loop.core.yaml_files import dump_yaml
from loop.documents.templates import template_folder
from loop.engines.base import masked
from loop.evaluate.ceiling import Ceiling, read_ceiling
from loop.evaluate.compare import Comparison, compare_runs
from loop.evaluate.documents import render_csv, render_html
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.failures import (
    FailureKind,
    failing_cases,
    failures_table,
    read_evidence,
)
from loop.evaluate.gates import GateVerdict
from loop.evaluate.plan import (
    CANDIDATES,
    SampleSizePlan,
    find_planned_run,
    plan_cohort,
)
from loop.evaluate.protocol import list_policies, register_protocol
from loop.evaluate.recording import record_evaluation
from loop.evaluate.results import Evaluation, certify_evaluation
from loop.evaluate.score_history import history_table, read_scores
from loop.labels.ballots import read_cohort_votes
from loop.labels.cohort import list_cohorts, read_cohort, read_cohort_file
from loop.labels.dry_run import VotesFile, take_votes_file
from loop.labels.expert_ratings import RatingsReport
from loop.labels.importing.importer import ImportReport, import_cohort
from loop.labels.importing.rating_files import RatingFiles, take_rating_files
from loop.labels.importing.source import ImportOptions
from loop.labels.label_list import pick_listed
from loop.labels.overlap import OverlapReport, check_cohorts
from loop.labels.reader_agreement import AgreementReport, measure_agreement
from loop.labels.reference import list_references
from loop.labels.taxonomy import read_taxonomy
from loop.labels.upgrade import compare_labels, upgrade_labels
from loop.labels.votes import VotesReport
from loop.prompts.catalog import read_known
from loop.prompts.instructions import version_text
from loop.release.audit.audit import LedgerAudit, audit_workspace
from loop.release.backup import BackedUp, restore_backup, write_backup
from loop.release.candidate import FreezeRequest
from loop.release.documents.documents import render_documents
from loop.release.folder import RELEASE_NAME
from loop.release.freeze import FreezeContext, Frozen, Signing, freeze
from loop.release.keys import (
    find_key,
    load_private,
    make_key,
    read_public_key,
    signer_for,
)
from loop.release.label import label
from loop.release.load import find_holder, find_request, verify_release
from loop.release.state import StatePart, list_removable, remove
from loop.release.verify import Verification, verify_folder
from loop.review.prompt_page import PromptPage, open_prompt_page
from loop.review.revise.draft import render_shown
from loop.review.revise.phrases import PhraseRequest, PhraseTryout, try_phrase
from loop.review.revise.revision import Revision, RevisionRequest, revise
from loop.review.revise.tryout import (
    PairsTryout,
    Tryout,
    TryRequest,
    try_case,
    try_pairs,
    try_text,
)
from loop.review.start import (
    SHIPPED_PROMPT,
    FirstVersion,
    new_prompt,
    start_workspace,
)
from loop.review.status import find_open
from loop.review.verdict_files import ImportDefaults, ImportedVerdicts, take_file
from loop.run.asking import EngineOptions, hold_engine
from loop.run.cost import price_run
from loop.run.execute import RunSummary
from loop.run.label_table import CellValues, LabelNames, write_labels
from loop.run.manifest import list_runs
from loop.run.prune import prune_completions
from loop.run.store import open_store
from loop.run.task import (
    Watch,
    check_way,
    prepare_run,
    require_answers,
    run_draws,
)
from loop.run.trace import Trace, read_trace, trace_data
from loop.score.api import choose
from loop.score.experts.ratings import Ratings, cohort_ratings

_NAMES = ("case_id", "label", "name", "run", "ref", "digest", "parent", "who", "why")
"""Columns of tables that hold names, also where they look like numbers."""


_COUNTS = ("answered", "unparsed", "failed", "prompt_tokens", "completion_tokens")
"""What is told of how a run ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvaluation:
    """A run scored and judged; a notebook shows it as a table."""

    evaluation: Evaluation
    """Every number, as records."""

    @property
    def verdict(self) -> str:
        """What the claim comes to: ``PASS``, ``FAIL`` or ``INSUFFICIENT``."""
        return certify_evaluation(self.evaluation).verdict.value

    @property
    def passed(self) -> bool:
        """Whether the claim passes; where not, the command line ends with 100."""
        return certify_evaluation(self.evaluation).verdict is GateVerdict.PASS

    @property
    def certified(self) -> int:
        """Labels for which the claim is shown."""
        return len(certify_evaluation(self.evaluation).certified)

    @property
    def macro_f1(self) -> float | None:
        """Macro-F1 over the labels with a defined F1; None where there is none."""
        return self.evaluation.macro.score.estimate

    @property
    def signature(self) -> str:
        """The conventions behind the numbers, on one line."""
        return self.evaluation.signature

    @property
    def table(self) -> pd.DataFrame:
        """One row a label, indexed by its id; columns as of ``evaluate --csv``."""
        return _read_table(render_csv(self.evaluation)).set_index("label")

    def write_html(self, path: Path | str) -> None:
        """Write the evaluation as one page, as ``evaluate --html`` does.

        Raises
        ------
        WriteError
            It cannot be written.
        """
        write_atomic(Path(path), render_html(self.evaluation))

    def __repr__(self) -> str:
        run = self.evaluation.run
        return f"{run.prompt} on {self.evaluation.cohort.name}: {self.verdict}"

    def _repr_html_(self) -> str:
        head = f"<p>{escape(repr(self))}<br>{escape(self.signature)}</p>"
        return head + self.table.to_html()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTrace:
    """What was asked about one case, and what came back; private.

    Shown in a notebook, it has no word of the case or of the model: those are in
    `data`, and in `trace` as records.
    """

    trace: Trace

    @property
    def data(self) -> dict[str, Any]:
        """All of it as JSON data, as ``show --json`` prints it: private."""
        return trace_data(self.trace)

    @property
    def table(self) -> pd.DataFrame:
        """One row an answer: call, attempt, how it ended, tokens, seconds, cost."""
        rows = [
            {
                "call": call.call,
                "attempt": number,
                "finish_reason": given.finish_reason if given else "",
                "seconds": given.latency_s if given else None,
                "prompt_tokens": given.prompt_tokens if given else None,
                "cached_tokens": given.cached_tokens if given else None,
                "completion_tokens": given.completion_tokens if given else None,
                "cost": attempt.cost,
                "problem": attempt.reading.problem,
            }
            for call in self.trace.calls
            for number, attempt in enumerate(call.attempts, 1)
            for given in (attempt.completion,)
        ]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        run, outcome = self.trace.run, self.trace.outcome
        return f"case {outcome.item_id} of run {run.id}: {outcome.status.value}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>" + self.table.to_html()


class Workspace:
    """A workspace: prompts, labels, cohorts, runs, verdicts and releases in a folder.

    What its methods take has the names and defaults of the command line's options, and
    what they raise is what the command line prints: `loop.core.errors.LoopError`, with
    what is wrong, where, and what to do next. No method shows the text of a case unless
    it is asked for.

    Parameters
    ----------
    path
        The workspace, or a folder inside it; default: the current folder.
    actor
        Who acts, for the ledger; default ``$RANLOOP_ACTOR``, else the login. With a key
        of theirs in the workspace, they sign.
    role
        Role in which they act, for the ledger; default: ``editor``, and ``approver``
        for a release.

    Raises
    ------
    WorkspaceError
        There is no workspace at `path` or above it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> study = Workspace.init(f"{folder.name}/study", actor="Dr A")
    >>> import pandas as pd
    >>> frame = pd.DataFrame(
    ...     {
    ...         "case_id": ["a", "b"],
    ...         "text": ["Small left pleural effusion.", "Normal chest."],
    ...         "Pleural Effusion": ["present", "absent"],
    ...     }
    ... )
    >>> study.add_cohort(frame, "dev").cases
    2
    >>> study.run("extractor", "dev").answered
    2
    >>> found = study.evaluate()
    >>> int(found.table.loc["pleural_effusion", "tp"]), found.verdict
    (1, 'INSUFFICIENT')
    >>> study.history("extractor")[["ref", "cohort"]].values.tolist()
    [['extractor@v1', 'dev']]
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        actor: str | None = None,
        role: str = "",
    ) -> None:
        start = Path.cwd() if path is None else Path(path)
        self.paths: WorkspacePaths = find_workspace(start)
        self.actor = actor
        self.role = role

    @classmethod
    def init(
        cls,
        path: Path | str,
        *,
        labels: Path | str | None = None,
        prompt: str = SHIPPED_PROMPT,
        actor: str | None = None,
    ) -> Workspace:
        """Make a workspace with a first prompt version, and return it.

        Parameters
        ----------
        labels
            Labels of a task of one's own, as ``init --task new --labels`` takes them;
            None for chest X-rays, with the newest shipped extractor.
        prompt
            Name of the first prompt.

        Raises
        ------
        WorkspaceError
            `path` is a workspace already.
        DataError
            `labels` is no list of labels, or `prompt` no name; nothing was made.
        """
        who = Actor(name=acting_name(actor), role="editor")
        made = start_workspace(
            Path(path), who, labels=Path(labels) if labels else None, prompt=prompt
        )
        return cls(made.workspace.root, actor=actor)

    @classmethod
    def restore(
        cls,
        file: Path | str,
        path: Path | str,
        passphrase: str,
        *,
        private_only: bool = False,
        actor: str | None = None,
    ) -> Workspace:
        """Make a workspace of a backup, as ``restore`` does, and return it.

        Parameters
        ----------
        file
            What `backup` wrote.
        path
            A new or empty folder, or one without private state.
        private_only
            Restore ``.ranloop/`` alone, beside the public part that is there.

        Raises
        ------
        DataError
            The passphrase is wrong, or the file is damaged or no backup.
        ConflictError
            Something is at `path` that a backup would replace; nothing was.
        """
        restore_backup(Path(file), Path(path), passphrase, private_only=private_only)
        return cls(path, actor=actor)

    def __repr__(self) -> str:
        return f"Workspace({str(self.paths.root)!r})"

    def _acting(self, role: str) -> Actor:
        name = acting_name(self.actor)
        # What is done with a broken ledger says so itself.
        with suppress(LedgerError):
            require_distinct(self.paths, name)
        signer = signer_for(self.paths, name)
        return Actor(name=name, role=self.role or role, signer=signer)

    # Data.

    @property
    def cohorts(self) -> pd.DataFrame:
        """One row a cohort: name, role, cases, language, newest reference, licence."""
        rows = []
        for name in list_cohorts(self.paths):
            about = read_cohort_file(self.paths, name)
            versions = list_references(self.paths, name)
            rows.append(
                {
                    "cohort": name,
                    "role": about.role.value,
                    "cases": about.cases,
                    "language": about.language,
                    "reference": f"v{versions[-1]}" if versions else "",
                    "licence": about.licence,
                }
            )
        columns = ("cohort", "role", "cases", "language", "reference", "licence")
        return pd.DataFrame(rows, columns=list(columns)).set_index("cohort")

    def add_cohort(
        self,
        source: Path | str | pd.DataFrame,
        name: str,
        *,
        role: str = "dev",
        votes: Path | str | pd.DataFrame | None = None,
        need: int | None = None,
        why: str = "",
        **options: Any,
    ) -> ImportReport:
        """Import cases, and readers' votes on them, as ``cohort import`` does.

        Parameters
        ----------
        source
            A file or folder, or a DataFrame with a column ``case_id`` and a column
            ``text`` (or sections), and label columns where there are labels; or with
            columns ``reference`` and ``candidate``, for pairs. An index with a name is
            a column too.
        votes
            Columns ``reader``, ``case_id``, ``label``, ``value``.
        need
            Fewest equal votes, beyond over half of those who voted.
        **options
            Further fields of `loop.labels.importing.source.ImportOptions`: ``source``
            (where the texts come from, in words), ``licence``, ``language``,
            ``columns``, ``exclude``, ``replace`` and so on.

        Raises
        ------
        DataError
            The source is wrong, or the cohort exists; nothing was imported.
        """
        chosen = ImportOptions(name=name, role=role, reason=why, **options)
        report = import_cohort(
            self.paths, _source(source), chosen, actor=self._acting("editor")
        )
        if votes is not None:
            self.add_votes(name, votes, need=need, why=why)
        return report

    def add_votes(
        self,
        cohort: str,
        votes: Path | str | pd.DataFrame,
        *,
        need: int | None = None,
        replace: bool = False,
        why: str = "",
    ) -> VotesReport:
        """Add readers' votes to a cohort, as ``cohort votes`` does.

        Raises
        ------
        DataError
            The cohort or the votes are wrong; nothing was changed.
        """
        given = VotesFile(cohort, _source(votes), need, replace, why)
        return take_votes_file(self.paths, given, actor=self._acting("editor"))

    def add_ratings(
        self,
        cohort: str,
        *,
        ratings: Path | str | pd.DataFrame | None = None,
        errors: Path | str | pd.DataFrame | None = None,
        scale: str = "",
        replace: bool = False,
        why: str = "",
    ) -> RatingsReport:
        """Add experts' ratings, and errors they marked, as ``cohort ratings`` does.

        Parameters
        ----------
        ratings
            Columns ``case_id``, ``rater``, ``points``, and where needed ``dimension``,
            ``scale`` and ``system``.
        errors
            Columns ``case_id``, ``rater``, ``category``, ``significance`` and where
            wanted ``finding``.
        scale
            Scale of points whose row names none: ``1-5``, or ``counts``.

        Raises
        ------
        DataError
            The cohort is none of pairs, or a table is wrong; nothing was changed.
        """
        given = RatingFiles(
            cohort=cohort,
            ratings=None if ratings is None else _source(ratings),
            errors=None if errors is None else _source(errors),
            scale=scale,
            replace=replace,
            reason=why,
        )
        return take_rating_files(self.paths, given, actor=self._acting("editor"))

    def ratings(self, cohort: str, dimension: str = "overall") -> Ratings:
        """Return experts' points for a cohort of pairs, as the statistics take them.

        Raises
        ------
        SealedError
            The cohort is a holdout.
        DataError
            It has no ratings in this dimension, or they are not those recorded.
        """
        return cohort_ratings(self.paths, cohort, dimension)

    def check_cohorts(
        self, names: str | Collection[str] | None = None
    ) -> OverlapReport:
        """Return what cohorts of different roles share; ``separate``: nothing."""
        chosen = None if names is None else list(_several(names))
        return check_cohorts(self.paths, chosen)

    def agreement(
        self,
        cohort: str,
        *,
        uncertain: Literal["leave-out", "category"] = "leave-out",
        resamples: int = 2000,
    ) -> AgreementReport:
        """Return how well the readers of a cohort agree, as ``agreement`` does.

        Parameters
        ----------
        uncertain
            Whether uncertain votes are left out, or a category of their own.
        resamples
            Of the bootstrap.

        Raises
        ------
        ValueError
            `uncertain` is neither.
        SealedError
            The cohort is a holdout.
        DataError
            There is no such cohort, or it has votes of fewer than two readers.
        """
        if uncertain not in ("leave-out", "category"):
            raise ValueError(
                f"uncertain must be one of leave-out, category, got {uncertain!r}"
            )
        taxonomy = read_taxonomy(self.paths.labels)
        votes = read_cohort_votes(self.paths, read_cohort(self.paths, cohort), taxonomy)
        return measure_agreement(
            votes,
            taxonomy,
            cohort=cohort,
            uncertain_is_category=uncertain == "category",
            resamples=resamples,
        )

    def ceiling(self, cohort: str, run: str = "latest") -> Ceiling:
        """Return a run beside the readers of a cohort, as ``agreement --against`` does.

        Raises
        ------
        SealedError
            The cohort is a holdout.
        DataError
            There is no such run or it is on another cohort, or the cohort has votes of
            fewer than two readers.
        """
        return read_ceiling(self.paths, cohort, run)

    # Prompts.

    def new_prompt(
        self,
        name: str,
        *,
        source: str = "",
        labels: Path | str | None = None,
        why: str = "",
    ) -> FirstVersion:
        """Make the first version of another prompt, as ``prompt new`` does.

        Parameters
        ----------
        source
            Version to begin with, of the workspace or else shipped, for example
            ``"extractor@v11"``; empty to begin with the taxonomy. The command line's
            ``--from``.
        labels
            Ask only for the labels that this file lists; None for all.

        Returns
        -------
        FirstVersion
            ``version``, where it comes from, and what `lint` says of it.

        Raises
        ------
        DataError
            `name` is no name, or there is no such version or label.
        ConflictError
            There is a prompt `name`.
        """
        taxonomy = read_taxonomy(self.paths.labels)
        return new_prompt(
            self.paths,
            name,
            self._acting("editor"),
            source=source,
            labels=pick_listed(Path(labels), taxonomy) if labels else (),
            why=why,
        )

    def show_prompt(self, prompt: str, *, rendered: bool = False) -> str:
        """Return what a version or draft says, as ``prompt show`` prints it.

        Parameters
        ----------
        rendered
            The messages that a model receives, instead of instructions and guides.

        Raises
        ------
        DataError
            There is no such version, or it cannot be rendered.
        """
        version = read_known(self.paths, prompt).version
        return render_shown(version).text if rendered else version_text(version)

    def prompt_page(self, prompt: str, *, engine: str = "rules") -> PromptPage:
        """Return a version or draft as a model reads it, and where it came from.

        What changed since its parent, tokens by section and label, and who each line
        is from: as ``prompt show`` does with ``--changes``, ``--tokens`` and
        ``--blame``.

        Parameters
        ----------
        engine
            Engine whose tokens are counted.

        Raises
        ------
        DataError
            There is no such version.
        """
        return open_prompt_page(self.paths, prompt, engine)

    # Run and measure.

    def run(
        self,
        prompt: str,
        cohort: str,
        *,
        engine: str = "",
        release: str | None = None,
        limit: int | None = None,
        repeats: int = 1,
        again: bool = False,
        asking: EngineOptions | None = None,
        watch: Watch | None = None,
    ) -> RunSummary:
        """Ask an engine a prompt version over a cohort, as ``run`` does.

        Stopped and called again, it asks only for what is missing.

        Parameters
        ----------
        prompt
            For example ``"extractor"`` or ``"extractor@v3"``; empty with `release`.
        engine
            Empty for that of the release, and for ``rules`` without one.
        release
            Release to take prompt, engine and what that is asked with from; it is
            verified first.
        limit
            Only the first so many cases.
        repeats
            How often every case is asked.
        again
            Ask again what earlier runs could not read, as ``--again unparsed`` does.
        asking
            Temperature and all else that `loop.run.asking.EngineOptions` has; None
            for that of the release, and for the defaults without one.
        watch
            Wraps the cases to show progress, for example ``tqdm``.

        Returns
        -------
        RunSummary
            Of the first draw: its id and how its cases ended.

        Raises
        ------
        ValueError
            Both a prompt and a release are named or neither is, or an engine is to do
            what it cannot.
        DataError
            The prompt or the cohort cannot be used.
        EngineError
            The engine is not available, or answered no case; what was answered until
            then is kept.
        """
        if bool(prompt) == bool(release):
            raise ValueError(
                f"name a prompt or a release, and leave the other out: got "
                f"{prompt!r} and {release!r}"
            )
        wanted = find_request(self.paths, prompt or None, release, engine=engine)
        how = asking or EngineOptions(**wanted.parameters)
        check_way(wanted.engine, repeats=repeats, batch=how.batch)
        task = prepare_run(
            self.paths,
            wanted.prompt,
            cohort,
            engine=wanted.engine,
            limit=limit,
            asking=how,
            again=again,
        )
        who = self._acting("editor")
        register_protocol(self.paths, who)
        draws = range(repeats)
        done = list(run_draws(self.paths, task, draws, watch=watch, actor=who.name))
        for summary in done:
            require_answers(summary)
        return done[0]

    def runs(self) -> pd.DataFrame:
        """Return all runs, the newest first, a row a run; none on a holdout.

        ``who`` is empty for a run from before this was kept, and ``finished`` for one
        that did not finish; what its cases came to is missing then. Draws count from 1.
        ``policy`` is what uncertain answers counted as when it began. ``cost`` is of
        all its answers by the price of today, those from the store included; missing
        without a price.
        """
        with open_store(self.paths) as store:
            found = list_runs(self.paths, store)
        prices, policies = read_config(self.paths).prices, list_policies(self.paths)
        costs = {run.id: price_run(run, prices) for run in found}
        rows = [
            {
                "run": run.id,
                "prompt": run.spec.prompt,
                "cohort": run.spec.cohort,
                "engine": masked(run.spec.engine),
                "policy": str(policies.get(run.spec.protocol_digest or "", "")),
                "draw": run.spec.draw + 1,
                "limit": run.part,
                **{name: run.counts.get(name) for name in _COUNTS},
                "cost": cost.amount if (cost := costs[run.id]) else None,
                "currency": cost.currency if cost else "",
                "created": run.created,
                "finished": run.finished or "",
                "who": run.actor or "",
            }
            for run in found
        ]
        columns = ("run", "prompt", "cohort", "engine", "policy", "draw", "limit")
        ends = ("cost", "currency", "created", "finished", "who")
        named = [*columns, *_COUNTS, *ends]
        table = pd.DataFrame(rows, columns=named).set_index("run")
        whole = dict.fromkeys(("draw", "limit", *_COUNTS), "Int64")
        return table.astype({**whole, "cost": "Float64"})

    def evaluate(
        self, run: str = "latest", *, reference: int | None = None
    ) -> RunEvaluation:
        """Score a run against the reference and judge its gates, as ``evaluate`` does.

        The evaluation is recorded in the ledger.

        Raises
        ------
        SealedError
            The cohort is a holdout: it opens for `freeze` only.
        DataError
            The run, its cohort or the reference is missing or unfit.
        """
        found = evaluate_run(self.paths, run, reference=reference)
        recorded = record_evaluation(self.paths, found, self._acting("editor"))
        return RunEvaluation(evaluation=recorded)

    def plan(
        self,
        run: str = "",
        *,
        cohort: str = "",
        accuracy: Sequence[float] = CANDIDATES,
    ) -> SampleSizePlan:
        """Return how many cases each label needs to pass, as ``plan`` does.

        Parameters
        ----------
        run
            A prompt version, a run or ``latest``: adds what was observed.
        cohort
            Where to plan; empty for that of the run.
        accuracy
            True accuracies to suppose, shares above 0.

        Raises
        ------
        ValueError
            Neither a run nor a cohort is named, or an accuracy is no such share.
        DataError
            There is no such run or cohort, or the cohort is a holdout.
        """
        if not run and not cohort:
            raise ValueError("name a cohort, or a prompt or run")
        record = find_planned_run(self.paths, run, cohort) if run else None
        where = cohort or (record.spec.cohort if record else "")
        supposed = tuple(dict.fromkeys(accuracy))
        return plan_cohort(self.paths, where, record, candidates=supposed)

    def compare(self, before: str, after: str = "latest") -> Comparison:
        """Return what changed between two runs on the same cases."""
        return compare_runs(self.paths, before, after)

    def failures(
        self,
        run: str = "latest",
        *,
        label: str | Collection[str] | None = None,
        kind: str | Collection[str] | None = None,
        text: Literal["none", "evidence"] = "none",
    ) -> pd.DataFrame:
        """Return the failing cases of a run, one row a case and label.

        Parameters
        ----------
        label, kind
            Only these, as ``failures`` takes them; None for all.
        text
            ``"evidence"`` adds the words that the answer rests on: private.

        Raises
        ------
        ValueError
            `kind` or `text` is none of those that there are.
        DataError
            There is no such run or label, or the cohort is a holdout.
        """
        kinds = [choose(FailureKind, "kind", one) for one in _several(kind)] or None
        if text not in ("none", "evidence"):
            raise ValueError(f"text must be one of none, evidence, got {text!r}")
        found = failing_cases(
            self.paths, run, labels=list(_several(label)) or None, kinds=kinds
        )
        table = _read_table(failures_table(found))
        if text == "evidence":
            words = read_evidence(self.paths, found)
            table["evidence"] = [words[row.case_id, row.label] for row in found.rows]
        return table

    def trace(self, run: str, case: str, *, label: str = "") -> CaseTrace:
        """Return what was asked about one case and what came back, as ``show`` does.

        Parameters
        ----------
        label
            Only the call that asks about this label; empty for all.

        Raises
        ------
        DataError
            There is no such run or case, its text is not here, or the cohort is a
            holdout.
        """
        return CaseTrace(trace=read_trace(self.paths, run, case, label=label))

    def labels(
        self,
        run: str = "latest",
        *,
        names: str = LabelNames.PUBLISHED,
        values: str = CellValues.WORDS,
        evidence: bool = False,
        text: bool = False,
    ) -> pd.DataFrame:
        """Return the labels that a run read, one row a case, as ``labels`` writes them.

        Raises
        ------
        DataError
            There is no such run, or its cohort is a holdout.
        """
        with self._scratch() as folder:
            file = folder / "labels.parquet"
            write_labels(
                self.paths,
                file,
                run,
                names=choose(LabelNames, "names", names),
                values=choose(CellValues, "values", values),
                evidence=evidence,
                text=text,
            )
            return pd.read_parquet(file).set_index("case_id")

    # Review and revise.

    def add_verdicts(
        self,
        verdicts: Path | str | Sequence[Mapping[str, Any]],
        *,
        cohort: str = "",
        run: str = "",
    ) -> ImportedVerdicts:
        """Keep clinicians' verdicts, all or none, as ``verdict add`` does.

        Parameters
        ----------
        verdicts
            A file, or the verdicts as they stand in one, for example ``{"case": "17",
            "label": "edema", "judgement": "model_wrong", "terms": ["wet lungs"]}``.

        Raises
        ------
        DataError
            A verdict is wrong; none was kept.
        """
        with self._scratch() as folder:
            if isinstance(verdicts, (str, Path)):
                given = Path(verdicts)
            else:
                given = folder / "verdicts.yaml"
                rows = [dict(one) for one in verdicts]
                write_atomic(given, dump_yaml({"verdicts": rows}))
            occasion = ImportDefaults(self._acting("reviewer").name, cohort, run)
            with open_store(self.paths) as store:
                return take_file(self.paths, store, given, occasion)

    def revise(
        self,
        prompt: str,
        cohort: str,
        *,
        verdicts: Path | str | None = None,
        engine: str = "rules",
        contract: str = "",
        why: str = "",
        override: bool = False,
        keep_draft: bool = False,
    ) -> Revision:
        """Make a version of the open verdicts, and commit it if it holds.

        Parameters
        ----------
        verdicts
            A file instead of the verdicts that are open on the cohort.
        override
            Commit despite objections; `why` is recorded as the reason.
        keep_draft
            Leave it a draft even if nothing stands against it.

        Returns
        -------
        Revision
            ``version`` is the new one, or None where it stayed a draft: ``objections``
            say why.

        Raises
        ------
        DataError
            No verdict is open, or one cannot be applied; nothing was changed.
        """
        if override and not why.strip():
            raise DataError("an override needs why: the ledger records it.")
        kept: tuple[str, ...] = ()
        if verdicts is None and not contract:
            with open_store(self.paths) as store:
                found = find_open(self.paths, store, prompt, cohort)
            kept = tuple(one.id for one in found)
            if not kept:
                raise DataError(
                    f"no verdict on {prompt} is open for cohort {cohort}. Add some "
                    "with add_verdicts or in the workbench, or name a file."
                )
        request = RevisionRequest(
            prompt=prompt,
            cohort=cohort,
            verdicts=Path(verdicts) if verdicts is not None else None,
            kept=kept,
            engine=engine,
            contract=contract,
            why=why.strip(),
            override=why.strip() if override else "",
            keep_draft=keep_draft,
        )
        return revise(self.paths, request, self._acting("editor"))

    def try_prompt(
        self,
        prompt: str,
        *,
        case: str = "",
        text: str = "",
        engine: str = "rules",
        cohort: str = "",
        label: str = "",
        language: str = "auto",
        draws: int | None = None,
    ) -> Tryout:
        """Return what a draft or version answers, beside its parent, as ``try`` does.

        Nothing of it becomes a run. What is returned holds the text, and shows it only
        where it is asked for.

        Parameters
        ----------
        case
            Id of a dev case.
        text
            Words instead; they are kept nowhere.
        language
            Of the words, ISO 639-1; ``auto`` to tell it by letters and words.
        cohort
            Dev cohort of the case; empty for the one that the draft is for.
        label
            Only this label; empty for all.
        draws
            How often both are asked, of an engine with chance in it; None for once.

        Raises
        ------
        DataError
            There is no such prompt, case or label, or the case is a holdout's.
        EngineError
            The engine failed, or repeats itself and is to be asked several times.
        """
        if bool(case) == bool(text):
            raise DataError("name either a case or a text to be tried.")
        request = TryRequest(prompt=prompt, cohort=cohort, label=label, draws=draws)
        with open_store(self.paths) as store, hold_engine(self.paths, engine) as held:
            if text:
                return try_text(
                    self.paths, store, request, text, engine=held, language=language
                )
            who = self._acting("editor")
            return try_case(self.paths, store, request, case, who, engine=held)

    def try_pairs(
        self,
        prompt: str,
        *,
        engine: str = "rules",
        cohort: str = "",
        label: str = "",
        draws: int | None = None,
    ) -> PairsTryout:
        """Return how a draft does on all pairs of its verdicts and the pinned ones.

        As ``try --pairs``; what else the wording changes, only a check shows.
        Parameters and errors are those of `try_prompt`.
        """
        request = TryRequest(prompt=prompt, cohort=cohort, label=label, draws=draws)
        with open_store(self.paths) as store, hold_engine(self.paths, engine) as held:
            who = self._acting("editor")
            return try_pairs(self.paths, store, request, who, engine=held)

    def try_phrase(
        self,
        prompt: str,
        phrase: str,
        *,
        label: str,
        cohort: str = "",
        engine: str = "rules",
    ) -> PhraseTryout:
        """Return what a phrase could become in the guide of `label`, as ``try`` does.

        For each part of the guide: the dev cases whose answer would change, and how.

        Parameters
        ----------
        engine
            Another one than `rules` is not asked: its counts are an estimate by
            wording.

        Raises
        ------
        DataError
            There is no such prompt or label, the phrase holds no word, or the cohort is
            none to revise on.
        EngineError
            There is no such engine.
        """
        request = PhraseRequest(prompt, label, phrase, cohort, engine)
        with open_store(self.paths) as store:
            return try_phrase(self.paths, store, request, self._acting("editor"))

    def history(self, prompt: str) -> pd.DataFrame:
        """Return a prompt's versions and drafts with their scores, a row a score.

        Of ``"extractor@v3"`` only the name counts, as for ``history``.

        Raises
        ------
        DataError
            There is no such prompt.
        """
        name = prompt.partition("@")[0]
        return _read_table(history_table(read_scores(self.paths, name)))

    # Release and audit.

    def new_key(
        self, name: str = "", *, role: str = "approver", passphrase: str = ""
    ) -> str:
        """Make a key pair, as ``key new`` does, and return the key's id.

        Parameters
        ----------
        name
            Whose key; default: of whoever acts.
        role
            Role in which they sign.

        Raises
        ------
        DataError
            They have a key already.
        """
        who = self._acting("admin")
        made = make_key(self.paths, name or who.name, role, who, passphrase=passphrase)
        return made.keyid

    def freeze(
        self,
        prompt: str,
        cohort: str,
        *,
        why: str,
        holdout: str = "",
        engine: str = "rules",
        ensembles: str | Sequence[str] = (),
        meaning: str = "approval",
        override: str = "",
        passphrase: str = "",
        asking: EngineOptions | None = None,
    ) -> Frozen:
        """Freeze a version as a release, signed by whoever acts, as ``freeze`` does.

        Parameters
        ----------
        ensembles
            Names of ensembles that are released with a judge: it is a member of each.
        override
            Reason to release despite objections; the card shows it.
        passphrase
            Of the key, where it has one.

        Returns
        -------
        Frozen
            ``folder`` is None where a gate stopped it: ``objections`` say which.

        Raises
        ------
        DataError
            Something cannot be used, there is no key, or `why` is empty.
        """
        if not why.strip():
            raise DataError("why needs a reason: the ledger records it.")
        who, folder = self._acting("approver"), template_folder(self.paths)
        key = find_key(self.paths, who.name)
        signing = Signing(
            key=key,
            private=load_private(self.paths, key.keyid, passphrase),
            meaning=meaning,
        )
        context = FreezeContext(
            workspace=self.paths,
            actor=who,
            signing=[signing],
            render=lambda facts, approvals: render_documents(facts, approvals, folder),
        )
        request = FreezeRequest(
            prompt=prompt,
            cohort=cohort,
            holdout=holdout,
            engine=engine,
            asking=asking or EngineOptions(),
            ensembles=tuple(_several(ensembles)),
            why=why,
            meaning=meaning,
            override=override,
        )
        return freeze(context, request)

    def verify(
        self,
        release: str | Path,
        *,
        keys: Path | str | Sequence[Path | str] = (),
        expect: str | None = None,
    ) -> Verification:
        """Check a release by name, or a folder with the public keys that you trust.

        Parameters
        ----------
        release
            Name of a release, of the workspace or else of those that ship with
            ranloop, or a folder: a folder comes first.
        keys
            Files of public keys, for a folder; a name is checked with the keys that
            the workspace recorded.
        expect
            Name of the release that the folder must hold, as ``verify --expect``.

        Raises
        ------
        ValueError
            A name is given with keys, or with another name to expect.
        DataError
            There is no such release, folder or key.
        """
        files = [keys] if isinstance(keys, (str, Path)) else list(keys)
        if not Path(release).is_dir() and RELEASE_NAME.fullmatch(str(release)):
            if files or expect not in (None, str(release)):
                raise ValueError(
                    f"the name {release} says which release it must be, and the "
                    "workspace recorded its keys; name its folder to check it with "
                    "keys of your own"
                )
            name = str(release)
            return verify_release(find_holder(self.paths, name), name)
        trusted = [read_public_key(Path(one)) for one in files]
        by_id = {one.keyid: one for one in trusted}
        return verify_folder(Path(release), by_id, expect=expect)

    def audit(self) -> LedgerAudit:
        """Hold the ledger against everything that it speaks of; nothing is recorded."""
        return audit_workspace(self.paths)

    def label(self, texts: Any, **options: Any) -> pd.DataFrame:
        """Return the labels of reports, as `loop.label`, with the prompts here."""
        return label(texts, workspace=self.paths, **options)

    # Upkeep.

    def backup(self, file: Path | str, passphrase: str) -> BackedUp:
        """Write the whole workspace to one encrypted file, as ``backup`` does.

        Without the passphrase nobody can open it; `restore` makes a workspace of it.

        Raises
        ------
        DataError
            The passphrase is easy to guess, or something cannot be read.
        ConflictError
            `file` is there: a backup is never replaced.
        """
        return write_backup(self.paths, Path(file), passphrase)

    def clean(
        self,
        *,
        completions: bool = False,
        replaced: bool = False,
        head: bool = False,
        yes: bool = False,
    ) -> pd.DataFrame:
        """Return what may go, as ``clean`` shows it, and remove it with `yes`.

        Without more that is what killed commands left a day ago or longer. Texts, runs,
        verdicts, drafts, users and keys are never removed.

        Parameters
        ----------
        completions
            Also stored answers that no run rests on; asked again, they cost again.
        replaced
            Also cohorts and votes that an import replaced, for good.
        head
            Also what this machine remembers of the ledger, to notice a rollback.

        Returns
        -------
        pandas.DataFrame
            Columns ``path``, ``bytes`` and ``purpose``.

        Raises
        ------
        ConflictError
            With `completions`: a run is under way; nothing was removed.
        """
        parts = list_removable(self.paths, replaced=replaced, head=head)
        rows = list(parts)
        if completions:
            pruned = prune_completions(self.paths, dry_run=not yes)
            text = f"{pruned.answers:,} stored answers that no run rests on"
            rows.append(StatePart(self.paths.store, pruned.size, text))
        if yes:
            remove(parts)
        table = [(str(one.path), one.size, one.purpose) for one in rows]
        return pd.DataFrame(table, columns=["path", "bytes", "purpose"])

    def upgrade(self, *, dry_run: bool = False, why: str = "") -> pd.DataFrame:
        """Take labels, cues and crosswalks as they ship now, as ``upgrade`` does.

        Only those that were not edited here; the ledger records it.

        Parameters
        ----------
        dry_run
            Only show what the installed ranloop would change.

        Returns
        -------
        pandas.DataFrame
            One row a file, as it was before: ``state``, whether it is ``taken``, and
            the ``diff``.

        Raises
        ------
        LedgerError
            The ledger is broken; nothing was changed.
        """
        if dry_run:
            found = compare_labels(self.paths)
        else:
            found = upgrade_labels(self.paths, self._acting("editor"), why=why)
        table = [
            (f"labels/{one.name}", one.state.value, one.taken, one.diff)
            for one in found
        ]
        columns = ["file", "state", "taken", "diff"]
        return pd.DataFrame(table, columns=columns).set_index("file")

    # Within.

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        """Give a private folder that is gone afterwards: it may hold texts."""
        private = self.paths.open_private()
        with TemporaryDirectory(prefix=".tables.", dir=private) as name:
            yield Path(name)


def _source(given: Path | str | pd.DataFrame) -> Path | pd.DataFrame:
    return Path(given) if isinstance(given, str) else given


def _several(given: str | Collection[str] | None) -> Collection[str]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else given


def _read_table(text: str) -> pd.DataFrame:
    """Return a CSV of ours as a table; what is a name stays text, as it was."""
    header = text.partition("\r\n")[0].split(",")
    names = [name for name in _NAMES if name in header]
    table = pd.read_csv(
        StringIO(text),
        dtype=dict.fromkeys(names, str),
        keep_default_na=False,
        na_values={name: [""] for name in header if name not in names},
    )
    for name in names:
        table[name] = table[name].map(unshielded)
    return table
