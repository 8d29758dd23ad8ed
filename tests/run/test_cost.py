"""What a run would take, counted without asking anything."""

import json
from dataclasses import replace

import pytest

from loop.core.config import ModelPrice
from loop.core.errors import DataError, EngineError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Guide, Item
from loop.labels.cohort import iter_items, read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import get_contract, list_exchangeable
from loop.prompts.render import plan_prompts
from loop.prompts.version import PromptVersion
from loop.run import cost
from loop.run.asking import EngineOptions
from loop.run.cost import (
    EVIDENCE,
    DryRun,
    EngineUse,
    Expectation,
    PromptLayout,
    Shape,
    _priced,
    asked_model,
    count_answer,
    estimate_run,
    estimate_texts,
    expect_errors,
    expect_findings,
    list_ways,
    price_run,
    price_use,
    sum_costs,
)
from loop.run.execute import Usage
from loop.run.reference_implementation import in_published_layout
from loop.run.spec import RunSpec
from loop.run.store import RunRecord
from loop.run.tokens import TokenCounter, estimate_tokens, find_counter
from tests.conftest import shipped_workspace
from tests.run.staged_judge import ENTAILED

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
    assert expected.negated == pytest.approx(1.3)


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


def test_a_judge_is_expected_to_list_what_radiologists_find():
    """Errors of each category as often as the others; and the assumption is stated."""
    categories = ("false_finding", "omission")
    expected = expect_errors(categories)
    assert expected.found == dict.fromkeys(categories, pytest.approx(1.3))
    assert "assumed: 2.6 errors and 3 matched findings a pair" in expected.basis
    empty = {name: [] for name in categories}
    answer = {
        "explanation": " ".join([EVIDENCE] * 8),
        "significant_errors": {**empty, "omission": [EVIDENCE]},
        "insignificant_errors": empty,
        "matched_findings": [EVIDENCE] * 3,
    }
    text = json.dumps(answer)
    pair = Item(id="1", variables={})
    assert get_contract("green_sections").read(text, categories, pair).repairs == ()
    once = Expectation({"false_finding": 0, "omission": 1}, 0, "")
    tokens = count_answer("green_sections", categories, once, len)
    assert tokens == pytest.approx(len(text) + 1, abs=9)


@pytest.mark.parametrize("name", ["error_list", "error_list_unweighted"])
def test_a_list_of_errors_is_as_long_as_its_errors(name):
    """With the keys that its contract asks for, and no others."""
    error = {"category": "omission", "significant": True, "reference": EVIDENCE}
    error |= {"candidate": EVIDENCE, "why": EVIDENCE}
    if name == "error_list_unweighted":
        del error["significant"]
    text = json.dumps({"errors": [error], "matched_findings": 3})
    pair = Item(id="1", variables=dict.fromkeys(("reference", "candidate"), EVIDENCE))
    categories = ("false_finding", "omission")
    assert get_contract(name).read(text, categories, pair).repairs == ()
    once = Expectation({"false_finding": 0, "omission": 1}, 0, "")
    assert count_answer(name, categories, once, len) == len(text) + 3


JUDGE = replace(
    LATEST,
    contract="green_sections",
    inputs=("reference", "candidate"),
    user="{# frozen: answer #}\nA\n{# end frozen #}\n{{ guides }}{{ reference }}"
    "{{ candidate }}",
)


def test_a_judge_is_compared_with_other_contracts_of_judges_only():
    """Never with one digit a label, nor with a call for each category."""
    ways = list(list_ways(JUDGE))
    assert (ways[0].layout.value, ways[0].contract) == ("joint", "green_sections")
    assert {way.layout.value for way in ways} == {"joint"}
    judges = list_exchangeable(get_contract("green_sections"))
    assert sorted(way.contract for way in ways) == sorted(judges)
    assert "green_sections" not in {way.contract for way in list_ways(LATEST)}


def test_an_unknown_contract_is_not_guessed():
    """A contract says itself what its answers look like."""
    with pytest.raises(DataError, match="no output contract 'digits'"):
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


def import_marked(workspace, folder, name, marks):
    """Import a dev cohort with edema marked as given, case by case."""
    rows = [f"{name}{n},The lungs of {name} {n}.,{mark}" for n, mark in marks]
    source = folder / f"{name}.csv"
    source.write_text("\n".join(["case_id,text,edema", *rows]) + "\n")
    options = ImportOptions(name=name, role="dev", source="test", licence="none")
    import_cohort(workspace, source, options, actor=Actor(name="t"))


def test_prevalences_are_those_of_cases_that_somebody_looked_at(place, tmp_path):
    """Uncertain is answered at length too; another label gets the mean of the known."""
    import_marked(place, tmp_path, "seen", enumerate(["1", "-1", "0", "0", ""]))
    expected = expect_findings(place, "seen", ("edema", "fracture"))
    assert expected.found == {"edema": 0.5, "fracture": 0.5}
    assert expected.negated == pytest.approx(1.3)
    assert expected.basis == (
        "prevalences of seen:ref1; assumed: 6 words of evidence, 2.6 negated labels"
    )


def test_a_reference_of_other_labels_says_nothing(place):
    """Nor does that of a holdout, which is sealed."""
    for cohort, labels in (("small", ("fracture",)), ("held", ("edema",))):
        expected = expect_findings(place, cohort, labels)
        assert expected.basis.startswith("no reference; assumed: 2.1 labels found")
        assert expected.found == {labels[0]: 2.1}


@pytest.mark.parametrize("contract", ["label_values", "binary", "findings"])
def test_the_mean_answer_lies_between_those_it_is_the_mean_of(contract):
    """Found in every second case: half of what always and never take together."""
    labels = ("edema",)
    never, half, always = (
        count_answer(contract, labels, Expectation({"edema": share}, 0, ""), len)
        for share in (0, 0.5, 1)
    )
    assert never < half < always
    assert half == pytest.approx((never + always) / 2)


def test_a_negation_is_answered_at_length_only_where_each_label_is_answered():
    """The compact contract leaves out what is absent."""
    quiet, loud = (Expectation({"edema": 0.0}, share, "") for share in (0.0, 1.0))
    for contract, longer in (("label_values", True), ("binary", True)):
        tokens = [count_answer(contract, ("edema",), one, len) for one in (quiet, loud)]
        assert (tokens[0] < tokens[1]) is longer
    tokens = {count_answer("findings", ("edema",), one, len) for one in (quiet, loud)}
    assert tokens == {len('{"findings": []}') + 1}


def test_the_published_layout_is_answered_with_a_digit_and_an_end(dry):
    """Two tokens a label."""
    digit = estimate_tokens("0") + 1
    assert dry.published.output_tokens == digit * dry.published.requests


def test_all_that_is_counted_grows_with_the_cases(place, dry):
    """But the frame, which is read once; characters are those of the texts."""
    one = estimate_run(place, PROMPT, "small", limit=1)
    assert dry.characters == sum(len(f"{text} Seen in small.") for text in TEXTS)
    assert one.characters == len(f"{TEXTS[0]} Seen in small.")
    for single, all_of_them in zip(one.shapes, dry.shapes, strict=True):
        assert single.frame_tokens == all_of_them.frame_tokens
        assert single.prefix_tokens * 3 == all_of_them.prefix_tokens
        assert single.prompt_tokens * 3 == pytest.approx(
            all_of_them.prompt_tokens, abs=3 * single.requests
        )
        assert single.output_tokens * 3 == pytest.approx(
            all_of_them.output_tokens, abs=3
        )


def test_what_is_cached_may_cost_nothing():
    """A price of nought is a price."""
    price = ModelPrice(input=2.0, cached_input=0.0, output=10.0)
    shape = Shape(
        layout=PromptLayout.JOINT,
        contract="findings",
        chosen=False,
        requests=10,
        prompt_tokens=1100,
        prefix_tokens=1000,
        frame_tokens=100,
        output_tokens=50,
        cost=None,
    )
    assert shape.uncached_tokens == 200
    priced = _priced(shape, price, True)
    assert (priced.chosen, priced.cost) == (True, (200 * 2 + 50 * 10) / 1e6)
    whole = _priced(shape, ModelPrice(input=2.0, output=10.0), False)
    assert (whole.chosen, whole.cost) == (False, (1100 * 2 + 50 * 10) / 1e6)


@pytest.mark.parametrize("engine", ["openai:m", "vllm:m"])
def test_the_tokenizer_is_that_of_the_named_revision(place, engine, monkeypatch):
    """Each kind of server has its own."""
    asked = []

    def find(model, revision):
        """Note what was asked for."""
        asked.append((model, revision))
        return find_counter(None)

    monkeypatch.setattr(cost, "find_counter", find)
    before = place.config.read_text()
    place.config.write_text(
        "engines:\n  openai: {revision: openai}\n  vllm: {revision: vllm}\n"
    )
    estimate_run(place, PROMPT, "small", engine=engine)
    place.config.write_text(before)
    assert asked == [("m", engine.partition(":")[0])]


@pytest.mark.parametrize(
    ("engine", "model"),
    [
        ("openai:me/big", "me/big"),
        ("vllm:me/big#lora", "me/big"),
        ("rules", None),
        ("replay:20260101", None),
    ],
)
def test_the_model_is_named_by_the_engine(engine, model):
    """An engine without one has no tokens to count."""
    assert asked_model(engine) == model


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


def a_run(number, created, *, prompt="p@v1", engine="openai:m@http://a/v1", **counts):
    """Return a run of a model that has a price, unless said otherwise."""
    spec = RunSpec(
        prompt=prompt,
        prompt_digest="d",
        contract="label_values/1",
        cohort="dev",
        cohort_digest="c",
        engine=engine,
    )
    return RunRecord(
        number=number,
        id=f"r{number}",
        created=created,
        finished=created,
        spec=spec,
        counts=counts,
    )


def test_costs_are_summed_by_week_prompt_and_engine_and_nothing_is_guessed():
    """A million tokens in at 2, a hundred thousand out at 10; weeks are ISO's."""
    prices = {"m": ModelPrice(input=2.0, output=10.0, currency="EUR")}
    tokens = {"prompt_tokens": 1_000_000, "completion_tokens": 100_000, "answers": 9}
    secret = "openai:m@http://me:hunter2@a/v1"
    sums = sum_costs(
        [
            a_run(1, "2026-01-04T23:59:59Z", asked=7, cached=2, **tokens),
            a_run(2, "2026-01-05T00:00:00Z", **tokens),
            a_run(3, "2026-01-06T00:00:00Z", prompt="p@draft:d", **tokens),
            a_run(4, "2026-01-06T00:00:00Z", answered=9),
            a_run(5, "2026-01-06T00:00:00Z", engine="openai:other", **tokens),
            a_run(6, "2026-01-06T00:00:00Z", engine="rules", asked=9),
            a_run(7, "2026-01-06T00:00:00Z", engine=secret, **tokens),
        ],
        prices,
    )
    half = a_run(8, "2026-01-05T00:00:00Z", asked=4, cached=4, **tokens)
    assert sum_costs([half], prices)[0].fresh == pytest.approx(3.0 / 2)
    told = [(s.week, s.engine, s.runs, s.amount, s.currency, s.unpriced) for s in sums]
    assert told == [
        ("2026-W02", "openai:m@http://***", 1, 3.0, "EUR", 0),
        ("2026-W02", "openai:m@http://a/v1", 3, 6.0, "EUR", 1),
        ("2026-W02", "openai:other", 1, 0, "", 1),
        ("2026-W02", "rules", 1, 0, "", 0),
        ("2026-W01", "openai:m@http://a/v1", 1, 3.0, "EUR", 0),
    ]
    assert (sums[-1].asked, sums[-1].stored, sums[-1].prompt) == (7, 2, "p")
    assert sums[-1].fresh == pytest.approx(3.0 * 7 / 9)


@pytest.mark.parametrize(
    ("counts", "amount"),
    [
        ({"asked": 6, "cached": 4, "answers": 10}, 2.0),
        ({"asked": 6, "cached": 4, "answers": 9}, None),
        ({"asked": 10, "answers": 8, "failed": 1, "unanswered": 2}, 2.0),
        ({"asked": 10, "answers": 7, "failed": 1, "unanswered": 2}, None),
        ({"asked": 10, "answers": 9, "failed": 1}, 2.0),
        ({"asked": 10, "answers": 8, "failed": 1}, None),
    ],
)
def test_a_run_has_a_price_only_if_the_tokens_of_every_answer_are_known(counts, amount):
    """A failed call has no answer; without their number, each failed item had one."""
    run = a_run(1, "2026-01-05T00:00:00Z", prompt_tokens=1_000_000, **counts)
    cost = price_run(run, {"m": ModelPrice(input=2.0, output=10.0)})
    assert (cost and cost.amount) == amount


def test_what_some_work_asked_adds_up_part_by_part():
    """Each number to its own, and nothing that was not told."""
    first = EngineUse("openai:m", 1, 2, 3, Usage(4, 5, 6, 7))
    assert first.plus(used=Usage()) == first
    assert first.plus(asked=10, used=Usage(answers=1)) == EngineUse(
        "openai:m", 11, 2, 3, Usage(5, 5, 6, 7)
    )
    assert first.plus(cached=10, used=Usage(cached_tokens=1)) == EngineUse(
        "openai:m", 1, 12, 3, Usage(4, 5, 6, 8)
    )
    assert first.plus(unanswered=10, used=Usage(0, 1, 1, 0)) == EngineUse(
        "openai:m", 1, 2, 13, Usage(4, 6, 7, 7)
    )
    assert first.requests == 3
    assert first.counts == {
        "asked": 1,
        "cached": 2,
        "unanswered": 3,
        "answers": 4,
        "prompt_tokens": 5,
        "completion_tokens": 6,
        "cached_tokens": 7,
    }


@pytest.mark.parametrize(
    ("use", "amount"),
    [
        (EngineUse("openai:m", 3, 1, 1, Usage(3, 1_000_000, 100_000)), 3.0),
        (EngineUse("openai:m", 3, 1, 0, Usage(3, 1_000_000, 100_000)), None),
        (EngineUse("openai:m", 3, 0, 0, Usage(4, 1_000_000, 100_000)), 3.0),
        (EngineUse("openai:m", 1, 0, 0, Usage(1, 1_000_000, 0, 500_000)), 1.1),
        (EngineUse("openai:m"), 0.0),
        (EngineUse("openai:other", 1, 0, 0, Usage(1, 1_000_000)), None),
        (EngineUse("rules", 1, 0, 0, Usage(1, 1_000_000)), None),
    ],
)
def test_work_has_a_price_only_if_the_tokens_of_every_answer_are_known(use, amount):
    """A million in at 2, or at 0.20 from the cache; a hundred thousand out at 10."""
    price = ModelPrice(input=2.0, cached_input=0.2, output=10.0)
    found = price_use(use, {"m": price})
    assert (found and found.amount) == (amount and pytest.approx(amount))
    if use.engine == "openai:m":
        assert use.counted is (amount is not None)


@pytest.mark.parametrize(
    ("counts", "share"),
    [
        ({"asked": 4}, 1.0),
        ({"cached": 4}, 0.0),
        ({"asked": 1, "cached": 3}, 0.25),
        ({}, 1.0),
    ],
)
def test_what_a_run_asked_itself_is_its_share_of_the_prompts(counts, share):
    """A count that was not kept is none; without any, all of it is taken for fresh."""
    run = a_run(1, "2026-01-05T00:00:00Z", prompt_tokens=1_000_000, answers=9, **counts)
    (found,) = sum_costs([run], {"m": ModelPrice(input=2.0, output=10.0)})
    assert (found.amount, found.fresh) == (2.0, pytest.approx(2.0 * share))


TINY = PromptVersion(
    name="tiny",
    number=1,
    system="S.",
    user="{% for one in guides %}{{ one.name }}{% endfor %}: {{ text }}!",
    guides=(
        Guide(label="edema", name="Edema", definition="Fluid."),
        Guide(label="mass", name="Mass", definition="A lump."),
    ),
)
LETTERS = TokenCounter(count=len, exact=True, remark="by letters")


def dry_run(place, monkeypatch, *texts, engine="openai:me/big", **asking):
    """Return what asking about some texts would take, a token a letter."""
    monkeypatch.setattr(cost, "find_counter", lambda *_: LETTERS)
    items = (Item(id=f"c{n}", variables={"text": one}) for n, one in enumerate(texts))
    options = EngineOptions(**asking)
    return estimate_texts(place, TINY, "pasted", items, engine=engine, asking=options)


def test_every_number_of_a_dry_run_is_worked_out_by_hand(place, monkeypatch):
    """Two texts of two and three letters, two labels, a token a letter."""
    dry = dry_run(place, monkeypatch, "ab", "cde")
    assert (dry.prompt, dry.cohort, dry.engine) == (
        "tiny@v1",
        "pasted",
        "openai:me/big",
    )
    assert (dry.cases, dry.characters, dry.counter) == (2, 5, LETTERS)
    assert dry.expectation.found == dict.fromkeys(("edema", "mass"), 1.05)
    assert dry.price == ModelPrice(input=2.0, cached_input=0.2, output=10.0)
    joint, single, published = dry.shapes
    # "S." and "EdemaMass: " before the case, "!" after it.
    assert joint.frame_tokens == 2 + 11
    assert joint.prefix_tokens == 2 * 13
    assert joint.prompt_tokens == 2 * 13 + 2 * 1 + 5
    assert joint.uncached_tokens == 13 + 2 + 5
    assert joint.prefix_share == 26 / 33
    assert joint.requests == 2
    both = count_answer("label_values", ("edema", "mass"), dry.expectation, len)
    assert joint.output_tokens == round(2 * both)
    # A call each with "Edema: " or "Mass: "; the text is sent twice.
    assert single.frame_tokens == 2 * 2 + 7 + 6
    assert single.prompt_tokens == 2 * 17 + 2 * 2 + 2 * 5
    assert single.uncached_tokens == 17 + 4 + 10
    assert single.requests == published.requests == 4
    each = [
        count_answer("label_values", (name,), dry.expectation, len)
        for name in ("edema", "mass")
    ]
    assert single.output_tokens == round(2 * sum(each))
    assert published.output_tokens == 2 * 2 * 2
    for shape in dry.shapes:
        cached = shape.prompt_tokens - shape.uncached_tokens
        paid = 2 * shape.uncached_tokens + 0.2 * cached + 10 * shape.output_tokens
        assert shape.cost == pytest.approx(paid / 1e6)
    assert [one.chosen for one in dry.shapes] == [True, False, False]
    assert dry.chosen is joint and dry.published is published
    assert dry.times_fewer(joint) == published.uncached_tokens / 20


def test_every_number_of_a_judge_in_stages_is_worked_out_by_hand(place, monkeypatch):
    """What a stage finds is taken to be as long as the text that it reads."""
    monkeypatch.setattr(cost, "find_counter", lambda *_: LETTERS)
    items = [
        Item(id=one, variables={"reference": one, "candidate": other})
        for one, other in (("ab", "cde"), ("f", ""))
    ]
    dry = estimate_texts(place, ENTAILED, "pasted", iter(items), engine="openai:me/big")
    assert (dry.cases, dry.characters, dry.published) == (2, 6, None)
    (shape,) = dry.shapes
    assert (shape.layout, shape.contract, shape.chosen) == (
        "per_label", "entailment", True,
    )  # fmt: skip
    # Two calls of the judge, and one of the first stage for either report.
    judge = sum(
        len("Compare phrases.\n" + f"{side}: Which are entailed?\nReference:\n")
        for side in ("precision", "recall")
    )
    first = len("Take a report apart.\n" + "Each finding.\nReport:\n")
    assert shape.requests == 2 * 4
    assert shape.frame_tokens == judge + 2 * first
    assert shape.prefix_tokens == 2 * shape.frame_tokens
    rest = 2 * len("\nCandidate:\n" + "\n") + 2 * len("\n")
    # Each of the two calls reads all 6 letters, and the stages read them once.
    assert shape.prompt_tokens == shape.prefix_tokens + 2 * rest + 3 * 6
    entailed = '{"phrase": 1, "entailed": true, "evidence": [1]}, '
    found = f'"{EVIDENCE}", '
    answers = [1 + len('{"phrases": []}') + 8 * len(part) for part in (entailed, found)]
    assert shape.output_tokens == 2 * 2 * sum(answers)
    paid = 2 * shape.uncached_tokens + 10 * shape.output_tokens
    paid += 0.2 * (shape.prompt_tokens - shape.uncached_tokens)
    assert shape.cost == pytest.approx(paid / 1e6)


def test_no_answer_has_more_tokens_than_it_is_given(place, monkeypatch):
    """Of all requests together; the limit itself is reached."""
    dry = dry_run(place, monkeypatch, "ab", "cde", max_tokens=1)
    assert [one.output_tokens for one in dry.shapes] == [2, 4, 4]


def test_a_judge_is_compared_with_no_published_layout():
    """It asks for labels, and a judge does not."""
    plain = {
        "prompt": "p@v1",
        "cohort": "c",
        "engine": "rules",
        "cases": 1,
        "characters": 1,
        "counter": LETTERS,
        "expectation": Expectation({}, 0, ""),
        "price": None,
    }
    shape = Shape(
        layout=PromptLayout.JOINT,
        contract="error_list",
        chosen=True,
        requests=1,
        prompt_tokens=10,
        prefix_tokens=5,
        frame_tokens=5,
        output_tokens=1,
        cost=None,
    )
    dry = DryRun(**plain, shapes=(shape,))
    assert dry.published is None and dry.times_fewer(shape) is None
    for level, said in (("default", ""), ("none", ""), ("low", "low: what the model")):
        told = replace(dry, thinking=level).thinking_remark
        assert told.startswith(said) and bool(told) is bool(said)


def test_thoughts_are_said_to_be_in_no_number(place, monkeypatch):
    """And an engine that does not think is asked for none."""
    dry = dry_run(place, monkeypatch, "ab", thinking="low")
    assert dry.thinking_remark == (
        "low: what the model thinks before its answer is not in these numbers"
    )
    with pytest.raises(EngineError, match="rules is no language model"):
        dry_run(place, monkeypatch, "ab", engine="rules", thinking="low")
    with pytest.raises(EngineError, match="no engine 'nothing'"):
        dry_run(place, monkeypatch, "ab", engine="nothing")


def test_runs_are_summed_in_the_order_of_weeks_prompts_and_engines():
    """The newest week first; every count of a group is added up."""
    runs = [
        a_run(1, "2026-01-05T00:00:00Z", prompt="b@v1", asked=1, cached=2),
        a_run(2, "2026-01-05T00:00:00Z", prompt="a@v2", engine="rules", asked=4),
        a_run(3, "2026-01-13T00:00:00Z", prompt="c@v1", prompt_tokens=5),
        a_run(4, "2026-01-06T00:00:00Z", prompt="b@v3", asked=8, completion_tokens=7),
        a_run(5, "2026-01-05T00:00:00Z", prompt="a@v1", engine="openai:z"),
    ]
    sums = sum_costs(runs, {})
    assert [
        (s.week, s.prompt, s.engine, s.runs, s.asked, s.stored, s.unpriced)
        for s in sums
    ] == [
        ("2026-W03", "c", "openai:m@http://a/v1", 1, 0, 0, 1),
        ("2026-W02", "a", "openai:z", 1, 0, 0, 1),
        ("2026-W02", "a", "rules", 1, 4, 0, 0),
        ("2026-W02", "b", "openai:m@http://a/v1", 2, 9, 2, 2),
    ]
    assert (sums[0].prompt_tokens, sums[3].completion_tokens) == (5, 7)
    assert {(s.amount, s.fresh, s.currency) for s in sums} == {(0, 0, "")}
