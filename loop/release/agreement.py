"""Whether ``release.json`` agrees with itself, the statement and the prompt shipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.prompts.version import PromptVersion
from loop.release.apart import render_apart
from loop.release.finding import ReleaseCheck, held, judged
from loop.release.folder import SCHEMA
from loop.release.rendering import read_prompt, render_files
from loop.release.statement import ENVELOPE, Statement, predicate_of

Facts = Mapping[str, Any]


def check_agreement(statement: Statement | None, facts: Facts) -> ReleaseCheck:
    """Return whether the statement is one about these facts."""
    if statement is None:
        return ReleaseCheck("agreement", False, "not checked: there is no statement")
    expected = predicate_of(facts)
    found = statement.predicate
    problems = [
        f"the statement's {key} is not that of release.json"
        for key in expected
        if found.get(key) != expected[key]
        or type(found[key]) is not type(expected[key])
    ]
    if set(found) - set(expected):
        problems.append("the statement says things that release.json does not")
    frozen = facts["frozen"]
    signed = (frozen["actor"], frozen["role"], frozen["meaning"])
    if signed not in {(one.name, one.role, one.meaning) for one in statement.approvals}:
        problems.append("whoever froze it is not among those who signed")
    return judged("agreement", problems, f"{ENVELOPE} and release.json agree")


def check_facts(facts: Facts) -> ReleaseCheck:
    """Return whether the parts of ``release.json`` agree with each other."""
    return judged("release.json", list(_fact_problems(facts)), "its parts agree")


def _fact_problems(facts: Facts) -> Iterator[str]:
    release, evaluations = facts["release"], facts["evaluations"]
    if release["name"] != f"{release['prompt']}-v{release['version']}":
        yield "the name is not that of the prompt and its version"
    if release["ref"] != f"{release['prompt']}@v{release['version']}":
        yield "the reference is not that of the prompt and its version"
    roles = {one["name"]: one["role"] for one in facts["cohorts"]}
    measured = [one["cohort"] for one in evaluations]
    if len(set(measured)) != len(measured) or len(roles) != len(facts["cohorts"]):
        yield "a cohort stands there twice"
    for one in evaluations:
        if roles.get(one["cohort"]) != one["role"]:
            yield f"an evaluation gives {one['cohort']!r} another role than its cohort"
        late = facts["protocol"]["registered"] > f"{one['created'][:19]}Z"
        if late and not one["registered_late"]:
            yield f"the protocol is younger than the run on {one['cohort']!r}, unsaid"
    if facts["development_only"] == ("holdout" in {one["role"] for one in evaluations}):
        yield "whether it rests on development data only is not what it says"
    engine = {key: value for key, value in facts["engine"].items() if key != "digest"}
    if digest_json(engine) != facts["engine"]["digest"]:
        yield "the digest of the engine is not that of its identity and parameters"
    yield from _opening_problems(facts)


def _opening_problems(facts: Facts) -> Iterator[str]:
    numbers = [one["number"] for one in facts["openings"]]
    if numbers != list(range(1, len(numbers) + 1)):
        yield "the openings of the holdout are not numbered from 1 without gaps"
    if any(one["number"] > one["budget"] for one in facts["openings"]):
        yield "the holdout was opened more often than its budget allows"
    if not facts["development_only"] and not numbers:
        yield "a holdout was evaluated and no opening of it is listed"


def check_prompt(
    files: Mapping[str, bytes], facts: Facts, *, vouched: bool
) -> tuple[ReleaseCheck, ReleaseCheck]:
    """Return whether the prompt shipped is the one named, and renders as shipped.

    Parameters
    ----------
    vouched
        Whether somebody trusted signed these files; the templates of a stranger are
        rendered apart, with limits. Another prompt than named is not rendered.
    """
    try:
        version = read_prompt(files)
    except DataError as error:
        return (
            ReleaseCheck("prompt", False, str(error)),
            ReleaseCheck("rendered", False, "not checked: the prompt cannot be read"),
        )
    problems = list(_prompt_problems(version, facts["release"]))
    prompt = judged("prompt", problems, f"digest {version.digest[:16]}, as named")
    if problems:
        unsure = "not checked: it is another prompt than release.json names"
        return prompt, ReleaseCheck("rendered", False, unsure)
    return prompt, _check_rendered(version, files, vouched=vouched)


def _prompt_problems(version: PromptVersion, release: Facts) -> Iterator[str]:
    for name, found in (
        ("digest", version.digest),
        ("prompt", version.name),
        ("version", version.number),
        ("parent", version.parent),
        ("author", version.author),
        ("time", version.time),
        ("why", version.why),
        ("plan", version.plan.value),
        ("labels", list(version.labels)),
    ):
        if release[name] != found:
            yield f"the {name} of the prompt is not that of release.json"
    # The parser's version may rise; which contract it is may not change.
    if release["contract"].partition("/")[0] != version.contract:
        yield "the contract of the prompt is not that of release.json"


def _check_rendered(
    version: PromptVersion, files: Mapping[str, bytes], *, vouched: bool
) -> ReleaseCheck:
    try:
        made = render_files(version) if vouched else render_apart(version)
    except DataError as error:
        return ReleaseCheck("rendered", False, str(error))
    shipped = {
        name: raw
        for name, raw in files.items()
        if name == SCHEMA or name.startswith("rendered/")
    }
    problems = [
        f"{name} is not what the prompt renders to"
        for name in sorted(set(made) | set(shipped))
        if made.get(name) != shipped.get(name)
    ]
    if problems:
        return judged("rendered", problems, "")
    return held("rendered", f"{len(made)} files are what the prompt renders to")
