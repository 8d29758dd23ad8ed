"""Shards of an annotated corpus: what they hold, whose they are, what differs."""

import hashlib
import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from loop.core.digests import framed
from loop.core.errors import DataError, WriteError
from loop.core.records import Field, Outcome, Span, Status, Value
from loop.labels.taxonomy import Label, NoFindingPolicy, Taxonomy
from loop.run.shards import (
    AnnotationManifest,
    AnnotationPlan,
    CorpusRow,
    LabelDifference,
    RepeatedIds,
    ShardCounts,
    ShardFacts,
    as_items,
    begin_folder,
    check_finished,
    check_label_names,
    compare_annotations,
    digest_rows,
    encode_shard,
    finish_folder,
    has_failed,
    has_shard,
    make_annotation_folder,
    read_labels,
    read_manifest_of,
    read_outcomes,
    shard_name,
    write_shard,
)


def make_taxonomy(*ids):
    """Return a taxonomy of these labels."""
    labels = tuple(
        Label(id=name, name=name.replace("_", " ").title(), group="g", definition="d")
        for name in ids
    )
    return Taxonomy(
        labels=labels,
        no_finding_policy=NoFindingPolicy.RAN,
        version=1,
        digest="t" * 64,
    )


TAXONOMY = make_taxonomy("edema", "fracture", "no_finding")
PLAN = AnnotationPlan(
    prompt="extractor@v1",
    prompt_digest="p" * 64,
    release="extractor-v1",
    contract="label_values/1",
    engine="rules",
    parameters={"seed": 0},
    engine_identity={"engine": "rules"},
    taxonomy_digest="t" * 64,
    no_finding="ran",
    columns=("Edema", "Fracture", "No Finding"),
    text=False,
    shard_rows=4,
)
ROWS = (
    CorpusRow("c0", "Edema and no fracture.", "en"),
    CorpusRow("c1", " ", ""),
    CorpusRow("c2", "?", "en"),
    CorpusRow("c3", "Clear.", ""),
)
OUTCOMES = (
    Outcome(
        item_id="c0",
        status=Status.ANSWERED,
        fields={
            "edema": Field(Value.PRESENT, (Span(0, 5), Span(7, 9))),
            "fracture": Field(Value.ABSENT, (Span(10, 21),)),
        },
        repairs=("code fence removed",),
    ),
    None,
    Outcome(item_id="c2", status=Status.UNPARSED, problem="no JSON"),
    Outcome(
        item_id="c3",
        status=Status.ANSWERED,
        fields={"edema": Field(Value.ABSENT), "fracture": Field(Value.ABSENT)},
    ),
)


def write(folder, number=0, *, plan=PLAN, rows=ROWS, outcomes=OUTCOMES):
    """Write one shard and return its path."""
    content = encode_shard(number, plan, TAXONOMY, rows, outcomes)
    write_shard(folder, number, content)
    return folder / shard_name(number)


@pytest.mark.parametrize("text", [False, True])
def test_a_shard_holds_all_that_was_answered_and_of_which_rows_it_is(tmp_path, text):
    """Cell by cell: a row that nobody asked about is blank, as is one unread."""
    plan = PLAN.model_copy(update={"text": text})
    path = write(tmp_path, 7, plan=plan)
    assert path.name == "part-00007.parquet"
    assert path.stat().st_mode & 0o777 == 0o600
    table = pq.read_table(path)
    texts = {"text": [one.text for one in ROWS]} if text else {}
    assert table.to_pydict() == {
        "case_id": ["c0", "c1", "c2", "c3"],
        "status": ["answered", "no_text", "unparsed", "answered"],
        "Edema": ["present", None, None, "absent"],
        "Fracture": ["absent", None, None, "absent"],
        "No Finding": ["absent", None, None, "present"],
        "evidence": [
            [
                {"label": "edema", "start": 0, "end": 5},
                {"label": "edema", "start": 7, "end": 9},
                {"label": "fracture", "start": 10, "end": 21},
            ],
            *([], [], []),
        ],
        "repairs": [["code fence removed"], [], [], []],
        "problem": ["", "", "no JSON", ""],
        **texts,
    }
    assert json.loads(pq.read_schema(path).metadata[b"ranloop"]) == {
        "plan": plan.digest,
        "shard": 7,
        "rows": digest_rows(ROWS),
    }


def test_outcomes_come_back_from_a_shard_as_they_were(tmp_path):
    """With the derived label beside those that were asked."""
    read = read_outcomes(write(tmp_path), TAXONOMY)
    derived = (Value.ABSENT, None, None, Value.PRESENT)
    wanted = [
        one and replace(one, fields={**one.fields, "no_finding": Field(value)})
        if value
        else one
        for one, value in zip(OUTCOMES, derived, strict=True)
    ]
    assert read == wanted


def test_a_taxonomy_without_no_finding_derives_none(tmp_path):
    """Its table has the columns that were asked, and no other."""
    taxonomy = make_taxonomy("edema", "fracture")
    plan = PLAN.model_copy(update={"columns": ("Edema", "Fracture")})
    write_shard(tmp_path, 0, encode_shard(0, plan, taxonomy, ROWS, OUTCOMES))
    table = pq.read_table(tmp_path / shard_name(0))
    assert table.column_names == [
        *("case_id", "status", "Edema", "Fracture", "evidence", "repairs", "problem")
    ]


def test_there_is_one_outcome_a_row():
    """Anything else would put answers beside the wrong report."""
    with pytest.raises(ValueError, match="3 outcomes for 4 rows"):
        encode_shard(0, PLAN, TAXONOMY, ROWS, OUTCOMES[:3])


def test_rows_are_digested_with_id_and_language_and_in_their_order():
    """By hand; where one part ends and the next begins is in it."""
    raw = b"".join(framed((one.case_id, one.language, one.text)) for one in ROWS)
    assert digest_rows(ROWS) == hashlib.sha256(raw).hexdigest()
    digests = {
        digest_rows(rows)
        for rows in (
            ROWS,
            ROWS[::-1],
            ROWS[:3],
            (ROWS[0]._replace(language=""), *ROWS[1:]),
            (ROWS[0]._replace(case_id="x"), *ROWS[1:]),
            (ROWS[0]._replace(text="x"), *ROWS[1:]),
        )
    }
    assert len(digests) == 6


def test_rows_become_items_in_their_language():
    """The one that is given, else the one the text seems to be in."""
    chinese = CorpusRow("c4", "双肺清晰，心影正常。", "")
    given = CorpusRow("c5", "The lungs are clear.", "de")
    items = as_items([ROWS[0], chinese, given])
    assert [(one.id, one.language) for one in items] == [
        *(("c0", "en"), ("c4", "zh"), ("c5", "de"))
    ]
    assert [one.variables for one in items] == [
        {"text": one.text} for one in (ROWS[0], chinese, given)
    ]


def test_a_shard_is_known_by_its_plan_and_its_rows(tmp_path):
    """One that is missing is to be made; another's is never taken for it."""
    rows = digest_rows(ROWS)
    assert has_shard(tmp_path, 0, PLAN, rows) is False
    path = write(tmp_path)
    assert has_shard(tmp_path, 0, PLAN, rows) is True
    other = PLAN.model_copy(update={"engine": "openai:m"})
    with pytest.raises(DataError, match=f"{path} is of another annotation. Name a new"):
        has_shard(tmp_path, 0, other, rows)
    with pytest.raises(DataError, match=f"{path} was made of other rows than the sou"):
        has_shard(tmp_path, 0, PLAN, digest_rows(ROWS[:3]))


def test_a_table_of_somebody_else_is_no_shard(tmp_path):
    """Without what a shard says of itself, or with something else in its place."""
    table = pq.read_table(write(tmp_path))
    for metadata in ({}, {b"ranloop": b"[1]"}):
        pq.write_table(
            table.replace_schema_metadata(metadata), tmp_path / shard_name(1)
        )
        with pytest.raises(DataError, match="is of another annotation"):
            has_shard(tmp_path, 1, PLAN, digest_rows(ROWS))
    broken = table.replace_schema_metadata({b"ranloop": b"{"})
    pq.write_table(broken, tmp_path / shard_name(1))
    with pytest.raises(DataError, match="cannot be read as a shard"):
        has_shard(tmp_path, 1, PLAN, digest_rows(ROWS))


@pytest.mark.parametrize("content", [b"", b"no table", None])
def test_what_cannot_be_read_as_a_shard_says_so(tmp_path, content):
    """Whoever asks: the way out is to have it made again."""
    path = tmp_path / shard_name(0)
    if content is None:
        (tmp_path / "elsewhere").mkdir()
        path.symlink_to(tmp_path / "elsewhere" / "gone")
    else:
        path.write_bytes(content)
    said = f"{path} cannot be read as a shard. Remove it, and give the same command"
    if content is None:
        assert has_shard(tmp_path, 0, PLAN, "x") is False
    else:
        with pytest.raises(DataError, match=said):
            has_shard(tmp_path, 0, PLAN, "x")
    for act in (
        lambda: read_outcomes(path, TAXONOMY),
        lambda: has_failed(tmp_path, 0),
        lambda: ShardCounts(PLAN).add(path),
    ):
        with pytest.raises(DataError, match=said):
            act()


def test_a_shard_with_a_row_that_the_engine_failed_is_known(tmp_path):
    """What could not be read is no failure of the engine."""
    write(tmp_path)
    assert has_failed(tmp_path, 0) is False
    failed = Outcome(item_id="c1", status=Status.ENGINE_FAILED, problem="timeout")
    write(tmp_path, 1, outcomes=(OUTCOMES[0], failed, *OUTCOMES[2:]))
    assert has_failed(tmp_path, 1) is True


def test_a_folder_is_made_for_its_owner_and_taken_again(tmp_path):
    """One with a lock, or with a plan that is just being written, is still empty."""
    folder = tmp_path / "made" / "out"
    make_annotation_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    (folder / ".lock").touch()
    (folder / "._annotation.json.x").touch()
    make_annotation_folder(folder)
    (folder / "notes.txt").touch()
    said = f"{folder} is there and holds no annotation; it was left as it is"
    with pytest.raises(DataError, match=said):
        make_annotation_folder(folder)
    begin_folder(folder, PLAN)
    make_annotation_folder(folder)
    with pytest.raises(DataError, match=r"notes\.txt is there and holds no annotation"):
        make_annotation_folder(folder / "notes.txt")
    with pytest.raises(WriteError):
        make_annotation_folder(folder / "notes.txt" / "below")


def test_a_plan_is_written_once_and_checked_later(tmp_path):
    """By those who go on; the file is private."""
    begin_folder(tmp_path, PLAN)
    path = tmp_path / "_annotation.json"
    assert path.stat().st_mode & 0o777 == 0o600
    raw = path.read_bytes()
    assert json.loads(raw) == {"plan": PLAN.model_dump(mode="json")}
    begin_folder(tmp_path, PLAN)
    assert path.read_bytes() == raw


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"prompt": "extractor@v2", "prompt_digest": "q" * 64}, "prompt"),
        ({"contract": "findings/1"}, "prompt"),
        ({"engine": "openai:m"}, "engine"),
        ({"parameters": {}}, "setting of the engine"),
        ({"engine_identity": {}}, "identity of the engine"),
        ({"release": ""}, "release"),
        ({"columns": (), "taxonomy_digest": "u", "no_finding": "x"}, "list of labels"),
        ({"text": True}, "choice of --with-text"),
        (
            {"shard_rows": 5, "engine": "m"},
            "engine, number of --rows",
        ),
    ],
)
def test_another_plan_is_refused_with_what_differs(tmp_path, changes, words):
    """Each part in the words of whoever gave it, and what the first one was."""
    begin_folder(tmp_path, PLAN)
    with pytest.raises(DataError) as refused:
        begin_folder(tmp_path, PLAN.model_copy(update=changes))
    assert str(refused.value) == (
        f"{tmp_path} holds an annotation with another {words}: it was made by "
        "extractor-v1 with rules, --rows 4, without --with-text. Give the same again, "
        "or name a new folder with --out."
    )


def test_a_refusal_names_the_prompt_where_there_is_no_release(tmp_path):
    """And that the texts were kept."""
    begin_folder(tmp_path, PLAN.model_copy(update={"release": "", "text": True}))
    said = r"it was made by extractor@v1 with rules, --rows 4, with --with-text\."
    with pytest.raises(DataError, match=said):
        begin_folder(tmp_path, PLAN)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"plan": {}}', "null"])
def test_what_is_no_plan_is_not_gone_on_with(tmp_path, text):
    """Nor written over."""
    path = tmp_path / "_annotation.json"
    path.write_text(text)
    with pytest.raises(DataError, match=f"{path} is not the manifest of an annotation"):
        begin_folder(tmp_path, PLAN)
    assert path.read_text() == text


def finish(folder, *, plan=PLAN, source="s" * 64):
    """Count the shards of a folder, write its manifest, and return that."""
    counts = ShardCounts(plan)
    for path in sorted(folder.glob("part-*")):
        counts.add(path)
    manifest = AnnotationManifest(
        plan=plan,
        source="corpus.csv",
        source_digest=source,
        rows=counts.rows,
        statuses=dict(counts.statuses),
        repaired=counts.repaired,
        problems=dict(counts.problems),
        failed=tuple(counts.failed),
        repeated=counts.repeated(),
        labels={name: dict(found) for name, found in counts.labels.items()},
        shards=tuple(counts.shards),
        ranloop="1.0",
    )
    finish_folder(folder, manifest)
    return manifest


def test_shards_are_added_up(tmp_path):
    """Every row once, by how it ended and what was said of each label."""
    paths = [write(tmp_path), write(tmp_path, 1, rows=ROWS[:1], outcomes=OUTCOMES[:1])]
    found = finish(tmp_path)
    assert (found.rows, found.repaired) == (5, 2)
    assert found.statuses == {"answered": 3, "no_text": 1, "unparsed": 1}
    assert found.problems == {"no JSON": 1}
    assert found.failed == ("c2",)
    assert found.repeated == RepeatedIds(ids=1, examples=("c0",))
    assert found.labels == {
        "Edema": {"present": 2, "absent": 1, "blank": 2},
        "Fracture": {"absent": 3, "blank": 2},
        "No Finding": {"absent": 2, "present": 1, "blank": 2},
    }
    assert found.shards == tuple(
        ShardFacts(
            file=path.name,
            rows=rows,
            sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path, rows in zip(paths, (4, 1), strict=True)
    )
    assert read_manifest_of(tmp_path) == found
    done = hashlib.sha256((tmp_path / "_annotation.json").read_bytes()).hexdigest()
    assert (tmp_path / "_SUCCESS").read_text() == f"{done}\n"
    for name in ("_SUCCESS", "_annotation.json"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_no_shard_makes_no_count(tmp_path):
    """Nor does one without a row."""
    counts = ShardCounts(PLAN)
    assert counts.repeated() == RepeatedIds(ids=0, examples=())
    counts.add(write(tmp_path, rows=(), outcomes=()))
    assert (counts.rows, counts.repaired, counts.failed) == (0, 0, [])
    assert counts.repeated() == RepeatedIds(ids=0, examples=())


@pytest.mark.parametrize("number", [19, 20, 21])
def test_twenty_ids_are_named_and_the_rest_counted(tmp_path, number):
    """Of rows without an answer in their order, of repeated ids by name."""
    counts = ShardCounts(PLAN)
    for part in range(2):
        rows = [CorpusRow(f"c{n:02}", "x", "en") for n in reversed(range(number))]
        bad = [
            Outcome(item_id=row.case_id, status=status)
            for row, status in zip(
                rows, [Status.UNPARSED, Status.ENGINE_FAILED] * number, strict=False
            )
        ]
        counts.add(write(tmp_path, part, rows=rows, outcomes=bad))
    names = [row.case_id for row in rows]
    assert counts.failed == [*names, *names][:20]
    repeated = counts.repeated()
    assert repeated.ids == number
    assert repeated.examples == tuple(sorted(names)[:20])


def test_a_finished_annotation_is_as_it_was_or_refused(tmp_path):
    """A shard that is missing can be made again; a changed one is somebody's doing."""
    check_finished(tmp_path)
    paths = [write(tmp_path, number) for number in range(3)]
    check_finished(tmp_path)
    finish(tmp_path)
    check_finished(tmp_path)
    paths[0].unlink()
    check_finished(tmp_path)
    write(tmp_path, 2, rows=ROWS[:1], outcomes=OUTCOMES[:1])
    with pytest.raises(DataError, match=f"{paths[2]} was changed"):
        check_finished(tmp_path)
    (tmp_path / "_SUCCESS").unlink()
    check_finished(tmp_path)


def test_a_manifest_that_was_changed_is_refused(tmp_path):
    """Also one of another form under the digest that is there."""
    write(tmp_path)
    finish(tmp_path)
    path = tmp_path / "_annotation.json"
    path.write_bytes(path.read_bytes().replace(b'"1.0"', b'"1.1"'))
    with pytest.raises(DataError, match=f"{path} was changed"):
        read_manifest_of(tmp_path)
    path.write_bytes(b"{}")
    (tmp_path / "_SUCCESS").write_text(hashlib.sha256(b"{}").hexdigest())
    with pytest.raises(DataError, match=f"{path} has not the form of a manifest"):
        read_manifest_of(tmp_path)


def test_labels_are_read_row_by_row_over_all_shards(tmp_path):
    """In the order of the manifest; a shard that is gone or changed stops it."""
    paths = [
        write(tmp_path),
        write(tmp_path, 1, rows=ROWS[:1], outcomes=OUTCOMES[:1]),
    ]
    manifest = finish(tmp_path)
    first = ("c0", "answered", "present", "absent", "absent")
    assert list(read_labels(tmp_path, manifest)) == [
        first,
        ("c1", "no_text", None, None, None),
        ("c2", "unparsed", None, None, None),
        ("c3", "answered", "absent", "absent", "present"),
        first,
    ]
    write(tmp_path, 1)
    with pytest.raises(DataError, match=f"{paths[1]} was changed"):
        list(read_labels(tmp_path, manifest))
    paths[1].unlink()
    with pytest.raises(DataError, match=f"{paths[1]} is missing"):
        list(read_labels(tmp_path, manifest))


def test_two_annotations_are_compared_row_by_row(tmp_path):
    """What changed, of how many rows, and which; equal rows are counted as well."""
    one, two = tmp_path / "one", tmp_path / "two"
    edema = {
        "edema": Field(Value.UNCERTAIN),
        "fracture": Field(Value.ABSENT),
    }
    other = (
        replace(OUTCOMES[0], fields=edema),
        OUTCOMES[1],
        Outcome(item_id="c2", status=Status.ANSWERED, fields=edema),
        Outcome(item_id="c3", status=Status.UNPARSED),
    )
    for folder, outcomes in ((one, OUTCOMES), (two, other)):
        make_annotation_folder(folder)
        write(folder, outcomes=outcomes)
        finish(folder)
    found = compare_annotations(one, two)
    assert (found.rows, found.differing) == (4, 3)
    assert found.examples == ("c0", "c2", "c3")
    assert found.statuses == {
        "answered -> unparsed": 1,
        "unparsed -> answered": 1,
    }
    assert list(found.statuses) == sorted(found.statuses)
    assert found.labels == (
        LabelDifference(
            "Edema",
            3,
            {
                "absent -> blank": 1,
                "blank -> uncertain": 1,
                "present -> uncertain": 1,
            },
        ),
        LabelDifference("Fracture", 2, {"absent -> blank": 1, "blank -> absent": 1}),
        LabelDifference("No Finding", 2, {"blank -> absent": 1, "present -> blank": 1}),
    )
    assert list(found.labels[0].changes) == sorted(found.labels[0].changes)
    same = compare_annotations(one, one)
    assert same == (4, 0, (), {}, ())


def test_annotations_of_other_rows_or_labels_are_not_compared(tmp_path):
    """Each says why."""
    plans = {
        "one": (PLAN, "s" * 64),
        "rows": (PLAN, "r" * 64),
        "labels": (
            PLAN.model_copy(update={"columns": ("Edema", "Fracture")}),
            "s" * 64,
        ),
    }
    for name, (plan, source) in plans.items():
        make_annotation_folder(tmp_path / name)
        finish(tmp_path / name, plan=plan, source=source)
    with pytest.raises(DataError, match="rows are of other rows: their sources differ"):
        compare_annotations(tmp_path / "one", tmp_path / "rows")
    with pytest.raises(DataError, match=r"labels are of other labels\."):
        compare_annotations(tmp_path / "one", tmp_path / "labels")


def test_twenty_rows_that_differ_are_named(tmp_path):
    """All of them are counted."""
    for folder, value in (("one", Value.PRESENT), ("two", Value.ABSENT)):
        make_annotation_folder(tmp_path / folder)
        rows = [CorpusRow(f"c{n:02}", "x", "en") for n in range(21)]
        said = {"edema": Field(value), "fracture": Field(Value.ABSENT)}
        write(
            tmp_path / folder,
            rows=rows,
            outcomes=[
                Outcome(item_id=row.case_id, status=Status.ANSWERED, fields=said)
                for row in rows
            ],
        )
        finish(tmp_path / folder)
    found = compare_annotations(tmp_path / "one", tmp_path / "two")
    assert found.differing == 21
    assert found.examples == tuple(f"c{n:02}" for n in range(20))


@pytest.mark.parametrize(
    "name", ["case_id", "status", "evidence", "repairs", "problem", "text"]
)
def test_a_label_may_not_be_called_like_a_column(name):
    """Else one of the two would be lost; the first by name is told."""
    assert check_label_names(TAXONOMY) == PLAN.columns
    labels = (
        *TAXONOMY.labels,
        Label(id="x", name=name, group="g", definition="d"),
    )
    with pytest.raises(DataError, match=f"a label is called '{name}', as a column"):
        check_label_names(replace(TAXONOMY, labels=labels))
