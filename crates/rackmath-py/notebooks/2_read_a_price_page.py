# %% [markdown]
# # Read a price page
# What a list of prices says: the bill of a workload, and what must hold of the model behind it.

# %%
import rackmath

bill = rackmath.price("opus-4.8", turns=20, gap="2min")
bill

# %% [markdown]
# From prices back to the model: which sizes would make such a list pay, with error bars.

# %%
deduced = rackmath.deduce("gpt-5.5")
deduced

# %% [markdown]
# The method on a model whose size is known, without telling it.

# %%
blind = rackmath.deduce(blind="deepseek-v3.1")
print(blind.text())
assert "figure" in blind
