"""Tiny random models of the three architectures with a real tokenizer, made from a config."""

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from transformers import (
    BartConfig,
    BartModel,
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    M2M100Config,
    M2M100Model,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

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
    "gpt2": "decoder",
    "llama": "decoder",
    "t5": "encoder-decoder",
    "bart": "encoder-decoder",
    "m2m100": "encoder-decoder",
}
"""Architecture → the kind that models.load must find."""


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
    **config_options: object,
) -> Path:
    """Write a tiny model of `architecture` with random weights and its tokenizer to `folder`.

    `positions` counts the tokens a sequence may have, whatever the architecture calls it.
    """
    style = {"gpt2": "plain", "llama": "bos", "t5": "eos"}.get(architecture, "encoder")
    words = tokenizer(style)
    size = len(words)
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        match architecture:
            case "xlm-roberta":
                options = {
                    "vocab_size": size,
                    "hidden_size": width,
                    "num_hidden_layers": layers,
                    "num_attention_heads": 4,
                    "intermediate_size": 2 * width,
                    "max_position_embeddings": positions + 2,
                    "type_vocab_size": 1,
                    "layer_norm_eps": 1e-5,
                    **ids,
                    **config_options,
                }
                model = XLMRobertaForMaskedLM(XLMRobertaConfig(**options))
            case "bert":
                model = BertModel(
                    BertConfig(
                        vocab_size=size,
                        hidden_size=width,
                        num_hidden_layers=layers,
                        num_attention_heads=4,
                        intermediate_size=2 * width,
                        max_position_embeddings=positions,
                        pad_token_id=1,
                        **config_options,
                    )
                )
            case "distilbert":
                model = DistilBertModel(
                    DistilBertConfig(
                        vocab_size=size,
                        dim=width,
                        n_layers=layers,
                        n_heads=4,
                        hidden_dim=2 * width,
                        max_position_embeddings=positions,
                        pad_token_id=1,
                        **config_options,
                    )
                )
            case "gpt2":
                model = GPT2LMHeadModel(
                    GPT2Config(
                        vocab_size=size,
                        n_embd=width,
                        n_layer=layers,
                        n_head=4,
                        n_positions=positions,
                        bos_token_id=2,
                        eos_token_id=2,
                        **config_options,
                    )
                )
            case "llama":
                model = LlamaForCausalLM(
                    LlamaConfig(
                        vocab_size=size,
                        hidden_size=width,
                        num_hidden_layers=layers,
                        num_attention_heads=4,
                        num_key_value_heads=2,
                        intermediate_size=2 * width,
                        max_position_embeddings=positions,
                        bos_token_id=0,
                        eos_token_id=2,
                        **config_options,
                    )
                )
            case "t5":
                model = T5ForConditionalGeneration(
                    T5Config(
                        vocab_size=size,
                        d_model=width,
                        d_kv=width // 4,
                        d_ff=2 * width,
                        num_layers=layers,
                        num_decoder_layers=1,
                        num_heads=4,
                        n_positions=positions,
                        pad_token_id=1,
                        eos_token_id=2,
                        decoder_start_token_id=1,
                        **config_options,
                    )
                )
            case "bart" | "m2m100":
                config_class, model_class = {
                    "bart": (BartConfig, BartModel),
                    "m2m100": (M2M100Config, M2M100Model),
                }[architecture]
                model = model_class(
                    config_class(
                        vocab_size=size,
                        d_model=width,
                        encoder_layers=layers,
                        decoder_layers=1,
                        encoder_attention_heads=4,
                        decoder_attention_heads=4,
                        encoder_ffn_dim=2 * width,
                        decoder_ffn_dim=2 * width,
                        max_position_embeddings=positions,
                        **ids,
                        decoder_start_token_id=2,
                        **config_options,
                    )
                )
            case _:
                raise ValueError(f"no tiny {architecture}")
        # Default initialisations are so small that all sentences look alike: spread them out.
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.data.mul_(8.0)
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
