"""PyTorch's side of `cargo run --release -p catamount-model --example bench`: the same model, the same work, the same two cores.

    python torch_reference.py [THREADS]

Trains on packed-length batches (8 x 256 tokens, every token scored, AdamW) and samples with a KV cache in eager mode.
"""

import sys
import time

import torch
import torch.nn.functional as F
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=4096, hidden_size=256, intermediate_size=704, num_hidden_layers=6, num_attention_heads=4,
    num_key_value_heads=4, max_position_embeddings=512, tie_word_embeddings=True, attn_implementation="sdpa",
)
model = LlamaForCausalLM(config).float()
tokens = torch.randint(0, 4096, (8, 257))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


def train_step():
    optimizer.zero_grad(set_to_none=True)
    logits = model(tokens[:, :-1], use_cache=False).logits
    F.cross_entropy(logits.reshape(-1, 4096), tokens[:, 1:].reshape(-1)).backward()
    optimizer.step()


def measure(what, work, count, repeats):
    work()
    rates, start, processor = [], time.perf_counter(), time.process_time()
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        rates.append(count / (time.perf_counter() - begin))
    used, wall = time.process_time() - processor, time.perf_counter() - start
    rate = sorted(rates)[repeats // 2]
    print(f"{what} {rate:.0f} tokens/s, {repeats * count / used:.0f} per processor second, {used / wall:.2f} cores busy")


@torch.no_grad()
def sample(batch=32, prompt=64, new=64):
    cache = DynamicCache()
    step = torch.randint(0, 4096, (batch, prompt))
    for _ in range(new):
        logits = model(step, past_key_values=cache, use_cache=True).logits[:, -1]
        step = torch.multinomial(torch.softmax(logits, -1), 1)


measure("train", train_step, 8 * 256, 5)
model.eval()
measure("sample", sample, 32 * 64, 1)
