"""Writes what Hugging Face transformers and PEFT compute, for `cargo run --example parity` to
compare with.

    python reference.py OUT [SMOLLM2.gguf]

Needs torch, transformers, peft, safetensors, tokenizers; for the GGUF file also gguf.
"""

import sys
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

torch.manual_seed(0)
torch.set_grad_enabled(True)
SHAPE = dict(
    vocab_size=300,
    hidden_size=64,
    intermediate_size=112,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
    rms_norm_eps=1e-6,
)
LLAMA3 = dict(
    rope_type="llama3",
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=64,
)


def tokenizer(folder):
    vocab = {"<|endoftext|>": 0} | {
        c: i + 1 for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))
    }
    t = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens(["<|endoftext|>"])
    t.save(str(folder / "tokenizer.json"))


def losses(model, tokens, coefficients, dtype):
    """Logits, log-probabilities of the next tokens, and the gradient of their weighted sum."""
    model.to(dtype).zero_grad()
    logits = model(tokens[None]).logits[0]
    log_p = torch.log_softmax(logits[:-1], -1).gather(1, tokens[1:, None])[:, 0]
    (log_p * coefficients.to(dtype)).sum().backward()
    return (
        logits,
        log_p,
        {name: p.grad.double() for name, p in model.named_parameters() if p.grad is not None},
    )


def reference(model, tokens, coefficients):
    """In double precision, and how far PyTorch's own single precision is from that: whole gradient,
    worst tensor.
    """
    _, _, single = losses(model, tokens, coefficients, torch.float32)
    logits, log_p, double = losses(model, tokens, coefficients, torch.float64)
    difference = {name: (single[name] - double[name]).norm() for name in double}
    whole = (
        torch.stack(list(difference.values())).norm()
        / torch.stack([g.norm() for g in double.values()]).norm()
    )
    worst = max(
        (difference[n] / double[n].norm()).item() for n in double if not n.endswith("k_proj.bias")
    )
    model.to(torch.float32)
    return logits, log_p, double, torch.tensor([whole.item(), worst])


def randomise(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(
                torch.randn_like(p) * (0.2 if p.dim() > 1 else 0.1)
                + (1.0 if "norm" in name else 0.0)
            )


def write(folder, model, length, vocab, lora):
    folder.mkdir(parents=True, exist_ok=True)
    tokens = torch.randint(0, vocab, (length,))
    coefficients = torch.randn(length - 1)
    out = {"tokens": tokens.float(), "coefficients": coefficients}
    logits, out["log_p"], gradients, out["single"] = reference(model, tokens, coefficients)
    out["logits"] = logits[:-1]
    for name, gradient in gradients.items():
        out["grad." + name] = gradient
    config = LoraConfig(
        r=4,
        lora_alpha=8,
        lora_dropout=0.0,
        task_type="CAUSAL_LM",
        target_modules=lora
        or ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    )
    peft = get_peft_model(model, config)
    with torch.no_grad():
        for name, p in peft.named_parameters():
            if "lora_" in name:
                p.copy_(torch.randn_like(p) * 0.1)
    logits, out["lora.log_p"], gradients, out["lora.single"] = reference(peft, tokens, coefficients)
    out["lora.logits"] = logits[:-1]
    for name, gradient in gradients.items():
        out["lora.grad." + name.replace(".default", "")] = gradient
    peft.save_pretrained(folder / "adapter")
    save_file(
        {k: v.detach().float().contiguous() for k, v in out.items()},
        folder / "reference.safetensors",
    )
    print("wrote", folder)


def main():
    root = Path(sys.argv[1])
    cases = {
        "qwen2": (Qwen2ForCausalLM, Qwen2Config(**SHAPE, tie_word_embeddings=False), None),
        "qwen2-tied": (
            Qwen2ForCausalLM,
            Qwen2Config(**SHAPE, tie_word_embeddings=True),
            ["q_proj", "v_proj", "down_proj"],
        ),
        "llama": (LlamaForCausalLM, LlamaConfig(**SHAPE, tie_word_embeddings=True), None),
        "llama3": (
            LlamaForCausalLM,
            LlamaConfig(**SHAPE, tie_word_embeddings=False, rope_scaling=LLAMA3),
            None,
        ),
    }
    for name, (cls, config, lora) in cases.items():
        folder = root / name
        config._attn_implementation = "eager"
        model = cls(config).float().eval()
        randomise(model)
        folder.mkdir(parents=True, exist_ok=True)
        model.save_pretrained(folder)
        tokenizer(folder)
        write(folder, model, 150, SHAPE["vocab_size"], lora)
    if len(sys.argv) > 2:
        gguf = Path(sys.argv[2]).resolve()
        model = AutoModelForCausalLM.from_pretrained(
            str(gguf.parent), gguf_file=gguf.name, dtype=torch.float32
        ).eval()
        folder = root / "smollm2"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "gguf.txt").write_text(str(gguf))
        write(folder, model, 60, 49152, None)


main()
