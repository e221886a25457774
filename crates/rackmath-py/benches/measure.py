"""What Python adds to the engine: `python measure.py RACKMATH_BINARY [--points N] [--ray]`. Needs a quiet machine.

Prints the overhead of a warm call over the engine's own time, the processor time of a sweep into Arrow against the binary's, and with
`--ray` the speed of two workers against one.
"""

from __future__ import annotations

import argparse
import logging
import resource
import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pyarrow

import rackmath

ASKED: dict[str, Any] = {"model": "llama-3.1-70b", "on": "8xh200", "tp": 8, "concurrency": 64, "changes": False}


def timed(call: Callable[[], object], n: int) -> float:
    """The median of n calls, in microseconds."""
    times = []
    for _ in range(n):
        began = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - began)
    return statistics.median(times) / 1e3


def cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def overhead() -> None:
    call = timed(lambda: rackmath.estimate(**ASKED), 2000)
    # One thread, so that its time over its points is the engine's own for a request and its answer as JSON.
    points = 2000
    seeds = {"concurrency": f"64..{64 + (points - 1) / 1e4}+0.0001"}
    began = time.perf_counter_ns()
    asked = {name: value for name, value in ASKED.items() if name != "concurrency"}
    rows = rackmath.sweep("estimate", **asked, over=seeds, columns=["served.tpot_ms.value"], threads=1, progress=False)
    own = (time.perf_counter_ns() - began) / 1e3 / len(rows)
    print(f"a warm estimate from Python {call:.0f} us; a point of a sweep {own:.0f} us; overhead {call - own:.0f} us")


def swept(binary: str, points: int) -> None:
    over = {"concurrency": f"1..{points // 4}", "tp": "1,2,4,8"}
    before = cpu(resource.RUSAGE_SELF)
    table = pyarrow.table(rackmath.sweep("estimate", "llama-3.1-8b", on="8xh200", over=over, progress=False))
    ours = cpu(resource.RUSAGE_SELF) - before
    axes = [word for name, values in over.items() for word in ("--over", f"{name}={values}")]
    before = cpu(resource.RUSAGE_CHILDREN)
    subprocess.run([binary, "sweep", "estimate", "llama-3.1-8b", "--on", "8xh200", *axes, "-o", "/dev/null", "--format", "csv"], check=True, stderr=subprocess.DEVNULL)
    theirs = cpu(resource.RUSAGE_CHILDREN) - before
    print(f"{table.num_rows} estimates into Arrow: {ours:.1f} s of CPU, the binary {theirs:.1f} s, {ours / theirs:.2f} times")


def on_ray(points: int) -> None:
    import ray

    import rackmath.ray

    times = []
    for workers in (1, 2):
        ray.init(num_cpus=workers, include_dashboard=False, logging_level=logging.ERROR)
        over = {"concurrency": f"1..{points // 4}", "tp": "1,2,4,8"}
        # Workers that are there and have read the catalogue.
        rackmath.ray.sweep("estimate", "llama-3.1-8b", on="8xh200", over={"concurrency": "1..64", "tp": "1,2,4,8"}, shards=8)
        began = time.perf_counter()
        rackmath.ray.sweep("estimate", "llama-3.1-8b", on="8xh200", over=over, shards=16)
        times.append(time.perf_counter() - began)
        ray.shutdown()
    print(f"Ray, {points} estimates: one worker {times[0]:.1f} s, two {times[1]:.1f} s, {times[0] / times[1]:.2f} times as fast")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--ray", action="store_true")
    given = parser.parse_args()
    overhead()
    swept(given.binary, given.points)
    if given.ray:
        on_ray(given.points // 10)
