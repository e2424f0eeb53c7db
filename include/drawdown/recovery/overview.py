"""Show: the content of a checkpoint, and the metastore's view of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from drawdown.checkpoint import StateFiles
from drawdown.errors import DrawdownError
from drawdown.recovery.repair.faults import shown_batches
from drawdown.recovery.snapshots import snapshots
from drawdown.storage import Storage
from drawdown.workspace import Generation


def overview(generation: Generation) -> dict[str, Any]:
    """Return JSON-ready facts; unreadable parts contain the reason, so that a damaged checkpoint can be
    shown, too.

    Keys: pipeline, generation, generations (their numbers on storage), path, query_id, planned and committed
    (``kept`` batch ids as [first, last], ``last``), sources (name to offset after the last planned batch),
    watermark (UTC, None before there is any), folders (name to files and bytes), stores (state stores with
    their whole states, changes and newest version), snapshots, metastore, sink (last batch by table, None
    before there is one), lease.
    """
    files, storage, name = generation.files, generation.storage, generation.pipeline.name
    holder = generation.metastore.holder_of(name)
    return {
        "pipeline": name,
        "generation": generation.number,
        "generations": _generations(storage, generation.folder),
        "path": storage.path(generation.path),
        "query_id": _or_why(files.query_id),
        "planned": _kept(files.offset_batches()),
        "committed": _kept(files.commit_batches()),
        "sources": _or_why(lambda: _offsets(generation)),
        "watermark": _or_why(lambda: _watermark(generation)),
        "folders": _sizes(storage, generation.path),
        "stores": _or_why(lambda: _stores(storage, generation.path)),
        "snapshots": _or_why(lambda: _snapshots(storage, name)),
        "metastore": _noted(generation),
        "sink": _or_why(lambda: _shown(generation)),
        "lease": f"{holder.holder}, run {holder.run_id}" if holder else None,
    }


def _shown(generation: Generation) -> dict[str, int | None]:
    return {table: None if last < 0 else last for table, last in shown_batches(generation).items()}


def _or_why(look: Callable[[], Any]) -> Any:
    try:
        return look()
    except DrawdownError as error:
        return {"error": f"{error.id}: {error.what} ({error.where})"}


def _kept(batches: list[int]) -> dict[str, Any]:
    return {"last": batches[-1], "kept": [batches[0], batches[-1]]} if batches else {"last": None, "kept": []}


def _offsets(generation: Generation) -> dict[str, Any]:
    last = generation.files.last_offset_batch()
    if last is None:
        return {}
    offsets = generation.files.offsets(last).by_source
    names = generation.checkpoint.fingerprint.get("source_order", []) if generation.checkpoint else []
    if len(names) != len(offsets):
        return offsets
    # A source that is read twice has two offsets.
    shown = [n if Counter(names)[n] == 1 else f"{n} ({i})" for i, n in enumerate(names)]
    return dict(zip(shown, offsets.values(), strict=True))


def _watermark(generation: Generation) -> datetime | None:
    last = generation.files.last_commit_batch()
    millis = 0 if last is None else generation.files.commit(last).get("nextBatchWatermarkMs", 0)
    return datetime.fromtimestamp(millis / 1_000, UTC) if millis > 0 else None


def _sizes(storage: Storage, path: str) -> dict[str, dict[str, int]]:
    sizes: dict[str, dict[str, int]] = {}
    for info in storage.walk(path):
        folder, slash, _ = info.relative[len(path) + 1 :].partition("/")
        each = sizes.setdefault(folder if slash else ".", {"files": 0, "bytes": 0})
        each["files"] += 1
        each["bytes"] += info.size
    return dict(sorted(sizes.items()))


def _stores(storage: Storage, path: str) -> list[dict[str, Any]]:
    return [
        {
            "operator": store.id.operator,
            "partition": store.id.partition,
            "store": store.id.store,
            "whole": sorted(store.whole),
            "changes": len(store.changes),
            "newest_version": max([*store.whole, *store.changes], default=None),
            "bytes": sum(info.size for _, info in store.files()),
        }
        for store in StateFiles.read(storage, path).stores.values()
    ]


def _snapshots(storage: Storage, pipeline: str) -> list[dict[str, Any]]:
    return [
        {
            "name": each.name,
            "generation": each.generation,
            "last_batch": each.last_batch,
            "sink": each.shown,
            "files": each.files,
            "bytes": each.bytes,
        }
        for each in snapshots(storage, pipeline)
    ]


def _noted(generation: Generation) -> dict[str, Any] | None:
    if generation.checkpoint is None:
        return None
    batches = generation.metastore.batches(generation.pipeline.name, generation.number)
    return {
        "query_id": generation.checkpoint.query_id,
        "since": generation.checkpoint.created_at,
        "last_batch": batches[-1].batch_id if batches else None,
        "batches": dict(Counter(batch.status for batch in batches)),
    }


def _generations(storage: Storage, folder: str) -> list[int]:
    names = {info.relative[len(folder) + 1 :].split("/")[0] for info in storage.walk(folder)}
    numbers = [name.removeprefix("checkpoint-") for name in names if name.startswith("checkpoint-")]
    return sorted(int(number) for number in numbers if number.isdigit())
