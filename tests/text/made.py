"""What tests of the room share: small files, small sets of examples and of questions."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from tests import tiny
from xlx.text.examples import Examples
from xlx.text.questions import Answer, Questions

CONTEXT = "Rome is in Italy. Oslo is not in Italy, said Ann."


def qa(
    key: str = "q1", question: str = "Where is Rome?", answers: object = (("Italy", 11),)
) -> dict:
    spans = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": key, "question": question, "answers": spans}


def squad(*qas: dict, context: str = CONTEXT) -> dict:
    return {"version": "1.1", "data": [{"title": "t", "paragraphs": [paragraph(*qas, c=context)]}]}


def paragraph(*qas: dict, c: str = CONTEXT) -> dict:
    return {"context": c, "qas": list(qas)}


def encoded(data: object) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode()


def asked(language: str = "en", n: int = 4, **changes: object) -> Questions:
    made = Questions(
        name=f"made {language} test",
        language=language,
        contexts=tuple(f"{language} context {i // 2} ." for i in range(n)),
        questions=tuple(f"{language} which {i} ?" for i in range(n)),
        answers=((Answer(language, 0),),) * n,
        ids=tuple(f"q{i}" for i in range(n)),
    )
    return replace(made, **changes)


def examples(language: str = "en", n: int = 4, **changes: object) -> Examples:
    made = Examples(
        name=f"made {language}",
        language=language,
        first=tuple(f"{language} {i}" for i in range(n)),
        second=None,
        labels=np.arange(n) % 2,
        classes=("no", "yes"),
        ids=tuple(map(str, range(n))),
    )
    if "labels" in changes:
        changes["labels"] = np.array(changes["labels"])
    return replace(made, **changes)


def spoken(language: str = "en", n: int = 8, pairs: bool = False, **changes: object) -> Examples:
    """Of the sentences whose pieces tiny models know; of pairs the second ones run backwards."""
    texts = [f"{text} {language}" for text in tiny.SENTENCES]
    first = tuple(texts[i % len(texts)] for i in range(n))
    second = tuple(texts[-1 - i % len(texts)] for i in range(n)) if pairs else None
    return examples(language, n, **{"first": first, "second": second, **changes})


def pairs(language: str = "en", name: str = "made en test", **changes: object) -> Examples:
    second = tuple(f"{language} no {i} of four" for i in range(4))
    return examples(language, name=name, second=second, **changes)


def conllu_row(
    number: object, form: str, tag: str, head: object = 0, relation: str = "root", feats: str = "_"
) -> str:
    return "\t".join((str(number), form, "_", tag, "_", feats, str(head), relation, "_", "_"))


def put(folder: Path, name: str, text: str | bytes) -> Path:
    """A file in a folder, which is made where there is none."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


TEXT = st.text(st.sampled_from("aB .,-'3é“।。，球队カท้ำเ\u3000\n🙂हि"), max_size=12) | st.text(
    max_size=8
)
CODES = st.sampled_from(["en", "hi", "zh", "ja", "th"])
