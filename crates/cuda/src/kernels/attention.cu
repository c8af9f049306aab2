// Causal attention over packed sequences, forward: no score matrix in memory. A block owns 64 queries of one head of one
// sequence (four warps of 16) and walks over the keys up to them, 64 at a time, with a running maximum and sum.

// Shared memory: the queries, then two stages of keys and values.
template <int D>
DEVICE void attention_forward(int heads, int kv_heads, const u32* starts, const bf16* qkv, bf16* out, float* lse, float scale_log2) {
    extern __shared__ __align__(128) u8 shared[];
    const int TILE = ROWS * D * 2;
    u32 tile_q = shared_address(shared), tile_k = tile_q + TILE, tile_v = tile_k + 2 * TILE;
    int sequence = blockIdx.z, head = blockIdx.y;
    int start = starts[sequence], len = starts[sequence + 1] - start;
    int first = (gridDim.x - 1 - blockIdx.x) * ROWS;  // the longest walks start first
    if (first >= len) return;
    u64 stride = (u64)(heads + 2 * kv_heads) * D;
    int kv_head = head / (heads / kv_heads);
    const bf16* q = qkv + start * stride + head * D;
    const bf16* k = qkv + start * stride + (heads + kv_head) * D;
    const bf16* v = k + kv_heads * D;
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    int steps = (min(first + ROWS, len) + ROWS - 1) / ROWS;

    load_tile<D, 128>(tile_q, q, stride, first, len);
    load_tile<D, 128>(tile_k, k, stride, 0, len);
    load_tile<D, 128>(tile_v, v, stride, 0, len);
    commit();
    float acc[D / 8][4] = {};
    float top[2] = {-1e30f, -1e30f}, sum[2] = {0, 0};
    u32 fq[D / 16][4];
    int row = first + warp * 16 + (lane >> 2);
    for (int step = 0; step < steps; step++) {
        u32 keys = tile_k + (step & 1) * TILE, values = tile_v + (step & 1) * TILE;
        if (step + 1 < steps) {
            load_tile<D, 128>(tile_k + (~step & 1) * TILE, k, stride, (step + 1) * ROWS, len);
            load_tile<D, 128>(tile_v + (~step & 1) * TILE, v, stride, (step + 1) * ROWS, len);
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
        if ((step + 1) * ROWS > first + warp * 16) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    int column = step * ROWS + i * 8 + (lane & 3) * 2 + (j & 1);
                    if (column > row + (j >> 1) * 8) s[i][j] = -1e30f;
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
        u64 at = (u64)(start + r) * heads + head;
        float inverse = 1.0f / sum[h];
        for (int i = 0; i < D / 8; i++) {
            *(u32*)(out + at * D + i * 8 + (lane & 3) * 2) = pack(acc[i][2 * h] * inverse, acc[i][2 * h + 1] * inverse);
        }
        if ((lane & 3) == 0) lse[at] = top[h] * scale_log2 * LN_2 + logf(sum[h]);
    }
}
#define FORWARD(NAME, D)                                                                                                      \
    extern "C" __global__ void __launch_bounds__(128, 2)                                                                      \
        NAME(int heads, int kv_heads, const u32* starts, const bf16* qkv, bf16* out, float* lse, float scale_log2) {          \
        attention_forward<D>(heads, kv_heads, starts, qkv, out, lse, scale_log2);                                             \
    }
FORWARD(attention_64, 64)
FORWARD(attention_128, 128)
