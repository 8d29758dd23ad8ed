"""What the reports of a cohort assert, as clusters compared with the labels.

The phrases and clusters are made of the reports alone: no label, no guide, no reference
takes part. Only then is each cluster compared with the taxonomy and a prompt version.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide, Item, PromptTask
from loop.engines.rules.cues import read_cues
from loop.engines.rules.engine import ReportReader
from loop.engines.rules.sentence import Stance
from loop.engines.rules.vocabulary import GAP
from loop.evaluate.measure import resampling_units
from loop.labels.cohort import (
    Cohort,
    CohortRole,
    iter_items,
    read_cohort,
    require_reports,
)
from loop.labels.taxonomy import NO_FINDING, Taxonomy, read_taxonomy
from loop.optimize.discovery.clusters import CUT, cluster_phrases
from loop.optimize.discovery.noun_phrases import (
    AssertedPhrase,
    count_units,
    mend,
    mine_phrases,
)
from loop.optimize.discovery.phrase_words import (
    DISCOVERY,
    read_phrase_words,
)
from loop.prompts.catalog import latest_version, list_prompts, read_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.version import PromptVersion

MIN_REPORTS: Final = 5
"""Patients whose reports must hold a phrase, and assert it, before it is shown: the
wording of fewer is their text. A report of an unknown patient counts as a patient."""

LONGEST: Final = 4
"""Words of a phrase."""

MOST_PHRASES: Final = 3_000
"""Phrases that are put together: distances grow with the square."""

NEARLY: Final = 0.8
"""Share of the cases of a phrase that must assert a longer one that stands for it."""

PLACES: Final = 3
"""Places named of a cluster."""

ROLES: Final = (CohortRole.TAXONOMY, CohortRole.DEV)
"""Roles of the cohorts that labels may be designed on."""


def require_role(cohort: Cohort) -> None:
    """Refuse a cohort on which labels may not be designed.

    Raises
    ------
    DataError
        Its role is none of `ROLES`.
    """
    if cohort.role not in ROLES:
        raise DataError(
            f"cohort {cohort.name!r} has the role {cohort.role.value}. Labels are "
            "designed on cases that no claim rests on: name a cohort of the role "
            "taxonomy or dev, or import other reports with --role taxonomy."
        )


class ShownPhrase(NamedTuple):
    """One phrase of a cluster, counted in reports."""

    text: str
    """As a term of a guide is written."""

    asserted: int
    hedged: int
    denied: int
    labels: tuple[str, ...]
    """Labels of which it is a wording: where it is asserted, they are present."""

    unsettled: tuple[str, ...]
    """Labels that have a wording for it which leaves them uncertain."""


class MentionShares(NamedTuple):
    """Of the cases that mention something, the shares that hedge and that deny it."""

    hedged: float
    denied: float

    @classmethod
    def of(cls, asserted: int, hedged: int, denied: int) -> MentionShares | None:
        """Return the shares of numbers of cases; None where no case mentions it."""
        every = asserted + hedged + denied
        return cls(hedged / every, denied / every) if every else None


def name_cluster(phrases: Sequence[tuple[str, int]]) -> str:
    """Return what a cluster is called: its most frequent phrase, or a longer one.

    A longer one that nearly as many cases assert says more.

    Parameters
    ----------
    phrases
        Each with the number of cases that assert it, at least one.

    Examples
    --------
    >>> name_cluster([("hernia", 10), ("hiatal hernia", 9)])
    'hiatal hernia'
    """
    first, most = max(phrases, key=lambda one: one[1])
    longer = [
        text
        for text, asserted in phrases
        if set(first.split()) < set(text.split()) and asserted >= NEARLY * most
    ]
    return max(longer or [first], key=lambda text: len(text.split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingCluster:
    """Phrases that seem to name one finding, and the cases that hold them.

    Of a case with several of the phrases, what asserts one counts before what hedges
    one, and that before what denies one.
    """

    id: str
    """``c1`` is the one with most cases."""

    phrases: tuple[ShownPhrase, ...]
    """The most frequent first."""

    asserted: tuple[str, ...]
    """Ids of the cases that assert it, in the order of the cohort."""

    hedged: int
    """Cases that leave it open."""

    denied: int
    """Cases that deny it."""

    places: tuple[tuple[str, int], ...]
    """Parts of the body in the sentences that assert it, each with its cases."""

    near: str
    """Id of the cluster that is most like it; empty for none."""

    found: tuple[tuple[str, int], ...]
    """Labels that the prompt finds in the asserting cases, each with their number."""

    unlabelled: int
    """Asserting cases in which the prompt finds no label, present or uncertain."""

    @property
    def name(self) -> str:
        """As `name_cluster` has it."""
        return name_cluster([(one.text, one.asserted) for one in self.phrases])

    @property
    def covered(self) -> tuple[str, ...]:
        """Labels of which one of its phrases is a wording, in order."""
        return tuple(dict.fromkeys(one for p in self.phrases for one in p.labels))

    @property
    def unsettled(self) -> tuple[str, ...]:
        """Labels that one of its phrases only leaves uncertain, in order."""
        found = dict.fromkeys(one for p in self.phrases for one in p.unsettled)
        return tuple(one for one in found if one not in self.covered)

    @property
    def shares(self) -> MentionShares | None:
        """Of its cases that hedge it, and that deny it."""
        return MentionShares.of(len(self.asserted), self.hedged, self.denied)


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """The clusters of a cohort, and what they were made with."""

    cohort: str
    cohort_digest: str
    language: str
    cases: int
    """Cases that were read."""

    left_out: int
    """Cases of other languages."""

    unit: str
    """What `min_reports` counts: ``"patient"``, or ``"case"`` where none is known."""

    min_reports: int
    longest: int
    cut: float
    taxonomy: Taxonomy
    prompt: str
    """Reference of the version that the clusters are compared with; empty for none."""

    prompt_digest: str
    words_digest: str
    """Of labels/discovery.yaml."""

    cues: Mapping[str, str]
    """Language to digest."""

    clusters: tuple[FindingCluster, ...]
    """Those with most asserting cases first."""

    rare: int
    """Phrases not shown because too few patients' cases hold or assert them."""

    names: int
    """Words not shown because they may be a person's name."""

    beyond: int
    """Phrases left out because there were too many."""

    @property
    def phrases(self) -> int:
        """Phrases of all clusters."""
        return sum(len(one.phrases) for one in self.clusters)

    @property
    def lacking(self) -> tuple[FindingCluster, ...]:
        """Clusters of which no phrase makes any label present."""
        return tuple(one for one in self.clusters if not one.covered)

    @property
    def digest(self) -> str:
        """Sha256 over all phrases and what they were made with."""
        return digest_json(
            {
                "cohort": self.cohort_digest,
                "settings": [self.min_reports, self.longest, self.cut],
                "words": self.words_digest,
                "cues": dict(self.cues),
                "phrases": sorted(p.text for c in self.clusters for p in c.phrases),
            }
        )


def discover_findings(
    workspace: WorkspacePaths,
    cohort: str,
    *,
    prompt: str = "",
    min_reports: int = MIN_REPORTS,
    longest: int = LONGEST,
    cut: float = CUT,
) -> Discovery:
    """Return what the reports of a cohort assert, compared with the labels there are.

    Deterministic, without a model and without labels. About a millisecond a report.

    Parameters
    ----------
    cohort
        Of the role ``taxonomy`` or ``dev``. What labels are designed on cannot
        measure them afterwards.
    prompt
        Version to compare the clusters with; default: the newest of the only prompt
        for the taxonomy's labels, none where there is no prompt.
    min_reports
        Patients whose reports must hold and assert a phrase, 5 or more; a report of
        an unknown patient counts as a patient.
    longest
        Words of a phrase, 1 to 6.
    cut
        In (0, 1): mean distance from which on phrases stay apart; the greater, the
        fewer clusters.

    Raises
    ------
    DataError
        The cohort has another role or holds pairs, no case is in the language of
        ``labels/discovery.yaml``, or there are several prompts and none is named.
    ValueError
        A number is outside the range above.
    """
    _check_settings(min_reports, longest, cut)
    about = read_cohort(workspace, cohort)
    require_reports(about, "discover")
    require_role(about)
    words = read_phrase_words(workspace)
    cues = read_cues(workspace.labels)
    spaced = {one.language: one.words for one in cues}
    if not spaced.get(words.language):
        raise DataError(
            f"labels/{DISCOVERY} is of the language {words.language!r}, "
            + (
                "which puts no spaces between words: that is not supported."
                if words.language in spaced
                else f"and there are no cues for it. Add labels/cues/{words.language}"
                ".yaml."
            )
        )
    taxonomy = read_taxonomy(workspace.labels)
    version = _find_prompt(workspace, prompt, taxonomy)
    items = list(iter_items(workspace, about))
    spoken = [one for one in items if one.language == words.language]
    if not spoken:
        raise DataError(
            f"no case of cohort {cohort!r} is in the language {words.language!r} of "
            f"labels/{DISCOVERY}. Other languages need a file of their own there, and "
            "one that puts spaces between words: Chinese reports are not supported."
        )
    patients = {one.case_id: one.patient for one in about.cases}
    clusters = resampling_units([patients[one.id] for one in spoken])
    units = clusters.units.tolist()
    mined = mine_phrases(
        [one.variables["text"] for one in spoken],
        cues,
        words,
        units=units,
        min_reports=min_reports,
        longest=longest,
        most=MOST_PHRASES,
    )
    guides = version.guides if version else _name_guides(taxonomy)
    reader = ReportReader(guides, [guide.label for guide in guides], cues)
    return Discovery(
        cohort=cohort,
        cohort_digest=about.digest,
        language=words.language,
        cases=len(spoken),
        left_out=len(items) - len(spoken),
        unit=clusters.unit,
        min_reports=min_reports,
        longest=longest,
        cut=cut,
        taxonomy=taxonomy,
        prompt=version.ref if version else "",
        prompt_digest=version.digest if version else "",
        words_digest=words.digest,
        cues={one.language: one.digest for one in cues},
        clusters=_cluster(
            spoken,
            mined.phrases,
            reader,
            units=units,
            cut=cut,
            min_reports=min_reports,
        ),
        rare=mined.rare,
        names=mined.names,
        beyond=mined.beyond,
    )


def _check_settings(min_reports: int, longest: int, cut: float) -> None:
    if min_reports < MIN_REPORTS:
        raise ValueError(
            f"min_reports must be {MIN_REPORTS} or more, got {min_reports}: what the "
            "reports of fewer patients say is their text"
        )
    if not 1 <= longest <= 6:
        raise ValueError(f"longest must be 1 to 6 words, got {longest}")
    if not 0 < cut < 1:
        raise ValueError(f"cut must be in (0, 1), got {cut:g}")


def _find_prompt(
    workspace: WorkspacePaths, ref: str, taxonomy: Taxonomy
) -> PromptVersion | None:
    """Return the version named, or the newest of the only prompt for the labels."""
    if ref:
        version = read_version(workspace, ref)
        if not _extracts(version, taxonomy):
            raise DataError(
                f"{version.ref} does not ask for the labels of labels/taxonomy.yaml. "
                "Name a version that does."
            )
        return version
    found = [
        version
        for name in list_prompts(workspace)
        if _extracts(version := latest_version(workspace, name), taxonomy)
    ]
    if len(found) > 1:
        raise DataError(
            f"several prompts ask for these labels: {', '.join(v.ref for v in found)}. "
            "Name one with --prompt."
        )
    return found[0] if found else None


def _extracts(version: PromptVersion, taxonomy: Taxonomy) -> bool:
    """Whether a version asks one report for labels of the taxonomy."""
    known = set(version.labels) & set(taxonomy.extracted)
    return bool(known) and get_contract(version.contract).task is PromptTask.EXTRACT


def _name_guides(taxonomy: Taxonomy) -> tuple[Guide, ...]:
    """Return guides that hold the names of the labels alone."""
    return tuple(
        Guide(label=one.id, name=one.name, definition=one.definition, terms=one.aliases)
        for one in taxonomy.labels
        if one.id != NO_FINDING
    )


class _ClusterReports(NamedTuple):
    """Reports, by their places, that say something of a cluster."""

    asserted: frozenset[int]
    hedged: frozenset[int]
    denied: frozenset[int]


def _cluster(
    items: Sequence[Item],
    phrases: Sequence[AssertedPhrase],
    reader: ReportReader,
    *,
    units: Sequence[int],
    cut: float,
    min_reports: int,
) -> tuple[FindingCluster, ...]:
    """Return the clusters, those with most asserting cases first."""
    groups = cluster_phrases(phrases, cut=cut)
    members = [[phrases[at] for at in group.places] for group in groups]
    said = [_join(found) for found in members]
    order = sorted(
        range(len(groups)),
        key=lambda at: (-len(said[at].asserted), members[at][0].words),
    )
    ids = {at: f"c{number}" for number, at in enumerate(order, 1)}
    answers = [
        reader.stances(reader.split(mend(one.variables["text"]))) for one in items
    ]
    return tuple(
        FindingCluster(
            id=ids[at],
            phrases=tuple(_shown(one, reader) for one in members[at]),
            asserted=tuple(items[case].id for case in sorted(said[at].asserted)),
            hedged=len(said[at].hedged),
            denied=len(said[at].denied),
            places=_common_places(members[at], units, min_reports),
            near="" if (near := groups[at].near) is None else ids[near],
            found=_count_found([answers[case] for case in said[at].asserted]),
            unlabelled=sum(
                _FOUND.isdisjoint(answers[case].values()) for case in said[at].asserted
            ),
        )
        for at in order
    )


_FOUND: Final = frozenset({Stance.PRESENT, Stance.UNCERTAIN})


def _join(phrases: Sequence[AssertedPhrase]) -> _ClusterReports:
    asserted = frozenset[int]().union(*(one.asserted for one in phrases))
    hedged = frozenset[int]().union(*(one.hedged for one in phrases)) - asserted
    denied = frozenset[int]().union(*(one.denied for one in phrases))
    return _ClusterReports(asserted, hedged, denied - asserted - hedged)


def _shown(phrase: AssertedPhrase, reader: ReportReader) -> ShownPhrase:
    """Return a phrase with its counts and the labels that have a wording for it."""
    held: dict[str, Stance] = {}
    for hit in reader.read_sentence(phrase.wording.replace(GAP, "")):
        label = reader.labels[hit.target]
        held[label] = max(hit.stance, held.get(label, hit.stance))
    return ShownPhrase(
        phrase.wording,
        len(phrase.asserted),
        len(phrase.hedged),
        len(phrase.denied),
        tuple(one for one in reader.labels if held.get(one) is Stance.PRESENT),
        tuple(one for one in reader.labels if held.get(one) is Stance.UNCERTAIN),
    )


def _common_places(
    phrases: Iterable[AssertedPhrase], units: Sequence[int], min_reports: int
) -> tuple[tuple[str, int], ...]:
    held: dict[str, set[int]] = defaultdict(set)
    for phrase in phrases:
        for word, reports in phrase.located.items():
            held[word] |= reports
    counts = [
        (word, len(at))
        for word, at in held.items()
        if count_units(at, units) >= min_reports
    ]
    return tuple(sorted(counts, key=lambda one: (-one[1], one[0]))[:PLACES])


def _count_found(
    answers: Iterable[Mapping[str, Stance]],
) -> tuple[tuple[str, int], ...]:
    """Return the labels that are present in answers, the most frequent first."""
    counts = Counter(
        label
        for answer in answers
        for label, stance in answer.items()
        if stance is Stance.PRESENT
    )
    return tuple(sorted(counts.items(), key=lambda one: (-one[1], one[0])))
