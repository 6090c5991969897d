"""Members for the tests of what their folders tell."""

from pathlib import Path

import pytest

from tests import tiny, toy
from xlx.subjects import loading


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
