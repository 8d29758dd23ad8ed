"""Shots are looked up by digest, and never share anything with what is judged."""

import json
from dataclasses import replace

import pytest

from loop.core.errors import DataError, OverlapError
from loop.core.paths import WorkspacePaths, bundled
from loop.judge.shots import add_shots, request_shots
from loop.labels.cohort import texts_path
from loop.labels.shot_pool import SYNTHETIC, MarkedCounts, PoolPair, read_pool
from loop.prompts.catalog import read_version
from loop.prompts.shot_records import Shot, ShotKind, ShotScore
from loop.run.asking import EngineOptions
from loop.run.pool_shots import (
    NOTHING_SHARED,
    PairToJudge,
    SharedPairs,
    find_shared,
    injected_path,
    keep_injected,
    make_shot,
    require_apart,
    source_id,
    with_shots,
)
from loop.run.task import prepare_run
from tests.judge.scenes import as_pool, call, rate, table


@pytest.fixture
def pooled(workspace, tmp_path):
    """Make a workspace with a pool, a judge ``mine`` and the dev cohort ``rp``."""
    rate(workspace, tmp_path)
    assert as_pool(workspace, tmp_path).exit_code == 0
    return workspace


def judge_with(workspace, words, pool="pool", **request):
    """Return the judge with shots as a version would have them: texts not there."""
    mine = read_version(workspace, "mine@v1")
    made = add_shots(workspace, mine, request_shots(words, pool, **request))
    return replace(made, composed=False), replace(made, composed=False, shown=())


@pytest.mark.parametrize("words", ["random:2", "injected:1", "random:1"])
def test_what_was_pinned_is_found_again(pooled, words):
    """From the pool, or for injected errors from the private file."""
    shown, pinned = judge_with(pooled, words)
    keep_injected(pooled, shown)
    assert with_shots(pooled, pinned) == shown
    assert with_shots(pooled, shown) is shown
    mine = read_version(pooled, "mine@v1")
    assert with_shots(pooled, mine) is mine


def test_an_assessed_shot_is_all_of_one_rater(pooled):
    """Counts, words and score; the mean of all raters is for other kinds."""
    mine = read_version(pooled, "mine@v1")
    side = replace(mine, guides=tuple(g for g in mine.guides if g.label == "location"))
    made = add_shots(pooled, side, request_shots("assessed:1", "pool"))
    assert [pin.id for pin in made.shots.pins] == ["q1", "q3"]
    first, other = made.shown
    assert first.score == 0.25
    assert first.explanation == "location, significant: zebra side"
    assert (other.score, other.significant) == (1.0, ())
    drawn, _ = judge_with(pooled, "random:2")
    scores = {p.id: s.score for p, s in zip(drawn.shots.pins, drawn.shown, strict=True)}
    assert scores["q3"] == 1.0 and scores.get("q1", 0.375) == 0.375


def refused(workspace, version):
    """Return why the shots of a version cannot be looked up; no text is in it."""
    with pytest.raises(DataError) as said:
        with_shots(workspace, version)
    assert "ebra" not in str(said.value)
    return str(said.value)


def test_a_text_that_was_edited_is_refused(pooled):
    """By the pool's own digests."""
    _, pinned = judge_with(pooled, "random:2")
    path = texts_path(pooled, "pool")
    path.write_text(path.read_text().replace("Zebra nodule", "Zebra mass"))
    said = refused(pooled, pinned)
    assert "shows examples of the pool 'pool', which cannot be used here" in said
    assert "Import the cohort again" in said


def test_another_assessment_is_refused(pooled, tmp_path):
    """What a rater says now is not what was shown."""
    _, pinned = judge_with(pooled, "random:2")
    points = table(
        tmp_path / "more.csv",
        ("case_id", "rater", "dimension", "points", "scale"),
        [(case, "r3", "overall", 4, "1-5") for case in ("q1", "q2", "q3")],
    )
    assert call(pooled, "cohort", "ratings", "pool", "--ratings", points).exit_code == 0
    said = refused(pooled, pinned)
    assert "was edited or is rated differently" in said
    assert "`ranloop prompt shots mine random:2 --pool pool --seed 0`" in said


def test_a_version_of_other_categories_needs_shots_of_its_own(pooled):
    """Errors that it does not ask for would neither be shown nor count."""
    _, pinned = judge_with(pooled, "random:2", score=ShotScore.LINEAR)
    fewer = tuple(one for one in pinned.guides if one.label == "comparison")
    said = refused(pooled, replace(pinned, guides=fewer))
    assert "the version asks for other categories" in said


def test_a_shot_that_is_gone_is_refused(pooled, tmp_path):
    """The pool may have been imported again without it."""
    _, pinned = judge_with(pooled, "random:2")
    fewer = table(
        tmp_path / "fewer.csv", ("id", "reference", "candidate"), [("q9", "A.", "B.")]
    )
    options = ("--role", "shots", "--source", "made up", "--licence", "none")
    done = call(
        pooled, "cohort", "import", fewer, "--name", "pool", *options, "--replace"
    )
    assert done.exit_code == 0, done.output
    assert "is gone" in refused(pooled, pinned)


def test_a_pool_that_is_not_here_is_named(pooled):
    """As on the machine of somebody who got the release only."""
    _, pinned = judge_with(pooled, "random:2")
    texts_path(pooled, "pool").unlink()
    assert "texts are private and do not travel" in refused(pooled, pinned)
    assert "there is no workspace here" in refused(None, pinned)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "are not on this machine"),
        ("no json\n", "cannot be read"),
        ("[]\n", "cannot be read"),
        ("", "is gone"),
        ('{"reference": "zebra"}\n', "is gone|cannot be read|was edited"),
    ],
)
def test_injected_shots_that_are_not_as_pinned(pooled, content, why):
    """Their file is private and may be missing, damaged or of others."""
    shown, pinned = judge_with(pooled, "injected:1")
    keep_injected(pooled, shown)
    path = injected_path(pooled, shown.shots)
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink() if content is None else path.write_text(content)
    said = refused(pooled, pinned)
    assert any(one in said for one in why.split("|")), said


def test_an_injected_text_that_was_edited_is_refused(pooled):
    """Also where it is still a shot."""
    shown, pinned = judge_with(pooled, "injected:1")
    keep_injected(pooled, shown)
    path = injected_path(pooled, shown.shots)
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "candidate": "Another zebra."}) + "\n")
    assert "was edited" in refused(pooled, pinned)


def shared(workspace, pairs, key="", words="random:2"):
    """Return what pairs share with the shots of the judge."""
    shown, _ = judge_with(workspace, words)
    return find_shared(workspace, shown, pairs, pseudonym_key=key)


def test_a_shared_reference_patient_or_id_is_found(pooled):
    """A reference also where case and punctuation differ."""
    pool = read_pool(pooled, "pool")
    pairs = [
        PairToJudge("q3", "Something else entirely is written here."),
        PairToJudge("e2", "zebra nodule, on the LEFT"),
        PairToJudge("e3", "Nothing of it.", pool.pairs[2].patient),
        PairToJudge("e4", "Free of it.", "0123456789abcdef"),
    ]
    found = shared(pooled, pairs, pool.pseudonym_key)
    assert (found.cases, found.references, found.patients) == ({"q3"}, {"e2"}, {"e3"})
    assert found.words == "1 by the reference, 1 by the patient, 1 by the id"
    assert not found.patients_compared
    named = [one._replace(patient=one.patient or "f" * 16) for one in pairs]
    assert shared(pooled, named, pool.pseudonym_key).patients_compared
    assert not shared(pooled, named, "another").patients_compared
    assert shared(pooled, pairs, "another").patients == frozenset()
    assert shared(pooled, pairs[3:]).ids == frozenset()


@pytest.mark.parametrize("id", ["q1", "q9"])
def test_injected_shots_of_a_pool_that_is_another_one_now_are_refused(
    pooled, tmp_path, id
):
    """Their texts outlive the pool; whose they are, only the pool says."""
    shown, pinned = judge_with(pooled, "injected:1")
    keep_injected(pooled, shown)
    other = table(
        tmp_path / "other.csv",
        ("id", "reference", "candidate"),
        [(id, "Another text altogether.", "B.")],
    )
    options = ("--role", "shots", "--source", "made up", "--licence", "none")
    done = call(
        pooled, "cohort", "import", other, "--name", "pool", *options, "--replace"
    )
    assert done.exit_code == 0, done.output
    assert with_shots(pooled, pinned) == shown
    reference = shown.shown[0].reference
    with pytest.raises(DataError, match="has other pairs by now") as said:
        find_shared(pooled, pinned, [PairToJudge("a", reference)])
    assert "ebra" not in str(said.value)


def test_only_what_is_shown_counts_and_not_the_whole_pool(pooled):
    """One shot of two references: the other one may be judged."""
    shown, _ = judge_with(pooled, "random:1")
    others = {p.reference for p in read_pool(pooled, "pool").pairs}
    others -= {shown.shown[0].reference}
    pairs = [PairToJudge(f"e{n}", text) for n, text in enumerate(sorted(others))]
    assert others and find_shared(pooled, shown, pairs).ids == frozenset()


def test_a_nearly_equal_reference_is_found():
    """As between cohorts: 4 of 5 shingles."""
    (pair,) = [p for p in read_pool(None, SYNTHETIC).pairs if p.id == "synthetic-01"]
    green = read_version(WorkspacePaths(bundled()), "green@v1")
    shown = add_shots(None, green, request_shots("random:15"))
    near = pair.reference + " End."
    found = find_shared(None, shown, [PairToJudge("a", near), PairToJudge("b", "Ok.")])
    assert (found.ids, found.references) == ({"a"}, {"a"})
    # No pair of what is shipped is of a patient whom anybody could have.
    assert found.patients_compared


def test_a_pool_that_names_no_patient_leaves_patients_unknown(pooled, tmp_path):
    """Neither pair can be told to be of the same patient."""
    bare = table(
        tmp_path / "bare.csv",
        ("id", "reference", "candidate"),
        [("q1", "Zebra nodule on the left.", "No nodule.")],
    )
    points = table(
        tmp_path / "bare-ratings.csv",
        ("case_id", "rater", "dimension", "points", "scale"),
        [("q1", "r1", "overall", 3, "1-5")],
    )
    options = ("--role", "shots", "--source", "made up", "--licence", "none")
    done = call(
        pooled,
        *("cohort", "import", bare, "--name", "bare", *options, "--ratings", points),
    )
    assert done.exit_code == 0, done.output
    key = read_pool(pooled, "bare").pseudonym_key
    shown, _ = judge_with(pooled, "random:1", "bare", score=ShotScore.RATING)
    for patient in ("", "f" * 16):
        pairs = [PairToJudge("e1", "Free of it.", patient)]
        found = find_shared(pooled, shown, pairs, pseudonym_key=key)
        assert found.patients == frozenset()
        assert not found.patients_compared


def test_a_pair_that_lost_its_counts_shows_nothing(pooled, tmp_path):
    """It cannot be made as it was, and the way out is that of one that is gone."""
    _, pinned = judge_with(pooled, "random:2", score=ShotScore.LINEAR)
    done = call(
        pooled,
        *("cohort", "import", tmp_path / "pool.csv", "--name", "pool", "--replace"),
        *("--role", "shots", "--source", "made up", "--licence", "none"),
        *("--ratings", tmp_path / "pool-ratings.csv"),
    )
    assert done.exit_code == 0, done.output
    said = refused(pooled, pinned)
    assert f"{pinned.ref}: shot 1 of 2, from the pool pool, is gone:" in said


def test_the_refusal_counts_and_names_nobody(pooled):
    """Neither id nor text."""
    shown, _ = judge_with(pooled, "random:2")
    pairs = [PairToJudge("secret-7", "Zebra nodule on the left.")]
    found = find_shared(pooled, shown, pairs)
    with pytest.raises(OverlapError) as said:
        require_apart(shown, found, "Do this.")
    assert "1 of the pairs to judge shares something" in str(said.value)
    assert "1 by the reference. It was seen in the prompt. Do this." in str(said.value)
    assert "secret" not in str(said.value) and "ebra" not in str(said.value)
    require_apart(shown, find_shared(pooled, shown, ()), "Do this.")


def test_a_run_on_the_pool_or_on_what_shares_with_it_is_refused(pooled, tmp_path):
    """Before anything is asked; neither is one of them tried."""
    shown, pinned = judge_with(pooled, "random:2")
    version = replace(pinned, number=0, draft="d1")
    told = []
    with pytest.raises(OverlapError, match="This cohort is the pool"):
        prepare_run(pooled, version, "pool")
    same = table(
        tmp_path / "same.csv",
        ("id", "reference", "candidate"),
        [("z1", "Zebra nodule on the left.", "Nothing."), ("z2", "Clear.", "Clear.")],
    )
    options = ("--role", "dev", "--source", "made up", "--licence", "none")
    done = call(pooled, "cohort", "import", same, "--name", "same", *options)
    assert done.exit_code == 0, done.output
    with pytest.raises(OverlapError, match=r"1 of the pairs .*Import same again"):
        prepare_run(pooled, version, "same")
    drafted = call(
        pooled,
        *("prompt", "shots", "mine", "random:2", "--pool", "pool", "--cohort", "same"),
    )
    assert drafted.exit_code == 0, drafted.output
    tried = call(pooled, "try", "mine@draft", "--case", "z1")
    assert isinstance(tried.exception, OverlapError)
    tried = call(pooled, "try", "mine@draft", "--case", "z2")
    assert tried.exit_code == 0, tried.output
    task = prepare_run(pooled, version, "rp", asking=EngineOptions(tell=told.append))
    assert len(told) == 1 and "is not known: patients are not named" in told[0]
    (frame,) = task.plan.frames
    assert shown.shown[0].reference in frame.messages[1].content


def test_the_source_of_a_pin():
    """Ids may hold hyphens."""
    assert source_id(ShotKind.INJECTED, "a-b-1-b1") == "a-b-1"
    assert source_id(ShotKind.PER_ERROR, "a-b-1-b1") == "a-b-1-b1"


COUNTED = PoolPair(
    id="p1",
    reference="R.",
    candidate="C.",
    reference_id="r1",
    counts=MarkedCounts(
        {"omission": 2, "location": 0, "severity": 1},
        {"omission": 0, "location": 3, "severity": 0},
    ),
    rating=0.123456,
    assessed=MarkedCounts(
        {"omission": 1, "location": 1, "severity": 0},
        {"omission": 0, "location": 0, "severity": 0},
    ),
    assessed_rating=0.75,
    explanation="The side.",
)
ASKED = ("severity", "location", "omission")
SIGNIFICANT = (("severity", 1), ("omission", 2))


@pytest.mark.parametrize(
    ("kind", "score", "asked", "made"),
    [
        (ShotKind.PER_ERROR, ShotScore.LINEAR, ASKED, (0.55, SIGNIFICANT, "")),
        (ShotKind.PER_ERROR, ShotScore.INVERSE, ASKED, (0.25, SIGNIFICANT, "")),
        (ShotKind.PER_ERROR, ShotScore.RATING, ASKED, (0.1235, SIGNIFICANT, "")),
        (ShotKind.RANDOM, ShotScore.LINEAR, ASKED, (0.55, None, "")),
        (ShotKind.RANDOM, ShotScore.RATING, ASKED, (0.1235, None, "")),
        (
            ShotKind.PER_ERROR,
            ShotScore.LINEAR,
            ("severity", "accuracy"),
            (0.85, (("severity", 1),), ""),
        ),
        (ShotKind.PER_ERROR, ShotScore.LINEAR, ("accuracy",), (0.55, (), "")),
        (ShotKind.PER_ERROR, ShotScore.LINEAR, (), (0.55, (), "")),
        (
            ShotKind.ASSESSED,
            ShotScore.LINEAR,
            ASKED,
            (0.7, (("location", 1), ("omission", 1)), "The side."),
        ),
        (
            ShotKind.ASSESSED,
            ShotScore.RATING,
            ("severity",),
            (0.75, (), "The side."),
        ),
    ],
)
def test_a_pair_is_shown_with_its_score_and_counts(kind, score, asked, made):
    """By hand: of the categories that are asked for, in their order, without zeros."""
    value, significant, explanation = made
    shot = make_shot(COUNTED, kind, score, asked)
    minor = None if significant is None else ()
    if kind is ShotKind.PER_ERROR and "location" in asked:
        minor = (("location", 3),)
    assert shot == Shot(
        reference="R.",
        candidate="C.",
        score=value,
        significant=significant,
        insignificant=minor,
        explanation=explanation,
    )


BARE = PoolPair(id="p1", reference="R.", candidate="C.", reference_id="r", rating=0.5)


def test_what_is_to_be_shown_must_be_known():
    """Counts or a rating; shots at random with ratings need no counts."""
    shot = make_shot(BARE, ShotKind.RANDOM, ShotScore.RATING, ASKED)
    assert (shot.score, shot.significant, shot.insignificant) == (0.5, None, None)
    for kind, score, said in (
        (ShotKind.RANDOM, ShotScore.LINEAR, "shots random with score linear need"),
        (ShotKind.PER_ERROR, ShotScore.RATING, "shots per_error with score rating"),
        (ShotKind.ASSESSED, ShotScore.LINEAR, "shots assessed with score linear"),
    ):
        with pytest.raises(DataError, match=f"has no error counts, which {said}"):
            make_shot(BARE, kind, score, ASKED)
    unrated = replace(COUNTED, rating=None, assessed_rating=None)
    for kind in (ShotKind.RANDOM, ShotKind.PER_ERROR, ShotKind.ASSESSED):
        with pytest.raises(DataError, match="has no rating, which the score needs"):
            make_shot(unrated, kind, ShotScore.RATING, ASKED)


def ids(*names):
    """Return a set of ids."""
    return frozenset(names)


@pytest.mark.parametrize(
    ("cases", "patients", "references", "words"),
    [
        ("", "", "", ""),
        ("a", "", "", "1 by the id"),
        ("", "ab", "", "2 by the patient"),
        ("c", "ab", "abc", "3 by the reference, 2 by the patient, 1 by the id"),
    ],
)
def test_what_is_shared_is_told_by_kind(pooled, cases, patients, references, words):
    """And refused with the number of pairs, each counted once."""
    shared = SharedPairs(
        cases=ids(*cases), patients=ids(*patients), references=ids(*references)
    )
    assert (shared.words, shared.ids) == (words, ids(*cases, *patients, *references))
    shown, _ = judge_with(pooled, "random:2")
    if not shared.ids:
        require_apart(shown, shared, "Do this.")
        return
    several = len(shared.ids) > 1
    with pytest.raises(OverlapError) as said:
        require_apart(shown, shared, "Do this.")
    assert str(said.value) == (
        f"{len(shared.ids)} of the pairs to judge {'share' if several else 'shares'} "
        f"something with the shots of {shown.ref} (pool pool): {words}. "
        f"{'They were' if several else 'It was'} seen in the prompt. Do this."
    )
    require_apart(read_version(pooled, "mine@v1"), shared, "Do this.")


def test_a_version_without_shots_shares_nothing(pooled):
    """Whatever is to be judged; no pool is looked for."""
    mine = read_version(pooled, "mine@v1")
    pairs = [PairToJudge("q1", "Zebra nodule on the left.")]
    assert find_shared(None, mine, pairs) is NOTHING_SHARED
    assert NOTHING_SHARED.patients_compared


def test_the_texts_of_injected_shots_are_kept_as_they_are(pooled):
    """Line by line, in ASCII, where only their owner reads them; of others nothing."""
    shown, pinned = judge_with(pooled, "injected:1")
    path = injected_path(pooled, shown.shots)
    for version in (pinned, judge_with(pooled, "random:2")[0]):
        keep_injected(pooled, version)
        assert not path.exists()
    keep_injected(pooled, shown)
    assert path.parent == pooled.private / "shots"
    assert path.name == f"{shown.shots.digest[:16]}.jsonl"
    assert path.parent.stat().st_mode & 0o777 == 0o700
    lines = path.read_text("ascii").splitlines()
    assert len(lines) == len(shown.shown)
    assert with_shots(pooled, pinned).shown == shown.shown
    assert [json.loads(one)["candidate"] for one in lines] == [
        one.candidate for one in shown.shown
    ]
    path.write_text("\n".join([*lines, lines[0]]) + "\n")
    assert "is gone" in refused(pooled, pinned)
