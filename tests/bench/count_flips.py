"""Every byte of a small release replaced by each of the 255 others, and who notices.

``python -m tests.bench.count_flips`` takes minutes, ``--step 7`` each seventh byte.
The envelope is read and its signatures checked anew for each change; for the other
files the signatures are checked once, and the digest of the changed file each time.
"""

import argparse
import tempfile
from pathlib import Path

from loop.release.folder import read_contents
from loop.release.statement import ENVELOPE
from loop.release.verify import check_files, check_signatures, read_signed
from tests.release.small import make_small


def changes(raw, step):
    """Yield `raw` with one byte replaced, for each byte and each other value."""
    for place in range(0, len(raw), step):
        changed = bytearray(raw)
        for value in range(256):
            if value != raw[place]:
                changed[place] = value
                yield bytes(changed)


def envelope_holds(files, small):
    """Whether the envelope is one, and everybody's signature is over it."""
    signed, findings = read_signed(files)
    findings = [*findings, check_files(signed.statement, files)]
    if not all(one.holds for one in findings):
        return False
    return all(one.holds for one in check_signatures(signed, small.trusted))


def main():
    """Print how many changes were made to each file, and how many nobody noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", type=int, default=1, help="take each so many bytes")
    step = parser.parse_args().step
    made = unnoticed = 0
    with tempfile.TemporaryDirectory() as folder:
        small = make_small(Path(folder))
        files = dict(read_contents(small.folder).files)
        statement = read_signed(files)[0].statement
        assert envelope_holds(files, small)
        for name, raw in files.items():
            tried = missed = 0
            for changed in changes(raw, step):
                spoilt = {**files, name: changed}
                if name == ENVELOPE:
                    missed += envelope_holds(spoilt, small)
                else:
                    missed += check_files(statement, spoilt).holds
                tried += 1
            size = f"{len(raw):,} bytes"
            print(f"{name:<22}{size:>13}{tried:>12,} changes, {missed} not noticed")
            made, unnoticed = made + tried, unnoticed + missed
    print(f"{made:,} changes, {made - unnoticed:,} noticed, {unnoticed} not")


if __name__ == "__main__":
    main()
