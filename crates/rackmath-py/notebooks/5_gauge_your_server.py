# %% [markdown]
# # Gauge your server
# Would a command line start, what should it deliver, and how far off is a prediction as a rule?

# %%
import rackmath

check = rackmath.check("vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32k", on="h100")
check

# %%
estimate = rackmath.estimate("llama-3.1-8b", on="1xh100", concurrency=32, isl=1024, osl=256)
served = estimate["served"]
tpot = served["tpot_ms"]
print(f"a token every {tpot['value']:.1f} ms, four in five measurements between {tpot['low']:.1f} and {tpot['high']:.1f}")
assert tpot["low"] <= tpot["value"] <= tpot["high"]

# %% [markdown]
# What was measured, put beside it: give your own figure here.

# %%
measured_ms = 8.9
print(f"measured over predicted: {measured_ms / tpot['value']:.2f}")

# %%
rackmath.capacity("llama-3.1-8b", on="1xh100", ttft="1s", tpot="40ms")
