"""Shards of an annotation made on a Ray cluster, by actors that hold an engine each.

Rows are read on the node of the driver, shards are written there; the others need no
file of ours. Ray hands rows to whichever actor is free, and once more to another one
where a node is lost. Its logs, its spilled objects and its sockets are in a private
folder that goes afterwards, where the cluster is ours.
"""

from __future__ import annotations

import logging
import os
import pickle
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from loop import __version__
from loop.core.config import read_config
from loop.core.errors import DataError, EngineError, LoopError
from loop.core.files import locked
from loop.core.paths import WorkspacePaths, install_command
from loop.engines.openai.client import check_literal
from loop.release.shard_makers import (
    AnnotationRequest,
    ShardMaker,
    ShardRows,
    many_new_objects,
)
from loop.run.shards import AnnotationPlan, shard_name, write_shard

if TYPE_CHECKING:
    from ray.data import Dataset

LOCAL: Final = "local"
"""Address of a cluster that is started on this machine and ends with the command."""

_SETTINGS: Final[dict[str, str]] = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
}
"""Environment of the driver, where nobody has set it otherwise."""

_TOKEN, _TOKEN_MODE = "RAY_AUTH_TOKEN", "RAY_AUTH_MODE"
_TOKEN_FILE: Final = Path.home() / ".ray" / "auth_token"
"""Where Ray keeps the token of the cluster of a machine."""

_FOLDER: Final = "ranloop-ray-"
_NEW_S: Final = 60.0
"""Seconds in which a folder may not have its lock yet."""

_LONGEST_BASE: Final = 20
"""Characters of a folder in which Ray's sockets have names of at most 107 bytes."""

_STORE_BYTES: Final = 300_000_000
"""Memory for rows and shards under way on this machine."""

_CONNECT_S: Final = 10.0

_TRIES: Final = 4
"""How often a shard is begun: the process that makes it may be killed, or its node."""

_NUMBER, _CONTENT, _PROBLEM = "number", "content", "problem"


class _Sent(NamedTuple):
    """What an actor needs: it finds no workspace on its node."""

    request: AnnotationRequest
    files: Mapping[str, bytes] | None
    """Labels, cues and settings of the workspace; None for those of the wheel."""

    ranloop: str
    home: str
    """Address of the node of the driver: rows lie on that machine anyhow."""

    @contextmanager
    def opened(self) -> Iterator[AnnotationRequest]:
        """Give the request with a workspace of the files that were sent."""
        if self.ranloop != __version__:
            raise EngineError(
                f"a node of the cluster has ranloop {__version__}, and not "
                f"{self.ranloop}. Install the same on every node."
            )
        if self.files is None:
            yield self.request
            return
        with tempfile.TemporaryDirectory(prefix="ranloop-") as folder:
            for name, content in self.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            yield self.request._replace(workspace=WorkspacePaths(Path(folder)))


def _require_allowed(node: Mapping[str, Any], home: str, hosts: Iterable[str]) -> None:
    """Refuse a node that may not receive case text.

    Raises
    ------
    EngineError
        It is another machine than the driver's, and not among `hosts`.
    """
    address, name = node["NodeManagerAddress"], node["NodeManagerHostname"]
    if address != home and name.casefold() not in map(str.casefold, hosts):
        check_literal(address, hosts)


def _pack(request: AnnotationRequest, home: str) -> _Sent:
    files = None
    place = request.workspace
    if place is not None:
        paths = [one for one in place.labels.rglob("*") if one.is_file()]
        files = {
            str(one.relative_to(place.root)): one.read_bytes()
            for one in (*paths, place.config)
            if one.is_file() and not one.is_relative_to(place.cohorts)
        }
    return _Sent(request.silent._replace(workspace=None), files, __version__, home)


def _describe(sent: _Sent) -> tuple[str, str]:
    """Return the plan as a node of the cluster has it, and what is wrong there."""
    try:
        with sent.opened() as request, request.open() as runner:
            return request.plan(runner).model_dump_json(), ""
    except LoopError as error:
        return "", str(error)


class _ShardAttempts:
    """Counts how often each shard is begun: Ray itself would go on for ever."""

    def __init__(self) -> None:
        self._begun = Counter[int]()

    def begin(self, number: int) -> int:
        """Return how often a shard was begun, this time included."""
        self._begun[number] += 1
        return self._begun[number]


class _ShardActor:
    """Makes shards on a node of the cluster. What goes wrong is told, not raised."""

    def __init__(self, sent: _Sent, plan: str, attempts: Any) -> None:
        self._attempts = attempts
        self._stack = ExitStack()
        self._maker: ShardMaker | None = None
        self._problem = ""
        try:
            wanted = AnnotationPlan.model_validate_json(plan)
            self._stack.enter_context(many_new_objects())
            request = self._stack.enter_context(sent.opened())
            # One that joined after the driver looked is asked here, before it has rows.
            _require_allowed(_own_node(), sent.home, _hosts(request))
            runner = self._stack.enter_context(request.open())
            if request.plan(runner) != wanted:
                raise EngineError(
                    f"{request.engine} is another one on some node of the cluster than "
                    "on the first: other weights, settings or versions. Use the same "
                    "on every node."
                )
            self._maker = ShardMaker(request, wanted, runner)
        except LoopError as error:
            self._problem = str(error)

    def __del__(self) -> None:
        # Ray Data lets go of it as the actor ends: an engine may hold a server open.
        self._stack.close()

    def __call__(self, batch: pa.Table) -> pa.Table:
        number: int = batch[_NUMBER][0].as_py()
        problem: str = batch[_PROBLEM][0].as_py() or self._problem
        content = b""
        if self._maker is not None and not problem:
            # Written by `_read` of this version, on the node of the driver.
            task: ShardRows = pickle.loads(batch[_CONTENT][0].as_py())
            try:
                self._begin(task)
                content = self._maker.make(task)
            except LoopError as error:
                problem = str(error)
        return _table(number, content, problem)

    def _begin(self, task: ShardRows) -> None:
        begun = _ray().get(self._attempts.begin.remote(task.number))
        if begun > _TRIES:
            raise EngineError(
                f"{shard_name(task.number)} ended its worker {_TRIES} times: memory "
                "ran out, or the engine fails on some of its rows. The shards that "
                "were made stay; give the same command again with fewer --workers."
            )


def _table(number: int, content: bytes, problem: str) -> pa.Table:
    return pa.table(
        {
            _NUMBER: [number],
            _CONTENT: pa.array([content], pa.large_binary()),
            _PROBLEM: [problem],
        }
    )


def _read(tasks: Callable[[], Iterable[ShardRows]]) -> Iterator[pa.Table]:
    """Yield a block a shard; the same ones in the same order whenever it is called."""
    try:
        for task in tasks():
            yield _table(task.number, pickle.dumps(task), "")
    except LoopError as error:
        yield _table(-1, b"", str(error))


class RayMakers:
    """Actors of a cluster that make shards. Make one with `open`."""

    def __init__(self, request: AnnotationRequest, workers: int | None) -> None:
        """Prepare to ask; `open` says what each is."""
        home = _own_node()["NodeManagerAddress"]
        for node in _ray().nodes():
            if node["Alive"]:
                _require_allowed(node, home, _hosts(request))
        self._sent = _pack(request, home)
        self._gpus = _gpus(request)
        self._workers = workers or _room(request, self._gpus)
        self.plan: Final = self._find_plan()

    @classmethod
    @contextmanager
    def open(
        cls, address: str, request: AnnotationRequest, workers: int | None
    ) -> Iterator[RayMakers]:
        """Give the actors of a cluster for the length of the block.

        Parameters
        ----------
        address
            ``local`` for a cluster on this machine that ends with the block, ``auto``
            for the one that runs here, or host and port of its head node.
        workers
            How many actors; None for one a CPU for `rules`, one a model for as many
            GPUs as there are for `vllm`, and else one.

        Raises
        ------
        EngineError
            Ray is not installed, there is no such cluster, a node of it may not receive
            case text, or its nodes cannot ask the engine.
        """
        if address.startswith("ray://"):
            raise EngineError(
                f"{address} is the address of a Ray client, which has no node to read "
                "rows on. Give the command on a node of the cluster, with --ray auto."
            )
        with ExitStack() as stack:
            stack.enter_context(_environment(_SETTINGS | _token(address)))
            _import_ray()
            # Ray prints that a worker died to standard output, which may be JSON.
            stack.enter_context(redirect_stdout(sys.stderr))
            stack.enter_context(_last_words())
            if address == LOCAL:
                stack.enter_context(_started(workers))
            else:
                stack.enter_context(_joined(address))
            yield cls(request, workers)

    def _find_plan(self) -> AnnotationPlan:
        ray = _ray()
        describe = ray.remote(_describe).options(
            num_cpus=1, num_gpus=self._gpus, max_retries=_TRIES
        )
        engine = self._sent.request.engine
        try:
            plan, problem = ray.get(describe.remote(self._sent))
        except ray.exceptions.RayError as error:
            raise EngineError(
                f"the cluster cannot prepare {engine} ({type(error).__name__}). Every "
                f"node needs ranloop {__version__} with the extra ray, and the same "
                "Python."
            ) from error
        if problem:
            raise EngineError(problem)
        return AnnotationPlan.model_validate_json(plan)

    def make(
        self, tasks: Callable[[], Iterable[ShardRows]], out: Path
    ) -> Iterator[int]:
        """Yield the numbers of shards as they are written.

        Parameters
        ----------
        tasks
            Gives the rows of the shards, the same ones whenever it is called; it is
            called in another process of this machine.

        Raises
        ------
        DataError
            The source was changed.
        EngineError
            An engine failed as a whole, or the cluster did; the shards that were made
            stay.
        WriteError
            A shard cannot be written.
        """
        for row in _rows_of(self._dataset(tasks)):
            if row[_PROBLEM]:
                kind = DataError if row[_NUMBER] < 0 else EngineError
                raise kind(row[_PROBLEM])
            write_shard(out, row[_NUMBER], row[_CONTENT])
            yield row[_NUMBER]

    def _dataset(self, tasks: Callable[[], Iterable[ShardRows]]) -> Dataset:
        """Return shards as Ray Data makes them: a stream with a few under way."""
        from ray.data import ActorPoolStrategy, DataContext, read_datasource
        from ray.data.block import BlockMetadata
        from ray.data.datasource import Datasource, ReadTask
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        class Shards(Datasource):
            """Rows of the missing shards, read on the node of the driver."""

            supports_distributed_reads = False

            def __init__(self) -> None:
                super().__init__()  # type: ignore[no-untyped-call]

            def get_read_tasks(self, *_given: object, **_named: object) -> list[Any]:
                """Return the one task that reads all, as a stream."""
                about = BlockMetadata(None, None, None, None)
                return [ReadTask(lambda: _read(tasks), about)]

            def estimate_inmemory_data_size(self) -> None:
                """Say that nobody knows."""

        ray = _ray()
        attempts = (
            ray.remote(_ShardAttempts)
            .options(
                num_cpus=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(
                    ray.get_runtime_context().get_node_id(), soft=False
                ),
            )
            .remote()
        )
        context = DataContext.get_current().copy()
        # A block for each shard: else the first actor is given many at once.
        context.target_max_block_size = 1
        with DataContext.current(context):
            made: Dataset = read_datasource(
                Shards(), override_num_blocks=1, num_cpus=0
            ).map_batches(
                _ShardActor,
                fn_constructor_args=(
                    self._sent,
                    self.plan.model_dump_json(),
                    attempts,
                ),
                batch_size=1,
                batch_format="pyarrow",
                zero_copy_batch=True,
                compute=ActorPoolStrategy(min_size=1, max_size=self._workers),
                num_cpus=1,
                num_gpus=self._gpus,
            )
        return made


def _rows_of(made: Dataset) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a dataset; what Ray says of a failure may quote them."""
    rows = iter(made.iter_rows())
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except Exception as error:  # noqa: BLE001
            raise EngineError(
                f"the Ray cluster failed ({type(error).__name__}): nodes or workers "
                "were lost, or memory ran out. The shards that were made stay; give "
                "the same command again to go on."
            ) from None
        yield row


@cache
def _own_token() -> str:
    return secrets.token_hex(32)


def _token(address: str) -> dict[str, str]:
    """Return the variables by which Ray asks for a token, as its own nodes do.

    A cluster of ours has one that nobody else on this machine knows; Ray turns to it
    by itself, and remembers it for the life of the process.
    """
    if address == LOCAL:
        return {_TOKEN: _own_token()}
    if {_TOKEN, f"{_TOKEN}_PATH"} & os.environ.keys() or _TOKEN_FILE.is_file():
        return {_TOKEN_MODE: "token"}
    return {}


def _import_ray() -> None:
    try:
        import_module("ray.data")
    except ImportError as error:
        raise EngineError(
            f"--ray needs Ray, which is not installed. {install_command('ray')}"
        ) from error
    # It logs the whole traceback of an error that is raised besides.
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)


@contextmanager
def _started(workers: int | None) -> Iterator[None]:
    """Start a cluster on this machine, and end it."""
    if _ray().is_initialized():
        raise EngineError(
            "this process is connected to a Ray cluster already. Give --ray auto, or "
            "call ray.shutdown() first."
        )
    with _private_folder() as folder, ExitStack() as stack:
        with _environment({"TMPDIR": str(folder)}):
            stack.enter_context(
                _connected(
                    "Ray cannot be started on this machine",
                    "Leave out --ray, or see that its ports and memory are free.",
                    num_cpus=workers or os.cpu_count(),
                    include_dashboard=False,
                    object_store_memory=_STORE_BYTES,
                    _node_ip_address="127.0.0.1",
                    # Ray lets everybody write there, and nobody can come so far.
                    _temp_dir=str(folder / "r"),
                )
            )
        yield


@contextmanager
def _joined(address: str) -> Iterator[None]:
    """Connect this process to a cluster, and let go of it."""
    if _ray().is_initialized():
        yield
        return
    host, _, port = address.rpartition(":")
    failure = f"there is no Ray cluster at {address} that this machine is a node of"
    advice = (
        "Start one with `ray start`, and give the host and port of its head, or auto."
    )
    if port.isdecimal():
        # Ray itself tries for minutes.
        with _reported(failure, advice):
            place = (host.strip("[]"), int(port))
            socket.create_connection(place, _CONNECT_S).close()
    with _connected(failure, advice, address=address):
        yield


@contextmanager
def _connected(failure: str, advice: str, **given: Any) -> Iterator[None]:
    """Hold the connection of this process for the length of the block."""
    ray = _ray()
    try:
        with _reported(failure, advice):
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **given)
        yield
    finally:
        ray.shutdown()


@contextmanager
def _reported(failure: str, advice: str) -> Iterator[None]:
    """Say what failed, and what to do, without what Ray says of it."""
    try:
        yield
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        raise EngineError(f"{failure} ({type(error).__name__}). {advice}") from error


_ENDED: Final = (
    "error: this process ended before its work. Ray ends it when the node that it runs "
    "on, or the head of the cluster, was killed or ran out of memory. The shards that "
    "were made stay: give the same command again to go on, with fewer --workers if "
    "memory was short."
)


@contextmanager
def _last_words() -> Iterator[None]:
    """Let another process say what happened if this one ends within the block.

    Ray leaves at once, without an exception, an exit handler or a word.
    """
    process = subprocess.Popen(
        ["sh", "-c", "trap '' INT; read -r done || echo \"$1\" >&2", "sh", _ENDED],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        # An error or an interrupt is told by whoever gets it.
        process.communicate(b"done\n")


@contextmanager
def _environment(given: Mapping[str, str]) -> Iterator[None]:
    """Set variables, where nobody has set them, for the length of the block."""
    new = {name: value for name, value in given.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)


@contextmanager
def _private_folder() -> Iterator[Path]:
    """Give a folder for a cluster of ours; those of killed commands go, too."""
    base = Path(tempfile.gettempdir())
    if len(str(base)) > _LONGEST_BASE:
        base = Path("/tmp")
    for old in base.glob(f"{_FOLDER}*"):
        with suppress(OSError, LoopError):
            about = old.stat()
            if about.st_uid == os.getuid() and about.st_mtime < time.time() - _NEW_S:
                with locked(old / ".lock", wait=False):
                    rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER, dir=base))
    with locked(folder / ".lock"):
        try:
            yield folder
        finally:
            # Processes of Ray may write a last line after they were told to end.
            for _ in range(20):
                rmtree(folder, ignore_errors=True)
                if not folder.exists():
                    break
                time.sleep(0.1)


def _ray() -> Any:
    """Return the module, which is loaded only where it is used."""
    return import_module("ray")


def _own_node() -> Mapping[str, Any]:
    """Return what the cluster knows of the node of this process."""
    ray = _ray()
    own = ray.get_runtime_context().get_node_id()
    found: Mapping[str, Any] = next(one for one in ray.nodes() if one["NodeID"] == own)
    return found


def _hosts(request: AnnotationRequest) -> tuple[str, ...]:
    return read_config(request.workspace).hosts if request.workspace else ()


def _gpus(request: AnnotationRequest) -> int:
    """Return the GPUs that an actor's engine needs, where the cluster has some."""
    scheme = request.engine.partition(":")[0]
    if scheme not in ("vllm", "chexbert") or not _count("GPU"):
        return 0
    if scheme == "chexbert" or request.workspace is None:
        return 1
    settings = read_config(request.workspace).engines.vllm
    return (settings.tensor_parallel_size or 1) * (settings.data_parallel_size or 1)


def _room(request: AnnotationRequest, gpus: int) -> int:
    """Return how many actors the cluster has room for."""
    if gpus:
        return max(1, _count("GPU") // gpus)
    return max(1, _count("CPU")) if request.engine == "rules" else 1


def _count(resource: str) -> int:
    """Return how much of a resource the nodes of the cluster have together."""
    found: Mapping[str, float] = _ray().cluster_resources()
    return int(found.get(resource, 0))
