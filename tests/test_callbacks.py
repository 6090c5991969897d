"""Measures while a model trains, in a real `transformers.Trainer`."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
)

from xlx.experiment.constraints import masks_of
from xlx.experiment.scoring import reported_measures
from xlx.measures import abx, mexa
from xlx.report.callbacks import Lens, logged
from xlx.subjects import identity, loading
from xlx.subjects.states import embed_corpus
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

STEPS, EVERY = 4, 2


@pytest.fixture(scope="module")
def corpus() -> ParallelCorpus:
    return parallel.load("wmt24pp", ["de", "en", "ja"], drop_duplicates=True).take(40, 1)


def trained(kind: str, corpus: ParallelCorpus, folder: Path, **options: object) -> Trainer:
    """Four steps of a shipped model, an evaluation every two; its lens as ``lens``."""
    masked = kind == "mini-xlmr"
    step = identity.checkpoints(kind)[-1].path
    tokenizer = AutoTokenizer.from_pretrained(step)
    auto = AutoModelForMaskedLM if masked else AutoModelForCausalLM
    rows = [
        {"input_ids": tokenizer(text, truncation=True, max_length=32)["input_ids"]}
        for text in corpus.sentences["en"]
    ]
    arguments = TrainingArguments(
        folder,
        max_steps=STEPS,
        eval_strategy="steps",
        eval_steps=EVERY,
        save_steps=EVERY,
        per_device_train_batch_size=4,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=1,
        logging_strategy="no",
        load_best_model_at_end=masked,
        greater_is_better=True,
        metric_for_best_model="lens_md_like_length" if masked else None,
    )
    lens = Lens(corpus, **options)
    trainer = Trainer(
        auto.from_pretrained(step, dtype=torch.float32),
        arguments,
        train_dataset=rows,
        eval_dataset=rows[:4],
        processing_class=tokenizer,
        callbacks=[lens],
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=masked),
    )
    lens.trainer = trainer
    trainer.train()
    trainer.lens = lens
    return trainer


def saved_states(folder: Path, corpus: ParallelCorpus, **options: str) -> dict[str, np.ndarray]:
    return embed_corpus(loading.load(folder, device="cpu"), corpus, **options).states


def test_an_encoder_is_measured_at_every_evaluation(corpus: ParallelCorpus, tmp_path: Path) -> None:
    trainer = trained("mini-xlmr", corpus, tmp_path)
    history = trainer.lens.history
    assert history["step"].tolist() == [EVERY, STEPS]
    masks = masks_of(corpus, ["like length"])
    for row in history.to_dict("records"):
        states = saved_states(tmp_path / f"checkpoint-{row['step']}", corpus)
        exact = abx.exact(states, masks=masks)
        for task in reported_measures():
            name = logged(task)
            by_layer = exact.scores[task].mean(axis=(1, 2))
            assert row[f"lens_{name}"] == pytest.approx(by_layer.mean(), abs=1e-4)
            best = by_layer.min() if task == "LD" else by_layer.max()
            assert row[f"lens_{name}_best"] == pytest.approx(best, abs=1e-4)
    written = [row for row in trainer.state.log_history if "eval_lens_ld" in row]
    assert [row["step"] for row in written] == [EVERY, STEPS]
    assert written[1]["eval_lens_md"] == history["lens_md"][1]
    # adaptive checkpoint selection: the best by alignment is what is loaded at the end
    chosen = history.loc[history["lens_md_like_length"].idxmax(), "step"]
    assert trainer.state.best_model_checkpoint.endswith(f"checkpoint-{chosen}")
    assert trainer.lens.seconds > 0


def test_a_decoder_is_measured_by_mexa(corpus: ParallelCorpus, tmp_path: Path) -> None:
    trainer = trained("mini-llama", corpus, tmp_path, pooling="weighted_mean")
    row, _ = trainer.lens.history.to_dict("records")
    assert row["step"] == EVERY
    states = saved_states(tmp_path / f"checkpoint-{EVERY}", corpus, pooling="weighted_mean")
    mu = mexa.scores(states).mu
    assert row["lens_mexa"] == pytest.approx(mu.mean(), abs=0.02)
    assert row["lens_mexa_de"] == pytest.approx(mu[:, 0].mean(), abs=0.02)
    assert {"lens_mexa_ja", "lens_mexa_best_layer"} <= set(row)


def test_one_language_has_nothing_to_compare(corpus: ParallelCorpus) -> None:
    with pytest.raises(ValueError, match="two languages or more"):
        Lens(corpus.select(["de"]))
