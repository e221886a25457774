"""What needs nothing but Python: every question from Python has the bytes of the terminal, and nonsense is an exception.

`python plain.py RACKMATH_BINARY`, with the package on the path; pytest has the same and more in `test_faces.py`.
"""

from __future__ import annotations

import math
import shlex
import subprocess
import sys
from typing import Any

import rackmath

SETTING: dict[str, Any] = {"model": "llama-3.1-8b", "on": "8xh100"}
#: What each question is asked with, as arguments and as flags; those not named stand by default.
ASKED: dict[str, tuple[dict[str, Any], str]] = {
    "estimate": ({"model": "llama-3.1-70b", "on": "8xh200", "tp": 8, "concurrency": 64}, "llama-3.1-70b --on 8xh200 --tp 8 --concurrency 64"),
    "estimate_sweep": ({**SETTING, "points": 5}, "llama-3.1-8b --on 8xh100 --points 5"),
    "plan": ({**SETTING, "tpot": "20ms", "aggregated": True}, "llama-3.1-8b --on 8xh100 --tpot 20ms --aggregated"),
    "compare": ({"model": "llama-3.1-8b", "on": "1xh100,1xh200", "aggregated": True}, "llama-3.1-8b --on 1xh100,1xh200 --aggregated"),
    "frontier": ({"model": "llama-3.1-8b", "on": "1xh100", "aggregated": True}, "llama-3.1-8b --on 1xh100 --aggregated"),
    "hardware": (
        {"model": "llama-3.1-8b", "among": ["h100", "l40s"], "chips": 1, "aggregated": True, "no_flips": True},
        "llama-3.1-8b --among h100,l40s --chips 1 --aggregated --no-flips",
    ),
    "outlook": ({"model": "llama-3.1-8b", "on": "1xh100", "aggregated": True}, "llama-3.1-8b --on 1xh100 --aggregated"),
    "simulate": ({"model": "llama-3.1-8b", "on": "1xh200", "rate": 3, "requests": 300}, "llama-3.1-8b --on 1xh200 --rate 3 --requests 300"),
    "validate": ({"tables": ["vllm-405b"]}, "vllm-405b"),
    "check": (
        {"command": "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32768", "on": "h100"},
        "'vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32768' --on h100",
    ),
    "forensics": ({"run": "deepseek-v3"}, "deepseek-v3"),
    "fleet": ({"requests_s": 1000}, "--requests-s 1000"),
    "mfu": ({"mfu": "40%"}, "--mfu 40%"),
    "models": ({"names": ["qwen3-32b"]}, "qwen3-32b"),
    "chips": ({"names": ["h100"]}, "h100"),
    "lecture": ({}, ""),
    "reversible": ({"depth": 4, "steps": 2}, "--depth 4 --steps 2"),
    "train": ({"model": "llama-3.1-70b", "chips": 64, "tp": 8, "pp": 4}, "llama-3.1-70b --chips 64 --tp 8 --pp 4"),
    "capacity": ({"model": "llama-3.1-8b", "on": "1xh100", "ttft": "1s", "tpot": "40ms"}, "llama-3.1-8b --on 1xh100 --ttft 1s --tpot 40ms"),
}
#: Need a file.
FILES = {"whatif", "trace"}
QUESTIONS = sorted(name for name in rackmath.__all__ if isinstance(getattr(rackmath, name), rackmath.Question))


def terminal(binary: str, line: str) -> str:
    return subprocess.run([binary, *shlex.split(line), "--no-config", "--width", "100"], capture_output=True, text=True, check=True).stdout


def compare(binary: str, name: str) -> None:
    """One question, as JSON and as a page."""
    arguments, flags = ASKED.get(name, ({}, ""))
    answer = rackmath.question(name)(**arguments)
    line = f"{name.replace('_', '-')} {flags}"
    assert answer.json() == terminal(binary, f"{line} --json"), name
    assert answer.text(100) == terminal(binary, line), name


def refused() -> None:
    """What cannot be, one after the other: never another exception, never the end of the interpreter."""
    wrong: list[Any] = [math.nan, math.inf, 2**70, -(2**70), -1, "", "many", [], {}, object(), {1: 2}, b"x", "\0", "1" * 5000]
    for one in wrong:
        for call in (
            lambda: rackmath.estimate(concurrency=one),
            lambda: rackmath.estimate(one, on=one),
            lambda: rackmath.step(catalog=one),
            lambda: rackmath.ask("step", one),
            lambda: rackmath.sweep("step", over={"batch": one}),
        ):
            try:
                call()
            except (rackmath.Error, TypeError):
                pass


if __name__ == "__main__":
    for question in QUESTIONS:
        if question not in FILES:
            compare(sys.argv[1], question)
    refused()
    print(f"{len(QUESTIONS)} questions have the bytes of the terminal")
