"""Tiny random models of many architectures with a real tokenizer, made from a config."""

import contextlib
import json
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedTokenizerFast
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

SENTENCES = (
    "The weather is fine today.",
    "Das Wetter ist heute schön, und morgen soll es regnen; wer weiß das schon so genau?",
    "Il fait beau.",
    "天気がいい。",
    "Погода сегодня хорошая, а завтра будет дождь.",
    "Yes",
    "The weather is fine today, and tomorrow it will rain, or so they say in the village.",
    "¿Qué tiempo hace hoy en la ciudad?",
)

KINDS = {
    "xlm-roberta": "encoder",
    "bert": "encoder",
    "distilbert": "encoder",
    "xlm": "encoder",
    "gpt2": "decoder",
    "llama": "decoder",
    "mistral": "decoder",
    "gemma": "decoder",
    "gemma2": "decoder",
    "olmo": "decoder",
    "t5": "encoder-decoder",
    "bart": "encoder-decoder",
    "m2m100": "encoder-decoder",
}
"""Architecture → the kind that models.load must find."""

BATTERY = KINDS | {
    "albert": "encoder",
    "camembert": "encoder",
    "deberta-v2": "encoder",
    "electra": "encoder",
    "modernbert": "encoder",
    "mpnet": "encoder",
    "rembert": "encoder",
    "roformer": "encoder",
    "bloom": "decoder",
    "falcon": "decoder",
    "gpt_neox": "decoder",
    "opt": "decoder",
    "phi": "decoder",
    "qwen2": "decoder",
    "qwen3": "decoder",
    "gemma3_text": "decoder",
    "mt5": "encoder-decoder",
    "mbart": "encoder-decoder",
}
"""The same, of more of them."""

_AS_BERT = "hidden_size num_hidden_layers num_attention_heads intermediate_size"
#: What configurations call width, layers, heads and the inner width, where not as BERT's.
_SIZES = {
    "distilbert": "dim n_layers n_heads hidden_dim",
    "xlm": "emb_dim n_layers n_heads",
    "gpt2": "n_embd n_layer n_head",
    "t5": "d_model num_layers num_heads d_ff",
}
_SIZES["mt5"] = _SIZES["t5"]
_SIZES |= dict.fromkeys(
    ("bart", "m2m100", "mbart"), "d_model encoder_layers encoder_attention_heads encoder_ffn_dim"
)
_IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
_DECODER = {
    "decoder_layers": 1,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 64,
    "decoder_start_token_id": 2,
}
_LLAMA = {"num_key_value_heads": 2, "bos_token_id": 0, "eos_token_id": 2}
_MORE = {
    "xlm-roberta": {**_IDS, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    "bert": {"pad_token_id": 1},
    "distilbert": {"pad_token_id": 1},
    "xlm": {"pad_index": 1, "pad_token_id": 1, "bos_index": 0, "eos_index": 2, "unk_index": 3},
    "gpt2": {"bos_token_id": 2, "eos_token_id": 2},
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "olmo": _LLAMA,
    "gemma": _LLAMA | {"head_dim": 8},
    "gemma2": _LLAMA | {"head_dim": 8},
    "t5": {
        "d_kv": 8,
        "num_decoder_layers": 1,
        "pad_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 1,
    },
    "bart": _IDS | _DECODER,
    "m2m100": _IDS | _DECODER,
    "mbart": _IDS | _DECODER,
    "camembert": {**_IDS, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    "albert": {"embedding_size": 16, "pad_token_id": 1},
    "deberta-v2": {
        "pad_token_id": 1,
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
    },
    "modernbert": _IDS | {"cls_token_id": 0, "sep_token_id": 2, "local_attention": 16},
    "opt": {"pad_token_id": 1, "word_embed_proj_dim": 32, "ffn_dim": 64},
    "qwen2": _LLAMA,
    "qwen3": _LLAMA | {"head_dim": 8},
    "gemma3_text": _LLAMA | {"head_dim": 8},
    "phi": {"bos_token_id": 0, "eos_token_id": 2},
}
_MORE["mt5"] = _MORE["t5"]
#: Saved with the head of the task that they are trained for.
_HEADS = {"xlm-roberta": "AutoModelForMaskedLM", "t5": "AutoModelForSeq2SeqLM"}
_HEADS |= dict.fromkeys(
    [name for name, kind in KINDS.items() if kind == "decoder"], "AutoModelForCausalLM"
)


def tokenizer(style: str = "encoder", size: int = 384) -> PreTrainedTokenizerFast:
    """A BPE tokenizer with byte fallback, trained on `SENTENCES`.

    `style`: "encoder" (<s> ... </s>, all roles named), "bos" (<s> ..., no padding token, as Llama),
    "plain" (no special token added, no padding token, as GPT-2), "eos" (... </s>, as T5).
    """
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    raw = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    raw.normalizer = normalizers.NFKC()
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    raw.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[*special, *(f"<0x{byte:02X}>" for byte in range(256)), "<mask>"],
        show_progress=False,
    )
    raw.train_from_iterator(SENTENCES, trainer)
    template = {"encoder": "<s> $A </s>", "bos": "<s> $A", "eos": "$A </s>"}.get(style)
    if template is not None:
        raw.post_processor = TemplateProcessing(
            single=template, special_tokens=[("<s>", 0), ("</s>", 2)]
        )
    roles = {
        "encoder": {
            "bos_token": "<s>",
            "cls_token": "<s>",
            "pad_token": "<pad>",
            "sep_token": "</s>",
            "mask_token": "<mask>",
        },
        "bos": {"bos_token": "<s>"},
        "plain": {},
        "eos": {"pad_token": "<pad>"},
    }[style]
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="</s>", unk_token="<unk>", **roles
    )


def save(
    folder: Path,
    architecture: str = "xlm-roberta",
    *,
    seed: int = 0,
    layers: int = 2,
    width: int = 32,
    positions: int = 64,
    safetensors: bool = True,
    spread: float = 8.0,
    **config_options: object,
) -> Path:
    """Write a tiny model of `architecture` with random weights and its tokenizer to `folder`.

    `positions` counts the tokens a sequence may have, whatever the architecture calls it.
    """
    more = _MORE.get(architecture, {"pad_token_id": 1})
    style = {"gpt2": "plain", "t5": "eos", "mt5": "eos"}.get(architecture, "encoder")
    style = "bos" if more.items() >= _LLAMA.items() else style
    words = tokenizer(style)
    names = _SIZES.get(architecture, _AS_BERT).split()
    limit = "n_positions" if architecture in ("gpt2", "t5", "mt5") else "max_position_embeddings"
    options = {
        "vocab_size": len(words),
        **dict(zip(names, (width, layers, 4, 2 * width), strict=False)),
        limit: positions + 2 * (architecture in ("xlm-roberta", "camembert", "mpnet")),
        **more,
        **config_options,
    }
    config = AutoConfig.for_model(architecture.replace("m100", "m_100"), **options)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        kind = getattr(transformers, _HEADS.get(architecture, "AutoModel"))
        model = kind.from_config(config)
        # Default initialisations are so small that all sentences look alike: spread them out.
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.data.mul_(spread)
    folder = Path(folder)
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    if not safetensors:
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    return folder


def series(folder: Path, steps: tuple[int, ...] = (0, 10, 100), **options: object) -> Path:
    """Write a checkpoint series, one `step-*` folder a step, each with other weights."""
    for step in steps:
        save(Path(folder) / f"step-{step:06d}", seed=step, **options)
    return Path(folder)


def edit_json(path: Path, **changes: object) -> None:
    """Change fields of a JSON file; None takes a field out."""
    content = json.loads(path.read_text(encoding="utf-8")) | changes
    content = {name: value for name, value in content.items() if value is not None}
    path.write_text(json.dumps(content), encoding="utf-8")


#: What configurations call their sizes → how large they are in the smallest model of a kind.
_SMALLEST = (
    ("hidden_size d_model n_embd dim emb_dim word_embed_proj_dim embedding_size embed_dim", 32),
    ("hidden_dim text_hidden_size projection_dim", 32),
    ("num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers depth", 2),
    ("num_decoder_layers num_encoder_layers num_key_value_heads num_kv_heads", 2),
    ("num_attention_heads n_head n_heads num_heads encoder_attention_heads", 4),
    ("decoder_attention_heads num_experts num_local_experts n_routed_experts", 4),
    ("head_dim d_head d_kv kv_channels attention_head_size", 8),
    ("intermediate_size ffn_dim d_ff encoder_ffn_dim decoder_ffn_dim n_inner", 64),
    ("moe_intermediate_size shared_expert_intermediate_size ffn_hidden_size", 64),
    ("max_position_embeddings n_positions max_sequence_length n_ctx", 128),
    ("q_lora_rank kv_lora_rank", 16),
    ("qk_rope_head_dim qk_nope_head_dim v_head_dim rotary_dim", 8),
    ("num_experts_per_tok moe_topk n_group topk_group", 1),
)
SMALLEST = {name: size for names, size in _SMALLEST for name in names.split()}
SMALLEST |= {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}


def shrink(config: PretrainedConfig, vocabulary: int) -> PretrainedConfig:
    """A configuration as `SMALLEST`, and so those inside it; what refuses a size keeps its own."""
    for name, value in [*vars(config).items()]:
        size = vocabulary if name == "vocab_size" else SMALLEST.get(name)
        if isinstance(value, PretrainedConfig):
            shrink(value, vocabulary)
        elif name in ("layer_types", "mlp_layer_types") and isinstance(value, list):
            setattr(config, name, (2 * value)[:2])
        elif size is not None and (value is None or type(value) is int):
            with contextlib.suppress(Exception):  # whatever a configuration's checks raise
                setattr(config, name, size)
    return config


def smallest(folder: Path, kind: str) -> str | None:
    """Write the smallest model of a kind of transformers; why there is none, if there is none."""
    words = tokenizer()
    try:
        config = shrink(CONFIG_MAPPING[kind](), len(words))
        with torch.device("meta"):
            n = sum(x.numel() for x in AutoModel.from_config(config).parameters())
        if n > 3e7:
            return f"{n:,} weights"
        torch.manual_seed(0)
        model = AutoModel.from_config(config, dtype=torch.float32)
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.data.mul_(3)
        model.save_pretrained(folder)
    except Exception as error:  # whatever a class raises
        return f"{type(error).__name__}: {str(error).strip()[:100]}"
    words.save_pretrained(folder)
    return None
