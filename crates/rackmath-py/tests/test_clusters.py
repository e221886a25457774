"""Shards over Dask, Ray, and stand-ins of a Kubernetes Indexed Job and a Slurm array: the bytes of the undivided answer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import rackmath

ROOT = Path(__file__).resolve().parents[3]
BINARY = os.environ.get("RACKMATH", str(ROOT / "target/debug/rackmath"))
SETTING: dict[str, Any] = {"model": "llama-3.1-8b", "on": "8xh100"}
OVER: dict[str, Any] = {"concurrency": "1..40", "tp": [1, 2, 4, 8]}
needs_binary = pytest.mark.skipif(not shutil.which(BINARY), reason=f"no binary at {BINARY}: cargo build")


def whole() -> str:
    return rackmath.sweep("estimate", **SETTING, over=OVER).csv()


def test_dask() -> None:
    distributed = pytest.importorskip("distributed")
    import rackmath.dask

    told: list[int] = []
    with distributed.Client(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as client:
        rows = rackmath.dask.sweep("estimate", **SETTING, over=OVER, client=client, shards=7, progress=lambda done, _: told.append(done))
        plan = rackmath.dask.plan(**SETTING, tpot="20ms", aggregated=True, client=client, shards=3)
        runs = rackmath.dask.simulate("llama-3.1-8b", on="1xh200", rate=3, requests=200, seeds=[1, 2], client=client, shards=2)
    assert rows.csv() == whole() and told == list(range(1, 8))
    assert plan.json() == rackmath.plan(**SETTING, tpot="20ms", aggregated=True).json()
    assert runs["seed"] == [1, 2]


@pytest.mark.skipif("RACKMATH_RAY" not in os.environ, reason="Ray starts a cluster of its own: RACKMATH_RAY=1, as .ci/python sets once")
def test_ray_with_a_worker_killed_in_the_middle(tmp_path: Path) -> None:
    import ray  # type: ignore[import-untyped,unused-ignore]

    import rackmath.ray

    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100_000_000)
    try:
        assert rackmath.ray.sweep("estimate", **SETTING, over=OVER, shards=5).csv() == whole()
        assert rackmath.ray.plan(**SETTING, tpot="20ms", aggregated=True, shards=3).json() == rackmath.plan(**SETTING, tpot="20ms", aggregated=True).json()
        fatal = tmp_path / "killed"

        def dies_once(i: int, n: int, args: Any, kwargs: Any) -> Any:
            if i == 2 and not fatal.exists():
                fatal.touch()
                os._exit(1)
            return rackmath.sweep(*args, shard=(i, n), threads=1, **kwargs)

        parts = rackmath.ray._run(dies_once, (("estimate",), {**SETTING, "over": OVER}), 5, None, None)
        assert fatal.exists() and rackmath.merge(parts).csv() == whole()
    finally:
        ray.shutdown()


LINE = "estimate llama-3.1-8b --on 8xh100 --over concurrency=1..40 --over tp=1,2,4,8"


@needs_binary
def test_a_slurm_array(tmp_path: Path) -> None:
    """What sbatch sets for each task of --array=11-15, out of order, one of them twice."""
    shared = {**os.environ, "RACKMATH": BINARY, "PARTS": str(tmp_path / "parts"), "ROWS": str(tmp_path / "rows.csv")}
    script = str(ROOT / "deploy/slurm-sweep.sh")
    for task in (13, 11, 15, 11, 12, 14):
        env = {**shared, "SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_MIN": "11", "SLURM_ARRAY_TASK_COUNT": "5"}
        subprocess.run(["bash", script, *LINE.split()], env=env, check=True, capture_output=True)
    subprocess.run(["bash", script, "merge"], env=shared, check=True, capture_output=True)
    assert (tmp_path / "rows.csv").read_text() == whole()


@needs_binary
def test_an_indexed_job(tmp_path: Path) -> None:
    """The command of the template itself, with the variable that Kubernetes sets, in another folder."""
    text = (ROOT / "deploy/kubernetes-sweep.yaml").read_text()
    lines = [re.findall(r'"[^"]*"|[^\s,]+', found.replace("\n", " ")) for found in re.findall(r"args: \[(.*?)\]", text, re.S)]
    shard, merge = [[re.sub("^/rows", str(tmp_path), word.strip('"')) for word in line] for line in lines]
    completions = int(re.search(r"completions: (\d+)", text).group(1))  # type: ignore[union-attr]
    assert shard[shard.index("--shard") + 1] == f"auto/{completions}"
    for index in reversed(range(completions)):
        subprocess.run([BINARY, *shard], env={**os.environ, "JOB_COMPLETION_INDEX": str(index)}, check=True, capture_output=True)
    missing = sorted((tmp_path / "parts").iterdir())[3]
    kept = missing.read_bytes()
    missing.unlink()
    early = subprocess.run([BINARY, *merge], capture_output=True, text=True)
    assert early.returncode == 2 and "also shard 4" in early.stderr
    missing.write_bytes(kept)
    subprocess.run([BINARY, *merge], check=True, capture_output=True)
    undivided = subprocess.run([BINARY, *shard[: shard.index("--shard")]], check=True, capture_output=True, text=True).stdout
    assert (tmp_path / "rows.csv").read_text() == undivided
