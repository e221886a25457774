"""Times vision towers with random weights in plain PyTorch: prints encoders_h200.csv.

Run on one NVIDIA H200 with PyTorch 2.11.0 (CUDA 13.0) on 2026-11-16: 16-bit floats, scaled_dot_product_attention, kernel by
kernel, ten passes after three. Shapes of Qwen2.5-VL (windows of 64 patches in 28 of 32 layers) and of Qwen3-VL's layers, with
one merger to the width of the model.
"""

import time

import torch
import torch.nn.functional as F


def bench(layers, hidden, heads, width, gated, window, full, sequences, patches, out, repeats=10):
    def rand(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02

    up = (2 if gated else 1) * width
    weights = [
        dict(qkv=rand(3 * hidden, hidden), qkv_bias=rand(3 * hidden), out=rand(hidden, hidden), out_bias=rand(hidden),
             up=rand(up, hidden), up_bias=rand(up), down=rand(hidden, width), down_bias=rand(hidden), norm=rand(hidden))
        for _ in range(layers)
    ]
    first, second, entry = rand(4 * hidden, 4 * hidden), rand(out, 4 * hidden), rand(hidden, 1176)
    turn, pixels = rand(sequences * patches, 1, hidden // heads), rand(sequences * patches, 1176)

    def run():
        x = F.linear(pixels, entry)
        for i, w in enumerate(weights):
            y = F.rms_norm(x, (hidden,), w["norm"])
            q, k, v = F.linear(y, w["qkv"], w["qkv_bias"]).view(-1, 3, heads, hidden // heads).unbind(1)
            q, k = q * turn + q, k * turn + k
            n = patches if i in full or not window else window
            q, k, v = [t.reshape(-1, n, heads, hidden // heads).transpose(1, 2) for t in (q, k, v)]
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(-1, hidden)
            x = x + F.linear(y, w["out"], w["out_bias"])
            y = F.linear(F.rms_norm(x, (hidden,), w["norm"]), w["up"], w["up_bias"])
            if gated:
                a, b = y.chunk(2, -1)
                y = F.silu(a) * b
            else:
                y = F.gelu(y)
            x = x + F.linear(y, w["down"], w["down_bias"])
        return F.linear(F.gelu(F.linear(x.view(-1, 4 * hidden), first)), second)

    with torch.no_grad():
        for _ in range(3):
            run()
        torch.cuda.synchronize()
        begin = time.time()
        for _ in range(repeats):
            run()
        torch.cuda.synchronize()
    return (time.time() - begin) / repeats * 1e3


print("model,sequences,patches,measured_ms")
for s, p in ((1, 1024), (1, 2304), (1, 6272), (2, 6272), (4, 10752), (8, 6272)):
    ms = bench(32, 1280, 16, 3420, True, 64, {7, 15, 23, 31}, s, p, 3584)
    print(f"qwen2.5-vl-7b,{s},{p},{ms:.2f}", flush=True)
for s, p in ((1, 4096), (4, 4096), (1, 576), (16, 576)):
    print(f"qwen3-vl-8b,{s},{p},{bench(27, 1152, 16, 4304, False, 0, set(), s, p, 4096):.2f}", flush=True)
