"""The family of miniature models: one table that says what each member is.

Every member is trained on the same text, for the same number of steps of the same token budget,
with the same optimiser, from the same seed. Beyond that, members differ in what their row says and
in nothing else (the contrast comes on top of the budget, and brings its text along):

=====================  ==========================================  =============================
member                 differs from                                in
=====================  ==========================================  =============================
``mini-xlmr``          --                                          (the reference encoder)
``mini-mbert``         ``mini-xlmr``                               architecture and vocabulary
``mini-xlm``           ``mini-xlmr``                               half of the steps on
                                                                   translations (TLM)
``mini-infoxlm``       ``mini-xlm``                                a contrast of translations
``mini-xlmr-large``    ``mini-xlmr``                               width (2 times) and depth
``mini-llama``         ``mini-xlmr``                               decoder: causal, not masked
``mini-llama-en80``    ``mini-llama``                              English: 80 % of the text
``mini-llama-en95``    ``mini-llama``                              English: 95 % of the text
``mini-llama-large``   ``mini-llama``                              width (1.5 times) and depth
=====================  ==========================================  =============================

``base-xlmr`` and ``base-infoxlm`` are the same recipe at 12 layers × 384 for a CUDA device, on the
39 checkpoints of the ABX paper (footnote 4), scaled to their number of steps.
"""

import json
import math
from dataclasses import asdict, dataclass, replace

#: What a member can learn from, and the architecture that can.
OBJECTIVES = {
    "bert": ("mlm",),
    "xlm-roberta": ("mlm", "tlm", "contrast"),
    "llama": ("clm",),
}


@dataclass(frozen=True)
class Recipe:
    """All that decides what a run learns; stored beside the checkpoints as ``recipe.json``."""

    name: str
    architecture: str = "xlm-roberta"  # "bert", "xlm-roberta", "llama": as transformers calls them
    objectives: tuple[str, ...] = ("mlm",)  # "mlm", "tlm", "contrast"; "clm" for a decoder
    seed: int = 1
    # the model
    vocabulary: int = 6000
    layers: int = 6
    hidden_size: int = 128
    heads: int = 4
    intermediate_size: int = 256
    max_length: int = 256
    # the text: share of a language ~ (its subwords) ** exponent, 0.3 as XLM-R; or English fixed
    language_exponent: float = 0.3
    english_share: float | None = None
    # Subwords of the rows of a batch, drawn evenly: long rows cost more, and most text is short.
    block_lengths: tuple[int, ...] = (32, 64, 128, 128, 256)
    # Masked: 15 % in BERT and XLM-R. More of them teach a small model faster (Wettig et al. 2023).
    masked_share: float = 0.3
    # the contrast: pairs of a batch, in every k-th step, from the mean-pooled states of one layer
    contrast_pairs: int = 96
    contrast_every: int = 4
    contrast_layer: int = 4
    contrast_length: int = 64
    temperature: float = 0.1
    contrast_weight: float = 1.0
    # The optimiser: Muon for the matrices inside the layers, AdamW for all else. In a trial of 700
    # steps (15 % masked) it was 0.3 nats ahead of AdamW alone.
    steps: int = 2880
    first_checkpoint: int = 180
    dense_checkpoints: bool = False  # the ABX paper's 39 rather than doublings
    tokens_per_step: int = 2048
    learning_rate: float = 4e-3
    matrix_learning_rate: float = 3e-3
    warmup_share: float = 0.03
    decay_share: float = 0.5
    weight_decay: float = 0.01
    clip: float = 1.0
    history: bool = False  # keep all checkpoints, not the last alone

    def __post_init__(self) -> None:
        known = OBJECTIVES.get(self.architecture)
        if known is None:
            raise ValueError(
                f"{self.name}: architecture {self.architecture!r} is not one of "
                f"{', '.join(OBJECTIVES)}"
            )
        if not self.objectives or set(self.objectives) - set(known):
            raise ValueError(
                f"{self.name}: {self.architecture} learns from {', '.join(known)}, "
                f"not from {', '.join(self.objectives) or 'nothing'}"
            )
        if self.english_share is not None and not 0 < self.english_share < 1:
            raise ValueError(f"{self.name}: english_share {self.english_share} is not in (0, 1)")

    @property
    def decoder(self) -> bool:
        return self.architecture == "llama"

    def checkpoint_steps(self) -> list[int]:
        """The steps that are kept, 0 (untrained) and the last among them.

        Evenly spaced in log steps: first, 2 first, 4 first ...; or ``dense_checkpoints``, as in the
        ABX paper (footnote 4) ten at every 300th of the run, then one at every 30th: 39 in all,
        and step 0. A run of fewer than 300 steps has fewer.
        """
        if not self.history:
            return [self.steps]
        if self.dense_checkpoints:
            every = self.steps / 300
            parts = (0, *range(1, 11), *range(20, 301, 10))
            return list(dict.fromkeys(round(every * part) for part in parts))
        doublings = math.ceil(math.log2(self.steps / self.first_checkpoint))
        return [0, *(self.first_checkpoint * 2**k for k in range(max(doublings, 0))), self.steps]

    def schedule(self, step: int) -> float:
        """Share of the full learning rate: linear warm-up, a plateau, linear decay."""
        warmup = max(1, round(self.warmup_share * self.steps))
        decay = max(1, round(self.decay_share * self.steps))
        return min(1.0, step / warmup, (self.steps - step + 1) / decay)


def describe(recipe: Recipe) -> str:
    """The text of ``recipe.json``."""
    return json.dumps(asdict(recipe), indent=2) + "\n"


_ENCODER = Recipe("mini-xlmr", history=True)
_DECODER = replace(
    _ENCODER,
    name="mini-llama",
    architecture="llama",
    objectives=("clm",),
    intermediate_size=176,  # three matrices a layer instead of two: as many parameters
)
_BASE = {
    "layers": 12,
    "hidden_size": 384,
    "heads": 6,
    "intermediate_size": 1536,
    "contrast_layer": 8,
    "contrast_pairs": 256,
    "steps": 9_000,
    "tokens_per_step": 32_768,
    "learning_rate": 1e-3,
    "matrix_learning_rate": 1e-3,
    "dense_checkpoints": True,
}
_CONTRAST = ("mlm", "tlm", "contrast")

RECIPES = {
    recipe.name: recipe
    for recipe in (
        _ENCODER,
        replace(_ENCODER, name="mini-mbert", architecture="bert", history=False),
        replace(_ENCODER, name="mini-xlm", objectives=("mlm", "tlm"), history=False),
        replace(_ENCODER, name="mini-infoxlm", objectives=_CONTRAST),
        replace(
            _ENCODER,
            name="mini-xlmr-large",
            layers=7,
            hidden_size=256,
            intermediate_size=512,
            history=False,
        ),
        _DECODER,
        replace(_DECODER, name="mini-llama-en80", english_share=0.80, history=False),
        replace(_DECODER, name="mini-llama-en95", english_share=0.95, history=False),
        replace(
            _DECODER,
            name="mini-llama-large",
            layers=7,
            hidden_size=192,
            intermediate_size=264,
            history=False,
        ),
        replace(_ENCODER, name="base-xlmr", **_BASE),
        replace(_ENCODER, name="base-infoxlm", objectives=_CONTRAST, **_BASE),
    )
}

#: The members that the repository ships.
MEMBERS = tuple(name for name in RECIPES if name.startswith("mini-"))
