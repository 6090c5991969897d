"""Models that are too large for one device: told before loading, spread over several, quantised."""

import pickle
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from tests import tiny
from tests.subjects.conftest import assert_close, assert_one_sentence
from xlx.results import settings
from xlx.subjects import folders as folders_module
from xlx.subjects import identity, loading, states
from xlx.subjects.folders import load_model
from xlx.subjects.loading import load
from xlx.subjects.states import embed
from xlx.subjects.words import embed_words

#: Parts of tiny models that accelerate leaves in memory and on disk.
SPREAD = {
    "llama": {
        "embed_tokens": "disk",
        "layers.0": "cpu",
        "layers.1": "disk",
        "norm": "cpu",
        "rotary_emb": "cpu",
    },
    "xlm-roberta": {"embeddings": "disk", "encoder.layer.0": "cpu", "encoder.layer.1": "disk"},
}
SENTENCES = list(tiny.SENTENCES)


@pytest.mark.parametrize("name", SPREAD)
def test_a_model_spread_over_memory_and_disk_gives_the_same_vectors(folders, name) -> None:
    whole, spread = load(folders[name]), load(folders[name], device_map=SPREAD[name])
    assert "disk" in spread.model.hf_device_map.values()
    assert spread.model.get_input_embeddings().weight.device.type == "meta"
    assert spread.device == torch.device("cpu")
    assert (spread.fingerprint, spread.vocabulary_size) == (whole.fingerprint, 384)
    for pooling in ("mean", "last"):
        one, other = (states.embed(x, SENTENCES, pooling=pooling) for x in (whole, spread))
        assert_close(other.states, one.states)
    one, other = (embed_words(x, [["Il", "fait", "beau"]]).states for x in (whole, spread))
    assert_close(other, one)


def test_a_model_larger_than_memory_is_refused_before_it_is_loaded(folders, monkeypatch) -> None:
    monkeypatch.setattr(folders_module, "free_bytes", lambda device: 100_000)
    monkeypatch.setattr(loading.folders, "load_model", pytest.fail)
    with pytest.raises(ValueError, match=r"0\.000124 GB of weights in float32") as error:
        load(folders["llama"])
    assert "cpu has 0.0001 GB of memory free" in str(error.value)
    assert 'device_map="auto"' in str(error.value)
    assert_one_sentence(error)


def test_quantisation_is_part_of_the_fingerprint(folders, monkeypatch) -> None:
    read, asked = load_model, []

    def stub(label, folder, dtype, device_map, quantization):
        asked.append(quantization)
        return read(label, folder, dtype)

    plain = load(folders["llama"]).fingerprint
    monkeypatch.setattr(loading.folders, "load_model", stub)
    packed = [load(folders["llama"], quantization=bits).fingerprint for bits in ("8bit", "4bit")]
    assert asked == ["8bit", "4bit"]
    assert len({plain, *packed}) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantization": "3bit"}, "there is no quantization '3bit': choose 8bit, 4bit"),
        ({"quantization": "8bit"}, "needs a package that is not installed: .*bitsandbytes"),
        ({"device": "cpu", "device_map": "auto"}, "device and device_map are both given"),
        ({"device_map": "everywhere"}, "cannot be loaded from .*device_map"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(folders, options, message) -> None:
    with pytest.raises(ValueError, match=message) as error:
        load(folders["llama"], **options)
    assert_one_sentence(error)


# --- an encoder in place of a name ----------------------------------------------------------------


def test_an_encoder_stands_for_its_name(folders) -> None:
    encoder = load(folders["llama"], dtype="bfloat16")
    assert load(encoder) is encoder
    assert loading.tokenizer(encoder) is encoder.tokenizer
    assert identity.identify(encoder) == identity.identify(folders["llama"])
    with settings.settings(dtype="bfloat16"):
        assert states.states_about(encoder) == states.states_about(folders["llama"])
    assert states.states_about(encoder) != states.states_about(folders["llama"])


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda encoder: load(encoder, dtype="bfloat16"), "is loaded already: options"),
        (
            lambda encoder: loading.task_model(encoder, 2, 1),
            "name is Encoder.* give text or a path",
        ),
        (pickle.dumps, "is loaded in this process and not sent to another"),
    ],
)
def test_an_encoder_is_refused_where_files_are_due(encoders, act, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message) as error:
        act(encoders["llama"])
    assert_one_sentence(error)


# --- what cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize("states", [None, (), "short"])
def test_a_model_without_hidden_states_is_named(encoders, states) -> None:
    encoder = encoders["xlm-roberta"]
    given = (torch.zeros(1, 2, 32),) if states == "short" else states

    def model(**inputs):
        return SimpleNamespace(hidden_states=given)

    for name in ("config", "get_input_embeddings", "named_modules"):
        setattr(model, name, getattr(encoder.model, name))
    with pytest.raises(ValueError, match=r"hidden states.*where 3 of shape .* are due") as error:
        embed(replace(encoder, model=model), ["Yes"])
    assert_one_sentence(error)
