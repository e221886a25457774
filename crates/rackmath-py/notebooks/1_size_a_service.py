# %% [markdown]
# # Size a service
# How many chips does a model need for its traffic, and what do users see? A plan, the same load simulated, and the price of tighter limits.

# %%
import rackmath

plan = rackmath.plan("qwen3-32b", on="16xh200", isl="4k", osl=500, tpot="30ms", ttft="1s", rate=10, degrees="powers")
plan

# %% [markdown]
# The best deployment under the same requests, one by one, as the engine schedules them.

# %%
run = rackmath.simulate("qwen3-32b", on="1xh200", isl="4k", osl=500, rate=1, requests=2000, seed=1)
print(run.text())

# %% [markdown]
# What a tighter limit costs: one estimate for each number of requests in flight.

# %%
rows = rackmath.sweep(
    "estimate",
    "qwen3-32b",
    on="8xh200",
    isl="4k",
    osl=500,
    over={"concurrency": "1..256*2", "tp": [1, 2, 4, 8]},
    columns=["served.tpot_ms.value", "served.output_tok_s_per_chip.value"],
)
fast = [
    (tok_s, concurrency, tp)
    for tok_s, tpot, concurrency, tp in zip(
        rows["served.output_tok_s_per_chip.value"], rows["served.tpot_ms.value"], rows["concurrency"], rows["tp"], strict=True
    )
    if tpot < 20
]
assert fast
print("best below 20 ms a token: %.0f tokens a second and chip at concurrency %d, tp %d" % max(fast))
rows
