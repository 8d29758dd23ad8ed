"""Another contract exchanges the frozen block that says how to answer, only that."""

from dataclasses import replace

import pytest

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Item, PromptTask
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import read_version
from loop.prompts.lint import has_errors, lint_version
from loop.prompts.outputs.base import (
    CONTRACTS,
    choose_parser,
    get_contract,
    list_contracts,
    list_exchangeable,
)
from loop.prompts.outputs.green_sections import ParserMode
from loop.prompts.render import plan_prompts
from loop.prompts.stages import given_texts
from loop.prompts.version import can_exchange, frozen_blocks, with_contract

SHIPPED = WorkspacePaths(bundled())
EXTRACT = list_contracts(PromptTask.EXTRACT)
WORDS = 'Answer {{ fields | join("/") }}.\n'


def test_a_task_lists_its_own_contracts_in_the_order_they_are_offered():
    """Nobody is offered an answer that says something else than is asked."""
    assert EXTRACT == ("label_values", "findings", "binary")
    listed = [name for task in PromptTask for name in list_contracts(task)]
    assert sorted(listed) == sorted(CONTRACTS)


def test_a_contract_of_another_task_is_refused_with_those_of_this_one():
    """An answer about a pair says nothing of a label."""
    assert get_contract("binary", PromptTask.EXTRACT).name == "binary"
    with pytest.raises(DataError) as refused:
        get_contract("green_text", PromptTask.EXTRACT)
    assert str(refused.value).startswith(
        "no output contract 'green_text' for a prompt whose task is extract (known: "
        "binary, findings, label_values). "
    )
    with pytest.raises(DataError, match=r"no output contract 'x' \(known: binary, fi"):
        get_contract("x", PromptTask.EXTRACT)


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_contract_says_what_it_is_for(name):
    """Once, where it is registered; whoever offers it asks it."""
    contract = CONTRACTS[name]
    assert contract.name == name and contract.summary
    texts = ("text",) if name in EXTRACT else ("reference", "candidate")
    if contract.name.startswith("preference"):
        texts = ("reference", "candidate_a", "candidate_b")
    if contract.name.startswith("phrases") or contract.task is PromptTask.REWRITE:
        texts = ("text",)
    if contract.name == "plausible":
        texts = ("text", "changes")
    more = ("context",) if contract.name == "error_list_weighted" else ()
    assert given_texts(contract.inputs) == texts + more
    said = contract.counts_errors, contract.counts_matches, bool(contract.numbers)
    judged = contract.task is PromptTask.JUDGE and texts[-1] == "candidate"
    assert any(said) is judged


@pytest.mark.parametrize("number", [1, 7])
def test_the_full_contract_says_what_the_shipped_prompts_say(number):
    """Byte for byte: the same prompt, the same digest, the same cached answers."""
    version = read_version(SHIPPED, f"extractor@v{number}")
    contract = get_contract("label_values")
    assert with_contract(version, contract.name, contract.instruction) == version


@pytest.mark.parametrize("there", EXTRACT)
def test_there_and_back_is_the_same_prompt(there):
    """Nothing but the block and the contract's name changes."""
    version = read_version(SHIPPED, "extractor@v7")
    away = with_contract(version, there, get_contract(there).instruction)
    back = get_contract(version.contract)
    assert with_contract(away, back.name, back.instruction).digest == version.digest


@pytest.mark.parametrize("name", EXTRACT)
def test_every_contract_makes_a_prompt_without_lint_errors(name):
    """The instruction is Jinja source, and JSON has braces too."""
    version = read_version(SHIPPED, "extractor@v7")
    changed = with_contract(version, name, get_contract(name).instruction)
    labels = read_taxonomy(SHIPPED.labels).extracted
    found = lint_version(changed, labels=labels)
    assert not has_errors(found), found
    (call,) = plan_prompts(changed, get_contract(name).schema).calls
    assert ", ".join(version.labels) in call.frame.messages[-1].content


def test_only_the_block_is_replaced(first):
    """What stands around it stays, and Jinja in the new words is kept as source."""
    changed = with_contract(first, "findings", WORDS)
    assert changed.contract == "findings"
    assert frozen_blocks(changed.user) == {"answer": f"\n{WORDS}"}
    old = frozen_blocks(first.user)["answer"]
    assert changed.user == first.user.replace(old, f"\n{WORDS}")
    assert replace(changed, user=first.user, contract=first.contract) == first


def test_the_block_may_stand_in_the_system_message(first):
    """Whichever template holds it."""
    block = "{# frozen: answer #}\nOld.\n{# end frozen #}\n"
    moved = replace(first, system=block, user="{{ guides }}{{ text }}")
    changed = with_contract(moved, "findings", "New.\n")
    assert changed.system == "{# frozen: answer #}\nNew.\n{# end frozen #}\n"
    assert changed.user == moved.user


def test_words_that_stand_elsewhere_too_are_not_touched(first):
    """The block is found by its marks, not by its text."""
    doubled = replace(first, user='Answer {{ fields | join(", ") }}.\n' + first.user)
    changed = with_contract(doubled, "findings", "New.\n")
    assert changed.user.startswith('Answer {{ fields | join(", ") }}.\n')
    assert changed.user.count("New.") == 1


@pytest.mark.parametrize(
    ("system", "user", "found"),
    [
        ("", "{{ text }}", "no template has"),
        (
            "{# frozen: answer #}{# end frozen #}",
            "{# frozen: answer #}{# end frozen #}",
            "both templates have",
        ),
    ],
)
def test_without_one_such_block_it_says_how_to_mark_it(first, system, user, found):
    """Where the answer is described cannot be guessed."""
    version = replace(first, system=system, user=user)
    assert not can_exchange(version)
    with pytest.raises(DataError, match=rf"{found}.*frozen: answer #.*end frozen"):
        with_contract(version, "findings", WORDS)


def test_a_block_that_is_not_closed_names_the_version(first):
    """Where a broken block ends cannot be guessed either."""
    broken = replace(first, user="{# frozen: answer #}\n{{ text }}")
    assert not can_exchange(broken)
    with pytest.raises(DataError, match=r"tiny@v1: frozen block 'answer' has no"):
        with_contract(broken, "findings", WORDS)


def test_only_the_four_published_sections_have_a_published_parser():
    """Others are read as they are, or by no parser at all."""
    sections, listed = get_contract("green_text"), get_contract("error_list")
    assert choose_parser(listed, ParserMode.TOLERANT) is listed
    official = choose_parser(sections, ParserMode.OFFICIAL)
    assert (official.name, official.version) == ("green_text", "1-official")
    item = Item(id="a", variables={"reference": "Mass.", "candidate": "Clear."})
    text = (
        "[Clinically Significant Errors]:\n(b) Missing: 2. x; y\n[Matched Findings]:\n"
    )
    fields = ("false_finding", "omission")
    found = official.read(text, fields, item).fields
    assert {name: one.value for name, one in found.items()} == {
        "significant.false_finding": 0,
        "significant.omission": 2,
        "insignificant.false_finding": 0,
        "insignificant.omission": 0,
        "matched": 0,
    }
    assert sections.read(text, fields, item).fields is None
    with pytest.raises(DataError) as refused:
        choose_parser(listed, ParserMode.OFFICIAL)
    assert str(refused.value) == (
        "the published parser reads the four sections of green_text only, and the "
        "contract is error_list. Leave --parser out, or name a judge with that "
        "contract, such as green_text."
    )


def test_contracts_are_exchanged_where_their_answers_say_the_same():
    """Another form of it, and none that leaves out what somebody weighed or counted."""
    for name, contract in CONTRACTS.items():
        assert name in list_exchangeable(contract)
    green = list_exchangeable(get_contract("green_sections"))
    assert {"green_text", "error_list"} <= set(green)
    assert not {"error_list_unweighted", "error_counts", "entailment"} & set(green)


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("label_values", "cdbf9f2da3a4"),
        ("findings", "ffb221337af6"),
        ("binary", "ca7b1079e909"),
        ("green_sections", "b7a5adf43103"),
        ("error_list", "7587fa062e18"),
        ("error_list_unweighted", "5096d64e2314"),
        ("entailment", "6d12754a7f15"),
        ("phrases", "5a23f51c61ce"),
        ("green_sections_scored", "ac25b4b447d7"),
        ("green_formula", "16dcdd6967cc"),
        ("overall_score", "c72cad517dfe"),
        ("error_counts", "35b59f659da3"),
        ("line_corrections", "6ccdbd5bedc6"),
        ("error_list_weighted", "76578d3a7aa5"),
        ("rating", "7b358f807225"),
        ("preference", "8a91e6ca927d"),
        ("changes", "7733211a4741"),
        ("plausible", "5f9ca1b210d5"),
    ],
)
def test_the_schema_of_an_answer_stays_what_it_is(name, digest):
    """It is part of the key of every answer: with another, all is asked again."""
    schema = CONTRACTS[name].schema(("false_finding", "omission"))
    assert digest_json(schema)[:12] == digest


def test_only_free_text_has_no_schema():
    """A server must not be told that anything goes where an object is wanted."""
    free = {name for name, one in CONTRACTS.items() if not one.schema(("a",))}
    assert free == {name for name in CONTRACTS if "_text" in name}


@pytest.mark.parametrize(
    ("names", "times"),
    [
        (("label_values", "binary"), [1, 4, -4]),
        (("findings", "error_list", "error_list_unweighted"), [1, 1, 2]),
        (("line_corrections",), [1, 1, 2]),
        (("green_sections", "green_text", "green_sections_scored"), [1, 6]),
        (("green_text_scored", "green_formula", "green_formula_text"), [1, 6]),
        (("error_list_weighted",), [1, 3, 3]),
        (("entailment", "phrases"), [1, 8]),
        (("entailment_text", "phrases_text"), [8]),
        (("changes",), [1, 1]),
        (("overall_score", "overall_score_text", "error_counts"), [1]),
        (("rating", "rating_text", "preference", "preference_text"), [1]),
        (("plausible",), [1]),
        (("error_counts_text",), [2]),
    ],
)
def test_the_mean_answer_has_each_part_as_often_as_it_stands_there(names, times):
    """Of two things the first found once, the second twice; half of all are denied."""
    found = {"a": 1, "b": 2}
    for name in names:
        parts = [*CONTRACTS[name].mean_answer(("a", "b"), found, 0.5)]
        assert [one.times for one in parts] == times, name
        assert all(one.text for one in parts)


def test_every_contract_has_a_mean_answer():
    """A dry run would have no number for it."""
    for name, contract in CONTRACTS.items():
        assert [*contract.mean_answer(("a",), {"a": 1}, 0)], name
