"""Which encoding a file is in: UTF-8, GBK, or said to be neither or both."""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from loop.core.errors import DataError
from loop.core.safe_text import quoted

if TYPE_CHECKING:
    from hashlib import _Hash

UTF8 = "utf-8-sig"
GBK = "gb18030"
"""The superset of GBK and GB 2312 that current software writes."""

SAVE_AS_UTF8 = (
    "Save it as UTF-8; or, for `annotate`, `cohort import` and `score`, name its "
    "encoding, for example with --encoding cp1252."
)
"""What to do with a file whose encoding is not known."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Three-byte UTF-8 sequences, in which every Chinese character is written; as GBK they
# would be rare characters in odd places. Two-byte ones occur in GBK by accident.
_LONG = re.compile(rb"[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
# Lead byte of the last character of GB 2312's first, everyday level. A Western file
# read as GBK turns accented letters into rare ideographs; Chinese text is mostly common
# ones.
_LAST_COMMON = 0xD7
_COMMON_SHARE = 0.6
_LINES = 1_000
"""Lines looked at together: most are plain ASCII."""


class FileEncoding(NamedTuple):
    """How a file is written, and what it was."""

    name: str
    """Codec name."""

    sha256: str
    """Digest of the bytes."""


def check_encoding(name: str) -> str:
    """Return `name` if Python knows it as an encoding of texts, or ``"auto"``.

    Raises
    ------
    DataError
        It does not.
    """
    try:
        if name != "auto":
            # A codec of bytes, such as base64, is found and then refuses a text.
            "a".encode(name)
        return name if name == "auto" else codecs.lookup(name).name
    except (LookupError, ValueError) as error:
        raise DataError(
            f"unknown encoding {quoted(name)}. Use auto, utf-8, gb18030 or another "
            "name that Python knows."
        ) from error


def find_encoding(path: Path, encoding: str = "auto") -> FileEncoding:
    """Return the encoding of a text file, read line by line.

    UTF-8 (with or without mark) if every line is; else GBK if every line reads as
    Chinese. An `encoding` that is named is believed.

    Raises
    ------
    DataError
        The file mixes encodings, is binary, UTF-16 or in another encoding; names the
        line.
    """
    try:
        with path.open("rb") as stream:
            if encoding == "auto":
                return _scan(stream, path)
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return FileEncoding(encoding, digest)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error


def decode_text(data: bytes, path: Path, encoding: str = "auto") -> str:
    """Return the text of one small file.

    Raises
    ------
    DataError
        As `find_encoding`, or `data` is not in the `encoding` named.
    """
    if encoding == "auto":
        encoding = _scan(data.splitlines(keepends=True), path).name
    try:
        return data.decode(encoding)
    except UnicodeError as error:
        # UTF-16 without its mark has no place where it went wrong.
        at = getattr(error, "start", 0)
        raise DataError(
            f"{path} is not {encoding} (byte {at}). Name the right encoding."
        ) from error


def _scan(lines: Iterable[bytes], path: Path) -> FileEncoding:
    digest = hashlib.sha256()
    first_utf8 = first_other = common = found = 0
    for number, line in _odd_lines(lines, digest):
        _require_text(line, path, number)
        if line.isascii():
            continue
        if _is_utf8(line):
            if not first_utf8 and _LONG.search(line):
                first_utf8 = number
        else:
            first_other = first_other or number
            counts = _count_common(line) or _refuse_bytes(path, number)
            common, found = common + counts[0], found + counts[1]
        if first_utf8 and first_other:
            raise DataError(
                f"{path} mixes encodings: line {first_utf8} is UTF-8, line "
                f"{first_other} is not. {SAVE_AS_UTF8}"
            )
    if common < _COMMON_SHARE * found:
        _refuse_bytes(path, first_other)
    return FileEncoding(GBK if first_other else UTF8, digest.hexdigest())


def _odd_lines(lines: Iterable[bytes], digest: _Hash) -> Iterator[tuple[int, bytes]]:
    """Yield number and line wherever a line of its block is not plain ASCII text."""
    every, number = iter(lines), 1
    while block := list(islice(every, _LINES)):
        joined = b"".join(block)
        digest.update(joined)
        if not joined.isascii() or b"\0" in joined:
            yield from enumerate(block, number)
        number += len(block)


def _require_text(line: bytes, path: Path, number: int) -> None:
    if number == 1 and line.startswith(_UTF16):
        raise DataError(f"{path} is UTF-16. Save it as UTF-8 and import that.")
    if b"\0" in line:
        raise DataError(
            f"{path}, line {number}: holds a NUL byte, so this is no text file. "
            "Export it again as UTF-8 text."
        )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _count_common(line: bytes) -> tuple[int, int] | None:
    """Return common and all Chinese characters of a GBK line; None if it is not GBK."""
    try:
        found = [char for char in line.decode(GBK) if not char.isascii()]
    except UnicodeDecodeError:
        return None
    leads = "".join(found).encode("gb2312", "ignore")[::2]
    return sum(lead <= _LAST_COMMON for lead in leads), len(found)


def _refuse_bytes(path: Path, number: int) -> NoReturn:
    raise DataError(f"{path}, line {number}: neither UTF-8 nor GBK. {SAVE_AS_UTF8}")
