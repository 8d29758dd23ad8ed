"""A prompt version is an immutable value whose identity is its digest."""

import dataclasses

import pytest

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.records import Guide, Lexicon
from loop.prompts.version import (
    CallPlan,
    NamedVersion,
    can_exchange,
    frozen_blocks,
    replace_blocks,
    with_contract,
)


def test_cannot_be_edited_in_place(first):
    """Revising makes a new version."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.system = "other"


def test_digest_ignores_what_does_not_change_behaviour(first):
    """The same wording under another number, author and reason is the same prompt."""
    again = dataclasses.replace(
        first, number=7, parent="0" * 64, author="B", time="", why="", verdicts=("x",)
    )
    assert again.digest == first.digest


@pytest.mark.parametrize(
    "change",
    [
        {"system": "Read it.\n"},
        {"user": "{{ text }}"},
        {"plan": CallPlan.PER_LABEL},
        {"contract": "scores"},
        {"name": "other"},
    ],
)
def test_digest_changes_with_everything_that_changes_behaviour(first, change):
    """Two different prompts never share an identity."""
    assert dataclasses.replace(first, **change).digest != first.digest


@pytest.mark.parametrize("name", ["counts", "does_not_count", "uncertain_when"])
def test_digest_changes_with_guidance(first, name):
    """What counts is part of what is asked."""
    guide = dataclasses.replace(first.guides[0], **{name: ("wet",)})
    changed = dataclasses.replace(first, guides=(guide, *first.guides[1:]))
    assert changed.digest != first.digest


def test_digest_changes_with_the_lexicon(first):
    """It changes what `rules` answers, though no model is shown it."""
    guide = dataclasses.replace(
        first.guides[0], lexicon=(Lexicon(language="en", terms=("wet",)),)
    )
    changed = dataclasses.replace(first, guides=(guide, *first.guides[1:]))
    assert changed.digest != first.digest


def test_digest_depends_on_the_order_of_guides(first):
    """Models read in order."""
    turned = dataclasses.replace(first, guides=first.guides[::-1])
    assert turned.digest != first.digest


@pytest.mark.parametrize("name", ["", "../up", "A", "1st", "a b", "a/b"])
def test_a_name_is_safe_as_a_folder(first, name):
    """A name from the command line never becomes a path elsewhere."""
    with pytest.raises(ValueError, match="snake_case"):
        dataclasses.replace(first, name=name)


def test_a_label_has_one_guide(first):
    """Two guides of one label would contradict each other in silence."""
    twice = (*first.guides, Guide(label="edema", name="E", definition="again"))
    with pytest.raises(ValueError, match="two guides"):
        dataclasses.replace(first, guides=twice)


def test_a_draft_has_an_id_and_no_number(first):
    """Only a commit gives a number."""
    draft = dataclasses.replace(first, number=0, draft="d1")
    assert draft.ref == "tiny@draft:d1"
    with pytest.raises(ValueError, match="a draft has number 0"):
        dataclasses.replace(first, draft="d1")


def test_the_digest_is_the_same_for_ever(first):
    """By hand: with another one, every committed version would count as edited."""
    guides = [
        {
            "label": one.label,
            "name": one.name,
            "definition": one.definition,
            "terms": [],
            "exclusions": [],
            "clarifications": [],
            "exemplars": [],
            "implies": [],
        }
        for one in first.guides
    ]
    content = {
        "name": "tiny",
        "system": first.system,
        "user": first.user,
        "guides": guides,
        "plan": "joint",
        "contract": "label_values",
        "inputs": ["text"],
    }
    assert first.digest == digest_json(content)
    reads = (NamedVersion("a@v1", "d" * 64), NamedVersion("b@v2", "e" * 64))
    reading = dataclasses.replace(first, reads=reads)
    assert reading.digest == digest_json({**content, "reads": ["d" * 64, "e" * 64]})
    assert reading.read_words == f"a@v1 ({'d' * 12}), b@v2 ({'e' * 12})"
    assert (first.read_words, first.shot_words) == ("", "")


def test_a_guide_is_found_by_its_label(first):
    """None where the prompt does not ask for it."""
    assert [first.guide(name) for name in ("fracture", "edema", "mass")] == [
        first.guides[1],
        first.guides[0],
        None,
    ]


@pytest.mark.parametrize(
    ("number", "draft", "possible"),
    [(1, "", True), (0, "d", True), (0, "", False), (-1, "", False), (2, "d", False)],
)
def test_a_version_has_a_number_or_is_a_draft(first, number, draft, possible):
    """Exactly one of the two."""
    if possible:
        dataclasses.replace(first, number=number, draft=draft)
        return
    with pytest.raises(ValueError, match=f"tiny: number {number} with draft id"):
        dataclasses.replace(first, number=number, draft=draft)


BLOCKS = (
    "One.\n{# frozen: a #}\nkeep\n{# end frozen #}\nTwo.\n"
    "{#- frozen: b-2 -#}\nalso\n{#- end frozen -#}\nThree.\n"
)


def test_blocks_are_found_and_replaced_by_name():
    """What stands around them and their marks stay."""
    assert frozen_blocks(BLOCKS) == {"a": "\nkeep\n", "b-2": "\nalso\n"}
    made = replace_blocks(BLOCKS, lambda name, text: f"<{name}:{text.strip()}>")
    assert made == (
        "One.\n{# frozen: a #}<a:keep>{# end frozen #}\nTwo.\n"
        "{#- frozen: b-2 -#}<b-2:also>{#- end frozen -#}\nThree.\n"
    )
    assert replace_blocks("plain", lambda *_: "x") == "plain"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("a\n{# end frozen #}", "line 2: frozen blocks must be closed"),
        ("{# frozen: a #}\n\n{# frozen: b #}", "line 3: frozen blocks must be closed"),
        (
            "{# frozen: a #}{# end frozen #}\n{# frozen: a #}{# end frozen #}",
            "line 2: frozen blocks must be closed",
        ),
        ("{# frozen: a #}", r"frozen block 'a' has no {# end frozen #}"),
    ],
)
def test_a_malformed_block_is_told_with_its_line(template, said):
    """Never closed, closed without being open, nested, or named twice."""
    with pytest.raises(DataError, match=said):
        frozen_blocks(template)


def test_the_way_to_answer_is_exchanged_in_the_template_that_has_it(first):
    """Whichever it is; other blocks and the other template stay."""
    block = "{# frozen: answer #}\nold\n{# end frozen #}\n"
    case = "{# frozen: case #}\nkeep\n{# end frozen #}\n"
    user = dataclasses.replace(first, user=f"A.\n{case}{block}B.\n")
    made = with_contract(user, "findings", "new\n")
    assert made == dataclasses.replace(
        user, contract="findings", user=user.user.replace("old\n", "new\n")
    )
    system = dataclasses.replace(first, system=block, user="C.\n")
    made = with_contract(system, "findings", "new\n")
    assert made == dataclasses.replace(
        system, contract="findings", system=block.replace("old\n", "new\n")
    )
    assert can_exchange(user) and can_exchange(system)
    for other in (
        dataclasses.replace(first, system=block, user=block),
        dataclasses.replace(first, user="C."),
        dataclasses.replace(first, user="{# frozen: answer #}"),
        dataclasses.replace(user, system="{# frozen: x #}"),
    ):
        assert not can_exchange(other)
