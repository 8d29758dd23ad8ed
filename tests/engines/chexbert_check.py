"""Ask CheXbert with random weights in many ways, and print what came out.

Arguments: the paths to import from, as JSON; a folder for the weights.
"""

import json
import pickle
import random
import sys
from pathlib import Path

sys.path.extend(json.loads(sys.argv[1]))

import torch
from transformers import BertConfig, BertModel, BertTokenizer
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import EngineError
from loop.core.records import Item, Prompt, PromptFrame, PromptTask
from loop.engines.base import Settings
from loop.engines.chexbert import HEADS, LONGEST
from loop.prompts.outputs.base import get_contract
from loop.run.asking import load_engine, opened

ORDER = (
    "Enlarged Cardiomediastinum,Cardiomegaly,Lung Opacity,Lung Lesion,Edema,"
    "Consolidation,Pneumonia,Atelectasis,Pneumothorax,Pleural Effusion,Pleural Other,"
    "Fracture,Support Devices,No Finding"
)
"""As the authors publish it."""

WORDS = [
    "the",
    "heart",
    "is",
    "enlarged",
    "no",
    "pleural",
    "effusion",
    "pneumothorax",
    "or",
    "pneumonia",
    "small",
    "left",
    "basal",
    "opacity",
    "may",
    "be",
    "atelectasis",
    "mild",
    "edema",
    "unchanged",
    "lines",
    "and",
    "tubes",
    ".",
]
CONFIG = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "initializer_range": 0.4,
}


class Plain(torch.nn.Module):
    """The architecture as it is published, written again and nothing shared."""

    def __init__(self, config):
        super().__init__()
        self.bert = BertModel(config)
        self.dropout = torch.nn.Dropout(0.1)
        self.linear_heads = torch.nn.ModuleList(
            [torch.nn.Linear(config.hidden_size, 4) for _ in range(13)]
        )
        self.linear_heads.append(torch.nn.Linear(config.hidden_size, 2))

    def forward(self, ids, mask):
        """Return the logits of each head."""
        hidden = self.dropout(self.bert(ids, attention_mask=mask)[0][:, 0, :])
        return [head(hidden) for head in self.linear_heads]


def write_words(folder):
    """Write a vocabulary of some words and all letters."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(WORDS)]
    # Python takes some characters for the end of a line that are words here.
    pieces += ["\u2028", "\x85"]
    pieces += [one for one in letters if one not in pieces]
    pieces += [f"##{letter}" for letter in letters]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    return len(pieces)


def write_weights(folder, *, prefix="module.", seed=7):
    """Write random weights as the authors' training saves them; return the model."""
    folder.mkdir(parents=True)
    torch.manual_seed(seed)
    config = BertConfig(vocab_size=write_words(folder), **CONFIG)
    model = Plain(config).eval()
    ids = torch.randint(5, config.vocab_size, (50, 30))
    with torch.no_grad():
        for head, said in zip(
            model.linear_heads, model(ids, torch.ones_like(ids)), strict=True
        ):
            # Else one class wins whatever is read.
            head.bias -= said.mean(dim=0)
    (folder / "config.json").write_text(json.dumps(CONFIG), "utf-8")
    weights = {f"{prefix}{name}": one for name, one in model.state_dict().items()}
    weights[f"{prefix}bert.embeddings.position_ids"] = torch.arange(512)[None]
    torch.save({"epoch": 3, "model_state_dict": weights}, folder / "chexbert.pth")
    return model


def make_texts():
    """Return texts of up to 700 words, with breaks, capitals and unknown words."""
    rng = random.Random(3)
    sizes = [*(rng.randint(1, 60) for _ in range(57)), 509, 510, 700]
    words = [*WORDS, "zebra", "Cardiac", "\n", "3.5"]
    return [" ".join(rng.choices(words, k=size)) for size in sizes]


def ask(engine, texts, contract="label_values", fields=HEADS, language="en"):
    """Return what an engine answers about texts, as its contract reads it."""
    reader = get_contract(contract)
    frame = PromptFrame(
        call="joint", messages=(), fields=tuple(fields), schema=reader.schema(fields)
    )
    items = [
        Item(id=f"t{place}", variables={"text": text}, language=language)
        for place, text in enumerate(texts)
    ]
    told = dict(
        engine.complete(Prompt(frame=frame, tail="", item=item) for item in items)
    )
    return [
        told[place].error
        or {
            name: one.value
            for name, one in reader.read(told[place].text, fields, item).fields.items()
        }
        for place, item in enumerate(items)
    ]


def repairs(engine, texts):
    """Return what is noted about each text."""
    reader = get_contract("label_values")
    frame = PromptFrame(
        call="joint", messages=(), fields=HEADS, schema=reader.schema(HEADS)
    )
    items = [
        Item(id=name, variables={"text": text}, language="en")
        for name, text in texts.items()
    ]
    prompts = (Prompt(frame=frame, tail="", item=item) for item in items)
    told = dict(engine.complete(prompts))
    return [
        reader.read(told[place].text, HEADS, item).repairs
        for place, item in enumerate(items)
    ]


def plainly(model, folder, texts):
    """Return what a plain forward pass says of each text, one at a time."""
    tokenizer = BertTokenizer(str(folder / "vocab.txt"), do_lower_case=True)
    words = ("absent", "present", "absent", "uncertain")
    names = [one.lower().replace(" ", "_") for one in ORDER.split(",")]
    found = []
    for text in texts:
        ids = tokenizer.encode(" ".join(text.split()))
        ids = ids if len(ids) <= 512 else [*ids[:511], tokenizer.sep_token_id]
        with torch.no_grad():
            heads = model(torch.tensor([ids]), torch.ones(1, len(ids)).long())
        found.append(
            {
                name: words[int(head[0].argmax())]
                for name, head in zip(names, heads, strict=True)
            }
        )
    return found


class Payload:
    """What runs a command when it is unpickled."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return Path.write_text, (self.target, "it ran")


def refusal(name, settings=None):
    """Return the message of weights that cannot be used."""
    try:
        with opened(load_engine(name, settings or make_settings())):
            return ""
    except EngineError as error:
        return str(error)


def make_settings(told=None):
    """Return settings; remarks go into a list."""
    tell = told.append if told is not None else lambda remark: None
    return Settings(labels=Path(), tell=tell)


def refusals(folder):
    """Return what is said of each kind of folder that cannot be used."""
    weights = folder / "weights"
    vocabulary = (weights / "vocab.txt").read_text("utf-8")
    found = {"missing": refusal(f"chexbert:{folder / 'nothing'}")}
    ran = folder / "ran.txt"
    for kind in ("code", "pickle", "torn", "shape", "two", "words", "config", "empty"):
        place = folder / kind
        write_weights(place)
        path = place / "chexbert.pth"
        if kind == "code":
            torch.save({"model_state_dict": Payload(ran)}, path)
        elif kind == "pickle":
            path.write_bytes(pickle.dumps(Payload(ran)))
        elif kind == "torn":
            path.write_bytes(path.read_bytes()[:5_000])
        elif kind == "shape":
            (place / "config.json").write_text(
                json.dumps(CONFIG | {"hidden_size": 64}), "utf-8"
            )
        elif kind == "two":
            (place / "other.pth").write_bytes(path.read_bytes())
        elif kind == "words":
            (place / "vocab.txt").write_text("a\nb\n", "utf-8")
        elif kind == "config":
            (place / "config.json").write_text("[]", "utf-8")
        elif kind == "empty":
            torch.save([1, 2], path)
        found[kind] = refusal(f"chexbert:{place}").replace(str(folder), "DIR")
    assert (weights / "vocab.txt").read_text("utf-8") == vocabulary
    return found, ran.exists()


def command(*arguments, expect=0):
    """Run the command line, and return what it says."""
    told = CliRunner().invoke(app, [*map(str, arguments)])
    assert told.exit_code == expect, (arguments, told.output, told.exception)
    return told.stdout


def in_a_workspace(folder, weights):
    """Run it beside `rules` on the demo, and return what the matrix says."""
    place = folder / "demo"
    command("demo", place)
    engine = f"chexbert:{weights}"
    asked = ("--workspace", place)
    matrix = command(
        *("matrix", "extractor", "--cohort", "demo_dev", "-e", "rules", "-e", engine),
        *("--json", *asked),
    )
    run = command(
        "run", "extractor", "--cohort", "demo_dev", "-e", engine, "--json", *asked
    )
    evaluated = command(
        "evaluate", json.loads(run)["run_id"], "--json", *asked, expect=100
    )
    replayed = CliRunner().invoke(
        app,
        [
            *("run", "extractor", "--cohort", "demo_dev", *map(str, asked)),
            *("-e", f"replay:{json.loads(run)['run_id']}"),
        ],
    )
    for name in ("reference", "system"):
        lines = ["id,text", "a,no pleural effusion", "b,pneumonia or edema"]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", "utf-8")
    scored = command(
        *("score", "--reference", folder / "reference.csv", "--json", *asked),
        *("--candidate", f"one={folder / 'system.csv'}", "-e", engine),
        *("--extractor", "extractor"),
    )
    source = folder / "reports.csv"
    source.write_text("id,text\na,no pleural effusion\nb,pneumonia\n", "utf-8")
    annotated = command(
        *("annotate", source, "--prompt", "extractor@v11", "-e", engine),
        *("--out", folder / "out", "--json", *asked),
    )
    told = tuple(map(json.loads, (matrix, evaluated, annotated, scored)))
    return (*told, str(replayed.exception))


def main(folder):
    """Print everything as one JSON object."""
    weights, texts, told = folder / "weights", make_texts(), []
    model = write_weights(weights)
    with opened(load_engine(f"chexbert:{weights}", make_settings(told))) as engine:
        ours = ask(engine, texts)
        one_by_one = [ask(engine, [text])[0] for text in texts[:5]]
        binary = ask(engine, texts, "binary")
        foreign = ask(engine, texts[:1], language="de")
        cut = [*engine.account()["cut"]]
        noted = repairs(engine, {"t0": texts[0], "t59": texts[-1]})
        identity = dict(engine.identity())
        try:
            engine.for_task(PromptTask.JUDGE)
            judges = ""
        except EngineError as error:
            judges = str(error)
    bare = folder / "bare"
    write_weights(bare, prefix="")
    with opened(load_engine(f"chexbert:{bare}", make_settings())) as engine:
        unprefixed = ask(engine, texts[:20])
        other = engine.identity()["weights"]
    said, ran = refusals(folder)
    matrix, evaluated, annotated, scored, replayed = in_a_workspace(folder, weights)
    print(
        json.dumps(
            {
                "ours": ours,
                "plain": plainly(model, weights, texts),
                "one_by_one": one_by_one,
                "binary": binary,
                "foreign": foreign,
                "cut": cut,
                "noted": noted,
                "longest": LONGEST,
                "told": told,
                "identity": identity,
                "judges": judges,
                "unprefixed": unprefixed,
                "other": other,
                "refusals": said,
                "ran": ran,
                "matrix": matrix,
                "evaluated": evaluated,
                "annotated": annotated,
                "scored": scored,
                "replayed": replayed,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[2]))
