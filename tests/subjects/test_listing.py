"""Names without a path: the family and the public models."""

from pathlib import Path

from xlx.results import settings
from xlx.subjects.identity import public_models
from xlx.subjects.loading import list_models, load


def test_the_family_stands_beside_the_public_models(tmp_path: Path) -> None:
    with settings.settings(cache=tmp_path):
        table = list_models().set_index("model")
    member, encoder = load("mini-llama"), table.loc["mini-llama"]
    assert (encoder["kind"], encoder["layers"]) == (member.kind, member.n_layers)
    assert (encoder["width"], encoder["where"]) == (member.dim, "shipped")
    assert table.loc["mini-xlmr", "checkpoints"] > 1
    assert set(public_models()) <= set(table.index)
    assert table.loc["gemma-3-270m", "where"] == "make models MODEL=gemma-3-270m ACCEPT=gemma"
    assert table.index.is_unique
