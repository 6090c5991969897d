"""A battery of architectures: each with each pooling, space and measure, against literal loops.

A cell equals what a literal computation gives within 1e-6, or is one clear sentence. States come
from `transformers`, a sentence at a time; scores are counted triplet by triplet; a report has them.
"""

import inspect
import json
from functools import lru_cache
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from tests import slow, tiny
from tests.subjects.conftest import assert_one_sentence
from xlx.experiment.scoring import subject_scores
from xlx.report.inputs import reported_model
from xlx.report.tables import coverage_rows, layer_rows, measured_models
from xlx.subjects import loading, states
from xlx.subjects.pooling import POOLINGS
from xlx.text.parallel import ParallelCorpus

pytestmark = pytest.mark.filterwarnings("ignore::xlx.subjects.states.PoolingWarning")

TEXT = {
    "en": ("The weather is fine today.", "Yes", "It rains in town", "It snows in town", "What?"),
    "de": ("Das Wetter ist heute schön.", "Ja", "Im Dorf regnet es", "Im Dorf schneit es", "Was?"),
    "fr": ("Il fait beau.", "Oui", "Il pleut au village", "Il neige au village", "Quoi ?"),
}
CORPUS = ParallelCorpus("battery", TEXT, tuple("12345"), ("",) * 5, "", "")
SPACES = ("raw", "centred", "standardised")
MEASURES = ("LD", "MD", "retrieval", "MEXA")
#: Scores of float32 and of float64 may differ where two cosines do by less than this.
OPEN = 3e-6
WITHOUT_CLS = {"t5", "mt5", *(x for x, kind in tiny.BATTERY.items() if kind == "decoder")}


@pytest.mark.parametrize("architecture", slow.but(("xlm-roberta", "llama", "t5"), tiny.BATTERY))
def test_every_cell_is_the_literal_one_or_a_sentence(
    architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny.save(tmp_path / "model", architecture, spread=2.0)
    declare_own(folder)
    encoder = loading.load(folder, device="cpu")
    assert encoder.kind == tiny.BATTERY[architecture]
    real, read = states.hidden_states, []
    monkeypatch.setattr(states, "hidden_states", lambda e, rows: read.extend(rows) or real(e, rows))
    for pooling in POOLINGS:
        read.clear()
        if refused := problem(architecture, encoder, pooling):
            with pytest.raises(ValueError, match=refused) as error:
                subject_scores([encoder], CORPUS, MEASURES, pooling=pooling)
            assert_one_sentence(error)
            assert not read
            continue
        found, means = states.embed_corpus(encoder, CORPUS, pooling=pooling).states, {}
        for code, expected in literal_states(folder, pooling).items():
            assert np.abs(found[code] - expected).max() <= 1e-6 * max(1, np.abs(expected).max())
        for space in SPACES:
            (scored,) = subject_scores([encoder], CORPUS, MEASURES, space=space, pooling=pooling)
            for layer in range(encoder.n_layers + 1):
                vectors = in_space({code: x[layer] for code, x in found.items()}, space)
                for place, pair in enumerate(combinations(CORPUS.languages, 2)):
                    for measure in MEASURES:
                        cell = scored.scores[measure][layer, place]
                        check(cell, literal_scores(measure, *(vectors[x] for x in pair)))
            means |= {(space, x): y.mean(axis=(1, 2)) for x, y in scored.scores.items()}
        (report,) = measured_models([reported_model(folder, pooling)], CORPUS, untrained=False)
        rows = layer_rows(report).set_index(["space", "task"])["score"]
        for cell in product(SPACES[:2], MEASURES[:3]):
            np.testing.assert_allclose(rows.loc[cell], means[cell], atol=1e-6)
        assert len(coverage_rows(report)) == 8  # of two languages, in two spaces, two ways
        assert len(read) == sum(map(len, TEXT.values()))  # each sentence once


def declare_own(folder: Path) -> None:
    """The mean of all tokens, of length 1."""
    kinds = ("Transformer", "Pooling", "Normalize")
    modules = [
        {"path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))


def problem(architecture: str, encoder: loading.Encoder, pooling: str) -> str | None:
    """What a cell is refused with."""
    if pooling == "cls" and architecture in WITHOUT_CLS:
        return "pooling 'cls' (needs a tokenizer|takes the first token)"
    decoded = encoder.kind == "encoder-decoder" and architecture not in ("t5", "mt5", "m2m100")
    return "the decoder of '" if pooling == "own" and decoded else None


def literal_states(folder: Path, pooling: str) -> dict[str, np.ndarray]:
    """Language → ``(n_layers + 1, n, dim)``, a sentence and a token at a time."""
    read = token_states(folder, pooling == "own")
    return {
        code: np.array(
            [[pooled(x, special, pooling) for x in layers] for layers, special in rows]
        ).swapaxes(0, 1)
        for code, rows in read.items()
    }


@lru_cache(maxsize=2)
def token_states(folder: Path, as_told: bool) -> dict[str, list[tuple]]:
    """Of each sentence the states ``(n_layers + 1, n_tokens, dim)``, which tokens are special.

    ``as_told``: with all that the tokenizer writes for the model.
    """
    words = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    model = model.get_encoder() if model.config.is_encoder_decoder else model
    more = set(inspect.signature(model.forward).parameters) & {"token_type_ids" if as_told else ""}
    read: dict[str, list[tuple]] = {}
    for code, sentences in TEXT.items():
        for sentence in sentences:
            row = words(sentence, return_special_tokens_mask=True)
            given = {x: torch.tensor([row[x]]) for x in ("input_ids", *more) if x in row}
            with torch.no_grad():
                layers = model(**given, output_hidden_states=True).hidden_states
            states = torch.stack(layers)[:, 0].double().numpy()
            read.setdefault(code, []).append((states, row["special_tokens_mask"]))
    return read


def pooled(tokens: np.ndarray, special: list[int], pooling: str) -> np.ndarray:
    kept = [token for token, added in zip(tokens, special, strict=True) if not added]
    if pooling == "cls":
        return tokens[0]
    if pooling == "last":
        return kept[-1]
    if pooling == "weighted_mean":
        return sum(i * x for i, x in enumerate(kept, 1)) / sum(range(1, len(kept) + 1))
    if pooling == "mean":
        return sum(kept) / len(kept)
    mean = sum(tokens) / len(tokens)
    return mean / np.sqrt((mean**2).sum())


def in_space(vectors: dict[str, np.ndarray], space: str) -> dict[str, np.ndarray]:
    """As the definitions read; NaN where nothing is left."""
    exact = {code: x.astype(np.float64) for code, x in vectors.items()}
    if space == "raw":
        return exact
    groups = exact if space == "centred" else {"all": np.concatenate([*exact.values()])}
    moved = {}
    for code, x in exact.items():
        of = groups.get(code, groups.get("all"))
        mean, sd = of.mean(axis=0), of.std(axis=0)
        same = (np.abs(of - mean) <= 1e-6 * np.abs(mean).max()).all()
        scale = 1 if space == "centred" else np.where(sd > 0, sd, 1)
        moved[code] = np.full_like(x, np.nan) if same else (x - mean) / scale
    return moved


def literal_scores(measure: str, a: np.ndarray, b: np.ndarray) -> list[tuple[float, float]]:
    """Of queries in the first and in the second language: the least and the most it may be."""
    if np.isnan(a).any() or np.isnan(b).any():
        return [(np.nan, np.nan)] * 2
    return [literal_score(measure, *(unit(x) for x in pair)) for pair in ((a, b), (b, a))]


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def literal_score(measure: str, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    own, other, n = x @ x.T, x @ y.T, len(x)
    if measure in ("LD", "MD"):
        won = [
            nearer(own[i, j] - other[i, j] if measure == "LD" else other[i, i] - other[i, j])
            for i in range(n)
            for j in range(n)
            if i != j
        ]
        return tuple(np.mean(won, axis=0))
    found = []
    for i in range(n):
        rivals = [other[i, j] for j in range(n) if j != i]
        if measure == "MEXA":
            rivals += [other[j, i] for j in range(n) if j != i]
            ends = [all(other[i, i] > rival + slack for rival in rivals) for slack in (OPEN, -OPEN)]
        else:
            ends = [
                all(other[i, i] > rival + OPEN for rival in rivals),
                all(other[i, i] >= rival - OPEN for rival in rivals),
            ]
        found.append(ends)
    return tuple(np.mean(found, axis=0))


def nearer(difference: float) -> tuple[float, float]:
    """1 if A is nearer, ½ for a tie; both ends where rounding decides."""
    if abs(difference) < 1e-12:
        return 0.5, 0.5
    if abs(difference) < OPEN:
        return 0.0, 1.0
    return (float(difference > 0),) * 2


def check(cell: np.ndarray, expected: list[tuple[float, float]]) -> None:
    for found, (least, most) in zip(cell, expected, strict=True):
        if np.isnan(least):
            assert np.isnan(found)
        else:
            assert least - 1e-6 <= found <= most + 1e-6
