"""What PyTorch reaches on this GPU, for `cargo run --release -p catamount-cuda --example gpu_bench`
to be compared with in the same run.

    python speed.py [CASE]...

A line of JSON a case: the matrix products of the 7B shape's LoRA step alone, that step in plain
PyTorch, eager and compiled, decoding, two small shapes, and transformers with PEFT on padded
examples of realistic length (micro-batch 4 with checkpointing is the paper's setting). Weights are
random, figures are medians. Every case has a limit of its own, and the whole ends within 130 s: a
case that there was no time for says so. Needs torch; the PEFT cases transformers and peft, too.
Without a GPU the shapes are tiny: that only tries the script.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from types import SimpleNamespace as Shape

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
START, WHOLE = time.monotonic(), 130
RANK, SCALE = 16, 2.0
torch.manual_seed(0)


def shape(layers, hidden, heads, kv_heads, dim, inner, vocab):
    if DEVICE == "cpu":
        layers, hidden, heads, kv_heads, dim, inner, vocab = 2, 64, 4, 2, 16, 96, 512
    return Shape(
        layers=layers, hidden=hidden, heads=heads, kv=kv_heads, dim=dim, inner=inner, vocab=vocab
    )


SEVEN_B = shape(28, 3584, 28, 4, 128, 18944, 152064)
SMALL = shape(6, 256, 4, 4, 64, 704, 4096)
SMOL = shape(30, 576, 9, 3, 64, 1536, 49152)


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def seconds_of(work, warm=2, rounds=7):
    """The median. Gives up repeating when the case's time runs out, not before one round."""
    times = []
    for i in range(warm + rounds):
        synchronize()
        begin = time.perf_counter()
        work()
        synchronize()
        if i >= warm:
            times.append(time.perf_counter() - begin)
        if times and time.monotonic() > deadline - 1:
            break
    return sorted(times)[len(times) // 2]


def matrix(rows, columns, trained=False, std=0.02):
    values = torch.empty(rows, columns, device=DEVICE, dtype=torch.bfloat16).normal_(std=std)
    return nn.Parameter(values, requires_grad=trained)


class Linear(nn.Module):
    """A linear map, frozen with an adapter beside it, or trained; all of it in bf16, which is
    faster than it should be trained.
    """

    def __init__(self, outputs, inputs, lora):
        super().__init__()
        self.lora = lora
        self.weight = matrix(outputs, inputs, not lora)
        if lora:
            self.a = matrix(RANK, inputs, True)
            self.b = matrix(outputs, RANK, True, std=0.0)

    def forward(self, x):
        y = F.linear(x, self.weight)
        if not self.lora:
            return y
        return y + SCALE * F.linear(F.linear(x, self.a), self.b)


def rotate(x, cos, sin):
    one, other = x.chunk(2, -1)
    return x * cos + torch.cat([-other, one], -1) * sin


class Block(nn.Module):
    def __init__(self, s, lora):
        super().__init__()
        self.s, width = s, s.heads * s.dim
        self.norms = nn.ParameterList(
            nn.Parameter(torch.ones(s.hidden, device=DEVICE, dtype=torch.bfloat16), not lora)
            for _ in range(2)
        )
        self.qkv = nn.ModuleList(
            Linear(n * s.dim, s.hidden, lora) for n in (s.heads, s.kv, s.kv)
        )
        self.o = Linear(s.hidden, width, lora)
        self.gate, self.up = (Linear(s.inner, s.hidden, lora) for _ in range(2))
        self.down = Linear(s.hidden, s.inner, lora)

    def forward(self, x, cos, sin, cache=None, at=0):
        s, (n, length, _) = self.s, x.shape
        h = F.rms_norm(x, (s.hidden,), self.norms[0], 1e-6)
        q, k, v = (m(h).view(n, length, -1, s.dim).transpose(1, 2) for m in self.qkv)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if cache is not None:
            for kept, new in zip(cache, (k, v)):
                kept[:, :, at : at + length] = new
            k, v = (kept[:, :, : at + length] for kept in cache)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1, enable_gqa=True)
        x = x + self.o(attended.transpose(1, 2).reshape(n, length, -1))
        h = F.rms_norm(x, (s.hidden,), self.norms[1], 1e-6)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self, s, lora, positions=1024):
        super().__init__()
        self.s = s
        self.embedding, self.head = (matrix(s.vocab, s.hidden, not lora) for _ in range(2))
        self.blocks = nn.ModuleList(Block(s, lora) for _ in range(s.layers))
        angles = torch.outer(
            torch.arange(positions), 1e4 ** (-torch.arange(0, s.dim, 2) / s.dim)
        ).to(DEVICE)
        angles = torch.cat([angles, angles], -1)
        self.cos, self.sin = angles.cos().bfloat16(), angles.sin().bfloat16()

    def forward(self, tokens, caches=None, at=0):
        x, length = F.embedding(tokens, self.embedding), tokens.shape[1]
        cos, sin = self.cos[at : at + length], self.sin[at : at + length]
        for i, block in enumerate(self.blocks):
            x = block(x, cos, sin, caches and caches[i], at)
        return F.rms_norm(x, (self.s.hidden,), eps=1e-6)


def tokens_for(s, *sizes):
    return torch.randint(0, s.vocab, sizes, device=DEVICE)


def loss_of(x, head, targets):
    return F.cross_entropy(F.linear(x, head).float(), targets)


def train(s, lora, batch, length, compiled):
    model, score = Model(s, lora), loss_of
    if compiled:
        # One block after another: all of them share what is compiled for the first.
        for block in model.blocks:
            block.compile()
        score = torch.compile(loss_of)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, fused=DEVICE == "cuda")
    tokens = tokens_for(s, batch, length + 1)

    def step():
        x = model(tokens[:, :-1])
        score(x.flatten(0, 1), model.head, tokens[:, 1:].flatten()).backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    seconds = seconds_of(step, warm=3)
    return {"ms": 1e3 * seconds, "tokens_per_s": batch * length / seconds}


@torch.no_grad()
def decode(s, batch, prompt=128, new=128):
    """Keys and values in one piece, a token drawn by a kernel: eager at its best."""
    model, times = Model(s, lora=False), []
    size = (batch, s.kv, prompt + new, s.dim)
    empty = [torch.empty(size, device=DEVICE, dtype=torch.bfloat16) for _ in range(2 * s.layers)]
    caches = list(zip(empty[::2], empty[1::2]))

    def draw(x):
        logits = F.linear(x[:, -1], model.head).float()
        return torch.multinomial(torch.softmax(logits, -1), 1)

    def work():
        synchronize()
        begin = time.perf_counter()
        token = draw(model(tokens_for(s, batch, prompt), caches))
        synchronize()
        times.append(time.perf_counter() - begin)
        for i in range(new - 1):
            token = draw(model(token, caches, prompt + i))

    whole, first = seconds_of(work, warm=1, rounds=3), sorted(times)[len(times) // 2]
    alone = (whole - first) / (new - 1)
    return {
        "batch": batch,
        "ms_per_step": 1e3 * alone,
        "tokens_per_s_with_prompts": batch * new / whole,
        "tokens_per_s": batch / alone,
    }


def floor(rows=2048):
    """Every product of the step but the adapter's, forward and for the gradient of its input."""
    s = SEVEN_B
    width, kv = s.heads * s.dim, 2 * s.kv * s.dim
    sizes = [(width + kv, s.hidden), (s.hidden, width), (2 * s.inner, s.hidden)]
    sizes = (sizes + [(s.hidden, s.inner)]) * s.layers + [(s.vocab, s.hidden)]
    weights = [matrix(*size).data for size in sizes]
    inputs = {n: matrix(rows, n, std=1.0).data for size in sizes for n in size}

    def step():
        for w in weights:
            F.linear(inputs[w.shape[1]], w)
        for w in weights:
            inputs[w.shape[0]] @ w

    seconds = seconds_of(step)
    return {
        "ms": 1e3 * seconds,
        "tokens_per_s": rows / seconds,
        "tflops": 4 * rows * sum(w.numel() for w in weights) / seconds / 1e12,
    }


def peft_model():
    """Made once: it is the longest part of the cases that use it."""
    if not hasattr(peft_model, "made"):
        from peft import LoraConfig, get_peft_model
        from transformers import AutoModelForCausalLM, Qwen2Config

        s = SEVEN_B
        config = Qwen2Config(
            vocab_size=s.vocab,
            hidden_size=s.hidden,
            intermediate_size=s.inner,
            num_hidden_layers=s.layers,
            num_attention_heads=s.heads,
            num_key_value_heads=s.kv,
            max_position_embeddings=1024,
            tie_word_embeddings=False,
        )
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(
                config, dtype=torch.bfloat16, attn_implementation="sdpa"
            )
        # Filled on the device: on the host it would take minutes. The rotary table is made anew.
        model = model.to_empty(device=DEVICE)
        for name, p in model.named_parameters():
            p.data.fill_(1.0) if "norm" in name else p.data.normal_(std=0.02)
        model.model.rotary_emb = type(model.model.rotary_emb)(config).to(DEVICE)
        targets = [f"{name}_proj" for name in ("q", "k", "v", "o", "gate", "up", "down")]
        lora = LoraConfig(
            r=RANK,
            lora_alpha=32,
            lora_dropout=0.05,
            target_modules=targets,
            task_type="CAUSAL_LM",
        )
        model = get_peft_model(model, lora)
        model.enable_input_require_grads()
        peft_model.made = model
    return peft_model.made


def peft(micro, checkpointing):
    """Micro-batches of padded examples, lognormal with median 130 and between 16 and 512 tokens; an
    optimizer step every 64 examples.
    """
    model, stream = peft_model(), random.Random(1)
    model.train()
    if checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    else:
        model.gradient_checkpointing_disable()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    seen = Count()

    def step():
        lengths = [max(16, min(512, int(stream.lognormvariate(4.87, 0.8)))) for _ in range(micro)]
        longest = max(lengths)
        mask = (torch.arange(longest)[None] < torch.tensor(lengths)[:, None]).long().to(DEVICE)
        tokens = tokens_for(SEVEN_B, micro, longest)
        labels = tokens.masked_fill(mask == 0, -100)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = model(input_ids=tokens, attention_mask=mask, labels=labels).loss
        (loss * micro / 64).backward()
        if seen.add(micro, sum(lengths)) % 64 < micro:
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    for _ in range(3):
        step()
    synchronize()
    seen, begin = Count(), time.perf_counter()
    while time.monotonic() < deadline - 2 and seen.examples < 192:
        step()
        synchronize()
    seconds = time.perf_counter() - begin
    for p in trained:
        p.grad = None
    return {
        "micro_batch": micro,
        "checkpointing": checkpointing,
        "examples": seen.examples,
        "examples_per_s": seen.examples / seconds,
        "tokens_per_s": seen.tokens / seconds,
    }


class Count:
    """Examples and tokens so far."""

    def __init__(self):
        self.examples = self.tokens = 0

    def add(self, examples, tokens):
        self.examples += examples
        self.tokens += tokens
        return self.examples


# What is measured, within how many seconds; what matters most comes first.
CASES = {
    "7B: products of a LoRA step of 2048 tokens": (8, floor),
    "7B: LoRA step of 4 x 512, eager": (10, lambda: train(SEVEN_B, True, 4, 512, False)),
    "7B: LoRA step of 4 x 512, torch.compile": (34, lambda: train(SEVEN_B, True, 4, 512, True)),
    "7B: decode, eager": (20, lambda: decode(SEVEN_B, 64)),
    "6 layers, d=256: decode, eager": (5, lambda: decode(SMALL, 512)),
    "6 layers, d=256: step of 32 x 256, eager": (3, lambda: train(SMALL, False, 32, 256, False)),
    "135M shape: decode, eager": (10, lambda: decode(SMOL, 512)),
    "7B: PEFT, micro-batch 4 with checkpointing": (20, lambda: peft(4, True)),
    "7B: PEFT, micro-batch 16": (12, lambda: peft(16, False)),
    "7B: PEFT, micro-batch 1": (8, lambda: peft(1, False)),
}


class TooLong(Exception):
    pass


def interrupt(*_):
    raise TooLong("ran past its limit")


def emit(case, **found):
    rounded = {k: round(v, 3) if isinstance(v, float) else v for k, v in found.items()}
    print(json.dumps({"case": case} | rounded), flush=True)


def end():
    emit("all", error=f"ended after {WHOLE} s", version=torch.__version__)
    os._exit(1)


def main():
    global deadline
    watch = threading.Timer(WHOLE - 1, end)
    watch.daemon = True
    watch.start()
    signal.signal(signal.SIGALRM, interrupt)
    name = torch.cuda.get_device_name() if DEVICE == "cuda" else "no GPU: shapes are tiny"
    emit("device", name=name, version=torch.__version__)
    for case, (limit, work) in CASES.items():
        if sys.argv[1:] and not any(word in case for word in sys.argv[1:]):
            continue
        left = START + WHOLE - 3 - time.monotonic()
        if left < 4:
            emit(case, error="no time was left")
            continue
        limit = min(limit, left)
        begin = time.monotonic()
        deadline = begin + limit
        # A grace to end by itself, then it is interrupted.
        signal.alarm(int(limit) + 2)
        try:
            found = work()
        except Exception as error:  # Whatever one case does, the next is measured.
            found = {"error": f"{type(error).__name__}: {error}"[:300]}
        signal.alarm(0)
        emit(case, **found, took_s=time.monotonic() - begin)
        if DEVICE == "cuda":
            torch.cuda.empty_cache()
    watch.cancel()


main()
