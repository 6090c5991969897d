"""A repository root with next to nothing of what the profile `paper` names, in its own formats.

Models lie in a hub cache under the paper's own names, each of its architecture and tiny; data sets
under the file names and layouts that their authors publish.
"""

import json
import lzma
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import XLMRobertaForMaskedLM

from tests import tiny
from tests.subjects.test_fairseq import checkpoint_content, dictionary, fairseq_state
from xlx.results import paths
from xlx.text import labelled, trees
from xlx.text.parallel import load
from xprobe_3_mapping import RELEASED

#: Of encoders on the hub: name → architecture.
ENCODERS = {
    "FacebookAI/xlm-roberta-base": "xlm-roberta",
    "FacebookAI/xlm-roberta-large": "xlm-roberta",
    "google-bert/bert-base-multilingual-cased": "bert",
    "FacebookAI/xlm-mlm-tlm-xnli15-1024": "xlm",
    "microsoft/infoxlm-base": "xlm-roberta",
    "intfloat/multilingual-e5-small": "bert",
}
#: The nine of MEXA.
DECODERS = {
    "google/gemma-2-9b": "gemma2",
    "google/gemma-7b": "gemma",
    "meta-llama/Llama-3.1-70B": "llama",
    "meta-llama/Llama-3.1-8B": "llama",
    "meta-llama/Meta-Llama-3-8B": "llama",
    "meta-llama/Llama-2-7b-hf": "llama",
    "huggyllama/llama-7b": "llama",
    "mistralai/Mistral-7B-v0.3": "mistral",
    "allenai/OLMo-1.7-7B-hf": "olmo",
}
#: Columns of XNLI-1.0, of which four are read.
_XNLI = [
    *("language", "gold_label", "sentence1_binary_parse", "sentence2_binary_parse"),
    *("sentence1_parse", "sentence2_parse", "sentence1", "sentence2", "promptID", "pairID"),
    *("genre", "label1", "label2", "label3", "label4", "label5", "sentence1_tokenized"),
    *("sentence2_tokenized", "match"),
]
_THINGS = (
    *("house", "tree", "water", "sun", "dog", "cat", "bread", "milk", "stone", "wind", "river"),
    "night",
)


def fairseq(folder: Path, steps: Iterable[int]) -> None:
    """Checkpoints of XLM-R as fairseq leaves them, with its dictionary and the hub's tokenizer."""
    folder.mkdir(parents=True)
    for step in steps:
        made = tiny.save(folder / "made", seed=step, width=16, positions=128)
        state = fairseq_state(XLMRobertaForMaskedLM.from_pretrained(made), "2021")
        torch.save(checkpoint_content(state, "2021"), folder / f"checkpoint_1_{step}.pt")
    for file in made.glob("tokenizer*.json"):
        shutil.copyfile(file, folder / file.name)
    (folder / "dict.txt").write_text(dictionary(made), encoding="utf-8")


def hub(folder: Path, models: dict[str, str], **options: object) -> None:
    """Models as a hub cache has them: name → architecture."""
    for seed, (name, architecture) in enumerate(models.items()):
        own = folder / f"models--{name.replace('/', '--')}"
        commit = f"{seed:040d}"
        layers = 3 if "large" in name or "70B" in name else 2
        more = {"layers": layers, "width": 16, "positions": 128} | options
        tiny.save(own / "snapshots" / commit, architecture, seed=seed, **more)
        put(own / "refs/main", commit)


def put(file: Path, text: str) -> None:
    """A file, in a folder that is made where there is none."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def rows(file: Path, lines: Iterable[Sequence[object]]) -> None:
    """A table of columns parted by tabs."""
    put(file, "".join("\t".join(map(str, line)) + "\n" for line in lines))


def sentence(language: str, number: int) -> str:
    """Some words that a language has for itself, and some that all share."""
    draw = np.random.default_rng(number)
    words = [_THINGS[i] for i in draw.integers(len(_THINGS), size=3 + number % 5)]
    return f"{language} {' '.join(words)} {number}"


def xnli(folder: Path, languages: Sequence[str]) -> None:
    """XNLI-1.0, and MultiNLI in the machine translation of XNLI-MT-1.0."""
    for part, start, size in (("dev", 0, 6), ("test", 99, 30)):
        table = [_XNLI]
        for code in languages:
            for i in range(start, start + size):
                row = dict.fromkeys(_XNLI, "-") | {
                    "language": code,
                    "gold_label": labelled.NLI[i % 3],
                    "pairID": i,
                    "sentence1": sentence(code, i // 3),
                    "sentence2": sentence(code, i + 50),
                    "promptID": i // 3,
                }
                table.append(list(row.values()))
        rows(folder / f"XNLI-1.0/xnli.{part}.tsv", table)
    label = ("entailment", "neutral", "contradictory")
    for code in languages:
        pairs = [(sentence(code, i), sentence(code, i + 70), label[i % 3]) for i in range(12)]
        train = folder / f"XNLI-MT-1.0/multinli/multinli.train.{code}.tsv"
        rows(train, [("premise", "hypo", "label"), *pairs])


def pawsx(folder: Path, languages: Sequence[str], n: int = 6) -> None:
    """PAWS-X as its authors publish it, with a row that is not translated."""
    for code in languages:
        for number, part in enumerate(
            ("dev_2k", "test_2k", "train" if code == "en" else "translated_train")
        ):
            first = 100 * number
            pairs = [
                (i, sentence(code, first + i), sentence(code, first + i + i % 2), i % 2)
                for i in range(n)
            ]
            if code == "de":
                pairs[-1] = (n - 1, "NS", "NS", 0)
            table = [("id", "sentence1", "sentence2", "label"), *pairs]
            rows(folder / f"x-final/{code}/{part}.tsv", table)


def squad(folder: Path) -> None:
    """SQuAD v1.1."""
    paragraphs = []
    for i in range(6):
        context = f"{sentence('en', i)}. Ada lived in place {i}, far from the sea."
        answer = {"text": f"place {i}", "answer_start": context.index("place")}
        asked = {"id": str(i), "question": "Where did Ada live?", "answers": [answer]}
        paragraphs.append({"context": context, "qas": [asked]})
    for name in ("train-v1.1.json", "dev-v1.1.json"):
        put(folder / name, json.dumps({"data": [{"title": "", "paragraphs": paragraphs}]}))


def treebanks(folder: Path, languages: Sequence[str]) -> None:
    """The shipped sentences of UD, so many a part, as the treebanks name their files."""
    for code in languages:
        for part, name in (("train", "train"), ("validation", "dev"), ("test", "test")):
            blocks = _blocks(paths.DATA / f"labelled/ud/{code}.conllu.xz", part)[:8]
            put(folder / f"UD_Own/{code}_own-ud-{name}.conllu", "\n\n".join(blocks) + "\n\n")
        if (parallel := paths.DATA / f"labelled/pud/{code}.conllu.xz").exists():
            file = folder / f"UD_Own-PUD/{code}_pud-ud-test.conllu"
            put(file, "\n\n".join(_blocks(parallel)[:40]) + "\n\n")


def _blocks(file: Path, part: str = "") -> list[str]:
    text = lzma.decompress(file.read_bytes()).decode()
    blocks = [block for block in text.split("\n\n") if block.strip()]
    chosen = [block for block in blocks if not part or block.startswith(f"# split = {part}\n")]
    return [re.sub(r"^# split = .*\n", "", block) for block in chosen]


def wikiann(folder: Path, languages: Sequence[str]) -> None:
    """The shipped sentences of WikiAnn, so many a part, as its authors lay it out."""
    for code in languages:
        for part, name in (("train", "train"), ("validation", "dev"), ("test", "test")):
            read = labelled.load_labelled("NER", code, part, source="wikiann")
            lines = []
            for words, tags in list(zip(read.sentences, read.tags, strict=True))[:8]:
                lines += [f"{code}:{w}\t{t}\n" for w, t in zip(words, tags, strict=True)] + ["\n"]
            put(folder / f"{code}/{name}", "".join(lines))


def parsed_wiki(folder: Path, languages: Sequence[str]) -> None:
    """The shipped trees, a folder a language."""
    for code in languages:
        blocks = _blocks(paths.DATA / f"trees/ud/{code}.conllu.xz")
        put(folder / code / "wiki.conllu", "\n\n".join(blocks) + "\n\n")


def word_files(cache: Path, languages: Sequence[str]) -> None:
    """Vectors as fastText has them, of the trees' commonest words, and MUSE's dictionaries."""
    common = {}
    for code in languages:
        found = trees.load_trees(code, "ud").trees
        counts = Counter(token.lower() for tree in found for token in tree.tokens)
        common[code] = [word for word, _ in counts.most_common(400) if " " not in word]
        vectors = np.random.default_rng(len(common)).normal(size=(len(common[code]), 12))
        lines = [f"{len(vectors)} 12"]
        lines += [
            f"{word} {' '.join(f'{x:.3f}' for x in own)}"
            for word, own in zip(common[code], vectors, strict=True)
        ]
        put(cache / f"fasttext/wiki.{code}.vec", "\n".join(lines) + "\n")
    for code in languages[1:]:
        pairs = zip(common[code][:60], common[languages[0]], strict=False)
        put(cache / f"muse/{code}-en.txt", "".join(f"{a} {b}\n" for a, b in pairs))


def parallel(cache: Path, languages: Sequence[str]) -> None:
    """Europarl's files, two a pair of languages, and MultiUN's."""
    text = load("wmt24pp", ["en", *languages]).take(60, 1).sentences
    names = {"europarl": "europarl-v7.{}-en", "multiun": "MultiUN.en-{}"}
    for folder, name in names.items():
        for code in languages:
            for own in (code, "en"):
                file = cache / folder / f"{name.format(code)}.{own}"
                put(file, "\n".join(line.replace("\n", " ") for line in text[own]) + "\n")


def senteval(folder: Path) -> None:
    """The released probing tasks, a file each."""
    for name in RELEASED.values():
        lines = [
            (part, f"C{i % 2}", f"{sentence('en', i)} ends here")
            for part in ("tr", "va", "te")
            for i in range(24)
        ]
        rows(folder / f"{name}.txt", lines)


def task_results(folder: Path) -> None:
    """Results of two tasks of the nine: of the first model all are right as often."""
    rng = np.random.default_rng(0)
    for number, name in enumerate(DECODERS):
        scores = iter(np.full(12, 0.25) if number == 0 else rng.uniform(0.2, 0.9, 12))
        labels = ["eng_Latn", "deu_Latn", "fra_Latn", "jpn_Jpan", "swh_Latn", "tur_Latn"]
        results = {f"belebele_{label}": {"acc": next(scores)} for label in labels}
        results |= {f"arc_{x}": {"acc": 0.1, "acc_norm": next(scores)} for x in ("de", "fr", "ja")}
        results |= {"arc_challenge": {"acc": 0.5, "acc_norm": next(scores)}}
        file = folder / name.replace("/", "__") / "results_2025-01-01T00-00-00.json"
        harness(file, name, results)


def harness(file: Path, model: str, scores: dict[str, dict[str, float]]) -> None:
    """A results file of lm-evaluation-harness, with the fields that its own have beside scores."""
    results = {
        task: {"alias": f" - {task}"}
        | {f"{name},none": score for name, score in own.items()}
        | {f"{name}_stderr,none": 0.01 for name in own}
        for task, own in scores.items()
    }
    groups = {"belebele": {"alias": "belebele", "acc,none": 0.5}} if len(scores) > 1 else {}
    content = {
        "results": results | groups,
        "groups": groups,
        "group_subtasks": {},
        "configs": {},
        "versions": dict.fromkeys(scores, 1.0),
        "n-shot": dict.fromkeys(scores, 5),
        "config": {"model": "hf", "model_args": f"pretrained={model},dtype=bfloat16"},
        "date": 1.73e9,
        "model_source": "hf",
        "model_name": model,
        "model_name_sanitized": model.replace("/", "__"),
    }
    put(file, json.dumps(content))
