"""Sweeps, plans and simulations over a Ray cluster, merged to the bytes of the undivided answer.

A shard is a function of the request and its number: one that is lost is worked again, one that is worked twice is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeVar

from . import Answer, Table, merge, plan_shard
from . import sweep as _sweep

#: Typed in part, and other in every release.
ray: Any = import_module("ray")
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
    address: str | None,
    progress: Progress | None,
) -> list[_T]:
    if not ray.is_initialized():
        if address is None:
            ray.init(include_dashboard=False, configure_logging=True, logging_level="warning")
        else:
            ray.init(address)
    # More shards than cores: a slow one holds up nothing.
    n = shards or 4 * max(1, int(ray.cluster_resources().get("CPU", 1)))
    task = ray.remote(max_retries=3, retry_exceptions=[OSError])(work)
    given = [ray.put(args), ray.put(kwargs)]
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


def sweep(
    question: str,
    *args: Any,
    shards: int | None = None,
    address: str | None = None,
    progress: Progress | None = None,
    **kwargs: Any,
) -> Table:
    """`rackmath.sweep` in shards: on a cluster of its own unless `address` (such as `ray://head:10001`) names one."""
    return merge(_run(_sweep_shard, (question, *args), kwargs, shards, address, progress))


def plan(
    *args: Any,
    shards: int | None = None,
    address: str | None = None,
    progress: Progress | None = None,
    **kwargs: Any,
) -> Answer[Any]:
    """`rackmath.plan`, its space searched in shards."""
    texts = _run(_plan_shard, args, kwargs, shards, address, progress)
    return merge(texts, catalog=kwargs.get("catalog"))


def simulate(*args: Any, seeds: Sequence[int], **kwargs: Any) -> Table:
    """`rackmath.simulate` once for each seed, a row for each run: requests of one run meet each other, runs do not."""
    return sweep("simulate", *args, over={"seed": list(seeds)}, **kwargs)
