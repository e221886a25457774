"""Writes picture_tokens.csv: what the processors of `transformers` count for random sizes.

    pip install transformers==5.22.2 pillow numpy
    python picture_tokens.py ROWS > picture_tokens.csv

No weights and no torch are needed: processors that work on PIL pictures are asked, and of those that work on tensors the
functions that choose a size are taken out of their files and run on numpy in 32 bits.
"""

import ast
import importlib
import math
import pathlib
import random
import sys
import types
from collections import defaultdict

import numpy as np
import transformers

MODELS = pathlib.Path(transformers.__file__).parent / "models"


def taken(path, names):
    """Functions of a file that cannot be imported without torch."""
    source = (MODELS / path).read_text()
    torch = types.SimpleNamespace(where=np.where, max=np.max, min=np.min, argmin=np.argmin, Tensor=object)
    scope = {"math": math, "torch": torch, "defaultdict": defaultdict, "np": np, "SizeDict": object}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name in names:
            node.decorator_list = []
            exec(compile(ast.Module([node], []), path, "exec"), scope)
    return scope


def methods(path, cls, names):
    """Methods of a class of such a file, bound to a namespace."""
    source = (MODELS / path).read_text()
    scope = {"math": math, "np": np, "dict": dict}
    module = importlib.import_module("transformers.image_processing_utils")
    scope["select_best_resolution"] = module.select_best_resolution
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name == cls:
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and item.name in names:
                    exec(compile(ast.Module([item], []), path, "exec"), scope)
    return scope


def pil(name):
    return importlib.import_module(f"transformers.models.{name}.image_processing_pil_{name}")


def any_res(path, cls, **fields):
    scope = methods(path, cls, {"_get_number_of_features", "_get_unpadded_features"})
    me = types.SimpleNamespace(**fields)
    me._get_unpadded_features = lambda *a: scope["_get_unpadded_features"](me, *a)
    tile = fields["tile"]
    return lambda h, w: scope["_get_number_of_features"](me, h, w, tile, tile)


def main(rows):
    qwen = pil("qwen2_vl").smart_resize
    glm = pil("glm4v").smart_resize
    pixtral = pil("pixtral")
    tiles = pil("got_ocr2").get_optimal_tiled_canvas
    gemma4 = pil("gemma4").get_aspect_ratio_preserving_size
    llama4 = taken("llama4/image_processing_llama4.py", {"get_factors", "find_supported_resolutions", "get_best_fit"})
    canvases = llama4["find_supported_resolutions"](16, types.SimpleNamespace(height=336, width=336))
    canvases = np.array(canvases, dtype=np.float32)
    kimi = taken("kimi_k25/image_processing_kimi_k25.py", {"navit_resize"})["navit_resize"]
    next_grids = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]
    one_grids = [[384 * h, 384 * w] for h in range(1, 7) for w in range(1, 7)]
    llava_next = any_res(
        "llava_next/processing_llava_next.py", "LlavaNextProcessor", patch_size=14, num_additional_image_tokens=1, tile=336,
        image_processor=types.SimpleNamespace(image_grid_pinpoints=next_grids),
    )
    one_vision = any_res(
        "llava_onevision/processing_llava_onevision.py", "LlavaOnevisionProcessor", num_image_tokens=729, tile=384,
        vision_aspect_ratio="anyres_max_9", image_processor=types.SimpleNamespace(image_grid_pinpoints=one_grids),
    )

    def rounded(factor, least, most):
        def count(h, w):
            a, b = qwen(h, w, factor, least, most)
            return a * b // factor**2
        return count

    def glm_count(h, w):
        a, b = glm(2, h, w, 2, 28, 112 * 112, 14 * 14 * 2 * 2 * 2 * 6144)
        return a * b // 28**2

    def rows_count(patch, longest):
        def count(h, w):
            a, b = pixtral.get_resize_output_image_size(np.zeros((h, w, 3), np.uint8), (longest, longest), (patch, patch))
            return (b // patch + 1) * (a // patch)
        return count

    def intern(h, w):
        columns, rows_ = tiles((h, w), (448, 448), 1, 12)
        n = columns * rows_
        return 2 + 256 * (n + 1 if n > 1 else 1)

    def canvas(h, w):
        a, b = llama4["get_best_fit"]((np.float32(h), np.float32(w)), canvases)
        rows_, columns = int(a) // 336, int(b) // 336
        n = rows_ * columns
        return (144 * (n + 1) + n if n > 1 else 144) + 3

    def moon(limit):
        def count(h, w):
            _, (a, b) = kimi(h, w, 14, 2, limit, 512)
            return a * b // 28**2
        return count

    def filled(h, w):
        a, b = gemma4(h, w, 16, 280 * 9, 3)
        return a * b // 48**2

    families = {
        "qwen2-vl": rounded(28, 3136, 12845056),
        "qwen2-vl-small": rounded(28, 56 * 56, 28 * 28 * 1280),
        "qwen3-vl": rounded(32, 65536, 16777216),
        "glm-4.5v": glm_count,
        "pixtral": rows_count(16, 1024),
        "mistral-3": rows_count(28, 1540),
        "llava-next": lambda h, w: llava_next(h, w) - 1,
        "llava-onevision": one_vision,
        "internvl": intern,
        "llama-4": canvas,
        "kimi-k2.5": moon(16384),
        "kimi-vl": moon(4096),
        "gemma-4": filled,
    }
    draw = random.Random(5)
    print("family,width,height,tokens")
    for name, count in families.items():
        for i in range(rows):
            most = (300, 1200, 3000, 6000)[i % 4]
            w, h = draw.randint(40, most), draw.randint(40, most)
            print(f"{name},{w},{h},{count(h, w)}")


main(int(sys.argv[1]))
