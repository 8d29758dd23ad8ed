"""The published tables as files: what an auditor of an article would be handed."""

import csv
import io
import json
from pathlib import Path

from loop.core.yaml_files import dump_yaml

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "ran_score_tables.json").read_text("utf-8")
)
MODELS = ("Qwen3-14B", "Qwen-Plus", "GPT-3.5-turbo", "GPT-4o-mini", "DeepSeek-R1")
LABELS = tuple(name for name in GOLDEN["table4"] if name != "Average")

COLUMNS = {
    "Accuracy pre": "acc_pre", "Accuracy post": "acc_post",
    "Precision pre": "prec_pre", "Precision post": "prec_post",
    "Recall pre": "rec_pre", "Recall post": "rec_post",
    "F1 pre": "f1_pre", "F1 post": "f1_post", "Delta F1": "dF1_printed",
    "CheXbert F1": "chexbert_f1", "Delta to CheXbert": "dChexbert_printed",
}  # fmt: skip

TABLE_5 = {
    "Micro accuracy": "micro_acc", "Micro precision": "micro_recall",
    "Micro recall": "micro_precision", "Micro F1": "micro_f1",
    "Macro precision": "macro_recall_likely",
    "Macro recall": "macro_precision_likely", "Macro F1": "ran_score_macro_f1",
}  # fmt: skip
"""Printed header to what the transcription calls it: the article swaps two."""

GAINS = (
    ("Lung Lesion", "CheXbert F1", "66.4%"),
    ("Pleural Other", "CheXbert F1", "53.4%"),
    ("Trachea and Bronchus", "F1 pre", "79.8%"),
    ("Mediastinal Other", "F1 pre", "57.6%"),
    ("Pleural Other", "F1 pre", "62.5%"),
)
"""Row, column of departure, and points gained, as the text has them."""

CLAIMS = [
    {"kind": "highest", "table": "Table 2", "column": "Qwen3-14B"},
    {"kind": "highest", "table": "Table 3", "column": "Qwen3-14B"},
    {"kind": "count", "table": "Table 2", "column": "Qwen3-14B", "at_least": 0.95,
     "count": 17, "of": 21},
    {"kind": "count", "table": "Table 4", "column": "Accuracy post",
     "at_least": 0.95, "count": 21},
    {"kind": "significant", "table": "Table 4"},
    {"kind": "gain", "table": "Table 2", "row": "Cardiomegaly",
     "start": "GPT-3.5-turbo", "to": "Qwen3-14B", "gain": "50.3%"},
    *({"kind": "gain", "table": "Table 4", "row": row, "start": start,
       "to": "F1 post", "gain": gain} for row, start, gain in GAINS),
    {"kind": "order", "table": "Table 5", "column": "Micro F1",
     "rows": ["R2GenGPT", "MedKit"]},
]  # fmt: skip

NOTES = {
    "tables": {
        "Table 2": {"n": 300},
        "Table 3": {"n": 150},
        "Table 4": {"n": 300, "comparable": list(LABELS[:14])},
    },
    "claims": CLAIMS,
}


def number(value):
    """Return a number as printed: three decimals, a dash where there is none."""
    return "-" if value is None else f"{value:.3f}"


def rows_of(table):
    """Return header and rows of one published table."""
    if table == 1:
        return [
            [
                "Characteristic", "MIMIC-CXR (n = 6,300)", "ChestX-CN (n = 150)",
                "Total (n = 6,450)",
            ],
            ["Male", "3,528 (56.0%)", "74 (49.3%)", "3,602 (55.8%)"],
        ]  # fmt: skip
    if table in (2, 3):
        return [["Label", *MODELS]] + [
            [label, *(accuracy(row[model]) for model in MODELS)]
            for label, row in GOLDEN[f"table{table}"].items()
        ]
    if table == 4:
        return [["Label", *COLUMNS]] + [
            [label, *(number(row[name]) for name in COLUMNS.values())]
            for label, row in GOLDEN["table4"].items()
        ]
    return [["Model", *TABLE_5]] + [
        [model, *(number(row[name]) for name in TABLE_5.values())]
        for model, row in GOLDEN["table5"].items()
    ]


def accuracy(cell):
    """Return a cell of Table 2 or 3."""
    low, high = cell["ci_printed"]
    return f"{cell['acc']:.3f} ({low:.3f}-{high:.3f})"


CAPTIONS = {
    1: "Table 1. Cohorts",
    2: "Table 2. Accuracy (95% CI) of five models",
    3: "Table 3. Accuracy (95% CI) on the second cohort",
    4: "Table 4. Before and after optimisation",
    5: "Table 5. Generation models",
}


def as_csv(table):
    """Return a published table as CSV with its caption in the first line."""
    stream = io.StringIO()
    csv.writer(stream).writerows([[CAPTIONS[table]], *rows_of(table)])
    return stream.getvalue()


def as_markdown(table):
    """Return a published table as Markdown, with an en dash in intervals."""
    header, *rows = rows_of(table)
    lines = [header, ["---"] * len(header), *rows]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    body = body.replace("-0.", "\N{EN DASH}0.")
    return f"**{CAPTIONS[table]}**\n\n{body}\n"


def write_article(folder, *, markdown=False):
    """Write the five tables and their notes; return the files of tables."""
    (folder / "article.notes.yaml").write_text(dump_yaml(NOTES), "utf-8")
    if markdown:
        path = folder / "article.md"
        path.write_text("\n".join(map(as_markdown, CAPTIONS)), "utf-8")
        return [path]
    paths = []
    for table in CAPTIONS:
        paths.append(folder / f"t{table}.csv")
        paths[-1].write_text(as_csv(table), "utf-8")
    return paths
