"""Metadata for a model card: the answers as results that the Hugging Face hub reads."""

from collections.abc import Sequence

from huggingface_hub import EvalResult, ModelCardData

from xlx.report.answers import Finding

#: Question → type and name of the metric, what kind of task it is.
_METRICS = {
    "Does it tell languages apart?": ("ld", "language discrimination (LD)"),
    "Does it tell meanings apart across languages?": (
        "md_like_length", "meaning discrimination (MD), sentences of like length",
    ),
    "Does it find translations, both ways?": ("retrieval_top1", "retrieval, top-1, mean of pairs"),
}  # fmt: skip


def model_index(
    answers: Sequence[Finding], model: str, text: str, languages: Sequence[str]
) -> ModelCardData:
    """The ``model-index`` of one model: LD, MD and retrieval at its chosen layer.

    Each with the ends of its interval as arguments of the metric; what is no mean over all
    languages is left out.
    """
    results = [
        EvalResult(
            task_type="sentence-similarity",
            task_name="Sentences across languages",
            dataset_type=text,
            dataset_name=text,
            dataset_args={"languages": list(languages)},
            metric_type=_METRICS[answer.question][0],
            metric_name=_METRICS[answer.question][1],
            metric_value=round(answer.value, 4),
            metric_args=_ends(answer),
        )
        for answer in answers
        if answer.model == model and answer.question in _METRICS
    ]
    return ModelCardData(model_name=model, eval_results=results)


def _ends(answer: Finding) -> dict[str, float] | None:
    if answer.low is None or answer.high is None:
        return None
    return {"low": round(answer.low, 4), "high": round(answer.high, 4)}
