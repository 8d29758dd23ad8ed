"""What a run would take, counted without asking anything."""

import json
from dataclasses import replace

import pytest

from loop.core.errors import DataError, EngineError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Item
from loop.labels.cohort import iter_items, read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import plan_prompts
from loop.run.cost import (
    EVIDENCE,
    Expectation,
    PromptLayout,
    count_answer,
    estimate_run,
    expect_findings,
    list_ways,
)
from loop.run.reference_implementation import in_published_layout
from loop.run.tokens import estimate_tokens
from tests.conftest import shipped_workspace

LATEST = read_version(WorkspacePaths(bundled()), "extractor@latest")
PROMPT = "extractor@v1"
TEXTS = [f"The lungs are clear on radiograph {word}." for word in ("one", "two", "six")]


PRICES = """\
prices:
  me/big: {input: 2.0, cached_input: 0.2, output: 10.0}
  me/flat: {input: 2.0, output: 10.0}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Make a workspace with three small cohorts and the prices of two models."""
    folder = tmp_path_factory.mktemp("cost")
    workspace = shipped_workspace(folder / "ws")
    workspace.open_private()
    workspace.config.write_text(PRICES)
    for name, role in (("small", "dev"), ("bare", "dev"), ("held", "holdout")):
        rows = ["case_id,text" if name == "bare" else "case_id,text,edema"]
        for number, text in enumerate(TEXTS):
            mark = "" if name == "bare" else f",{int(number == 0)}"
            rows.append(f"{name}{number},{text} Seen in {name}.{mark}")
        source = folder / f"{name}.csv"
        source.write_text("\n".join(rows) + "\n")
        options = ImportOptions(name=name, role=role, source="test", licence="none")
        import_cohort(workspace, source, options, actor=Actor(name="t"))
    return workspace


@pytest.fixture(scope="module")
def dry(place):
    """Return the dry run of the first extractor; edema is present in a third."""
    return estimate_run(place, PROMPT, "small")


def find(dry, layout, contract):
    """Return one way of asking."""
    return next(
        one for one in dry.shapes if (one.layout, one.contract) == (layout, contract)
    )


def test_every_way_of_asking_is_there_once(dry):
    """Both plans in every contract, and the published layout last."""
    ways = [(one.layout, one.contract) for one in dry.shapes]
    assert ways == [
        ("joint", "label_values"),
        ("joint", "findings"),
        ("joint", "binary"),
        ("per_label", "label_values"),
        ("per_label", "findings"),
        ("per_label", "binary"),
        ("reference", "one digit"),
    ]
    assert [one.chosen for one in dry.shapes] == [True, *[False] * 6]


def test_requests_are_counted_by_plan(dry):
    """One a case, or one for each of its 20 labels."""
    assert dry.cases == len(TEXTS)
    assert [one.requests for one in dry.shapes] == [3, 3, 3, 60, 60, 60, 60]


def test_prompt_tokens_are_those_of_the_prompts_that_a_run_would_send(dry, place):
    """Counted message by message, as they would be sent."""
    version = read_version(place, PROMPT)
    plan = plan_prompts(version, get_contract("label_values").schema)
    members = read_cohort(place, "small")
    sent = sum(
        estimate_tokens(message.content)
        for item in iter_items(place, members)
        for prompt in plan(item)
        for message in prompt.messages
    )
    assert dry.chosen.prompt_tokens == pytest.approx(sent, abs=2 * len(TEXTS))


def test_the_prefix_is_what_stands_before_the_case(dry):
    """Read once; after that only the cases are new."""
    one = dry.chosen
    assert one.prefix_tokens == one.frame_tokens * dry.cases
    rest = sum(estimate_tokens(f"{text} Seen in small.\n") for text in TEXTS)
    assert one.uncached_tokens - one.frame_tokens == pytest.approx(rest, abs=6)
    assert 0.9 < one.prefix_share < 1


def test_the_published_layout_shares_next_to_nothing(dry):
    """The case comes before the guidance, so the guidance is read anew each time."""
    assert dry.published.layout is PromptLayout.REFERENCE
    assert dry.published.prefix_share < 0.5
    assert dry.times_fewer(dry.published) == 1


def test_the_published_layout_holds_the_same_guides():
    """Compared is the order of the same content, not other content."""
    plan = plan_prompts(in_published_layout(LATEST), lambda fields: {})
    item = Item(id="1", variables={"text": "Clear lungs."})
    prompts = plan(item)
    assert len(prompts) == len(LATEST.guides) == 20
    for prompt, guide in zip(prompts, LATEST.guides, strict=True):
        before, _, after = prompt.messages[-1].content.partition("Clear lungs.")
        assert guide.name in before
        for wording in (guide.definition, *guide.terms, *guide.exclusions):
            assert wording in after
        for rule in guide.clarifications:
            assert rule.note in after


def test_the_compact_contract_answers_in_fewer_tokens(dry):
    """What it is there for."""
    for layout in (PromptLayout.JOINT, PromptLayout.PER_LABEL):
        full = find(dry, layout, "label_values").output_tokens
        assert find(dry, layout, "findings").output_tokens < full


def test_expected_answers_follow_the_reference(dry):
    """A label present in a third of the cases is answered at length in a third."""
    assert dry.expectation.found["edema"] == pytest.approx(1 / 3)
    assert "small:ref1" in dry.expectation.basis


def test_without_a_reference_the_assumption_is_stated(place):
    """A made-up number must not look measured."""
    expected = expect_findings(place, "bare", ("edema", "fracture"))
    assert "no reference; assumed: 2.1 labels found, " in expected.basis
    assert sum(expected.found.values()) == pytest.approx(2.1)


@pytest.mark.parametrize("contract", ["label_values", "findings"])
def test_a_certain_answer_has_the_length_of_that_answer(contract):
    """The answer is made up in the contract's own form, which its reader reads."""
    labels = ("edema", "fracture")
    entry = {"value": "present", "evidence": EVIDENCE}
    answer = (
        {"findings": [{"label": "edema", **entry}]}
        if contract == "findings"
        else {"edema": entry, "fracture": "absent"}
    )
    text = json.dumps(answer)
    item = Item(id="1", variables={"text": EVIDENCE})
    assert get_contract(contract).read(text, labels, item).repairs == ()
    expected = Expectation({"edema": 1.0, "fracture": 0.0}, 0.0, "")
    tokens = count_answer(contract, labels, expected, estimate_tokens)
    assert tokens == pytest.approx(estimate_tokens(text) + 1, abs=3)


def test_an_unknown_contract_is_not_guessed():
    """Whoever adds a contract says here what its answers look like."""
    with pytest.raises(ValueError, match="got 'digits'"):
        count_answer("digits", ("a",), Expectation({"a": 1}, 0, ""), len)


@pytest.mark.parametrize(
    ("engine", "cached_price"), [("openai:me/big", 0.2), ("vllm:me/flat#lora", 2.0)]
)
def test_prices_give_a_cost(place, engine, cached_price):
    """Cached prompt tokens have a price of their own, else that of the others."""
    one = estimate_run(place, PROMPT, "small", engine=engine).chosen
    cached = one.prompt_tokens - one.uncached_tokens
    total = 2 * one.uncached_tokens + cached_price * cached + 10 * one.output_tokens
    assert one.cost == pytest.approx(total / 1e6)


def test_without_a_price_there_is_no_cost(dry):
    """Not nothing: not known."""
    assert dry.price is None
    assert {one.cost for one in dry.shapes} == {None}


def test_an_engine_that_does_not_exist_is_refused(place):
    """A dry run that passes is a promise that the run starts."""
    with pytest.raises(EngineError, match=r"no engine 'opnai'.*'openai'\?"):
        estimate_run(place, "extractor", "dev", engine="opnai:m")


def test_a_limit_counts_only_so_many_cases(place):
    """As a run would."""
    for limit in (1, 2):
        assert estimate_run(place, PROMPT, "small", limit=limit).cases == limit
    with pytest.raises(ValueError, match="limit must be >= 1, got 0"):
        estimate_run(place, PROMPT, "small", limit=0)


@pytest.mark.parametrize(
    "user", ["{{ guides }}{{ text }}", "{# frozen: answer #}\n{{ guides }}{{ text }}"]
)
def test_a_prompt_without_an_answer_block_is_shown_in_its_own_contract(user):
    """How it would ask in another one is not known."""
    plain = replace(LATEST, user=user)
    ways = [(way.layout.value, way.contract) for way in list_ways(plain)]
    assert ways == [
        ("joint", LATEST.contract),
        ("per_label", LATEST.contract),
        ("reference", "one digit"),
    ]


def test_a_holdout_is_not_read(place):
    """Counting reads the texts, and a holdout opens only for a frozen version."""
    with pytest.raises(DataError, match="role holdout"):
        estimate_run(place, PROMPT, "held")


@pytest.fixture(scope="module")
def openi(tmp_path_factory, data_folder):
    """Return the dry run of the released extractor on Open-i dev."""
    workspace = shipped_workspace(tmp_path_factory.mktemp("openi") / "ws")
    path = data_folder / "openi" / "reports_dev.csv"
    options = ImportOptions(name="dev", role="dev")
    import_cohort(workspace, path, options, actor=Actor(name="test", role="system"))
    return estimate_run(workspace, "extractor@v7", "dev")


@pytest.mark.data
@pytest.mark.slow
def test_nearly_all_prompt_tokens_are_shared_on_real_reports(openi):
    """At least 95 % stand before the case, in one request a case."""
    one = openi.chosen
    assert (one.layout, one.contract) == (PromptLayout.JOINT, "label_values")
    assert one.requests == openi.cases == 300
    assert one.prefix_share >= 0.95


@pytest.mark.data
@pytest.mark.slow
def test_the_published_layout_reads_forty_times_as_much_anew(openi):
    """Uncached prompt tokens a case, each of our frames counted once."""
    assert openi.times_fewer(openi.chosen) >= 40


@pytest.mark.data
@pytest.mark.slow
def test_the_published_layout_comes_near_the_published_figure(openi):
    """About 8,100 prompt tokens: the comparison is not with a straw man."""
    per_case = openi.published.prompt_tokens / openi.cases
    assert per_case == pytest.approx(8_100, rel=0.15)
