"""Sweeps, plans and simulations over a Dask cluster, merged to the bytes of the undivided answer."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from . import Answer, Table, _shards
from ._shards import PER_CORE, Asked, Progress, Run, Shard, T

#: Without types.
distributed: Any = import_module("distributed")


def _run(work: Shard[T], asked: Asked, shards: int | None, client: Any, progress: Progress | None) -> list[T]:
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError:
            client = distributed.Client()
    n = shards or PER_CORE * max(1, sum(client.nthreads().values()))
    futures = [client.submit(work, i, n, *asked, retries=3, pure=False) for i in range(1, n + 1)]
    try:
        for done, _ in enumerate(distributed.as_completed(futures), 1):
            if progress is not None:
                progress(done, n)
        return list(client.gather(futures))
    except BaseException:
        client.cancel(futures)
        raise


def _cluster(shards: int | None, client: Any, progress: Progress | None) -> Run:
    return lambda work, asked: _run(work, asked, shards, client, progress)


def sweep(
    question: str,
    *args: Any,
    shards: int | None = None,
    client: Any = None,
    progress: Progress | None = None,
    **kwargs: Any,
) -> Table:
    """`rackmath.sweep` in shards: by the client given, else the one there is, else a cluster of its own."""
    return _shards.sweep(_cluster(shards, client, progress), question, args, kwargs)


def plan(
    *args: Any,
    shards: int | None = None,
    client: Any = None,
    progress: Progress | None = None,
    **kwargs: Any,
) -> Answer[Any]:
    """`rackmath.plan`, its space searched in shards."""
    return _shards.plan(_cluster(shards, client, progress), args, kwargs)


def simulate(*args: Any, seeds: Sequence[int], **kwargs: Any) -> Table:
    """`rackmath.simulate` once for each seed, a row for each run: requests of one run meet each other, runs do not."""
    return sweep("simulate", *args, over={"seed": list(seeds)}, **kwargs)
