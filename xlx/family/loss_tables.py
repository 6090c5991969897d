"""What the members lost while they learnt: tables of `losses.csv` and `held_out.csv`.

A loss is a mean surprise in nats a labelled subword; those of one vocabulary that guess the same
(masked or next) subwords can be compared. ``names`` are models as `loading.load` knows them.
"""

import io
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xlx.core import statistics
from xlx.family.members import (
    Vocabularies,
    decoders,
    distinct_vocabularies,
    file_text,
    recipe,
    recipe_differences,
)
from xlx.models import loading

#: Objectives of a loss table, in the order of display.
OBJECTIVE_NAMES = {
    "mlm": "masked subwords (MLM)",
    "tlm": "masked, beside a translation (TLM)",
    "contrast": "contrast of translations",
    "clm": "next subword (CLM)",
}


def losses(names: Sequence[str]) -> pd.DataFrame:
    """The loss tables of several members: ``losses.csv`` with ``model`` in front."""
    return _tables(names, "losses.csv", ["step", "tokens", "objective", "loss"])


def held_out(names: Sequence[str]) -> pd.DataFrame:
    """Their losses by language at the last checkpoint: ``held_out.csv`` with ``model`` in front."""
    table = _tables(names, "held_out.csv", ["step", "language", "subwords", "loss"])
    return table[table["step"] == table.groupby("model")["step"].transform("max")]


def _tables(names: Sequence[str], file: str, columns: list[str]) -> pd.DataFrame:
    tables = [
        pd.read_csv(io.StringIO(content))[columns].assign(model=loading.title(name))
        for name in names
        if (content := file_text(name, file))
    ]
    empty = pd.DataFrame(columns=["model", *columns])
    return pd.concat(tables, ignore_index=True)[list(empty)] if tables else empty


def plateau_ends(curves: pd.DataFrame, below: float, rows: int = 5) -> pd.DataFrame:
    """When members began to use the order of subwords: the masked loss came down from its plateau.

    ``step``: the first at which the training loss of masked subwords, a mean over so many rows of
    `losses`, is less than ``below`` (nats); missing where it never was. ``subwords``: what had been
    read by then.
    """
    masked = curves[curves["objective"] == "mlm"]
    mean = masked.groupby("model")["loss"].transform(lambda loss: loss.rolling(rows).mean())
    ends = masked[mean < below].groupby("model")[["step", "tokens"]].min()
    table = ends.reindex(masked["model"].unique()).astype("Int64")
    return table.rename(columns={"tokens": "subwords"}).rename_axis("model")


def final_losses(curves: pd.DataFrame) -> pd.DataFrame:
    """The last training loss of every objective in `losses`: a row a model."""
    ends = curves[curves["step"] == curves.groupby("model")["step"].transform("max")]
    wide = ends.pivot(index="model", columns="objective", values="loss")
    objectives = [name for name in OBJECTIVE_NAMES if name in wide]
    return wide.reindex(index=dict.fromkeys(curves["model"]), columns=objectives)


def grouped_losses(names: Sequence[str], vocabularies: Vocabularies) -> pd.DataFrame:
    """`held_out` with ``group``: members whose losses can be compared."""
    next_subword = {loading.title(name) for name in decoders(names)}
    groups = {
        model: f"{'next' if model in next_subword else 'masked'}, {kind}"
        for kind, (_, models) in vocabularies.items()
        for model in models
    }
    table = held_out(names)
    return table.assign(group=table["model"].map(groups))


def held_out_table(grouped: pd.DataFrame) -> pd.DataFrame:
    """Of `grouped_losses`: loss in English and elsewhere, languages of lowest and highest loss."""
    text = grouped["language"].map(lambda c: "English" if c == "en" else "mean of the others")
    keys = ["group", "model"]
    mean = grouped.assign(text=text).groupby([*keys, "text"], sort=False)["loss"].mean().unstack()
    language = grouped.sort_values("loss").groupby(keys)["language"]
    return mean.assign(lowest=language.first(), highest=language.last())


def loss_spread(runs: Mapping[str, tuple[str, Sequence[str]]]) -> tuple[float, int]:
    """`statistics.pooled_spread` of the mean held-out losses of runs of one recipe.

    ``runs``: recipe → the run that stands for it, and others, of other seeds; each at the last step
    of the shortest of the others. ValueError where the first has no losses at that step.
    """
    groups = []
    for first, others in runs.values():
        if not others:
            continue
        columns = ["step", "language", "loss"]
        tables = [_tables([name], "held_out.csv", columns) for name in (first, *others)]
        step = min(table["step"].max() for table in tables[1:])
        means = [float(table.loc[table["step"] == step, "loss"].mean()) for table in tables]
        if np.isnan(means[0]):
            raise ValueError(f"{first} has no held-out losses at step {step:,}, as other runs have")
        groups.append(means)
    return statistics.pooled_spread(groups)


def beside(
    references: Mapping[str, str], runs: Mapping[str, tuple[str, Sequence[str]]] | None = None
) -> pd.DataFrame:
    """Held-out losses of members less those of their references, where they can be compared.

    Those of one vocabulary that guess the same (masked or next) subwords can. One row a member:
    ``model``, ``reference``, ``unlike`` (the settings in which they differ), ``languages`` (that
    were measured), ``lower`` (in how many its loss is lower), ``difference`` (mean, nats),
    ``between runs`` (in 95 % of cases the means of two runs of one recipe differ by less;
    ``runs`` as for `loss_spread`).
    """
    between = statistics.reach_of_two(*loss_spread(runs or {}))
    rows = []
    for name, other in references.items():
        comparable = recipe(name) and recipe(other) and len(decoders([name, other])) != 1
        if not comparable or len(distinct_vocabularies([name, other])) > 1:
            continue
        loss, its = (held_out([model]).set_index("language")["loss"] for model in (name, other))
        apart = (loss - its).dropna()
        if len(apart):
            unlike = recipe_differences({name: other}).index.get_level_values("setting")
            row = (loading.title(name), loading.title(other), ", ".join(unlike), len(apart))
            rows.append((*row, (apart < 0).sum(), apart.mean(), between))
    columns = ["model", "reference", "unlike", "languages", "lower", "difference", "between runs"]
    return pd.DataFrame(rows, columns=columns)
