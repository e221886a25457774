"""What NVIDIA's aiconfigurator predicts for the InferenceX rows of a folder of measurements.

    pip install aiconfigurator
    python price_rows.py FOLDER OUT.csv

A row takes a second or two; where OUT.csv is there already, its last rows are gone on from. Writes one line for each row it prices: the table, the row's number in it (from 1), TPOT and TTFT in milliseconds. Rows it has
no answer for are counted by reason on standard error. `rackmath-calibrate score all FOLDER --against OUT.csv` holds both
predictions against what was measured.

A row is asked as it ran: lengths 0.9 of the nominal ones, as InferenceX draws them; requests in flight spread over the
attention groups; formats as the table states them, else those of the model's checkpoint; the tool's current database of the
engine, whichever release ran. Rows with drafts, of two pools and of tier C are left out, as they are by the score.
"""

import collections
import csv
import functools
import logging
import math
import os
import sys
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)

from aiconfigurator.cli.api import cli_estimate  # noqa: E402

TABLES = ["inferencex_2026_07.csv", "inferencex_2026_07_dump.csv", "inferencemax_pareto.csv"]
SYSTEMS = ["h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm", "gb200", "gb300"]
ENGINES = ["vllm", "sglang", "trtllm"]
DRAWN = 0.9

# Words of the tables that are formats of the tool; others leave the checkpoint's own.
FORMATS = ["bfloat16", "fp8", "fp8_block", "nvfp4"]
# Models whose checkpoint states its formats itself.
OWN = ["openai/gpt-oss-120b", "deepseek-ai/DeepSeek-V4-Pro"]
# Where only one word stands for all weights: 8 bits are 128-block scales but for models that were quantised as a whole.
WHOLE = ["meta-llama/Llama-3.1-70B", "meta-llama/Llama-3.3-70B"]
NAMES = {
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "meta-llama/Llama-3.3-70B": "meta-llama/Meta-Llama-3.1-70B",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "meta-llama/Meta-Llama-3.1-8B",
}


def number(row, column, default=None):
    try:
        return float(row.get(column) or "")
    except ValueError:
        return default


def formats(row):
    """The formats of products and of experts."""
    model, stated = row["model"], (row.get("gemm_quant_mode", ""), row.get("moe_quant_mode", ""))
    if model in OWN:
        return None, None
    if not stated[0]:
        eight = "fp8" if model in WHOLE else "fp8_block"
        word = {"fp8": eight, "fp4": "nvfp4", "bf16": "bfloat16"}.get(row["precision"])
        stated = (word, word)
    return tuple(word if word in FORMATS else None for word in stated)


@functools.cache
def estimate(**asked):
    """Both times, or the name of what the tool raised: it raises whatever it meets, and each kind is counted."""
    try:
        answer = cli_estimate(**asked)
    except Exception as why:
        return None, type(why).__name__
    return (answer.tpot, answer.ttft), ""


def priced(row):
    """TPOT and TTFT of a row, or why there are none."""
    if row.get("mode") != "agg" or row.get("tier") == "C":
        return None, "two pools or tier C"
    if row.get("spec_decoding", "none") not in ("", "none"):
        return None, "drafts"
    if row["hardware"] not in SYSTEMS or row["engine"] not in ENGINES:
        return None, f"{row['engine']} on {row['hardware']}"
    chips, pp = int(number(row, "n_gpus", 1)), int(number(row, "pp_size", 1)) or 1
    stage = max(chips // pp, 1)
    groups = int(number(row, "attention_dp_size", 1)) or 1
    dp = min(groups, stage) if groups > 1 else max(stage // (int(number(row, "tp_size", 1)) or 1), 1)
    ep = min(int(number(row, "moe_ep_size", 1)) or 1, stage)
    share = 1.0 if row.get("origin", "").startswith("NVIDIA") else DRAWN
    gemm, moe = formats(row)
    asked = {
        "model_path": NAMES.get(row["model"], row["model"]),
        "system_name": row["hardware"],
        "backend_name": row["engine"],
        "isl": round(number(row, "isl") * share),
        "osl": round(number(row, "osl") * share),
        "batch_size": max(math.ceil(number(row, "concurrency") / dp), 1),
        "tp_size": max(stage // dp, 1),
        "pp_size": pp,
        "attention_dp_size": dp,
        "moe_tp_size": max(stage // ep, 1),
        "moe_ep_size": ep,
        "gemm_quant_mode": gemm,
        "moe_quant_mode": moe,
    }
    answer, why = estimate(**asked)
    return answer, f"{row['model']}, {row['engine']} on {row['hardware']}: {why}"


def done(out):
    """The last row of each table that an earlier run wrote to the file."""
    last = {}
    if os.path.exists(out):
        with open(out, newline="") as file:
            for line in csv.DictReader(file):
                last[line["file"]] = int(line["row"])
    return last


def main(folder, out):
    refused, last = collections.Counter(), done(out)
    with open(out, "a", newline="") as file:
        writer = csv.writer(file)
        if not last:
            writer.writerow(["file", "row", "tpot_ms", "ttft_ms"])
        for table in TABLES:
            path = os.path.join(folder, table)
            if not os.path.exists(path):
                continue
            with open(path, newline="") as rows:
                for n, row in enumerate(csv.DictReader(rows), start=1):
                    if n <= last.get(table, 0):
                        continue
                    answer, why = priced(row)
                    if answer is None:
                        refused[f"{table}: {why}"] += 1
                    else:
                        writer.writerow([table, n, f"{answer[0]:.4f}", f"{answer[1]:.4f}"])
                        file.flush()
    for why, n in refused.most_common():
        print(f"{n:6}  {why}", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
