"""The file format ``E5S1``: a BERT with 4-bit weights and its unigram vocabulary, in one file.

Little-endian, one part behind the other:

* ``E5S1``, int32 version (1); int32 width, layers, heads, inner width, vocabulary, positions, token
  types; float32 epsilon of the layer norms; int32 weights in a block (32);
* vocabulary: int32 pieces, and the numbers of <s>, </s>, <pad>, <unk>; uint64 bytes of all pieces;
  uint32 where each piece begins, and the end; float32 their scores; their bytes, UTF-8;
* normalisation: int32 entries, uint32 bytes; each entry is a uint32 character, a uint8 number of
  characters and so many uint32 that stand for it;
* directory: int32 tensors; each is uint16 length and a name, uint8 type, uint32 numbers, uint64
  offset from the file's start, uint64 bytes.

A tensor is float32 (type 0), or blocks of 32 weights (type 1): a float16 scale d and 16 bytes q.
The low half of byte j is weight j, the high half weight j + 16, and the weight is d (q - 8).
Matrices are stored as ``torch.nn.Linear`` has them, a row an output.
"""

import io
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

MAGIC, VERSION, BLOCK = b"E5S1", 1, 32
#: A block of weights: scale, and two weights a byte.
_BLOCK = np.dtype([("scale", "<f2"), ("halves", "u1", BLOCK // 2)])
_SIZES = ("width", "layers", "heads", "inner", "vocabulary", "positions", "token_types")
#: Names of tensors outside the layers, and in a layer, as BERT of `transformers` has them.
_OUTSIDE = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_INSIDE = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


class FormatError(ValueError):
    """A file that is not whole, or not of this format; says where."""


@dataclass(frozen=True)
class Packed:
    """What a file holds: sizes by `_SIZES`, pieces with their scores, tensors by BERT's names.

    ``tensors`` are float32, matrices ``(n_outputs, n_inputs)``; ``special`` are the numbers of
    "<s>", "</s>", "<pad>" and "<unk>".
    """

    sizes: Mapping[str, int]
    epsilon: float
    pieces: tuple[str, ...]
    scores: np.ndarray
    special: Mapping[str, int]
    tensors: Mapping[str, np.ndarray]


def dequantised(blocks: bytes) -> np.ndarray:
    """The weights of blocks, float32 ``(n,)``: exact, as a product needs 15 of its 24 bits."""
    read = np.frombuffer(blocks, _BLOCK)
    halves = np.concatenate([read["halves"] & 15, read["halves"] >> 4], axis=1).astype(np.float32)
    return ((halves - 8) * read["scale"].astype(np.float32)[:, None]).ravel()


def read(content: bytes) -> Packed:
    """All that a file holds. Raises FormatError."""
    try:
        return _read(content)
    except (ValueError, OverflowError, MemoryError) as error:  # of numbers that cannot be right
        raise FormatError(f"the file is damaged, or of another format: {error}") from None


def _read(content: bytes) -> Packed:
    file = io.BytesIO(content)

    def take(n_bytes: int) -> bytes:
        taken = file.read(n_bytes)
        if len(taken) < n_bytes:
            raise ValueError(f"it ends at byte {len(content)}, within its head")
        return taken

    def numbers(layout: str) -> tuple:
        return struct.unpack(f"<{layout}", take(struct.calcsize(f"<{layout}")))

    def array(dtype: str, n: int) -> np.ndarray:
        return np.frombuffer(take(np.dtype(dtype).itemsize * n), dtype)

    if (magic := file.read(4)) != MAGIC:
        raise ValueError(f"it begins with {magic!r}, and not with {MAGIC!r}")
    version, *of_size, epsilon, block = numbers("i7ifi")
    if (version, block) != (VERSION, BLOCK):
        raise ValueError(f"version {version} with blocks of {block}: read are {VERSION}, {BLOCK}")
    sizes = dict(zip(_SIZES, of_size, strict=True))
    n_pieces, *special, n_bytes = numbers("5iQ")
    starts = array("<u4", n_pieces + 1).tolist()
    scores = array("<f4", n_pieces)
    text = take(n_bytes)
    pieces = tuple(text[a:b].decode() for a, b in pairwise(starts))
    places = {}
    for _ in range(numbers("iI")[0]):
        array("<u4", numbers("IB")[1])  # passed over: `convert` says how text is normalised
    for _ in range(numbers("i")[0]):
        name = take(numbers("H")[0]).decode()
        places[name] = numbers("BIQQ")
    named = dict(zip(("<s>", "</s>", "<pad>", "<unk>"), special, strict=True))
    tensors = _tensors(content, places, sizes)
    return Packed(sizes, epsilon, pieces, scores, named, tensors)


def _tensors(
    content: bytes, places: Mapping[str, tuple[int, int, int, int]], sizes: Mapping[str, int]
) -> dict[str, np.ndarray]:
    """All tensors by BERT's names, in its shapes."""
    names = dict(_OUTSIDE)
    for layer in range(sizes["layers"]):
        for short, long in _INSIDE.items():
            for end, part in (("w", "weight"), ("b", "bias")):
                names[f"l{layer}.{short}.{end}"] = f"encoder.layer.{layer}.{long}.{part}"
    if odd := sorted(set(places) ^ set(names)):
        raise ValueError(f"the tensor {odd[0]} is not in the file, or not of a BERT of its layers")
    tensors = {}
    for short, (kind, n, offset, n_bytes) in places.items():
        part = content[offset : offset + n_bytes]
        if len(part) < n_bytes:
            raise ValueError(f"it ends at byte {len(content)}, within the tensor {short}")
        flat = dequantised(part) if kind == 1 else np.frombuffer(part, "<f4")
        if len(flat) != n:
            raise ValueError(f"the tensor {short} has {len(flat)} numbers, and {n} are due")
        vector = short.endswith((".b", "ln.w"))
        width = sizes["inner"] if short.endswith("fo.w") else sizes["width"]
        tensors[names[short]] = flat if vector else flat.reshape(-1, width)
    return tensors
