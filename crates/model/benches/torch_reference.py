"""PyTorch's side of `cargo run --release -p catamount-model --example bench`: the same model, the
same work, the same two cores.

    python torch_reference.py [THREADS]

Trains on packed-length batches (8 x 256 tokens, every token scored, AdamW) and samples with a KV
cache in eager mode.
"""

import resource
import sys
import time

import torch
import torch.nn.functional as F
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=4096,
    hidden_size=256,
    intermediate_size=704,
    num_hidden_layers=6,
    num_attention_heads=4,
    num_key_value_heads=4,
    max_position_embeddings=512,
    tie_word_embeddings=True,
    attn_implementation="sdpa",
)
model = LlamaForCausalLM(config).float()
tokens = torch.randint(0, 4096, (8, 257))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


def train_step():
    optimizer.zero_grad(set_to_none=True)
    logits = model(tokens[:, :-1], use_cache=False).logits
    F.cross_entropy(logits.reshape(-1, 4096), tokens[:, 1:].reshape(-1)).backward()
    optimizer.step()
    return tokens[:, 1:].numel()


def measure(what, work, repeats):
    """`work` returns how many tokens it handled."""
    work()
    rates, tokens, start, processor = [], 0, time.perf_counter(), time.process_time()
    for _ in range(repeats):
        begin = time.perf_counter()
        count = work()
        tokens += count
        rates.append(count / (time.perf_counter() - begin))
    used, wall = time.process_time() - processor, time.perf_counter() - start
    rate, memory = (
        sorted(rates)[repeats // 2],
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )
    print(
        f"{what:8} {rate:6.0f} tokens/s, {tokens / used:5.0f} per processor second, "
        f"{used / wall:.2f} cores busy, peak memory {memory:.0f} MiB"
    )


@torch.no_grad()
def equal(batch=32, prompt=64, new=64):
    """Equal lengths: every row of the batch is drawn to its end."""
    cache = DynamicCache()
    step = torch.randint(0, 4096, (batch, prompt))
    for _ in range(new):
        logits = model(step, past_key_values=cache, use_cache=True).logits[:, -1]
        step = torch.multinomial(torch.softmax(logits, -1), 1)
    return batch * new


lengths = torch.distributions.Geometric(1 / 12)


@torch.no_grad()
def search(states=128, samples=4, together=8, prompt=64, most=64):
    """As in a search: four samples of a state, which is computed once; tactics of 12 tokens on
    average, up to 64. A batch goes on until its longest tactic has ended; only the tokens of
    tactics count.
    """
    useful = 0
    for _ in range(states // together):
        cache = DynamicCache()
        logits = model(
            torch.randint(0, 4096, (together, prompt)), past_key_values=cache, use_cache=True
        ).logits[:, -1]
        cache.batch_repeat_interleave(samples)
        logits = logits.repeat_interleave(samples, 0)
        ends = (lengths.sample((together * samples,)) + 1).clamp(max=most)
        useful += int(ends.sum())
        for t in range(int(ends.max())):
            step = torch.multinomial(torch.softmax(logits, -1), 1)
            if t + 1 < int(ends.max()):
                logits = model(step, past_key_values=cache, use_cache=True).logits[:, -1]
    return useful


measure("train", train_step, 5)
model.eval()
measure("equal", equal, 3)
measure("search", search, 3)
