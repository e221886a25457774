# %% [markdown]
# # Plan a training run
# How large a model for a budget, how long the run takes, and what failures cost.

# %%
import rackmath

laws = rackmath.scaling(flop=1e25)
laws

# %%
run = rackmath.train("llama-3.1-70b", on="hgx-h100", chips=512, tp=4, pp=4, batch=512, tokens="15T")
print(run.text())

# %% [markdown]
# The same with failures: how often to write a checkpoint.

# %%
failures = rackmath.goodput(chips=16384, stall="30s", restart="10min")
failures

# %%
rows = rackmath.sweep("goodput", stall="30s", restart="10min", over={"chips": "1024..65536*2"}, columns=["all"])
print(rows.column_names)
assert len(rows) == 7
