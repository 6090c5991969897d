"""Members for the tests of what their folders tell."""

from pathlib import Path

import pytest

import models_1_family
from tests import tiny, toy
from xlx.subjects import loading

SHIPPED = ["mini-xlmr", "mini-mbert", "mini-llama-bi2"]


@pytest.fixture(scope="module")
def vocabularies() -> models_1_family.Vocabularies:
    return models_1_family.distinct_vocabularies(SHIPPED)


@pytest.fixture
def cut_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Members without weights, all of one vocabulary but mini-mbert."""
    tokenizers = [
        loading.tokenizer(str(tiny.save(tmp_path / kind, kind)))
        for kind in ("xlm-roberta", "llama")
    ]
    monkeypatch.setattr(
        loading, "tokenizer", lambda name, **_: tokenizers[Path(name).name == "mini-mbert"]
    )
    names = ("mini-xlmr", "mini-mbert", "mini-xlmr-large", "mini-llama", "mini-xlm")
    return [toy.member_files(tmp_path, name) for name in names]
