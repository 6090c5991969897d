"""Words of a text, vectors that are looked up, trained, kept and read from fastText's files."""

import gzip
import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from gensim.models.fasttext import FastText, save_facebook_model

import xlx
from xlx.core.settings import current
from xlx.family import pretraining_text
from xlx.xprobe import counted_vectors, parallel_text, vector_recipes, word_vectors
from xlx.xprobe.counted_vectors import factorised
from xlx.xprobe.parallel_text import ParallelText, WordVectorsError, parallel_lines, tokenize
from xlx.xprobe.word_vectors import Ngrams, WordVectors

#: Lines of a few words in which each of the first list goes with one of the second.
LINES = [
    f"{a} {b} {c}."
    for a, b, c in itertools.product(
        ["the house", "a castle", "no tower"], ["stands", "falls", "burns"], ["today", "slowly"]
    )
]


def vectors(ngrams: Ngrams | None = None) -> WordVectors:
    return WordVectors("en", ("the", "cat"), np.array([[1, 2], [3, 4]], np.float32), ngrams)


def bucket(ngram: str, n: int) -> int:
    """fastText's hash, FNV-1a with bytes read as signed, as its source has it."""
    found = 2166136261
    for byte in ngram.encode("utf-8"):
        found ^= byte if byte < 128 else byte | 0xFFFFFF00
        found = found * 16777619 % 2**32
    return found % n


# --- words of a text ---


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("The house. The man's cat...", "en", "the house . the man 's cat ..."),
        ("Dr. No said: “Yes” & [left] <b>", "en", "dr. no said : “ yes ” & [ left ] < b >"),
        ("L'homme n'est pas là!", "fr", "l' homme n' est pas là !"),
        ("Am 3. Mai kam Dr. Müller.", "de", "am 3. mai kam dr. müller ."),
        ("İstanbul'da IŞIK yandı. Evet.", "tr", "istanbul ' da ışık yandı . evet ."),
        ("वह घर गया। कहाँ?", "hi", "वह घर गया । कहाँ ?"),
        ("Он ушёл. Потом…", "rus", "он ушёл . потом …"),
        ("", "en", ""),
    ],
)
def test_words_are_those_of_moses_in_small_letters(text, language, words) -> None:
    assert tokenize(text, language) == words.split()


def test_no_word_has_a_blank_in_it() -> None:
    text = "a\u00a0b\u2028c\u3000d\te\u200bf"
    assert all(word.split() == [word] for word in tokenize(text, "en"))
    assert "".join(tokenize(text, "en")).replace("\u200b", "") == "abcdef"


TEXT = {
    "ntrex": {
        "en": {"0": "One.", "1": "Two", "2": "Three"},
        "de": {"2": "Drei", "0": "Eins."},
        "tr": {"0": "BİR"},
    },
    "bible_nt": {"en": {"Mark 1:1": "The beginning"}, "de": {"Mark 1:1": "Der Anfang"}},
    "tatoeba": {"en": {"0": "Hello"}, "de": {"0": "Nein"}},
}


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of a few lines in place of the shipped one."""
    monkeypatch.setattr(parallel_text, "shipped_text", lambda: TEXT)


def test_parallel_lines_of_a_folder_are_those_of_two_files(tmp_path: Path) -> None:
    (tmp_path / "europarl.de-en.de").write_text("Ein Haus.\n\nDrei!\nVier\n", encoding="utf-8")
    (tmp_path / "europarl.de-en.en").write_text("One house.\nTwo\nThree!\n \n", encoding="utf-8")
    ours, theirs = parallel_lines("en", "de", [str(tmp_path)])
    assert ours == [["one", "house", "."], ["three", "!"]]
    assert theirs == [["ein", "haus", "."], ["drei", "!"]]
    assert parallel_lines("en", "de", [str(tmp_path)], limit=1) == (ours[:1], theirs[:1])
    with pytest.raises(WordVectorsError, match=r"end in \.en and \.fr"):
        parallel_lines("en", "fr", [str(tmp_path)])
    (tmp_path / "europarl.de-en.en").write_text("One house.\n", encoding="utf-8")
    with pytest.raises(WordVectorsError, match=r"one ends before line 2"):
        parallel_lines("en", "de", [str(tmp_path)])


@pytest.mark.usefixtures("shipped")
def test_parallel_lines_go_together_by_their_ids() -> None:
    ours, theirs = parallel_lines("en", "de")
    assert ours == [["one", "."], ["three"], ["the", "beginning"]]
    assert theirs == [["eins", "."], ["drei"], ["der", "anfang"]]
    assert parallel_lines("tr", "en") == ([["bir"]], [["one", "."]])
    with pytest.raises(WordVectorsError, match=r"no line of tr is translated into en in bible_nt"):
        parallel_lines("tr", "en", ["bible_nt"])
    with pytest.raises(WordVectorsError, match=r"'tatoeba' is no aligned .* ntrex, bible_nt"):
        parallel_lines("en", "de", ["tatoeba"])


def test_lines_of_a_corpus_end_at_line_feeds_alone(tmp_path: Path) -> None:
    (tmp_path / "a.fr").write_bytes(b"un\rdeux\r\ntrois\n")
    (tmp_path / "a.en").write_bytes(b"one two\nthree\n")
    found = parallel_lines("fr", "en", [str(tmp_path)])
    assert found == ([["un", "deux"], ["trois"]], [["one", "two"], ["three"]])
    (tmp_path / "a.en").write_bytes(b"one two\nthr\xe9e\n")
    with pytest.raises(WordVectorsError, match=r"a\.en, line 2: not UTF-8"):
        parallel_lines("fr", "en", [str(tmp_path)])


# --- vectors of words ---


def test_lookup_of_words_with_a_vector() -> None:
    own = vectors()
    assert own.dim == 2
    assert own.lookup(["cat", "the", "cat"]).tolist() == [[3, 4], [1, 2], [3, 4]]
    assert own.lookup([]).shape == (0, 2)
    assert own.index == {"the": 0, "cat": 1}


def test_a_word_without_a_vector_is_zero_or_the_mean_of_its_ngrams() -> None:
    assert vectors().lookup(["dog"]).tolist() == [[0, 0]]
    table = np.random.default_rng(0).normal(size=(7, 2)).astype(np.float32)
    found = vectors(Ngrams(table, 3, 4)).lookup(["dög", "cat", ""])
    expected = [table[bucket(ngram, 7)] for ngram in ("<dö", "<dög", "dög", "dög>", "ög>")]
    np.testing.assert_allclose(found[0], np.mean(expected, axis=0), rtol=1e-6)
    assert found[1].tolist() == [3, 4]
    assert found[2].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("words", "rows", "message"),
    [
        (("a", "b"), np.ones((3, 2)), r"en: there are 2 words and vectors of shape \(3, 2\)"),
        ((), np.ones((0, 2)), r"one or more words with a row each are needed"),
        (("a", "b"), np.ones(2), r"vectors of shape \(2,\)"),
        (("a", "a"), np.ones((2, 2)), r"the word 'a' comes twice"),
        (("a", "b"), np.array([[1, 2], [np.nan, 0]]), r"vector of 'b' holds NaN"),
    ],
)
def test_vectors_that_do_not_fit_their_words_are_refused(words, rows, message) -> None:
    with pytest.raises(WordVectorsError, match=message):
        WordVectors("en", words, rows)


# --- counts ---


def information_in_words(window: int) -> tuple[list[str], np.ndarray]:
    """The matrix that is decomposed, entry by entry."""
    lines = [tokenize(line, "en") for line in LINES]
    words = [word for word, _ in Counter(itertools.chain.from_iterable(lines)).most_common()]
    near = np.zeros((len(words), len(words)))
    for line in lines:
        for (i, a), (j, b) in itertools.permutations(enumerate(line), 2):
            if abs(i - j) <= window:
                near[words.index(a), words.index(b)] += (window + 1 - abs(i - j)) / window
    found = np.zeros_like(near)
    smooth = near.sum(axis=0) ** 0.75 / (near.sum(axis=0) ** 0.75).sum()
    for a, b in itertools.product(range(len(words)), repeat=2):
        if near[a, b]:
            p_of_b_near_a = near[a, b] / near[a].sum()
            found[a, b] = max(0, np.log(p_of_b_near_a / smooth[b]))
    return words, found


@pytest.mark.parametrize("window", [1, 3])
def test_vectors_from_counts_against_a_loop(window: int) -> None:
    words, information = information_in_words(window)
    found = factorised(LINES, "en", dim=4, window=window, ngrams=None)
    assert found.words == tuple(words)
    u, s, _ = np.linalg.svd(information)
    expected = u[:, :4] * np.sqrt(s[:4])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    # Components are open up to a rotation among equal ones, and cosines are not.
    assert s[3] - s[4] > 1e-3
    np.testing.assert_allclose(found.vectors @ found.vectors.T, expected @ expected.T, atol=1e-4)
    assert found.ngrams is None


def test_a_rare_word_is_no_neighbour_but_keeps_its_place() -> None:
    lines = ["a b c d", "a b c d", "a x b"]
    words, near = ["a", "b", "c", "d"], [[0, 2, 0, 0], [2, 0, 2, 0], [0, 2, 0, 2], [0, 0, 2, 0]]
    counted = counted_vectors._neighbours([line.split() for line in lines], words, 1)
    assert counted.toarray().tolist() == near


def test_words_that_were_not_in_the_text_are_near_those_that_look_like_them() -> None:
    found = factorised(LINES, "en", dim=4, ngrams=(3, 4), buckets=2000)
    assert found.ngrams.vectors.shape == (2000, 4)
    castles, burnt = found.lookup(["castles", "burnt"])
    castle, burns, today = found.lookup(["castle", "burns", "today"])
    assert castles @ castle > max(castles @ burns, castles @ today)
    assert burnt @ burns > max(burnt @ castle, burnt @ today)


def test_means_of_ngrams_are_as_near_to_the_words_as_least_squares_has_them(monkeypatch) -> None:
    monkeypatch.setattr(counted_vectors, "_STEPS", 100)
    words, vectors = ["ab", "abc", "bcd"], np.random.default_rng(0).normal(size=(3, 2))
    found = counted_vectors._fitted_ngrams(words, vectors, (2, 3), 9).vectors
    means = np.zeros((3, 9))
    for row, word in enumerate(words):
        framed = f"<{word}>"
        ngrams = [framed[at : at + n] for n in (2, 3) for at in range(len(framed) - n + 1)]
        for ngram in ngrams:
            means[row, bucket(ngram, 9)] += 1 / len(ngrams)
    penalty = counted_vectors._DAMPING**2 * np.eye(9)
    expected = np.linalg.solve(means.T @ means + penalty, means.T @ vectors)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": 99}, r"en: no word comes 99 times in 18 lines"),
        ({"dim": 12}, r"en: 12 words and \d+ pairs .* too few for 12 components; give more text"),
        ({"window": 0}, r"window is 0: it must be a whole number, 1 or more"),
        ({"ngrams": (5, 3)}, r"n-grams of \(5, 3\)"),
    ],
)
def test_counting_that_cannot_be_done(options, message) -> None:
    with pytest.raises(WordVectorsError, match=message):
        factorised(LINES, "en", **{"dim": 4, **options})


# --- the text of the compendium ---

SHORT = {"a": {"en": dict(enumerate(LINES[:9]))}, "b": {"en": dict(enumerate(LINES[9:]))}}
SHORT["a"]["tr"] = {"0": "IŞIK yandı ışık evde", "1": "ışık IŞIK evde yandı"}


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of a few lines in place of the shipped one."""
    monkeypatch.setattr(parallel_text, "shipped_text", lambda: SHORT)
    monkeypatch.setattr(vector_recipes, "_LOADED", {})


def files() -> dict[Path, int]:
    cache = current().cache
    return {path: path.stat().st_mtime_ns for path in cache.rglob("*.arrow")}


@pytest.mark.usefixtures("short")
def test_vectors_of_the_text_are_kept_and_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"dim": 2, "buckets": 50}
    recipes = vector_recipes.of_pretraining_text(["tr", "en"], **options)
    assert list(recipes) == ["tr", "en"]
    first = dict(zip(recipes, vector_recipes.load_vectors([*recipes.values()]), strict=True))
    assert set(first["tr"].words) == {"ışık", "yandı", "evde"}
    plain = factorised(LINES, "en", **options)
    assert first["en"].words == plain.words
    np.testing.assert_array_equal(first["en"].vectors, plain.vectors)

    before = files()
    assert len(before) == 2
    monkeypatch.setattr(vector_recipes, "_LOADED", {})
    for code, recipe in recipes.items():
        kept = recipe.load()
        assert kept.words == first[code].words
        np.testing.assert_array_equal(kept.vectors, first[code].vectors)
        np.testing.assert_array_equal(kept.lookup(["xyz"]), first[code].lookup(["xyz"]))
    assert files() == before
    for seed in (1, 0):
        vector_recipes.of_pretraining_text(["en"], **options, seed=seed)["en"].load()
    assert len(files()) == 3


@pytest.mark.usefixtures("short")
def test_two_processes_train_what_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    recipes = vector_recipes.of_pretraining_text(["en", "tr"], dim=2, ngrams=None).values()
    made = []
    for workers in (1, 2):
        monkeypatch.setattr(vector_recipes, "_LOADED", {})
        with xlx.settings(workers=workers, cache=current().cache / str(workers)):
            made.append(vector_recipes.load_vectors([*recipes]))
    for one, two in zip(*made, strict=True):
        np.testing.assert_array_equal(one.vectors, two.vectors)
        assert two.ngrams is None


def test_recipes_are_named_by_all_that_decides_their_vectors(tmp_path: Path) -> None:
    def ask(code: str = "en", **options) -> str:
        return vector_recipes.of_pretraining_text([code], **options)[code].ask.identity

    assert ask() == ask(dim=100, seed=0)
    others = [ask("de"), ask(dim=99), ask(seed=1), ask(ngrams=None)]
    file = vec(tmp_path / "a.vec", "1 2\nder 1 2\n")
    others += [vector_recipes.of_file(file, "de", limit=limit).ask.identity for limit in (1, 2)]
    same = vec(tmp_path / "b.vec", "1 2\nder 1 2\n")
    assert vector_recipes.of_file(same, "de", limit=1).ask.identity == others[-2]
    others.append(vector_recipes.of_file(vec(tmp_path / "c.vec", "1 1\na 1\n"), "de").ask.identity)
    assert len({ask(), *others}) == 1 + len(others)


@pytest.mark.usefixtures("short")
def test_a_language_that_the_text_lacks() -> None:
    recipe = vector_recipes.of_pretraining_text(["xx"])["xx"]
    with pytest.raises(WordVectorsError, match=r"no line of 'xx': choose en, tr"):
        recipe.load()
    with pytest.raises(TypeError, match=r"epochs"):
        vector_recipes.of_pretraining_text(["en"], epochs=3)


# --- translations ---


def test_translations_are_counted_once_and_named_by_their_files(tmp_path: Path) -> None:
    def folder(name: str, third: str = "drei vier fünf") -> str:
        own = tmp_path / name
        own.mkdir()
        vec(own / "a.de", f"eins\nzwei\n{third}\n")
        vec(own / "a.en", "one\ntwo\nthree four five\n")
        return str(own)

    def parallel(source: str, **options) -> ParallelText:
        return ParallelText("en", "de", (source,), **options)

    first = folder("first")
    whole = parallel(first)
    assert len(whole) == 3
    assert whole.lines[1][2] == ["drei", "vier", "fünf"]
    assert parallel(first, longest=2, most=1).lines == ([["one"]], [["eins"]])
    assert whole.about == parallel(folder("again")).about
    others = [parallel(folder("other", "sechs")), parallel(first, most=1), parallel(first, limit=2)]
    assert all(other.about != whole.about for other in others)
    with pytest.raises(WordVectorsError, match=r"no line of en and de has 0 words or fewer"):
        len(parallel(first, longest=0))
    vec(Path(first) / "a.de", "")
    assert len(whole) == 3
    shipped = [ParallelText("en", "de", (own,)) for own in pretraining_text.ALIGNED_SOURCES]
    assert shipped[0].about != shipped[1].about


# --- files of fastText ---


def vec(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8", newline="\n")
    return path


def test_vectors_of_a_text_file(tmp_path: Path) -> None:
    content = "3 2\nder 0.5 -1e-3 \na\u00a0b 1 2\nÖl 3 4\n"
    found = word_vectors.pretrained(vec(tmp_path / "a.vec", content), "de")
    assert found.words == ("der", "a\u00a0b", "Öl")
    np.testing.assert_allclose(found.vectors, [[0.5, -1e-3], [1, 2], [3, 4]], rtol=1e-6)
    assert found.ngrams is None
    zipped = tmp_path / "b.vec.gz"
    zipped.write_bytes(gzip.compress(content.encode("utf-8")))
    assert word_vectors.pretrained(zipped, "de", limit=2).words == found.words[:2]


def test_words_that_are_no_whole_utf8_and_fall_together_count_once(tmp_path: Path) -> None:
    path = tmp_path / "a.vec"
    path.write_bytes(b"3 1\n\xff 1\n\xfe 2\nb 3\n")
    found = word_vectors.pretrained(path, "de")
    assert found.words == ("\ufffd", "b")
    assert found.vectors.tolist() == [[1], [3]]


@pytest.mark.parametrize(
    "content",
    [
        "der 1 2\n",  # no header
        "",
        "2 2\nder 1 2\ndie 1 2 3\n",  # a number too many
        "2 3\nder 1 2 3\ndie 1 2\n",  # one too few
        "2 2\nder 1 2\ndie 1 x\n",
        "2 2\nder 1 2\n",  # torn
    ],
)
def test_a_malformed_text_file_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(WordVectorsError, match=r"a\.vec is no whole \.vec file of fastText"):
        word_vectors.pretrained(vec(tmp_path / "a.vec", content), "de")


def test_a_vector_that_is_no_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WordVectorsError, match=r"vector of 'der' holds NaN"):
        word_vectors.pretrained(vec(tmp_path / "a.vec", "1 2\nder 1 nan\n"), "de")


def test_lines_past_the_limit_are_not_read(tmp_path: Path) -> None:
    path = vec(tmp_path / "a.vec", "9 1\nder 1\ndie x\n")
    assert word_vectors.pretrained(path, "de", limit=1).words == ("der",)


def test_vectors_of_a_binary_file_have_their_ngrams(tmp_path: Path) -> None:
    model = FastText(
        [line.split() for line in LINES], vector_size=4, min_count=1, bucket=30, min_n=2, max_n=3,
        epochs=1, workers=1,
    )  # fmt: skip
    path = tmp_path / "a.bin"
    save_facebook_model(model, str(path))
    found = word_vectors.pretrained(path, "en", limit=5)
    assert found.words == tuple(model.wv.index_to_key[:5])
    np.testing.assert_allclose(found.vectors, model.wv.vectors[:5], atol=1e-6)
    np.testing.assert_allclose(found.lookup(["castles"])[0], model.wv["castles"], atol=1e-6)

    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(WordVectorsError, match=r"a\.bin is no whole \.bin file of fastText"):
        word_vectors.pretrained(path, "en")
    path.write_bytes(b"not a model at all, but some text that is long enough to be read as one")
    with pytest.raises(WordVectorsError, match=r"a\.bin is no whole \.bin file of fastText"):
        word_vectors.pretrained(path, "en")


def test_what_is_no_file_of_vectors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"cc\.de\.300\.vec are not there: download"):
        word_vectors.pretrained(tmp_path / "cc.de.300.vec", "de")
    with pytest.raises(WordVectorsError, match=r"a\.txt is neither a \.vec nor a \.bin"):
        word_vectors.pretrained(vec(tmp_path / "a.txt", "1 1\na 1\n"), "de")
    with pytest.raises(WordVectorsError, match=r"limit is 0"):
        word_vectors.pretrained(vec(tmp_path / "a.vec", "1 1\na 1\n"), "de", limit=0)
