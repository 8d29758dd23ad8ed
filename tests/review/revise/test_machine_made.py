"""What an optimizer wrote is refused where a person would only be warned."""

from dataclasses import replace

import pytest

from loop.core.clock import utc_now
from loop.core.errors import DataError, OverlapError
from loop.core.records import Guide
from loop.prompts.guides import dump_guides
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.revise.copies import Copy
from loop.review.revise.draft_files import DraftOrigin
from loop.review.revise.machine_made import (
    MOST_BYTES,
    lint_machine_made,
    refuse_copied,
)
from loop.review.revise.run_check import check_draft_ref
from loop.review.submit import VerdictContext, save_verdicts
from loop.review.verdict import Judgement, Verdict
from loop.run.store import open_store
from tests.optimize.scenes import EFFUSION, SEARCHER, Bench

TEXT = (
    "One two small quiet collections lie along the left lateral chest wall today, "
    "film number {number}."
)
COPY = "one two small quiet collections lie along the left"


@pytest.fixture
def bench(workspace, tmp_path):
    """Give a workspace with a prompt and a cohort of some long sentences."""
    made = Bench(workspace, tmp_path)
    made.version()
    rows = [[f"c{n}", "", TEXT.format(number=n), n % 2, 0] for n in range(6)]
    made.cohort(rows)
    return made


def begin(bench, origin, **changes):
    """Begin a draft with a changed guide of effusions."""
    guide = Guide(
        label=EFFUSION,
        name="Pleural Effusion",
        definition="Fluid in the pleural space.",
    )
    request = DraftRequest(
        prompt="tiny",
        cohort="dev",
        guides={EFFUSION: replace(guide, **changes)},
        origin=origin,
    )
    with open_store(bench.workspace) as store:
        return begin_draft(bench.workspace, store, request, SEARCHER)


def test_a_copy_of_a_dev_case_is_refused(bench):
    """A person is warned; no draft is left of what a machine copied."""
    assert begin(bench, DraftOrigin.HAND, definition=COPY).copies
    with pytest.raises(OverlapError, match="8 or more consecutive words") as caught:
        begin(bench, DraftOrigin.OPTIMIZER, definition=COPY)
    assert "collections" not in str(caught.value)


def test_a_copy_that_is_put_in_later_is_refused_by_the_check(bench):
    """Who edits a machine's draft does not lift the rule."""
    made = begin(bench, DraftOrigin.OPTIMIZER, terms=("collection",))
    path = next(bench.workspace.private.glob("drafts/tiny/*/guides.yaml"))
    text = path.read_text("utf-8")
    path.write_text(text.replace("Fluid in the pleural space.", COPY), "utf-8")
    with (
        open_store(bench.workspace) as store,
        pytest.raises(OverlapError, match="must not repeat a case"),
    ):
        check_draft_ref(bench.workspace, store, made.draft.ref, SEARCHER)


def test_the_words_of_a_verdict_are_refused(bench):
    """Comments are private, however short they are."""
    verdict = Verdict(
        label=EFFUSION,
        judgement=Judgement.GUIDELINE_AMBIGUOUS,
        case_ids=("c1",),
        comment="Dr Miller thinks that this old scar is fluid",
        reviewer="Dr A. Example",
    )
    context = VerdictContext(cohort="dev", prompt="tiny@v1", source="")
    with open_store(bench.workspace) as store:
        save_verdicts(store, [verdict], context, utc_now())
    words = "thinks that this old scar is fluid"
    begin(bench, DraftOrigin.HAND, definition=words)
    with pytest.raises(OverlapError, match=f"comment of verdict {verdict.id}"):
        begin(bench, DraftOrigin.OPTIMIZER, definition=words)


def test_of_several_copies_the_first_is_named(bench):
    """One is enough to refuse what holds it."""
    copies = [Copy("guide effusion, terms", "dev", one, 8) for one in ("c7", "c3")]
    with (
        open_store(bench.workspace) as store,
        pytest.raises(OverlapError, match="also occur in case c7 of cohort dev"),
    ):
        refuse_copied(bench.workspace, store, (), "dev", copies)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"terms": ("*", "no")}, "'no' is too short"),
        ({"definition": "Fluid. " * 700}, "4,096 are the most"),
        ({"definition": "Fluid\u200b in the pleural space."}, "U+200B"),
        ({"definition": "Flu\u0456d in the pleural space."}, "Cyrillic and Latin"),
        ({"terms": ("\uff46luid",)}, "Fullwidth and Latin"),
        (
            {"definition": "Any of many things. " * 20},
            "takes 121 tokens, and the parent 100: at most 20% more",
        ),
    ],
)
def test_what_is_strange_or_too_long_is_an_error(bench, changes, words):
    """Each with its reason, without repeating the wording at length."""
    version = bench.version(2)
    guides = tuple(
        replace(one, **changes) if one.label == EFFUSION else one
        for one in version.guides
    )
    tokens = (100, 121) if "tokens" in words else (100, 120)
    found = lint_machine_made(version, replace(version, guides=guides), tokens)
    assert any(words in one.what for one in found)
    assert not any(one.holds for one in found)


def test_half_a_character_is_refused(bench):
    """No file could hold it."""
    with pytest.raises(DataError, match=r"guide pleural_effusion: holds U\+DCE4"):
        begin(bench, DraftOrigin.OPTIMIZER, terms=("\udce4fluid",))


def test_the_rules_are_not_for_what_was_there(bench):
    """A long guide may stay; it may not grow."""
    version = bench.version(2)
    long = replace(version.guides[0], definition="Fluid. " * (MOST_BYTES // 6))
    parent = replace(version, guides=(long, *version.guides[1:]))
    shorter = replace(long, definition=long.definition[:-7])
    draft = replace(parent, guides=(shorter, *version.guides[1:]))
    assert lint_machine_made(parent, draft) == ()
    assert lint_machine_made(draft, parent) != ()


def test_ordinary_wording_is_clean(bench):
    """Letters of one script, numbers, and Chinese beside it."""
    version = bench.version(2)
    guide = replace(version.guides[0], terms=("collect*", "fluid ... base", "积液"))
    draft = replace(version, guides=(guide, *version.guides[1:]))
    assert lint_machine_made(version, draft, (100, 120)) == ()


def test_chinese_that_names_a_study_in_latin_letters_is_clean(bench):
    """No Chinese character looks like a letter; look-alikes beside one still do."""
    version = bench.version(2)

    def lint(definition):
        guide = replace(version.guides[0], definition=definition)
        draft = replace(version, guides=(guide, *version.guides[1:]))
        return [one.what for one in lint_machine_made(version, draft)]

    assert lint("胸部X线或CT检查所见的积液。") == []
    (problem,) = lint("胸部\u0421T检查。")
    assert problem.startswith("mixes Cyrillic and Latin letters")


@pytest.mark.parametrize(
    ("term", "short"),
    [("abc", False), ("ab", True), ("a*b c", False), ("积液", False), ("积", True)],
)
def test_a_term_has_three_letters_or_two_chinese_characters(bench, term, short):
    """With fewer it is found everywhere."""
    version = bench.version(2)
    guide = replace(version.guides[0], terms=(term,))
    draft = replace(version, guides=(guide, *version.guides[1:]))
    found = [one.what for one in lint_machine_made(version, draft)]
    assert found == ([f"{term!r} is too short to tell anything"] if short else [])


def test_a_guide_of_just_the_most_bytes_is_clean(bench):
    """One byte more is refused."""
    version = bench.version(2)

    def drafted(letters):
        guide = replace(version.guides[0], definition="x" * letters)
        return guide, replace(version, guides=(guide, *version.guides[1:]))

    guide, _ = drafted(1)
    letters = 1 + MOST_BYTES - len(dump_guides((guide,)).encode("utf-8"))
    assert lint_machine_made(version, drafted(letters)[1]) == ()
    (found,) = lint_machine_made(version, drafted(letters + 1)[1])
    assert "takes 4,097 bytes, and 4,096 are the most" in found.what


def test_lint_tells_it_of_an_optimizers_draft_alone(bench):
    """A person may write a short term."""
    for origin, errors in ((DraftOrigin.HAND, False), (DraftOrigin.OPTIMIZER, True)):
        made = begin(bench, origin, terms=("ab",))
        found = [one for one in made.lint if one.check == "machine-made"]
        assert bool(found) is errors
        assert made.sound is not errors
