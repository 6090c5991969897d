"""Whether the results that the repository ships are those that its code computes.

    python -m xlx.core.audit sample build/test/sample    # before the notebooks are tested
    python -m xlx.core.audit                             # after: what was compared, what is wrong

``make test`` draws entries of every kind, by the hash of the ledger: another ledger, another
sample. Where a notebook asks for one of them, it is computed again and compared (`xlx.core.work`,
``XLX_AUDIT``); the journals of the notebooks say by how much both differ. ``AUDIT_SEED`` draws
another sample, ``AUDIT_SECONDS`` a larger one.
"""

import argparse
import hashlib
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from xlx.core import journals, paths
from xlx.core.gathering import kinds
from xlx.core.ledger import Ledger, LedgerWarning

#: What a sample is worth, by the seconds that were recorded.
SECONDS = 120.0
FOLDER = paths.BUILD / "test"


def ledger_hash(root: Path) -> str:
    """SHA-256 of all files of the ledger."""
    digest = hashlib.sha256()
    for file in Ledger(root).files():
        digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def draw(overview: pd.DataFrame, ledger: str, seed: str, seconds: float) -> pd.DataFrame:
    """Entries to compute again: of each kind first its share of the time, then from all the rest.

    A kind of which nothing fits its share gives its shortest entry, if that takes no more than half
    of the whole time.
    """

    def place(identity: str) -> str:
        return hashlib.sha256(f"{ledger}{seed}{identity}".encode()).hexdigest()

    rows = overview.assign(place=overview["identity"].map(place)).sort_values("place")
    known = kinds()
    shared = rows["kind"].map(lambda kind: known[kind].shared_seconds if kind in known else 0.0)
    rows["seconds"] = rows["seconds"].fillna(0.0) + shared
    chosen: list[int] = []
    left = seconds
    for _, own in rows.groupby("kind"):
        share = seconds / rows["kind"].nunique()
        taken = _fitting(own, share)
        shortest = own["seconds"].idxmin()
        if not taken and own["seconds"][shortest] <= seconds / 2:
            taken = [shortest]
        chosen += taken
        left -= rows["seconds"][taken].sum()
    chosen += _fitting(rows.drop(index=chosen), left)
    return rows.loc[chosen].drop(columns="place")


def _fitting(rows: pd.DataFrame, seconds: float) -> list[int]:
    """Entries in their order, as long as they fit."""
    taken = []
    for index, own in rows["seconds"].items():
        if own <= seconds:
            taken.append(index)
            seconds -= own
    return taken


def write_sample(path: Path, root: Path = paths.RESULTS) -> pd.DataFrame:
    """Draw a sample and write it: a line an entry, its identity and a notebook that asks for it."""
    seed, given = os.environ.get("AUDIT_SEED", ""), os.environ.get("AUDIT_SECONDS") or SECONDS
    try:
        seconds = float(given)
    except ValueError:
        raise ValueError(f"AUDIT_SECONDS is {given!r}: give a number of seconds") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LedgerWarning)  # `report` says it
        overview = Ledger(root).overview()
    drawn = draw(overview, ledger_hash(root), seed, seconds)
    lines = [
        f"{row.identity} {row.notebooks[0] if len(row.notebooks) else ''}".strip()
        for row in drawn.itertuples()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return drawn


# --- what came of it ------------------------------------------------------------------------------


def notes(folder: Path, stems: Sequence[str]) -> dict[str, list[dict]]:
    """Notebook → the lines of its journal; without those that have none."""
    found = {stem: journals.journal(stem, folder) for stem in stems}
    return {stem: journals.read_journal(path) for stem, path in found.items() if path.is_file()}


def compared(lines: Mapping[str, list[dict]]) -> pd.DataFrame:
    """What was computed again: ``notebook``, ``kind``, ``identity``, ``apart``, ``tolerance``."""
    rows = [
        {"notebook": stem, **line} for stem, own in lines.items() for line in own if "apart" in line
    ]
    return pd.DataFrame(rows, columns=["notebook", "kind", "identity", "apart", "tolerance"])


def findings(
    root: Path = paths.RESULTS, folder: Path = FOLDER, stems: Sequence[str] | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """What was compared, a row a kind, and a sentence on everything that is wrong.

    Parameters
    ----------
    folder : Path
        With ``asks/``, where the tested notebooks noted what they asked for, and ``sample``.
    stems : sequence of str, optional
        The notebooks that there should be. Default: those of the repository.
    """
    if stems is None:
        stems = sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb"))
    of = Ledger(root)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LedgerWarning)
        overview = of.overview()
    wrong = [str(one.message) for one in caught if issubclass(one.category, LedgerWarning)]
    lines = notes(folder, stems)
    wrong += [
        f"{stem} was not tested: no {journals.journal(stem, folder)}"
        for stem in stems
        if stem not in lines
    ]
    again = compared(lines)
    wrong += _outside(again, overview)
    wrong += _never_computed(folder / "sample", again, overview)
    wrong += _of_other_code(overview)
    wrong += _asks(lines, overview, len(lines) == len(stems))
    table = (
        again.groupby("kind")
        .agg(compared=("apart", "size"), largest=("apart", "max"), tolerance=("tolerance", "first"))
        .reset_index()
    )
    return table, wrong


def _outside(again: pd.DataFrame, overview: pd.DataFrame) -> list[str]:
    texts = overview.drop_duplicates("identity").set_index("identity")["ask"]
    # a NaN is no difference that could be allowed
    rows = again[~(again["apart"].astype(float) <= again["tolerance"].astype(float))]
    return [
        f"{row.notebook}: a result of the kind {row.kind!r} differs by {row.apart:.3g} when it is "
        f"computed again, and {row.tolerance:.3g} is allowed: {texts.get(row.identity, '?')}"
        for row in rows.itertuples()
    ]


def _never_computed(path: Path, again: pd.DataFrame, overview: pd.DataFrame) -> list[str]:
    if not path.is_file():
        return [f"there is no sample {path}: `python -m xlx.core.audit sample {path}` draws one"]
    wanted = {line.split()[0] for line in path.read_text(encoding="utf-8").splitlines()}
    rows = overview[overview["identity"].isin(wanted - set(again["identity"]))]
    return [
        f"a sampled result of the kind {row.kind!r} was not computed again: no notebook among "
        f"{', '.join(row.notebooks) or 'none'} asks for {row.ask}"
        for row in rows.itertuples()
    ]


def _of_other_code(overview: pd.DataFrame) -> list[str]:
    """Entries whose code has changed under the same version, a sentence a kind."""
    known, found = kinds(), []
    for name, own in overview.groupby("kind"):
        if name not in known:
            found.append(f"the ledger has results of a kind {name!r} that the code does not know")
            continue
        old = own[(own["code"] != known[name].code) & (own["version"] == known[name].version)]
        if len(old):
            found.append(
                f"{len(old)} of {len(own)} results of the kind {name!r} were made by other code "
                f"than today's version {known[name].version}: compute some again (`make reproduce "
                f"ONLY={name}`); if they are equal, `make results RESTAMP=1`, if not, raise the "
                f"version in {known[name].compute.__module__}"
            )
    return found


def _asks(lines: Mapping[str, list[dict]], overview: pd.DataFrame, whole: bool) -> list[str]:
    """Asks that the ledger cannot answer; if all notebooks are known, entries nobody asks for."""
    asks = {
        line["identity"]: (line["kind"], stem)
        for stem, own in lines.items()
        for line in own
        if "from" in line
    }
    there = set(overview["identity"])
    lacking: dict[tuple[str, str], int] = {}
    for identity, place in asks.items():
        if identity not in there:
            lacking[place] = lacking.get(place, 0) + 1
    found = [
        f"{stem} asks for {n} results of the kind {kind!r} that the ledger lacks: "
        f"`make figures ONLY={stem}`, then `make results`"
        for (kind, stem), n in sorted(lacking.items())
    ]
    if whole:
        rows = overview[~overview["identity"].isin(list(asks))]
        found += [
            f"{len(own)} results of the kind {kind!r} are asked for by no notebook, such as "
            f"{own['ask'].iloc[0]}: `make results` drops them"
            for kind, own in rows.groupby("kind")
        ]
    return found


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return 0, 1 (something is wrong) or 2 (it could not be found out)."""
    parser = argparse.ArgumentParser(prog="python -m xlx.core.audit")
    parser.add_argument("command", nargs="?", choices=["sample", "report"], default="report")
    parser.add_argument("path", nargs="?", type=Path, default=FOLDER / "sample")
    options = parser.parse_args(argv)
    if options.command == "sample":
        try:
            drawn = write_sample(options.path)
        except (ValueError, OSError) as error:
            print(error, file=sys.stderr)
            return 2
        print(
            f"audit: {len(drawn)} results of {drawn['kind'].nunique()} kinds, which took "
            f"{drawn['seconds'].sum():.0f} s, are computed again"
        )
        return 0
    table, wrong = findings()
    print(table.to_string(index=False, float_format="{:.3g}".format))
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    absent = sorted(set(Ledger(paths.RESULTS).overview()["kind"]) - set(table["kind"]))
    if absent:
        print(f"not in the sample, because one alone takes too long: {', '.join(absent)}")
    print(f"audit: {table['compared'].sum()} compared, {len(wrong)} things wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
