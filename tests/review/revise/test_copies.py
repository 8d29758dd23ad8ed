"""Wording copied from cases is found; one's own words are not."""

from dataclasses import replace

import pytest

from loop.core.errors import OverlapError
from loop.core.records import Clarification, Exemplar, Lexicon, Value
from loop.labels.cohort import CohortRole, read_cohort, texts_path
from loop.review.revise.copies import (
    LONG_RUN,
    NewWording,
    check_copies,
    find_copies,
    name_unseen,
    new_wording,
    object_to_unseen,
    warn_of_copy,
)

P = Value.PRESENT

COPIED = "There is a meniscus of fluid along the left wall today."

CASE = ("c1", "FINDINGS: The heart, which is large,\nhas grown since the last film.")

ZH = ("z1", "两肺纹理增粗,右侧肋膈角变钝,考虑少量胸腔积液。")


def copies(text, run, case=CASE):
    """Return whether `text` counts as copied from the case."""
    return bool(find_copies([NewWording("here", text)], [case], run, "dev"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the heart which is LARGE has grown", True),
        ("the heart which is large", False),
        ("My heart, which is large, has grown", True),
        ("a heart that is big and grew", False),
        ("the heart which is largely has grown", False),
    ],
)
def test_six_equal_words_in_a_row_are_a_copy(text, found):
    """Case, punctuation and line breaks do not hide a copy; whole words count."""
    assert copies(text, 6) is found


def test_a_chinese_character_counts_as_half_a_word():
    """Common terms of four to eight characters must stay usable."""
    assert not copies("少量胸腔积液", 6, ZH)
    assert copies("右侧肋膈角变钝,考虑少量胸腔积液", 6, ZH)


def test_a_copy_names_place_and_case_but_not_the_text():
    """The report of a copy must not be one."""
    (copy,) = find_copies(
        [NewWording("verdict 1, term", CASE[1])], [CASE], LONG_RUN, "dev"
    )
    assert copy == ("verdict 1, term", "dev", "c1", LONG_RUN)


def new(setting, **changes):
    """Return what a draft with these changes of the second guide would bring in."""
    first, second = setting.tiny.guides
    guides = (first, replace(second, **changes))
    return list(new_wording(setting.tiny, replace(setting.tiny, guides=guides)))


def test_a_long_copy_from_the_own_cohort_is_a_warning(setting):
    """Patients' words should not end up in a public prompt; the clinician decides."""
    text = "A skin fold resembles cardiomegaly on this film."
    example = Exemplar(text=text, value=Value.ABSENT, evidence="skin fold")
    cohort = read_cohort(setting.workspace, "dev")
    wording = new(setting, exemplars=(example,))
    (copy,) = check_copies(setting.workspace, wording, cohort).copies
    assert (copy.where, copy.case_id) == ("cardiomegaly, exemplar", "s1")


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"definition": COPIED}, "definition"),
        ({"terms": ("cardiomegaly", COPIED)}, "term"),
        ({"exclusions": (COPIED,)}, "exclusion"),
        (
            {"clarifications": (Clarification(phrase="x", value=P, note=COPIED),)},
            "clarification",
        ),
        ({"exemplars": (Exemplar(text=COPIED, value=P, evidence="x"),)}, "exemplar"),
        ({"exemplars": (Exemplar(text="x", value=P, evidence="x", why=COPIED),)}, None),
        ({"exemplars": (Exemplar(text="x", value=P, evidence=COPIED),)}, "exemplar"),
        ({"counts": (COPIED,)}, "guidance"),
        ({"does_not_count": (COPIED,)}, "guidance"),
        ({"uncertain_when": (COPIED,)}, "guidance"),
        ({"name": COPIED}, "name"),
        ({"lexicon": (Lexicon(language="en", terms=(COPIED,)),)}, "term"),
    ],
)
def test_everything_a_guide_says_anew_is_looked_at(setting, changes, kind):
    """However it came in: by a verdict or by an edit of the files."""
    wheres = [where for where, text in new(setting, **changes) if text == COPIED]
    assert wheres == [f"cardiomegaly, {kind or 'exemplar'}"]


def test_new_lines_of_a_template_are_looked_at_as_one_text(setting):
    """A copy may run over several lines; old lines are the parent's affair."""
    lines = "The heart, which is large,\nhas grown since.\n"
    draft = replace(setting.tiny, system=setting.tiny.system + lines)
    (wording,) = new_wording(setting.tiny, draft)
    assert wording == ("system.jinja", lines.strip())
    assert find_copies([wording], [CASE], 6, "dev")
    changed = replace(setting.tiny, system="Read otherwise.\n", user=f"x\n{lines}")
    found = list(new_wording(setting.tiny, changed))
    assert found[0] == ("system.jinja", "Read otherwise.")
    assert {where for where, _ in found} == {"system.jinja", "user.jinja"}
    assert lines.strip() in "\n".join(text for _, text in found)


EIGHT = "one two three four five six seven eight"


@pytest.mark.parametrize(
    ("role", "text", "end"),
    [
        ("dev", EIGHT, "warned"),
        ("dev", EIGHT[:-6], ""),
        ("external", EIGHT[:-12], "refused"),
        ("external", EIGHT[:-18], ""),
        ("taxonomy", EIGHT[:-12], "refused"),
    ],
)
def test_what_a_copy_of_another_cohort_means_depends_on_its_role(
    setting, role, text, end
):
    """Of development cases eight words are warned of, of others six are refused."""
    setting.add_cohort("more", role, [("m1", f"Seen: {EIGHT}.", 1, 0)])
    cohort = read_cohort(setting.workspace, "dev")
    wording = [NewWording("here", text), NewWording("there", text)]
    if end == "refused":
        with pytest.raises(OverlapError, match=r"role is .* \(2 such wordings\)"):
            check_copies(setting.workspace, wording, cohort)
        with pytest.raises(OverlapError) as alone:
            check_copies(setting.workspace, wording[:1], cohort)
        assert "such wordings" not in str(alone.value)
    else:
        found = check_copies(setting.workspace, wording, cohort).copies
        assert [one.cohort for one in found] == ["more"] * (2 if end else 0)
    # Of the cohort that is revised on, whatever its role, the clinician decides.
    own = read_cohort(setting.workspace, "more")
    assert len(check_copies(setting.workspace, wording, own).copies) == (
        2 if end == "warned" else 0
    )


def test_only_a_holdout_that_was_not_looked_at_stands_against_a_draft():
    """Its texts decide a release; a look at the others can be caught up on."""
    skipped = [(role.value, role) for role in CohortRole]
    (objection,) = object_to_unseen(skipped)
    assert "holdout holdout (bring" in objection
    assert object_to_unseen(skipped[:2]) == ()
    assert len(name_unseen(skipped)) == len(skipped)


def test_wordings_that_overlap_in_a_case_are_all_found():
    """Where one ends, another may have begun."""
    first, second = EIGHT[:-12], "two three four five six seven"
    wording = [NewWording("first", first), NewWording("second", second)]
    found = find_copies(wording, [("c", EIGHT)], 6, "dev")
    assert [one.where for one in found] == ["first", "second"]


def test_a_cohort_without_texts_is_named_not_passed_over(setting):
    """What was not looked at must not look clean."""
    setting.add_cohort("held", "holdout", [("h1", COPIED, 1, 0)])
    texts_path(setting.workspace, "held").unlink()
    cohort = read_cohort(setting.workspace, "dev")
    wording = new(setting, definition=COPIED)
    assert check_copies(setting.workspace, wording, cohort).skipped == (
        ("held", CohortRole.HOLDOUT),
    )
    short = new(setting, terms=("big heart",))
    assert check_copies(setting.workspace, short, cohort).skipped == ()


def test_a_copy_is_warned_of_from_eight_words_on():
    """Case and punctuation do not hide it; seven words are common speech."""
    text = "There is a small left apical pneumothorax today, unchanged."
    copied = "there is a SMALL left: apical pneumothorax today"
    assert "own words" in warn_of_copy(copied, text)
    assert warn_of_copy("is a small left apical pneumothorax today", text) == ""
    assert warn_of_copy("", text) == ""
