"""Writes the files of this folder with the `gguf` package (0.19.0): headers and data of small models, every type among them.

    python3 write.py FOLDER [--headers]

With --headers the data behind the headers is cut off, which is what stands in this folder. Prints one line a file: its name, and the bytes of its tensors by type as the package counts them.
"""

import sys
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T, GGUFReader, GGUFWriter

TYPES = [t for t in T if t.name not in ("I8", "I16", "I32", "I64", "F64")]


def add(writer, name, kind, *sides):
    """A tensor of zeros; sides as PyTorch has them, the innermost last."""
    values, size = GGML_QUANT_SIZES[kind]
    shape = (*sides[:-1], sides[-1] // values * size)
    if kind in (T.F32, T.F16):
        plain = {T.F32: np.float32, T.F16: np.float16}[kind]
        writer.add_tensor(name, np.zeros(sides, dtype=plain))
    else:
        writer.add_tensor(name, np.zeros(shape, dtype=np.uint8), raw_dtype=kind)
    count = 1
    for side in sides:
        count *= side
    return kind.name, count // values * size


def start(path, arch, layers, hidden, heads, kv_heads, ffn, **more):
    writer = GGUFWriter(str(path), arch, **more)
    writer.add_name(f"tiny {arch}")
    writer.add_block_count(layers)
    writer.add_context_length(4096)
    writer.add_embedding_length(hidden)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_feed_forward_length(ffn)
    writer.add_file_type(15)
    writer.add_token_list([f"word {i}" for i in range(512)])
    writer.add_chat_template("x" * 5000)
    return writer


def finish(writer, path, sizes):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    total = {}
    for kind, size in sizes:
        total[kind] = total.get(kind, 0) + size
    print(path.name, *(f"{kind}={size}" for kind, size in sorted(total.items())))


def llama(path, layers=None):
    """One layer for every type: its network is of that type, as in no real file."""
    kinds = TYPES if layers is None else [T.Q4_K] * layers
    hidden, heads, kv, ffn, vocab = 256, 4, 2, 512, 512
    w = start(path, "llama", len(kinds), hidden, heads, kv, ffn)
    sizes = [add(w, "token_embd.weight", T.Q4_K, vocab, hidden), add(w, "output.weight", T.Q6_K, vocab, hidden)]
    sizes.append(add(w, "output_norm.weight", T.F32, hidden))
    for i, kind in enumerate(kinds):
        blk = f"blk.{i}."
        for name in ("attn_norm", "ffn_norm"):
            sizes.append(add(w, f"{blk}{name}.weight", T.F32, hidden))
        sizes.append(add(w, f"{blk}attn_q.weight", T.Q4_K, hidden, hidden))
        sizes.append(add(w, f"{blk}attn_k.weight", T.Q4_K, kv * 64, hidden))
        sizes.append(add(w, f"{blk}attn_v.weight", T.Q6_K, kv * 64, hidden))
        sizes.append(add(w, f"{blk}attn_output.weight", T.Q4_K, hidden, hidden))
        for name, sides in (("gate", (ffn, hidden)), ("up", (ffn, hidden)), ("down", (hidden, ffn))):
            sizes.append(add(w, f"{blk}ffn_{name}.weight", kind, *sides))
    finish(w, path, sizes)


def moe(path):
    """Experts in MXFP4, the rest in Q8_0, windows in every second layer, as gpt-oss has them."""
    hidden, heads, kv, ffn, vocab, experts = 256, 4, 2, 128, 512, 8
    w = start(path, "gpt-oss", 4, hidden, heads, kv, ffn)
    w.add_expert_count(experts)
    w.add_expert_used_count(2)
    w.add_key_length(64)
    w.add_value_length(64)
    w.add_sliding_window(128)
    sizes = [add(w, "token_embd.weight", T.Q8_0, vocab, hidden), add(w, "output.weight", T.Q8_0, vocab, hidden)]
    sizes.append(add(w, "output_norm.weight", T.F32, hidden))
    for i in range(4):
        blk = f"blk.{i}."
        for name in ("attn_norm", "post_attention_norm"):
            sizes.append(add(w, f"{blk}{name}.weight", T.F32, hidden))
        sizes.append(add(w, f"{blk}attn_sinks.weight", T.F32, heads))
        for name, columns in (("q", heads * 64), ("k", kv * 64), ("v", kv * 64)):
            sizes.append(add(w, f"{blk}attn_{name}.weight", T.Q8_0, columns, hidden))
            sizes.append(add(w, f"{blk}attn_{name}.bias", T.F32, columns))
        sizes.append(add(w, f"{blk}attn_output.weight", T.Q8_0, hidden, heads * 64))
        sizes.append(add(w, f"{blk}attn_output.bias", T.F32, hidden))
        sizes.append(add(w, f"{blk}ffn_gate_inp.weight", T.F32, experts, hidden))
        sizes.append(add(w, f"{blk}ffn_gate_inp.bias", T.F32, experts))
        for name, sides in (("gate", (ffn, hidden)), ("up", (ffn, hidden)), ("down", (hidden, ffn))):
            sizes.append(add(w, f"{blk}ffn_{name}_exps.weight", T.MXFP4, experts, *sides))
            sizes.append(add(w, f"{blk}ffn_{name}_exps.bias", T.F32, experts, sides[0]))
    finish(w, path, sizes)


def latent(path):
    """Latent attention and experts beside a shared one, as DeepSeek-V3 has them; the first layer is dense."""
    hidden, heads, vocab, experts, ffn = 256, 4, 512, 8, 256
    q_rank, kv_rank, rope, nope, v = 128, 64, 32, 64, 64
    w = start(path, "deepseek2", 3, hidden, heads, 1, 512)
    w.add_expert_count(experts)
    w.add_expert_used_count(2)
    w.add_expert_feed_forward_length(ffn)
    w.add_q_lora_rank(q_rank)
    w.add_kv_lora_rank(kv_rank)
    w.add_key_length(kv_rank + rope)
    w.add_value_length(kv_rank)
    w.add_key_length_mla(nope + rope)
    w.add_value_length_mla(v)
    w.add_rope_dimension_count(rope)
    sizes = [add(w, "token_embd.weight", T.Q4_K, vocab, hidden), add(w, "output.weight", T.Q6_K, vocab, hidden)]
    sizes.append(add(w, "output_norm.weight", T.F32, hidden))
    for i in range(3):
        blk = f"blk.{i}."
        for name in ("attn_norm", "ffn_norm"):
            sizes.append(add(w, f"{blk}{name}.weight", T.F32, hidden))
        sizes.append(add(w, f"{blk}attn_q_a.weight", T.Q8_0, q_rank, hidden))
        sizes.append(add(w, f"{blk}attn_q_a_norm.weight", T.F32, q_rank))
        sizes.append(add(w, f"{blk}attn_q_b.weight", T.Q8_0, heads * (nope + rope), q_rank))
        sizes.append(add(w, f"{blk}attn_kv_a_mqa.weight", T.Q8_0, kv_rank + rope, hidden))
        sizes.append(add(w, f"{blk}attn_kv_a_norm.weight", T.F32, kv_rank))
        sizes.append(add(w, f"{blk}attn_k_b.weight", T.Q8_0, heads, kv_rank, nope))
        sizes.append(add(w, f"{blk}attn_v_b.weight", T.Q8_0, heads, v, kv_rank))
        sizes.append(add(w, f"{blk}attn_output.weight", T.Q4_K, hidden, heads * v))
        if i == 0:
            for name, sides in (("gate", (512, hidden)), ("up", (512, hidden)), ("down", (hidden, 512))):
                sizes.append(add(w, f"{blk}ffn_{name}.weight", T.Q4_K, *sides))
            continue
        sizes.append(add(w, f"{blk}ffn_gate_inp.weight", T.F32, experts, hidden))
        sizes.append(add(w, f"{blk}exp_probs_b.bias", T.F32, experts))
        for name, sides in (("gate", (ffn, hidden)), ("up", (ffn, hidden)), ("down", (hidden, ffn))):
            kind = T.Q6_K if name == "down" else T.Q4_K
            sizes.append(add(w, f"{blk}ffn_{name}_exps.weight", kind, experts, *sides))
            sizes.append(add(w, f"{blk}ffn_{name}_shexp.weight", kind, *sides))
    finish(w, path, sizes)


def parts(path):
    """A model in parts of eight tensors, as `gguf-split` names them."""
    hidden, vocab, ffn = 256, 512, 512
    w = start(path, "llama", 2, hidden, 4, 2, ffn, split_max_tensors=8)
    sizes = [add(w, "token_embd.weight", T.Q4_K, vocab, hidden), add(w, "output_norm.weight", T.F32, hidden)]
    for i in range(2):
        blk = f"blk.{i}."
        for name in ("attn_norm", "ffn_norm"):
            sizes.append(add(w, f"{blk}{name}.weight", T.F32, hidden))
        for name, columns in (("q", 256), ("k", 128), ("v", 128), ("output", 256)):
            sizes.append(add(w, f"{blk}attn_{name}.weight", T.Q4_K, columns, hidden))
        for name, sides in (("gate", (ffn, hidden)), ("up", (ffn, hidden)), ("down", (hidden, ffn))):
            sizes.append(add(w, f"{blk}ffn_{name}.weight", T.Q5_K, *sides))
    finish(w, path, sizes)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    llama(folder / "types.gguf")
    moe(folder / "experts.gguf")
    latent(folder / "latent.gguf")
    parts(folder / "parts.gguf")
    if "--headers" in sys.argv:
        for file in sorted(folder.glob("*.gguf")):
            end = GGUFReader(file).data_offset
            with open(file, "r+b") as whole:
                whole.truncate(end)
