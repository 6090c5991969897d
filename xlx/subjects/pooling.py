"""The states of a sentence's tokens to its vector: named poolings, and what a folder declares.

"own" is the vector that `encode` of sentence-transformers gives, read from the files that it saves:
``modules.json``, the folders that it names, ``sentence_bert_config.json`` (length, lower case) and
``config_sentence_transformers.json`` (the prompt by default). Every layer is read as if it were the
last, which has that vector. What else a folder declares is named as not supported. The package
itself is not used: its modules make the vector of the last layer alone, and it can run code that
a folder brings.
"""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from xlx.results import checks, store
from xlx.results.deferred import deferred
from xlx.subjects import identity
from xlx.subjects.folders import code_of_its_own
from xlx.subjects.identity import read_json

torch = deferred("torch")

OWN = "own"
POOLINGS = ("mean", "weighted_mean", "last", "cls", OWN)
#: What sentence-transformers call poolings, before 5.4 in flags and since in a word → ours; vectors
#: of several are joined in this order.
_POOLED = {
    "cls_token": ("cls", "cls"),
    "max_tokens": ("max", "max"),
    "mean_tokens": ("mean", "mean"),
    "mean_sqrt_len_tokens": ("mean_sqrt_len_tokens", "mean_sqrt_len"),
    "weightedmean_tokens": ("weightedmean", "weighted_mean"),
    "lasttoken": ("lasttoken", "last"),
}
_OF_A_VECTOR = dict.fromkeys(("module_input_name", "module_output_name"), ("sentence_embedding",))
#: What a module of sentence-transformers may declare, and with which values: None is any.
_SAID = {
    "Transformer": {
        "max_seq_length": None,
        "do_lower_case": None,
        "unpad_inputs": None,
        "transformer_task": ("feature-extraction",),
        "module_output_name": ("token_embeddings",),
        "modality_config": (
            {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
        ),
    },
    "Pooling": {
        "word_embedding_dimension": None,
        "embedding_dimension": None,
        "pooling_mode": None,
        "include_prompt": None,
    }
    | {f"pooling_mode_{flag}": None for flag in _POOLED},
    "Dense": dict.fromkeys(("in_features", "out_features", "bias", "activation_function"))
    | _OF_A_VECTOR,
    "Normalize": _OF_A_VECTOR,
}
#: Of models with a decoder those that sentence-transformers load without it, as is done here.
_ENCODER_ALONE = ("t5", "mt5", "umt5", "longt5", "switch_transformers", "m2m_100")


def pool(states: torch.Tensor, counted: torch.Tensor, pooling: str, first: int = 0) -> torch.Tensor:
    """Pool token states ``(n, n_tokens, dim)`` to sentence vectors, float32 ``(n, dim)``.

    ``counted`` ``(n, n_tokens)`` is True where a token counts, one at least in each row. For "cls"
    the first that counts is taken, so the special tokens must be among them. ``first``: how many
    tokens before those that count weigh in the numbering of "weighted_mean".
    """
    if pooling in ("last", "cls"):
        from_end = counted.flip(1) if pooling == "last" else counted
        place = from_end.long().argmax(dim=1)
        place = counted.shape[1] - 1 - place if pooling == "last" else place
        return states[torch.arange(len(states), device=states.device), place].float()
    if pooling == "max":
        return states.float().masked_fill(~counted[:, :, None], -torch.inf).amax(dim=1)
    weights = counted.float()
    if pooling == "weighted_mean":
        weights = (weights.cumsum(dim=1) + first) * weights
    total = weights.sum(dim=1, keepdim=True)
    weights = weights / (total.sqrt() if pooling == "mean_sqrt_len" else total)
    return torch.bmm(weights.unsqueeze(1), states.float()).squeeze(1)


@dataclass(frozen=True)
class OwnVector:
    """What a folder declares of its sentence vectors.

    ``heads``: the modules after the pooling, each with its folder and what that says. ``whole``:
    whether ``modules.json`` is there, without which `encode` takes the mean; ``problem``: what
    cannot be done here, if anything; ``seed``: of a twin, whose heads are drawn anew.
    """

    poolings: tuple[str, ...] = ("mean",)
    heads: tuple[tuple[str, Path, dict[str, Any]], ...] = ()
    prompt: str = ""
    pools_prompt: bool = True
    max_length: int | None = None
    lower: bool = False
    whole: bool = True
    similarity: str = "cosine"
    problem: str | None = None
    seed: int | None = None

    @property
    def pooling(self) -> str:
        """The pooling's name, of `POOLINGS` or another."""
        return "+".join(self.poolings)

    @property
    def content(self) -> str:
        """SHA-256 over all that decides the vectors but for the model."""
        files = [store.digest_of(file) for _, folder, _ in self.heads for file in _weights(folder)]
        heads = [(kind, about) for kind, _, about in self.heads]
        about = (
            self.poolings,
            heads,
            self.prompt,
            self.pools_prompt,
            self.max_length,
            self.lower,
            self.seed,
            files,
        )
        return hashlib.sha256(repr(about).encode()).hexdigest()

    def told(self) -> str:
        """Whose vector it is, for a report."""
        steps = {
            f"after the prompt {self.prompt!r}": self.prompt,
            "which is not pooled": self.prompt and not self.pools_prompt,
            f"cut at {self.max_length} tokens": self.max_length,
            "in lower case": self.lower,
            f"compared by cosine, though it names {self.similarity}": self.similarity != "cosine",
        }
        parts = [f"{self.pooling.replace('_', ' ')} of all tokens, special ones too"]
        parts += [f"then {kind}" for kind, *_ in self.heads]
        parts += [text for text, true in steps.items() if true]
        return f"its own, as encode of sentence-transformers makes it ({', '.join(parts)})"

    def words(self, tokenizer: Any) -> Any:
        """A tokenizer that reads as declared: in lower case, cut at the length."""
        from tokenizers import normalizers

        copied = copy.deepcopy(tokenizer)
        if self.max_length is not None:
            copied.model_max_length = self.max_length
        if self.lower:
            usual = copied.backend_tokenizer.normalizer
            steps = [normalizers.Lowercase(), *([usual] if usual else [])]
            copied.backend_tokenizer.normalizer = normalizers.Sequence(steps)
        return copied

    def n_unpooled(self, tokenizer: Any, limit: int | None) -> int:
        """How many of the first tokens are the prompt's and not pooled."""
        if self.pools_prompt or not self.prompt:
            return 0
        ids = tokenizer(self.prompt)["input_ids"][:limit]
        return len(ids) - (ids[-1] in tokenizer.all_special_ids)

    def vectors(
        self, states: torch.Tensor, tokens: torch.Tensor, n_unpooled: int = 0
    ) -> torch.Tensor:
        """Token states ``(n, n_tokens, dim)``, and which are no padding, to ``(n, width)``."""
        counted = tokens.clone()
        counted[:, :n_unpooled] = False
        pooled = [pool(states, counted, pooling, n_unpooled) for pooling in self.poolings]
        return self.head.to(states.device)(torch.cat(pooled, dim=1))

    @cached_property
    def head(self) -> torch.nn.Module:
        """The modules after the pooling, in float32."""
        with torch.random.fork_rng(devices=[], enabled=self.seed is not None):
            if self.seed is not None:
                torch.manual_seed(self.seed)
            made = [_head(*head, self.seed is not None) for head in self.heads]
        return torch.nn.Sequential(*made).requires_grad_(False).eval()

    def width(self, dim: int) -> int:
        """Of a vector, of a model of this width."""
        sizes = [config["out_features"] for kind, _, config in self.heads if kind == "Dense"]
        return sizes[-1] if sizes else dim * len(self.poolings)


@cache
def _normalize() -> torch.nn.Module:
    """To unit length."""

    class Normalize(torch.nn.Module):
        def forward(self, vectors: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.normalize(vectors, dim=-1)

    return Normalize()


def _activation(config: dict[str, Any]) -> type[torch.nn.Module] | None:
    """The class of torch that is named; None for any other."""
    start, _, name = config.get("activation_function", "torch.nn.Tanh").rpartition(".")
    known = getattr(torch.nn, name, None) if f"{start}.".startswith("torch.nn.") else None
    return known if isinstance(known, type) and issubclass(known, torch.nn.Module) else None


def _head(kind: str, folder: Path, config: dict[str, Any], drawn: bool) -> torch.nn.Module:
    """One module after the pooling; ``drawn``: with new weights."""
    if kind == "Normalize":
        return _normalize()
    linear = torch.nn.Linear(
        config["in_features"], config["out_features"], config.get("bias", True)
    )
    if not drawn:
        try:
            from safetensors.torch import load_file

            file = _weights(folder)[0]
            safe = file.suffix == ".safetensors"
            held = load_file(file) if safe else torch.load(file, "cpu", weights_only=True)
            linear.load_state_dict({key.removeprefix("linear."): x for key, x in held.items()})
        except Exception as error:  # torn files raise bare exceptions, of several libraries
            raise ValueError(
                f"the weights in {folder} do not fit its config.json "
                f"({checks.reason(error)}): fetch it again"
            ) from None
    return torch.nn.Sequential(linear, _activation(config)())


def _weights(folder: Path) -> list[Path]:
    names = ("model.safetensors", "pytorch_model.bin")
    return [folder / name for name in names if (folder / name).is_file()][:1]


def modules_of(folder: Path) -> tuple[Path, list[dict[str, Any]]]:
    """The modules of a folder, and where they lie: in it, or above it and naming it first."""
    for root in (folder, folder.parent):
        file = root / "modules.json"
        modules = read_json(file, list) if file.is_file() else []
        paths = [x.get("path", "") if isinstance(x, dict) else None for x in modules]
        if not all(isinstance(path, str) and len(path) < 200 for path in paths):
            raise ValueError(f"{file} names a module without a path: fetch the model again")
        if modules and (root == folder or modules[0].get("path") == folder.name):
            return root, modules
    return folder, []


def own_vector(label: str, folder: Path) -> OwnVector | None:
    """What a folder that `identity.find` has found declares; None where it declares nothing."""
    if twin := identity.twin_parts(label):
        of_model = own_vector(*identity.find(twin[0])[:2])
        return of_model and replace(of_model, seed=twin[1])
    root, modules = modules_of(folder)
    if not modules:
        files = [x for up in (folder, folder.parent) for x in up.glob("*_Pooling/config.json")]
        if not files:
            return None
        config = read_json(files[0])
        return OwnVector(whole=False, **_pooling(config), problem=_strange("Pooling", config))
    problems, parts, heads = [], {}, []
    for place, module in enumerate([*modules, *[{}] * (len(modules) < 2)]):
        name, path = str(module.get("type"))[:80], module.get("path", "")
        kind = name.rpartition(".")[2] if name.startswith("sentence_transformers.") else name
        order = {0: ("Transformer",), 1: ("Pooling",)}.get(place, ("Dense", "Normalize"))
        if kind not in order or path != Path(path).name:
            problems.append(f"the module {name} in {place + 1}. place")
            continue
        names = "sentence_*_config.json" if kind == "Transformer" else "config.json"
        config = next((read_json(file) for file in sorted((root / path).glob(names))), {})
        problems.append(_strange(kind, config))
        if kind == "Transformer":
            parts["max_length"] = config.get("max_seq_length")
            parts["lower"] = bool(config.get("do_lower_case"))
        elif kind == "Pooling":
            parts |= _pooling(config)
        else:
            heads.append((kind, root / path, config))
    prompt, similarity, problem = _prompt(root)
    whole = read_json(folder / "config.json")
    coded = "code of its own (auto_map)" if code_of_its_own(folder) else None
    if whole.get("is_encoder_decoder") and (kind := whole.get("model_type")) not in _ENCODER_ALONE:
        problem = problem or f"the decoder of {kind!r}, which is not read here"
    problem = next(filter(None, [coded, *problems, problem]), None)
    return OwnVector(
        **parts, heads=tuple(heads), prompt=prompt, similarity=similarity, problem=problem
    )


def _strange(kind: str, config: dict[str, Any]) -> str | None:
    """What a module declares that is not known here, as a phrase."""
    known = _SAID[kind]
    for key, value in config.items():
        if value and (key not in known or (known[key] is not None and value not in known[key])):
            return f"{key[:80]} = {value!r:.80} of {kind}"
    if kind == "Dense" and _activation(config) is None:
        return f"the activation {config['activation_function']} of Dense"
    unknown = {*_pooling(config)["poolings"]} - {ours for _, ours in _POOLED.values()}
    return f"the pooling {unknown.pop()}" if unknown and kind == "Pooling" else None


def _pooling(config: dict[str, Any]) -> dict[str, Any]:
    """The poolings that a module names, and whether the prompt is pooled."""
    flags = [word for flag, (word, _) in _POOLED.items() if config.get(f"pooling_mode_{flag}")]
    modes = config.get("pooling_mode", flags or "mean")
    modes = map(str, modes if isinstance(modes, list) else [modes])
    ours = dict(_POOLED.values())
    pooled = tuple(ours.get(mode, mode) for mode in modes)
    return {"poolings": pooled, "pools_prompt": config.get("include_prompt", True)}


def _prompt(root: Path) -> tuple[str, str, str | None]:
    """The prompt by default, the similarity, and what of the file is not supported."""
    file = root / "config_sentence_transformers.json"
    config = read_json(file) if file.is_file() else {}
    prompts, name = config.get("prompts") or {}, config.get("default_prompt_name")
    kind = config.get("model_type", "SentenceTransformer")
    problem = f"model_type = {kind!r}" if kind != "SentenceTransformer" else None
    text = prompts.get(name) if isinstance(prompts, dict) and isinstance(name, str) else None
    if name is not None and not isinstance(text, str):
        problem = f"the prompt {name!r:.80}, which has no text"
    return text or "", config.get("similarity_fn_name") or "cosine", problem
