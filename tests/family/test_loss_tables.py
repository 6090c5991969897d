"""When members left the plateau of their loss."""

import pandas as pd

import models_1_family


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
