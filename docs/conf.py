"""How the manual is built; what it takes from the code is written here, at build time.

``sphinx-build -W --keep-going docs docs/_build``. Nothing is fetched, neither for the
build nor by the pages: formulas become MathML, and the theme brings its own fonts.
"""

import ast
import inspect
import sys
from itertools import pairwise
from pathlib import Path

import click
import typer
from docutils.utils.math.latex2mathml import tex2mathml
from pydantic_core import PydanticUndefined

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from loop import __version__  # noqa: E402
from loop.cli.main import SECTIONS, app  # noqa: E402
from loop.core import config as settings  # noqa: E402
from loop.evaluate.protocol import F1Floors, JudgingRules, Margins, Protocol  # noqa: E402
from loop.labels.importing.source import ROLES  # noqa: E402

project = "ranloop"
author = "ranloop maintainers"
copyright = "ranloop maintainers, Apache-2.0"
version = release = "" if __version__.startswith("0+") else __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
myst_enable_extensions = ["dollarmath", "deflist", "attrs_inline"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
exclude_patterns = [
    "_build",
    *(f"reference/generated/{name}.md" for name in ("settings", "protocol", "columns")),
]
suppress_warnings = ["config.cache"]
language = "en_GB"
highlight_language = "text"

numpydoc_show_class_members = False
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"

html_theme = "pydata_sphinx_theme"
html_title = "ranloop"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_theme_options = {
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

GENERATED = Path(__file__).parent / "reference" / "generated"
"""Pages that are written before each build, and kept out of git."""


def help_of(name, verb):
    """Yield a heading and the help of a command, then those of its commands."""
    context = click.Context(verb, info_name=f"ranloop {name}", max_content_width=80)
    context.terminal_width = 80
    depth = "#" * (name.count(" ") + 2)
    yield f"{depth} `ranloop {name}`\n\n```text\n{verb.get_help(context)}\n```\n"
    for word, inner in getattr(verb, "commands", {}).items():
        yield from help_of(f"{name} {word}", inner)


def command_pages():
    """Return a page for each section of ``ranloop --help``."""
    verbs = typer.main.get_command(app).commands
    return {
        title.lower().replace(" ", "_"): "\n".join(
            [
                f"# {title}\n",
                *(part for one in names for part in help_of(one, verbs[one])),
            ]
        )
        for title, names in SECTIONS.items()
    }


def fields_of(model):
    """Return a table of a settings model: field, type, default, and what it says."""
    lines = ["| field | is | default | meaning |", "|---|---|---|---|"]
    told, schema = attribute_docs(model), model.model_json_schema()
    kinds, known = schema["properties"], schema.get("$defs", {})
    for name, field in model.model_fields.items():
        shown = f"`{getattr(field.default, 'value', field.default)!r}`"
        if field.default is PydanticUndefined:
            shown = "required"
        elif hasattr(field.default, "model_fields"):
            shown = "see below"
        kind = kind_of(kinds[name], known)
        lines.append(f"| `{name}` | {kind} | {shown} | {told.get(name, '')} |")
    return "\n".join(lines)


def kind_of(schema, known):
    """Return in words what a JSON schema allows; `known` are those it refers to."""
    if "anyOf" in schema:
        return " or ".join(kind_of(one, known) for one in schema["anyOf"])
    schema = known.get(schema.get("$ref", "").rpartition("/")[2], schema)
    values = schema.get("enum", [schema["const"]] if "const" in schema else ())
    if values:
        return " or ".join(f"`{one}`" for one in values)
    bounds = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
    }
    words = {"array": "list", "object": "table", "null": "none", "boolean": "yes or no"}
    kind = schema.get("type", "table")
    limits = [f"{said} {schema[key]}" for key, said in bounds.items() if key in schema]
    return " ".join([words.get(kind, kind), ", ".join(limits)]).strip()


def attribute_docs(model):
    """Return the docstrings below the fields of a class and of its bases."""
    found = {}
    for one in reversed(model.__mro__):
        if not one.__module__.startswith("loop."):
            continue
        body = ast.parse(inspect.getsource(one)).body[0].body
        for field, after in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
                text = " ".join(ast.literal_eval(after.value).split())
                found[field.target.id] = text.replace("``", "`")
    return found


def tables_of(parts, depth):
    """Return a heading and a table for each settings model."""
    lines = []
    for title, model in parts.items():
        about = inspect.getdoc(model).splitlines()[0].replace("``", "`")
        lines.append(f"{'#' * depth} {title}\n\n{about}\n\n{fields_of(model)}\n")
    return "\n".join(lines)


def columns():
    """Return a table of the names by which a column of cases is found."""
    lines = ["| column | goes by any of these names |", "|---|---|"]
    lines += [f"| {one} | {', '.join(names)} |" for one, names in ROLES.items()]
    return "\n".join(lines)


def write_generated(_app):
    """Write what is taken from the code, leaving unchanged pages as they are."""
    pages = command_pages() | {
        "settings": tables_of(
            {
                "The file": settings.Config,
                "`engines.openai`": settings.ServingSettings,
                "`engines.vllm`": settings.VllmSettings,
                "A model under `prices`": settings.ModelPrice,
            },
            depth=2,
        ),
        "protocol": tables_of(
            {
                "The fields": Protocol,
                "`margins`": Margins,
                "`judging`": JudgingRules,
                "`f1_floors` of `judging`": F1Floors,
            },
            depth=3,
        ),
        "columns": columns(),
    }
    GENERATED.mkdir(exist_ok=True)
    for name, text in pages.items():
        path = GENERATED / f"{name}.md"
        if not path.is_file() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def show_formula(block):
    """Return how a formula is written into a page: as MathML, which browsers draw."""

    def show(self, node):
        from docutils import nodes

        shown = tex2mathml(node.astext(), as_block=block)
        self.body.append(f'<div class="math">{shown}</div>' if block else shown)
        raise nodes.SkipNode

    return show


def setup(app):
    """Add what is written at build time, and formulas that need no script."""
    app.connect("builder-inited", write_generated, priority=100)
    app.add_html_math_renderer(
        "mathml", (show_formula(False), None), (show_formula(True), None)
    )
