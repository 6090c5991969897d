"""Model cards: everything that the tables of a run say, and nothing else."""

import json
from pathlib import Path

import pandas as pd
import pytest

from family import model_cards
from family.recipes import read_recipe
from xlx.results import paths

CARDS = sorted(paths.MODELS.glob("*/README.md"))


@pytest.mark.parametrize("folder", [card.parent for card in CARDS], ids=lambda folder: folder.name)
def test_a_shipped_card_is_that_of_its_tables(folder: Path) -> None:
    recipe = read_recipe((folder / "recipe.json").read_text("utf-8"))
    run = {"products": "bfloat16"} | json.loads((folder / "run.json").read_text("utf-8"))
    tables = (pd.read_csv(folder / f"{table}.csv") for table in ("losses", "held_out"))
    card = model_cards.model_card(recipe, run, *tables)
    assert card == (folder / "README.md").read_text("utf-8")
