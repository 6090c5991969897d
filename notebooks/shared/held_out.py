"""What held-out models are asked, fixed before any of their weights was read (data/predictions).

A model is read in full where its cost allows that. The largest is asked about fewer languages and
sentences, which are chosen here by rules that no result had a part in.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from shared import controls
from shared.likelihood import Texts
from xlx.experiment.abx_scores import MATCHED
from xlx.experiment.scoring import BagOfSubwords, Subject, as_subject, cached, subject_scores
from xlx.measures.abx import PairScores
from xlx.results import paths, work
from xlx.results.settings import current, settings
from xlx.subjects.identity import twin_of
from xlx.subjects.loading import tokenizer
from xlx.text import labelled, parallel
from xlx.text.parallel import ParallelCorpus

MODELS = ("embeddinggemma-300m", "qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-1.5b-instruct")
#: What a table or a figure calls them.
MARKED = {model: f"{model}, held out" for model in MODELS}
#: What is scored of them, of their bags and twins.
SCORED = ("LD", "MD", MATCHED, "retrieval")


@cache
def asked() -> pd.DataFrame:
    """By language what it is asked in, the names of topics, and what stands between two texts."""
    table = pd.read_csv(paths.DATA / "predictions" / "asked.csv", keep_default_na=False)
    return table.set_index("language")


def languages(column: str) -> tuple[str, ...]:
    """Those of "pivots", "few topics", "grid", "few grid" or "few wmt", in the table's order."""
    return tuple(asked().index[asked()[column] == 1])


@dataclass(frozen=True)
class Plan:
    """What one model is asked: precision, poolings of MEXA, languages and numbers of sentences.

    ``languages`` and ``topics`` of FLORES-200 and SIB-200 (None: all), ``wmt`` languages of WMT24++
    and ``n_wmt`` positions of it for LD and MD, ``n_bits`` for bits a sentence.
    """

    poolings: tuple[str, ...]
    dtype: str = "float32"
    languages: tuple[str, ...] | None = None
    topics: tuple[str, ...] | None = None
    wmt: tuple[str, ...] | None = None
    n_wmt: int = 300
    n_bits: int = 0
    grid: tuple[str, ...] = ()


def first_languages() -> tuple[str, ...]:
    """Those of the table and, up to 100 of FLORES-200, others by the hash of their code."""
    codes = tuple(parallel.tags("flores200-100"))
    rest = [code for code in codes if code not in asked().index]
    rest.sort(key=lambda code: hashlib.sha256(code.encode()).hexdigest())
    chosen = [*asked().index, *rest][:100]
    return tuple(code for code in codes if code in chosen)


def plans() -> Mapping[str, Plan]:
    """By name what each held-out model is asked, and the decoder that was there before.

    Fewer than foreseen, for time alone: of the encoder 300 positions (all 949), of the smaller
    decoder 60 sentences for bits (300) and four languages of the grid (12).
    """
    decoded, grid = ("weighted_mean", "last"), languages("few grid")
    return {
        "embeddinggemma-300m": Plan(("mean",)),
        "qwen2.5-coder-0.5b-instruct": Plan(decoded, "bfloat16", n_bits=60, grid=grid),
        "qwen2.5-coder-1.5b-instruct": Plan(
            decoded,
            "bfloat16",
            first_languages(),
            languages("few topics"),
            languages("few wmt"),
            n_bits=60,
            grid=grid,
        ),
        "gemma-3-270m": Plan(decoded, n_bits=60, grid=grid),
    }


def precision(model: object) -> str:
    """The arithmetic that a model is read in: by its plan, or else as the settings say."""
    plan = plans().get(str(model))
    return plan.dtype if plan else current().dtype


@cached(tolerance=0)
def illegible_tokens(subject: Subject, corpus: ParallelCorpus) -> pd.DataFrame:
    """Share of tokens by language that are no whole character, or unknown: ``language``, ``share``.

    They are what a vocabulary without the language's letters leaves: bytes.
    """
    words, rows = tokenizer(subject.name), []
    for code in corpus.languages:
        pieces = words(list(corpus.sentences[code]), add_special_tokens=False)["input_ids"]
        tokens, counts = np.unique(np.concatenate(pieces), return_counts=True)
        bad = [
            token == words.unk_token_id or "\ufffd" in text
            for token, text in zip(tokens, words.batch_decode(tokens[:, None]), strict=True)
        ]
        rows.append((code, counts[bad].sum() / counts.sum()))
    return pd.DataFrame(rows, columns=["language", "share"])


# --- what is there --------------------------------------------------------------------------------


def stored(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a call gives if all its results are there, else None."""
    try:
        with settings(policy="only"):
            return call(*arguments, **options)
    except work.MissingResultError:
        return None


def asked_of(name: str, call: Callable[..., Any], *rest: object, **options: object) -> Any:
    """What a call gives of a model, in its precision; of a held-out one, if it is there."""
    stands = partial(stored, call) if name in MODELS else call
    with settings(dtype=precision(name)):
        return stands([name], *rest, **options)


def on_wmt(
    model: str,
    call: Callable[..., Any],
    subject: Subject | str,
    *rest: object,
    few: bool = False,
    **options: object,
) -> Any:
    """`stored`: what a call gives of a model, its twin or its bag on its `wmt`, as its plan has.

    ``few``: in the few languages that a twin is asked in.
    """
    plan = plans()[model]
    plan = replace(plan, wmt=languages("few wmt")) if few else plan
    text, reading = wmt(plan), {"pooling": "mean", "max_length": None}
    with settings(dtype=plan.dtype):
        return stored(call, [as_subject(subject, reading)], text, *rest, **options)


def controlled(model: str) -> list[PairScores | None]:
    """LD, MD, matched MD and retrieval by `on_wmt` of a model, and of its bag of subwords.

    Then of the model and of its untrained twin in few languages. All bear the model's name, marked.
    """
    subjects = [
        (model, False),
        (BagOfSubwords(model), False),
        (model, True),
        (twin_of(model), True),
    ]
    scored = [on_wmt(model, subject_scores, x, SCORED, few=few) for x, few in subjects]
    return [x and replace(x[0], model=MARKED[model]) for x in scored]


# --- texts ----------------------------------------------------------------------------------------


def wmt(plan: Plan) -> ParallelCorpus:
    """WMT24++ at some positions that no language repeats, in its languages."""
    text = parallel.load("wmt24pp", drop_duplicates=True).take(plan.n_wmt, 1)
    return text.select(plan.wmt) if plan.wmt else text


def sentences(plan: Plan) -> dict[str, Texts]:
    """Language → sentences of WMT24++, behind nothing; of the largest model, as its topics."""
    text = parallel.load("wmt24pp", drop_duplicates=True).take(300, 1)
    text = text.drop(range(plan.n_bits, len(text)))
    codes = [code for code in text.languages if code in (plan.topics or text.languages)]
    return {code: Texts([""], [[*text.sentences[code]]]) for code in codes}


def tagged(language: str | None, codes: Sequence[str]) -> Texts:
    """The test texts of SIB-200 in one language, or no text; behind each its topic's names.

    Names are tags, in each of the languages of ``codes``, in the order of `labelled.TOPICS`.
    """
    texts = [""] if language is None else labelled.load_labelled("TOPIC", language, "test").first
    tags = asked().loc[[*codes], [*labelled.TOPICS]].to_numpy().ravel().tolist()
    return Texts([f"{text}\n#" for text in texts], [tags] * len(texts))


N_TRANSLATED, N_OTHERS = 30, 4


def candidates(text: ParallelCorpus, language: str) -> list[list[str]]:
    """The first sentences in a language, and behind each the four others of most like length."""
    lines = text.sentences[language]
    rows = []
    for i in range(N_TRANSLATED):
        others = sorted(
            (abs(len(lines[j]) - len(lines[i])), j) for j in range(len(lines)) if j != i
        )
        rows.append([lines[i], *(lines[j] for _, j in others[:N_OTHERS])])
    return rows


def translations(text: ParallelCorpus, source: str | None, target: str) -> Texts:
    """`candidates` in the target language behind the sentence in the source, or behind nothing."""
    before = text.sentences[source][:N_TRANSLATED] if source else [""] * N_TRANSLATED
    return Texts([f"{sentence}\n" for sentence in before], candidates(text, target))


N_PAIRS = 300


def inference(source: str, target: str, premises: str = "right") -> Texts:
    """Pairs of XNLI, premise in one language and the rest in another, with each answer between.

    A question stands behind the premise (XGLM, Lin et al. 2022, Table 5, in the target's words).
    ``premises``: "right", "none", or "wrong" (`controls.wrong_premises`).
    """
    first, second = (
        labelled.load_labelled("NLI", x, "test", source="xnli-whole").take(N_PAIRS, 1)
        for x in (source, target)
    )
    question, *answers = asked().loc[target, ["question", *labelled.NLI]]
    before = {
        "right": first.first,
        "none": [""] * N_PAIRS,
        "wrong": controls.wrong_premises(first).first,
    }[premises]
    return Texts(
        [f"{text.rstrip('.。!?')}{question}" for text in before],
        [[f"{answer}{text}" for answer in answers] for text in second.second],
    )
