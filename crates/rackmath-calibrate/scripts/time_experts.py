"""Times expert layers, and whole steps of models made of them, in PyTorch on the GPU at hand.

    python3 time_experts.py OUT [seconds]

writes OUT/kernel_moe_torch.csv, in the columns of the other tables of expert kernels, so that `rackmath-calibrate fit moe OUT` reads
it (`../data/kernel_moe_torch.csv` is what one H200 gave, 2026-11-19), and OUT/steps.csv with whole passes. Needs PyTorch 2.11 and nothing from the network: weights and tokens are random numbers.

An expert layer is: router, top-k, softmax, sort by expert, gather, a grouped product, SiLU and product, a grouped product, weighted
sum. Layers with weights of their own stand behind each other in one CUDA graph, so that no cache serves them and several draws are
averaged; times are medians of replays over the number of layers.
"""
import csv, gc, statistics, sys, time
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

OUT, LIMIT = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 300.0
BEGUN = time.time()
DEV, BF = "cuda", torch.bfloat16
COLUMNS = "system,backend,backend_version,kernel_source,moe_dtype,model_shape,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,distribution,num_tokens,latency_us"
# name, hidden, inter, experts, top k
SHAPES = [
    ("mixtral-8x7b", 4096, 14336, 8, 2),
    ("qwen3-30b-a3b", 2048, 768, 128, 8),
    ("qwen3-235b-a22b", 4096, 1536, 128, 8),
    ("gpt-oss-120b", 2880, 2880, 128, 4),
    ("deepseek-v2-lite", 2048, 1408, 64, 6),
    ("olmoe-1b-7b", 2048, 1024, 64, 8),
    ("phi-3.5-moe", 4096, 6400, 16, 2),
    ("llama-4-scout", 5120, 8192, 16, 1),
]
TOKENS = [1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 8192, 16384, 32768]
# name, layers, hidden, heads, kv heads, head size, inter, experts, top k, words
MODELS = [
    ("qwen3-30b-a3b", 48, 2048, 32, 4, 128, 768, 128, 8, 151936),
    ("mixtral-8x7b", 32, 4096, 32, 8, 128, 14336, 8, 2, 32000),
]


def left():
    return LIMIT - (time.time() - BEGUN)


class Experts(torch.nn.Module):
    def __init__(self, h, i, e, k):
        super().__init__()
        self.k, self.e = k, e
        self.router = torch.randn(h, e, device=DEV, dtype=BF) / h**0.5
        self.up = torch.empty(e, h, 2 * i, device=DEV, dtype=BF).normal_(0, h**-0.5)
        self.down = torch.empty(e, i, h, device=DEV, dtype=BF).normal_(0, i**-0.5)

    def forward(self, x):
        w, chosen = torch.topk(x @ self.router, self.k, dim=-1)
        w = torch.softmax(w.float(), -1).to(BF)
        flat = chosen.reshape(-1)
        order = torch.argsort(flat)
        rows = order // self.k
        # `bincount` asks the host for the largest, which a graph cannot.
        counts = torch.zeros(self.e, device=DEV, dtype=torch.int32).scatter_add_(0, flat, torch.ones_like(flat, dtype=torch.int32))
        ends = counts.cumsum(0).to(torch.int32)
        y = torch._grouped_mm(x[rows], self.up, offs=ends)
        gate, up = y.chunk(2, -1)
        y = torch._grouped_mm(F.silu(gate) * up, self.down, offs=ends)
        out = torch.zeros_like(x)
        return out.index_add_(0, rows, y * w.reshape(-1)[order].unsqueeze(-1))


def timed(body, least=6):
    """Median seconds of a replay."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()
    graph.replay()
    torch.cuda.synchronize()
    times = []
    while len(times) < least or (sum(times) < 0.15 and len(times) < 40):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        graph.replay()
        b.record()
        b.synchronize()
        times.append(a.elapsed_time(b) / 1e3)
    del graph
    return statistics.median(times)


def experts(writer, file):
    for name, h, i, e, k in SHAPES:
        size = e * 3 * h * i * 2
        copies = max(2, min(6, int(12e9 / size)))
        layers = [Experts(h, i, e, k) for _ in range(copies)]
        for t in TOKENS:
            if left() < 0.42 * LIMIT:
                return
            xs = [torch.randn(t, h, device=DEV, dtype=BF) for _ in range(copies)]
            s = timed(lambda: [layer(x) for layer, x in zip(layers, xs)]) / copies
            writer.writerow([torch.cuda.get_device_name(), "torch", torch.__version__, "grouped_mm", "bfloat16", name, h, i, k, e, 1, 1, "random", t, f"{s * 1e6:.2f}"])
            file.flush()
        del layers
        gc.collect()
        torch.cuda.empty_cache()


class Layer(torch.nn.Module):
    def __init__(self, h, heads, kv, d, i, e, k):
        super().__init__()
        self.heads, self.kv, self.d = heads, kv, d
        self.n1, self.n2 = (torch.ones(h, device=DEV, dtype=BF) for _ in range(2))
        self.qkv = torch.empty(h, (heads + 2 * kv) * d, device=DEV, dtype=BF).normal_(0, h**-0.5)
        self.out = torch.empty(heads * d, h, device=DEV, dtype=BF).normal_(0, (heads * d) ** -0.5)
        self.ffn = Experts(h, i, e, k)

    def forward(self, x, b, cache, s):
        y = F.rms_norm(x, (x.shape[-1],), self.n1) @ self.qkv
        q, k, v = y.split([self.heads * self.d, self.kv * self.d, self.kv * self.d], -1)
        n = x.shape[0] // b
        q = q.reshape(b, n, self.heads, self.d).transpose(1, 2)
        k = k.reshape(b, n, self.kv, self.d).transpose(1, 2)
        v = v.reshape(b, n, self.kv, self.d).transpose(1, 2)
        if cache is not None:
            cache[0][:, :, s - 1 : s].copy_(k)
            cache[1][:, :, s - 1 : s].copy_(v)
            k, v = cache
        with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION]):
            a = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None, enable_gqa=True)
        x = x + a.transpose(1, 2).reshape(x.shape[0], -1) @ self.out
        return x + self.ffn(F.rms_norm(x, (x.shape[-1],), self.n2))


def steps(writer, file):
    for name, depth, h, heads, kv, d, i, e, k, words in MODELS:
        layers = [Layer(h, heads, kv, d, i, e, k) for _ in range(depth)]
        table = torch.empty(words, h, device=DEV, dtype=BF).normal_()
        head = torch.empty(h, words, device=DEV, dtype=BF).normal_(0, h**-0.5)

        def forward(ids, b, caches, s):
            x = F.embedding(ids, table)
            for n, layer in enumerate(layers):
                x = layer(x, b, None if caches is None else caches[n], s)
            return (x @ head).argmax(-1)

        per_token = depth * 2 * kv * d * 2
        points = [("decode", b, s) for s in (512, 2048, 8192) for b in (1, 4, 16, 32, 64, 128, 256)]
        points += [("prefill", b, s) for b, s in ((1, 128), (4, 128), (1, 512), (4, 512), (1, 2048), (4, 2048), (1, 8192))]
        for kind, b, s in points:
            if left() < 12:
                return
            if kind == "decode" and b * s * per_token > 28e9:
                continue
            ids = torch.randint(0, words, (b if kind == "decode" else b * s,), device=DEV)
            caches = None
            if kind == "decode":
                caches = [[torch.randn(b, kv, s, d, device=DEV, dtype=BF) for _ in range(2)] for _ in range(depth)]
            try:
                t = timed(lambda: forward(ids, b, caches, s), 4)
            except Exception as error:
                print(name, kind, b, s, str(error)[:100])
                torch.cuda.synchronize()
                continue
            writer.writerow([name, kind, b, s, f"{t * 1e3:.4f}"])
            file.flush()
            del caches
            gc.collect()
        del layers, table, head, forward
        gc.collect()
        torch.cuda.empty_cache()


torch.manual_seed(1)
torch.set_grad_enabled(False)
print(torch.__version__, torch.cuda.get_device_name())
with open(f"{OUT}/kernel_moe_torch.csv", "w") as file:
    writer = csv.writer(file)
    writer.writerow(COLUMNS.split(","))
    experts(writer, file)
print(f"experts done after {time.time() - BEGUN:.0f} s")
with open(f"{OUT}/steps.csv", "w") as file:
    writer = csv.writer(file)
    writer.writerow(["model", "kind", "B", "S", "ms"])
    steps(writer, file)
print(f"done after {time.time() - BEGUN:.0f} s")
