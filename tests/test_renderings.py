"""Every document of the tests' made-up examples is what it was.

Other tests say what a document must hold; this one notices what none of them names. A
change that is wanted is written with ``python -m tests.test_renderings [EXAMPLE ...]``,
and is then read in the diff of ``golden/documents/``.
"""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

from loop import __version__
from loop.cli.main import app
from loop.core.records import ValueCode
from loop.documents.charts import CurvePoint, ShareBar, bars_svg, curve_svg
from loop.evaluate.compare import compare_inputs
from loop.evaluate.documents import render_csv, render_markdown
from loop.evaluate.evaluation import evaluate_inputs
from loop.evaluate.evaluation_json import comparison_data, evaluation_data
from loop.evaluate.matrix.documents import (
    matrix_data,
    render_matrix_csv,
    render_matrix_html,
    render_matrix_markdown,
)
from loop.evaluate.plan_text import (
    collect_lines,
    label_table,
    level_tables,
    never_lines,
    plan_data,
    plan_notes,
    render_plan_csv,
)
from loop.release.documents.documents import render_documents
from loop.score.documents.figures import figure_files
from loop.score.documents.score_files import render_files
from loop.score.experts.documents import (
    agreement_svg,
    meta_data,
    render_meta_html,
    render_meta_markdown,
)
from tests.documents.test_figures import every_figure
from tests.evaluate import test_plan_text as plans
from tests.evaluate.matrix_scenes import answering, matrix_of, run_of
from tests.evaluate.scenes import inputs, random_run
from tests.release.documents.example import full_facts, minimal_facts, sparse_facts
from tests.release.documents.judge_example import (
    APPROVALS,
    first_judge,
    full_judge,
)
from tests.release.small import typed
from tests.score.documents.score_scenes import document_of
from tests.score.experts import test_documents as experts

Documents = Mapping[str, str | bytes]
"""File names with their content."""

KEPT = Path(__file__).parent / "golden" / "documents"


def release() -> Documents:
    """Return what a release with everything is shown as."""
    return render_documents(typed(full_facts()))


def first_release() -> Documents:
    """Return what a release is shown as of which next to nothing is known."""
    return render_documents(typed(minimal_facts()))


def sparse_release() -> Documents:
    """Return what a release is shown as of which each part is small or not as usual."""
    made = render_documents(typed(sparse_facts()))
    return {name: made[name] for name in ("card.md", "change-record.md")}


def judge_release() -> Documents:
    """Return what a release of a judge with everything is shown as."""
    return render_documents(full_judge(), APPROVALS)


def first_judge_release() -> Documents:
    """Return what a judge is shown as that follows no other, and has no holdout."""
    return render_documents(first_judge())


def evaluation() -> Documents:
    """Return an evaluation beside an earlier one of a worse version."""
    before, standard = random_run(300, noise=2.0)
    after, _ = random_run(300, noise=0.5)
    old = inputs(before, standard)
    new = inputs(after, standard, run="later", prompt="extractor@v2")
    found = evaluate_inputs(new, resamples=50)
    comparison = compare_inputs(old, new, resamples=50)
    return {
        "evaluation.md": render_markdown(found, comparison),
        "evaluation.csv": render_csv(found),
        "evaluation.json": compact(evaluation_data(found)),
        "comparison.json": compact(comparison_data(comparison)),
    }


def matrix() -> Documents:
    """Return two engines and one that failed."""
    hedging = answering(run_of([299]), "edema", {9: ValueCode.UNCERTAIN})
    found = matrix_of(
        hedging,
        run_of([289, 240, 286], engine="vllm:small"),
        failed={"vllm:big": "no server answered"},
    )
    return {
        "matrix.md": render_matrix_markdown(found),
        "matrix.html": render_matrix_html(found),
        "matrix.csv": render_matrix_csv(found),
        "matrix.json": compact(matrix_data(found)),
    }


def plan() -> Documents:
    """Return the sizes for labels that are common, rare, poor and never seen."""
    labels = (plans.COMMON, plans.RARE, plans.POOR, plans.UNSEEN)
    made = plans.plan(*labels)
    tables = (*level_tables(made), label_table(made))
    lines = [" | ".join(row) for one in tables for row in (one.header, *one.rows)]
    lines += [*never_lines(made), *collect_lines(made), *plan_notes(made)]
    return {
        "plan.txt": "\n".join(lines),
        "plan.csv": render_plan_csv(made),
        "plan.json": compact(plan_data(made)),
    }


def score() -> Documents:
    """Return two systems."""
    found = render_files(document_of("template", "drops sentences"))
    data = json.loads(found["scores.json"])
    pages = {name: found[name] for name in ("score.md", "score.html")}
    return {**pages, "scores.json": compact(data)}


def meta() -> Documents:
    """Return metrics beside three raters."""
    found = experts.make()
    return {
        "meta.md": render_meta_markdown(found),
        "meta.html": render_meta_html(found),
        "meta.json": compact(meta_data(found)),
    }


def figures() -> Documents:
    """Return what is drawn, element by element; of a history other tests say it."""
    curve = [
        CurvePoint(1, 0.25, 0.125, 0.5, "a"),
        CurvePoint(2, 0.5, None, None, "b"),
        CurvePoint(4, 0.75, 0.5, 0.875, "c"),
    ]
    bars = [ShareBar("one", 0.5, "half"), ShareBar("another", 0.25, "less")]
    _, _, readers = every_figure()
    drawn = {
        "readers": readers,
        "curve": curve_svg("T", curve, ("from", "to")),
        "bars": bars_svg("T", bars, "cases"),
        "agreement": agreement_svg(experts.make().result),
        **figure_files(document_of("template", "drops sentences")),
    }
    # Of the three grids of labels one is enough.
    left_out = {"missed_by_label.svg", "invented_by_label.svg"}
    kept = {name: one for name, one in drawn.items() if name not in left_out}
    return {
        f"{name.partition('.')[0]}.txt": re.sub(r">\n?", ">\n", one)
        for name, one in kept.items()
    }


def commands() -> Documents:
    """Return what each verb of the command line takes, with bounds and defaults."""
    told = ("min", "max", "default", "required", "is_flag", "multiple", "hide_input")
    lines = []
    for name, verb in _verbs(typer.main.get_command(app)):
        for one in verb.params:
            found = {key: getattr(one, key, None) for key in told}
            kept = [
                f"{key}={value}"
                for key, value in found.items()
                if value is not None and value is not False
            ]
            names = "/".join((*one.opts, *one.secondary_opts))
            lines.append(" ".join([*name, names, *kept]))
    return {"options.txt": "\n".join(lines)}


def _verbs(command: Any, name: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Yield the words of each verb with the verb."""
    for word, verb in getattr(command, "commands", {}).items():
        yield from _verbs(verb, (*name, word))
    yield name, command


EXAMPLES: tuple[Callable[[], Documents], ...] = (
    release,
    first_release,
    sparse_release,
    judge_release,
    first_judge_release,
    evaluation,
    matrix,
    plan,
    score,
    meta,
    figures,
    commands,
)


def compact(data: object) -> str:
    """Return JSON with a line for each object."""
    return json.dumps(data, separators=(",", ":")).replace("{", "\n{")


def kept_form(name: str, text: str) -> str:
    """Return a document as it is kept: numbers and digests short, no version.

    Of a page or figure that is what it tells: its text and titles, one a line.
    """
    if name.endswith((".html", ".svg")):
        text = re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
        told = re.findall(r' (?:title|aria-label)="([^"]+)"|>([^<]+)', text)
        lines = (" ".join((one or other).split()) for one, other in told)
        text = "\n".join(filter(None, lines))
    text = re.sub(r"\d+\.\d{5,}(e-\d+)?", lambda one: f"{float(one[0]):.4g}", text)
    text = re.sub(r"(\w)\1{10,}|([0-9a-f]{8})[0-9a-f]{56}", r"\1\2…", text)
    return text.replace(__version__, "VERSION").replace("\r\n", "\n")


def rendered(example: Callable[[], Documents]) -> dict[Path, str]:
    """Return where each document of an example is kept, and what it is now."""
    found = {}
    for name, made in example().items():
        text = made.decode() if isinstance(made, bytes) else made
        found[KEPT / example.__name__ / name] = kept_form(name, text)
    return found


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_shown_as_it_was(example):
    """A changed number, order or word that no other test names is seen here."""
    now = rendered(example)
    folder = KEPT / example.__name__
    assert now == {path: path.read_text("utf-8") for path in folder.iterdir()}


if __name__ == "__main__":
    for one in EXAMPLES:
        if len(sys.argv) == 1 or one.__name__ in sys.argv:
            shutil.rmtree(KEPT / one.__name__, ignore_errors=True)
            for path, text in rendered(one).items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
