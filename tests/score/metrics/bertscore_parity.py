"""Compare our BERTScore with the authors' own package, and print what came out.

Arguments: the paths to import from, as JSON; a folder for the encoders.
"""

import json
import random
import sys
from pathlib import Path

sys.path.extend(json.loads(sys.argv[1]))

from bert_score import BERTScorer

from loop.core.errors import DataError
from loop.score.metrics.base import MetricOptions
from loop.score.metrics.bertscore import BERTSCORE, bertscore, load_encoder
from tests.score.metrics.scenes import CANDIDATE, REFERENCE, make_side
from tests.score.metrics.tiny_bert import LAYERS, WORDS, write_encoder


def make_texts(seed, longest):
    """Return texts of up to so many words, known ones and strange ones."""
    rng = random.Random(seed)
    words = [*WORDS.split(), "zebra", "Lungs", "3.5"]
    return [" ".join(rng.choices(words, k=rng.randint(1, longest))) for _ in range(60)]


def compare(folder):
    """Return the largest difference from the authors' numbers, over all layers."""
    references, candidates = make_texts(1, 60), make_texts(2, 90)
    apart = []
    for layer in range(1, LAYERS + 1):
        known = BERTScorer(
            model_type=str(folder), num_layers=layer, device="cpu", nthreads=0
        )
        ours = bertscore(load_encoder(folder, layer), references, candidates)
        for column, theirs in zip(
            ours.T[:3], known.score(candidates, references), strict=True
        ):
            apart.append(abs(column - theirs.numpy()).max())
    return float(max(apart))


def refusal(folder, layer=None):
    """Return the message of an encoder that cannot be used."""
    try:
        load_encoder(folder, layer)
    except DataError as error:
        return str(error).replace(str(folder), "DIR")


def score(folder, candidates):
    """Return what the registry's entry says of some candidates."""
    side = make_side([REFERENCE] * len(candidates), candidates)
    return BERTSCORE.score(side, MetricOptions(bertscore_model=folder))


def main(folder):
    """Print everything as one JSON object."""
    limited, free, empty = (folder / name for name in ("limited", "free", "empty"))
    write_encoder(limited)
    write_encoder(free, longest=None)
    empty.mkdir()
    told = score(limited, [REFERENCE, "", "...", CANDIDATE])
    alone = score(limited, [CANDIDATE])
    unnamed = score(None, [CANDIDATE])
    long = score(free, ["no effusion . " * 100_000])
    found = {
        "apart": compare(limited),
        "per_case": told.per_case.tolist(),
        "value": told.value,
        "signature": told.signature,
        "notes": told.notes,
        "alone": alone.per_case.tolist(),
        "long": [long.per_case.tolist(), long.notes],
        "unnamed": unnamed.reason,
        "empty": refusal(empty),
        "layer": refusal(limited, LAYERS + 1),
        "unavailable": score(empty, [CANDIDATE]).reason.replace(str(empty), "DIR"),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[2]))
