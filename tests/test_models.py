"""Loading: three architectures, series, refusals in one sentence, and fairseq checkpoints."""

import argparse
import json
import pickle
import struct
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from huggingface_hub import errors
from tokenizers import Tokenizer
from transformers import AutoModel, AutoTokenizer, XLMRobertaForMaskedLM

from tests import tiny
from xlx import fairseq, models, paths
from xlx.models import ModelNotFoundError, checkpoints, convert_fairseq, load

SENTENCE = tiny.SENTENCES[1]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {name: tiny.save(root / name, name) for name in tiny.KINDS}


@pytest.fixture(scope="module")
def series(tmp_path_factory) -> Path:
    return tiny.series(tmp_path_factory.mktemp("series") / "mini")


@pytest.fixture
def folder(tmp_path) -> Path:
    """A model folder that a test may spoil."""
    return tiny.save(tmp_path / "model")


def hidden(model, tokenizer) -> torch.Tensor:
    ids = torch.tensor([tokenizer(SENTENCE)["input_ids"]])
    with torch.no_grad():
        return torch.stack(model(input_ids=ids, output_hidden_states=True).hidden_states)


def assert_one_sentence(error: pytest.ExceptionInfo) -> None:
    assert "\n" not in str(error.value)


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
    for dtype in models.DTYPES:
        encoder = load(folder, device="cpu", dtype=dtype)
        assert {p.dtype for p in encoder.model.parameters()} == {models.DTYPES[dtype]}
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
    assert models.device_of("cpu") == torch.device("cpu")
    assert models.device_of(None).type == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(ValueError, match="device 'gpu' is not known"):
        models.device_of("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="torch sees no CUDA device here; use 'cpu'"):
            models.device_of("cuda")


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
def hub(tmp_path, folder, monkeypatch) -> Path:
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


def test_hub_name_loads_from_the_cache(hub, tmp_path) -> None:
    encoder = load("someone/tiny", local_only=True)
    assert encoder.name == "someone/tiny"
    assert encoder.fingerprint == load(tiny.save(tmp_path / "same", seed=1)).fingerprint


def test_hub_revisions_make_a_series(hub, tmp_path) -> None:
    found = checkpoints("someone/tiny", local_only=True)
    assert [(item.step, item.revision) for item in found] == [(10, "step-10"), (1000, "step1000")]
    encoder = load("someone/tiny", step=1000, local_only=True)
    assert (encoder.name, encoder.step) == ("someone/tiny@step-001000", 1000)
    assert encoder.fingerprint == load(tiny.save(tmp_path / "same", seed=3)).fingerprint
    assert load("someone/tiny", revision="step-10", local_only=True).step is None
    with pytest.raises(ModelNotFoundError, match="at revision 'step-7' here"):
        load("someone/tiny", revision="step-7", local_only=True)


@pytest.mark.parametrize("name", ["no-such-model", "someone/no-such-model"])
@pytest.mark.parametrize("call", [load, checkpoints])
def test_name_that_does_not_exist_offline_gets_one_sentence(hub, name, call) -> None:
    with pytest.raises(ModelNotFoundError, match="offline") as error:
        call(name, local_only=True)
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
    assert last.startswith("xlx.models.ModelNotFoundError: there is no model 'no/such-model' here")


@pytest.mark.parametrize("name", ["./nothing", "/no/such/folder", "~/nothing-here", "a/b/c"])
def test_path_that_does_not_exist(name) -> None:
    with pytest.raises(ModelNotFoundError, match="there is no model folder"):
        load(name)


@pytest.mark.parametrize("name", ["", "a b", "x/..", "a--b"])
def test_name_that_cannot_be_one(name) -> None:
    with pytest.raises((ModelNotFoundError, ValueError)) as error:
        load(name, local_only=True)
    assert_one_sentence(error)


@pytest.mark.parametrize("error", [errors.HTTPError, ConnectionError, TimeoutError])
def test_hub_unreachable_falls_back_to_the_cache(hub, monkeypatch, error) -> None:
    import huggingface_hub

    def unreachable(*_, **__):
        raise error("no route")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", unreachable)
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_refs", unreachable)
    assert load("someone/tiny", local_only=False).name == "someone/tiny"
    assert len(checkpoints("someone/tiny", local_only=False)) == 2


def test_server_in_trouble_gets_one_sentence(monkeypatch) -> None:
    import huggingface_hub

    def trouble(*_, **__):
        raise errors.HfHubHTTPError("503 Service Unavailable\nsorry", response=Response())

    class Response:
        headers: ClassVar = {}
        request = None

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", trouble)
    with pytest.raises(ModelNotFoundError, match="did not give out 'a/b': 503 Serv") as error:
        load("a/b", local_only=False)
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
    assert sorted(models._wanted(listed)) == [
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "sentencepiece.bpe.model",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert "pytorch_model.bin" in models._wanted([f for f in listed if "safetensors" not in f])


# What must not run


class Attack:
    """A pickle that writes a file when it is read."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return (Path.touch, (self.target,))


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
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message differs by file
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


# fairseq. The table below is written from fairseq's side, apart from the one in xlx.fairseq.


def fairseq_name(name: str) -> str:
    """Hugging Face's name of a weight in fairseq."""
    parts = name.split(".")
    if parts[:2] == ["roberta", "embeddings"]:
        return {
            "word_embeddings": "sentence_encoder.embed_tokens.weight",
            "position_embeddings": "sentence_encoder.embed_positions.weight",
            "LayerNorm": f"sentence_encoder.emb_layer_norm.{parts[-1]}",
        }[parts[2]]
    if parts[0] == "lm_head":
        return name if parts[1] != "decoder" else "lm_head.weight"
    number, rest = parts[3], ".".join(parts[4:-1])
    rest = {
        "attention.self.query": "self_attn.q_proj",
        "attention.self.key": "self_attn.k_proj",
        "attention.self.value": "self_attn.v_proj",
        "attention.output.dense": "self_attn.out_proj",
        "attention.output.LayerNorm": "self_attn_layer_norm",
        "intermediate.dense": "fc1",
        "output.dense": "fc2",
        "output.LayerNorm": "final_layer_norm",
    }[rest]
    return f"sentence_encoder.layers.{number}.{rest}.{parts[-1]}"


def fairseq_state(model: XLMRobertaForMaskedLM, style: str) -> dict[str, torch.Tensor]:
    """The weights as fairseq has them; `style` is the time: "2019", "2020" or "2021"."""
    state = {}
    for name, weight in model.state_dict().items():
        if "token_type" in name or "position_ids" in name or name == "lm_head.decoder.bias":
            continue
        state[fairseq_name(name)] = weight.clone()
    if style == "2019":
        for i in range(model.config.num_hidden_layers):
            for kind in ("weight", "bias"):
                stem = f"sentence_encoder.layers.{i}.self_attn"
                parts = [state.pop(f"{stem}.{role}_proj.{kind}") for role in "qkv"]
                state[f"{stem}.in_proj_{kind}"] = torch.cat(parts)
    if style == "2021":
        state = {k.replace("emb_layer_norm", "layernorm_embedding"): v for k, v in state.items()}
        state["sentence_encoder.version"] = torch.tensor([3.0])
    prefix = "encoder" if style == "2021" else "decoder"
    return {f"{prefix}.{name}": weight for name, weight in state.items()}


OPTIONS = {
    "arch": "roberta_base",
    "encoder_attention_heads": 4,
    "max_positions": 64,
    "activation_fn": "gelu",
    "dropout": 0.2,
}


def checkpoint_content(state: dict[str, torch.Tensor], style: str) -> dict:
    """A checkpoint with what training leaves in it."""
    namespace = argparse.Namespace(**OPTIONS, lr=[0.1])
    content = {
        "model": state,
        "optimizer_history": [{"num_updates": 10, "criterion_name": "MaskedLmLoss"}],
        "extra_state": {"epoch": 1, "best": np.float64(2.5), "val_loss": None},
        "last_optimizer_state": {"state": {0: {"exp_avg": torch.zeros(2)}}},
    }
    if style == "2021":
        return content | {"args": None, "cfg": {"_name": None, "model": namespace}}
    return content | {"args": namespace}


@pytest.fixture
def original(tmp_path) -> XLMRobertaForMaskedLM:
    folder = tiny.save(tmp_path / "original")
    model = XLMRobertaForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):  # zeros at first: two of them would be the same
            parameter.data.normal_(generator=torch.Generator().manual_seed(len(name)))
    model.roberta.embeddings.token_type_embeddings.weight.data.zero_()
    return model


@pytest.fixture
def write(tmp_path, original):
    """Write a checkpoint and return (checkpoint, options for the conversion)."""

    def written(style: str = "2021", change=lambda content: content) -> tuple[Path, dict]:
        path = tmp_path / "checkpoint.pt"
        torch.save(change(checkpoint_content(fairseq_state(original, style), style)), path)
        return path, {"tokenizer": tmp_path / "original"}

    return written


@pytest.mark.parametrize("style", ["2019", "2020", "2021"])
def test_fairseq_checkpoint_gives_the_same_states(write, original, tmp_path, style) -> None:
    path, options = write(style)
    made = convert_fairseq(path, tmp_path / "made" / "step-000010", **options)
    encoder = load(made, device="cpu")
    assert torch.equal(
        hidden(encoder.model, encoder.tokenizer),
        hidden(original.roberta, encoder.tokenizer),
    )
    config = encoder.model.config
    assert (config.num_attention_heads, config.hidden_dropout_prob) == (4, 0.2)
    assert (config.layer_norm_eps, config.max_position_embeddings) == (1e-5, 66)
    assert [item.step for item in checkpoints(str(tmp_path / "made"))] == [10]


@pytest.mark.parametrize("tied", [True, False])
def test_fairseq_language_modelling_head(write, original, tmp_path, tied) -> None:
    def untie(content: dict) -> dict:
        if not tied:
            content["model"]["encoder.lm_head.weight"] += 1.0
        return content

    path, options = write("2021", untie)
    made = convert_fairseq(path, tmp_path / "made", **options)
    model, report = XLMRobertaForMaskedLM.from_pretrained(made, output_loading_info=True)
    assert not any(report[name] for name in ("missing_keys", "unexpected_keys"))
    assert model.config.tie_word_embeddings == tied
    ids = torch.tensor([AutoTokenizer.from_pretrained(made)(SENTENCE)["input_ids"]])
    with torch.no_grad():
        expected = original(ids).logits
        if not tied:
            inner = original.roberta(ids).last_hidden_state
            head = original.lm_head
            inner = head.layer_norm(torch.nn.functional.gelu(head.dense(inner)))
            expected = inner @ (head.decoder.weight + 1.0).T + head.bias
        found = model.eval()(ids).logits
    assert torch.allclose(found, expected, atol=1e-4, rtol=1e-5)


def test_half_precision_fairseq_checkpoint(write, original, tmp_path) -> None:
    def half(content: dict) -> dict:
        return content | {"model": {name: w.half() for name, w in content["model"].items()}}

    path, options = write("2021", half)
    encoder = load(convert_fairseq(path, tmp_path / "made", **options))
    weight = original.roberta.embeddings.word_embeddings.weight
    assert torch.equal(encoder.model.embeddings.word_embeddings.weight, weight.half().float())


def without(name: str):
    return lambda content: (
        content
        | {"model": {key: w for key, w in content["model"].items() if not key.endswith(name)}}
    )


def having(name: str, weight: torch.Tensor | None = None):
    new = torch.zeros(2) if weight is None else weight
    return lambda content: content | {"model": content["model"] | {name: new}}


def options_changed(**changes):
    def change(content: dict) -> dict:
        content["cfg"]["model"] = argparse.Namespace(**(OPTIONS | changes))
        return content

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("layers.1.fc2.weight"), r"lacks 1 weights .*layer\.1\.output\.dense\.weight"),
        (without("embed_tokens.weight"), "has no roberta.embeddings.word_embeddings.weight"),
        (without("lm_head.bias"), r"lacks 1 weights .*lm_head\.bias"),
        (
            having("encoder.sentence_encoder.layer_norm.weight"),
            r"1 weights that .* has no place for: encoder\.sentence_encoder\.layer_norm\.weight",
        ),
        (having("classification_heads.x.dense.weight"), "classification_heads.x.dense.weight"),
        (having("encoder.sentence_encoder.layers.0.moe.weight"), r"layers\.0\.moe\.weight"),
        (having("decoder.lm_head.bias"), r"weights of lm_head\.bias twice"),
        (
            having("encoder.sentence_encoder.layers.1.fc1.bias"),
            r"intermediate\.dense\.bias has the shape \(2,\), but \(64,\) is due",
        ),
        (options_changed(encoder_attention_heads=5), "5 attention heads do not divide the width"),
        (options_changed(encoder_attention_heads=None), "give heads="),
        (options_changed(activation_fn="swish"), "uses the activation 'swish'"),
        (options_changed(max_positions=512), "66 position vectors for 512 positions"),
        (lambda content: {"weights": content["model"]}, 'has no "model" entry'),
        (lambda content: content["model"]["encoder.lm_head.bias"], 'has no "model" entry'),
    ],
)
def test_fairseq_checkpoint_that_does_not_fit(write, tmp_path, change, message) -> None:
    path, options = write("2021", change)
    with pytest.raises(ValueError, match=message) as error:
        convert_fairseq(path, tmp_path / "made", **options)
    assert_one_sentence(error)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint.pt", "original"]


def test_heads_may_be_given(write, original, tmp_path) -> None:
    path, options = write("2021", options_changed(encoder_attention_heads=None))
    encoder = load(convert_fairseq(path, tmp_path / "made", heads=4, **options))
    assert torch.equal(
        hidden(encoder.model, encoder.tokenizer), hidden(original.roberta, encoder.tokenizer)
    )


def test_fairseq_checkpoint_with_other_objects_is_refused(write, tmp_path) -> None:
    touched = tmp_path / "touched"
    path, options = write("2021", lambda content: content | {"task_state": Attack(touched)})
    with pytest.raises(ValueError, match="reading those could run code") as error:
        convert_fairseq(path, tmp_path / "made", **options)
    assert_one_sentence(error)
    assert not touched.exists()
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("keep", [0, 100, 0.5])
def test_torn_fairseq_checkpoint(write, tmp_path, keep) -> None:
    path, options = write()
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    with pytest.raises(ValueError, match=r"no torch checkpoint, or torn|holds") as error:
        convert_fairseq(path, tmp_path / "made", **options)
    assert_one_sentence(error)
    with pytest.raises(FileNotFoundError, match="there is no fairseq checkpoint"):
        convert_fairseq(tmp_path / "nothing.pt", tmp_path / "made", **options)


def test_conversion_writes_whole_or_not_at_all(write, tmp_path, monkeypatch) -> None:
    path, options = write()
    with monkeypatch.context() as patch:
        patch.setattr(fairseq, "_write_json", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            convert_fairseq(path, tmp_path / "made", **options)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint.pt", "original"]
    convert_fairseq(path, tmp_path / "made", **options)
    with pytest.raises(FileExistsError, match="choose another folder"):
        convert_fairseq(path, tmp_path / "made", **options)


# Its tokenizer


PIECES = {"▁the": -2.0, "▁": -3.0, "the": -4.5, "▁wea": -4.0, "ther": -4.2, "w": -6.0, "r": -6.5}


def field(number: int, value: int | bytes | float) -> bytes:
    """One protocol buffer field."""

    def varint(n: int) -> bytes:
        low = [(n >> (7 * i)) & 127 for i in range(max(1, (n.bit_length() + 6) // 7))]
        return bytes([b | 128 for b in low[:-1]] + [low[-1]])

    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def sentencepiece_model(path: Path, pieces: dict[str, float], kind: int = 1) -> Path:
    content = b""
    for piece, type_ in (("<unk>", 2), ("<s>", 3), ("</s>", 3)):
        content += field(1, field(1, piece.encode()) + field(2, 0.0) + field(3, type_))
    for piece, score in pieces.items():
        content += field(1, field(1, piece.encode()) + field(2, score))
    content += field(2, field(1, b"corpus.txt") + field(3, kind) + field(4, 300))
    path.write_bytes(content + field(3, field(1, b"identity") + field(3, 1)))
    return path


@pytest.fixture
def words(write, original, tmp_path):
    """A checkpoint with a vocabulary of 4 + 7 + fillers + 1, its dict.txt and sentencepiece."""
    size = original.config.vocab_size
    fillers = [f"madeupword{i:04d}" for i in range(size - 5 - len(PIECES))]
    lines = [f"{piece} {100 - i}" for i, piece in enumerate(reversed(PIECES))]
    dictionary = tmp_path / "dict.txt"
    dictionary.write_text("\n".join([*lines, *(f"{f} 0" for f in fillers), ""]), encoding="utf-8")
    path, _ = write()
    return path, dictionary, sentencepiece_model(tmp_path / "sp.model", PIECES)


def test_tokenizer_numbers_as_fairseq_and_splits_as_sentencepiece(words, tmp_path) -> None:
    path, dictionary, sentencepiece = words
    made = convert_fairseq(
        path, tmp_path / "made", dictionary=dictionary, sentencepiece=sentencepiece
    )
    encoder = load(made)
    tokenizer = encoder.tokenizer
    number = {piece: 4 + i for i, piece in enumerate(reversed(PIECES))}
    number |= {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    number["<mask>"] = encoder.vocabulary_size - 1
    for piece, i in number.items():
        assert tokenizer.convert_tokens_to_ids(piece) == i
    # "▁wea" + "ther" (-8.2) is likelier than "▁" + "w" + <unk> ...
    assert tokenizer.tokenize("the weather") == ["▁the", "▁wea", "ther"]
    expected = ["<s>", "▁the", "▁wea", "ther", "</s>"]
    assert tokenizer("  the \n weather")["input_ids"] == [number[piece] for piece in expected]
    assert tokenizer("the x")["input_ids"] == [0, number["▁the"], number["▁"], 3, 2]
    assert tokenizer("the <mask>")["input_ids"] == [0, number["▁the"], number["<mask>"], 2]
    assert (tokenizer.pad_token_id, tokenizer.cls_token_id, tokenizer.mask_token) == (
        1,
        0,
        "<mask>",
    )
    assert tokenizer.model_max_length == encoder.max_length == 64
    assert tokenizer.decode(tokenizer("the weather")["input_ids"], skip_special_tokens=True) == (
        "the weather"
    )


def test_dictionary_that_does_not_fit(words, tmp_path) -> None:
    path, dictionary, sentencepiece = words
    lines = dictionary.read_text(encoding="utf-8").splitlines()
    for content, message in (
        (lines[:-1], "makes a vocabulary of"),
        ([*lines[:3], "word", *lines[4:]], r"line 4: 'word' is not of the form"),
        ([*lines[:3], lines[2], *lines[4:]], r"line 4: the piece .* is there already"),
    ):
        dictionary.write_text("\n".join(content), encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            convert_fairseq(
                path, tmp_path / "made", dictionary=dictionary, sentencepiece=sentencepiece
            )
    assert not (tmp_path / "made").exists()


def test_dictionary_format(tmp_path) -> None:
    path = tmp_path / "dict.txt"
    path.write_text("a 5\n\u2028 3\n<unk> 2 #fairseq:overwrite\nb 1\n", encoding="utf-8")
    expected = ["<s>", "<pad>", "</s>", "<unk>", "a", "\u2028", "<unk>", "b", "<mask>"]
    assert fairseq.read_dictionary(path) == expected


def test_pieces_missing_from_the_dictionary_are_warned_of(words, tmp_path) -> None:
    path, dictionary, _ = words
    more = sentencepiece_model(tmp_path / "more.model", PIECES | {"▁rain": -5.0})
    with pytest.warns(UserWarning, match="1 of 8 pieces of .* fairseq reads them as <unk>"):
        convert_fairseq(path, tmp_path / "made", dictionary=dictionary, sentencepiece=more)
    other = sentencepiece_model(tmp_path / "other.model", {"x": -1.0})
    with pytest.raises(ValueError, match="has no piece of the dictionary"):
        convert_fairseq(path, tmp_path / "made2", dictionary=dictionary, sentencepiece=other)


def test_sentencepiece_file_that_is_none(tmp_path) -> None:
    path = sentencepiece_model(tmp_path / "m", PIECES)
    assert fairseq.read_sentencepiece(path)["scores"] == pytest.approx(PIECES)
    content = path.read_bytes()
    for spoiled in (b"", content[:40], b"hello, this is text", bytes(50), b"\xff" * 50):
        path.write_bytes(spoiled)
        with pytest.raises(ValueError, match="is no sentencepiece model"):
            fairseq.read_sentencepiece(path)
    with pytest.raises(ValueError, match="of another kind than unigram"):
        fairseq.read_sentencepiece(sentencepiece_model(path, PIECES, kind=2))
    with pytest.raises(FileNotFoundError, match="there is no sentencepiece model"):
        fairseq.read_sentencepiece(tmp_path / "nothing")


def test_tokenizer_folder_of_another_vocabulary(write, words, tmp_path) -> None:
    path, dictionary, _ = words
    tiny.tokenizer(size=700).save_pretrained(tmp_path / "bigger")
    with pytest.raises(ValueError, match=r"numbers its pieces up to \d+, but the checkpoint"):
        convert_fairseq(path, tmp_path / "made", tokenizer=tmp_path / "bigger")
    with pytest.raises(ValueError, match=r"gives '.*' the number \d+, .* \d+: they do not belong"):
        convert_fairseq(
            path, tmp_path / "made", tokenizer=tmp_path / "original", dictionary=dictionary
        )
    with pytest.raises(FileNotFoundError, match=r"has no tokenizer\.json"):
        convert_fairseq(path, tmp_path / "made", tokenizer=tmp_path)


@pytest.mark.parametrize(
    "options",
    [{}, {"dictionary": "d"}, {"sentencepiece": "s"}, {"sentencepiece": "s", "tokenizer": "t"}],
)
def test_a_tokenizer_must_be_given_in_one_way(write, tmp_path, options) -> None:
    path, _ = write()
    with pytest.raises(ValueError, match=r"give either sentencepiece|needs dictionary"):
        convert_fairseq(path, tmp_path / "made", **options)
