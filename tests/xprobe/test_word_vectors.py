"""Words of a text, vectors that are looked up, trained, kept and read from fastText's files."""

import gzip
import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from gensim.models.fasttext import FastText, save_facebook_model

from xlx.results.settings import current
from xlx.text import pretraining_text
from xprobe import word_spaces
from xprobe.word_spaces import (
    Ngrams,
    ParallelText,
    WordVectors,
    WordVectorsError,
    factorised,
    tokenize,
)

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
    number = 2166136261
    for byte in ngram.encode("utf-8"):
        number ^= byte if byte < 128 else byte | 0xFFFFFF00
        number = number * 16777619 % 2**32
    return number % n


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
    monkeypatch.setattr(word_spaces, "shipped_text", lambda: TEXT)


def written(path: Path, content: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content, encoding="utf-8", newline="\n")
    return path


def lines(one: str, other: str, *sources: object, **options) -> tuple[list, list]:
    return ParallelText(one, other, tuple(map(str, sources)), **options).lines


def test_parallel_lines_of_a_folder_are_those_of_two_files(tmp_path: Path) -> None:
    written(tmp_path / "europarl.de-en.de", "Ein Haus.\n\nDrei!\nVier\n")
    written(tmp_path / "europarl.de-en.en", "One house.\nTwo\nThree!\n \n")
    ours, theirs = lines("en", "de", tmp_path)
    assert ours == [["one", "house", "."], ["three", "!"]]
    assert theirs == [["ein", "haus", "."], ["drei", "!"]]
    assert lines("en", "de", tmp_path, limit=1) == (ours[:1], theirs[:1])
    assert lines("en", "de", tmp_path, longest=2) == (ours[1:], theirs[1:])
    assert lines("en", "de", tmp_path, most=1) == (ours[:1], theirs[:1])


def test_lines_of_a_corpus_end_at_line_feeds_alone(tmp_path: Path) -> None:
    (tmp_path / "a.fr").write_bytes(b"un\rdeux\r\ntrois\n")
    (tmp_path / "a.en").write_bytes(b"one two\nthree\n")
    assert lines("fr", "en", tmp_path) == ([["un", "deux"], ["trois"]], [["one", "two"], ["three"]])


@pytest.mark.usefixtures("shipped")
def test_parallel_lines_go_together_by_their_ids() -> None:
    ours, theirs = ParallelText("en", "de").lines
    assert ours == [["one", "."], ["three"], ["the", "beginning"]]
    assert theirs == [["eins", "."], ["drei"], ["der", "anfang"]]
    assert ParallelText("tr", "en").lines == ([["bir"]], [["one", "."]])


@pytest.mark.usefixtures("shipped")
@pytest.mark.parametrize(
    ("english", "parallel", "message"),
    [
        (b"one\n", ("en", "fr"), r"end in \.en and \.fr"),
        (b"one\n", ("en", "de"), r"one ends before line 2"),
        (b"one\nthr\xe9e\n", ("de", "en"), r"a\.en, line 2: not UTF-8"),
        (b"one\ntwo\n", ("en", "de", None, None, 0), r"no line of en and de has 0 words or fewer"),
        (b"", ("tr", "en", ("bible_nt",)), r"no line of tr is translated into en in bible_nt"),
        (b"", ("en", "de", ("tatoeba",)), r"'tatoeba' is no aligned .* ntrex, bible_nt"),
    ],
)
def test_lines_that_cannot_be_read(tmp_path: Path, english, parallel, message: str) -> None:
    (tmp_path / "a.en").write_bytes(english)
    written(tmp_path / "a.de", "eins\nzwei\n")
    code, other, *options = parallel
    sources, limit, longest = (*options, *[None] * 3)[:3]
    with pytest.raises(WordVectorsError, match=message):
        _ = ParallelText(code, other, sources or (str(tmp_path),), limit, longest).lines


def test_translations_are_counted_once_and_named_by_their_files(tmp_path: Path) -> None:
    def parallel(name: str, third: str = "drei vier", **options) -> ParallelText:
        written(tmp_path / name / "a.de", f"eins\nzwei\n{third}\n")
        written(tmp_path / name / "a.en", "one\ntwo\nthree four five\n")
        return ParallelText("en", "de", (str(tmp_path / name),), **options)

    whole = parallel("first")
    assert len(whole) == 3
    assert whole.about == parallel("again").about
    others = [parallel("other", "sechs"), parallel("a", most=1), parallel("b", limit=2)]
    assert all(other.about != whole.about for other in others)
    written(tmp_path / "first" / "a.de", "")
    assert len(whole) == 3
    shipped = [ParallelText("en", "de", (own,)) for own in pretraining_text.ALIGNED_SOURCES]
    assert shipped[0].about != shipped[1].about


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
    looked_up = vectors(Ngrams(table, 3, 4)).lookup(["dög", "cat", ""])
    expected = [table[bucket(ngram, 7)] for ngram in ("<dö", "<dög", "dög", "dög>", "ög>")]
    np.testing.assert_allclose(looked_up[0], np.mean(expected, axis=0), rtol=1e-6)
    assert looked_up[1:].tolist() == [[3, 4], [0, 0]]


def test_vectors_that_do_not_fit_their_words_are_refused() -> None:
    with pytest.raises(WordVectorsError, match=r"the word 'a' comes twice"):
        WordVectors("en", ("a", "a"), np.ones((2, 2)))
    with pytest.raises(WordVectorsError, match=r"vector of 'b' holds NaN"):
        WordVectors("en", ("a", "b"), np.array([[1, 2], [np.nan, 0]]))


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
    own = factorised(LINES, "en", dim=4, window=window, buckets=50)
    assert own.words == tuple(words)
    u, s, _ = np.linalg.svd(information)
    expected = u[:, :4] * np.sqrt(s[:4])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    # Components are open up to a rotation among equal ones, and cosines are not.
    assert s[3] - s[4] > 1e-3
    np.testing.assert_allclose(own.vectors @ own.vectors.T, expected @ expected.T, atol=1e-4)


def test_a_rare_word_is_no_neighbour_but_keeps_its_place() -> None:
    lines = ["a b c d", "a b c d", "a x b"]
    words, near = ["a", "b", "c", "d"], [[0, 2, 0, 0], [2, 0, 2, 0], [0, 2, 0, 2], [0, 0, 2, 0]]
    counted = word_spaces._neighbours([line.split() for line in lines], words, 1)
    assert counted.toarray().tolist() == near


def test_words_that_were_not_in_the_text_are_near_those_that_look_like_them() -> None:
    found = factorised(LINES, "en", dim=4, ngrams=(3, 4), buckets=2000)
    assert found.ngrams.vectors.shape == (2000, 4)
    castles, burnt = found.lookup(["castles", "burnt"])
    castle, burns, today = found.lookup(["castle", "burns", "today"])
    assert castles @ castle > max(castles @ burns, castles @ today)
    assert burnt @ burns > max(burnt @ castle, burnt @ today)


def test_means_of_ngrams_are_as_near_to_the_words_as_least_squares_has_them(monkeypatch) -> None:
    monkeypatch.setattr(word_spaces, "_STEPS", 100)
    words, vectors = ["ab", "abc", "bcd"], np.random.default_rng(0).normal(size=(3, 2))
    found = word_spaces._fitted_ngrams(words, vectors, (2, 3), 9).vectors
    means = np.zeros((3, 9))
    for row, word in enumerate(words):
        framed = f"<{word}>"
        ngrams = [framed[at : at + n] for n in (2, 3) for at in range(len(framed) - n + 1)]
        for ngram in ngrams:
            means[row, bucket(ngram, 9)] += 1 / len(ngrams)
    penalty = word_spaces._DAMPING**2 * np.eye(9)
    expected = np.linalg.solve(means.T @ means + penalty, means.T @ vectors)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_counting_too_few_words() -> None:
    with pytest.raises(WordVectorsError, match=r"en: 12 words are too few for 12 components"):
        factorised(LINES, "en", dim=12)


# --- the text of the compendium ---

SHORT = {"a": {"en": dict(enumerate(LINES[:9]))}, "b": {"en": dict(enumerate(LINES[9:]))}}
SHORT["a"]["tr"] = {"0": "IŞIK yandı ışık evde", "1": "ışık IŞIK evde yandı"}


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of a few lines in place of the shipped one."""
    monkeypatch.setattr(word_spaces, "shipped_text", lambda: SHORT)
    monkeypatch.setattr(word_spaces, "_LOADED", {})


@pytest.mark.usefixtures("_short")
def test_vectors_of_the_text_are_kept_and_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"dim": 2, "buckets": 50}
    recipes = [word_spaces.of_pretraining_text(code, **options) for code in ("tr", "en")]
    first = word_spaces.load_vectors(recipes)
    assert set(first[0].words) == {"ışık", "yandı", "evde"}
    plain = factorised(LINES, "en", **options)
    assert first[1].words == plain.words
    np.testing.assert_array_equal(first[1].vectors, plain.vectors)
    assert len(list(current().cache.rglob("word-vectors/*/*"))) == 2

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("counted again")

    monkeypatch.setattr(word_spaces, "_LOADED", {})
    monkeypatch.setattr(word_spaces, "factorised", fail)
    for before, kept in zip(first, word_spaces.load_vectors(recipes), strict=True):
        assert kept.words == before.words
        np.testing.assert_array_equal(kept.vectors, before.vectors)
        np.testing.assert_array_equal(kept.lookup(["xyz"]), before.lookup(["xyz"]))


@pytest.mark.usefixtures("_short")
def test_a_language_that_the_text_lacks() -> None:
    with pytest.raises(WordVectorsError, match=r"no line of 'xx': choose en, tr"):
        word_spaces.load_vectors([word_spaces.of_pretraining_text("xx")])


def test_recipes_are_named_by_all_that_decides_their_vectors(tmp_path: Path) -> None:
    def ask(code: str = "en", **options) -> str:
        return word_spaces.of_pretraining_text(code, **options).ask.identity

    def ask_file(name: str, content: str, **options) -> str:
        return word_spaces.of_file(written(tmp_path / name, content), "de", **options).ask.identity

    assert ask() == ask(dim=100, seed=0)
    file = ask_file("a.vec", "1 2\nder 1 2\n")
    assert file == ask_file("b.vec", "1 2\nder 1 2\n")
    others = [ask("de"), ask(dim=99), ask(seed=1), file, ask_file("c.vec", "1 1\na 1\n")]
    others.append(ask_file("a.vec", "1 2\nder 1 2\n", dim=2))
    assert len({ask(), *others}) == 1 + len(others)


# --- files of fastText ---


def test_vectors_of_a_text_file(tmp_path: Path) -> None:
    content = "3 2\nder 0.5 -1e-3 \na\u00a0b 1 2\nÖl 3 4\n"
    found = word_spaces.pretrained(written(tmp_path / "a.vec", content), "de")
    assert found.words == ("der", "a\u00a0b", "Öl")
    np.testing.assert_allclose(found.vectors, [[0.5, -1e-3], [1, 2], [3, 4]], rtol=1e-6)
    assert found.ngrams is None
    zipped = tmp_path / "b.vec.gz"
    zipped.write_bytes(gzip.compress(content.encode("utf-8")))
    assert word_spaces.pretrained(zipped, "de", limit=2).words == found.words[:2]


def test_words_that_are_no_whole_utf8_and_fall_together_count_once(tmp_path: Path) -> None:
    path = tmp_path / "a.vec"
    path.write_bytes(b"3 1\n\xff 1\n\xfe 2\nb 3\n")
    found = word_spaces.pretrained(path, "de")
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
        word_spaces.pretrained(written(tmp_path / "a.vec", content), "de")


def test_lines_past_the_limit_are_not_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.vec", "9 1\nder 1\ndie x\n")
    assert word_spaces.pretrained(path, "de", limit=1).words == ("der",)


def test_vectors_of_a_binary_file_have_their_ngrams(tmp_path: Path) -> None:
    model = FastText(
        [line.split() for line in LINES], vector_size=4, min_count=1, bucket=30, min_n=2, max_n=3,
        epochs=1, workers=1,
    )  # fmt: skip
    path = tmp_path / "a.bin"
    save_facebook_model(model, str(path))
    own = word_spaces.pretrained(path, "en", limit=5)
    assert own.words == tuple(model.wv.index_to_key[:5])
    np.testing.assert_allclose(own.vectors, model.wv.vectors[:5], atol=1e-6)
    np.testing.assert_allclose(own.lookup(["castles"])[0], model.wv["castles"], atol=1e-6)

    whole = path.read_bytes()
    for content in (
        whole[: len(whole) // 2],
        b"no model, but text long enough to be read as one" * 2,
    ):
        path.write_bytes(content)
        with pytest.raises(WordVectorsError, match=r"a\.bin is no whole \.bin file of fastText"):
            word_spaces.pretrained(path, "en")


def test_what_is_no_file_of_vectors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"cc\.de\.300\.vec are not there: download"):
        word_spaces.of_file(tmp_path / "cc.de.300.vec", "de")
    with pytest.raises(WordVectorsError, match=r"a\.txt is neither a \.vec nor a \.bin"):
        word_spaces.pretrained(written(tmp_path / "a.txt", "1 1\na 1\n"), "de")
