"""Grids of models that are fine-tuned already, against a loop that asks one pair after another."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from transformers import AutoTokenizer

from tests import tiny
from tests.experiment.test_grids import ASKED, LANGUAGES, PAIRS
from xlx.experiment import grids
from xlx.experiment.grids import Grid
from xlx.measures import answers
from xlx.results import settings
from xlx.subjects import loading
from xlx.subjects.predicting import ClassesError, Headed

SAYS = {0: "yes", 1: "no"}


def headed(
    folder: Path,
    architecture: str = "xlm-roberta",
    head: str = "SequenceClassification",
    positions: int = 64,
    **options: object,
) -> str:
    """A tiny model with a random head, as if it had been fine-tuned."""
    tiny.save(folder, architecture, positions=positions)
    if head == "SequenceClassification":
        options = {"id2label": {0: "YES", 1: "No"}, **options}
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = getattr(transformers, f"AutoModelFor{head}").from_pretrained(
            folder, dtype=torch.float32, **options
        )
        for name, parameter in model.named_parameters():
            if not name.startswith(model.base_model_prefix) and parameter.dim() > 1:
                parameter.data.mul_(20.0)
    model.save_pretrained(folder)
    return str(folder)


def ask(name: str, sets: dict, labels: dict | None = None, **options: object) -> Grid:
    return grids.grid([Headed(name, labels, **options)], sets)[0]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return headed(tmp_path_factory.mktemp("models") / "nli")


def literal(folder: str, limit: int = 64) -> np.ndarray:
    """Logits of the model's own labels, ``(L, L, n, 2)``, one pair after another."""
    words = AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()

    def logits(*pair: str) -> np.ndarray:
        inputs = words(*pair, truncation=True, max_length=limit, return_tensors="pt")
        with torch.no_grad():
            return model(**inputs).logits[0].numpy()

    return np.array(
        [
            [
                [logits(*pair) for pair in zip(PAIRS[a].first, PAIRS[b].second, strict=True)]
                for b in LANGUAGES
            ]
            for a in LANGUAGES
        ]
    )


def check(found: Grid, own: np.ndarray) -> None:
    expected = own[..., ::-1]  # the model's labels are yes, no; ours no, yes
    np.testing.assert_allclose(found.logits, expected, atol=2e-3 * np.abs(expected).max())
    assert (found.predictions == expected.argmax(axis=-1)).all()
    right = expected.argmax(axis=-1) == PAIRS["en"].labels
    assert (found.scores["accuracy"] == right).all()


@pytest.mark.parametrize("limit", [None, 12])
def test_every_pair_is_answered_as_alone(model: str, limit: int | None) -> None:
    grid = ask(model, PAIRS, max_length=limit)
    check(grid, literal(model, limit or 64))
    assert (grid.model, grid.languages) == ("nli", LANGUAGES)
    assert (grid.n_cut == (8 if limit else 1)).all()


@pytest.mark.parametrize(
    ("architecture", "options"), [("bert", {}), ("llama", {"pad_token_id": 1})]
)
def test_heads_of_all_kinds_of_models(architecture: str, options: dict, tmp_path: Path) -> None:
    name = headed(tmp_path / architecture, architecture, **options)
    check(ask(name, PAIRS), literal(name))


def test_what_was_asked_is_found_without_loading(model: str, monkeypatch) -> None:
    first = ask(model, PAIRS)
    monkeypatch.setattr(loading, "headed_model", lambda *_, **__: pytest.fail("again"))
    again = ask(model, PAIRS)
    assert np.array_equal(again.logits, first.logits)
    with pytest.raises(pytest.fail.Exception, match="again"):
        ask(model, PAIRS, max_length=20)
    with pytest.raises(pytest.fail.Exception, match="again"):
        ask(model, PAIRS, SAYS)
    with settings.settings(dtype="bfloat16"), pytest.raises(pytest.fail.Exception, match="again"):
        ask(model, PAIRS)


def test_labels_may_be_told(model: str, tmp_path: Path) -> None:
    plain = ask(model, PAIRS)
    nameless = headed(tmp_path / "nameless", id2label={0: "LABEL_0", 1: "LABEL_1"})
    for said in (SAYS, {"LABEL_0": "yes", "LABEL_1": "no"}, {"0": "yes", "1": "no"}):
        assert np.array_equal(ask(nameless, PAIRS, said).logits, plain.logits)
    turned = ask(nameless, PAIRS, {0: "no", 1: "yes"})
    assert np.array_equal(turned.logits, plain.logits[..., ::-1])


@pytest.mark.parametrize(
    ("options", "said", "message"),
    [
        (
            {"id2label": {0: "LABEL_0", 1: "LABEL_1"}},
            None,
            r"labels \(LABEL_0, LABEL_1\) are not the classes asked about \(no, yes\) one to one: "
            r"say which is which, labels=\{'LABEL_0': 'no', \.\.\.\}",
        ),
        ({"id2label": {0: "a", 1: "b", 2: "c"}}, {0: "no", 1: "yes"}, "labels .a, b, c. are not"),
        ({}, {0: "no", 1: "no"}, "are not the classes"),
        ({}, {0: "no", 1: "maybe"}, "are not the classes"),
        ({}, {"entailment": "yes", 1: "no"}, "has no label entailment: it has YES, No"),
    ],
)
def test_labels_that_cannot_be_matched(tmp_path: Path, options, said, message) -> None:
    name = headed(tmp_path / "model", **options)
    with pytest.raises(ClassesError, match=message) as error:
        ask(name, PAIRS, said)
    assert "\n" not in str(error.value)


def test_models_that_cannot_be_asked(model: str, tmp_path: Path) -> None:
    bare = str(tiny.save(tmp_path / "bare", id2label={0: "no", 1: "yes"}))
    with pytest.raises(ValueError, match=r"has no head that classifies \(its weights lack class"):
        ask(bare, PAIRS)
    with pytest.raises(ValueError, match="has no head that finds answers"):
        ask(model, ASKED)
    unpadded = headed(tmp_path / "llama", "llama")
    with pytest.raises(ValueError, match=r"has no padding token.*set pad_token_id"):
        ask(unpadded, PAIRS)


def test_a_reader_finds_its_answers(tmp_path: Path) -> None:
    name = headed(tmp_path / "reader", head="QuestionAnswering")
    grid = ask(name, ASKED, longest_answer=6)
    words = AutoTokenizer.from_pretrained(name)
    reader = transformers.AutoModelForQuestionAnswering.from_pretrained(name).eval()
    for i, a in enumerate(LANGUAGES):
        for j, b in enumerate(LANGUAGES):
            for k in range(len(ASKED[a])):
                context, question = ASKED[a].contexts[k], ASKED[b].questions[k]
                inputs = words(question, context, return_tensors="pt", return_offsets_mapping=True)
                places = inputs.pop("offset_mapping")[0].tolist()
                if len(places) > 64:
                    continue  # read in windows: see test_grids
                inside = [x for x, side in enumerate(inputs.sequence_ids()) if side == 1]
                with torch.no_grad():
                    output = reader(**inputs)
                start, end = output.start_logits[0], output.end_logits[0]
                scores = {
                    (s, e): float(start[s] + end[e])
                    for s in inside
                    for e in inside
                    if s <= e < s + 6
                }
                s, e = max(scores, key=scores.get)
                found = ASKED[a].contexts[k][slice(*grid.predictions[i, j, k])]
                assert found == context[places[s][0] : places[e][1]].strip()
                f1 = answers.f1(found, ASKED[a].answers[k], a)
                assert grid.scores["F1"][i, j, k] == pytest.approx(f1)
