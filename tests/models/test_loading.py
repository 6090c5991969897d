"""Loading: three architectures, series, refusals in one sentence, and fairseq checkpoints."""

import json
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from huggingface_hub import errors
from tokenizers import Tokenizer
from transformers import AutoModel, XLMRobertaForMaskedLM

from tests import tiny
from tests.models.conftest import SENTENCE, Attack, assert_one_sentence, hidden
from xlx.core import paths
from xlx.models import hub, loading
from xlx.models.loading import ModelNotFoundError, checkpoints, load


@pytest.fixture(scope="module")
def series(tmp_path_factory) -> Path:
    return tiny.series(tmp_path_factory.mktemp("series") / "mini")


@pytest.fixture
def folder(tmp_path) -> Path:
    """A model folder that a test may spoil."""
    return tiny.save(tmp_path / "model")


@pytest.mark.parametrize("name", tiny.KINDS)
def test_all_architectures_load(folders, name) -> None:
    encoder = load(folders[name], device="cpu")
    assert (encoder.kind, encoder.n_layers, encoder.dim) == (tiny.KINDS[name], 2, 32)
    assert encoder.dtype == torch.float32
    assert {p.dtype for p in encoder.model.parameters()} == {torch.float32}
    assert not encoder.model.training
    assert hidden(encoder.model, encoder.tokenizer).shape[::3] == (3, 32)
    raw = Tokenizer.from_file(str(folders[name] / "tokenizer.json"))
    for sentence in tiny.SENTENCES:
        assert encoder.tokenizer(sentence)["input_ids"] == raw.encode(sentence).ids


def test_of_an_encoder_decoder_the_encoder_is_kept(folders) -> None:
    encoder = load(folders["t5"], device="cpu")
    full = AutoModel.from_pretrained(folders["t5"], dtype=torch.float32).eval()
    ids = torch.tensor([encoder.tokenizer(SENTENCE)["input_ids"]])
    with torch.no_grad():
        output = full(ids, decoder_input_ids=torch.tensor([[0]]), output_hidden_states=True)
    found = hidden(encoder.model, encoder.tokenizer)
    assert torch.equal(found, torch.stack(output.encoder_hidden_states))


def test_extra_pooling_layer_is_left_out(folders) -> None:
    model = load(folders["xlm-roberta"], device="cpu").model
    assert not [name for name, _ in model.named_parameters() if "pooler" in name]


def test_half_precision_weights_are_read_in_the_precision_asked_for(folder) -> None:
    XLMRobertaForMaskedLM.from_pretrained(folder, dtype=torch.bfloat16).save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text())["dtype"] == "bfloat16"
    for dtype in loading.DTYPES:
        encoder = load(folder, device="cpu", dtype=dtype)
        assert {p.dtype for p in encoder.model.parameters()} == {loading.DTYPES[dtype]}
    with pytest.raises(ValueError, match="dtype 'half' is not one of float32, bfloat16"):
        load(folder, dtype="half")


@pytest.mark.parametrize(
    ("name", "limit"),
    [("xlm-roberta", 64), ("bert", 64), ("gpt2", 64), ("llama", 64), ("t5", None), ("bart", 64)],
)
def test_maximum_length(folders, name, limit) -> None:
    encoder = load(folders[name], device="cpu")
    assert encoder.max_length == limit
    encoder.tokenizer.model_max_length = 20
    assert encoder.max_length == 20


def test_padding_id_without_a_padding_token(folders) -> None:
    encoder = load(folders["gpt2"], device="cpu")
    assert encoder.tokenizer.pad_token is None
    assert 0 <= encoder.pad_id < encoder.vocabulary_size
    assert load(folders["xlm-roberta"], device="cpu").pad_id == 1


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
    assert load(folder).fingerprint == first
    assert load(tiny.save(tmp_path / "elsewhere")).fingerprint == first
    assert load(tiny.save(tmp_path / "other", seed=1)).fingerprint != first
    (folder / "README.md").write_text("A model.")
    assert load(folder).fingerprint == first
    tiny.edit_json(folder / "config.json", layer_norm_eps=1e-3)
    second = load(folder).fingerprint
    tiny.edit_json(folder / "tokenizer_config.json", model_max_length=30)
    assert len({first, second, load(folder).fingerprint}) == 3


# Series


def test_series_is_sorted_by_step(series) -> None:
    found = checkpoints(str(series))
    assert [item.step for item in found] == [0, 10, 100]
    assert [item.path.name for item in found] == ["step-000000", "step-000010", "step-000100"]


def test_checkpoints_load_by_step_by_item_and_by_folder(series) -> None:
    by_step = load(series, step=10)
    by_item = load(checkpoints(str(series))[1])
    by_folder = load(series / "step-000010")
    assert by_step.fingerprint == by_item.fingerprint == by_folder.fingerprint
    assert by_step.name.endswith("mini@step-000010")
    assert (by_step.step, by_item.step) == (10, 10)
    assert load(series, step=0).fingerprint != by_step.fingerprint


def test_series_without_a_step_gives_the_last(series) -> None:
    encoder = load(series)
    assert encoder.step == 100
    assert encoder.fingerprint == load(series, step=100).fingerprint


def test_bare_name_is_looked_for_among_shipped_models(series, monkeypatch) -> None:
    monkeypatch.setattr(paths, "MODELS", series.parent)
    encoder = load("mini", step=10)
    assert encoder.name == "mini@step-000010"
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
    with pytest.raises(ValueError, match="has no step 50: it has 0, 10, 100"):
        load(series, step=50)
    with pytest.raises(ValueError, match="is no checkpoint series"):
        load(folder, step=1)
    with pytest.raises(ValueError, match="is no checkpoint series"):
        checkpoints(str(folder))
    with pytest.raises(ValueError, match="which has no revisions"):
        load(folder, revision="main")


# The hub, from its cache: these tests run offline


@pytest.fixture
def hub_cache(tmp_path, folder, monkeypatch) -> Path:
    """A hub cache that holds someone/tiny: main, and the revisions step-10 and step1000."""
    from huggingface_hub import constants

    root = tmp_path / "hub"
    home = root / "models--someone--tiny"
    for number, revision in enumerate(("main", "step-10", "step1000", "other"), start=1):
        commit = f"{number:040x}"
        tiny.save(home / "snapshots" / commit, seed=number)
        (home / "refs").mkdir(exist_ok=True)
        (home / "refs" / revision).write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(root))
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(root))
    return root


def test_hub_name_loads_from_the_cache(hub_cache, tmp_path) -> None:
    encoder = load("someone/tiny")
    assert encoder.name == "someone/tiny"
    assert encoder.fingerprint == load(tiny.save(tmp_path / "same", seed=1)).fingerprint


def test_hub_revisions_make_a_series(hub_cache, tmp_path) -> None:
    found = checkpoints("someone/tiny")
    assert [(item.step, item.revision) for item in found] == [(10, "step-10"), (1000, "step1000")]
    encoder = load("someone/tiny", step=1000)
    assert (encoder.name, encoder.step) == ("someone/tiny@step-001000", 1000)
    assert encoder.fingerprint == load(tiny.save(tmp_path / "same", seed=3)).fingerprint
    assert load("someone/tiny", revision="step-10").step is None
    with pytest.raises(ModelNotFoundError, match="at revision 'step-7' here"):
        load("someone/tiny", revision="step-7")


@pytest.mark.parametrize("name", ["no-such-model", "someone/no-such-model"])
@pytest.mark.parametrize("call", [load, checkpoints])
def test_name_that_does_not_exist_offline_gets_one_sentence(hub_cache, name, call) -> None:
    with pytest.raises(ModelNotFoundError, match="offline") as error:
        call(name)
    message = str(error.value)
    assert_one_sentence(error)
    assert message.startswith(f"there is no model '{name}' here")
    assert f"hf download {name}" in message
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


def test_name_that_does_not_exist_ends_a_program_with_one_error(tmp_path) -> None:
    code = "from xlx import models; models.load('no/such-model')"
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PATH": "/usr/bin"}
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=paths.ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1
    assert process.stderr.count("Traceback") == 1
    last = process.stderr.strip().splitlines()[-1]
    assert last.startswith(
        "xlx.models.hub.ModelNotFoundError: there is no model 'no/such-model' here"
    )


@pytest.mark.parametrize("name", ["./nothing", "/no/such/folder", "~/nothing-here", "a/b/c"])
def test_path_that_does_not_exist(name) -> None:
    with pytest.raises(ModelNotFoundError, match="there is no model folder"):
        load(name)


@pytest.mark.parametrize("name", ["", "a b", "x/..", "a--b"])
def test_name_that_cannot_be_one(name) -> None:
    with pytest.raises((ModelNotFoundError, ValueError)) as error:
        load(name)
    assert_one_sentence(error)


@pytest.mark.parametrize("error", [errors.HTTPError, ConnectionError, TimeoutError])
def test_hub_unreachable_falls_back_to_the_cache(hub_cache, monkeypatch, error) -> None:
    import huggingface_hub

    def unreachable(*_, **__):
        raise error("no route")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", unreachable)
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_refs", unreachable)
    assert load("someone/tiny").name == "someone/tiny"
    assert len(checkpoints("someone/tiny")) == 2


def test_server_in_trouble_gets_one_sentence(monkeypatch) -> None:
    import huggingface_hub

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
    assert sorted(hub.files_read(listed)) == [
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "sentencepiece.bpe.model",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert "pytorch_model.bin" in hub.files_read([f for f in listed if "safetensors" not in f])


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


def test_architecture_with_code_of_its_own_is_refused(folder, tmp_path) -> None:
    touched = own_code(folder, tmp_path)
    auto = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    tiny.edit_json(folder / "config.json", model_type="own", auto_map=auto)
    with pytest.raises(
        ValueError, match=r"needs Python code of its own for the architecture 'own'"
    ):
        load(folder)
    assert not touched.exists()


def test_code_beside_a_known_architecture_is_not_used(folder, tmp_path) -> None:
    touched = own_code(folder, tmp_path)
    auto = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    tiny.edit_json(folder / "config.json", auto_map=auto)
    assert type(load(folder).model).__name__ == "XLMRobertaModel"
    assert not touched.exists()


def test_tokenizer_with_code_of_its_own_is_refused(folder, tmp_path) -> None:
    touched = own_code(folder, tmp_path)
    auto = {"AutoTokenizer": ["own.OwnTokenizer", None]}
    tiny.edit_json(folder / "tokenizer_config.json", auto_map=auto)
    with pytest.raises(ValueError, match="needs Python code of its own for its tokenizer"):
        load(folder)
    assert not touched.exists()


def test_unknown_architecture(folder) -> None:
    tiny.edit_json(folder / "config.json", model_type="transformer-of-2031")
    with pytest.raises(ValueError, match="which the installed transformers does not know"):
        load(folder)


# Folders that lack something


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("config.json", "holds no model: there is no config.json"),
        ("model.safetensors", "has no weights"),
        ("tokenizer.json", "has no tokenizer"),
    ],
)
def test_what_is_missing_is_named(folder, file, message) -> None:
    (folder / file).unlink()
    with pytest.raises(ModelNotFoundError, match=message) as error:
        load(folder)
    assert_one_sentence(error)
    assert str(folder) in str(error.value)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("keep", [0, 0.5])
def test_torn_files_get_one_sentence(folder, file, keep) -> None:
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[: int(keep * len(content))])
    with pytest.raises(ValueError) as error:  # noqa: PT011
        load(folder)
    assert_one_sentence(error)
    assert str(folder) in str(error.value)


def test_file_in_place_of_a_folder(folder) -> None:
    with pytest.raises(ValueError, match="is a file: give the folder"):
        load(folder / "config.json")


def test_missing_weights_are_not_made_up(folder) -> None:
    tiny.edit_json(folder / "config.json", num_hidden_layers=3)
    with pytest.raises(ValueError, match=r"lacks 16 of the weights .*layer\.2\.") as error:
        load(folder)
    assert_one_sentence(error)


def test_weights_of_another_size_are_refused(folder) -> None:
    tiny.edit_json(folder / "config.json", hidden_size=16)
    with pytest.raises(ValueError, match=r"weights of other sizes than its config\.json") as error:
        load(folder)
    assert_one_sentence(error)
