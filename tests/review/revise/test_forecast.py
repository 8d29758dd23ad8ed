"""What a check would take and find, without asking anything."""

import pytest

from loop.core.errors import DataError, EngineError
from loop.review.revise.draws import ShareName, find_least_loss
from loop.review.revise.forecast import ASSUMED_CHURN, Forecast, forecast_check
from loop.review.revise.run_check import Examination
from loop.run.cost import estimate_run
from loop.run.task import prepare_run, run_draws
from tests.review.revise.stepping import FLUID, begin, check


@pytest.fixture
def draft(setting, store):
    """Begin a draft."""
    return begin(setting, store, FLUID).draft


def forecast(setting, ref, **how):
    """Return the forecast with the engine that wavers, or another."""
    how = {"engine": "wavering"} | how
    return forecast_check(setting.workspace, ref, Examination(**how))


def test_it_counts_what_a_check_asks(setting, store, draft, wavering):
    """Requests of both versions for every draw, and the canary; nothing is sent."""
    found = forecast(setting, draft.ref, draws=4)
    assert wavering.asked == ()
    assert store.find_runs() == []
    assert (found.parent, found.draft, found.cohort) == ("tiny@v1", draft.ref, "dev")
    assert (found.draws, found.cases) == (4, 25)
    assert found.requests == 4 * 2 * 25 + 2 * 20
    checked = check(setting, store, draft, Examination(engine="wavering", draws=4))
    asked = sum(len(list(store.read_outcomes(run))) for run in checked.runs)
    assert asked == 4 * 2 * 25
    assert found.requests >= asked


def test_more_draws_cost_more_and_find_less(setting, draft, wavering):
    """In proportion, but for the canary."""
    one, nine = (forecast(setting, draft.ref, draws=count) for count in (1, 9))
    assert nine.prompt_tokens == 9 * one.prompt_tokens
    assert nine.output_tokens == 9 * one.output_tokens
    pairs = list(zip(one.losses, nine.losses, strict=True))
    assert all((a.least or 1) >= (b.least or 1) for a, b in pairs)
    assert [(a.label, a.share, a.n) for a, _ in pairs] == [
        ("cardiomegaly", ShareName.SENSITIVITY, 6),
        ("cardiomegaly", ShareName.SPECIFICITY, 19),
        ("pleural_effusion", ShareName.SENSITIVITY, 10),
        ("pleural_effusion", ShareName.SPECIFICITY, 15),
    ]
    # Six cases cannot reach one in eighty by the sign of each.
    assert one.losses[0].least is None
    expected = find_least_loss(19 * ASSUMED_CHURN, 19, 0.05 * 2 / 3 / 4)
    assert one.losses[1].least == expected


def test_churn_that_was_measured_is_used(setting, store, draft, wavering):
    """That of the parent's draws; else it says that it is assumed."""
    assert forecast(setting, draft.ref).churn.startswith("assumed: 2 % of answers")
    task = prepare_run(setting.workspace, "tiny", "dev", engine="wavering")
    list(run_draws(setting.workspace, task, range(1)))
    assert forecast(setting, draft.ref).churn.startswith("assumed: 2 % of answers")
    list(run_draws(setting.workspace, task, range(3)))
    another = forecast(setting, draft.ref, engine="wavering:other")
    assert another.churn.startswith("assumed: 2 % of answers")
    found = forecast(setting, draft.ref)
    assert found.churn == "measured over 3 draws of tiny@v1"
    other = forecast(setting, draft.ref, engine="rules")
    assert (other.churn, other.losses, other.draws) == ("", (), 1)


def test_a_version_is_taken_for_a_draft_that_is_not_made(setting, wavering):
    """The draft is then as long as its parent."""
    found = forecast(setting, "tiny", cohort="dev")
    assert (found.parent, found.draft) == ("tiny@v1", "tiny@v1")
    assert found.draws == 3


def test_a_price_gives_a_cost(setting, draft, monkeypatch):
    """Of both versions and all draws, in the price's currency."""
    setting.workspace.open_private()
    setting.workspace.config.write_text(
        "prices: {big: {input: 1000000, output: 0, currency: CHF}}\n"
    )
    found = forecast(setting, draft.ref, engine="openai:big", draws=2)
    assert found.currency == "CHF"
    assert found.cost == pytest.approx(found.prompt_tokens)


def test_what_cannot_be_checked_is_refused(setting, draft):
    """As the check itself does."""
    with pytest.raises(EngineError, match="no engine"):
        forecast(setting, draft.ref, engine="nothing")
    with pytest.raises(DataError):
        forecast(setting, "tiny", engine="rules")


def test_an_engine_without_chance_is_asked_each_version_once(setting, draft):
    """All that is told of it; it shows every answer that changed."""
    runs = [
        estimate_run(setting.workspace, ref, "dev", engine="rules")
        for ref in ("tiny@v1", draft.ref)
    ]
    assert forecast(setting, draft.ref, engine="rules") == Forecast(
        parent="tiny@v1",
        draft=draft.ref,
        cohort="dev",
        engine="rules",
        draws=1,
        max_draws=1,
        cases=25,
        requests=sum(one.chosen.requests for one in runs),
        prompt_tokens=sum(one.chosen.prompt_tokens for one in runs),
        output_tokens=sum(one.chosen.output_tokens for one in runs),
        cost=None,
        currency="",
        counted=runs[0].counter.remark,
        churn="",
        losses=(),
    )


def test_what_is_asked_at_most_is_told_beside_the_first_look(setting, draft, wavering):
    """The canary is asked twice, of twenty prompts or as many as there are cases."""
    found = forecast(setting, draft.ref, draws=2, max_draws=7)
    assert (found.draws, found.max_draws) == (2, 6)
    assert found.requests == 2 * 2 * 25 + 2 * 20
    assert found.churn == "assumed: 2 % of answers differ between two draws"
    setting.add_cohort("few", "dev", [(f"x{n}", f"Fluid {n}.", 1, 0) for n in range(7)])
    few = forecast(setting, draft.ref, cohort="few", draws=3)
    assert (few.cohort, few.cases, few.requests) == ("few", 7, 3 * 2 * 7 + 2 * 7)
    assert [(one.label, one.share, one.n) for one in few.losses] == [
        ("cardiomegaly", ShareName.SPECIFICITY, 7),
        ("pleural_effusion", ShareName.SENSITIVITY, 7),
    ]
    level = 0.05 * 2 / 3 / 2
    expected = find_least_loss(7 * ASSUMED_CHURN / 3, 7, level)
    assert [one.least for one in few.losses] == [expected, expected]
