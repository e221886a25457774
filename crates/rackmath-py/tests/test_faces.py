"""Every question from Python: the bytes of the terminal, errors as exceptions, rows as Arrow."""

from __future__ import annotations

import json
import math
import os
import pickle
import shutil
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import plain
import pytest
from plain import FILES, QUESTIONS, SETTING

import rackmath

ROOT = Path(__file__).resolve().parents[3]
BINARY = os.environ.get("RACKMATH", str(ROOT / "target/debug/rackmath"))
def terminal(line: str) -> str:
    return plain.terminal(BINARY, line)


needs_binary = pytest.mark.skipif(not shutil.which(BINARY), reason=f"no binary at {BINARY}: cargo build")


@needs_binary
@pytest.mark.parametrize("name", [q for q in QUESTIONS if q not in FILES])
def test_every_question_has_the_bytes_of_the_terminal(name: str) -> None:
    plain.compare(BINARY, name)


def test_nonsense_is_refused() -> None:
    plain.refused()


@needs_binary
def test_questions_of_files_take_paths_and_texts(tmp_path: Path) -> None:
    trace = tmp_path / "requests.csv"
    trace.write_text("arrival_ms,input_tokens,output_tokens\n" + "".join(f"{i * 100},{100 + i},{20 + i}\n" for i in range(50)))
    assert rackmath.trace(trace).json() == terminal(f"trace {trace} --json")
    plan = tmp_path / "plan.json"
    terminal(f"plan llama-3.1-8b --on 1xh100 --aggregated --save {plan}")
    assert rackmath.whatif(plan, set=["tpot=20ms"]).json() == terminal(f"whatif {plan} --set tpot=20ms --json")


def test_an_answer_is_a_dictionary_and_a_page() -> None:
    answer = rackmath.estimate("llama-3.1-70b", on="8xh200", tp=8, concurrency=64)
    assert answer.data == json.loads(answer.json())
    assert answer["served"]["tpot_ms"]["value"] > 0 and "served" in answer and answer.get("nothing") is None
    assert set(answer) == set(answer.keys()) and len(answer) > 10
    assert "<pre" in answer._repr_html_() and "<svg" in rackmath.curve()._repr_html_()
    with pytest.raises(KeyError, match="did you mean"):
        answer["servd"]


def test_what_cannot_be_is_an_error_with_its_field_and_a_hint() -> None:
    with pytest.raises(rackmath.Error) as caught:
        rackmath.estimate("llama-3.1-7b")
    assert "llama-3.1-7b" in caught.value.problem and caught.value.hint and "nearest" in caught.value.hint
    with pytest.raises(rackmath.Error, match="did you mean \"concurrency\""):
        rackmath.estimate(concurency=3)
    with pytest.raises(rackmath.Error) as caught:
        rackmath.estimate(isl=-5)
    assert caught.value.field and "isl" in caught.value.field
    for wrong in (math.nan, math.inf, -math.inf, 2**70, -(2**70)):
        with pytest.raises(rackmath.Error):
            rackmath.estimate(concurrency=wrong)
    for strange in (object(), {1: 2}, lambda: 1):
        with pytest.raises((TypeError, rackmath.Error)):
            rackmath.estimate(concurrency=strange)  # type: ignore[arg-type]
    with pytest.raises(rackmath.Error, match="not a folder"):
        rackmath.step(catalog="/no/such/folder")
    with pytest.raises(TypeError):
        rackmath.step("a", "b", "c", "d")  # type: ignore[call-arg]
    with pytest.raises(rackmath.Error):
        rackmath.ask("step", "{")
    with pytest.raises(rackmath.Error, match="did you mean"):
        rackmath.ask("stp")


def test_a_config_comes_as_a_path_or_a_dict(tmp_path: Path) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256, "torch_dtype": "bfloat16",
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    by_dict, by_path = rackmath.step(config, on="h100"), rackmath.step(path, on="h100")
    assert by_dict["time_s"] == by_path["time_s"] == rackmath.step(str(tmp_path), on="h100")["time_s"]
    mine = tmp_path / "catalogue" / "models"
    mine.mkdir(parents=True)
    assert rackmath.step(catalog=tmp_path / "catalogue").json() == rackmath.step(catalog=rackmath.Catalog()).json()


@needs_binary
def test_ask_gives_the_library_s_bytes() -> None:
    request = {"batch": 64, "setting": {"model": "qwen3-32b"}}
    for given in (request, json.dumps(request), json.dumps(request).encode()):
        assert rackmath.ask("step", given) == terminal("step qwen3-32b --batch 64 --json")


OVER: dict[str, Any] = {"concurrency": "1..12", "tp": [1, 2, 3]}


@needs_binary
def test_a_sweep_has_the_rows_of_the_terminal_whole_and_in_shards() -> None:
    line = "sweep estimate llama-3.1-8b --on 8xh100 --over concurrency=1..12 --over tp=1,2,3"
    whole = rackmath.sweep("estimate", **SETTING, over=OVER)
    assert whole.csv() == terminal(line) and whole.jsonl() == terminal(f"{line} --format jsonl")
    parts = [rackmath.sweep("estimate", **SETTING, over=OVER, shard=(i, 5), threads=1) for i in (4, 2, 5, 1, 3, 2)]
    assert rackmath.merge([pickle.loads(pickle.dumps(part)) for part in parts]) == whole
    beside: list[pickle.PickleBuffer] = []
    kept = pickle.dumps(whole, protocol=5, buffer_callback=beside.append)
    assert len(beside) == 3 * len(whole.column_names) and pickle.loads(kept, buffers=beside) == whole
    with pytest.raises(rackmath.Error, match="also shard 3"):
        rackmath.merge(parts[:4])
    space = rackmath.sweep("plan", **SETTING, tpot="20ms", aggregated=True)
    assert space.csv() == terminal("sweep plan llama-3.1-8b --on 8xh100 --tpot 20ms --aggregated")
    with pytest.raises(rackmath.Error, match="did you mean"):
        rackmath.sweep("estimate", over={"concurency": "1..4"})


def test_plans_in_shards_are_the_plan() -> None:
    asked: dict[str, Any] = {**SETTING, "tpot": "20ms"}
    parts = [rackmath.plan_shard((i, 3), **asked) for i in (3, 1, 2, 1)]
    assert rackmath.merge(parts).json() == rackmath.plan(**asked).json()


def test_rows_are_arrow() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    rows = rackmath.sweep("estimate", **SETTING, over=OVER)
    table = pyarrow.table(rows)
    table.validate(full=True)
    assert table.num_rows == len(rows) == 36 and table.column_names == rows.column_names
    for name in rows.column_names:
        own = [None if isinstance(x, float) and math.isnan(x) else x for x in rows[name]]
        assert table[name].to_pylist() == own, name
    del rows
    assert table["concurrency"].to_pylist()[:4] == [1.0, 1.0, 1.0, 2.0]
    run = rackmath.simulate("llama-3.1-8b", on="1xh200", rate=3, requests=300, each=True)
    met = pyarrow.table(run)
    met.validate(full=True)
    assert met.num_rows == len(run["each"]) == 300
    # Taken and let go, never taken, taken twice.
    for _ in range(100):
        table.slice(3)
        run.__arrow_c_stream__()
    assert pyarrow.table(run) == met


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_other_libraries_take_rows(library: str) -> None:
    taken = pytest.importorskip(library)
    rows = rackmath.sweep("estimate", **SETTING, over=OVER)
    frame = taken.DataFrame(rows) if library == "polars" else taken.DataFrame.from_arrow(rows)
    assert list(frame["concurrency"]) == rows["concurrency"] and list(frame.columns) == rows.column_names


def test_other_threads_run_meanwhile_and_answers_agree() -> None:
    beats = []
    stop = threading.Event()

    def beat() -> None:
        while not stop.is_set():
            beats.append(time.monotonic())
            time.sleep(0.005)

    heart = threading.Thread(target=beat)
    heart.start()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: rackmath.sweep("estimate", **SETTING, over={"concurrency": "1..500"}, threads=1).csv(), range(4)))
    stop.set()
    heart.join()
    assert len(set(answers)) == 1 and len(beats) > 5


def test_ctrl_c_ends_long_work() -> None:
    script = "import rackmath; print('go', flush=True); rackmath.simulate('llama-3.1-8b', on='1xh200', rate=9, requests=50_000_000)"
    import signal
    import sys

    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "go\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=120)
    assert "KeyboardInterrupt" in err, err


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    rackmath.sweep("estimate", **SETTING, over={"concurrency": "1..2000"}, progress=lambda done, of: told.append((done, of)))
    assert told == sorted(told) and all(of == 2000 for _, of in told)
