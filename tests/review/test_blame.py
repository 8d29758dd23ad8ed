"""Where lines came from: the right version, the right verdict, or the person."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop.core.paths import WorkspacePaths
from loop.core.records import Clarification, Exemplar, Lexicon, Value
from loop.prompts.catalog import lineage
from loop.prompts.diff import show_clarification, show_exemplar
from loop.prompts.instructions import add_rules
from loop.prompts.version import CallPlan, NamedVersion
from loop.review import blame as blame_module
from loop.review.blame import (
    LineOrigin,
    LineVerdict,
    PromptLine,
    find_origins,
    find_sources,
    group_origins,
    list_prompt_lines,
    name_origin,
    read_blame,
)
from loop.review.revise.commit import CommitDecision, commit_checked
from loop.review.revise.merge import merge_versions, rebase_draft
from loop.review.submit import VerdictContext, save_verdicts
from loop.review.verdict import Edits
from tests.prompts.test_shot_records import pinned
from tests.review.revise.conftest import TINY
from tests.review.revise.conftest import setting as setting
from tests.review.revise.conftest import store as store
from tests.review.revise.stepping import (
    FLUID,
    OTHER,
    WHEN,
    begin,
    check,
    now,
    overtake,
)

EFFUSION, HEART = TINY.guides
WORDS = st.sampled_from("abcdefgh")
ROWS = st.lists(WORDS, max_size=4, unique=True).map(tuple)
GUIDES = st.builds(
    lambda terms, hidden, exclusions: replace(
        EFFUSION,
        terms=terms,
        exclusions=exclusions,
        lexicon=(Lexicon(language="en", terms=hidden),) if hidden else (),
    ),
    ROWS,
    ROWS,
    ROWS,
)
VERSIONS = st.builds(
    lambda guide, lines: replace(
        TINY, guides=(guide, HEART), system="\n".join((*lines, ""))
    ),
    GUIDES,
    st.lists(WORDS, max_size=4),
)


def lines_of(*versions):
    """Return the lines of versions, newest first."""
    return [tuple(list_prompt_lines(one)) for one in versions]


def said(lines):
    """Return what lines say, wherever they say it."""
    return {line.identity for line in lines}


@given(chain=st.lists(VERSIONS, min_size=1, max_size=6))
@settings(max_examples=60)
def test_a_line_came_with_the_version_whose_parent_has_not_got_it(chain):
    """Moved, put in the lexicon, taken out and put back: every version since has it."""
    lines = lines_of(*chain)
    origins = find_origins(lines)
    assert list(origins) == list(lines[0])
    for line, place in origins.items():
        assert all(line.identity in said(one) for one in lines[: place + 1])
        if place + 1 < len(lines):
            assert line.identity not in said(lines[place + 1])


@given(base=VERSIONS, ours=VERSIONS, theirs=VERSIONS)
@settings(max_examples=40)
def test_a_merge_leaves_each_side_s_lines_with_it(base, ours, theirs):
    """A draft that was rebased came after the version that it was brought to."""
    merged = merge_versions(base, ours, theirs, {}).version
    origins = find_origins(lines_of(merged, theirs, base))
    for line, place in origins.items():
        known = [line.identity in said(one) for one in lines_of(theirs, base)]
        assert place == (0 if not known[0] else 2 if known[1] else 1)


def commit(setting, store, draft):
    """Commit a draft as another person than the one who wrote it."""
    check(setting, store, draft)
    decision = CommitDecision("bases were missed", "the test is of the lines")
    return commit_checked(
        setting.workspace, store, draft.ref, OTHER, decision, now=now
    ).version


def blame(workspace, ref, store=None):
    """Return where the lines of a version came from."""
    return read_blame(workspace, lineage(workspace, ref), store)


def origin_of(setting, store, ref, text):
    """Return the origin of the one line with this text."""
    (found,) = (
        one for one in blame(setting.workspace, ref, store) if one.line.text == text
    )
    return found


def test_a_line_is_from_the_verdict_that_asks_for_it(setting, store):
    """Of two on one label the one with these words; of another label none."""
    other = replace(
        FLUID, case_ids=("f2",), edits=Edits(terms=("costophrenic blunting",))
    )
    heart = replace(FLUID, label="cardiomegaly", edits=Edits(terms=("big heart",)))
    made = begin(setting, store, FLUID, other, heart).draft
    drafted = origin_of(setting, store, made.ref, "fluid ... base")
    assert drafted.version.ref == made.ref
    ref = commit(setting, store, made).ref
    for found in (drafted, origin_of(setting, store, ref, "fluid ... base")):
        (verdict,) = found.verdicts
        assert (verdict.id, verdict.reviewer) == (FLUID.id, "Dr B. Example")
        assert verdict.asked and verdict.when.startswith("2026-01-07")
    assert found.version.ref == ref
    assert found.drafted_by == setting.editor.name != found.version.author
    old = origin_of(setting, store, ref, "pleural effusion")
    assert (old.version.ref, old.verdicts, old.unknown) == ("tiny@v1", (), ())
    assert old.drafted_by == ""


def test_words_that_no_verdict_asks_for_stand_with_those_on_their_label(setting, store):
    """An editor worded it; whose cases it is for is named all the same."""
    made = begin(
        setting,
        store,
        FLUID,
        guides={"pleural_effusion": replace(EFFUSION, terms=("fluid level",))},
    ).draft
    found = origin_of(setting, store, made.ref, "fluid level")
    assert [(one.id, one.asked) for one in found.verdicts] == [(FLUID.id, False)]
    assert origin_of(setting, store, made.ref, "cardiomegaly").verdicts == ()


def test_a_general_rule_is_from_the_verdict_in_its_comment(setting, store):
    """Known without the store, as the comment is part of the template."""
    rule = "Words in quotation marks count."
    asking = replace(FLUID, edits=Edits(general_rules=(rule,)))
    made = begin(setting, store, asking).draft
    for kept, reviewer in ((store, "Dr B. Example"), (None, "")):
        found = origin_of(setting, kept, made.ref, rule)
        assert found.line.kind == "general rule"
        (verdict,) = found.verdicts
        assert (verdict.id, verdict.reviewer, verdict.asked) == (
            asking.id,
            reviewer,
            True,
        )


def test_rules_are_lines_of_their_own_however_they_are_wrapped():
    """A rule that goes on in the next line is one line, and no template line."""
    long = " ".join(["Count what is stated, and nothing that is likely"] * 3)
    version = add_rules(TINY, {long: "a1", "Short {{ rule }}.": "b2"}).version
    lines = list(list_prompt_lines(version))
    rules = [line.text for line in lines if line.kind == "general rule"]
    assert rules == [long, "Short {{ rule }}."]
    assert not any("verdict" in line.text for line in lines)


def test_a_clone_without_verdicts_says_which_it_may_be(setting, store):
    """The store is private and stays where it is: ids are in the version."""
    made = begin(setting, store, FLUID).draft
    found = origin_of(setting, None, made.ref, "fluid ... base")
    assert (found.verdicts, found.unknown) == ((), (FLUID.id,))


def test_a_rebased_draft_leaves_others_words_to_the_others(setting, store):
    """The rival's line is the rival's; the draft's is of its verdict."""
    made = begin(setting, store, FLUID).draft
    rival = overtake(setting, guides=(EFFUSION, replace(HEART, terms=("big heart",))))
    made = rebase_draft(setting.workspace, made.ref, OTHER, now=now).draft
    theirs = origin_of(setting, store, made.ref, "big heart")
    assert (theirs.version.ref, theirs.verdicts) == (rival.ref, ())
    ours = origin_of(setting, store, made.ref, "fluid ... base")
    assert ours.version.ref == made.ref and ours.verdicts[0].id == FLUID.id


def test_groups_come_newest_first_and_lose_no_line(setting, store):
    """Each line is in one group of its label."""
    made = commit(setting, store, begin(setting, store, FLUID).draft)
    origins = blame(setting.workspace, made.ref, store)
    groups = group_origins(origins)
    assert list(groups) == ["", "pleural_effusion", "cardiomegaly"]
    newest, oldest = groups["pleural_effusion"]
    assert [one.origin.version.number for one in (newest, oldest)] == [2, 1]
    assert newest.by_kind == {"term": ("fluid ... base",)}
    every = [line for found in groups.values() for one in found for line in one.lines]
    assert sorted(every) == sorted(one.line for one in origins)


def test_the_shipped_extractor_s_lines_are_all_told(labels_folder):
    """A wording that moved to the lexicon keeps the version that it came with."""
    shipped = WorkspacePaths(labels_folder.parent)
    origins = blame(shipped, "extractor@v10")
    (found,) = (
        one
        for one in origins
        if one.line == ("cardiomegaly", "lexicon en term", "enlarged heart")
    )
    assert found.version.ref == "extractor@v3"


SHOWING = """Read it.
{% for guide in guides %}
## {{ guide.label }}: {{ guide.name | upper }}
{{ guide.definition }}
{% if guide.terms %}
Also: {{ guide.terms | join(", ") }}.
{% endif %}
{% endfor %}
Rules of reading:
- A rule that is so long that it is written in two
  lines.

{{ text }}
"""


def shown_by(version, call="joint"):
    """Return what each line of the user message shows, as kinds and texts."""
    _, user = find_sources(version)[call]
    return [[(one.kind, one.text) for one in line] for line in user]


def test_each_line_of_a_message_tells_which_rows_it_shows():
    """Several on one line, one on several lines, and those of the instructions."""
    first = replace(
        EFFUSION, definition="Fluid in\nthe pleural space.", terms=("a", "b")
    )
    version = replace(TINY, user=SHOWING, guides=(first, replace(HEART, terms=())))
    shown = shown_by(version)
    assert shown[:5] == [
        [("user.jinja", "Read it.")],
        [("name", "Pleural Effusion")],
        [("definition", first.definition)],
        [("definition", first.definition)],
        [("term", "a"), ("term", "b")],
    ]
    rule = ("general rule", "A rule that is so long that it is written in two lines.")
    assert shown[7:] == [
        [("user.jinja", "Rules of reading:")],
        [rule],
        [rule],
        [],
        [],
        [],
    ]
    known = set(list_prompt_lines(version))
    for texts in find_sources(version).values():
        assert all(one in known for text in texts for line in text for one in line)


def test_with_a_call_for_each_label_each_shows_its_own_rows():
    """The instructions in every one of them."""
    version = replace(TINY, user=SHOWING, plan=CallPlan.PER_LABEL)
    assert shown_by(version, "cardiomegaly")[1] == [("name", "Cardiomegaly")]
    assert shown_by(version, "pleural_effusion")[0] == [("user.jinja", "Read it.")]


def test_what_a_template_makes_of_signs_is_never_shown_for_what_it_makes_of_rows():
    """One that counts letters, or cuts them off, says nothing of its lines."""
    counting = SHOWING.replace("guide.name | upper", "guide.name | length")
    cutting = SHOWING.replace("guide.definition", "guide.definition[:9]")
    for user in (counting, cutting):
        assert find_sources(replace(TINY, user=user)) == {}


def test_words_that_hold_the_signs_break_nothing():
    """Private letters in a guide are words like others."""
    strange = replace(EFFUSION, terms=("\uf8f07\uf8f1 fluid \uf8f2", "99\uf8f1"))
    find_sources(replace(TINY, user=SHOWING, guides=(strange, HEART)))


LUMP = PromptLine("mass", "term", "lump")


def origin(line=LUMP, *verdicts, **changes):
    """Return where a line came from."""
    said = {"drafted_by": "", "unknown": (), "version": TINY}
    return LineOrigin(line=line, verdicts=verdicts, **(said | changes))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (origin(), "v1; 2026-01-05; Dr A. Example"),
        (
            origin(drafted_by="Dr B", unknown=("x",)),
            "v1; 2026-01-05; drafted by Dr B, committed by Dr A. Example; perhaps from "
            "a verdict that is not kept here",
        ),
        (
            origin(version=replace(TINY, number=0, draft="d1"), unknown=("x", "y")),
            "draft; 2026-01-05; Dr A. Example; perhaps from one of 2 verdicts that are "
            "not kept here",
        ),
        (
            origin(
                LUMP,
                LineVerdict("v1", "Ann", "2026-01-04T10:00:00Z", asked=True),
                LineVerdict("v2", "", "", asked=False),
            ),
            "v1; 2026-01-05; Dr A. Example; asked for by verdict v1 of Ann, "
            "2026-01-04; with verdict v2",
        ),
    ],
)
def test_an_origin_is_told_in_words(found, words):
    """Version, day, people and verdicts."""
    assert name_origin(found) == words


def test_lines_are_grouped_by_version_and_verdicts():
    """Drafts first, then the newest version; each kind of line together."""
    draft = replace(TINY, number=0, draft="d1")
    second = replace(TINY, number=2)
    asked = LineVerdict("v1", "Ann", "2026-01-04T10:00:00Z", asked=True)

    def line(text, kind="term", label="mass"):
        return PromptLine(label, kind, text)

    rows = [
        origin(line("a")),
        origin(line("b"), asked, version=second),
        origin(line("c", "exclusion"), asked, version=second),
        origin(line("d"), version=draft),
        origin(line("e"), version=second),
        origin(line("f"), asked, version=second),
        origin(line("g", "plan", ""), version=second),
        origin(line("h"), version=second, unknown=("x",)),
    ]
    groups = group_origins(rows)
    assert list(groups) == ["mass", ""]
    found = [
        (one.origin.version.ref, [row.text for row in one.lines])
        for one in groups["mass"]
    ]
    assert found == [
        (draft.ref, ["d"]),
        ("tiny@v2", ["b", "c", "f"]),
        ("tiny@v2", ["e"]),
        ("tiny@v2", ["h"]),
        ("tiny@v1", ["a"]),
    ]
    assert groups["mass"][1].by_kind == {"term": ("b", "f"), "exclusion": ("c",)}
    assert groups["mass"][1].origin is rows[1]


def test_every_row_of_a_guide_is_signed_by_its_kind():
    """Whatever a template shows of it, and empty texts by nothing."""
    guide = replace(
        HEART,
        counts=("c one",),
        does_not_count=("d one",),
        uncertain_when=("u one",),
        terms=("t one",),
        exclusions=("e one",),
        clarifications=(
            Clarification(phrase="p one", value=Value.ABSENT, note="n one"),
            Clarification(phrase="p two", value=Value.PRESENT),
        ),
        exemplars=(
            Exemplar(text="x one", value=Value.PRESENT, evidence="x", why="w one"),
        ),
        implies=("pleural_effusion",),
    )
    user = (
        "{% for guide in guides %}\n{{ guide.name }}|{{ guide.definition }}\n"
        "{% for row in guide.counts + guide.does_not_count + guide.uncertain_when + "
        "guide.terms + guide.exclusions + guide.implies %}\n{{ row }}\n{% endfor %}\n"
        "{% for rule in guide.clarifications %}\n"
        "{{ rule.phrase }}={{ rule.note }}.\n{% endfor %}\n"
        "{% for one in guide.exemplars %}\n{{ one.text }}={{ one.why }}."
        "{{ one.evidence }}\n{% endfor %}\n{% endfor %}\n{{ text }}\n"
    )
    version = replace(TINY, user=user, guides=(guide,))
    shown = [line for line in shown_by(version) if line]
    first, second = map(show_clarification, guide.clarifications)
    (example,) = map(show_exemplar, guide.exemplars)
    assert shown == [
        [("name", "Cardiomegaly"), ("definition", "The heart is enlarged.")],
        [("counts", "c one")],
        [("does not count", "d one")],
        [("uncertain when", "u one")],
        [("term", "t one")],
        [("exclusion", "e one")],
        [("implies", "pleural_effusion")],
        [("clarification", first)],
        [("clarification", second)],
        [("exemplar", example)],
    ]
    assert set(find_sources(version)) == {"joint"}


@pytest.mark.parametrize("part", [1, 2, 500])
def test_a_verdict_that_is_kept_of_two_cohorts_is_told_as_it_was_first_given(
    setting, store, monkeypatch, part
):
    """Of as many verdicts as there are, whatever one question takes."""
    monkeypatch.setattr(blame_module, "_LOOKUP", part)
    early = VerdictContext("aaa", "", "")
    other = replace(FLUID, case_ids=("f2",), edits=Edits(terms=("meniscus",)))
    save_verdicts(store, [FLUID], early, WHEN - timedelta(days=2))
    save_verdicts(store, [other], early, WHEN + timedelta(days=2))
    made = begin(setting, store, FLUID, other).draft
    for text, when in (("fluid ... base", "2026-01-05"), ("meniscus", "2026-01-07")):
        (found,) = origin_of(setting, store, made.ref, text).verdicts
        assert found.when.startswith(when)
        assert found.asked


RULING = replace(FLUID, edits=Edits(general_rules=("Quotes  count.",)))


@pytest.mark.parametrize(
    ("verdict", "line", "concerns", "asks"),
    [
        (FLUID, ("pleural_effusion", "term", "fluid ... base"), True, True),
        (FLUID, ("pleural_effusion", "lexicon en term", "fluid ... base"), True, True),
        (FLUID, ("pleural_effusion", "exclusion", "fluid ... base"), True, False),
        (FLUID, ("pleural_effusion", "definition", "fluid ... base"), True, False),
        (FLUID, ("cardiomegaly", "term", "fluid ... base"), False, True),
        (FLUID, ("", "general rule", "Quotes count."), False, False),
        (RULING, ("", "general rule", "Quotes count."), True, True),
        (RULING, ("", "general rule", "Another rule."), True, False),
        (RULING, ("", "user.jinja", "Quotes count."), False, False),
        (RULING, ("pleural_effusion", "term", "Quotes count."), False, False),
    ],
)
def test_a_verdict_concerns_the_part_that_it_changes(verdict, line, concerns, asks):
    """The guide of its label or the rules; and asks for a line in its own words."""
    part = PromptLine(*line)
    assert blame_module._concerns(verdict, part) is concerns
    assert blame_module._asks(verdict, part) is asks


def test_what_a_version_reads_and_shows_are_lines_of_its_settings():
    """One that reads no other version and shows no example has neither."""
    reads = (NamedVersion("extractor@v1", "a" * 64),)
    version = replace(TINY, reads=reads, shots=pinned())
    lines = {one.kind: one for one in list_prompt_lines(version)}
    assert lines["reads"] == PromptLine("", "reads", version.read_words)
    assert lines["shots"] == PromptLine("", "shots", version.shot_words)
    bare = {one.kind for one in list_prompt_lines(TINY)}
    assert bare.isdisjoint({"reads", "shots"})


def test_a_line_of_a_template_is_not_the_rule_that_says_the_same():
    """The comment above rules tells whose the rule is, and no other line."""
    origins = [
        blame_module._origin(
            PromptLine("", kind, "Quotes count."), TINY, {"Quotes count.": "a1"}, {}, {}
        )
        for kind in ("general rule", "user.jinja")
    ]
    assert [one.verdicts for one in origins] == [(LineVerdict("a1", "", "", True),), ()]


def test_a_rendered_line_is_the_first_of_the_instructions_that_says_it():
    """Whole, or as a part of a rule that goes on; a blank one is none."""
    first, second = "Count what is stated.", "Do not count what is likely."
    version = add_rules(
        replace(TINY, system="Read.\nAlike.\n"), {first: "a1", second: "b2"}
    ).version
    version = replace(version, user="Alike.\n" + version.user)
    find = blame_module._find_static(version)
    assert find("Alike.  ") == (PromptLine("", "system.jinja", "Alike."),)
    assert find("- Do not count") == (PromptLine("", "general rule", second),)
    assert find("  what is") == (PromptLine("", "general rule", first),)
    assert [find(one) for one in ("", "- ", "  ", "Something else.")] == [()] * 4
