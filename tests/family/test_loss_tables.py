"""What members lost while they learnt: curves, plateaus, held-out text, the spread of runs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import models_1_family
from tests import toy


def test_a_plateau_ends_where_the_mean_of_the_masked_loss_falls() -> None:
    """Not where a single row dips, nor with what else is learnt; and never, if it never falls."""
    falls = [5.3, 4.8, 5.3, 5.2, 4.9, 4.8, 4.7, 4.9]
    rows = [("a", 50 * k, 100 * k, "mlm", loss) for k, loss in enumerate(falls, start=1)]
    rows += [("a", 50, 100, "clm", 1.0), ("b", 50, 100, "mlm", 5.3), ("b", 100, 200, "mlm", 5.2)]
    curves = pd.DataFrame(rows, columns=["model", "step", "tokens", "objective", "loss"])
    table = models_1_family.plateau_ends(curves, below=5.0, rows=3)
    literal = min(k for k in range(2, len(falls)) if sum(falls[k - 2 : k + 1]) / 3 < 5.0)
    assert table.loc["a"].tolist() == [50 * (literal + 1), 100 * (literal + 1)]
    assert table.loc["b"].isna().all()
    assert list(table) == ["step", "subwords"]


def write_losses(name: str, rows: Sequence[tuple[int, str, float]]) -> None:
    lines = [f"{step},{language},7,{loss}\n" for step, language, loss in rows]
    (Path(name) / "held_out.csv").write_text("".join(["step,language,subwords,loss\n", *lines]))


def test_losses_stand_beside_what_runs_of_a_recipe_differ_by(
    cut_alike: list[str], tmp_path: Path
) -> None:
    """Runs are compared at the last step of the shortest of those beside the member."""
    small, _, large, *_, other = cut_alike
    again, longer = (
        toy.member_files(tmp_path / folder, "mini-xlmr") for folder in ("again", "longer")
    )
    write_losses(small, [(20, "de", 5.5), (20, "en", 5.0), (80, "de", 3.0), (80, "en", 2.0)])
    write_losses(again, [(0, "de", 9.0), (20, "de", 5.7), (20, "en", 5.2)])  # a mean of 5.45
    write_losses(longer, [(20, "de", 5.4), (20, "en", 4.9), (40, "de", 4.0)])  # of 5.15
    # a run beside itself: it differs by nothing, and that counts
    runs = {"mini-xlmr": (small, [again, longer]), "mini-xlm": (other, [other])}
    sd, freedom = models_1_family.loss_spread(runs)
    squares = sum((mean - 5.2833333) ** 2 for mean in (5.25, 5.45, 5.15))
    assert (sd, freedom) == (pytest.approx(np.sqrt(squares / 3)), 3)
    assert models_1_family.loss_spread(runs | {"alone": (large, [])}) == (sd, freedom)
    (row,) = models_1_family.losses_beside({large: small}, runs).to_dict("records")
    assert row["between runs"] == pytest.approx(3.182446 * np.sqrt(2) * sd)  # Student's t, 3 df
