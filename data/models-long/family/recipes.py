"""The family of miniature models, `RECIPES`.

Every member is trained on the same text, for the same number of steps of the same token budget,
with the same optimiser, from the same seed. Beyond that a member differs from its reference in what
its row says, and in nothing else (the contrast comes on top of the budget, and brings its text
along). ``base-xlmr`` and ``base-infoxlm`` are for a CUDA device, on the 39 checkpoints of the ABX
paper (footnote 4), scaled to their number of steps.
"""

import json
import math
from dataclasses import asdict, dataclass, fields, replace

#: What a member can learn from, by the architecture that can.
OBJECTIVES = {"bert": ("mlm",), "xlm-roberta": ("mlm", "tlm", "contrast"), "llama": ("clm",)}


@dataclass(frozen=True)
class MemberRecipe:
    """All that decides what a run learns; stored beside the checkpoints as ``recipe.json``.

    ValueError for objectives that the architecture cannot learn from, and a share out of its range.
    """

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
    positions: str = "absolute"  # or "rotary", in every layer; a decoder's are rotary always
    # the text: share of a language ~ (its subwords) ** exponent, 0.3 as XLM-R; or English fixed
    languages: tuple[str, ...] = ()  # all
    language_exponent: float = 0.3
    english_share: float | None = None
    # share of a language's source ~ (its subwords) ** exponent; 0: all alike, so that more is read
    # of the small ones, NTREX and the New Testament, which languages have in common
    source_exponent: float = 1.0
    # Of a decoder's rows, so many hold translations, a sentence behind its translation.
    pair_share: float = 0.0
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
    checkpoints_per_doubling: int = 1
    dense_checkpoints: bool = False  # the ABX paper's 39 rather than doublings
    tokens_per_step: int = 2048
    learning_rate: float = 4e-3
    matrix_learning_rate: float = 3e-3
    warmup_share: float = 0.03
    warmup_steps: int | None = None  # rather than a share, so that it is the same in longer runs
    decay_share: float = 0.5
    # Of the steps so far, over how many the weights of a checkpoint are averaged; 0: over none.
    averaged_share: float = 0.0
    weight_decay: float = 0.01
    clip: float = 1.0
    history: bool = False  # keep all checkpoints, not the last alone

    def __post_init__(self) -> None:
        known = OBJECTIVES.get(self.architecture, ())
        if not self.objectives or set(self.objectives) - set(known):
            raise ValueError(
                f"{self.name}: {self.architecture} learns from {', '.join(known) or 'nothing here'}"
                f", not from {', '.join(self.objectives) or 'nothing'}"
            )
        if self.positions not in ("absolute", "rotary"):
            raise ValueError(f"{self.name}: positions are absolute or rotary, not {self.positions}")
        for name in ("english_share", "pair_share", "averaged_share", "decay_share"):
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise ValueError(f"{self.name}: {name} {share} is not in [0, 1]")

    @property
    def decoder(self) -> bool:
        """Whether it predicts the next subword."""
        return self.architecture == "llama"

    @property
    def steady(self) -> bool:
        """Whether a step learns the same however long the run: then the run can be lengthened.

        The rate is constant after a warm-up of given steps, and what is kept does not hang on the
        end: a checkpoint (of averaged weights) is a model, not a phase of the rate.
        """
        warmed = self.warmup_steps is not None
        return self.decay_share == 0 and warmed and not self.dense_checkpoints

    def checkpoint_steps(self) -> list[int]:
        """The steps that are kept, 0 (untrained) and the last among them.

        Evenly spaced in log steps: first, 2 first, 4 first ... with ``checkpoints_per_doubling``
        1; or ``dense_checkpoints``, as in the ABX paper (footnote 4) ten at every 300th of the run,
        then one at every 30th: 39 in all, and step 0. A run of fewer than 300 steps has fewer.
        """
        if not self.history:
            return [self.steps]
        if self.dense_checkpoints:
            parts = (0, *range(1, 11), *range(20, 301, 10))
            return list(dict.fromkeys(round(self.steps / 300 * part) for part in parts))
        per = self.checkpoints_per_doubling
        doublings = math.ceil(math.log2(self.steps / self.first_checkpoint))
        steps = (round(self.first_checkpoint * 2 ** (k / per)) for k in range(doublings * per))
        return [0, *dict.fromkeys(step for step in steps if step < self.steps), self.steps]

    def schedule(self, step: int) -> float:
        """Share of the full learning rate: linear warm-up, a plateau, linear decay (or none)."""
        warmup = self.warmup_steps or max(1, round(self.warmup_share * self.steps))
        decay = max(1, round(self.decay_share * self.steps))
        return min(1.0, step / warmup, (self.steps - step + 1) / decay)

    def averaging(self, step: int) -> float:
        """Weight of a step's weights in the average of its checkpoint.

        The average reaches back over a share of the steps so far rather than over a fixed number,
        so that checkpoints, evenly spaced in log steps, differ in nothing else.
        """
        return min(1.0, 1 / (self.averaged_share * step)) if self.averaged_share else 1.0


#: Fields that recipes had once, with the only value that they ever had.
_GONE = {"position_sd": 0.02, "aligned_share": None}


def describe(recipe: MemberRecipe) -> str:
    """The text of ``recipe.json``."""
    return json.dumps(asdict(recipe), indent=2) + "\n"


def read_recipe(described: str) -> MemberRecipe:
    """The recipe of a ``recipe.json``; what an earlier one does not name had today's default.

    ValueError where it names what no recipe has.
    """
    values = {
        key: tuple(v) if isinstance(v, list) else v for key, v in json.loads(described).items()
    }
    values = {key: value for key, value in values.items() if (key, value) not in _GONE.items()}
    if unknown := sorted(set(values) - {field.name for field in fields(MemberRecipe)}):
        raise ValueError(f"no recipe of this version: see {', '.join(unknown)}")
    return MemberRecipe(**values)


def continues(recipe: MemberRecipe, left: MemberRecipe) -> bool:
    """Whether a run of a recipe goes on with one that was left: the same, or steady and longer."""
    if recipe.steady and left.steps <= recipe.steps:
        left = replace(left, steps=recipe.steps)
    return left == recipe


def _but(reference: MemberRecipe, name: str, **changes: object) -> MemberRecipe:
    """A recipe that differs from its reference in its name and the changes."""
    return replace(reference, name=name, **changes)


# The rate is constant after a short warm-up; checkpoints, two a doubling, are of averaged weights.
# At twice these rates the loss levels off early (data/models-long/README.md).
_MASKED = MemberRecipe(
    "mini-xlmr",
    history=True,
    first_checkpoint=100,
    checkpoints_per_doubling=2,
    warmup_steps=50,
    decay_share=0.0,
    averaged_share=0.1,
    steps=25_600,
    learning_rate=2e-3,
    matrix_learning_rate=1.5e-3,
)
_CAUSAL = _but(
    _MASKED,
    "mini-llama",
    architecture="llama",
    objectives=("clm",),
    intermediate_size=176,  # three matrices a layer instead of two: as many parameters
)
_CONTRAST = {"objectives": ("mlm", "tlm", "contrast")}
# What is best for an encoder of this width is too low for a decoder (the trials there).
_WIDE = {"hidden_size": 192, "learning_rate": 1e-3, "matrix_learning_rate": 7.5e-4}
# At a width of 384 no rate was tried; these go on from what was best at 128 and 192.
_BASE = {
    "layers": 12,
    "hidden_size": 384,
    "heads": 6,
    "intermediate_size": 1536,
    "contrast_layer": 8,
    "contrast_pairs": 256,
    "steps": 9_000,
    "tokens_per_step": 32_768,
    "learning_rate": 5e-4,
    "matrix_learning_rate": 3.75e-4,
    "warmup_steps": 300,
    "dense_checkpoints": True,
}
_TWELVE = ("ar", "de", "en", "es", "fr", "ja", "nl", "pl", "pt", "ru", "tr", "zh")
_MEMBERS = (
    _MASKED,
    # fewer languages: six in four scripts and five branches, twelve in five and seven
    _but(_MASKED, "mini-xlmr-6", languages=("ar", "de", "en", "ja", "ru", "tr")),
    _but(_MASKED, "mini-xlmr-12", languages=_TWELVE),
    # context is used after a tenth of the text that absolute positions take
    _but(_MASKED, "mini-roformer", positions="rotary"),
    _but(_MASKED, "mini-mbert", architecture="bert"),
    _but(_MASKED, "mini-xlm", objectives=("mlm", "tlm")),
    _but(_MASKED, "mini-infoxlm", **_CONTRAST, steps=12_800),
    _but(_MASKED, "mini-xlmr-large", **_WIDE, intermediate_size=384),
    _CAUSAL,
    _but(_CAUSAL, "mini-llama-en80", english_share=0.80),
    _but(_CAUSAL, "mini-llama-en95", english_share=0.95),
    _but(_CAUSAL, "mini-llama-bi2", pair_share=0.02),
    _but(_CAUSAL, "mini-llama-bi20", pair_share=0.20),
    _but(_CAUSAL, "mini-llama-large", hidden_size=192, intermediate_size=264),
    _but(_MASKED, "base-xlmr", **_BASE),
    _but(_MASKED, "base-infoxlm", **_CONTRAST, **_BASE),
)
RECIPES = {recipe.name: recipe for recipe in _MEMBERS}
