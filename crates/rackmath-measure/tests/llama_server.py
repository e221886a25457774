"""A llama.cpp server with a tiny model of random weights, for tests: python llama_server.py FOLDER.

Writes FOLDER/tiny.gguf, starts the server on a free port, prints "port N", and ends when its standard input ends.
Needs the packages xllamacpp, gguf and numpy, which install without compiling.
"""

import socket
import sys
from pathlib import Path

import gguf
import numpy as np
import xllamacpp

LAYERS, WIDTH, HEADS, INNER, VOCABULARY = 2, 64, 4, 128, 320


def written(path: Path) -> None:
    w = gguf.GGUFWriter(str(path), "llama")
    w.add_context_length(4096)
    w.add_embedding_length(WIDTH)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(INNER)
    w.add_head_count(HEADS)
    w.add_head_count_kv(HEADS)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(WIDTH // HEADS)
    w.add_file_type(gguf.LlamaFileType.ALL_F32)
    specials = [b"<unk>", b"<s>", b"</s>"]
    tokens = specials + [b"<0x%02X>" % i for i in range(256)]
    tokens += [f"\u2581w{i}".encode() for i in range(len(tokens), VOCABULARY)]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * (VOCABULARY - 259)
    w.add_tokenizer_model("llama")
    w.add_token_list(tokens)
    w.add_token_scores([0.0] * VOCABULARY)
    w.add_token_types(kinds)
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)
    draw = np.random.default_rng(0)

    def tensor(name, *shape):
        w.add_tensor(name, (draw.standard_normal(shape) * 0.05).astype(np.float32))

    tensor("token_embd.weight", VOCABULARY, WIDTH)
    w.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    tensor("output.weight", VOCABULARY, WIDTH)
    for i in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            w.add_tensor(f"blk.{i}.{norm}.weight", np.ones(WIDTH, np.float32))
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensor(f"blk.{i}.{part}.weight", WIDTH, WIDTH)
        tensor(f"blk.{i}.ffn_gate.weight", INNER, WIDTH)
        tensor(f"blk.{i}.ffn_up.weight", INNER, WIDTH)
        tensor(f"blk.{i}.ffn_down.weight", WIDTH, INNER)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main() -> None:
    path = Path(sys.argv[1]) / "tiny.gguf"
    written(path)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    p = xllamacpp.CommonParams()
    p.model.path = str(path)
    p.model_alias = {"tiny-random"}
    p.n_ctx, p.n_parallel = 4096, 4
    p.endpoint_metrics = p.endpoint_slots = p.endpoint_props = True
    p.port = port
    server = xllamacpp.Server(p)
    print(f"port {port}", flush=True)
    sys.stdin.read()
    del server


main()
