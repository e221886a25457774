# %% [markdown]
# # A mixture of experts on a rack
# DeepSeek V3 on a GB200 NVL72: where the time of a step goes, what each chip holds, and why the rack matters.

# %%
import rackmath

step = rackmath.step("deepseek-v3", on="gb200-nvl72", batch=4096, context="8k")
step

# %%
layout = rackmath.layout("deepseek-v3", on="gb200-nvl72", dp=64, ep=64)
layout

# %% [markdown]
# Time against batch: flat while weights are read, rising once arithmetic binds.

# %%
rows = rackmath.sweep("step", "deepseek-v3", on="gb200-nvl72", over={"batch": "1..65536*4"}, columns=["time_s"])
times = rows["time_s"]
assert times == sorted(times)
print([f"{1e3 * t:.2f} ms" for t in times])

# %%
rackmath.racks("deepseek-v3", "hgx-h100", "gb200-nvl72")
