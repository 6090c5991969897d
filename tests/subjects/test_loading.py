"""Loading: three architectures, series, the hub's cache, and refusals in one sentence."""

import copy
import os
import re
import shutil
import textwrap
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import huggingface_hub
import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer

from tests import tiny
from tests.subjects.conftest import Attack, assert_one_sentence, hidden
from xlx.results import store
from xlx.results.settings import settings
from xlx.subjects import identity, loading, states
from xlx.subjects.identity import ModelNotFoundError, checkpoints, fingerprint, identify
from xlx.subjects.loading import load


@pytest.fixture(scope="module")
def series(tmp_path_factory) -> Path:
    return tiny.series(tmp_path_factory.mktemp("series") / "mini")


@pytest.fixture
def folder(folders, tmp_path) -> Path:
    """A model folder that a test may spoil."""
    return Path(shutil.copytree(folders["xlm-roberta"], tmp_path / "model"))


@pytest.mark.parametrize("name", tiny.KINDS)
def test_all_architectures_load(folders, encoders, name) -> None:
    encoder = encoders[name]
    assert (encoder.kind, encoder.n_layers, encoder.dim) == (tiny.KINDS[name], 2, 32)
    assert encoder.dtype == torch.float32
    assert {p.dtype for p in encoder.model.parameters()} == {torch.float32}
    # an extra map of the first token is no layer
    assert not [x for x, _ in encoder.model.named_parameters() if "pooler" in x]
    assert not encoder.model.training
    assert hidden(encoder.model, encoder.tokenizer).shape[::3] == (3, 32)
    assert 0 <= encoder.pad_id < encoder.vocabulary_size
    assert encoder.max_length == (None if name == "t5" else 64)
    limited = copy.copy(encoder.tokenizer)
    limited.model_max_length = 20
    assert replace(encoder, tokenizer=limited).max_length == 20
    raw = Tokenizer.from_file(str(folders[name] / "tokenizer.json"))
    for sentence in tiny.SENTENCES:
        assert encoder.tokenizer(sentence)["input_ids"] == raw.encode(sentence).ids


# Fingerprint


def test_a_large_file_is_hashed_again_only_when_it_changes(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(identity, "_LARGE", 10)
    (file := tmp_path / "weights").write_bytes(b"a" * 100)

    def fingerprint_now() -> tuple[str, int]:
        identity._hash.cache_clear()  # as a new process
        with mock.patch.object(store, "digest_of", wraps=store.digest_of) as digest:
            return identity.fingerprint_of([file]), digest.call_count

    with settings(cache=tmp_path / "cache"):
        first, calls = fingerprint_now()
        assert calls == 1
        assert fingerprint_now() == (first, 0)
        file.write_bytes(b"b" * 100)
        os.utime(file, ns=(1, 1))
        other, calls = fingerprint_now()
        assert (other != first, calls) == (True, 1)
        for noted in (tmp_path / "cache").rglob("digests/*/*"):
            noted.write_text("torn")
        assert fingerprint_now() == (other, 1)


def test_fingerprint_names_weights_config_and_tokenizer(folder, tmp_path) -> None:
    first = load(folder).fingerprint
    assert len(first) == 64
    assert fingerprint(folder) == first
    assert fingerprint(tiny.save(tmp_path / "elsewhere")) == first
    assert fingerprint(tiny.save(tmp_path / "other", seed=1)) != first
    (folder / "README.md").write_text("A model.")
    assert fingerprint(folder) == first
    tiny.edit_json(folder / "config.json", layer_norm_eps=1e-3)
    second = fingerprint(folder)
    tiny.edit_json(folder / "tokenizer_config.json", model_max_length=30)
    assert len({first, second, fingerprint(folder)}) == 3


# Series


def test_checkpoints_load_by_step_by_item_and_by_folder(series) -> None:
    listed = checkpoints(str(series))
    assert [item.step for item in listed] == [0, 10, 100]
    assert [item.path.name for item in listed] == ["step-000000", "step-000010", "step-000100"]
    by_step, by_item = load(series, step=10), identify(listed[1])
    assert by_step.fingerprint == by_item.fingerprint == fingerprint(series / "step-000010")
    assert by_step.name.endswith("mini@step-000010")
    assert (by_step.step, by_item.step) == (10, 10)
    assert fingerprint(listed[0]) != by_step.fingerprint
    # without a step the last
    assert identify(series) == identify(listed[2])


def test_a_checkpoint_on_record_is_known_by_its_hash_and_cannot_be_loaded(series, tmp_path) -> None:
    series = shutil.copytree(series, tmp_path / "mini")
    hashes = {item.step: fingerprint(item) for item in checkpoints(str(series))}
    shutil.rmtree(series / "step-000010")
    assert checkpoints(str(series), recorded=True) == checkpoints(str(series))
    lines = ["step,fingerprint", *(f"{step},{value}" for step, value in hashes.items())]
    (series / "checkpoints.csv").write_text("\n".join(lines) + "\n")
    listed = checkpoints(str(series), recorded=True)
    assert {item.step: fingerprint(item) for item in listed} == hashes
    assert identify(listed[1]).name == f"{series}@step-000010"
    assert identity.series_name(identify(listed[1])) == "mini"
    assert [item.step for item in checkpoints(str(series))] == [0, 100]
    with pytest.raises(ValueError, match="has no step 10: it has 0, 100"):
        load(listed[1])


# The hub, from its cache: these tests run offline


@pytest.fixture
def hub_cache(tmp_path, folder, monkeypatch) -> Path:
    """A hub cache that holds someone/tiny: main, and the revisions step-10 and step1000."""
    from huggingface_hub import constants

    root = tmp_path / "hub"
    home = root / "models--someone--tiny"
    for number, revision in enumerate(("main", "step-10", "step1000", "other"), start=1):
        commit = f"{number:040x}"
        tiny.save(home / "snapshots" / commit, seed=number, layers=1)
        (home / "refs").mkdir(exist_ok=True)
        (home / "refs" / revision).write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(root))
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(root))
    return root


def test_hub_revisions_make_a_series(hub_cache, tmp_path) -> None:
    encoder = load("someone/tiny")
    assert encoder.name == "someone/tiny"
    assert encoder.fingerprint == fingerprint(tiny.save(tmp_path / "main", seed=1, layers=1))
    listed = checkpoints("someone/tiny")
    assert [(item.step, item.revision) for item in listed] == [(10, "step-10"), (1000, "step1000")]
    encoder = load("someone/tiny", step=1000)
    assert (encoder.name, encoder.step) == ("someone/tiny@step-001000", 1000)
    assert encoder.fingerprint == fingerprint(tiny.save(tmp_path / "same", seed=3, layers=1))
    assert load("someone/tiny", revision="step-10").step is None
    with pytest.raises(ModelNotFoundError, match="at revision 'step-7' here"):
        load("someone/tiny", revision="step-7")


@pytest.mark.parametrize("name", ["no-such-model", "someone/no-such-model"])
@pytest.mark.parametrize("call", [load, checkpoints])
def test_name_that_does_not_exist_offline_gets_one_sentence(name, call) -> None:
    with pytest.raises(ModelNotFoundError, match="offline") as error:
        call(name)
    message = str(error.value)
    assert_one_sentence(error)
    assert message.startswith(f"there is no model '{name}' here")
    assert f"hf download {name}" in message
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


def test_only_what_is_read_is_downloaded() -> None:
    weights = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    read = ["config.json", *weights, "model.safetensors.index.json", "sentencepiece.bpe.model"]
    other = ["README.md", "onnx/model.safetensors", "pytorch_model.bin", "modeling_own.py"]
    listed = [*read, *other]
    assert sorted(identity.files_read(listed)) == read
    assert "pytorch_model.bin" in identity.files_read([f for f in listed if "safetensors" not in f])


def listed(monkeypatch, sizes: dict[str, int | None]) -> None:
    """The hub says that someone/tiny has these files, of its first commit."""
    files = [SimpleNamespace(rfilename=file, size=size) for file, size in sizes.items()]

    def model_info(self, name, *, revision, files_metadata):
        assert (name, files_metadata) == ("someone/tiny", True)
        return SimpleNamespace(sha=f"{1:040x}", siblings=files)

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", model_info)


def test_what_is_to_be_downloaded_is_told_before(hub_cache, monkeypatch) -> None:
    # config.json and model.safetensors are in the cache; onnx is never read.
    sizes = {"config.json": 700, "model.safetensors": 10**9, "onnx/model.onnx": 9 * 10**9}
    listed(monkeypatch, sizes)
    assert identity.download_ahead("someone/tiny") is None
    parts = {f"model-0000{i}-of-00002.safetensors": 3 * 10**9 for i in (1, 2)}
    listed(monkeypatch, {**sizes, **parts, "tokenizer.json": 10**6, "vocab.txt": 5 * 10**8})
    monkeypatch.setattr(store, "free_disk", lambda folder: 8e9)
    assert identity.download_ahead("someone/tiny") == (
        "someone/tiny: 6.50 GB to be downloaded (8.0 GB free)"
    )
    monkeypatch.setattr(store, "free_disk", lambda folder: 6e9)
    assert "(6.0 GB free: too few, set HF_HUB_CACHE" in identity.download_ahead("someone/tiny")


# What must not run


@pytest.mark.parametrize("as_zip", [True, False])
def test_pickle_with_code_is_refused_and_not_run(tmp_path, as_zip) -> None:
    folder = tiny.save(tmp_path / "model", safetensors=False)
    touched = tmp_path / "touched"
    torch.save(
        {"a": Attack(touched)}, folder / "pytorch_model.bin", _use_new_zipfile_serialization=as_zip
    )
    with pytest.raises(ValueError, match=r"could run code when read: get the model as") as e:
        load(folder)
    assert_one_sentence(e)
    assert not touched.exists()
    torch.load(folder / "pytorch_model.bin", weights_only=False)
    assert touched.exists(), "the attack would have worked"


def own_code(folder: Path, tmp_path: Path) -> Path:
    """Code beside the weights that leaves a trace when run."""
    touched = tmp_path / "touched"
    (folder / "own.py").write_text(
        textwrap.dedent(f"""
            from pathlib import Path
            from transformers import BertConfig, BertModel, BertTokenizer
            Path({str(touched)!r}).touch()
            class OwnConfig(BertConfig):
                model_type = "own"
            class OwnModel(BertModel):
                config_class = OwnConfig
            class OwnTokenizer(BertTokenizer):
                pass
        """)
    )
    return touched


AUTO = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
OF_WORDS = {"AutoTokenizer": ["own.OwnTokenizer", None]}


@pytest.mark.parametrize(
    ("file", "change", "says"),
    [
        ("config", {"model_type": "own", "auto_map": AUTO}, "its own for the architecture 'own'"),
        ("tokenizer_config", {"auto_map": OF_WORDS}, "code of its own for its tokenizer"),
        ("config", {"auto_map": AUTO}, "trained as OwnModel, Python code of its own"),
        ("config", {"auto_map": {"AutoModel": "x/y--own.JinaXLMRobertaModel"}}, "JinaXLM"),
        # the class that transformers have under this architecture, in a file of its own
        ("config", {"auto_map": {"AutoModel": ["own.XLMRobertaModel", None]}}, None),
    ],
)
def test_code_that_comes_with_a_model_is_not_run(folder, tmp_path, file, change, says) -> None:
    touched = own_code(folder, tmp_path)
    tiny.edit_json(folder / f"{file}.json", **change)
    if says is None:
        assert type(load(folder).model).__name__ == "XLMRobertaModel"
    else:
        with pytest.raises(ValueError, match=says) as error:
            load(folder)
        assert_one_sentence(error)
    assert not touched.exists()


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gemma2"])
def test_a_decoder_that_reads_both_ways_is_an_encoder(tmp_path, architecture) -> None:
    encoder = load(tiny.save(tmp_path / "both", architecture, is_causal=False))
    assert encoder.kind == "encoder"
    ids = torch.tensor([[3, 4, 5], [3, 4, 6]])
    one, other = encoder.model(ids).last_hidden_state[:, 0]
    assert not torch.allclose(one, other)
    folder = tiny.save(tmp_path / "one", architecture)
    assert load(folder).kind == "decoder"
    tiny.edit_json(folder / "config.json", use_bidirectional_attention=True)
    with pytest.raises(ValueError, match=r"use_bidirectional_attention in.*from left to right"):
        load(folder)


def test_what_a_tokenizer_was_saved_with_and_line_ends_change_nothing(folder, tmp_path) -> None:
    sentences, raw = list(tiny.SENTENCES), load(folder).tokenizer.backend_tokenizer
    whole = states.embed(load(folder), sentences).states
    raw.enable_truncation(6)
    raw.enable_padding(length=40)
    raw.save(str(folder / "tokenizer.json"))
    assert np.array_equal(states.embed(load(folder), sentences).states, whole)
    words, pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "word", "##s"], []
    for name, end in (("unix", "\n"), ("windows", "\r\n")):
        own = tiny.save(tmp_path / name, "bert")
        (own / "tokenizer.json").unlink()
        (own / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
        (own / "vocab.txt").write_bytes("".join(word + end for word in words).encode())
        pieces.append(loading.tokenizer(own)("The words")["input_ids"])
    assert pieces == [[2, 4, 5, 6, 3]] * 2


def test_xlm_counts_every_token_whatever_its_pad_index(tmp_path) -> None:
    encoder = load(tiny.save(tmp_path / "xlm", "xlm", pad_index=0))  # the id of <s>
    ids = torch.tensor([encoder.tokenizer(tiny.SENTENCES[0])["input_ids"]])
    own = transformers.AutoModel.from_pretrained(tmp_path / "xlm").eval()
    expected = own(ids, attention_mask=torch.ones_like(ids)).last_hidden_state[:, 1:-1]
    found = states.embed(encoder, [tiny.SENTENCES[0]], pooling="mean").states[-1]
    np.testing.assert_allclose(found, expected.mean(dim=1).detach(), atol=1e-6)


# Folders that lack something


def config(**changes: object):
    return lambda folder: tiny.edit_json(folder / "config.json", **changes)


def without(file: str):
    return lambda folder: (folder / file).unlink()


def torn(file: str, keep: float):
    def tear(folder: Path) -> None:
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[: int(keep * len(content))])

    return tear


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (config(model_type="transformer-of-2031"), "does not recognize this architecture"),
        (config(num_hidden_layers=3), r"lacks 16 of the weights .*layer\.2\."),
        (config(hidden_size=16), r"weights of other sizes than its config\.json"),
        (without("config.json"), "FOLDER holds no model: no config.json"),
        (without("model.safetensors"), "FOLDER holds no weights"),
        (without("tokenizer.json"), "FOLDER holds no tokenizer"),
        *(
            (torn(file, keep), "FOLDER")
            for file in ("config.json", "model.safetensors", "tokenizer.json")
            for keep in (0, 0.5)
        ),
    ],
)
def test_what_is_missing_or_torn_is_named_in_one_sentence(folder, spoil, says) -> None:
    spoil(folder)
    says = says.replace("FOLDER", re.escape(str(folder)))
    with pytest.raises((ValueError, ModelNotFoundError), match=says) as error:
        load(folder)
    assert_one_sentence(error)
