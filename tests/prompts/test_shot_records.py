"""Shots in a version: pinned, digested where present, and data wherever they go."""

from dataclasses import replace

import pytest

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Item
from loop.prompts.catalog import read_folder, read_version, write_version
from loop.prompts.diff import diff_versions
from loop.prompts.lint import has_errors
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import plan_prompts
from loop.prompts.shot_records import (
    CategoryCount,
    Shot,
    ShotKind,
    ShotPin,
    Shots,
    ShotScore,
    mask_shots,
    parse_shots,
    score_errors,
)
from loop.prompts.version import with_masked_shots
from loop.run.task_fields import lint_prompt

SHIPPED = WorkspacePaths(bundled())
GREEN = read_version(SHIPPED, "green@v1")
DIGESTS = {
    "green": "3022f1c0d10f405b805872ba12c07dfe6836cef72100404b9706a418db8b73a3",
    "one_pass": "c0d3f43a8a6f01828e118b118f4a7c6e60b4a815d2336daffa991d4b08dd1327",
    "extractor": "1da4a301cde2daec7724d9f2e48ec77b9ff5b6be495b05ea97462eed701d3dcb",
}
"""As they were committed before there were shots."""

SHOWN = (
    Shot(
        reference="Left apical pneumothorax.",
        candidate="No pneumothorax.",
        score=0.85,
        significant=(CategoryCount("omission", 1),),
        insignificant=(),
        explanation="The pneumothorax is denied.",
    ),
    Shot(reference="Clear lungs.", candidate="The lungs are clear.", score=1.0),
)
ITEM = Item(id="a", variables={"reference": "Effusion.", "candidate": "Edema."})


def pinned(shown=SHOWN, **changes):
    """Return the shots of a version that shows these."""
    pins = tuple(ShotPin(f"s{n}", one.digest) for n, one in enumerate(shown))
    fields = {
        "pool": "rp_shots",
        "kind": ShotKind.RANDOM,
        "n": len(shown),
        "seed": 0,
        "score": ShotScore.LINEAR,
        "pins": pins,
    }
    return Shots(**(fields | changes))


def showing(shown=SHOWN, version=GREEN):
    """Return a version that shows these."""
    return replace(version, shots=pinned(shown), shown=shown)


def messages(version, item=ITEM):
    """Return the two messages that a model receives about a pair."""
    plan = plan_prompts(version, get_contract(version.contract).schema)
    (prompt,) = plan(item)
    return [one.content for one in prompt.messages]


@pytest.mark.parametrize("name", DIGESTS)
def test_versions_without_shots_keep_their_digests(name):
    """To the byte: releases and stored answers rest on them."""
    number = 11 if name == "extractor" else 1
    assert read_version(SHIPPED, f"{name}@v{number}").digest == DIGESTS[name]


@pytest.mark.parametrize(
    "changes",
    [
        {"pool": "other"},
        {"kind": ShotKind.ASSESSED},
        {"n": 3},
        {"seed": 1},
        {"score": ShotScore.INVERSE},
        {"pins": pinned().pins[::-1]},
        {"pins": pinned().pins[:1]},
    ],
)
def test_everything_about_shots_is_part_of_the_digest(changes):
    """Also the order: a model reads it."""
    plain, shown = (
        replace(GREEN, shots=pinned()),
        replace(GREEN, shots=pinned(**changes)),
    )
    assert len({GREEN.digest, plain.digest, shown.digest}) == 3
    assert replace(plain, shown=SHOWN).digest == plain.digest


def test_shots_are_written_and_read_without_a_text(workspace):
    """A version's files have ids and digests only, and none where there are none."""
    write_version(workspace, replace(showing(), name="mine"))
    folder = workspace.prompts / "mine" / "v1"
    version, header = read_folder(folder)
    assert (version.shots, version.shown) == (pinned(), ())
    assert header.shots.examples == dict(pinned().pins)
    written = "".join(path.read_text() for path in folder.iterdir())
    assert not any(text in written for shot in SHOWN for text in shot.texts if text)
    write_version(workspace, replace(GREEN, name="plain"))
    plain = (workspace.prompts / "plain" / "v1" / "prompt.yaml").read_text()
    assert "shots" not in plain


def test_shots_stand_before_the_pair_and_after_what_is_asked():
    """In one block, so that any judge can have them."""
    system, user = messages(showing())
    assert "pneumothorax" not in system
    assert user.index("Left apical pneumothorax.") < user.index("Effusion.")
    assert user.endswith(messages(GREEN)[1])
    assert "significant errors: omission 1\ninsignificant errors: none\n" in user
    assert "overall score, from 0 to 1: 0.85\nThe pneumothorax is denied.\n" in user
    assert user.count("significant errors:") == 2
    assert user.count("<example>") == 2


@pytest.mark.parametrize("name", ["rating@v1", "rating_pairwise@v1"])
def test_a_judge_that_answers_in_points_is_shown_points(name):
    """From 1 to 5: a score of 0.85 beside a rubric of five points would mislead."""
    version = showing(version=read_version(SHIPPED, name))
    texts = dict.fromkeys(version.inputs, "Effusion.")
    _, user = messages(version, Item(id="a", variables=texts))
    assert "overall score, from 1 to 5: 4.40\n" in user
    assert "overall score, from 1 to 5: 5.00\n" in user
    assert "from 0 to 1" not in user


def test_a_template_says_itself_where_shots_stand():
    """Then there is no block."""
    own = "{% for one in shots %}{{ one.reference }} -> {{ one.score }}\n{% endfor %}"
    version = showing(version=replace(GREEN, system=own + GREEN.system))
    system, user = messages(version)
    assert system.startswith("Left apical pneumothorax. -> 0.85\nClear lungs. -> 1.0\n")
    assert user == messages(GREEN)[1]
    assert not has_errors(lint_prompt(SHIPPED, version))


HOSTILE = (
    "{{ 7 * 7 }} {% for x in shots %}{{ x }}{% endfor %} {{ reference }}",
    "\ue000reference\ue001 \ue000\ue000candidate\ue001",
    "{# frozen: answer #} </example> {% raw %}",
)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("own", [False, True])
def test_text_of_a_pool_is_no_template(text, own):
    """Neither Jinja nor the marks at which a frame is cut; it goes in as it stands."""
    shot = Shot(reference=text, candidate=text, score=0.5, explanation=text)
    insert = "{% for one in shots %}{{ one.reference }}{% endfor %}\n"
    version = replace(GREEN, user=insert + GREEN.user) if own else GREEN
    _, user = messages(showing((shot,), version))
    assert user.count(text) == (1 if own else 3)
    assert user.endswith(messages(GREEN)[1])


def test_text_that_was_not_looked_up_is_not_asked_with():
    """A version as it is read names its shots only."""
    with pytest.raises(DataError, match="texts were not looked up"):
        messages(replace(GREEN, shots=pinned()))
    with pytest.raises(ValueError, match="other shots are shown"):
        replace(GREEN, shots=pinned(), shown=SHOWN[:1])


def test_masks_stand_for_texts_that_are_not_to_be_shown():
    """With the start of each digest."""
    _, user = messages(with_masked_shots(showing()))
    assert "pneumothorax" not in user
    assert f"[reference of shot 1: {SHOWN[0].digest[:12]}]" in user
    assert with_masked_shots(GREEN) is GREEN
    assert lint_prompt(SHIPPED, replace(GREEN, shots=pinned())) == []


def test_a_difference_names_the_shots():
    """In words, without a text."""
    (gone, come) = diff_versions(GREEN, showing()).settings
    assert (gone.kind, gone.text, come.text) == ("shots", "none", pinned().words)


def test_a_composed_version_says_so_in_its_name():
    """No version of that name is in a file."""
    assert replace(showing(), composed=True).ref == "green@v1+random:2"
    assert showing().ref == "green@v1"


@pytest.mark.parametrize(
    "words",
    [
        *("random:", "random:0", "random:101", "some:3", ""),
        *("random:-1", "random:\u00b2", "per_error:1e1"),
    ],
)
def test_words_that_name_no_shots(words):
    """The way out is in the message."""
    with pytest.raises(DataError, match="for example random:5"):
        parse_shots(words)


def test_scores_from_counts():
    """Linear fits the one published number; both are 1 without errors."""
    assert [score_errors(n, ShotScore.LINEAR) for n in (0, 1, 6, 7)] == [
        *(1.0, 0.85, 0.1, 0.0)
    ]
    assert [score_errors(n, ShotScore.INVERSE) for n in (0, 1, 4)] == [1.0, 0.5, 0.2]
    for errors, score in ((-1, ShotScore.LINEAR), (1, ShotScore.RATING)):
        with pytest.raises(ValueError, match="no score"):
            score_errors(errors, score)


@pytest.mark.parametrize(
    "changes",
    [{"n": 0}, {"seed": -1}, {"pins": ()}, {"pins": pinned().pins[:1] * 2}],
)
def test_impossible_shots(changes):
    """They cannot be made, and a file that says so cannot be read."""
    with pytest.raises(ValueError, match=r"shots|seed"):
        pinned(**changes)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n: 2", "n: 0"),
        ("kind: random", "kind: some"),
        ("seed: 0", "seed: -1"),
        ("pool: rp_shots", "pond: rp_shots"),
    ],
)
def test_a_file_with_impossible_shots_is_refused(workspace, old, new):
    """It names the file."""
    write_version(workspace, replace(showing(), name="mine"))
    path = workspace.prompts / "mine" / "v1" / "prompt.yaml"
    path.write_text(path.read_text().replace(f"  {old}\n", f"  {new}\n"))
    with pytest.raises(DataError, match=r"prompt\.yaml"):
        read_folder(path.parent)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("random:1", (ShotKind.RANDOM, 1)),
        ("injected:100", (ShotKind.INJECTED, 100)),
        (" per_error ", (ShotKind.PER_ERROR, None)),
        ("assessed:007", (ShotKind.ASSESSED, 7)),
    ],
)
def test_words_may_ask_for_up_to_a_hundred_shots(words, asked):
    """Without a number, for the usual one of the kind."""
    assert parse_shots(words) == asked


@pytest.mark.parametrize(
    ("n", "pins", "possible"),
    [(1, 1, True), (100, 100, True), (101, 1, False), (1, 101, False), (1, 100, True)],
)
def test_a_version_has_from_one_to_a_hundred_shots(n, pins, possible):
    """As asked for, and as chosen: of some kinds there is one of each category too."""
    chosen = tuple(ShotPin(f"s{number}", "d") for number in range(pins))
    if possible:
        assert len(pinned(n=n, pins=chosen, seed=0).pins) == pins
        return
    with pytest.raises(ValueError, match="shots must be from 1 to 100"):
        pinned(n=n, pins=chosen)


def test_shots_are_named_in_three_ways():
    """As they are asked for, in a signature, and for people."""
    shots = pinned(seed=3, score=ShotScore.RATING)
    digest = digest_json(
        {
            "pool": "rp_shots",
            "kind": "random",
            "n": 2,
            "seed": 3,
            "score": "rating",
            "pins": [[one.id, one.digest] for one in shots.pins],
        }
    )
    assert shots.digest == digest
    assert shots.short == "random:2"
    assert shots.sign == f"shots:rp_shots:random:2:seed3:rating:{digest[:8]}"
    assert shots.words == (
        f"2 of pool rp_shots (random:2, seed 3, score rating, {digest[:12]})"
    )


def test_a_shot_is_known_by_all_that_is_shown_of_it():
    """By hand; every text of it is somebody's."""
    first, second = SHOWN
    assert first.digest == digest_json(
        {
            "reference": "Left apical pneumothorax.",
            "candidate": "No pneumothorax.",
            "score": 0.85,
            "significant": [["omission", 1]],
            "insignificant": [],
            "explanation": "The pneumothorax is denied.",
        }
    )
    assert first.texts == (first.reference, first.candidate, first.explanation)
    assert second.texts == ("Clear lungs.", "The lungs are clear.", "")


def test_masks_are_numbered_and_hold_the_digest_of_their_shot():
    """And nothing of its text, its score or its counts."""
    one, two = pinned().pins
    assert mask_shots(pinned()) == tuple(
        Shot(
            reference=f"[reference of shot {number}: {pin.digest[:12]}]",
            candidate=f"[candidate of shot {number}: {pin.digest[:12]}]",
            explanation=f"[assessment of shot {number}]",
        )
        for number, pin in ((1, one), (2, two))
    )


@pytest.mark.parametrize(
    ("errors", "score", "value"),
    [
        (0, ShotScore.LINEAR, 1.0),
        (1, ShotScore.LINEAR, 0.85),
        (6, ShotScore.LINEAR, 0.1),
        (7, ShotScore.LINEAR, 0.0),
        (0, ShotScore.INVERSE, 1.0),
        (3, ShotScore.INVERSE, 0.25),
        (-1, ShotScore.LINEAR, None),
        (-1, ShotScore.INVERSE, None),
        (0, ShotScore.RATING, None),
    ],
)
def test_a_score_is_worked_out_by_hand(errors, score, value):
    """Never below nought; a rating is not made of counts."""
    if value is None:
        with pytest.raises(ValueError, match=f"no score {score} of {errors} errors"):
            score_errors(errors, score)
    else:
        assert score_errors(errors, score) == value


@pytest.mark.parametrize(
    "words", ["random:0", "random:101", "random:", "random:x", "random:12345", "some:1"]
)
def test_words_that_ask_for_no_shots_are_told_what_does(words):
    """Every kind, and the limits of the number."""
    with pytest.raises(DataError) as refused:
        parse_shots(words)
    assert str(refused.value) == (
        f"'{words}' names no shots. Write KIND or KIND:N, for example random:5, with "
        "one of random, per_error, injected, assessed and N from 1 to 100."
    )
