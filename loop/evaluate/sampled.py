"""One run scored on the cases of a value sample, as shares of the whole cohort.

The cases were drawn because reading them is probably worth more than reading others, so
that a rate over them is none of the cohort. Each counts one over the chance with which
it was drawn (Hajek). No gate is decided: gates count cases as drawn at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from loop import __version__
from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.core.records import ValueCode
from loop.documents.numbers import percent
from loop.documents.tables import format_rows
from loop.documents.templates import render_template, shipped_templates
from loop.evaluate.align import Codes
from loop.evaluate.inputs import Inputs
from loop.evaluate.measure import measure_f1, resample_draws, resampling_units
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import CohortFacts, Method, RunFacts, sign_left_out
from loop.evaluate.stability import read_draws
from loop.labels.cohort import read_record
from loop.labels.reference import read_reference
from loop.labels.taxonomy import NO_FINDING
from loop.labels.value_sample import KeptSample
from loop.run.manifest import find_run
from loop.stats.intervals import Estimate
from loop.stats.resampling import Bootstrap
from loop.stats.weighted import design_share, effective_size

NO_GATE: Final = (
    "No gate is decided and nothing is certified: gates count cases as drawn at random."
)
"""Why the evaluation of a value sample never passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledLabel:
    """One label of a run, as shares of the cohort."""

    label: str
    name: str
    comparable: bool
    """Whether the reference can judge it; else it is shown, and in no average."""

    cases: int
    """Read cases that are scored; not weighted, as the next one."""

    positives: int
    accuracy: Estimate
    sensitivity: Estimate
    precision: Estimate
    prevalence: Estimate
    f1: Estimate
    """None with fewer positives read than the protocol's minimum: that of a small
    sample is far from the cohort's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledEvaluation:
    """One run scored on a value sample."""

    run: RunFacts
    cohort: CohortFacts
    protocol: Protocol
    protocol_digest: str
    kept: KeptSample
    read: int
    """Drawn cases that the reference decides and the run was asked."""

    outside: int
    """Cases that the reference decides and nobody drew; they count nowhere."""

    unanswered: int
    """Of the cases read: those without a readable answer, in any draw of the run."""

    effective: float
    """How many cases drawn at random say as much as those read (Kish)."""

    fails: Estimate
    """Share of the cohort's cases in which a label is answered wrongly."""

    unweighted: float | None
    """The same share of the read cases alone, which is none of the cohort."""

    labels: tuple[SampledLabel, ...]
    macro: Bootstrap
    """Macro-F1 over the comparable labels that have an F1."""

    supported: int
    """Labels that entered it."""

    draws: int
    runs: tuple[str, ...]
    method: Method
    notes: tuple[str, ...]

    @property
    def signature(self) -> str:
        """The conventions behind the numbers, on one line."""
        without = [one.label for one in self.labels if not one.comparable]
        return "|".join(
            (
                "weighted acc+f1",
                f"{self.run.prompt}:{self.run.prompt_digest[:6]}",
                self.run.engine,
                f"{self.cohort.name}:ref{self.cohort.reference}",
                f"sample{self.kept.number}:hajek",
                self.protocol.policy.sign,
                "nc:absent",
                "zd:skip",
                *sign_left_out(without),
                f"n:{self.read}",
                f"n_eff:{self.effective:.1f}",
                f"L:{self.supported}",
                *([f"draws:{self.draws}"] if self.draws > 1 else []),
            )
        )


def is_sampled(
    workspace: WorkspacePaths, run_ref: str, *, reference: int | None = None
) -> bool:
    """Whether the reference of a run's cohort decides the cases of a value sample.

    Raises
    ------
    DataError
        The run, its cohort or the reference does not exist.
    """
    cohort = find_run(workspace, run_ref).spec.cohort
    if not read_record(workspace, cohort).samples:
        return False
    return read_reference(workspace, cohort, reference).sample is not None


def failing_rows(
    truth: Codes, answers: Codes, kept: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which cases fail, and which are scored at all, each of shape ``(n,)``.

    A case fails where one of its labels is answered otherwise than the reference
    decides; it is scored where one of them is decided and answered.

    Parameters
    ----------
    truth, answers
        1 present, 0 absent, negative excluded, shape ``(n, labels)``; uncertain
        answers as the protocol counts them.
    kept
        Labels that count; see `judged_labels`.
    """
    scored = (truth >= 0) & (answers >= 0) & kept
    wrong = scored & (truth != answers)
    return np.any(wrong, axis=1), np.any(scored, axis=1)


def judged_labels(inputs: Inputs) -> NDArray[np.bool_]:
    """Return the labels by which a case fails: all that the reference can judge.

    Not "No Finding", which follows from the others.
    """
    left_out = {NO_FINDING, *inputs.not_comparable}
    return np.array([label not in left_out for label in inputs.pairs.labels])


def evaluate_sample(
    workspace: WorkspacePaths,
    run_ref: str = "latest",
    *,
    reference: int | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> SampledEvaluation:
    """Score a run on the cases of a value sample, each weighted with 1 / chance.

    Shares have linearised limits (`design_share`), as has the F1 of a label, which is
    one of ``2 TP + FP + FN``; macro-F1 is resampled by unit with the weights. Drawn
    cases that nobody has read yet are left out as if they were missing at random, and
    counted. Nothing is recorded.

    Parameters
    ----------
    run_ref
        Run id, unique prefix, ``latest`` or ``latest:<prompt>``.
    reference
        Number of the reference version; None for the newest.

    Raises
    ------
    SealedError
        The cohort is a holdout.
    DataError
        The run, its cohort, the reference or the protocol is missing or unfit; the
        reference is of no value sample, or decides none of the drawn cases.
    """
    inputs = read_draws(workspace, run_ref, reference=reference, sampled=True)
    kept = inputs.sample
    if kept is None:
        raise DataError(
            f"{inputs.cohort.name}:ref{inputs.cohort.reference} is of no value sample: "
            "evaluate_run reads it."
        )
    chances = kept.sample.chances
    decided = (inputs.pairs.reference != ValueCode.MISSING).any(axis=1)
    drawn = np.array([case in chances for case in inputs.pairs.case_ids], dtype=bool)
    rows = np.flatnonzero(decided & drawn)
    if not len(rows):
        raise DataError(
            f"{inputs.cohort.name}:ref{inputs.cohort.reference} decides none of the "
            f"{len(chances)} cases of value sample {kept.number} that run "
            f"{inputs.run.run_id} was asked. Publish what readers say of them: "
            f"`ranloop reading publish {inputs.cohort.name} --why REASON`."
        )
    return _measure(
        inputs,
        kept,
        rows,
        np.array([chances[inputs.pairs.case_ids[row]] for row in rows]),
        outside=int((decided & ~drawn).sum()),
        resampling=(resamples, seed),
    )


def _measure(
    inputs: Inputs,
    kept: KeptSample,
    rows: NDArray[np.int64],
    chances: NDArray[np.float64],
    *,
    outside: int,
    resampling: tuple[int, int],
) -> SampledEvaluation:
    protocol = inputs.protocol
    draws = (inputs.pairs, *inputs.further)
    truth = inputs.pairs.binary_reference[rows]
    answers = np.stack([one.answers_as(protocol.policy)[rows] for one in draws])
    clusters = resampling_units([inputs.patients[row] for row in rows])
    method = Method(
        unit=clusters.unit,
        units=clusters.total,
        known=clusters.known,
        resamples=resampling[0],
        seed=resampling[1],
    )
    judged = judged_labels(inputs)
    results = [failing_rows(truth, one, judged) for one in answers]
    failing, scored = (np.sum(side, axis=0) for side in zip(*results, strict=True))

    def share(hits: NDArray[Any], among: NDArray[Any]) -> Estimate:
        return design_share(
            hits,
            chances,
            among=among,
            units=clusters.units,
            confidence=protocol.confidence,
        )

    labels = []
    for column, label in enumerate(inputs.pairs.labels):
        said, right = answers[:, :, column], truth[:, column]
        both = (said >= 0) & (right >= 0)
        present, called = both & (right == 1), both & (said == 1)
        hits = present & called
        positives = int(present.any(axis=0).sum())
        f1 = Estimate(
            None, None, None, f"fewer than {protocol.min_positives} positives read"
        )
        if positives >= protocol.min_positives:
            named = present.sum(axis=0) + called.sum(axis=0)
            f1 = share(2 * hits.sum(axis=0), named)
        labels.append(
            SampledLabel(
                label=label,
                name=inputs.taxonomy.find(label).name,
                comparable=label not in inputs.not_comparable,
                cases=int(both.any(axis=0).sum()),
                positives=positives,
                accuracy=share((both & (said == right)).sum(axis=0), both.sum(axis=0)),
                sensitivity=share(hits.sum(axis=0), present.sum(axis=0)),
                precision=share(hits.sum(axis=0), called.sum(axis=0)),
                prevalence=share(right == 1, right >= 0),
                f1=f1,
            )
        )
    supported = np.array(
        [one.comparable and one.positives >= protocol.min_positives for one in labels]
    )
    macro = measure_f1(
        np.tile(truth[:, supported], (len(draws), 1)),
        np.concatenate([one[:, supported] for one in answers]),
        weights=np.tile(1 / chances, len(draws)),
        **resample_draws(protocol, method, clusters.units, len(draws)),
    )
    silent = [(one.predicted[rows] < ValueCode.UNCERTAIN).all(axis=1) for one in draws]
    found = SampledEvaluation(
        run=inputs.run,
        cohort=inputs.cohort,
        protocol=protocol,
        protocol_digest=inputs.protocol_digest,
        kept=kept,
        read=len(rows),
        outside=outside,
        unanswered=int(np.any(silent, axis=0).sum()),
        effective=effective_size(chances),
        fails=share(failing, scored),
        unweighted=float(failing.sum() / scored.sum()) if scored.any() else None,
        labels=tuple(labels),
        macro=macro,
        supported=int(supported.sum()),
        draws=len(draws),
        runs=inputs.runs,
        method=method,
        notes=(),
    )
    return _noted(found, inputs)


def _noted(found: SampledEvaluation, inputs: Inputs) -> SampledEvaluation:
    """Return `found` with its caveats, most important first."""
    sample, drawn = found.kept.sample, len(found.kept.sample.drawn)
    names = [one.name for one in found.labels if not one.comparable]
    checks = (
        (True, f"The reference decides cases of value sample {found.kept.number}, "
         "drawn with unequal chances: more of those that probably fail. Every share "
         "and F1 weights each case with one over its chance, so that it is one of the "
         f"cohort's {sample.population:,} cases. Unweighted, "
         f"{percent(found.unweighted)} of the cases read fail, which is no rate of the "
         "cohort."),
        (True, f"Effective sample size: {found.read} read, as good as "
         f"{found.effective:.0f} drawn at random (Kish)."),
        (True, NO_GATE),
        (found.read < drawn, "Drawn, but without a reference yet or not run: "
         f"{drawn - found.read} of {counted(drawn, 'case')}. Shares hold if they are "
         "like those read."),
        (found.kept.number > 1 and found.read < drawn, f"Sample {found.kept.number} "
         f"took the place of {found.kept.number - 1} before it. Cases that were read "
         "because an earlier one drew them are likelier to be read than their chance "
         "says, and the weights are wrong: read all that this one drew."),
        (found.outside > 0, "With a reference, but not drawn in this sample: "
         f"{counted(found.outside, 'case')}. Nobody knows with which chance they were "
         "read, so they count nowhere."),
        (found.unanswered > 0, "Read, but without a readable answer: "
         f"{counted(found.unanswered, 'case')}. They are left out and counted, never "
         "read as absent."),
        (any(one.f1.value is None for one in found.labels), "F1 is given where at "
         f"least {found.protocol.min_positives} positives were read: with fewer, that "
         "of a sample is far from the cohort's."),
        (inputs.cohort.role == "dev", "Development cohort: prompts are revised on "
         "these cases, so these numbers are optimistic."),
        (inputs.pairs.not_coded, "The reference comes from coding. Where nothing was "
         "coded the case counts as absent, although nobody judged it absent."),
        (bool(names), f"The reference cannot judge {', '.join(names)}: shown, and in "
         "no average."),
        (inputs.protocol_changed, "The protocol was changed after the run began."),
        (found.method.units < found.read, f"Patients repeat: {found.read} cases are of "
         f"{found.method.units} patients, and limits are between patients."),
    )  # fmt: skip
    return replace(found, notes=tuple(text for holds, text in checks if holds))


def sampled_data(found: SampledEvaluation) -> dict[str, Any]:
    """Return the evaluation of a value sample for ``--json``; ids and numbers."""
    return {
        "run": found.run.run_id,
        "runs": list(found.runs),
        "prompt": found.run.prompt,
        "engine": found.run.engine,
        "cohort": found.cohort.name,
        "reference": found.cohort.reference,
        "protocol_digest": found.protocol_digest,
        "uncertain_answers": found.protocol.policy.value,
        "sample": {
            "number": found.kept.number,
            "drawn": len(found.kept.sample.drawn),
            "population": found.kept.sample.population,
            "seed": found.kept.sample.seed,
            "read": found.read,
            "outside": found.outside,
            "unanswered": found.unanswered,
            "effective": round(found.effective, 3),
        },
        "fails": found.fails._asdict(),
        "fails_unweighted": found.unweighted,
        "macro_f1": {**found.macro._asdict(), "labels": found.supported},
        "labels": [
            {
                **{name: getattr(one, name) for name in _PLAIN},
                **{name: getattr(one, name)._asdict() for name in _ESTIMATES},
            }
            for one in found.labels
        ],
        "verdict": "INSUFFICIENT",
        "method": asdict(found.method),
        "notes": list(found.notes),
        "signature": found.signature,
    }


_PLAIN = ("label", "name", "comparable", "cases", "positives")
_ESTIMATES = ("prevalence", "accuracy", "sensitivity", "precision", "f1")


def render_sampled_csv(found: SampledEvaluation) -> str:
    """Return one row per label, safe to open in a spreadsheet."""
    rows: list[Mapping[str, object]] = []
    for one in found.labels:
        row: dict[str, object] = {name: getattr(one, name) for name in _PLAIN}
        for name in _ESTIMATES:
            estimate = getattr(one, name)
            row[name] = estimate[0]
            row |= {f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        rows.append({**row, "run": found.run.run_id, "signature": found.signature})
    return format_rows(rows)


def render_sampled_html(found: SampledEvaluation) -> str:
    """Return the evaluation of a value sample as one HTML page; no case text, no id."""
    return render_template(
        shipped_templates(),
        "evaluation_sample.html.jinja",
        {"found": found, "sample": found.kept.sample, "version": __version__},
    )
