"""Sweeps, plans and simulations over a Dask cluster, merged to the bytes of the undivided answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeVar

from . import Answer, Table, merge, plan_shard
from . import sweep as _sweep

#: Without types.
distributed: Any = import_module("distributed")
_T = TypeVar("_T")

Progress = Callable[[int, int], object]


def _sweep_shard(i: int, n: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Table:
    return _sweep(*args, shard=(i, n), threads=1, **kwargs)


def _plan_shard(i: int, n: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    return plan_shard((i, n), *args, **kwargs)


def _run(
    work: Callable[[int, int, tuple[Any, ...], dict[str, Any]], _T],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    shards: int | None,
    client: Any,
    progress: Progress | None,
) -> list[_T]:
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError:
            client = distributed.Client()
    n = shards or 4 * max(1, sum(client.nthreads().values()))
    futures = [client.submit(work, i, n, args, kwargs, retries=3, pure=False) for i in range(1, n + 1)]
    try:
        for done, _ in enumerate(distributed.as_completed(futures), 1):
            if progress is not None:
                progress(done, n)
        return list(client.gather(futures))
    except BaseException:
        client.cancel(futures)
        raise


def sweep(
    question: str,
    *args: Any,
    shards: int | None = None,
    client: Any = None,
    progress: Progress | None = None,
    **kwargs: Any,
) -> Table:
    """`rackmath.sweep` in shards: by the client given, else the one there is, else a cluster of its own."""
    return merge(_run(_sweep_shard, (question, *args), kwargs, shards, client, progress))


def plan(
    *args: Any,
    shards: int | None = None,
    client: Any = None,
    progress: Progress | None = None,
    **kwargs: Any,
) -> Answer[Any]:
    """`rackmath.plan`, its space searched in shards."""
    texts = _run(_plan_shard, args, kwargs, shards, client, progress)
    return merge(texts, catalog=kwargs.get("catalog"))


def simulate(*args: Any, seeds: Sequence[int], **kwargs: Any) -> Table:
    """`rackmath.simulate` once for each seed, a row for each run."""
    return sweep("simulate", *args, over={"seed": list(seeds)}, **kwargs)
