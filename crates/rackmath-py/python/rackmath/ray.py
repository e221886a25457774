"""Sweeps, plans and simulations over a Ray cluster, merged to the bytes of the undivided answer."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from . import Answer, Table, _shards
from ._shards import PER_CORE, Asked, Progress, Run, Shard, T

#: Typed in part, and other in every release.
ray: Any = import_module("ray")


def _run(work: Shard[T], asked: Asked, shards: int | None, address: str | None, progress: Progress | None) -> list[T]:
    if not ray.is_initialized():
        if address is None:
            ray.init(include_dashboard=False, configure_logging=True, logging_level="warning")
        else:
            ray.init(address)
    n = shards or PER_CORE * max(1, int(ray.cluster_resources().get("CPU", 1)))
    task = ray.remote(max_retries=3, retry_exceptions=[OSError])(work)
    given = [ray.put(part) for part in asked]
    waiting = [task.remote(i, n, *given) for i in range(1, n + 1)]
    order = list(waiting)
    try:
        while waiting:
            _, waiting = ray.wait(waiting, num_returns=1)
            if progress is not None:
                progress(n - len(waiting), n)
        return list(ray.get(order))
    except BaseException:
        for one in waiting:
            ray.cancel(one)
        raise


def _cluster(shards: int | None, address: str | None, progress: Progress | None) -> Run:
    return lambda work, asked: _run(work, asked, shards, address, progress)


def sweep(
    question: str,
    *args: Any,
    shards: int | None = None,
    address: str | None = None,
    progress: Progress | None = None,
    **kwargs: Any,
) -> Table:
    """`rackmath.sweep` in shards: on a cluster of its own unless `address` (such as `ray://head:10001`) names one."""
    return _shards.sweep(_cluster(shards, address, progress), question, args, kwargs)


def plan(
    *args: Any,
    shards: int | None = None,
    address: str | None = None,
    progress: Progress | None = None,
    **kwargs: Any,
) -> Answer[Any]:
    """`rackmath.plan`, its space searched in shards."""
    return _shards.plan(_cluster(shards, address, progress), args, kwargs)


def simulate(*args: Any, seeds: Sequence[int], **kwargs: Any) -> Table:
    """`rackmath.simulate` once for each seed, a row for each run: requests of one run meet each other, runs do not."""
    return sweep("simulate", *args, over={"seed": list(seeds)}, **kwargs)
