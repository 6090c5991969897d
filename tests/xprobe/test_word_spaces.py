"""Words in one space: planted maps, retrieval, dictionaries, vectors that are counted or read."""

import gzip
import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlx.text.parallel import CorpusWarning
from xprobe import word_spaces
from xprobe.word_spaces import (
    COUNTS,
    ParallelText,
    Words,
    WordVectorsError,
    counted,
    factorised,
    lookup,
    normalised_words,
    orthogonal_map,
    pretrained,
    tokenize,
    word_pairs,
)

DIM = 6


def random(n: int = 40, seed: int = 0) -> np.ndarray:
    # Unequal variances and correlations.
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, DIM)) @ rng.normal(size=(DIM, DIM))


def rotation(seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(DIM, DIM)))[0]


def written(path: Path, content: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content, encoding="utf-8", newline="\n")
    return path


# --- maps ---


def test_normalising_steps_by_hand() -> None:
    vectors = np.array([[3.0, 4.0], [0.0, 2.0]])
    # (0.6, 0.8) and (0, 1) less their mean (0.3, 0.9), made unit again
    root = 10**-0.5
    expected = [[3 * root, -root], [-3 * root, root]]
    np.testing.assert_allclose(normalised_words(vectors), expected, rtol=1e-6)
    assert vectors.tolist() == [[3, 4], [0, 2]]


def test_words_outside_the_vocabulary_and_unknown_ones() -> None:
    vocabulary = random()
    with_zero, whole = np.vstack([vocabulary, np.zeros(DIM)]), normalised_words(vocabulary)
    found = normalised_words(vocabulary[[4, 17]], like=vocabulary)
    np.testing.assert_allclose(found, whole[[4, 17]], rtol=1e-6)
    found = normalised_words(with_zero)
    assert not found[-1].any()  # a word of which nothing is known stays zero, and moves no mean
    np.testing.assert_allclose(found[:-1], whole, rtol=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_a_planted_rotation_is_recovered(seed: int) -> None:
    source, turn = random(seed=seed), rotation(seed=seed + 1)
    target = (source @ turn)[::-1]
    # As many pairs as dimensions are enough; the rest of the words then fall into place.
    pairs = np.stack([np.arange(DIM), 39 - np.arange(DIM)], axis=1)
    found = orthogonal_map(source, target, pairs)
    np.testing.assert_allclose(found, turn, atol=1e-5)
    with pytest.raises(ValueError, match=r"5 pairs for vectors of 6 numbers"):
        orthogonal_map(source, target, pairs[:5])


def test_a_dictionary_file_and_what_it_has_no_vectors_for(tmp_path: Path) -> None:
    english, german = (
        {word: i for i, word in enumerate(own.split())}
        for own in ("the cat dog house big", "der haus katze hund groß")
    )
    text = "cat katze\nhouse\thaus\nbig groß\nbig dick\nwhale hund\nwhale wal\n\ncat  katze"
    found = word_pairs(written(tmp_path / "en-de.txt", text), english, german)
    assert found.tolist() == [[1, 2], [3, 1], [4, 4]]
    for line in ("cat", "cat die katze"):
        path = written(tmp_path / "a.txt", f"the der\n\n{line}\n")
        with pytest.raises(WordVectorsError, match=r"a\.txt, line 3: not two words"):
            word_pairs(path, english, german)
    with pytest.raises(WordVectorsError, match=r"en-de\.txt: none of its \d+ pairs of words"):
        word_pairs(tmp_path / "en-de.txt", german, english)


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("The house. The man's cat...", "en", "the house . the man 's cat ..."),
        ("Dr. No said: “Yes” & [left] <b>", "en", "dr. no said : “ yes ” & [ left ] < b >"),
        ("İstanbul'da IŞIK yandı. Evet.", "tr", "istanbul ' da ışık yandı . evet ."),
        ("वह घर गया। कहाँ?", "hi", "वह घर गया । कहाँ ?"),
        ("a\u00a0b\u2028c\u3000d\te", "en", "a b c d e"),
        ("", "en", ""),
    ],
)
def test_words_are_those_of_moses_in_small_letters(text, language, words) -> None:
    assert tokenize(text, language) == tuple(words.split())


TEXT = {
    "ntrex": {
        "en": {"0": "One.", "1": "Two", "2": "Three"},
        "de": {"2": "Drei", "0": "Eins."},
        "tr": {"0": "BİR"},
    },
    "bible_nt": {"en": {"Mark 1:1": "The beginning"}, "de": {"Mark 1:1": "Der Anfang"}},
}


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of a few lines in place of the shipped one."""
    monkeypatch.setattr(word_spaces, "shipped_text", lambda: TEXT)


def lines(one: str, other: str, source: object, **options) -> tuple[list, list]:
    return ParallelText(one, other, str(source), **options).lines


def test_parallel_lines_of_a_folder_are_those_of_two_files(tmp_path: Path) -> None:
    written(tmp_path / "europarl.de-en.de", "Ein\rHaus.\n\nDrei!\nVier\n")
    written(tmp_path / "europarl.de-en.en", "One house.\nTwo\nThree!\n \n")
    ours, theirs = lines("en", "de", tmp_path)
    assert ours == [("one", "house", "."), ("three", "!")]
    assert theirs == [("ein", "haus", "."), ("drei", "!")]
    assert lines("en", "de", tmp_path, longest=2) == (ours[1:], theirs[1:])
    assert lines("en", "de", tmp_path, most=1) == (ours[:1], theirs[:1])
    assert lines("en", "de", tmp_path, most=4) == (ours, theirs)  # and says nothing
    with pytest.warns(CorpusWarning, match=r", en and de: 5 lines are asked for, and 4 are there;"):
        assert lines("en", "de", tmp_path, most=5) == (ours, theirs)


@pytest.mark.usefixtures("shipped")
@pytest.mark.parametrize(
    ("english", "parallel", "message"),
    [
        (b"one\n", ("en", "fr"), r"end in \.en and \.fr"),
        (b"one\n", ("en", "de"), r"are not as many lines"),
        (b"one\nthr\xe9e\n", ("de", "en"), r"lines of UTF-8: .*0xe9"),
        (b"one\ntwo\n", ("en", "de", None, 0), r"of 0 words at most"),
        (b"", ("tr", "en", "bible_nt"), r"no line of tr is translated into en in bible_nt"),
        (b"", ("en", "de", "tatoeba"), r"'tatoeba'.* ntrex, bible_nt"),
    ],
)
def test_lines_that_cannot_be_read(tmp_path: Path, english, parallel, message: str) -> None:
    (tmp_path / "a.en").write_bytes(english)
    written(tmp_path / "a.de", "eins\nzwei\n")
    code, other, source, longest = (*parallel, None, None)[:4]
    with pytest.raises(ValueError, match=message):
        _ = ParallelText(code, other, source or str(tmp_path), longest).lines


# --- counts ---

#: Lines of a few words in which each of the first list goes with one of the second.
COUNTED = [
    f"{a} {b} {c}."
    for a, b, c in itertools.product(
        ["the house", "a castle", "no tower"], ["stands", "falls", "burns"], ["today", "slowly"]
    )
]


def information_in_words(window: int) -> tuple[list[str], np.ndarray]:
    """The matrix that is decomposed, entry by entry."""
    own = [tokenize(line, "en") for line in COUNTED]
    words = [word for word, _ in Counter(itertools.chain.from_iterable(own)).most_common()]
    near = np.zeros((len(words), len(words)))
    for line in own:
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
    options = COUNTS | {"dim": 4, "window": window, "ngrams": (3, 4), "buckets": 2000}
    own = counted(factorised(COUNTED, "en", options))
    assert own.index_to_key == words
    u, s, _ = np.linalg.svd(information)
    expected = u[:, :4] * np.sqrt(s[:4])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    # Components are open up to a rotation among equal ones, and cosines are not.
    assert s[3] - s[4] > 1e-3
    np.testing.assert_allclose(own.vectors @ own.vectors.T, expected @ expected.T, atol=1e-4)
    # words that were not in the text are near those that look like them
    castles, castle, burns, today = lookup(own, ["castles", "castle", "burns", "today"])
    assert window == 1 or castles @ castle > max(castles @ burns, castles @ today)
    with pytest.raises(WordVectorsError, match=r"en: 12 words are too few for 12 components"):
        factorised(COUNTED, "en", options | {"dim": 12})


def bucket(ngram: str, n: int) -> int:
    """fastText's hash, FNV-1a with bytes read as signed, as its source has it."""
    number = 2166136261
    for byte in ngram.encode("utf-8"):
        number ^= byte if byte < 128 else byte | 0xFFFFFF00
        number = number * 16777619 % 2**32
    return number % n


def test_means_of_ngrams_are_as_near_to_the_words_as_least_squares_has_them(monkeypatch) -> None:
    monkeypatch.setattr(word_spaces, "_STEPS", 100)
    words, vectors = ["ab", "abc", "bcd"], np.random.default_rng(0).normal(size=(3, 2))
    found = word_spaces._fitted_ngrams(words, vectors.astype(np.float32), (2, 3), 9)
    means = np.zeros((3, 9))
    for row, word in enumerate(words):
        framed = f"<{word}>"
        ngrams = [framed[at : at + n] for n in (2, 3) for at in range(len(framed) - n + 1)]
        for ngram in ngrams:
            means[row, bucket(ngram, 9)] += 1 / len(ngrams)
    penalty = word_spaces._DAMPING**2 * np.eye(9)
    expected = np.linalg.solve(means.T @ means + penalty, means.T @ vectors)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    value = {"words": np.array(words, object), "vectors": vectors, "ngrams": found}
    own = counted(value | {"lengths": np.array([2, 3])})
    np.testing.assert_allclose(lookup(own, ["ab"])[0], vectors[0], rtol=1e-6)
    unseen = np.mean([found[bucket(x, 9)] for x in ("<d", "dö", "ö>", "<dö", "dö>")], axis=0)
    np.testing.assert_allclose(lookup(own, ["dö", ""]), [unseen, [0, 0]], atol=1e-6)


def test_vectors_of_the_text_are_kept_and_named_by_what_decides_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = {"en": dict(enumerate(COUNTED)), "tr": {"0": "IŞIK yandı evde", "1": "ışık evde"}}
    monkeypatch.setattr(word_spaces, "shipped_text", lambda: {"a": short})
    first = Words("en", dim=2).vectors
    expected = factorised(COUNTED, "en", COUNTS | {"dim": 2})["vectors"]
    np.testing.assert_array_equal(first.vectors, expected)
    monkeypatch.setattr(word_spaces, "factorised", None)
    again = Words("en", dim=2).vectors
    np.testing.assert_array_equal(lookup(again, ["xyz", "the"]), lookup(first, ["xyz", "the"]))
    with pytest.raises(WordVectorsError, match=r"no line of 'xx': choose en, tr"):
        _ = Words("xx").vectors
    file, other = (written(tmp_path / x, f"1 2\n{x} 1 2\n") for x in ("a.vec", "b.vec"))
    own = [Words("en"), Words("de"), Words("en", dim=99), Words("de", file), Words("de", other)]
    own.append(Words("de", file, dim=2))
    assert len({words.ask for words in own}) == len(own)
    assert Words("en").ask == Words("en", dim=100).ask


# --- files of fastText ---


def test_vectors_of_a_text_file(tmp_path: Path) -> None:
    content = "3 2\nder 0.5 -1e-3 \na\u00a0b 1 2\nÖl 3 4\n"
    found = pretrained(written(tmp_path / "a.vec", content))
    assert found.index_to_key == ["der", "a\u00a0b", "Öl"]
    np.testing.assert_allclose(lookup(found, ["Öl", "xy"]), [[3, 4], [0, 0]], rtol=1e-6)
    zipped = tmp_path / "b.vec.gz"
    zipped.write_bytes(gzip.compress(content.encode("utf-8")))
    assert pretrained(zipped, limit=2).index_to_key == found.index_to_key[:2]
    # words that are no whole UTF-8 and fall together count once
    (tmp_path / "c.vec").write_bytes(b"3 1\n\xff 1\n\xfe 2\nb 3\n")
    torn = pretrained(tmp_path / "c.vec")
    assert (torn.index_to_key, torn.vectors.tolist()) == (["\ufffd", "b"], [[1], [3]])


def test_what_is_no_file_of_vectors_is_told(tmp_path: Path) -> None:
    torn = written(tmp_path / "a.vec", "3 2\nder 0.5\n")
    with pytest.raises(WordVectorsError, match=r"a\.vec is no whole file of fastText"):
        pretrained(torn)
    whole = written(tmp_path / "b.vec", "2 2\nder 0.5 1\ndie 1 1\n")
    with pytest.raises(WordVectorsError, match=r"b\.vec: its vectors have 2 numbers, and 3 are"):
        pretrained(whole, dim=3)
    with pytest.raises(FileNotFoundError, match=r"cc\.de\.300\.vec is not there: .* MUSE"):
        _ = Words("de", tmp_path / "cc.de.300.vec").ask
