"""Folders as people have them: what fits is read, what does not is named; drawn by seed."""

import gzip
import json
import os
import random
import warnings
from pathlib import Path

import pandas as pd
import pytest

from xlx.text.files import TextError
from xlx.text.parallel import CorpusWarning, ParallelCorpus, load

#: A language's code here, in FLORES+, and what its sentences are made of.
LANGUAGES = {
    "en": ("eng", "Latn", "sentence"),
    "de": ("deu", "Latn", "Satz"),
    "zh": ("cmn", "Hans", "句"),
    "ru": ("rus", "Cyrl", "фраза"),
}
#: What lies beside text: never of a language, never fit to be read.
STRAYS = {
    "Europarl.xml": "<x/>",
    "metadata.json": "{}",
    "SHA256SUMS": "0 a\n",
    "build.py": "x = 1\n",
    "alignment-scores.log": "0.1\n",
    "statistics.pdf": "\x00\x01",
}
SHAPES = ("plain", "ending", "moses", "roles", "packed", "ids", "csv", "tsv", "tmx", "jsonl")
SHAPES += ("parquet", "published", "published lines")
DAMAGES = ("whole", "whole", "torn", "cut", "latin", "short", "empty line")
N = int(os.environ.get("FOLDERS", "40"))
SEED = int(os.environ.get("AUDIT_SEED", "1"))


def sentences(draw: random.Random) -> dict[str, list[str]]:
    codes = draw.sample([*LANGUAGES], draw.randint(2, len(LANGUAGES)))
    n = draw.randint(3, 9)
    return {code: [f"{LANGUAGES[code][2]} {i} {code}" for i in range(n)] for code in codes}


def written(folder: Path, shape: str, text: dict[str, list[str]]) -> list[Path]:
    """The files of a shape, by language or as one table."""
    folder.mkdir(parents=True)
    pair = "-".join(text)
    names = {
        "plain": "{}.txt",
        "ending": "{}.devtest",
        "moses": f"Europarl.{pair}.{{}}",
        "roles": "news-ref.{}.txt",
        "packed": "{}.txt.gz",
        "ids": "{}.tsv",
    }
    if shape in names:
        for code, rows in text.items():
            lines = [f"s:{i}\t{row}" if shape == "ids" else row for i, row in enumerate(rows)]
            data = ("\n".join(lines) + "\n").encode()
            file = folder / names[shape].format(code)
            file.write_bytes(gzip.compress(data) if shape == "packed" else data)
    elif shape.startswith("published"):
        for code, rows in text.items():
            about = dict(zip(("iso_639_3", "iso_15924"), LANGUAGES[code], strict=False))
            table = [{"id": i, **about, "text": row, "url": "u"} for i, row in enumerate(rows)]
            name = "_".join(about.values())
            if shape == "published":
                pd.DataFrame(table).to_parquet(folder / f"{name}.parquet")
            else:
                lines = "".join(json.dumps(row) + "\n" for row in table)
                (folder / f"{name}.jsonl").write_text(lines)
    else:
        table, file = pd.DataFrame(text), folder / f"{pair}.{shape}"
        if shape == "parquet":
            table.to_parquet(file)
        elif shape == "jsonl":
            table.to_json(file, orient="records", lines=True, force_ascii=False)
        elif shape == "tmx":
            units = [
                "<tu>" + "".join(f'<tuv lang="{x}"><seg>{row[x]}</seg></tuv>' for x in text)
                for _, row in table.iterrows()
            ]
            body = "</tu>".join([*units, ""])
            file.write_text(f"<tmx><body>{body}</body></tmx>", encoding="utf-8")
        else:
            table.to_csv(file, sep="\t" if shape == "tsv" else ",", index=False)
    return sorted(folder.iterdir())


def damaged(file: Path, damage: str, draw: random.Random) -> None:
    data = file.read_bytes()
    if damage == "torn":
        file.write_bytes(data[: max(1, len(data) // 2)])
    elif damage == "cut":  # inside the last line
        file.write_bytes(data[: -draw.randint(2, 4)])
    elif damage == "latin":
        file.write_bytes(b"\xe9\xff" + data)
    else:
        plain = gzip.decompress(data) if file.suffix == ".gz" else data
        lines = plain.split(b"\n")
        at = draw.randrange(1, max(2, len(lines) - 1))
        lines[at : at + 1] = [] if damage == "short" else [b""]
        plain = b"\n".join(lines)
        file.write_bytes(gzip.compress(plain) if file.suffix == ".gz" else plain)


def loaded(folder: Path) -> tuple[ParallelCorpus | None, TextError | None]:
    try:
        return load(folder), None
    except TextError as error:
        return None, error


@pytest.mark.parametrize("number", range(N))
def test_a_folder_is_read_or_named(number: int, tmp_path: Path) -> None:
    draw = random.Random(f"{SEED} {number}")
    shape, damage = SHAPES[number % len(SHAPES)], draw.choice(DAMAGES)
    text, folder = sentences(draw), tmp_path / "mine"
    there = written(folder, shape, text)
    strays = draw.sample([*STRAYS], draw.randint(0, 3))
    for name in strays:
        (folder / name).write_text(STRAYS[name])
    (folder / "README.md").write_text("About.")
    hurt = draw.choice(there)
    if damage != "whole":
        damaged(hurt, damage, draw)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CorpusWarning)
        corpus, error = loaded(folder)
    if error is not None:
        assert damage != "whole", error
        assert "\n" not in str(error)
        assert hurt.name in str(error) or "lines" in str(error), error
        return
    notes = " ".join(str(x.message) for x in caught)
    assert all(name in notes for name in strays), (shape, notes)
    if damage == "whole":
        assert {x: [*rows] for x, rows in corpus.sentences.items()} == text
        assert corpus.languages == tuple(sorted(text))
    else:  # what is left is as it was written, position by position
        whole = [*zip(*(text[x] for x in corpus.languages), strict=True)]
        changed = {*zip(*corpus.sentences.values(), strict=True)} - {*whole}
        # half a line is a line; that ids are lost or a last line has no end is said, of which file
        cut = damage in ("torn", "cut") and len(changed) == 1 and hurt.name in notes
        assert not changed or cut


@pytest.mark.parametrize("shape", ["csv", "tsv", "tmx", "jsonl", "parquet"])
@pytest.mark.parametrize("called", ["it", "en-de", "de-en", "de_Latn", "no", "table"])
def test_a_file_that_is_named_is_a_table(shape: str, called: str, tmp_path: Path) -> None:
    text = {"de": ["Satz a", "Satz b"], "en": ["sentence a", "sentence b"]}
    (file,) = written(tmp_path / "made", shape, text)
    file = file.rename(tmp_path / f"{called}.{shape}")
    assert {x: [*rows] for x, rows in load(file).sentences.items()} == text


@pytest.mark.parametrize("seed", range(5))
def test_a_language_with_gaps_is_told_and_ids_are_asked_for(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    n, there = draw.randint(6, 12), draw.randint(2, 5)
    rows = [f"a cat {i},eine Katze {i},{f'paka {i}' * (i < there)}" for i in range(n)]
    (tmp_path / "table.csv").write_text("\n".join(["en,de,sw", *rows]) + "\n", encoding="utf-8")
    with pytest.warns(CorpusWarning):
        corpus = load(tmp_path)
    assert len(corpus) == there
    assert set(corpus.languages) == {"en", "de", "sw"}
    published = tmp_path / "published"
    files = written(published, "published lines", sentences(draw))
    rows = [json.loads(row) for row in files[0].read_text().splitlines()]
    if seed % 2:  # no ids at all
        for file in files:
            each = [json.loads(row) for row in file.read_text().splitlines()]
            file.write_text("".join(json.dumps(row | {"id": None}) + "\n" for row in each))
    else:
        files[0].write_text("".join(json.dumps(row | {"id": 0}) + "\n" for row in rows))
    with pytest.raises(TextError, match="id"):
        load(published)
