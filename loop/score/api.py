"""Ran Score in one call, for a notebook: texts or label tables in, tables out."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from numbers import Integral
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.safe_text import quoted
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.prompts.version import PromptVersion
from loop.score.answer import RanScoreResult
from loop.score.extractor import Extractor
from loop.score.grading import grade
from loop.score.joining import join_texts
from loop.score.ran import score
from loop.score.reading.options import DEFAULTS, ReadingOptions, in_python
from loop.score.records import Conventions, Graded, Joined, NoFinding, Uncertain
from loop.stats.confusion import ZeroDivision
from loop.stats.intervals import check_confidence

if TYPE_CHECKING:
    from loop.score.reading.memory import Candidates, Patients, Texts

__all__ = ["EXTRACTOR", "RanScoreResult", "ScoreOptions", "ran_score"]

EXTRACTOR = "extractor@v11"
"""Extractor that is asked unless another one is named: it ships with ranloop, and is
taken from there where the workspace has no such version."""

_Choice = TypeVar("_Choice", bound=StrEnum)


class ScoreOptions(TypedDict, total=False):
    """Options of `ran_score` besides what is scored and by which extractor."""

    engine: str
    """Engine that is asked; default ``"rules"``, which needs no model."""

    workspace: WorkspacePaths | None
    """Where versions, cues and stored answers are; default what ships with ranloop."""

    uncertain: str
    """``"wrong"`` (default), ``"excl"``, ``"pos"`` or ``"neg"``."""

    zero_division: ZeroDivision
    """``"skip"`` (default), ``"zero"`` or ``"one"``."""

    no_finding: str
    """``"ran"`` (default), ``"chexpert"``, or ``"read"`` for given labels."""

    reading: ReadingOptions
    """For example the words of label cells: ``ReadingOptions(values={...})``."""

    resamples: int
    """Bootstrap resamples; default 2,000."""

    permutations: int
    """Exchanges per pair of systems; default 10,000."""

    seed: int
    """Seed of every draw; default 0."""

    confidence: float
    """Two-sided level of every interval; default 0.95."""


def ran_score(
    references: Texts,
    candidates: Candidates,
    *,
    extractor: str | PromptVersion | Extractor = EXTRACTOR,
    patients: Patients | None = None,
    **options: Unpack[ScoreOptions],
) -> RanScoreResult:
    """Return the Ran Score of every system, ranked, with everything behind it.

    Parameters
    ----------
    references
        Text per case id: a dict or a pandas Series; or a list, where the candidates
        are lists of the same length and the place in the list is the id. Or labels: a
        DataFrame with a row per case id and a column per label.
    candidates
        The same of one system, or a dict of system name to the same.
    extractor
        Version that reads labels out of texts; an open `Extractor` is not closed, so
        that it serves many calls. Not asked where labels are given.
    patients
        Patient per case id, in the form of `references`; patients are then resampled
        as a whole.
    **options
        ``engine`` (``"rules"``), ``workspace`` (what ships with ranloop),
        ``uncertain`` (``"wrong"``), ``zero_division`` (``"skip"``), ``no_finding``
        (``"ran"``), ``reading``, ``resamples`` (2,000), ``permutations`` (10,000),
        ``seed`` (0), ``confidence`` (0.95).

    Returns
    -------
    RanScoreResult
        Tables, figure and signature.

    Raises
    ------
    DataError
        Ids, texts or labels cannot be joined, or the version is not there.
    EngineError
        The engine is not available.
    TypeError
        There is no such option.
    ValueError
        An option is out of range, or something given is not what it may be.

    References
    ----------
    Opitz J, Burst S. Macro F1 and Macro F1. arXiv:1911.03347 (their averaged F1).

    Examples
    --------
    >>> references = {
    ...     "a": "Small left pleural effusion. No pneumothorax.",
    ...     "b": "Cardiomegaly with mild pulmonary edema.",
    ... }
    >>> result = ran_score(
    ...     references,
    ...     {"copy": references, "normal": dict.fromkeys(references, "Normal chest.")},
    ... )
    >>> result.table["ran_score"].to_dict()
    {'copy': 1.0, 'normal': 0.0}
    >>> result.score, result.signature.partition(":")[0]
    (1.0, 'ran|extractor@v11')
    """
    chosen = check_options(options)
    if isinstance(extractor, Extractor):
        refuse_place(options)
    taxonomy = _find_taxonomy(extractor, chosen.workspace)
    try:
        joined = join_texts(
            references, candidates, taxonomy, patients=patients, options=chosen.reading
        )
    except DataError as error:
        raise type(error)(in_python(str(error))) from None
    graded = _grade(joined, taxonomy, extractor, chosen)
    ranking = score(
        graded,
        chosen.conventions,
        coverage=joined.coverage,
        resamples=chosen.resamples,
        permutations=chosen.permutations,
        seed=chosen.seed,
        confidence=chosen.confidence,
    )
    return RanScoreResult(ranking=ranking, graded=graded, joined=joined)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScoreDefaults:
    """The same options with their defaults."""

    engine: str = "rules"
    workspace: WorkspacePaths | None = None
    uncertain: str = Uncertain.WRONG
    zero_division: ZeroDivision = "skip"
    no_finding: str = NoFinding.RAN
    reading: ReadingOptions = DEFAULTS
    resamples: int = 2_000
    permutations: int = 10_000
    seed: int = 0
    confidence: float = 0.95

    def __post_init__(self) -> None:
        choose(Uncertain, "uncertain", self.uncertain)
        choose(NoFinding, "no_finding", self.no_finding)
        if self.zero_division not in ("skip", "zero", "one"):
            raise ValueError(
                f"zero_division must be skip, zero or one, got "
                f"{quoted(self.zero_division)}"
            )
        # Now, and not after an engine was asked for hours.
        check_confidence(self.confidence)
        for name, least in (("resamples", 1), ("permutations", 1), ("seed", 0)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise ValueError(
                    f"{name} must be whole and >= {least}, got {quoted(value)}"
                )
        if not isinstance(self.workspace, WorkspacePaths | None):
            raise ValueError(
                "workspace must be WorkspacePaths, as loop.core.paths.find_workspace "
                f"gives it, got {type(self.workspace).__name__}"
            )
        if not isinstance(self.reading, ReadingOptions):
            raise ValueError(
                f"reading must be ReadingOptions, got {type(self.reading).__name__}"
            )

    @property
    def conventions(self) -> Conventions:
        """What decides the score, besides texts and extractor."""
        return Conventions(
            uncertain=Uncertain(self.uncertain),
            zero_division=self.zero_division,
            no_finding=NoFinding(self.no_finding),
            reading=self.reading.digest,
        )


def check_options(options: ScoreOptions) -> _ScoreDefaults:
    """Return `options` with their defaults.

    Raises
    ------
    TypeError
        There is no such option.
    ValueError
        One is out of range.
    """
    known = [each.name for each in fields(_ScoreDefaults)]
    unknown = next((name for name in options if name not in known), None)
    if unknown is not None:
        raise TypeError(
            f"there is no option {quoted(unknown)}; there are "
            f"{', '.join(sorted(known))}"
        )
    return _ScoreDefaults(**options)


def choose(kind: type[_Choice], name: str, value: str) -> _Choice:
    """Return the member of `kind` that is spelled `value`.

    Raises
    ------
    ValueError
        There is none; names the option and what it may be.
    """
    known = [member.value for member in kind]
    if value not in known:
        raise ValueError(
            f"{name} must be one of {', '.join(known)}, got {quoted(value)}"
        )
    return kind(value)


def refuse_place(options: ScoreOptions) -> None:
    """Raise `ValueError` for options that an open extractor has settled."""
    for name in ("engine", "workspace"):
        if name in options:
            raise ValueError(
                f"{name} was chosen when the extractor was opened; leave it out here"
            )


def _find_taxonomy(
    extractor: str | PromptVersion | Extractor, workspace: WorkspacePaths | None
) -> Taxonomy:
    if isinstance(extractor, Extractor):
        return extractor.taxonomy
    return read_taxonomy(workspace.labels if workspace else bundled() / "labels")


def _grade(
    joined: Joined,
    taxonomy: Taxonomy,
    extractor: str | PromptVersion | Extractor,
    options: _ScoreDefaults,
) -> Graded:
    """Return both sides as codes, with an extractor only where there are texts."""
    no_finding = NoFinding(options.no_finding)
    sides = (joined.reference, *joined.systems)
    if all(side.texts is None for side in sides):
        return grade(joined, taxonomy, None, no_finding)
    if isinstance(extractor, Extractor):
        return grade(joined, taxonomy, extractor, no_finding)
    with Extractor.open(options.workspace, extractor, options.engine) as opened:
        return grade(joined, taxonomy, opened, no_finding)
