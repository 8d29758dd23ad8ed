"""What visitors do on the page Judges: rate a pair blind, then judge the judge."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from loop.core.errors import DataError, UnknownLabelError
from loop.core.records import Clarification, ErrorWeight
from loop.labels.cohort import find_item, read_cohort
from loop.review.pair_verdicts import (
    JudgedAnswer,
    MissedError,
    PairVerdict,
    name_verdicts,
    read_judged,
)
from loop.review.reading.pair_ratings import (
    LONGEST_WORDS,
    MOST_ERRORS,
    PairRating,
    RatedError,
    RatingsPublication,
    keep_rating,
    mark_agreed,
    mark_shown,
    publish_ratings,
)
from loop.review.revise.blocked import refuse_blocked
from loop.review.status import KeptVerdict
from loop.review.submit import VerdictContext, submit_verdicts, withdraw_verdict
from loop.review.verdict import Edits, Judgement, check_verdicts
from loop.review.working import drop_working, keep_working, read_working
from loop.ui.pages.judges.state import Desk, PairRow, list_pairs, open_desk
from loop.ui.pages.judges.view import (
    JudgesOutputs,
    PairPage,
    render_closed,
    render_list,
    render_pair,
    render_publication,
    render_status,
)
from loop.ui.wiring import Visit

TAKEN_BACK = "taken back on the page Judges"
"""Reason that a verdict is withdrawn with there."""

_FIELD = re.compile(
    r"(listed|marked|missed)\.([0-9]{1,3})\.(right|category|weight|words)"
)
_NAMES = frozenset(
    {"points", "none", "comment", "judgement", "anchor", "complete"}
    | {f"rule.{name}" for name in ("category", "phrase", "value", "note")}
)
_MOST_FIELDS = 600
_LONGEST = 4000
"""Characters of one field of the form."""

Fields = Mapping[str, str]


def holds_pairs(visit: Visit, cohort: str | None) -> bool:
    """Whether a cohort holds pairs, which are seen on this page alone."""
    workspace = visit.context.workspace
    return bool(cohort) and read_cohort(workspace, str(cohort)).holds_pairs


def open_on_case(visit: Visit, cohort: str, case_id: str) -> None:
    """Have the page open on a pair when it is chosen next."""
    context = visit.context
    place = {"case": case_id}
    keep_working(context.store, visit.actor, _place(cohort), place, context.now)


def refresh(visit: Visit, prompt: str | None, cohort: str | None) -> JudgesOutputs:
    """Return the page when it is opened or chosen again: at the pair one was on."""
    try:
        desk = open_desk(visit, prompt, cohort)
    except DataError as error:
        return render_closed(str(error))
    rows = list_pairs(visit, desk)
    place = _place(desk.task.cohort.name)
    kept = read_working(visit.context.store, visit.actor, place)
    case_id = str(kept.payload.get("case", "")) if kept else ""
    if case_id not in {row.case_id for row in rows}:
        case_id = _next(rows, "")
    return _at(visit, desk, rows, case_id)


def move(visit: Visit, prompt: str | None, cohort: str | None) -> JudgesOutputs:
    """Open the pair that was chosen, or the one before or after.

    Raises
    ------
    DataError
        There is no such pair.
    """
    desk = open_desk(visit, prompt, cohort)
    rows = list_pairs(visit, desk)
    ids = [row.case_id for row in rows]
    case_id, act = str(visit.data.get("case", "")), visit.data.get("act")
    if case_id not in ids:
        raise DataError("the cohort has no such pair. Load the page again.")
    if act == "next":
        case_id = _next(rows, case_id)
    elif act == "previous":
        case_id = ids[max(ids.index(case_id) - 1, 0)]
    elif act == "after":
        case_id = ids[min(ids.index(case_id) + 1, len(ids) - 1)]
    return _at(visit, desk, rows, case_id)


def keep(visit: Visit, prompt: str | None, cohort: str | None) -> JudgesOutputs:
    """Keep the form as it is being filled in."""
    desk = open_desk(visit, prompt, cohort)
    case_id, fields = _sent(visit, desk)
    if desk.task.words is not None:
        # What is said of a holdout is kept sealed, which a draft is not.
        said = "not kept until you hand it in: this is a holdout"
        return JudgesOutputs(status=render_status(said))
    _keep(visit, desk, case_id, fields)
    return JudgesOutputs(status=render_status("Draft saved; not handed in yet."))


def rate(visit: Visit, prompt: str | None, cohort: str | None) -> JudgesOutputs:
    """Keep the visitor's own rating, and show what the judge says if one may see it.

    Raises
    ------
    DataError
        Points are missing, or neither an error nor that there is none was said.
    ConflictError
        The judge's errors were shown already.
    """
    desk = open_desk(visit, prompt, cohort)
    case_id, fields = _sent(visit, desk)
    _require(desk.rates, "rate pairs")
    rating = _read_rating(fields)
    store, now = visit.context.store, visit.context.now
    keep_rating(store, desk.task, desk.person, case_id, rating, now)
    _forget(visit, desk, case_id)
    if desk.run is not None and desk.judges:
        mark_shown(store, desk.task, desk.person, case_id, now)
        return _again(
            visit, prompt, cohort, case_id, f"Your rating of {case_id} is kept."
        )
    return _on(visit, prompt, cohort, case_id, f"Your rating of {case_id} is kept.")


def reveal(visit: Visit, prompt: str | None, cohort: str | None) -> JudgesOutputs:
    """Show what the judge says of a pair without a rating of one's own."""
    desk = open_desk(visit, prompt, cohort)
    case_id, fields = _sent(visit, desk)
    if not desk.judges or desk.run is None:
        raise DataError(desk.why or "you may not see a judge's errors.")
    if fields.get("points") or any(
        any(row.values()) for row in _rows(fields, "marked").values()
    ):
        raise DataError(
            "you have begun a rating, which would be lost: once you see the judge's "
            "errors, the pair cannot be rated any more. Hand it in, or empty it first."
        )
    store, now = visit.context.store, visit.context.now
    mark_shown(store, desk.task, desk.person, case_id, now)
    _forget(visit, desk, case_id)
    return _again(visit, prompt, cohort, case_id, "")


def judge(visit: Visit, prompt: str | None, cohort: str | None) -> JudgesOutputs:
    """Keep the verdicts on a judge's answer about a pair, all or none.

    Raises
    ------
    DataError
        There is nothing to record, a field is wrong, or no draft could be made of what
        is asked for; nothing was kept.
    """
    desk = open_desk(visit, prompt, cohort)
    case_id, fields = _sent(visit, desk)
    _require(desk.judges, "give verdicts")
    run, version = desk.run, desk.version
    if run is None or version is None:
        raise DataError(desk.why or "there is no judge's answer here.")
    if visit.data.get("run") != run.id:
        raise DataError(
            "the judge has a newer run than this page shows, so that its errors may be "
            "others. Nothing was kept: load the page again."
        )
    context = visit.context
    if case_id not in desk.shown:
        raise DataError("the judge's errors were not shown yet. Open the pair again.")
    answer = read_judged(context.store, run, version, case_id)
    if answer.problem:
        raise DataError(
            "the judge has no readable answer about this pair, so there is nothing to "
            "judge. Go on with the next pair."
        )
    own = desk.own_verdicts(case_id)
    _refuse_wider(own)
    said_of = _read_verdict(answer, fields, version.labels)
    earlier = {one.verdict.label for one in own}
    verdicts = name_verdicts(answer, said_of, visit.actor.name, earlier=earlier)
    if not verdicts:
        _require_complete(fields)
        store, now = context.store, context.now
        mark_agreed(store, desk.task, desk.person, case_id, run.id, now)
        _forget(visit, desk, case_id)
        said = f"Kept on {case_id}: there is no error."
        return _on(visit, prompt, cohort, case_id, said)
    cohort_read = read_cohort(context.workspace, desk.task.cohort.name)
    try:
        checked = check_verdicts(
            verdicts, desk.task.categories, frozenset(cohort_read.case_ids)
        )
        refuse_blocked(
            context.workspace, checked, prompt=version.ref, cohort=cohort_read
        )
    except (DataError, UnknownLabelError) as error:
        said = re.sub(r"^verdict \d+[:,] ", "", str(error))
        raise DataError(f"not handed in: {said}") from error
    made_on = VerdictContext(cohort_read.name, version.ref, "", run.id)
    submit_verdicts(
        context.store,
        checked,
        made_on,
        context.now,
        finishing=_form(desk, case_id),
    )
    wrong = sum(one.judgement is not Judgement.ANSWER_RIGHT for one in checked)
    said = (
        f"{wrong} of {len(checked)} categories are wrong" if wrong else "all is right"
    )
    return _on(visit, prompt, cohort, case_id, f"Kept on {case_id}: {said}.")


def take_back(visit: Visit, prompt: str | None, cohort: str | None) -> JudgesOutputs:
    """Withdraw one of the visitor's own verdicts.

    Raises
    ------
    DataError
        It is none of theirs.
    """
    desk = open_desk(visit, prompt, cohort)
    case_id, _ = _sent(visit, desk)
    wanted = str(visit.data.get("verdict", ""))
    if wanted not in {one.id for one in desk.own_verdicts(case_id)}:
        raise DataError("that is no verdict of yours on this pair, or not any more.")
    context = visit.context
    ref = f"{desk.task.cohort.name}:{wanted}"
    withdraw_verdict(context.store, ref, visit.actor, TAKEN_BACK, context.now)
    return _again(visit, prompt, cohort, case_id, f"Verdict {wanted} is withdrawn.")


def publish(
    visit: Visit, prompt: str | None, cohort: str | None, why: str
) -> JudgesOutputs:
    """Make a version of the cohort's ratings of what everybody gave here.

    Raises
    ------
    DataError
        There is no reason, or a rater would lose what they said in a file.
    """
    desk = open_desk(visit, prompt, cohort)
    context = visit.context
    report = publish_ratings(
        context.workspace,
        context.store,
        desk.task,
        RatingsPublication(reason=why),
        visit.actor,
    )
    said = f"Ratings version {report.number} of {desk.task.cohort.name} is recorded."
    return JudgesOutputs(publication=render_publication(visit, desk, said), why="")


def _at(visit: Visit, desk: Desk, rows: list[PairRow], case_id: str) -> JudgesOutputs:
    """Return the page with one pair open, and remember it."""
    open_on_case(visit, desk.task.cohort.name, case_id)
    return JudgesOutputs(
        pairs=render_list(desk, rows, case_id),
        sheet=render_pair(_read_page(visit, desk, case_id)) if case_id else "",
        status=render_status(""),
        publication=render_publication(visit, desk),
    )


def _again(
    visit: Visit, prompt: str | None, cohort: str | None, case_id: str, said: str
) -> JudgesOutputs:
    """Return the page with the same pair open, as it is now."""
    desk = open_desk(visit, prompt, cohort)
    shown = _at(visit, desk, list_pairs(visit, desk), case_id)
    return shown._replace(status=render_status(said))


def _on(
    visit: Visit, prompt: str | None, cohort: str | None, case_id: str, said: str
) -> JudgesOutputs:
    """Return the page with the next pair that waits."""
    desk = open_desk(visit, prompt, cohort)
    rows = list_pairs(visit, desk)
    shown = _at(visit, desk, rows, _next(rows, case_id))
    if not any(row.waits for row in rows):
        said += " No pair waits for you any more."
    return shown._replace(status=render_status(said))


def _next(rows: list[PairRow], case_id: str) -> str:
    """Return the first pair after this one that waits, else the first that does."""
    ids = [row.case_id for row in rows]
    start = ids.index(case_id) + 1 if case_id in ids else 0
    ordered = (*rows[start:], *rows[:start])
    waiting = next((row.case_id for row in ordered if row.waits), None)
    return waiting or case_id or next(iter(ids), "")


def _refuse_wider(own: Sequence[KeptVerdict]) -> None:
    """Refuse to take over verdicts that ask for more than the form can show."""
    edits = [one.verdict.edits for one in own]
    rules = sum(len(one.clarifications) for one in edits)
    if rules > 1 or sum(one.count for one in edits) > rules:
        raise DataError(
            "a verdict of yours on this pair asks for more wording than this form "
            "shows, which would be lost. Withdraw it below first, or change it with "
            "`ranloop verdict add`."
        )


def _require_complete(fields: Fields) -> None:
    """Refuse that nothing is wrong unless it was said so."""
    if not fields.get("complete"):
        raise DataError(
            "the judge lists no error here. Tick that it missed none, or add those "
            "that it missed."
        )


def _place(cohort: str) -> str:
    return f"judges:{cohort}"


def _form(desk: Desk, case_id: str) -> str:
    run = desk.run.id if desk.is_revealed(case_id) and desk.run else "rating"
    return f"judging:{desk.task.key}:{run}:{case_id}"


def _read_page(visit: Visit, desk: Desk, case_id: str) -> PairPage:
    context = visit.context
    answer = None
    if desk.run is not None and desk.version is not None and desk.is_revealed(case_id):
        answer = read_judged(context.store, desk.run, desk.version, case_id)
    begun = read_working(context.store, visit.actor, _form(desk, case_id))
    fields: Fields = {}
    if begun:
        fields = {key: str(one) for key, one in begun.payload.items()}
    elif answer is not None:
        run = desk.run.id if desk.run else ""
        fields = fields_of_verdicts(answer, desk.own_verdicts(case_id), run)
        if case_id in desk.agreed:
            fields = {"complete": "yes"}
    elif case_id in desk.ratings:
        fields = fields_of_rating(desk.ratings[case_id])
    return PairPage(
        desk=desk,
        item=find_item(context.workspace, desk.task.cohort.name, case_id),
        answer=answer,
        fields=fields,
    )


def fields_of_rating(rating: PairRating) -> dict[str, str]:
    """Return the form that says what a rating says."""
    fields = {"points": f"{rating.points:g}"}
    if not rating.errors:
        fields["none"] = "yes"
    for number, one in enumerate(rating.errors):
        fields |= {
            f"marked.{number}.category": one.category,
            f"marked.{number}.weight": one.significance,
            f"marked.{number}.words": one.words,
        }
    return fields


def fields_of_verdicts(
    answer: JudgedAnswer, own: Sequence[KeptVerdict], run: str
) -> dict[str, str]:
    """Return the form that says what one's verdicts say of the answer of a run."""
    fields: dict[str, str] = {}
    missed = 0
    for kept in own:
        verdict = kept.verdict
        listed = [
            place
            for place, one in enumerate(answer.errors)
            if one.category == verdict.label
        ]
        # A newer run may list other errors: of those nothing was said.
        known = [one for one in verdict.errors if one.said is not ErrorWeight.NO_ERROR]
        for place in listed:
            now = answer.errors[place]
            said = (
                one for one in known if (one.words, one.said) == (now.words, now.weight)
            )
            one = next(said, None)
            if one is not None:
                known.remove(one)
                right = "ok" if one.right is one.said else one.right.value
                fields[f"listed.{place}.right"] = right
        if verdict.judgement is not Judgement.ANSWER_RIGHT:
            fields["judgement"] = verdict.judgement.value
        elif kept.circumstances.run == run:
            fields |= {f"listed.{place}.right": "ok" for place in listed}
        for one in verdict.errors:
            if one.said is ErrorWeight.NO_ERROR:
                fields |= {
                    f"missed.{missed}.category": verdict.label,
                    f"missed.{missed}.weight": one.right.value,
                    f"missed.{missed}.words": one.words,
                }
                missed += 1
        for rule in verdict.edits.clarifications[:1]:
            fields |= {
                "rule.category": verdict.label,
                "rule.phrase": rule.phrase,
                "rule.value": rule.value.value,
                "rule.note": rule.note,
            }
        fields |= {"comment": verdict.comment} if verdict.comment else {}
        fields |= {"anchor": "yes"} if verdict.anchor else {}
    return fields


def _require(allowed: bool, what: str) -> None:
    if not allowed:
        raise DataError(f"you may not {what}. Ask whoever runs ranloop here.")


def _sent(visit: Visit, desk: Desk) -> tuple[str, Fields]:
    """Return the pair that a form is about, and what stands in it.

    Raises
    ------
    DataError
        It is about another cohort, or is none of this page's.
    """
    case_id = str(visit.data.get("case", ""))
    if (
        visit.data.get("cohort") != desk.task.key
        or case_id not in desk.task.cohort.case_ids
    ):
        raise DataError(
            "the form is about another cohort, or its texts were imported anew. "
            "Nothing was kept: load the page again."
        )
    fields = visit.data.get("fields")
    if fields is None:
        return case_id, {}
    if not isinstance(fields, dict) or len(fields) > _MOST_FIELDS:
        raise DataError("the page sent no form. Load it again.")
    found: dict[str, str] = {}
    for name, value in fields.items():
        if not isinstance(value, str):
            raise DataError("the page sent no form. Load it again.")
        if len(value) > _LONGEST:
            raise DataError(
                f"a field of the form has more than {_LONGEST:,} characters. Shorten "
                "it; nothing was kept."
            )
        if str(name) not in _NAMES and not _FIELD.fullmatch(str(name)):
            continue
        # A browser may send an unpaired surrogate, which is no text.
        found[str(name)] = value.encode("utf-8", "replace").decode("utf-8").strip()
    return case_id, found


def _keep(visit: Visit, desk: Desk, case_id: str, fields: Fields) -> None:
    context = visit.context
    subject = _form(desk, case_id)
    keep_working(context.store, visit.actor, subject, dict(fields), context.now)


def _forget(visit: Visit, desk: Desk, case_id: str) -> None:
    drop_working(visit.context.store, visit.actor, _form(desk, case_id))


def _rows(fields: Fields, kind: str) -> dict[int, dict[str, str]]:
    """Return the rows of one list of the form, by their numbers."""
    found: dict[int, dict[str, str]] = {}
    for name, value in fields.items():
        match = _FIELD.fullmatch(name)
        if match and match[1] == kind:
            found.setdefault(int(match[2]), {})[match[3]] = value
    return dict(sorted(found.items()))


def _read_rating(fields: Fields) -> PairRating:
    """Return what a form says of a candidate."""
    try:
        points = float(fields.get("points", ""))
    except ValueError:
        raise DataError("points are missing: say how good the candidate is.") from None
    marked = [row for row in _rows(fields, "marked").values() if any(row.values())]
    lacking = [row for row in marked if not (row.get("category") and row.get("weight"))]
    if lacking:
        raise DataError(
            "an error has no category, or does not say whether it is significant. "
            "Choose both, or take the row away."
        )
    if not marked and not fields.get("none"):
        raise DataError(
            "no error is marked. Add those you see, or tick that there is none."
        )
    if marked and fields.get("none"):
        raise DataError(
            "errors are marked, and that there is none is ticked. Take one away."
        )
    errors = (
        RatedError(row["category"], row["weight"], row.get("words", ""))
        for row in marked[: MOST_ERRORS + 1]
    )
    return PairRating(points, tuple(errors))


def _read_verdict(
    answer: JudgedAnswer, fields: Fields, categories: Sequence[str]
) -> PairVerdict:
    """Return what a form says of a judge's answer.

    Of a listed error it says ``ok``, a weight, ``no_error``, or the category that it
    belongs to.
    """
    right: dict[int, ErrorWeight] = {}
    missed: list[MissedError] = []
    listed = _rows(fields, "listed")
    for place in range(len(answer.errors)):
        said = listed.get(place, {}).get("right", "")
        if not said:
            raise DataError(
                f"error {place + 1} of the judge has no verdict of yours. Choose one "
                "for each, or press All right."
            )
        if said == "ok":
            continue
        if said in tuple(ErrorWeight):
            right[place] = ErrorWeight(said)
            continue
        one = answer.errors[place]
        right[place] = ErrorWeight.NO_ERROR
        missed.append(MissedError(said, one.weight, one.words))
    for row in _rows(fields, "missed").values():
        if any(row.values()):
            missed.append(_read_missed(row))
    if len(missed) > MOST_ERRORS:
        raise DataError(f"at most {MOST_ERRORS} missed errors are kept. Remove some.")
    edits = _read_rule(fields)
    for name in (*(one.category for one in missed), *edits):
        if name not in categories:
            raise DataError(
                "a category is none that the judge is asked for. Load the page again."
            )
    open_guide = fields.get("judgement") == Judgement.GUIDELINE_AMBIGUOUS
    return PairVerdict(
        right=right,
        missed=tuple(missed),
        judgement=(
            Judgement.GUIDELINE_AMBIGUOUS if open_guide else Judgement.MODEL_WRONG
        ),
        edits=edits,
        comment=fields.get("comment", ""),
        anchor=bool(fields.get("anchor")),
    )


def _read_missed(row: Mapping[str, str]) -> MissedError:
    category, weight = row.get("category", ""), row.get("weight", "")
    if not category or weight not in (
        ErrorWeight.SIGNIFICANT,
        ErrorWeight.INSIGNIFICANT,
    ):
        raise DataError(
            "a missed error has no category, or does not say whether it is "
            "significant. Choose both, or take the row away."
        )
    words = row.get("words", "")
    if len(words) > LONGEST_WORDS:
        raise DataError(
            f"the words of an error may have {LONGEST_WORDS} characters. Name the "
            "finding."
        )
    return MissedError(category, ErrorWeight(weight), words)


def _read_rule(fields: Fields) -> dict[str, Edits]:
    """Return the clarification that a form asks for, by its category."""
    category, phrase, value, note = (
        fields.get(f"rule.{name}", "")
        for name in ("category", "phrase", "value", "note")
    )
    if not (category or phrase or value or note):
        return {}
    if not (category and phrase) or value not in tuple(ErrorWeight):
        raise DataError(
            "a clarification needs a category, a phrase, and what an error with that "
            "phrase is. Give them, or leave it out."
        )
    rule = Clarification(phrase=phrase, value=ErrorWeight(value), note=note)
    return {category: Edits(clarifications=(rule,))}
