"""What a search would ask at most is counted by hand, and nothing is asked."""

import pytest

from loop.core.errors import DataError, EngineError
from loop.core.records import Exemplar, Value
from loop.optimize.search_forecast import forecast_search
from loop.optimize.search_report import Optimizer, SearchRequest
from loop.review.submit import save_verdicts
from loop.review.verdict import Edits
from loop.run.cost import estimate_run
from loop.run.store import open_store
from tests.optimize.made_task import SYNONYMS
from tests.review.scenes import MADE_ON, WHEN, verdict

PRICED = "openai:me/big@http://127.0.0.1:9/v1"
PRICES = "prices:\n  me/big: {input: 2.0, output: 10.0, currency: EUR}\n"


def asked(optimizer, **changes):
    """Return a request for three splits of 60, 20 and 20 cases, and 120 scores."""
    fields = {
        "prompt": "tiny",
        "cohort": "dev",
        "optimizer": Optimizer(optimizer),
        "budget": 120,
        "splits": 3,
    }
    return SearchRequest(**(fields | changes))


@pytest.fixture
def approved(improvable):
    """Return the made task with three approved exemplars of an effusion."""
    rows = [
        verdict(
            f"c{number}",
            label="pleural_effusion",
            edits=Edits(
                exemplars=(
                    Exemplar(
                        text=f"A {phrase} is seen today.",
                        value=Value.PRESENT,
                        evidence=phrase,
                    ),
                )
            ),
        )
        for number, phrase in enumerate(SYNONYMS)
    ]
    with open_store(improvable) as store:
        save_verdicts(store, rows, MADE_ON, WHEN)
    return improvable


def by_hand(scored, wordings, *, compared):
    """Return the cases asked about: in three searches, and a last one on 80 cases.

    The version about all 100, before and after putting back what was found in three
    splits and three that are kept, and those compared at the end.
    """
    each = [scored + wordings * search for search in (60, 60, 60, 80)]
    return 100 + 2 * (3 + 3) * 100 + compared * 100 + sum(each)


@pytest.mark.parametrize(
    ("optimizer", "scored", "wordings"),
    [
        # The budget, two minibatches of 6 and the selecting cases of the last round.
        ("gepa", 120 + 12 + 20, 7),
        # Six wordings on 20 cases; six guides a label about each of three exemplars.
        ("mipro", 6 * 20 + 6 * 3, 6),
        # One of each of two labels and one with both; and the exemplars.
        ("bootstrap", 3 * 20 + 3, 3),
        ("nearest", 3 * 20, 3),
    ],
)
def test_cases_are_counted_as_each_optimizer_asks(
    approved, optimizer, scored, wordings
):
    """By `rules` all cases say which of ten wordings is kept; by a model none do."""
    free = forecast_search(approved, asked(optimizer))
    assert free.answering == (
        "rules",
        by_hand(scored, wordings, compared=10),
        0,
        0,
        None,
        "",
    )
    assert (free.prompt, free.cohort, free.optimizer) == ("tiny@v1", "dev", optimizer)
    assert (free.cases, free.not_estimable) == (100, ())
    assert [part.name for part in free.parts] == ["search", "select", "estimate"]
    assert [part.cases for part in free.parts] == [(60,) * 3, (20,) * 3, (20,) * 3]


@pytest.mark.parametrize(("budget", "wordings"), [(19, 2), (39, 2), (60, 3)])
def test_mipro_scores_two_wordings_at_least(approved, budget, wordings):
    """Whatever the budget: what is there, and one more."""
    found = forecast_search(approved, asked("mipro", budget=budget))
    cases = by_hand(wordings * 20 + 18, wordings, compared=10)
    assert found.answering.requests == cases


def test_gepa_ends_with_a_round_that_one_case_was_left_for(approved):
    """Twenty cases of budget are one whole round, nineteen are none."""
    for budget, wordings in ((19, 1), (20, 2)):
        found = forecast_search(approved, asked("gepa", budget=budget))
        cases = by_hand(budget + 12 + 20, wordings, compared=10)
        assert found.answering.requests == cases


def test_tokens_and_prices_are_those_of_a_run_times_the_cases(approved):
    """In the currency of the price; what is not priced has no cost."""
    approved.open_private()
    approved.config.write_text(PRICES)
    run = estimate_run(approved, "tiny", "dev", engine=PRICED)
    found = forecast_search(approved, asked("nearest", engine=PRICED))
    times = by_hand(60, 3, compared=0) / 100
    assert found.answering == (
        run.engine,
        round(run.chosen.requests * times),
        round(run.chosen.prompt_tokens * times),
        round(run.chosen.output_tokens * times),
        pytest.approx(run.chosen.cost * times),
        "EUR",
    )
    assert found.answering.prompt_tokens > found.answering.output_tokens > 0
    assert found.answering.cost > 0
    assert found.reflecting is None
    assert found.exact is run.counter.exact is False


@pytest.mark.parametrize(
    ("optimizer", "questions"),
    # One of every six scores and one more, in four searches; six guides of two labels.
    [("gepa", 4 * 21), ("mipro", 4 * 6 * 2)],
)
def test_the_engine_that_reflects_is_counted_too(approved, optimizer, questions):
    """Named or not; a question of GEPA shows six cases, and MIPRO's none."""
    approved.open_private()
    approved.config.write_text(PRICES)
    open_one = forecast_search(approved, asked(optimizer)).reflecting
    assert open_one[:2] == ("any, with --reflect", questions)
    assert (open_one.cost, open_one.currency) == (None, "")
    found = forecast_search(approved, asked(optimizer, reflect=PRICED)).reflecting
    assert found[:4] == (PRICED, *open_one[1:4])
    assert found.cost == pytest.approx(
        (2 * found.prompt_tokens + 10 * found.output_tokens) / 1e6
    )
    assert found.currency == "EUR"
    shown = found.prompt_tokens / questions
    guide = found.output_tokens / questions
    assert shown > 2 * guide > 0


def test_one_label_is_asked_about_alone(approved):
    """Those that fail are known only once the version was asked: all are counted."""
    one = forecast_search(approved, asked("nearest", labels=("cardiomegaly",)))
    assert one.answering.requests == by_hand(2 * 20, 2, compared=10)
    assert one.labels == ("cardiomegaly",)
    both = forecast_search(
        approved, asked("nearest", labels=("cardiomegaly", "failing"))
    )
    every = forecast_search(approved, asked("nearest", labels=()))
    assert both.answering == every.answering
    assert every.answering.requests == by_hand(3 * 20, 3, compared=10)
    bootstrap = forecast_search(approved, asked("bootstrap", labels=("cardiomegaly",)))
    assert bootstrap.answering.requests == one.answering.requests


def test_terms_ask_about_levels_parts_and_the_curve(improvable):
    """Two levels on the selecting cases; six points of the curve on the others."""
    found = forecast_search(improvable, asked("terms", budget=None))
    assert found.answering.requests == 8 * 100 + 3 * (60 + 3 * 20 + 7 * 20)
    assert found.reflecting is None and found.exact
    assert found.labels == ()


def test_positives_of_the_parts_are_those_of_labels_that_are_scored(improvable):
    """Fewest and most of any split, by the reference."""
    found = forecast_search(improvable, asked("terms"))
    whole = forecast_search(improvable, asked("terms", splits=5))
    search, select, estimate = (part.positives for part in whole.parts)
    assert select == estimate
    assert 0 < estimate[0] < estimate[1] < 20
    assert estimate[1] < search[1] <= 3 * estimate[1]
    assert 3 * estimate[0] - 3 <= search[0] <= 3 * estimate[0] + 3
    assert found.parts[0].positives[1] <= search[1] + 3


def test_what_cannot_be_searched_is_not_forecast(improvable):
    """A label that is not asked, an engine that cannot reflect, a cohort unknown."""
    with pytest.raises(DataError, match="has no label edema to search for"):
        forecast_search(improvable, asked("nearest", labels=("edema",)))
    with pytest.raises(EngineError):
        forecast_search(improvable, asked("gepa", reflect="rules"))
    with pytest.raises(DataError):
        forecast_search(improvable, asked("terms", cohort="nowhere"))
