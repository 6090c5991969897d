"""What public functions are given by mistake: each call is refused in one sentence, or warned of.

A table an entry point: the call, and words of what is said.
"""

import hashlib
import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import torch
from transformers import ViTConfig, ViTModel

from tests import tiny
from xlx import abx, checks, coverage, embeddings, mexa, models, series, statistics
from xlx.corpora import ParallelCorpus
from xlx.triplets import sample

Call = Callable[[], object]


def refused(call: Call, says: str, kind: type[Exception] = ValueError) -> None:
    """The call raises, in one line that says this, and no bare error of Python's."""
    with pytest.raises(kind, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)


def vectors(*shape: int, languages: str = "abc") -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    return {code: draw.normal(size=shape) for code in languages}


def corpus(n: int = 6, languages: tuple[str, ...] = ("en", "de"), name: str = "made"):
    words = (*tiny.SENTENCES, *(f"{text} {text}" for text in tiny.SENTENCES))
    texts = {code: tuple(f"{text} {code}" for text in words[:n]) for code in languages}
    empty = ("",) * n
    return ParallelCorpus(name, texts, tuple(map(str, range(n))), empty, "", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("models") / "decoder", "llama")


# --- arrays ---------------------------------------------------------------------------------------

FLAT, DEEP = vectors(5, 3), vectors(2, 5, 3)


@pytest.mark.parametrize(
    ("states", "options", "says"),
    [
        (FLAT, {"pairs": [("a", "b"), ("a", "b")]}, "given twice"),
        (FLAT, {"pairs": [("a", "a")]}, "two different languages"),
        (FLAT, {"pairs": []}, "pairs is empty"),
        (FLAT, {"pairs": ["a", "b"]}, "languages of a pair"),
        (FLAT, {"layers": []}, "no layer given"),
        (DEEP, {"layers": []}, "no layer given"),
        (FLAT, {"layers": [9]}, "no layer 9"),
        (DEEP, {"layers": 1}, "due in a list"),
        (DEEP, {"layers": ["1"]}, "no layer 1"),
        ({"a": [[1.0]], "b": [[1.0]]}, {}, "a are a list: give a numpy array"),
        ({"a": torch.ones(3, 2), "b": torch.ones(3, 2)}, {}, "a Tensor: give a numpy array"),
        ({"a": np.array([["x"]]), "b": np.array([["x"]])}, {}, "real numbers"),
        ({code: array * 1j for code, array in FLAT.items()}, {}, "real numbers"),
        (vectors(5), {}, r"shape \(5,\)"),
        (vectors(1, 2, 5, 3), {}, r"shape \(1, 2, 5, 3\)"),
        (FLAT | {"c": DEEP["c"]}, {}, r"c have the shape \(2, 5, 3\)"),
        (DEEP | {"c": DEEP["c"][:1]}, {}, "c has 1 layers and a 2"),
        ({code: array * 1e300 for code, array in FLAT.items()}, {}, "too long"),
        ({code: array * 1e-300 for code, array in FLAT.items()}, {}, "or scale the vectors"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_exact_scores_refuse(states: dict, options: dict, says: str) -> None:
    refused(lambda: abx.exact(states, **options), says)


def test_pairs_both_ways_round_are_two() -> None:
    found = abx.exact(FLAT, pairs=[("a", "b"), ("b", "a")])
    np.testing.assert_allclose(found.scores["LD"][:, 0], found.scores["LD"][:, 1, ::-1])


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_triplets_of_a_vector_without_direction_are_refused(value: float) -> None:
    spoilt = FLAT | {"b": np.where(np.arange(5)[:, None] == 3, value, FLAT["b"])}
    triplets = sample("MD", ("a", "b"), 5, 20, 0)
    refused(lambda: abx.score_triplets(spoilt, triplets), "of b at position 3")


@pytest.mark.parametrize(
    ("states", "options", "says"),
    [
        ({}, {}, "choose among none"),
        ({code: array.tolist() for code, array in DEEP.items()}, {}, "numpy array"),
        (DEEP, {"device": "gpu"}, "device 'gpu' is not known"),
        (DEEP, {"layers": [5]}, "no layer 5"),
    ],
)
def test_mexa_refuses(states: dict, options: dict, says: str) -> None:
    refused(lambda: mexa.scores(states, "a", **options), says)


@pytest.mark.parametrize("level", [95, 0, 1, "0.95"])
def test_a_level_is_a_share(level: object) -> None:
    refused(lambda: statistics.interval(0.5, 0.1, level), "level is")
    refused(lambda: statistics.share_interval(1, 2, level), "level is")
    refused(lambda: statistics.wilcoxon([1.0, 2.0], level=level), "level is")


@pytest.mark.parametrize("device", ["mps", "meta", "gpu", "cuda:99", None, 1.5])
def test_devices_that_are_not_there(device: object) -> None:
    refused(lambda: checks.device(device), "device '")


# --- the series -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(folder: Path) -> series.Measurement:
    return series.measure(folder, corpus())


@pytest.mark.parametrize(
    ("given", "options", "says"),
    [
        ("folder", {}, "'folder' is no corpus"),
        ({"en": ["a"]}, {}, "is no corpus"),
        (None, {}, "None is no corpus"),
        (corpus(languages=("en",)), {}, "two languages or more"),
        (corpus(), {"max_length": "64"}, "max_length is '64'"),
        (corpus(), {"max_length": 1.5}, "max_length is 1.5"),
    ],
)
def test_measure_refuses(folder: Path, given: object, options: dict, says: str) -> None:
    refused(lambda: series.measure(folder, given, **options), says)
    if says != "two languages or more":
        refused(lambda: coverage.measure(folder, given, **options), says)


def test_several_models_are_due_in_a_list(folder: Path) -> None:
    refused(lambda: series.measure_all("mini-xlmr", corpus()), "models are due in a list")
    refused(lambda: coverage.measure(folder, corpus(), poolings="mean"), "poolings are due")


def test_summarise_refuses(measured: series.Measurement) -> None:
    refused(lambda: series.summarise([]), "no measurement")
    refused(lambda: series.summarise(measured), "measurements are due in a list")
    refused(lambda: series.summarise([measured], by="layer"), "keys are due in a list")
    refused(lambda: series.summarise([measured], layers=[99]), "no layer 99")
    refused(lambda: series.summarise([measured], layers=[]), "no layer given")
    refused(lambda: series.summarise([measured], level=95), "level is 95")
    assert len(series.summarise([measured], layers=[-1, 0])) == 3


def test_differences_of_other_text_are_refused(folder: Path, measured: series.Measurement) -> None:
    for other in (corpus(5), corpus(languages=("en", "fr")), corpus(n=7).drop([2])):
        with_other = series.measure(folder, other)
        refused(lambda m=with_other: series.difference(measured, m, "LD"), "other languages or")
    refused(lambda: series.difference(measured, measured, "ld"), "no task 'ld'")
    assert series.difference(measured, measured, "LD")["value"] == 0


def test_a_decoder_has_no_cls(decoder: Path) -> None:
    refused(
        lambda: series.measure(decoder, corpus(), pooling="cls"), "a decoder, has seen no other"
    )


def test_what_a_model_cannot_read_is_warned_of(folder: Path, tmp_path: Path) -> None:
    with pytest.warns(checks.TextWarning, match=r"'made' \(sentences cut: \w\w \d+%"):
        series.measure(folder, corpus(), max_length=4)
    # a vocabulary without bytes: another script is unknown to it
    unknown = corpus(4)
    unknown.sentences["am"] = ("ሰላም ነው", "እንዴት ነህ", "ደህና ነኝ", "አመሰግናለሁ")
    model = tiny.save(tmp_path / "bert", "bert")
    raw = models.load(model).tokenizer.backend_tokenizer.to_str()
    raw = raw.replace('"byte_fallback":true', '"byte_fallback":false')
    (model / "tokenizer.json").write_text(raw, encoding="utf-8")
    for measure in (series.measure, coverage.measure):
        with pytest.warns(checks.TextWarning, match=r"tokens unknown to it: am \d\d%"):
            measure(model, unknown)
    with warnings.catch_warnings():
        warnings.simplefilter("error", checks.TextWarning)
        series.measure(folder, unknown)


# --- models ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, 3, "", b"mini-xlmr"])
def test_what_is_no_name_of_a_model(name: object) -> None:
    refused(lambda: models.load(name), "no name of a model")


@pytest.mark.parametrize("architecture", tiny.KINDS)
def test_layers_that_the_config_leaves_out(architecture: str, tmp_path: Path) -> None:
    model = tiny.save(tmp_path / "model", architecture, layers=3)
    names = ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "encoder_layers")
    held = json.loads((model / "config.json").read_text("utf-8"))
    models.load(model)
    tiny.edit_json(model / "config.json", **{name: 2 for name in names if name in held})
    refused(lambda: models.load(model), r"weights of further layers .*\.2\.")
    if tiny.KINDS[architecture] == "encoder":
        refused(lambda: models.classifier(model, 2, 0), "weights of further layers")


def test_a_model_of_pictures_reads_no_text(folder: Path, tmp_path: Path) -> None:
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    pictures = ViTConfig(**size, intermediate_size=64, image_size=8, patch_size=4)
    ViTModel(pictures).save_pretrained(tmp_path)
    for file in folder.glob("tokenizer*"):
        shutil.copy(file, tmp_path)
    refused(lambda: models.load(tmp_path), "reads no text: .* ViTPatchEmbeddings")


def test_adapters_and_folders_of_sentence_transformers(folder: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    refused(lambda: models.load(adapter), r"an adapter \(LoRA.*merge")
    root = tmp_path / "sentences"
    shutil.copytree(folder, root / "0_Transformer")
    pooling = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (root / "1_Pooling").mkdir()
    (root / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    refused(lambda: models.load(root), "in 0_Transformer: give that folder", FileNotFoundError)
    with pytest.warns(embeddings.PoolingWarning, match="trained with the pooling 'cls'"):
        series.measure(root / "0_Transformer", corpus())
    with warnings.catch_warnings():
        warnings.simplefilter("error", embeddings.PoolingWarning)
        series.measure(root / "0_Transformer", corpus(), pooling="cls")


def test_a_torn_tokenizer_and_shards_elsewhere_are_named(folder: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn"
    shutil.copytree(folder, torn)
    (torn / "tokenizer.json").write_text('{"version')
    refused(lambda: models.load(torn), "^the tokenizer of '")
    shutil.copytree(folder, tmp_path / "shards")
    for held in ({"weight_map": {"a": "../torn/model.safetensors"}}, {}):
        index = tmp_path / "shards" / "model.safetensors.index.json"
        index.write_text(json.dumps(held))
        refused(lambda: models.load(tmp_path / "shards"), "has no such file")


def test_shipped_weights_are_those_on_record(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models.paths, "MODELS", tmp_path)
    shutil.copytree(folder, tmp_path / "member")
    weights = tmp_path / "member" / "model.safetensors"
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    (tmp_path / "SHA256SUMS").write_text(f"{digest}  member/model.safetensors\n")
    models.load("member")
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    for call in (models.load, models.fingerprint):
        refused(lambda call=call: call("member"), "is not the file on record in SHA256SUMS")


@pytest.mark.parametrize(
    ("architecture", "file"),
    [
        ("t5", "spiece.model"),
        ("xlm-roberta", "sentencepiece.bpe.model"),
        ("llama", "tokenizer.model"),
    ],
)
def test_a_folder_with_a_sentencepiece_model_alone(
    architecture: str, file: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("google.protobuf")
    model = tiny.save(tmp_path / "model", architecture)
    for old in model.glob("*token*"):
        old.unlink()
    kinds = {"t5": "T5Tokenizer", "xlm-roberta": "XLMRobertaTokenizer", "llama": "LlamaTokenizer"}
    (model / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": kinds[architecture]})
    )
    with (model / file).open("wb") as written:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(tiny.SENTENCES * 20), model_writer=written, vocab_size=90,
            model_type="bpe" if architecture == "llama" else "unigram", minloglevel=2,
        )  # fmt: skip
    tokenizer = models.load(model).tokenizer
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("Das Wetter")["input_ids"])
    assert "".join(token for token in tokens if "<" not in token) == "▁Das▁Wetter"
