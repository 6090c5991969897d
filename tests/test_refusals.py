"""What public functions are given by mistake: each call is refused in one sentence, or warned of.

A table an entry point: the call, and words of what is said.
"""

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from transformers import ViTConfig, ViTModel

from tests import tiny
from xlx.experiment import averages, mexa_scores, probing, transfers
from xlx.experiment.scoring import subject_scores
from xlx.measures import abx, statistics
from xlx.measures.abx import sample_triplets
from xlx.results import checks, paths
from xlx.subjects import identity, jobs, loading, states
from xlx.text import downstream, examples, labelled, questions
from xlx.text.files import TextError
from xlx.text.parallel import CorpusWarning, ParallelCorpus, load
from xlx.text.questions import read_squad
from xlx.text.trees import load_trees, read_conllu
from xprobe import probing as sentence_probing

Call = Callable[[], object]


def refused(call: Call, says: str, kind: type | tuple = ValueError) -> None:
    """The call raises, in one line that says this, and no bare error of Python's."""
    with pytest.raises(kind, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)


def vectors(*shape: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    return {code: draw.normal(size=shape) for code in "abc"}


def corpus(n: int = 6, languages: tuple[str, ...] = ("en", "de")):
    # Every other sentence is about as long as the one before: MD is asked among those, too.
    words = [line for text in tiny.SENTENCES for line in (text, f"{text}!")]
    texts = {code: tuple(f"{text} {code}" for text in words[:n]) for code in languages}
    empty = ("",) * n
    return ParallelCorpus("made", texts, tuple(map(str, range(n))), empty, "", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("models") / "tiny")


# --- arrays ---------------------------------------------------------------------------------------

FLAT, DEEP = vectors(5, 3), vectors(2, 5, 3)


@pytest.mark.parametrize(
    ("states", "options", "says"),
    [
        (FLAT, {"pairs": [("a", "b"), ("a", "b")]}, "given twice"),
        (FLAT, {"pairs": [("a", "a")]}, "two different languages"),
        (DEEP, {"layers": []}, "no layer given"),
        (FLAT, {"layers": [9]}, "no layer 9"),
        (FLAT, {"measures": ["MDD"]}, "there is no measure 'MDD': choose LD, MD"),
        (vectors(5), {}, r"shape \(5,\)"),
        (FLAT | {"c": DEEP["c"]}, {}, r"c have the shape \(2, 5, 3\)"),
        ({code: array * 1e300 for code, array in FLAT.items()}, {}, "too long"),
        ({code: array * 1e-300 for code, array in FLAT.items()}, {}, "or scale the vectors"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_exact_scores_refuse(states: dict, options: dict, says: str) -> None:
    refused(lambda: abx.exact(states, **options), says)


def test_pairs_both_ways_round_are_two() -> None:
    found = abx.exact(FLAT, pairs=[("a", "b"), ("b", "a")])
    np.testing.assert_allclose(found.scores["LD"][:, 0], found.scores["LD"][:, 1, ::-1])
    once = abx.exact(FLAT, pairs=[("a", "b")]).scores["LD"]
    np.testing.assert_allclose(found.scores["LD"][:, :1], once)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_triplets_of_a_vector_without_direction_are_refused(value: float) -> None:
    spoilt = FLAT | {"b": np.where(np.arange(5)[:, None] == 3, value, FLAT["b"])}
    triplets = sample_triplets("MD", ("a", "b"), 5, 20, 0)
    refused(lambda: abx.score_triplets(spoilt, triplets), "of b at position 3")


@pytest.mark.parametrize("level", [95, 0, 1])
def test_a_level_is_a_share(level: object) -> None:
    refused(lambda: statistics.share_interval(1, 2, level), "level is")


@pytest.mark.parametrize("device", ["mps", "meta", "gpu", "cuda:99"])
def test_devices_that_are_not_there(device: object) -> None:
    refused(lambda: checks.device(device), "device '")


# --- the scores of checkpoints --------------------------------------------------------------------


@pytest.fixture(scope="module")
def scored(folder: Path) -> abx.PairScores:
    return subject_scores([folder], corpus())[0]


def test_text_of_one_language_is_refused(folder: Path) -> None:
    alone = corpus(languages=("en",))
    refused(lambda: subject_scores([folder], alone), "two languages or more")


def test_averages_refuse(scored: abx.PairScores) -> None:
    averaged = averages.averaged_scores
    refused(lambda: averaged([scored], layers=[99]), "no layer 99")
    refused(lambda: averaged([scored], layers=[]), "no layer given")
    assert averaged([scored], ["LD"], by=["layer"], layers=[-1, 0])["layer"].tolist() == [0, 2]


def test_differences_of_other_text_are_refused(folder: Path, scored: abx.PairScores) -> None:
    (with_other,) = subject_scores([folder], corpus(5))
    mean, other_mean = (averages.average(of, "LD") for of in (scored, with_other))
    refused(lambda: mean - other_mean, "two averages of different text")
    assert (mean - mean).score == 0


def test_text_without_sentences_of_like_length_is_refused(folder: Path) -> None:
    apart = corpus().drop([1, 3, 5])
    refused(lambda: subject_scores([folder], apart), "no sentence of en may be B: take more")


def test_a_mistyped_option_is_told_by_its_own_name(folder: Path) -> None:
    refused(
        lambda: subject_scores([folder], corpus(), poolin="cls"), "no option 'poolin': choose poo"
    )
    refused(lambda: averages.averaged_scores([]), "no scores of any checkpoint")
    refused(lambda: averages.averaged_scores([], level=95), "averaged_scores.* 'level'", TypeError)


def test_what_a_model_cannot_read_is_warned_of(folder: Path, tmp_path: Path) -> None:
    with pytest.warns(checks.TextWarning, match=r"'made' \(sentences cut: \w\w \d+%"):
        subject_scores([folder], corpus(), max_length=4)
    # a vocabulary without bytes: another script is unknown to it
    unknown = corpus(4)
    unknown.sentences["am"] = ("ሰላም ነው", "እንዴት ነህ", "ደህና ነኝ", "አመሰግናለሁ")
    model = tiny.save(tmp_path / "bert", "bert")
    raw = loading.load(model).tokenizer.backend_tokenizer.to_str()
    raw = raw.replace('"byte_fallback":true', '"byte_fallback":false')
    (model / "tokenizer.json").write_text(raw, encoding="utf-8")
    for measure in (
        lambda: subject_scores([model], unknown),
        lambda: mexa_scores.measure_coverage(model, unknown),
    ):
        with pytest.warns(checks.TextWarning, match=r"tokens unknown to it: am \d\d%"):
            measure()
    with warnings.catch_warnings():
        warnings.simplefilter("error", checks.TextWarning)
        subject_scores([folder], unknown)


# --- models ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "../a", "mini-xlmr/../../..", ".."])
def test_what_is_no_name_of_a_model(name: object) -> None:
    refused(lambda: loading.load(name), "no (name of a )?model", (ValueError, OSError))


@pytest.mark.parametrize("architecture", ["xlm-roberta", "distilbert", "gpt2", "t5", "bart"])
def test_layers_that_the_config_leaves_out(architecture: str, tmp_path: Path) -> None:
    model = tiny.save(tmp_path / "model", architecture, layers=3)
    names = ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "encoder_layers")
    held = json.loads((model / "config.json").read_text("utf-8"))
    loading.load(model)
    tiny.edit_json(model / "config.json", **{name: 2 for name in names if name in held})
    refused(lambda: loading.load(model), r"weights of further layers .*\.2\.")
    if tiny.KINDS[architecture] == "encoder":
        refused(lambda: loading.task_model(model, 2, 0), "weights of further layers")


def test_a_model_of_pictures_reads_no_text(folder: Path, tmp_path: Path) -> None:
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    pictures = ViTConfig(**size, intermediate_size=64, image_size=8, patch_size=4)
    ViTModel(pictures).save_pretrained(tmp_path)
    for file in folder.glob("tokenizer*"):
        shutil.copy(file, tmp_path)
    refused(lambda: loading.load(tmp_path), "reads no text: ViTModel has no table")


def test_adapters_and_folders_of_sentence_transformers(folder: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    refused(lambda: loading.load(adapter), r"an adapter \(LoRA.*merge")
    inside = shutil.copytree(folder, tmp_path / "sentences" / "0_Transformer")
    (inside.parent / "1_Pooling").mkdir()
    (inside.parent / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    refused(lambda: loading.load(inside.parent), "in 0_Transformer: give that", FileNotFoundError)
    with pytest.warns(states.PoolingWarning, match="trained with the pooling 'cls'"):
        subject_scores([inside], corpus())
    with warnings.catch_warnings():
        warnings.simplefilter("error", states.PoolingWarning)
        subject_scores([inside], corpus(), pooling="cls")


def test_half_a_character_is_refused_with_its_place(folder: Path) -> None:
    half, encoder, ids = ("fine", "b \ud83d"), loading.load(folder), ("1", "2")
    says = r"position 1: '\\ud83d' is half a character; write the whole one"
    whole = questions.Answer("fine", 0)
    labels = np.array([0, 1]), ("x", "y"), ids
    calls: dict[str, Call] = {
        "sentences": lambda: states.embed(encoder, half),
        "^made: de": lambda: ParallelCorpus("made", {"de": half}, ids, ids, "", ""),
        "^a: first": lambda: examples.Examples("a", "de", half, None, *labels),
        "^a: second": lambda: examples.Examples("a", "de", ids, half, *labels),
        "^a: contexts": lambda: questions.Questions(
            "a", "de", half, ids, ((whole,), (whole,)), ids
        ),
        "^a: answers": lambda: questions.Questions(
            "a", "de", ids, ids, ((whole,), (questions.Answer("\ud83d", 0),)), ids
        ),
        "^a: sentences": lambda: labelled.Tagged("a", "de", (("x",), half), ids, ids),
    }
    for where, call in calls.items():
        refused(call, f"{where}, {says}")
    states.embed(encoder, ["\U0001f600", "fine"])  # both halves are a character


def test_a_torn_tokenizer_and_shards_elsewhere_are_named(folder: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn"
    shutil.copytree(folder, torn)
    (torn / "tokenizer.json").write_text('{"version')
    refused(lambda: loading.load(torn), "^the tokenizer of '")
    shutil.copytree(folder, tmp_path / "\udce9")  # as Latin-1 has é
    refused(lambda: loading.load(tmp_path / "\udce9"), "a name that is not UTF-8")
    shutil.copytree(folder, tmp_path / "shards")
    (tmp_path / "shards" / "model.safetensors").rename(tmp_path / "outside.safetensors")
    for held in ({"weight_map": {"a": "../outside.safetensors"}}, {}):
        index = tmp_path / "shards" / "model.safetensors.index.json"
        index.write_text(json.dumps(held))
        refused(lambda: loading.load(tmp_path / "shards"), "has no such file")


def test_shipped_weights_are_those_on_record(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "MODELS", tmp_path)
    shutil.copytree(folder, tmp_path / "member")
    weights = tmp_path / "member" / "model.safetensors"
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    (tmp_path / "SHA256SUMS").write_text(f"{digest}  member/model.safetensors\n")
    loading.load("member")
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    for call in (loading.load, identity.fingerprint):
        refused(lambda call=call: call("member"), "is not the file on record in SHA256SUMS")


@pytest.mark.parametrize(
    ("architecture", "file"),
    [
        ("t5", "spiece.model"),
        ("xlm-roberta", "sentencepiece.bpe.model"),
        ("llama", "tokenizer.model"),
    ],
)
def test_a_folder_with_a_sentencepiece_model_alone(
    architecture: str, file: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("google.protobuf")
    model = tiny.save(tmp_path / "model", architecture)
    for old in model.glob("*token*"):
        old.unlink()
    kinds = {"t5": "T5Tokenizer", "xlm-roberta": "XLMRobertaTokenizer", "llama": "LlamaTokenizer"}
    (model / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": kinds[architecture]})
    )
    with (model / file).open("wb") as written:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(tiny.SENTENCES * 20),
            model_writer=written,
            vocab_size=90,
            model_type="bpe" if architecture == "llama" else "unigram",
            minloglevel=2,
        )
    tokenizer = loading.load(model).tokenizer
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("Das Wetter")["input_ids"])
    assert "".join(token for token in tokens if "<" not in token) == "▁Das▁Wetter"


# --- text -----------------------------------------------------------------------------------------


def texts(folder: Path, **files: bytes) -> Path:
    """A folder with two languages and some files more, whose names have _ for a dot."""
    folder.mkdir(exist_ok=True)
    both = {"en_txt": b"one\ntwo\n", "de_txt": b"eins\nzwei\n"}
    for name, content in (both | files).items():
        (folder / name.replace("_", ".")).write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"cy_txt": b"un\0\ndau\n"}, "line 1: a NUL byte"),
        ({"cy_txt": "un\ndau\n".encode("utf-16-le")}, "UTF-16"),
        ({"cy_txt": "un\n\u3164\n".encode()}, r"1 empty line \(2\)"),
        ({"cy_txt_zst": b""}, "cy.txt.zst is packed"),
    ],
)
def test_text_that_is_none(files: dict[str, bytes], says: str, tmp_path: Path) -> None:
    refused(lambda: load(texts(tmp_path / "own", **files)), says, TextError)


def test_files_that_are_none(tmp_path: Path) -> None:
    own = texts(tmp_path / "own")
    refused(lambda: load(""), "is no corpus")
    (own / "cy.txt").symlink_to(tmp_path / "none")
    refused(lambda: load(own), "a link to nothing", TextError)
    (tmp_path / "none").write_text("root:x:0\n")  # a link is the user's: what it names is text
    refused(lambda: load(own), "unequal numbers of lines: cy.txt has 1", TextError)
    (own / "cy.txt").unlink()
    os.mkfifo(own / "cy.txt")
    refused(lambda: load(own), "a pipe", TextError)
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    refused(lambda: load(tmp_path / "outer"), "no text, but subfolders", TextError)


def test_a_file_under_two_names_and_ids_that_were_guessed_are_said(tmp_path: Path) -> None:
    with pytest.warns(CorpusWarning, match=r"cy\.txt and de\.txt hold the same text"):
        load(texts(tmp_path / "two", cy_txt=b"eins\nzwei\n"))
    lines = [f"{word}\tone {i}" for i, word in enumerate(("Yes", "No", "Well", "So"))]
    own = texts(tmp_path / "own", en_txt="\n".join(lines).encode(), de_txt=b"Yes\tja\nNo\tnein\n")
    with pytest.warns(CorpusWarning, match="an id is what stands before the first tab"):
        load(own)


# --- results of tasks -----------------------------------------------------------------------------

HEAD = b"task,model,language,score,n\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "own.csv: the header lacks task"),
        (HEAD + "a,b,de,0.5,1\nü".encode("latin-1"), "line 3: byte 0xfc is not UTF-8 text"),
        (HEAD + b"a,b,de,0.5,1,7\n", "row 1: 6 cells under a header of 5"),
        (HEAD + b'"a"b,b,de,0.5,1\n', "no table of text"),
        (HEAD + b"a,b,de,0.5,inf\n", "n is 'inf'"),
        (b"\xef\xbb\xbf" + HEAD + b"a,b,de,2,1\n", "row 1: score is '2'"),
        (HEAD.replace(b"n\n", b"score\n"), "own.csv: two columns are called 'score'; rename"),
        (HEAD + b"a,b,tlhh,0.5,\n", "row 1: 'tlhh' is no language tag"),
        (HEAD + b"a,b,en,good,\n", "row 1: score is 'good', which is no number"),
        (HEAD + b"a,b,en,0.5,2.5\n", "row 1: n is '2.5'"),
        (HEAD + b"a,b,de,0.6,\n" * 2, "row 2: a b de is also in .*, row 1"),
    ],
)
def test_csv_that_is_none(content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_bytes(content)
    refused(lambda: downstream.read_tasks(tmp_path / "own.csv"), says, TextError)


def results(**changes: object) -> str:
    task = {"acc,none": 0.5, "acc_stderr,none": 0.1}
    whole = {"model_name": "m", "results": {"belebele_deu_Latn": task}}
    return json.dumps(whole | changes)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[" * 100_000, "is no JSON"),
        (results(**{"n-samples": {"belebele_deu_Latn": {"effective": float("inf")}}}), "n is inf"),
        (results().replace("0.1", "1" + "0" * 400), "which is no number"),
    ],
)
def test_results_that_are_none(content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(content)
    refused(lambda: downstream.read_tasks(tmp_path), says, TextError)


def test_no_results_are_named(tmp_path: Path) -> None:
    refused(lambda: downstream.read_tasks([]), "no results files", TextError)
    refused(lambda: downstream.read_tasks(tmp_path / "no"), "There is no re", FileNotFoundError)
    os.mkfifo(tmp_path / "pipe.json")
    refused(lambda: downstream.read_tasks(tmp_path / "pipe.json"), "a pipe", TextError)


# --- labels, trees, questions ---------------------------------------------------------------------

ROW = "{}\tDog\tdog\tNOUN\t_\t_\t{}\troot\t_\t_"
LONG = "9" * 5000


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([ROW.format(1, LONG)], "a.conllu, line 1: "),
        ([ROW.format(1, 9)], "none of its sentences is a tree"),
        ([ROW.format(1, 2), ROW.format(2, 1)], "none of its sentences is a tree"),
    ],
)
def test_trees_that_are_none(rows: list[str], says: str, tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text("\n".join(rows) + "\n\n")
    refused(lambda: load_trees("de", "own", path=tmp_path), says, TextError)


def test_labels_and_languages_that_are_none(tmp_path: Path) -> None:
    lines = [ROW.format(LONG, 0)]
    refused(lambda: list(read_conllu(lines, "a")), "a, line 1", TextError)
    for content in ("[" * 100_000, f'{{"data": {LONG}}}'):
        refused(lambda text=content: read_squad(text.encode(), "a", "en"), "a: no JSON in UTF-8")


# --- probes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "codes", "options", "says"),
    [
        ("POS", ["en", "de", "en"], {}, "given twice"),
        ("TOPIC", ["en"], {}, "no ProbeSetup"),
        ("POS", ["en"], {"entities": True}, "POS has no entities"),
    ],
)
def test_monolingual_probes_refuse(
    folder: Path, task: str, codes: object, options: dict, says: str
) -> None:
    setup = probing.ProbeSetup(task, n_train=20, n_validation=20, n_test=20, seeds=(0,))
    refused(
        lambda: probing.monolingual(folder, **({"setup": setup, "codes": codes} | options)), says
    )


def test_words_that_are_lost_are_warned_of(folder: Path) -> None:
    setup = probing.ProbeSetup("POS", 90, 90, 90, seeds=(0,), max_length=16)
    with pytest.warns(checks.TextWarning, match=r"of 'POS' \(words or pairs cut .*: en \d\d%"):
        probing.monolingual(folder, setup, ["en"])


def test_a_part_without_a_word_is_named(folder: Path) -> None:
    setup = probing.ProbeSetup("POS", 5, 5, 5, seeds=(0,), max_length=3)
    says = r"ud en train: no word is left whole within 3 tokens .*: raise max_length, or leave"
    refused(lambda: probing.monolingual(folder, setup, ["en"]), says)


def test_sentence_probes_refuse() -> None:
    words = sentence_probing.Subject(None, "en")
    refused(lambda: sentence_probing.probe([], {"en": []}), "no subjects are given")
    refused(lambda: sentence_probing.probe([words], {}), "no tasks in en, but in none")


# --- fine-tuning ----------------------------------------------------------------------------------


def test_a_rate_is_a_number() -> None:
    refused(
        lambda: jobs.Recipe(learning_rate=float("inf")), "learning_rate is", jobs.FinetuningError
    )


def test_tasks_and_transfers_refuse() -> None:
    refused(lambda: transfers.labelled_task("POS", ["en", "de"]), "POS labels words")
    options = {"n_train": 4, "n_test": 4}
    refused(lambda: transfers.labelled_task("PI", ["en"], train_split="test"), "to test on")
    task, recipe = transfers.labelled_task("PI", ["en", "de"], **options), jobs.Recipe()
    for arguments, says in (
        (("mini-xlmr", task, ["en"], [recipe], [1]), "models are due in a list"),
        ((["mini-xlmr"], task, ["en"], [recipe], []), "no seeds are given"),
        ((["mini-xlmr"], task, ["en"], [recipe], [1, 1]), "1 is given twice"),
    ):
        refused(lambda given=arguments: transfers.transfer_task(*given), says)
