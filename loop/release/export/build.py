"""The files of an export, made from nothing but the version and how it is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from loop.core.errors import DataError
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import PromptPlan, plan_prompts
from loop.prompts.version import CallPlan, PromptVersion
from loop.release.export.programs import CODE, program_code, save_program
from loop.release.export.records import ExportOrigin, ExportTarget, RequestParameters
from loop.release.export.requests import RequestForm
from loop.release.export.templates import call_files

_SAFE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class BuiltExport(NamedTuple):
    """What every export of one version to one target has."""

    files: Mapping[str, bytes]
    form: RequestForm | None
    """Writes requests about cases; None for a target that takes none."""


def build(
    origin: ExportOrigin, target: ExportTarget, *, with_cases: bool
) -> BuiltExport:
    """Return the files of an export but its manifest, its prompt and its requests.

    Parameters
    ----------
    with_cases
        For batches: requests about cases are written, so no template of one is.

    Raises
    ------
    DataError
        The version cannot be rendered or has no place in this form.
    """
    version, asking = origin.version, origin.asking
    contract = get_contract(version.contract)
    plan = plan_prompts(version, contract.schema)
    _check_labels(version)
    if target.is_batch:
        form = _form(origin, plan, target)
        return BuiltExport({} if with_cases else _request_templates(form), form)
    if target is ExportTarget.JINJA:
        return BuiltExport(_templates(version, plan), None)
    parser = f"{contract.name}/{contract.version}"
    return BuiltExport(_programs(version, plan, parser, asking), None)


def prefix(version: PromptVersion, call: str) -> str:
    """Return what the names of the files of a call begin with."""
    return "" if version.plan is CallPlan.JOINT else f"{call}."


def _check_labels(version: PromptVersion) -> None:
    """Refuse labels that cannot be part of a file's name."""
    for label in version.labels:
        if _SAFE.fullmatch(label) is None:
            raise DataError(
                f"{version.ref}, guides.yaml: label {label[:70]!r} cannot be part of a "
                "file's name. Use lower-case letters, digits, '_' and '-'."
            )


def _form(origin: ExportOrigin, plan: PromptPlan, target: ExportTarget) -> RequestForm:
    if not origin.asking.model:
        released = f"{origin.release} was released with {origin.engine}, and "
        raise DataError(
            f"{released if origin.release else ''}every request of a batch names the "
            "model to ask. Name it with --model."
        )
    return RequestForm(origin.version, plan, origin.asking, target)


def _request_templates(form: RequestForm) -> dict[str, bytes]:
    return {
        f"{prefix(form.version, call.frame.call)}request.jsonl.jinja": form.template(
            number
        ).encode("utf-8")
        for number, call in enumerate(form.calls)
    }


def _templates(version: PromptVersion, plan: PromptPlan) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for call in plan.calls:
        files |= call_files(call, prefix(version, call.frame.call))
    return files


def _programs(
    version: PromptVersion, plan: PromptPlan, parser: str, asking: RequestParameters
) -> dict[str, bytes]:
    files = {CODE: program_code()}
    for call in plan.calls:
        before = prefix(version, call.frame.call)
        schema = call_files(call, before)[f"{before}schema.json"]
        files[f"{before}schema.json"] = schema
        files[f"{before}program.json"] = save_program(version, parser, call, asking)
    return files
