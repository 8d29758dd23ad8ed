"""The page Discover without a browser: what is shown, who may decide, what is kept."""

import html
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from loop.core.errors import ConflictError, DataError
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.people.users import Right, UserRole
from loop.labels.taxonomy import read_taxonomy
from loop.optimize.discovery.discover import discover_findings
from loop.optimize.discovery.kept_draft import (
    cluster_key,
    keep_discovery,
    kept_draft_path,
    read_kept_draft,
)
from loop.optimize.discovery.taxonomy_draft import PhraseCounts, dump_taxonomy_draft
from loop.ui.pages.discover import events, state, view
from tests.optimize.discovery.made_reports import add_cohort, reports
from tests.ui.visits import opened, until, visit

HOSTILE = '"><script>alert(1)</script>{{7*7}}'
SPINE = {
    "name": ["Degenerative Spine"],
    "definition": ["Wear of the spine: discs, end plates, joints."],
    "group": ["bone"],
}


@pytest.fixture(scope="module")
def discovered(tmp_path_factory, first_version):
    """Make a workspace in which a cohort was discovered, and one of claims."""
    root = tmp_path_factory.mktemp("page") / "ws"
    place = WorkspacePaths(Path(shutil.copytree(first_version.root, root)))
    add_cohort(place, reports())
    add_cohort(place, [f"Other {one}" for one in reports(6)], name="x", role="external")
    found = discover_findings(place, "made")
    keep_discovery(place, found)
    return place, found


@pytest.fixture
def context(tmp_path, discovered):
    """Serve a copy of it without a browser."""
    root = shutil.copytree(discovered[0].root, tmp_path.resolve() / "ws")
    with opened(WorkspacePaths(Path(root))) as context:
        yield context


def find(context, word):
    """Return the cluster that has a phrase with that word."""
    draft = read_kept_draft(context.workspace, "made").draft
    return next(c for c in draft.clusters if any(word in p for p in c.phrases))


def decide(context, word, how, role=UserRole.REVIEWER, seen="", **fields):
    """Let somebody decide on the cluster with that word."""
    key = cluster_key(find(context, word))
    data = {"decide": how, "id": key, "seen": seen, "fields": fields}
    return events.decide(
        visit(context, role, right=Right.JUDGE, **data), "extractor", "made"
    )


def plain(shown):
    """Return the words of a part of the page, as they are read."""
    return " ".join(re.sub(r"<[^>]*>", " ", html.unescape(shown)).split())


def listed(context):
    """Return the words of each cluster that is listed, without its forms."""
    rows = look(context).clusters.split('<li class="proposal')[1:]
    return [plain(f"<{row}").partition(" Name n ")[0] for row in rows]


def look(context, role=UserRole.REVIEWER):
    """Return the page as somebody opens it."""
    return events.refresh(visit(context, role), "extractor", "made")


def take(context, opened, why, role=UserRole.EDITOR):
    """Let somebody take the draft that they saw."""
    who = visit(context, role, right=Right.REVISE, name="Dr Ed")
    return events.take(who, "extractor", "made", opened, why)


FOUND = (
    ("degenerative changes ... thoracic spine", 12, "scoliosis ... spine"),
    ("scoliosis ... spine", 9, "degenerative changes ... thoracic spine"),
    ("heart ... enlarged", 7, "aorta ... tortuous"),
    ("aorta ... tortuous", 6, "heart ... enlarged"),
)
PLACES = ("spine 12, thoracic 12", "spine 9", "heart 7", "aorta 6")


def test_the_clusters_are_listed_with_what_is_known_of_them(context):
    """Names, counts, rates, cases, and what the taxonomy says; no text of a case."""
    shown = look(context)
    assert plain(shown.head).startswith(
        "Cases read 30 Phrases 5 Clusters 5 That no label names 4 Decided 0 of 5 "
        "Compared with extractor@v1 How to read the numbers"
    )
    unnamed = [
        f"{name} {count} cases hedged 0 %, denied 0 % no label names it {name} {count} "
        "hedged 0 %, denied 0 % No label of the taxonomy makes it present. Found in "
        f"its cases by extractor@v1: Pleural Effusion in {min(count, 8)}, no label in "
        f"{max(count - 8, 0)}. Where: {place}. Most like: {near}. Cases: r0, r1, r2, "
        f"r3, r4 and {count - 5} more"
        for (name, count, near), place in zip(FOUND, PLACES, strict=True)
    ]
    named = (
        "pleural effusion 8 cases hedged 0 %, denied 73 % named by Pleural Effusion "
        "pleural effusion 8 hedged 0 %, denied 73 %; makes Pleural Effusion present "
        "The taxonomy names it: Pleural Effusion. Found in its cases by extractor@v1: "
        "Pleural Effusion in 8, no label in 0. Where: pleural 8. Most like: heart ... "
        "enlarged. Cases: r0, r1, r2, r3, r4 and 3 more"
    )
    assert listed(context) == [*unnamed[:2], named, *unnamed[2:]]


def test_what_was_decided_is_told_whole(context):
    """By whom, what each cluster is now, and what taking it all would do."""
    decide(context, "degenerative", "name", **SPINE)
    first = find(context, "degenerative").phrases[0]
    decide(context, "scoliosis", "merge", other=[first])
    decide(context, "tortuous", "map", label=["mediastinal other"])
    decide(context, "effusion", "drop")
    shown = look(context, UserRole.EDITOR)
    assert "That no label names 4 Decided 4 of 5 Compared" in plain(shown.head)
    assert plain(shown.change) == (
        "What taking it would do Clusters: 1 undecided, 1 dropped, 1 mapped, 2 new. + "
        "new label Degenerative Spine (bone) Wear of the spine: discs, end plates, "
        "joints. counts degenerative changes thoracic spine, scoliosis spine + counts "
        "as Mediastinal Other aorta tortuous What would no longer fit: extractor@v1 "
        "does not ask for degenerative_spine, and No Finding no longer follows from "
        "its answers Add a guide to each in a draft, and commit it. Taking it adds "
        "this to labels/taxonomy.yaml; no label is removed or renamed. The ledger "
        "keeps the reason and the name Dr A (editor)."
    )
    fates = ("new label Degenerative Spine Dr A, 20",) * 2
    fates += ("dropped Dr A, 20", "no label names it heart", "counts as Mediastinal")
    for row, fate in zip(listed(context), fates, strict=True):
        assert fate in row
    offered = look(context).clusters.partition('id="discover-others"')[2]
    assert re.findall(r'value="(.*?)">(.*?)</option>', offered) == [
        ("Degenerative Spine", "new label"),
        ("degenerative changes ... thoracic spine", "Degenerative Spine"),
        ("scoliosis ... spine", "Degenerative Spine"),
        ("pleural effusion", "drop"),
        ("heart ... enlarged", "undecided"),
        ("aorta ... tortuous", "Mediastinal Other"),
    ]


def test_whoever_may_not_decide_gets_no_forms(context):
    """An approver looks; a reviewer decides; an editor takes."""
    seen = look(context, UserRole.APPROVER).clusters
    assert "data-decide" not in seen and "<form" not in seen
    seen = look(context)
    assert "data-decide" in seen.clusters
    assert 'data-act="discover"' not in seen.head
    assert 'data-act="discover"' in look(context, UserRole.EDITOR).head
    decide(context, "degenerative", "name", **SPINE)
    assert look(context).deciding.visible is False
    assert "The role editor may take it" in look(context).change
    assert look(context, UserRole.EDITOR).deciding.visible is True


def test_a_cohort_of_claims_or_a_holdout_is_refused(context):
    """Also to whoever asks by hand."""
    shown = events.refresh(visit(context), "extractor", "x")
    assert "has the role external" in shown.said
    assert shown.clusters == ""
    for act in (events.decide, events.start):
        with pytest.raises(DataError, match="has the role external"):
            act(visit(context, decide="drop", act="discover", id="1"), "", "x")
    with pytest.raises(DataError, match="no cohort is chosen"):
        events.look(visit(context, act="show"), "", None)
    assert "No cohort yet" in events.refresh(visit(context), None, None).said


def test_each_decision_is_shown_with_what_it_would_do_and_break(context):
    """At once, for everybody."""
    shown = decide(context, "degenerative", "name", **SPINE)
    assert "Part of a new label" in shown.clusters
    assert "new label Degenerative Spine" in shown.clusters
    assert "does not ask for degenerative_spine" in shown.change
    assert "Dr A" in look(context, UserRole.APPROVER).clusters
    first = find(context, "degenerative").phrases[0]
    shown = decide(context, "scoliosis", "merge", other=[first])
    assert shown.clusters.count("new label Degenerative Spine") == 2
    shown = decide(context, "tortuous", "map", label=["mediastinal other"])
    assert "counts as" in shown.clusters and "aorta tortuous" in shown.change
    shown = decide(context, "scoliosis", "drop")
    assert "dropped" in shown.clusters
    shown = decide(context, "scoliosis", "leave")
    assert "Undecided again." in shown.clusters
    with pytest.raises(DataError, match="no such decision"):
        decide(context, "scoliosis", "<b>")


def test_a_split_cluster_says_what_is_still_known(context):
    """The cases of each phrase, and of several at least so many."""
    first = find(context, "degenerative").phrases[0]
    decide(context, "scoliosis", "merge", other=[first])
    shown = look(context).clusters
    assert "at least 12 cases" in shown
    assert "It was split or merged here" in shown
    assert find(context, "scoliosis") == find(context, "degenerative")
    shown = decide(context, "scoliosis", "split", phrase=[first])
    assert "Split. The part stands below it." in shown.clusters
    assert "at least" not in shown.clusters


def test_whoever_comes_second_sees_the_list_afresh(context):
    """Nothing of theirs is done."""
    gone = cluster_key(find(context, "scoliosis"))
    first = find(context, "degenerative").phrases[0]
    decide(context, "scoliosis", "merge", other=[first])
    who = visit(context, right=Right.JUDGE, decide="drop", id=gone)
    shown = events.decide(who, "extractor", "made")
    assert "split or merged this cluster" in shown.said
    assert "degenerative" in shown.clusters


def test_whoever_decides_on_an_older_page_gets_an_error_and_keeps_their_text(context):
    """What was decided meanwhile is shown, and what they typed is in the form."""
    mark = re.search(r'data-seen="(\w+)"', row(look(context), "scoliosis"))[1]
    decide(context, "scoliosis", "name", **SPINE)
    shown = decide(
        *(context, "scoliosis", "name"),
        seen=mark,
        name=["Bent Spine"],
        definition=["The spine is bent to one side."],
    )
    assert "decided on this cluster meanwhile" in shown.said
    text = row(shown, "scoliosis")
    assert "new label Degenerative Spine" in text
    assert "The spine is bent to one side.</textarea>" in text
    assert find(context, "scoliosis").label == SPINE["name"][0]
    mark = re.search(r'data-seen="(\w+)"', text)[1]
    decide(context, "scoliosis", "drop", seen=mark)
    assert "dropped" in row(look(context), "scoliosis")


def row(shown, word):
    """Return the HTML of the cluster that is listed with that word."""
    rows = shown.clusters.split("<li class=")
    return next(one for one in rows if f"<q>{word}" in one)


def test_a_cohort_that_was_imported_again_is_discovered_again_first(context):
    """Decisions on what cannot be taken would be lost."""
    path = kept_draft_path(context.workspace, "made")
    draft = read_kept_draft(context.workspace, "made").draft
    changed = draft.model_copy(update={"cohort_digest": "0" * 64})
    path.write_text(dump_taxonomy_draft(changed), "utf-8")
    shown = look(context, UserRole.EDITOR)
    assert "was imported again after it was discovered" in html.unescape(shown.head)
    assert "data-decide" not in shown.clusters
    assert shown.change == ""


def test_nothing_is_offered_that_is_refused(context):
    """Nothing can be mapped to No Finding."""
    shown = look(context).clusters
    offered = shown.split('id="discover-labels"')[1].split("</datalist>")[0]
    assert "Fracture" in offered
    assert "No Finding" not in offered


def test_what_is_too_long_is_refused_and_nothing_is_cut(context):
    """What was typed before stays kept."""
    name = cluster_key(find(context, "scoliosis"))

    def begin(**fields):
        sent = {"form": "name", "id": name, "fields": fields}
        events.begin(visit(context, right=Right.JUDGE, **sent), "", "made")

    begin(definition=["Not yet"])
    with pytest.raises(DataError, match=r"2,001 characters; at most 2,000"):
        begin(definition=["x" * 2001])
    with pytest.raises(DataError, match=r"501 phrases are ticked; at most 500"):
        decide(context, "scoliosis", "split", phrase=["x"] * 501)
    assert "Not yet</textarea>" in look(context).clusters


def test_what_just_fits_a_form_is_taken_as_it_was_sent():
    """What is no list of a field is none; numbers are read as words."""
    fields = {"definition": ["x" * 2000], "phrase": ["y"] * 500, "z": "no", "n": [7]}
    form = state.ClusterForm.of({"id": 7, "fields": fields}, "split")
    assert (form.cluster, form.form) == ("7", "split")
    assert form.fields == {
        "definition": ("x" * 2000,),
        "phrase": ("y",) * 500,
        "n": ("7",),
    }
    assert (form.text("n"), form.text("z"), form.text("phrase")) == ("7", "", "y")
    assert state.ClusterForm.of({"fields": []}, None) == state.NO_FORM


def test_the_list_is_narrowed_and_turned_page_by_page(context, monkeypatch):
    """It is so again after a reload; what is no number begins anew."""
    shown = events.look(visit(context, act="show", show="unnamed"), "", "made")
    assert "named by" not in shown.clusters
    assert look(context).clusters.count("no label names it") > 1
    decide(context, "scoliosis", "drop")
    shown = events.look(visit(context, act="show", show="decided"), "", "made")
    assert shown.clusters.count('class="proposal ') == 1
    monkeypatch.setattr("loop.ui.pages.discover.view.PAGE_SIZE", 2)
    events.look(visit(context, act="show", show="all"), "", "made")
    shown = events.look(visit(context, act="page", start="2"), "", "made")
    assert "3 to 4" in shown.clusters
    for wrong in ("x", "99999999999", "-3"):
        events.look(visit(context, act="page", start=wrong), "", "made")
        assert look(context).clusters.count('<li class="proposal') in (1, 2)


def test_a_form_that_was_begun_is_there_after_a_reload(context):
    """Until it is handed in or closed; hostile text stays text."""
    name = cluster_key(find(context, "scoliosis"))
    fields = {"name": [HOSTILE], "definition": ["Not yet"], "x": "y"}
    begun = visit(context, right=Right.JUDGE, form="name", id=name, fields=fields)
    events.begin(begun, "", "made")
    shown = look(context).clusters
    assert shown.count("data-begun") == 1
    assert "Not yet</textarea>" in shown
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{{7*7}}" in shown
    events.begin(visit(context, right=Right.JUDGE, form="", id=name), "", "made")
    assert "data-begun" not in look(context).clusters
    events.begin(begun, "", "made")
    decide(context, "scoliosis", "drop")
    assert "data-begun" not in look(context).clusters


def test_what_stops_the_change_from_being_read_is_said_and_nothing_is_offered(
    context, monkeypatch
):
    """A reference that was edited, for example; the clusters stay on the page."""

    def refuse(_):
        raise DataError("the reference of x was edited & must be imported again")

    decide(context, "degenerative", "name", **SPINE)
    monkeypatch.setattr(view, "read_change", refuse)
    shown = look(context, UserRole.EDITOR)
    assert "edited &amp; must be imported again" in shown.change
    assert "scoliosis" in shown.clusters
    assert shown.deciding.visible is False


def test_the_draft_is_taken_as_it_was_seen(context, discovered, monkeypatch):
    """With a reason that was kept while it was typed, under the name of the editor."""
    decide(context, "degenerative", "name", **SPINE)
    seen = look(context, UserRole.EDITOR)
    editor = visit(context, UserRole.EDITOR, right=Right.REVISE, name="Dr Ed")
    events.type_why(editor, "made", "the readers")
    assert state.find_why(editor, "made") == "the readers"
    with pytest.raises(DataError, match="give a reason"):
        take(context, seen.opened, " ")
    decide(context, "scoliosis", "drop")
    with pytest.raises(ConflictError, match="decided something since"):
        take(context, seen.opened, "the readers")
    seen = look(context, UserRole.EDITOR)
    shown = take(context, seen.opened, "the readers asked")
    assert "New label: degenerative_spine" in shown.said
    assert "changed after these clusters were compared with it" in shown.head
    assert "data-decide" not in shown.clusters
    assert read_taxonomy(context.workspace.labels).knows("Degenerative Spine")
    entry = read_ledger(context.workspace.ledger)[-1]
    assert (entry.action, entry.actor) == ("taxonomy_revised", "Dr Ed")
    assert state.find_why(editor, "made") == ""
    now = replace(discovered[1], taxonomy=read_taxonomy(context.workspace.labels))
    monkeypatch.setattr(events, "discover_findings", lambda *_, **__: now)
    again(context)
    shown = look(context, UserRole.EDITOR)
    assert "counts as Degenerative Spine" in shown.clusters
    assert "data-decide" in shown.clusters


def again(context):
    """Discover once more, as the button does."""
    who = visit(context, UserRole.EDITOR, right=Right.REVISE, act="discover")
    shown = events.start(who, "extractor", "made")
    assert shown.timer.active is True
    key = state.discover_key("made")
    until(lambda: context.jobs.progress_of(key).finished)
    shown = events.poll(who, "extractor", "made")
    assert "Decided as they were" in shown.said
    assert shown.timer.active is False
    assert context.jobs.progress_of(key) is None


def test_what_cannot_be_discovered_says_why(context, monkeypatch):
    """Until somebody tries again."""

    def fail(*_, **__):
        raise DataError("no case is in that language.")

    monkeypatch.setattr(events, "discover_findings", fail)
    who = visit(context, UserRole.EDITOR, right=Right.REVISE, act="discover")
    events.start(who, None, "made")
    key = state.discover_key("made")
    until(lambda: context.jobs.progress_of(key).finished)
    for shown in (events.poll(who, None, "made"), look(context)):
        assert "no case is in that language" in shown.head
    nothing = visit(context, UserRole.EDITOR, right=Right.REVISE, act="go")
    assert events.start(nothing, None, "made").head == events.DiscoverOutputs().head


@pytest.mark.parametrize(
    ("kept", "cases", "not_counted"),
    [(("degenerative changes ... thoracic spine",), 12, 1), ((), 0, 2)],
)
def test_counts_that_are_none_are_not_shown_as_numbers(
    context, kept, cases, not_counted
):
    """A draft of an earlier version has none; of the others the largest is a bound."""
    assert PhraseCounts(asserted=1, hedged=0, denied=0).labels == ()
    first = find(context, "degenerative").phrases[0]
    decide(context, "scoliosis", "merge", other=[first])
    path = kept_draft_path(context.workspace, "made")
    draft = read_kept_draft(context.workspace, "made").draft
    counted = {one: draft.counted[one] for one in kept}
    path.write_text(
        dump_taxonomy_draft(draft.model_copy(update={"counted": counted})), "utf-8"
    )
    row = listed(context)[0]
    assert f" at least {cases} cases no label names it" in row
    assert row.count("not counted") == not_counted


def test_what_became_of_earlier_decisions_is_said(context, discovered, monkeypatch):
    """Each number by itself, and none where there is none."""

    def said(found):
        monkeypatch.setattr(events, "discover_findings", lambda *_, **__: found)
        who = visit(context, UserRole.EDITOR, right=Right.REVISE, act="discover")
        events.start(who, None, "made")
        until(lambda: context.jobs.progress_of(state.discover_key("made")).finished)
        shown = events.poll(who, None, "made").said
        return " ".join(re.sub(r"<[^>]*>", " ", html.unescape(shown)).split())

    whole = discovered[1]
    count = len(whole.clusters)
    assert said(whole) == f"Discovered {count} clusters in 30 cases."
    decide(context, "degenerative", "drop")
    decide(context, "scoliosis", "map", label=["Fracture"])
    decide(context, "tortuous", "drop")
    left = tuple(one for one in whole.clusters if "tortuous" not in one.name)
    labels = tuple(one for one in whole.taxonomy.labels if one.id != "fracture")
    other = replace(whole.taxonomy, labels=labels)
    assert said(replace(whole, clusters=left, taxonomy=other)) == (
        f"Discovered {count - 1} clusters in 30 cases. Decided as they were: 1. "
        "Decided, but gone (see the earlier draft): 1. Reset to undecided, since their "
        "label no longer exists: 1."
    )
