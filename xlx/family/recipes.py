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
from dataclasses import asdict, dataclass, fields, replace

#: What a member can learn from, and the architecture that can.
OBJECTIVES = {
    "bert": ("mlm",),
    "xlm-roberta": ("mlm", "tlm", "contrast"),
    "llama": ("clm",),
}


@dataclass(frozen=True)
class MemberRecipe:
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
    # Normal positions of this sd: large ones are a code of a sentence's length at layer 0.
    position_sd: float = 0.02
    # the text: share of a language ~ (its subwords) ** exponent, 0.3 as XLM-R; or English fixed
    languages: tuple[str, ...] = ()  # all
    language_exponent: float = 0.3
    english_share: float | None = None
    # Of a language's text, so much from sources that other languages have too; None: by their size.
    aligned_share: float | None = None
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
        odd = [name for name in self.objectives if name not in known]
        shares = ("aligned_share", "pair_share", "averaged_share", "decay_share")
        if not known:
            problem = f"architecture {self.architecture!r} is not one of {', '.join(OBJECTIVES)}"
        elif odd or not self.objectives:
            learnt = ", ".join(self.objectives) or "nothing"
            problem = f"{self.architecture} learns from {', '.join(known)}, not from {learnt}"
        elif self.english_share is not None and not 0 < self.english_share < 1:
            problem = f"english_share {self.english_share} is not in (0, 1)"
        elif bad := [share for share in shares if not 0 <= (getattr(self, share) or 0) <= 1]:
            problem = f"{bad[0]} {getattr(self, bad[0])} is not in [0, 1]"
        elif self.pair_share and not self.decoder:
            problem = "pair_share is of a decoder's text; an encoder learns translations by tlm"
        else:
            return
        raise ValueError(f"{self.name}: {problem}")

    @property
    def decoder(self) -> bool:
        return self.architecture == "llama"

    @property
    def steady(self) -> bool:
        """Whether a step learns the same however long the run: then the run can be lengthened.

        The rate is constant after a warm-up of given steps, and what is kept does not hang on the
        end: a checkpoint (of averaged weights) is a model, not a phase of the rate.
        """
        return (
            self.decay_share == 0 and self.warmup_steps is not None and not self.dense_checkpoints
        )

    def checkpoint_steps(self) -> list[int]:
        """The steps that are kept, 0 (untrained) and the last among them.

        Evenly spaced in log steps: first, 2 first, 4 first ... with ``checkpoints_per_doubling``
        1; or ``dense_checkpoints``, as in the ABX paper (footnote 4) ten at every 300th of the run,
        then one at every 30th: 39 in all, and step 0. A run of fewer than 300 steps has fewer.
        """
        if not self.history:
            return [self.steps]
        if self.dense_checkpoints:
            every = self.steps / 300
            parts = (0, *range(1, 11), *range(20, 301, 10))
            return list(dict.fromkeys(round(every * part) for part in parts))
        per = self.checkpoints_per_doubling
        doublings = math.ceil(math.log2(self.steps / self.first_checkpoint))
        kept = (round(self.first_checkpoint * 2 ** (k / per)) for k in range(doublings * per))
        return [0, *dict.fromkeys(step for step in kept if step < self.steps), self.steps]

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


#: Fields that the recipes of the first series do not name.
_LATER = {
    "position_sd",
    "languages",
    "aligned_share",
    "pair_share",
    "checkpoints_per_doubling",
    "warmup_steps",
    "averaged_share",
}


def describe(recipe: MemberRecipe) -> str:
    """The text of ``recipe.json``."""
    return json.dumps(asdict(recipe), indent=2) + "\n"


def read_recipe(described: str) -> MemberRecipe:
    """The recipe of a ``recipe.json``; what it does not name is as in the first series.

    Raises ValueError where it names what no recipe has.
    """
    told = json.loads(described)
    known = {field.name for field in fields(MemberRecipe)}
    if odd := sorted((set(told) - known) | (known - set(told) - _LATER)):
        raise ValueError(f"no recipe of this version: see {', '.join(odd)}")
    return MemberRecipe(**{key: tuple(v) if isinstance(v, list) else v for key, v in told.items()})


def continues(recipe: MemberRecipe, left: MemberRecipe) -> bool:
    """Whether a run of a recipe goes on with one that was left: the same, or steady and longer."""
    if recipe.steady and left.steps <= recipe.steps:
        left = replace(left, steps=recipe.steps)
    return left == recipe


_ENCODER = MemberRecipe("mini-xlmr", history=True)
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

# The second series: more text, the rate constant after a short warm-up, checkpoints of averaged
# weights two a doubling, rates by width. Its steps are set so that all read as many subwords.
_STEADY = {
    "first_checkpoint": 100,
    "checkpoints_per_doubling": 2,
    "warmup_steps": 50,
    "decay_share": 0.0,
    "averaged_share": 0.1,
    "steps": 25_600,
    "history": True,
}
_LONG_ENCODER = replace(_ENCODER, **_STEADY)
_LONG_DECODER = replace(_DECODER, **_STEADY)

#: Six languages in five scripts, of as many branches.
SIX = ("ar", "de", "en", "ja", "ru", "tr")

LONG_RECIPES = {
    recipe.name: recipe
    for recipe in (
        _LONG_ENCODER,
        replace(_LONG_ENCODER, name="mini-xlmr-6", languages=SIX),
        replace(_LONG_ENCODER, name="mini-xlm", objectives=("mlm", "tlm")),
        replace(_LONG_ENCODER, name="mini-infoxlm", objectives=_CONTRAST, steps=12_800),
        _LONG_DECODER,
        replace(_LONG_DECODER, name="mini-llama-bi2", pair_share=0.02),
        replace(_LONG_DECODER, name="mini-llama-bi20", pair_share=0.20),
    )
}

#: The members that the repository ships.
MEMBERS = tuple(name for name in RECIPES if name.startswith("mini-"))
