// Causal attention over packed sequences, forward: no score matrix in memory. A block owns 64 queries of one head of one
// sequence (four warps of 16) and walks over the keys up to them, 64 at a time, with a running maximum and sum. Blocks of keys
// begin at the sequence's first, and hidden ones add nothing: a query has the same bits wherever the queries begin.

// What a block's sequence has: `len` queries, and the keys and values of `known` rows before them and of their own.
struct Sequence {
    const bf16 *q, *k, *v;
    u64 stride, past_stride;
    int known, len;
    bf16* out;   // of the first query and this head; a query's is `heads` heads further on
    float* lse;  // likewise; null where nobody asks
};

// Shared memory: the queries, then two stages of keys and values.
template <int D> DEVICE void attention_forward(const Sequence& here, int first, int heads, float scale_log2) {
    extern __shared__ __align__(128) u8 shared[];
    const int TILE = ROWS * D * 2;
    u32 tile_q = shared_address(shared), tile_k = tile_q + TILE, tile_v = tile_k + 2 * TILE;
    const bf16 *k = here.k, *v = here.v;
    int len = here.len, known = here.known, keys_len = known + len;
    u64 stride = here.past_stride;
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    int steps = (known + min(first + ROWS, len) + ROWS - 1) / ROWS;

    load_tile<D, 128>(tile_q, here.q, here.stride, first, len);
    load_tile<D, 128>(tile_k, k, stride, 0, keys_len);
    load_tile<D, 128>(tile_v, v, stride, 0, keys_len);
    commit();
    float acc[D / 8][4] = {};
    float top[2] = {-1e30f, -1e30f}, sum[2] = {0, 0};
    u32 fq[D / 16][4];
    int row = first + warp * 16 + (lane >> 2);
    for (int step = 0; step < steps; step++) {
        u32 keys = tile_k + (step & 1) * TILE, values = tile_v + (step & 1) * TILE;
        if (step + 1 < steps) {
            load_tile<D, 128>(tile_k + (~step & 1) * TILE, k, stride, (step + 1) * ROWS, keys_len);
            load_tile<D, 128>(tile_v + (~step & 1) * TILE, v, stride, (step + 1) * ROWS, keys_len);
            commit();
            wait<1>();
        } else {
            wait<0>();
        }
        __syncthreads();
        if (step == 0) {
            for (int kk = 0; kk < D / 16; kk++) a_fragment<D>(fq[kk], tile_q, warp * 16, kk);
        }
        float s[8][4] = {};
        product_held<D>(s, fq, keys);
        if ((step + 1) * ROWS > known + first + warp * 16) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    int column = step * ROWS + i * 8 + (lane & 3) * 2 + (j & 1);
                    if (column > known + row + (j >> 1) * 8) s[i][j] = -1e30f;
                }
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float most = top[h];
#pragma unroll
            for (int i = 0; i < 8; i++) most = fmaxf(most, fmaxf(s[i][2 * h], s[i][2 * h + 1]));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
            float shrink = exp2f((top[h] - most) * scale_log2), base = most * scale_log2;
            top[h] = most;
            sum[h] *= shrink;
#pragma unroll
            for (int i = 0; i < D / 8; i++) acc[i][2 * h] *= shrink, acc[i][2 * h + 1] *= shrink;
#pragma unroll
            for (int i = 0; i < 8; i++) {
                s[i][2 * h] = exp2f(s[i][2 * h] * scale_log2 - base);
                s[i][2 * h + 1] = exp2f(s[i][2 * h + 1] * scale_log2 - base);
                sum[h] += s[i][2 * h] + s[i][2 * h + 1];
            }
        }
        product_down<D>(acc, s, values);
        __syncthreads();
    }
    for (int h = 0; h < 2; h++) {
        sum[h] += __shfl_xor_sync(~0u, sum[h], 1);
        sum[h] += __shfl_xor_sync(~0u, sum[h], 2);
        int r = row + h * 8;
        if (r >= len) continue;
        u64 at = (u64)r * heads;
        float inverse = 1.0f / sum[h];
        for (int i = 0; i < D / 8; i++) {
            *(u32*)(here.out + at * D + i * 8 + (lane & 3) * 2) = pack(acc[i][2 * h] * inverse, acc[i][2 * h + 1] * inverse);
        }
        if (here.lse && (lane & 3) == 0) here.lse[at] = top[h] * scale_log2 * LN_2 + logf(sum[h]);
    }
}

// Whole sequences: keys and values stand beside the queries.
template <int D>
DEVICE void whole(int heads, int kv_heads, const u32* starts, const bf16* qkv, bf16* out, float* lse, float scale_log2) {
    int sequence = blockIdx.z, head = blockIdx.y;
    u64 start = starts[sequence], at = start * heads + head;
    int len = starts[sequence + 1] - start, first = (gridDim.x - 1 - blockIdx.x) * ROWS;  // the longest walks start first
    if (first >= len) return;
    u64 stride = (u64)(heads + 2 * kv_heads) * D;
    const bf16* q = qkv + start * stride;
    const bf16* k = q + (heads + head / (heads / kv_heads)) * D;
    attention_forward<D>({q + head * D, k, k + kv_heads * D, stride, stride, 0, len, out + at * D, lse + at}, first, heads, scale_log2);
}

// The ends of prompts: keys and values are in the cache, where a place says.
template <int D>
DEVICE void ends(int heads, int kv_heads, int capacity, const u32* starts, const bf16* qkv, const bf16* cache, const uint4* places,
                 bf16* out, float scale_log2) {
    int sequence = blockIdx.z, head = blockIdx.y;
    u64 start = starts[sequence];
    int len = starts[sequence + 1] - start, first = (gridDim.x - 1 - blockIdx.x) * ROWS;
    if (first >= len) return;
    uint4 place = places[sequence];  // its first row, its rows
    if ((u64)place.x + place.y > (u32)capacity || place.y < (u32)len) return;
    u64 stride = (u64)(heads + 2 * kv_heads) * D, past = (u64)2 * kv_heads * D;
    const bf16* k = cache + place.x * past + head / (heads / kv_heads) * D;
    const bf16* q = qkv + start * stride + head * D;
    bf16* to = out + (start * heads + head) * D;
    attention_forward<D>({q, k, k + kv_heads * D, stride, past, (int)place.y - len, len, to, 0}, first, heads, scale_log2);
}
#define FORWARD(D)                                                                                                              \
    extern "C" __global__ void __launch_bounds__(128, 2) attention_##D(int heads, int kv_heads, const u32* starts,              \
                                                                       const bf16* qkv, bf16* out, float* lse, float scale) {   \
        whole<D>(heads, kv_heads, starts, qkv, out, lse, scale);                                                                \
    }                                                                                                                           \
    extern "C" __global__ void __launch_bounds__(128, 2)                                                                        \
        prompt_attention_##D(int heads, int kv_heads, int capacity, const u32* starts, const bf16* qkv, const bf16* cache,      \
                             const uint4* places, bf16* out, float scale) {                                                     \
        ends<D>(heads, kv_heads, capacity, starts, qkv, cache, places, out, scale);                                             \
    }
FORWARD(64)
FORWARD(128)
