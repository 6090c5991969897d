"""Loading: three architectures, series, the hub's cache, and refusals in one sentence."""

import copy
import hashlib
import json
import os
import pickle
import re
import shutil
import textwrap
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import huggingface_hub
import pytest
import torch
from huggingface_hub import errors
from tokenizers import Tokenizer
from transformers import AutoModel, XLMRobertaForMaskedLM

from tests import tiny
from tests.models.conftest import SENTENCE, Attack, assert_one_sentence, hidden
from xlx.results import paths, settings, store
from xlx.subjects import identity, loading
from xlx.subjects.identity import (
    ModelNotFoundError,
    checkpoints,
    fingerprint,
    identify,
    recorded_checkpoints,
)
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


def test_of_an_encoder_decoder_the_encoder_is_kept(folders, encoders) -> None:
    encoder = encoders["t5"]
    full = AutoModel.from_pretrained(folders["t5"], dtype=torch.float32).eval()
    ids = torch.tensor([encoder.tokenizer(SENTENCE)["input_ids"]])
    with torch.no_grad():
        output = full(ids, decoder_input_ids=torch.tensor([[0]]), output_hidden_states=True)
    found = hidden(encoder.model, encoder.tokenizer)
    assert torch.equal(found, torch.stack(output.encoder_hidden_states))


def test_half_precision_weights_are_read_in_the_precision_asked_for(folder) -> None:
    XLMRobertaForMaskedLM.from_pretrained(folder, dtype=torch.bfloat16).save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text())["dtype"] == "bfloat16"
    for dtype in loading.DTYPES:
        encoder = load(folder, device="cpu", dtype=dtype)
        assert {p.dtype for p in encoder.model.parameters()} == {loading.DTYPES[dtype]}
    with pytest.raises(ValueError, match="dtype 'half' is not one of float32, bfloat16"):
        load(folder, dtype="half")


def test_device() -> None:
    assert loading.device_of("cpu") == torch.device("cpu")
    assert loading.device_of(None).type == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(ValueError, match="device 'gpu' is not known"):
        loading.device_of("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="torch sees no CUDA device here; use 'cpu'"):
            loading.device_of("cuda")


# Fingerprint


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


def test_a_folder_has_the_title_of_its_name(series, tmp_path, monkeypatch) -> None:
    assert identity.title(str(series)) == "mini"
    assert identity.title(f"{series}/step-000010") == "mini/step-000010"
    assert identity.series_name(identify(f"{series}/step-000010")) == "mini/step-000010"
    assert identity.title("mini-xlmr/step-000000") == "mini-xlmr/step-000000"  # a name, no folder
    monkeypatch.chdir(series)
    assert identity.title(".") == "mini"


def test_a_checkpoint_on_record_is_known_by_its_hash_and_cannot_be_loaded(series, tmp_path) -> None:
    series = shutil.copytree(series, tmp_path / "mini")
    hashes = {item.step: fingerprint(item) for item in checkpoints(str(series))}
    shutil.rmtree(series / "step-000010")
    assert recorded_checkpoints(str(series)) == checkpoints(str(series))
    lines = ["step,fingerprint", *(f"{step},{value}" for step, value in hashes.items())]
    (series / "checkpoints.csv").write_text("\n".join(lines) + "\n")
    listed = recorded_checkpoints(str(series))
    assert {item.step: fingerprint(item) for item in listed} == hashes
    assert identify(listed[1]).name == f"{series}@step-000010"
    assert identity.series_name(identify(listed[1])) == "mini"
    assert [item.step for item in checkpoints(str(series))] == [0, 100]
    with pytest.raises(ValueError, match="has no step 10: it has 0, 100"):
        load(listed[1])


def test_bare_name_is_looked_for_among_shipped_models(series, monkeypatch) -> None:
    monkeypatch.setattr(paths, "MODELS", series.parent)
    assert identify(checkpoints("mini")[1]).name == "mini@step-000010"
    assert [item.step for item in checkpoints("mini")] == [0, 10, 100]
    with pytest.raises(ModelNotFoundError, match=r"not among the shipped ones \(mini\)"):
        load("min")


def test_names_of_step_folders(tmp_path) -> None:
    for name in ("step-5", "step20", "step_7", "step1000-tokens4B", "steps", "step-x", "last"):
        (tmp_path / name).mkdir()
    (tmp_path / "step-9").write_text("a file")
    assert [item.step for item in checkpoints(str(tmp_path))] == [5, 7, 20, 1000]
    (tmp_path / "step-05").mkdir()
    with pytest.raises(ValueError, match="has step 5 twice: step-05 and step-5"):
        checkpoints(str(tmp_path))


def test_step_that_is_not_there_is_named_with_those_that_are(series, folder) -> None:
    for call, says in (
        (lambda: load(series, step=50), "has no step 50: it has 0, 10, 100"),
        (lambda: load(folder, step=1), "is no checkpoint series"),
        (lambda: checkpoints(str(folder)), "is no checkpoint series"),
        (lambda: load(folder, revision="main"), "which has no revisions"),
    ):
        with pytest.raises(ValueError, match=says):
            call()


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


@pytest.mark.parametrize(
    ("name", "says"),
    [(name, "there is no model folder") for name in ("./nothing", "/no/such", "~/nothing", "a/b/c")]
    + [(name, "") for name in ("", "a b", "x/..", "a--b")],
)
def test_name_that_cannot_be_one(name, says) -> None:
    with pytest.raises((ModelNotFoundError, ValueError), match=says) as error:
        load(name)
    assert_one_sentence(error)


def test_hub_unreachable_falls_back_to_the_cache(hub_cache, monkeypatch) -> None:
    for error in (errors.HTTPError, ConnectionError, TimeoutError):

        def unreachable(*_, error=error, **__):
            raise error("no route")

        monkeypatch.setattr(huggingface_hub.HfApi, "model_info", unreachable)
        monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_refs", unreachable)
        assert identify("someone/tiny").name == "someone/tiny"
        assert len(checkpoints("someone/tiny")) == 2


def test_server_in_trouble_gets_one_sentence(monkeypatch) -> None:
    def trouble(*_, **__):
        raise errors.HfHubHTTPError("503 Service Unavailable\nsorry", response=Response())

    class Response:
        headers: ClassVar = {}
        request = None

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", trouble)
    with pytest.raises(ModelNotFoundError, match="did not give out 'a/b': 503 Serv") as error:
        load("a/b")
    assert_one_sentence(error)


def test_only_what_is_read_is_downloaded() -> None:
    listed = [
        "README.md",
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "onnx/model.safetensors",
        "original/consolidated.00.pth",
        "pytorch_model.bin",
        "sentencepiece.bpe.model",
        "tf_model.h5",
        "tokenizer.json",
        "tokenizer_config.json",
        "modeling_own.py",
    ]
    assert sorted(identity.files_read(listed)) == [
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "sentencepiece.bpe.model",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
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
        "someone/tiny: 6.50 GB to be downloaded, of them 6.00 GB weights (8.0 GB free)"
    )
    monkeypatch.setattr(store, "free_disk", lambda folder: 6e9)
    assert "(6.0 GB free: too few, set HF_HUB_CACHE" in identity.download_ahead("someone/tiny")
    listed(monkeypatch, {**sizes, "vocab.txt": None})
    assert "the hub does not say how large" in identity.download_ahead("someone/tiny")


def test_where_the_hub_cannot_be_asked_nothing_is_said_of_downloads(hub_cache) -> None:
    assert identity.download_ahead("someone/tiny") is None  # tests are offline
    with pytest.raises(ModelNotFoundError, match="there is no model 'a b'"):
        identity.download_ahead("a b")


# What must not run


def test_pickled_weights_are_read(folder, tmp_path) -> None:
    pickled = tiny.save(tmp_path / "pickled", safetensors=False)
    assert not list(pickled.glob("*.safetensors"))
    one, other = load(folder), load(pickled)
    assert torch.equal(hidden(one.model, one.tokenizer), hidden(other.model, other.tokenizer))


@pytest.mark.parametrize("as_zip", [True, False])
def test_pickle_with_code_is_refused_and_not_run(tmp_path, as_zip) -> None:
    folder = tiny.save(tmp_path / "model", safetensors=False)
    touched = tmp_path / "touched"
    torch.save(
        {"a": Attack(touched)},
        folder / "pytorch_model.bin",
        _use_new_zipfile_serialization=as_zip,
    )
    with pytest.raises(
        ValueError, match=r"could run code when read: get the model as safeten"
    ) as e:
        load(folder)
    assert_one_sentence(e)
    assert not touched.exists()
    torch.load(folder / "pytorch_model.bin", weights_only=False)
    assert touched.exists(), "the attack would have worked"


def test_safetensors_are_preferred(folder, tmp_path) -> None:
    with (folder / "pytorch_model.bin").open("wb") as file:
        pickle.dump(Attack(tmp_path / "touched"), file)
    load(folder)
    assert not (tmp_path / "touched").exists()


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
        ("config", {"model_type": "own", "auto_map": AUTO}, "for the architecture 'own'"),
        ("tokenizer_config", {"auto_map": OF_WORDS}, "for its tokenizer"),
        ("config", {"auto_map": AUTO}, None),  # a known architecture: the code is not used
    ],
)
def test_code_that_comes_with_a_model_is_not_run(folder, tmp_path, file, change, says) -> None:
    touched = own_code(folder, tmp_path)
    tiny.edit_json(folder / f"{file}.json", **change)
    if says is None:
        assert type(load(folder).model).__name__ == "XLMRobertaModel"
    else:
        with pytest.raises(ValueError, match=f"needs Python code of its own {says}"):
            load(folder)
    assert not touched.exists()


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
        (config(model_type="transformer-of-2031"), "which the installed transformers does not"),
        (config(num_hidden_layers=3), r"lacks 16 of the weights .*layer\.2\."),
        (config(hidden_size=16), r"weights of other sizes than its config\.json"),
        (without("config.json"), "FOLDER holds no model: there is no config.json"),
        (without("model.safetensors"), "FOLDER, has no weights"),
        (without("tokenizer.json"), "FOLDER, has no tokenizer"),
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


def test_file_in_place_of_a_folder(folder) -> None:
    with pytest.raises(ValueError, match="is a file: give the folder"):
        load(folder / "config.json")


def test_the_hash_of_a_large_file_is_read_once(tmp_path, monkeypatch) -> None:
    read = []
    monkeypatch.setattr(identity, "_LARGE", 10)
    whole = identity._hash
    monkeypatch.setattr(identity, "_hash", lambda path: read.append(path.name) or whole(path))
    weights, small = tmp_path / "model.safetensors", tmp_path / "config.json"
    weights.write_bytes(b"0" * 20)
    small.write_bytes(b"{}")
    content = hashlib.sha256(b"0" * 20).hexdigest()
    with settings.settings(cache=tmp_path / "cache"):
        identity.content_hash(weights)  # just written: it may change once more in the same moment
        assert not (tmp_path / "cache").exists()
        before = weights.stat().st_mtime - 60
        os.utime(weights, (before, before))
        read.clear()
        assert [identity.content_hash(weights) for _ in range(3)] == [content] * 3
        assert read == ["model.safetensors"]
        assert {identity.content_hash(small) for _ in range(2)} == {whole(small)}
        assert read == ["model.safetensors", "config.json", "config.json"]
        weights.write_bytes(b"1" * 20)
        os.utime(weights, (before + 1, before + 1))
        assert identity.content_hash(weights) == hashlib.sha256(b"1" * 20).hexdigest()
        (remembered,) = [
            x for x in (tmp_path / "cache/hashes").iterdir() if x.read_text() != content
        ]
        remembered.write_text("torn")
        assert identity.content_hash(weights) == whole(weights)
    with settings.settings(cache=small / "nowhere"):  # which cannot be made
        assert identity.content_hash(weights) == whole(weights)
