"""Files that are damaged in any way are read, or refused in a sentence of our own.

    MUTATIONS=10000 python -m pytest tests/text/test_mutations.py

reads ten thousand mutants of each kind of file, instead of a few.
"""

import gzip
import io
import json
import os
import random
import re
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import xlx
from tests.text import made
from xlx.subjects import folders, pooling
from xlx.text import downstream, labelled, parallel, questions, trees

#: A string, a number or a word.
VALUE = rb'"[^"]*"|[\w.]+'
N = int(os.environ.get("MUTATIONS", "60"))
OURS = str(Path(xlx.__file__).parent)
LINES = [f"Sentence {i}: it says “{i * i}” – no more." for i in range(12)]
GERMAN = [f"Satz {i}: er sagt „{i * i}“ – mehr nicht." for i in range(12)]
TABLE = pd.DataFrame({"id": range(12), "en": LINES, "de": GERMAN})
TMX = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header/><body>'
    + "".join(
        f'<tu><tuv xml:lang="en"><seg>{a}</seg></tuv><tuv xml:lang="de"><seg>{b}</seg></tuv></tu>\n'
        for a, b in zip(LINES, GERMAN, strict=True)
    )
    + "</body></tmx>"
)
CONLLU = "".join(
    f"# sent_id = s{i}\n# text = Dogs bark .\n1\tDogs\tdog\tNOUN\t_\tNumber=Plur\t2\tnsubj\t_\t_\n"
    "2\tbark\tbark\tVERB\t_\tTense=Pres\t0\troot\t_\t_\n3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_\n\n"
    for i in range(6)
)
HARNESS = {
    "results": {f"belebele_{x}": {"acc,none": 0.5} for x in ("eng_Latn", "deu_Latn")},
    "n-shot": {"belebele_eng_Latn": 5, "belebele_deu_Latn": 5},
    "config": {"model": "hf", "model_args": "pretrained=org/some-7b"},
    "date": 1.7e9,
}
SCORES = "model,task,language,score\n" + "".join(
    f"some-7b,Belebele,{x},{0.3 + i / 10}\n" for i, x in enumerate(("en", "de", "fr", "ja"))
)
PAIRS = "language\tgold_label\tsentence1\tsentence2\tpromptID\tpairID\n" + "".join(
    f"de\t{x}\t{a}\t{b}\t{i}\t{i}\n"
    for i, (a, b, x) in enumerate(
        zip(LINES, GERMAN, 4 * ["neutral", "entailment", "contradiction"], strict=True)
    )
)
#: A folder of sentence-transformers.
MODEL = {
    "modules.json": [
        {"path": path, "type": f"sentence_transformers.models.{kind}"}
        for path, kind in (("", "Transformer"), ("1_Pooling", "Pooling"), ("2", "Normalize"))
    ],
    "1_Pooling/config.json": {"pooling_mode_mean_tokens": True, "include_prompt": True},
    "config_sentence_transformers.json": {
        "prompts": {"query": "query: "},
        "default_prompt_name": "query",
    },
    "config.json": {
        "model_type": "xlm-roberta",
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "architectures": ["XLMRobertaModel"],
        "torch_dtype": "float32",
    },
}
MODEL = {name: json.dumps(content).encode() for name, content in MODEL.items()}
#: What a mutant has in the place of some of its bytes.
STRANGE = [
    *(x.encode("utf-8", "surrogatepass") for x in ("", "\0", "\ud800", "\ufeff", "\u2028", "\r")),
    *(b"\xff", b"\t", b"\n\n", b'"', b"[" * 2000, b"9" * 400, b"&x;", b"<!ENTITY x 'y'>"),
    *b"NaN -1 1e999 null [] {} \\ud800 , en true".split(),
]


def parquet() -> bytes:
    """A table of text, as a file."""
    held = io.BytesIO()
    TABLE.to_parquet(held, index=False)
    return held.getvalue()


def own_vector(folder: Path) -> object:
    """What a folder of sentence-transformers declares."""
    return pooling.own_vector("some", folder)


Reader = Callable[[Path], object]
#: Kind → files by name of which the first is damaged, and what reads the folder.
KINDS: dict[str, tuple[dict[str, bytes], Reader]] = {
    "lines": (
        {"text.en": "\n".join(LINES).encode(), "text.de": "\n".join(GERMAN).encode()},
        parallel.load,
    ),
    "gz": (
        {
            "en.txt.gz": gzip.compress("\n".join(LINES).encode()),
            "de.txt": "\n".join(GERMAN).encode(),
        },
        parallel.load,
    ),
    "csv": (
        {"text.csv": TABLE.to_csv(index=False).encode()},
        lambda folder: parallel.load(folder / "text.csv"),
    ),
    "parquet": ({"text.parquet": parquet()}, lambda folder: parallel.load(folder / "text.parquet")),
    "tmx": ({"text.tmx": TMX.encode()}, lambda folder: parallel.load(folder / "text.tmx")),
    "conllu": (
        {"text.conllu": CONLLU.encode()},
        lambda folder: trees.load_trees("en", "some", path=folder / "text.conllu"),
    ),
    "harness": ({"results_1.json": json.dumps(HARNESS, indent=1).encode()}, downstream.read_tasks),
    "scores": (
        {"scores.csv": SCORES.encode()},
        lambda folder: downstream.read_tasks(folder / "scores.csv"),
    ),
    "pairs": (
        {"xnli.dev.tsv": PAIRS.encode()},
        lambda folder: labelled.load_labelled(
            "NLI", "de", "validation", source="xnli", path=folder
        ),
    ),
    "squad": (
        {"xquad.de.json": json.dumps(made.squad(made.qa("a"), made.qa("b"))).encode()},
        lambda folder: questions.load_questions("xquad", "de", path=folder),
    ),
    "entities": (
        {"dev-de.tsv": b"Anna\tB-PER\nin\tO\nBad\tB-LOC\nEms\tI-LOC\n\nRom\tB-LOC\n"},
        lambda folder: labelled.load_labelled("NER", "de", "validation", path=folder),
    ),
    "poolings": (
        {"1_Pooling/config.json": b'{"pooling_mode": ["cls", "mean"]}'}
        | {"config.json": MODEL["config.json"]},
        own_vector,
    ),
    **{name: ({name: MODEL[name]} | MODEL, own_vector) for name in MODEL},
    "config": (
        {"config.json": MODEL["config.json"]},
        lambda folder: folders.load_config("some", folder),
    ),
}


def mutant(content: bytes, rng: random.Random) -> bytes:
    """Some bytes are changed, doubled, moved, left out, or something strange stands there."""
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        start = rng.randrange(len(content) + 1)
        end = min(len(content), start + rng.choice((1, 2, 8, 40, len(content))))
        head, part, tail = content[:start], content[start:end], content[end:]
        values = [x.span() for x in re.finditer(VALUE, content)]
        if values and rng.random() < 0.3:  # another value in the place of a whole one
            start, end = rng.choice(values)
            content = content[:start] + rng.choice(STRANGE) + content[end:]
            continue
        content = rng.choice(
            (
                head + bytes(b ^ 1 << rng.randrange(8) for b in part[:1]) + part[1:] + tail,
                head + part + part + tail,
                part + head + tail,
                head + tail,
                head,
                head + rng.choice(STRANGE) + tail,
                head + rng.choice(STRANGE) + part + tail,
            )
        )
    return content


def foreign(read: Reader, folder: Path) -> str:
    """What is wrong with the answer to a folder; nothing, where it is read or refused well."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(folder)
    except (ValueError, OSError) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = str(error)
        if where.filename.startswith(OURS) and said and "\n" not in said and len(said) < 1000:
            return ""
        return f"{type(error).__name__} of {where.filename}:{where.lineno}: {said}"
    except Exception as error:
        return "".join(traceback.format_exception(error)[-3:])
    return ""


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_read_or_refused(kind: str, tmp_path: Path) -> None:
    files, read = KINDS[kind]
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert foreign(read, tmp_path) == ""
    read(tmp_path)  # as it was, without an error
    damaged, content = next(iter(files.items()))
    for seed in range(N):
        (tmp_path / damaged).write_bytes(mutant(content, random.Random(seed)))
        assert foreign(read, tmp_path) == "", (kind, seed)
