"""Votes become a reference by majority; a tie is never absent."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, LoopError, UnknownLabelError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark, ValueCode
from loop.labels.ballots import (
    VOTE_CODES,
    Votes,
    format_votes,
    parse_turnout,
    parse_votes,
    read_cohort_votes,
    read_votes,
    votes_path,
)
from loop.labels.cohort import Cohort
from loop.labels.majority import (
    MajorityRule,
    Superseded,
    majority,
    read_rule,
    recorded_rule,
)
from loop.labels.reader_agreement import agreement_table, measure_agreement
from loop.labels.reference import (
    MARKS,
    as_scored,
    correct_reference,
    list_references,
    read_reference,
    reference_path,
)
from loop.labels.taxonomy import Taxonomy
from loop.labels.votes import import_votes, replace_votes

ACTOR = Actor(name="Dr. Example")
READERS = "ABCDEF"
HEADER = ["reader", "case_id", "label", "value"]

Maker = Callable[..., Cohort]
Writer = Callable[..., Path]


@pytest.fixture
def cohort(make_cohort: Maker) -> Cohort:
    """Return a cohort of three cases."""
    return make_cohort([("a1", "One."), ("a2", "Two."), ("a3", "Three.")])


def _ballots(case: str, values: str, label: str = "Edema") -> list[list[str]]:
    """Return one vote per character: p, a or u; a dot did not vote."""
    words = {"p": "present", "a": "absent", "u": "uncertain"}
    return [
        [reader, case, label, words[value]]
        for reader, value in zip(READERS, values, strict=False)
        if value != "."
    ]


@pytest.fixture
def read(cohort: Cohort, write_csv: Writer, taxonomy: Taxonomy):
    """Return a function that reads ballots as votes."""

    def run(rows: Sequence[Sequence[str]], header: Sequence[str] = HEADER) -> Votes:
        return read_votes(write_csv([header, *rows], "votes.csv"), cohort, taxonomy)

    return run


@pytest.mark.parametrize(
    ("values", "mark"),
    [
        ("pppppp", Mark.PRESENT),
        ("ppppaa", Mark.PRESENT),
        ("aaaapp", Mark.ABSENT),
        ("pppaaa", Mark.NO_MAJORITY),
        ("pppaau", Mark.NO_MAJORITY),
        ("ppaauu", Mark.NO_MAJORITY),
        ("aaauuu", Mark.NO_MAJORITY),
        ("aauuuu", Mark.UNCERTAIN),
        ("pppp..", Mark.PRESENT),
        ("ppp...", Mark.PRESENT),
        ("aaa..u", Mark.ABSENT),
        ("pp..aa", Mark.NO_MAJORITY),
    ],
)
def test_four_of_six_make_a_reference_label(read, values: str, mark: Mark) -> None:
    """Ties and scattered votes have no majority; who did not vote does not count."""
    votes = read([*_ballots("a1", values), *_ballots("a2", "aaaaaa")])
    assert MARKS[int(majority(votes)[0, 0])] is mark


@pytest.mark.parametrize(
    ("values", "rule", "mark"),
    [
        ("pppp..", MajorityRule(need=4), Mark.PRESENT),
        ("ppp...", MajorityRule(need=4), Mark.NO_MAJORITY),
        ("ppppaa", MajorityRule(need=5), Mark.NO_MAJORITY),
        ("pppaaa", MajorityRule(need=3), Mark.NO_MAJORITY),
        ("ppp...", MajorityRule(minimum_readers=3), Mark.PRESENT),
        ("pp....", MajorityRule(minimum_readers=3), Mark.NO_MAJORITY),
        ("......", MajorityRule(minimum_readers=3), Mark.MISSING),
        ("pppp..", MajorityRule(need=4, minimum_readers=5), Mark.NO_MAJORITY),
    ],
)
def test_a_rule_may_ask_for_more_than_over_half(
    read, values: str, rule: MajorityRule, mark: Mark
) -> None:
    """A count or fewest readers never make a mark that over half would not."""
    votes = read([*_ballots("a1", values), *_ballots("a2", "aaaaaa")])
    assert MARKS[int(majority(votes, rule)[0, 0])] is mark


@pytest.mark.parametrize("need", [4, 5, 6])
def test_a_count_of_an_earlier_release_gives_the_same_marks(need: int) -> None:
    """It was a count of all readers, over half of them: nothing is re-judged."""
    said = (ValueCode.NOT_VOTED, *VOTE_CODES.values())
    codes = np.array(list(product(said, repeat=6)), dtype=np.int8)
    votes = Votes(
        readers=tuple(READERS),
        case_ids=tuple(map(str, range(len(codes)))),
        labels=("edema",),
        values=codes[:, None, :],
    )
    marks = majority(votes, recorded_rule({"need": need, "readers": 6}))[:, 0]
    for code in VOTE_CODES.values():
        as_before = (codes == code).sum(axis=1) >= need
        assert ((marks == code) == as_before).all()


def test_a_pair_nobody_voted_on_is_missing(read) -> None:
    """Not looked at is not absent."""
    marks = majority(read(_ballots("a1", "pppppp")))
    assert [MARKS[int(code)] for code in marks[:, 0]] == [
        Mark.PRESENT,
        Mark.MISSING,
        Mark.MISSING,
    ]


def test_absent_always_has_its_majority(read) -> None:
    """Of all 729 ballots of six readers, absent needs four absent votes."""
    for values in product("pau", repeat=6):
        votes = read([*_ballots("a1", "".join(values))])
        mark = MARKS[int(majority(votes)[0, 0])]
        assert (mark is Mark.ABSENT) == (values.count("a") >= 4)


@pytest.mark.parametrize(("readers", "need"), [(2, 2), (3, 2), (4, 3), (5, 3), (6, 4)])
def test_the_default_is_over_half(read, readers: int, need: int) -> None:
    """`k` of `n` with k = n // 2 + 1: two values can never both win."""
    enough = "p" * need + "a" * (readers - need)
    short = "p" * (need - 1) + "u" * (readers - need + 1)
    votes = read([*_ballots("a1", enough), *_ballots("a2", short)])
    marks = majority(votes)
    assert MARKS[int(marks[0, 0])] is Mark.PRESENT
    assert MARKS[int(marks[1, 0])] is not Mark.PRESENT


@pytest.mark.parametrize("need", [0, 7])
def test_a_need_that_nobody_reaches_is_refused(read, need: int) -> None:
    """Seven of six would leave every pair open."""
    with pytest.raises(DataError, match=f"{need} equal votes of 6.*Use 1 to 6"):
        majority(read(_ballots("a1", "pppppp")), MajorityRule(need=need))


@pytest.mark.parametrize(
    ("content", "fewest"),
    [(None, 1), ("accuracy: 0.9\n", 1), ("minimum_readers: 3\nrule: point\n", 3)],
)
def test_the_protocol_says_the_fewest_readers(
    workspace: WorkspacePaths, content: str | None, fewest: int
) -> None:
    """Without the field, or without a protocol, any number of readers is enough."""
    if content is None:
        workspace.protocol.unlink(missing_ok=True)
    else:
        workspace.protocol.write_text(content)
    assert read_rule(workspace).minimum_readers == fewest


@pytest.mark.parametrize("need", [1, 2, 4])
@pytest.mark.parametrize("readers", [1, 2, 3])
@pytest.mark.parametrize("read", [False, True])
def test_a_rule_says_what_it_asks_for_and_nothing_more(
    need: int, readers: int, read: bool
) -> None:
    """In words and in the ledger, from which the same rule comes back."""
    rule = MajorityRule(need=need, minimum_readers=readers, no_finding_read=read)
    assert (f"at least {need} equal votes" in rule.words) == (need > 1)
    assert (f"at least {readers} readers" in rule.words) == (readers > 1)
    assert ("No Finding" in rule.words) == read
    asked = {"need": need > 1, "minimum_readers": readers > 1, "no_finding": read}
    assert set(rule.facts) == {"majority", *(name for name in asked if asked[name])}
    assert recorded_rule(rule.facts) == rule


def test_fewest_readers_that_are_no_number_are_refused(
    workspace: WorkspacePaths,
) -> None:
    """A typing error must not become a rule."""
    workspace.protocol.write_text("minimum_readers: 0\n")
    with pytest.raises(DataError, match="minimum_readers"):
        read_rule(workspace)


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        (["A", "zz", "Edema", "present"], DataError, "line 3: cohort 'mine' has no"),
        (["A", "a1", "Edma", "present"], UnknownLabelError, "line 3: .*mean 'Edema'"),
        (["A", "a1", "edema", "1"], DataError, "line 3: 'A' already voted.*line 2"),
        (["B", "a1", "Edema", "perhaps"], DataError, "line 3: column 'value'"),
        (["B", "a1", "Edema", ""], DataError, "line 3: a vote is present"),
        (["", "a1", "Edema", "1"], DataError, "line 3: no reader"),
        (["B", "a1", "Edema"], DataError, "line 3: 3 cells, the header has 4"),
    ],
)
def test_a_wrong_vote_is_refused_with_its_line(
    read, row: list[str], error: type[Exception], message: str
) -> None:
    """One wrong line stops the file: a vote is never dropped in silence."""
    with pytest.raises(error, match=message):
        read([["A", "a1", "Edema", "present"], row])


def test_a_missing_column_is_named(read) -> None:
    """The message lists the columns wanted."""
    with pytest.raises(
        DataError, match=r"no column reader.*reader,case_id,label,value"
    ):
        read([["A", "a1", "Edema", "1"]], ["doctor", "case_id", "label", "value"])


def test_a_file_without_votes_is_refused(read) -> None:
    """An empty file is a mistake, not a reference of missing marks."""
    with pytest.raises(DataError, match="holds no vote"):
        read([])


def test_importing_votes_makes_a_reference(
    workspace: WorkspacePaths, cohort: Cohort, taxonomy: Taxonomy, write_csv: Writer
) -> None:
    """The votes stay with the cohort, the majority becomes its reference."""
    rows = [*_ballots("a1", "ppppaa"), *_ballots("a2", "pppaaa")]
    path = write_csv([HEADER, *rows], "votes.csv")
    report = import_votes(workspace, cohort, path, taxonomy, need=None, actor=ACTOR)
    assert (report.votes, report.rule, report.reference) == (12, MajorityRule(), 1)
    assert report.marks["no_majority"] == 1
    reference = read_reference(workspace, "mine")
    assert reference.mark("a2", "edema") is Mark.NO_MAJORITY
    kept = read_cohort_votes(workspace, cohort, taxonomy)
    assert kept.count == 12
    again = import_votes(workspace, cohort, path, taxonomy, need=None, actor=ACTOR)
    assert again.reference == 1


def test_replaced_votes_are_kept_and_add_a_version(
    workspace: WorkspacePaths, cohort: Cohort, taxonomy: Taxonomy, write_csv: Writer
) -> None:
    """Nothing a reader ever said is lost."""
    for number, values in enumerate(("pppppp", "aaaaaa"), 1):
        path = write_csv([HEADER, *_ballots("a1", values)], "votes.csv")
        report = replace_votes(workspace, cohort, path, taxonomy, need=4, actor=ACTOR)
        assert report.reference == number
    kept = list((workspace.private / "replaced").glob("mine-votes-*.csv"))
    assert len(kept) == 1
    assert b"present" in kept[0].read_bytes()


@pytest.mark.parametrize("edit", ["absent", "never recorded"])
def test_edited_or_planted_votes_are_not_read(
    workspace: WorkspacePaths,
    cohort: Cohort,
    taxonomy: Taxonomy,
    write_csv: Writer,
    edit: str,
) -> None:
    """Agreement is a claim about readers: their votes must be those recorded."""
    path, kept = (
        write_csv([HEADER, *_ballots("a1", "pppppp")], "votes.csv"),
        votes_path(workspace, "mine"),
    )
    if edit == "absent":
        import_votes(workspace, cohort, path, taxonomy, need=None, actor=ACTOR)
        kept.write_text(kept.read_text().replace("present", "absent", 1))
    else:
        kept.write_bytes(path.read_bytes())
    with pytest.raises(DataError, match=r"csv has the digest.*cohort votes mine"):
        read_cohort_votes(workspace, cohort, taxonomy)


def test_votes_with_the_same_majority_are_recorded_too(
    workspace: WorkspacePaths, cohort: Cohort, taxonomy: Taxonomy, write_csv: Writer
) -> None:
    """No new version, but the ledger knows the digest of the votes now kept."""
    for values in ("pppppp", "pppppa"):
        path = write_csv([HEADER, *_ballots("a1", values)], "votes.csv")
        report = replace_votes(
            workspace, cohort, path, taxonomy, need=None, actor=ACTOR
        )
        assert report.reference == 1
        kept = votes_path(workspace, "mine").read_bytes()
        payload = read_ledger(workspace.ledger)[-1].payload
        assert payload["votes"] == digest_bytes(kept)
        assert (payload["majority"], payload["readers"]) == (MajorityRule().words, 6)
        assert read_cohort_votes(workspace, cohort, taxonomy).count == 6


def test_what_new_votes_undo_is_counted(
    workspace: WorkspacePaths, cohort: Cohort, taxonomy: Taxonomy, write_csv: Writer
) -> None:
    """Corrections that are undone and labels nobody votes on now are never silent."""
    first = [
        row
        for case in ("a1", "a2", "a3")
        for label in ("Edema", "Fracture")
        for row in _ballots(case, "pppppp", label)
    ]
    path = write_csv([HEADER, *first], "votes.csv")
    report = replace_votes(workspace, cohort, path, taxonomy, need=None, actor=ACTOR)
    assert report.superseded == (0, 0)
    assert len(report.not_voted) == 19
    for number, case in enumerate(("a1", "a2"), 2):
        wanted = {(case, "edema"): Mark.ABSENT, (case, "fracture"): Mark.ABSENT}
        made = correct_reference(
            workspace, cohort, wanted, actor=ACTOR, reason="read again"
        )
        assert made == number
    second = [*_ballots("a1", "aaaaaa"), *_ballots("a2", "pppppp")]
    path = write_csv([HEADER, *second], "votes.csv")
    report = replace_votes(workspace, cohort, path, taxonomy, need=None, actor=ACTOR)
    # Edema of a1 stays absent, and so does that of a2, on which nobody voted again;
    # both fractures are gone.
    assert report.superseded == Superseded(corrections=2, missing=4)
    assert "fracture" in report.not_voted
    assert len(report.not_voted) == 20


def test_what_an_edited_reference_loses_is_not_counted_as_nothing(
    workspace: WorkspacePaths, cohort: Cohort, taxonomy: Taxonomy, write_csv: Writer
) -> None:
    """Votes may replace an edited file, but zero would be a claim about it."""
    for values in ("pppppp", "aaaaaa"):
        path = write_csv([HEADER, *_ballots("a1", values)], "votes.csv")
        report = replace_votes(
            workspace, cohort, path, taxonomy, need=None, actor=ACTOR
        )
        made = reference_path(workspace, "mine", report.reference)
        made.write_text(made.read_text().replace("missing", "absent", 1))
    assert report.superseded is None


def test_votes_are_put_back_when_the_reference_cannot_be_written(
    workspace: WorkspacePaths, cohort: Cohort, taxonomy: Taxonomy, write_csv: Writer
) -> None:
    """Votes and reference change together or not at all."""
    path = write_csv([HEADER, *_ballots("a1", "pppppp")], "votes.csv")
    workspace.ledger.write_bytes(b"broken\n")
    with pytest.raises(LoopError):
        import_votes(workspace, cohort, path, taxonomy, need=None, actor=ACTOR)
    assert not votes_path(workspace, "mine").exists()
    assert list_references(workspace, "mine") == ()


def test_a_cohort_without_votes_says_how_to_add_them(
    workspace: WorkspacePaths, cohort: Cohort, taxonomy: Taxonomy
) -> None:
    """Agreement needs votes; the command that adds them is named."""
    with pytest.raises(DataError, match="ranloop cohort votes mine FILE"):
        read_cohort_votes(workspace, cohort, taxonomy)


def test_agreement_of_a_worked_table(read, taxonomy: Taxonomy) -> None:
    """Two readers, 1 of 3 cases differs: kappa 0.4 and raw 2/3, by hand."""
    votes = read([*_ballots("a1", "pp"), *_ballots("a2", "aa"), *_ballots("a3", "pa")])
    report = measure_agreement(votes, taxonomy, cohort="mine", resamples=200)
    (label,) = report.labels
    assert label.raw == pytest.approx(2 / 3)
    assert label.pairs[0].kappa.value == pytest.approx(0.4)
    assert label.votes == 6


def test_six_readers_make_fifteen_pairs(read, taxonomy: Taxonomy) -> None:
    """And six comparisons with the majority of the other five."""
    votes = read(
        [
            *_ballots("a1", "ppppaa"),
            *_ballots("a2", "aaaaau"),
            *_ballots("a3", "pppppp"),
        ]
    )
    report = measure_agreement(votes, taxonomy, cohort="mine", resamples=200)
    assert len(report.pooled.pairs) == 15
    assert len(report.labels[0].ceiling.readers) == 6
    first = report.labels[0]
    assert (first.votes, first.present, first.uncertain) == (18, 10, 1)
    # Pairs that agree: 14 of 30, 20 of 20, 30 of 30.
    assert first.raw == report.pooled.raw == pytest.approx(64 / 80)


def test_all_labels_together_are_resampled_by_case(read, taxonomy: Taxonomy) -> None:
    """A second label that says the same is no further evidence: no narrower limits."""
    said = {"a1": "ppa", "a2": "aaa", "a3": "ppp"}
    votes = read(
        [
            row
            for label in ("Edema", "Fracture")
            for case, values in said.items()
            for row in _ballots(case, values, label)
        ]
    )
    report = measure_agreement(votes, taxonomy, cohort="mine", resamples=200)
    for name in ("mean_kappa", "fleiss", "alpha"):
        pooled, single = getattr(report.pooled, name), getattr(report.labels[0], name)
        assert (pooled.low, pooled.high) == pytest.approx((single.low, single.high))


def test_uncertain_votes_can_be_a_category(read, taxonomy: Taxonomy) -> None:
    """Two readers who are both uncertain agree only if uncertain counts."""
    votes = read([*_ballots("a1", "uu"), *_ballots("a2", "aa"), *_ballots("a3", "pp")])
    left_out = measure_agreement(votes, taxonomy, cohort="mine", resamples=200)
    counted = measure_agreement(
        votes, taxonomy, cohort="mine", resamples=200, uncertain_is_category=True
    )
    assert "2 of 3" in left_out.labels[0].alpha.note
    assert counted.labels[0].alpha.value == pytest.approx(1.0)
    assert "of 3" not in counted.labels[0].alpha.note


def test_one_reader_has_no_agreement(read, taxonomy: Taxonomy) -> None:
    """The message says what is missing."""
    votes = read(_ballots("a1", "p"))
    with pytest.raises(DataError, match="one reader only"):
        measure_agreement(votes, taxonomy, cohort="mine")


HOSTILE_NAMES = ("Dr, A", 'Dr "B"', "Dr\u2028C", "D\tE", "=cmd")


@pytest.mark.parametrize("names", [("A", "B"), HOSTILE_NAMES])
def test_a_kept_file_is_read_back_as_it_was(
    cohort: Cohort, taxonomy: Taxonomy, names: tuple[str, ...]
) -> None:
    """Votes and turnout, whatever the readers are called."""
    values = np.full((3, 2, len(names)), ValueCode.NOT_VOTED, dtype=np.int8)
    values[0, :, 0] = ValueCode.PRESENT
    values[2, 1, -1] = ValueCode.UNCERTAIN
    values[1, 0, :] = ValueCode.ABSENT
    votes = Votes(
        readers=tuple(sorted(names)),
        case_ids=cohort.case_ids,
        labels=("edema", "fracture"),
        values=values,
    )
    raw, path = format_votes(votes), Path("votes.csv")
    again = parse_votes(raw, cohort, taxonomy, path)
    assert (again.readers, again.labels) == (votes.readers, votes.labels)
    assert (again.values == values).all()
    turnout = parse_turnout(raw, cohort, path)
    assert turnout.readers == votes.readers
    assert (turnout.voted == (values != ValueCode.NOT_VOTED).any(axis=1)).all()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("A,a1,edema,present", "line 3: 'A' already voted"),
        ("B,zz,edema,present", "line 3: cohort 'mine' has no case"),
        ("B,a1,edema,perhaps", "is not a file of votes"),
        ("B,a1,edema", "is not a file of votes"),
        ("B,a1,nonsense,present", "nonsense"),
    ],
)
def test_a_kept_file_that_is_wrong_is_refused_with_its_line(
    cohort: Cohort, taxonomy: Taxonomy, line: str, message: str
) -> None:
    """Read as a whole or line by line, nothing wrong is taken in."""
    raw = f"reader,case_id,label,value\nA,a1,edema,present\n{line}\n".encode()
    with pytest.raises(DataError, match=message):
        parse_votes(raw, cohort, taxonomy, Path("votes.csv"))


def test_a_turnout_of_another_cohort_is_refused(cohort: Cohort) -> None:
    """A case that the cohort lacks means that the file is another one's."""
    raw = b"reader,case_id,label,value\nA,zz,edema,present\n"
    with pytest.raises(DataError, match="not a file of votes"):
        parse_turnout(raw, cohort, Path("votes.csv"))


def test_votes_on_a_label_that_was_renamed_are_read_under_its_alias(
    cohort: Cohort, taxonomy: Taxonomy
) -> None:
    """Without it the message says what to do; nobody's votes are dropped silently."""
    raw = b"reader,case_id,label,value\nA,a1,hydrops,present\nA,a2,fracture,absent\n"
    with pytest.raises(UnknownLabelError, match=r"line 2: votes on 'hydrops'.*aliases"):
        parse_votes(raw, cohort, taxonomy, Path("votes.csv"))
    labels = tuple(
        replace(one, aliases=(*one.aliases, "hydrops")) if one.id == "edema" else one
        for one in taxonomy.labels
    )
    renamed = replace(taxonomy, labels=labels)
    votes = parse_votes(raw, cohort, renamed, Path("votes.csv"))
    assert votes.labels == ("edema", "fracture")
    assert votes.values[0, 0, 0] == ValueCode.PRESENT


def _add_label(taxonomy: Taxonomy) -> Taxonomy:
    """Return a taxonomy that got one label more."""
    label = replace(taxonomy.labels[0], id="scoliosis", name="Scoliosis", aliases=())
    return replace(taxonomy, labels=(*taxonomy.labels, label))


@pytest.mark.parametrize("read", ["derived", "read"])
def test_a_derived_no_finding_is_unknown_of_labels_that_came_later(
    workspace: WorkspacePaths, cohort: Cohort, taxonomy: Taxonomy, write_csv, read: str
) -> None:
    """Nobody looked for the new label; one that was read as a label of its own stands.

    A "No Finding" that is absent stays so: some finding is there. A correction by
    verdict changes nothing of where the marks come from.
    """
    workspace.protocol.write_text(f"no_finding: {read}\n", "utf-8")
    rows = [
        ["A", case, label, "absent"]
        for case in cohort.case_ids
        for label in taxonomy.extracted
    ]
    rows += [["A", "a1", "No Finding", "present"], ["A", "a2", "No Finding", "present"]]
    rows += [["A", "a3", "No Finding", "absent"]]
    path = write_csv([HEADER, *rows], "votes.csv")
    import_votes(workspace, cohort, path, taxonomy, need=None, actor=ACTOR)
    fix = {("a2", "edema"): Mark.PRESENT, ("a2", "no_finding"): Mark.ABSENT}
    correct_reference(workspace, cohort, fix, actor=ACTOR, reason="verdicts")

    def no_finding(labels: Taxonomy) -> list[str]:
        found = as_scored(read_reference(workspace, cohort.name), labels)
        return [found.mark(case, "no_finding").value for case in cohort.case_ids]

    later = _add_label(taxonomy)
    assert no_finding(taxonomy) == ["present", "absent", "absent"]
    first = "missing" if read == "derived" else "present"
    assert no_finding(later) == [first, "absent", "absent"]
    new = write_csv([HEADER, ["B", "a1", "Scoliosis", "absent"]], "new.csv")
    import_votes(workspace, cohort, new, later, need=None, actor=ACTOR)
    assert no_finding(later) == ["present", "absent", "absent"]


def test_votes_in_wide_form_are_the_same_votes(
    read, cohort: Cohort, taxonomy: Taxonomy, write_csv
) -> None:
    """One row per reader and case; a blank cell is no vote, and never absent."""
    long = read([*_ballots("a1", "pa"), ["A", "a1", "Fracture", "uncertain"]])
    header = ["study_id", "Fracture", "reader", "edema", "remark"]
    rows = [["a1", "-1", "A", "yes", "x"], ["a1", "", "B", "0", ""]]
    wide = read(rows, header)
    assert (wide.readers, wide.labels) == (long.readers, long.labels)
    assert (wide.values == long.values).all()
    assert wide.count == 3
    path = write_csv([header, ["a1", "", "A", "ja", ""]], "wide.csv")
    said = read_votes(path, cohort, taxonomy, {"ja": "uncertain"})
    assert said.values[0, 0, 0] == ValueCode.UNCERTAIN
    frame = pd.DataFrame({"reader": ["A"], "case_id": ["a1"], "Edema": [1]})
    assert read_votes(frame, cohort, taxonomy).count == 1


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (["reader", "case_id"], "no table of votes"),
        (["case_id", "Edema"], "no table of votes"),
        (["reader", "case_id", "Edma"], "Did you mean 'Edema'"),
        (["reader", "case_id", "Edema", "edema"], "both label edema"),
        (["reader", "case_id", "Edema", "value"], "no column label"),
        (["reader", "case_id", "Edema"], "a vote is present, absent or uncertain"),
    ],
)
def test_a_table_that_is_no_table_of_votes_is_refused(read, header, message) -> None:
    """A column that is almost a label is not passed over."""
    with pytest.raises(LoopError, match=message):
        read([["A", "a1", "no_majority", ""][: len(header)]], header)


def test_who_voted_is_read_of_a_file_or_it_is_refused(cohort: Cohort) -> None:
    """Readers by name, cases in the order of the cohort; any vote on a case counts."""
    raw = (
        b"reader,case_id,label,value\n"
        b"B,a3,edema,present\nA,a1,edema,absent\nA,a1,fracture,absent\nA,a3,edema,"
        b"uncertain\n"
    )
    found = parse_turnout(raw, cohort, Path("votes.csv"))
    assert (found.readers, found.case_ids) == (("A", "B"), ("a1", "a2", "a3"))
    assert found.voted.tolist() == [[True, False], [False, False], [True, True]]
    for wrong in (b"A\n", b"\xff", b'x\n"A', b'"'):
        broken = raw + wrong + b"\n" if wrong != b'"' else wrong
        with pytest.raises(DataError, match=r"votes\.csv is not a file of votes\. Res"):
            parse_turnout(broken, cohort, Path("votes.csv"))


def test_earlier_votes_are_put_back_when_the_next_cannot_be_recorded(
    workspace: WorkspacePaths,
    cohort: Cohort,
    taxonomy: Taxonomy,
    write_csv: Writer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are what the ledger says, and no version was made of the others."""
    first = write_csv([HEADER, *_ballots("a1", "pppppp")], "votes.csv")
    import_votes(workspace, cohort, first, taxonomy, need=None, actor=ACTOR)
    kept = votes_path(workspace, "mine").read_bytes()

    def refuse(*_: object, **__: object) -> None:
        raise LoopError("the ledger cannot be written")

    monkeypatch.setattr("loop.labels.reference.append_event", refuse)
    second = write_csv([HEADER, ["G", "a2", "Edema", "absent"]], "more.csv")
    with pytest.raises(LoopError, match="the ledger"):
        import_votes(workspace, cohort, second, taxonomy, need=None, actor=ACTOR)
    assert votes_path(workspace, "mine").read_bytes() == kept
    assert list_references(workspace, "mine") == (1,)
    assert read_cohort_votes(workspace, cohort, taxonomy).count == 6


def test_ratings_of_a_label_leave_out_who_did_not_vote(read) -> None:
    """Uncertain is left out, or a category of its own."""
    votes = read(
        [*_ballots("a1", "pau"), *_ballots("a3", "a"), *_ballots("a2", "p", "Fracture")]
    )
    assert votes.count == 5
    assert votes.ratings("edema").tolist() == [[1, 0, -1], [-1, -1, -1], [0, -1, -1]]
    assert votes.ratings("edema", uncertain=2).tolist() == [
        [1, 0, 2],
        [-1, -1, -1],
        [0, -1, -1],
    ]
    assert votes.ratings("fracture").tolist() == [[-1] * 3, [1, -1, -1], [-1] * 3]


def test_agreement_is_a_table_of_every_number(read, taxonomy: Taxonomy) -> None:
    """Votes and shares by hand: 4 of 8 pairs of decided votes on edema agree."""
    votes = read(
        [
            *_ballots("a1", "ppa"),
            *_ballots("a2", "aa"),
            *_ballots("a3", "ppau"),
            *_ballots("a1", "aaa", "Fracture"),
        ]
    )
    report = measure_agreement(votes, taxonomy, cohort="mine", resamples=50)
    edema, fracture, everything = csv.DictReader(io.StringIO(agreement_table(report)))
    names = ("label", "name", "cohort", "votes", "present", "uncertain", "same")
    assert [tuple(row[name] for name in names) for row in (edema, fracture)] == [
        ("edema", "Edema", "mine", "9", "4", "1", f"{3 / 7:.6g}"),
        ("fracture", "Fracture", "mine", "3", "0", "0", "1"),
    ]
    assert tuple(everything[name] for name in names) == (
        "all", "All labels", "mine", "12", "4", "1", "0.6",
    )  # fmt: skip
    one = report.labels[0]
    estimates = {
        "cohen_mean": one.mean_kappa,
        "fleiss": one.fleiss,
        "krippendorff": one.alpha,
        "reader_accuracy_mean": one.ceiling.accuracy,
        "reader_kappa_mean": one.ceiling.kappa,
    }
    for name, estimate in estimates.items():
        for part, value in zip(("", "_low", "_high"), estimate[:3], strict=True):
            shown = "" if value is None else f"{value:.6g}"
            assert edema[f"{name}{part}"] == shown, name
        assert edema[f"{name}_note"] == estimate.note
    pairs = [
        name for name in edema if name.startswith("kappa ") and "others" not in name
    ]
    assert pairs == [f"kappa {a} / {b}" for a, b in combinations("ABCD", 2)]
    others = [name for name in edema if name.endswith(" / others")]
    assert others == [f"kappa {reader} / others" for reader in "ABCD"]
