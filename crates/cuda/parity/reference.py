"""What PyTorch computes with transformers and PEFT, for `cargo run --release -p catamount-cuda
--example gpu_parity` to compare with.

    python reference.py OUT [STEPS]

Writes a Qwen2 model with random weights, two adapters, batches of sequences of different lengths,
learning rates; then the gradients of one batch and the losses of a whole training run, each in f32
and as PEFT trains in bf16 (autocast, f32 adapters). On a GPU if there is one. Needs torch,
transformers, peft, safetensors, tokenizers.
"""

import json
import sys
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2ForCausalLM

OUT = Path(sys.argv[1])
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 200
SEQUENCES, LONGEST, VOCABULARY, SYMBOLS = 8, 129, 2048, 96
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Products in f32 stay in f32: they are what the others are measured against.
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.manual_seed(0)


def write_tokenizer():
    """The loader wants one; the batches are made of token numbers."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(
        models.BPE(
            vocab={"<|endoftext|>": 0} | {c: i + 1 for i, c in enumerate(alphabet)}, merges=[]
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    tokenizer.save(str(OUT / "model" / "tokenizer.json"))


def write_model():
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=512,
        intermediate_size=1408,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=2,
        max_position_embeddings=256,
        rms_norm_eps=1e-6,
        tie_word_embeddings=False,
    )
    model = Qwen2ForCausalLM(config)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "bias" in name or "norm" in name:
                p.add_(torch.randn_like(p) * 0.1)
    # Rounded once, so that every program starts from the same numbers.
    model.to(torch.bfloat16).save_pretrained(OUT / "model")
    write_tokenizer()
    for name, std in [("adapter", 0.0), ("adapter-random", 0.05)]:
        lora = LoraConfig(
            r=16, lora_alpha=32, lora_dropout=0.0, task_type="CAUSAL_LM", target_modules=TARGETS
        )
        peft = get_peft_model(
            AutoModelForCausalLM.from_pretrained(OUT / "model", dtype=torch.float32), lora
        )
        with torch.no_grad():
            for key, p in peft.named_parameters():
                if "lora_B" in key:
                    p.copy_(torch.randn_like(p) * std)
        peft.save_pretrained(OUT / name)


def make_batches():
    """Sequences that repeat a pattern of rare and common symbols: something to learn, slowly."""
    chances = 1.0 / torch.arange(1, SYMBOLS + 1)
    tokens = torch.zeros(STEPS, SEQUENCES, LONGEST, dtype=torch.long)
    lengths = torch.randint(LONGEST // 3, LONGEST + 1, (STEPS, SEQUENCES))
    for step in range(STEPS):
        for i in range(SEQUENCES):
            pattern = 20 * (
                1 + torch.multinomial(chances, int(torch.randint(3, 12, ())), replacement=True)
            )
            tokens[step, i] = pattern.repeat(LONGEST // len(pattern) + 1)[:LONGEST]
    return tokens, lengths


def open_model(adapter, dtype):
    model = AutoModelForCausalLM.from_pretrained(
        OUT / "model", dtype=dtype, attn_implementation="sdpa"
    )
    model = PeftModel.from_pretrained(model, OUT / adapter, is_trainable=True)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "lora_" in name:
                p.data = p.data.float()
    return model.to(DEVICE)


def loss_of(model, tokens, lengths, dtype):
    """The mean over all next tokens of -log p."""
    place = torch.arange(LONGEST)[None] < lengths[:, None]
    labels = tokens.masked_fill(~place, -100)[:, 1:].to(DEVICE)
    with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
        logits = model(input_ids=tokens.to(DEVICE), attention_mask=place.long().to(DEVICE)).logits
    return torch.nn.functional.cross_entropy(
        logits[:, :-1].float().flatten(0, 1), labels.flatten(), ignore_index=-100
    )


def gradients(dtype, tokens, lengths):
    model = open_model("adapter-random", dtype)
    loss = loss_of(model, tokens, lengths, dtype)
    loss.backward()
    found = {
        n.replace(".default", ""): p.grad.float().cpu()
        for n, p in model.named_parameters()
        if p.grad is not None
    }
    return loss.item(), found


def train(dtype, tokens, lengths, rates):
    model = open_model("adapter", dtype)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        parameters, lr=1.0, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01
    )
    losses = []
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = rates[step].item()
        loss = loss_of(model, tokens[step], lengths[step], dtype)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
    return torch.stack(losses).cpu()


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    write_model()
    tokens, lengths = make_batches()
    rising = max(1, STEPS // 20)
    rates = 5e-4 * torch.tensor(
        [min((s + 1) / rising, (STEPS - s) / (STEPS - rising)) for s in range(STEPS)]
    )
    out = {"tokens": tokens.float(), "lengths": lengths.float(), "rates": rates}
    for name, dtype in [("f32", torch.float32), ("bf16", torch.bfloat16)]:
        loss, found = gradients(dtype, tokens[0], lengths[0])
        out[f"{name}.loss"] = torch.tensor([loss])
        out |= {f"{name}.grad.{key}": gradient for key, gradient in found.items()}
        out[f"{name}.losses"] = train(dtype, tokens, lengths, rates)
        print(
            f"PyTorch {torch.__version__} on {DEVICE}, {name}: loss {loss:.5f}; "
            f"training from {out[name + '.losses'][0]:.4f} "
            f"to {out[name + '.losses'][-1]:.4f}",
            flush=True,
        )
    save_file({k: v.float().contiguous() for k, v in out.items()}, OUT / "reference.safetensors")
    (OUT / "shape.json").write_text(
        json.dumps({"steps": STEPS, "sequences": SEQUENCES, "longest": LONGEST})
    )


main()
