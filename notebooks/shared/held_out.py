"""What held-out models are asked, fixed before any of their weights was read (data/predictions).

A model is read in full where its cost allows that. The largest is asked about fewer languages and
sentences, which are chosen here by rules that no result had a part in.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.likelihood import Texts
from xlx.text import labelled, parallel
from xlx.text.parallel import ParallelCorpus

#: The family's languages and twelve more, among which every one is the pivot once.
PIVOTS = (
    "ar", "bg", "ca", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "he", "hi", "hr",
    "hu", "is", "it", "ja", "ko", "lv", "nl", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "tr",
    "uk", "ur", "vi", "zh", "af", "am", "ar_Latn", "bo", "ht", "hy", "id", "ka", "sw", "tl", "yo",
    "zu",
)  # fmt: skip
#: Topics where not all languages are asked; text in two languages; the largest's share of that.
FEW_TOPICS = (
    "en", "de", "es", "fr", "ru", "uk", "fi", "hu", "tr", "ar", "fa", "hi", "zh", "ja", "ko", "vi",
    "id", "sw", "yo", "am", "ka", "he", "th", "tl",
)  # fmt: skip
GRID = ("ar", "de", "en", "es", "fr", "hi", "ja", "ru", "sw", "tr", "vi", "zh")
FEW_GRID = ("de", "en", "hi", "zh")
FEW_WMT = ("ar", "de", "en", "es", "fi", "fr", "hi", "ja", "ru", "tr", "vi", "zh")


@dataclass(frozen=True)
class Plan:
    """What one model is asked: precision, poolings of MEXA, languages and numbers of sentences.

    ``languages`` and ``topics`` of FLORES-200 and SIB-200 (None: all), ``wmt`` languages of WMT24++
    and ``n_wmt`` positions of it (None: all) for LD and MD, ``n_bits`` for bits a sentence.
    """

    poolings: tuple[str, ...]
    dtype: str = "float32"
    languages: tuple[str, ...] | None = None
    topics: tuple[str, ...] | None = None
    wmt: tuple[str, ...] | None = None
    n_wmt: int | None = None
    n_bits: int = 0
    grid: tuple[str, ...] = ()


def first_languages(n: int) -> tuple[str, ...]:
    """`PIVOTS` and, up to n languages of FLORES-200, others by the hash of their code."""
    codes = parallel.load("flores200-100").languages
    rest = [code for code in codes if code not in {*PIVOTS, *FEW_TOPICS}]
    rest.sort(key=lambda code: hashlib.sha256(code.encode()).hexdigest())
    chosen = [*dict.fromkeys([*PIVOTS, *FEW_TOPICS]), *rest][:n]
    return tuple(code for code in codes if code in chosen)


def plans() -> Mapping[str, Plan]:
    """By name the plan of each held-out model, and of the decoder that was there before."""
    decoded = ("weighted_mean", "last")
    return {
        "embeddinggemma-300m": Plan(("mean",)),
        "qwen2.5-coder-0.5b-instruct": Plan(decoded, "bfloat16", n_wmt=300, n_bits=300, grid=GRID),
        "qwen2.5-coder-1.5b-instruct": Plan(
            decoded, "bfloat16", first_languages(100), FEW_TOPICS, FEW_WMT, 300, 60, FEW_GRID
        ),
        "gemma-3-270m": Plan(decoded, n_bits=300, grid=GRID),
    }


# --- texts ----------------------------------------------------------------------------------------


def wmt(plan: Plan, n: int | None = None) -> ParallelCorpus:
    """WMT24++ at all positions that no language repeats, or at n of 300 drawn ones."""
    text = parallel.load("wmt24pp", drop_duplicates=True)
    n = n or plan.n_wmt
    text = text.take(len(text), 1) if n is None else text.take(300, 1).drop(range(n, 300))
    return text.select(plan.wmt) if plan.wmt else text


def sentences(plan: Plan) -> dict[str, Texts]:
    """Language → sentences of WMT24++, behind nothing."""
    text = parallel.load("wmt24pp", drop_duplicates=True).take(300, 1)
    text = text.drop(range(plan.n_bits, len(text)))
    return {code: Texts([""], [[*text.sentences[code]]]) for code in text.languages}


#: A topic's name in each language, as a tag behind a text; in the order of `labelled.TOPICS`.
TAGS: Mapping[str, Sequence[str]] = {
    "ar": ("ترفيه", "جغرافيا", "صحة", "سياسة", "علوم", "رياضة", "سفر"),
    "de": (
        "Unterhaltung",
        "Geographie",
        "Gesundheit",
        "Politik",
        "Wissenschaft",
        "Sport",
        "Reisen",
    ),
    "en": ("entertainment", "geography", "health", "politics", "science", "sports", "travel"),
    "es": ("entretenimiento", "geografía", "salud", "política", "ciencia", "deportes", "viajes"),
    "fr": ("divertissement", "géographie", "santé", "politique", "science", "sport", "voyage"),
    "hi": ("मनोरंजन", "भूगोल", "स्वास्थ्य", "राजनीति", "विज्ञान", "खेल", "यात्रा"),
    "ja": ("エンターテインメント", "地理", "健康", "政治", "科学", "スポーツ", "旅行"),
    "ru": ("развлечения", "география", "здоровье", "политика", "наука", "спорт", "путешествия"),
    "sw": ("burudani", "jiografia", "afya", "siasa", "sayansi", "michezo", "safari"),
    "tr": ("eğlence", "coğrafya", "sağlık", "siyaset", "bilim", "spor", "seyahat"),
    "vi": ("giải trí", "địa lý", "sức khỏe", "chính trị", "khoa học", "thể thao", "du lịch"),
    "zh": ("娱乐", "地理", "健康", "政治", "科学", "体育", "旅行"),
}


def tagged(language: str, languages: Sequence[str]) -> Texts:
    """The test texts of SIB-200 in one language, a tag in each of the languages behind each."""
    texts = labelled.load_labelled("TOPIC", language, "test").first
    tags = [tag for code in languages for tag in TAGS[code]]
    return Texts([f"{text}\n#" for text in texts], [tags] * len(texts))


def tags_alone(languages: Sequence[str]) -> Texts:
    """The same tags behind no text."""
    return Texts(["\n#"], [[tag for code in languages for tag in TAGS[code]]])


N_TRANSLATED, N_OTHERS = 30, 4


def candidates(text: ParallelCorpus, language: str) -> list[list[str]]:
    """The first sentences in a language, and behind each the four others of most like length."""
    said = text.sentences[language]
    rows = []
    for i in range(N_TRANSLATED):
        others = sorted((abs(len(said[j]) - len(said[i])), j) for j in range(len(said)) if j != i)
        rows.append([said[i], *(said[j] for _, j in others[:N_OTHERS])])
    return rows


def translations(text: ParallelCorpus, source: str | None, target: str) -> Texts:
    """`candidates` in the target language behind the sentence in the source, or behind nothing."""
    before = text.sentences[source][:N_TRANSLATED] if source else [""] * N_TRANSLATED
    return Texts([f"{sentence}\n" for sentence in before], candidates(text, target))


#: A question and three answers between premise and hypothesis, for entailment, neutral and
#: contradiction (XGLM, Lin et al. 2022, Table 5, with other words in other languages).
BETWEEN: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "en": (", right?", (" Yes, ", " Also, ", " No, ")),
    "de": (", oder?", (" Ja, ", " Auch, ", " Nein, ")),
    "es": (", ¿verdad?", (" Sí, ", " Además, ", " No, ")),
    "fr": (", n'est-ce pas ?", (" Oui, ", " Aussi, ", " Non, ")),
    "zh": ("，对吗？", ("是的，", "另外，", "不，")),
}
N_PAIRS = 300


def inference(source: str, target: str, premises: str = "right") -> Texts:
    """Pairs of XNLI, premise in one language and the rest in another, with each answer.

    ``premises``: "right", "none", or "wrong", those of the pair before in the same draw.
    """
    first, second = (
        labelled.load_labelled("NLI", x, "test", source="xnli-whole").take(N_PAIRS, 1)
        for x in (source, target)
    )
    question, answers = BETWEEN[target]
    before = {"right": [*first.first], "none": [""] * N_PAIRS,
              "wrong": [first.first[i - 1] for i in range(N_PAIRS)]}[premises]  # fmt: skip
    return Texts(
        [f"{text.rstrip('.。!?')}{question}" for text in before],
        [[f"{answer}{text}" for answer in answers] for text in second.second],
    )
