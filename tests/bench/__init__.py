"""Speed and memory, as ratios within one run."""

from collections.abc import Iterable, Mapping


def show(rows: Iterable[Mapping[str, object]]) -> None:
    """Print the rows of one part: name, value, unit and, where there is one, the aim."""
    for row in rows:
        aim = f"  (aim: {row['aim']})" if row["aim"] else ""
        print(f"{row['name']}: {row['value']} {row['unit']}{aim}")
