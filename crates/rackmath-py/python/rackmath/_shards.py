"""What a cluster is given to do: a shard of a sweep or of a plan. A cluster is a way to work shards, and nothing else differs between clusters.

A shard is a function of the request and its number: one that is lost is worked again, one that is worked twice is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from . import Answer, Table, merge, plan_shard
from . import sweep as _sweep

T = TypeVar("T")
#: How many shards are done, of how many.
Progress = Callable[[int, int], object]
#: The arguments of a question, those by place and those by name.
Asked = tuple[tuple[Any, ...], dict[str, Any]]
#: What is worked for a shard: its number, how many there are, and the arguments of the question.
Shard = Callable[[int, int, tuple[Any, ...], dict[str, Any]], T]
#: A cluster: works every shard and hands the results over in their order.
Run = Callable[[Shard[Any], Asked], list[Any]]

#: More shards than cores: a slow one holds up nothing.
PER_CORE = 4


def swept(i: int, n: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Table:
    return _sweep(*args, shard=(i, n), threads=1, **kwargs)


def planned(i: int, n: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    return plan_shard((i, n), *args, **kwargs)


def sweep(run: Run, question: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Table:
    tables: list[Table] = run(swept, ((question, *args), kwargs))
    return merge(tables)


def plan(run: Run, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer[Any]:
    texts: list[str] = run(planned, (args, kwargs))
    return merge(texts, catalog=kwargs.get("catalog"))
