// Attention of single decoded rows over their cached past. A block owns one row and one key/value head: the query heads that
// share it are the 16 rows of a tensor-core product, so keys and values are read once. Its warps take 16 tokens at a time each,
// and nothing passes through shared memory until their results are merged.

template <int D>
DEVICE void decode(int heads, int kv_heads, int capacity, const bf16* qkv, const bf16* cache, const uint4* spans, bf16* out,
                   float scale_log2) {
    const int WARPS = 4;
    __shared__ float tops[WARPS][16], sums[WARPS][16];
    __shared__ float parts[WARPS][16][D];
    int row = blockIdx.x, kv_head = blockIdx.y, group = heads / kv_heads;
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    uint4 span = spans[row];  // prefix, its length, own, its length
    int total = span.y + span.w;
    u64 kv = (u64)2 * kv_heads * D;
    const bf16* keys = cache + kv_head * D;
    const bf16* values = keys + kv_heads * D;

    // In each stretch of 32 numbers lane q holds numbers 8q.. of the row: sixteen contiguous bytes. The product's order of
    // summation is ours to choose, as long as queries and keys agree on it.
    u32 fq[D / 16][4];
    for (int c = 0; c < D / 32; c++) {
        for (int h = 0; h < 2; h++) {
            int head = g + h * 8;
            const bf16* from = qkv + (u64)row * (heads + 2 * kv_heads) * D + (kv_head * group + head) * D + c * 32 + q * 8;
            uint4 x = fetch(from, head < group);
            fq[2 * c][h] = x.x, fq[2 * c][2 + h] = x.y, fq[2 * c + 1][h] = x.z, fq[2 * c + 1][2 + h] = x.w;
        }
    }
    float acc[D / 8][4] = {};
    float top[2] = {-1e30f, -1e30f}, sum[2] = {0, 0};
    auto cache_row = [&](int j) -> u64 {
        u32 at = j < (int)span.y ? span.x + j : span.z + j - span.y;
        return (j < total && at < (u32)capacity) ? (u64)at : ~0ull;
    };
    for (int base = warp * 16; base < total; base += WARPS * 16) {
        uint4 k[2][D / 32], v[4][D / 64];
        for (int t = 0; t < 2; t++) {
            u64 at = cache_row(base + t * 8 + g);
            for (int c = 0; c < D / 32; c++) k[t][c] = fetch(keys + at * kv + c * 32 + q * 8, at != ~0ull);
        }
        for (int t = 0; t < 4; t++) {
            u64 at = cache_row(base + 2 * q + (t & 1) + (t >> 1) * 8);
            for (int c = 0; c < D / 64; c++) v[t][c] = fetch(values + at * kv + c * 64 + g * 8, at != ~0ull);
        }
        float s[2][4] = {};
#pragma unroll
        for (int t = 0; t < 2; t++) {
#pragma unroll
            for (int c = 0; c < D / 32; c++) {
                u32 first[2] = {k[t][c].x, k[t][c].y}, second[2] = {k[t][c].z, k[t][c].w};
                mma(s[t], fq[2 * c], first);
                mma(s[t], fq[2 * c + 1], second);
            }
        }
#pragma unroll
        for (int t = 0; t < 2; t++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (base + t * 8 + 2 * q + (j & 1) >= total) s[t][j] = -1e30f;
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float most = top[h];
            for (int t = 0; t < 2; t++) most = fmaxf(most, fmaxf(s[t][2 * h], s[t][2 * h + 1]));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
            float shrink = exp2f((top[h] - most) * scale_log2);
            top[h] = most;
            sum[h] *= shrink;
            for (int i = 0; i < D / 8; i++) acc[i][2 * h] *= shrink, acc[i][2 * h + 1] *= shrink;
            for (int t = 0; t < 2; t++) {
                for (int e = 0; e < 2; e++) {
                    s[t][2 * h + e] = exp2f((s[t][2 * h + e] - most) * scale_log2);
                    sum[h] += s[t][2 * h + e];
                }
            }
        }
        u32 p[4] = {pack(s[0][0], s[0][1]), pack(s[0][2], s[0][3]), pack(s[1][0], s[1][1]), pack(s[1][2], s[1][3])};
        // Column g of product i is number 8g + i of the stretch of 64: again sixteen contiguous bytes a lane.
#pragma unroll
        for (int c = 0; c < D / 64; c++) {
            u32 w[4][4];
            for (int t = 0; t < 4; t++) w[t][0] = v[t][c].x, w[t][1] = v[t][c].y, w[t][2] = v[t][c].z, w[t][3] = v[t][c].w;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                u32 even[2] = {pair_low(w[0][i], w[1][i]), pair_low(w[2][i], w[3][i])};
                u32 odd[2] = {pair_high(w[0][i], w[1][i]), pair_high(w[2][i], w[3][i])};
                mma(acc[c * 8 + 2 * i], p, even);
                mma(acc[c * 8 + 2 * i + 1], p, odd);
            }
        }
    }
    for (int h = 0; h < 2; h++) {
        sum[h] += __shfl_xor_sync(~0u, sum[h], 1);
        sum[h] += __shfl_xor_sync(~0u, sum[h], 2);
        int head = g + h * 8;
        if (head >= group) continue;
        if (q == 0) tops[warp][head] = top[h], sums[warp][head] = sum[h];
        for (int i = 0; i < D / 8; i++) {
            for (int e = 0; e < 2; e++) parts[warp][head][i / 8 * 64 + (2 * q + e) * 8 + i % 8] = acc[i][2 * h + e];
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < group * D; i += blockDim.x) {
        int head = i / D, c = i % D;
        float most = -1e30f, all = 0, x = 0;
        for (int w = 0; w < WARPS; w++) most = fmaxf(most, tops[w][head]);
        for (int w = 0; w < WARPS; w++) {
            float weight = exp2f((tops[w][head] - most) * scale_log2);
            all += weight * sums[w][head];
            x += weight * parts[w][head][c];
        }
        put(out + (u64)row * heads * D + kv_head * group * D + i, all > 0 ? x / all : 0.0f);
    }
}
#define DECODE(D)                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(128) decode_##D(int heads, int kv_heads, int capacity, const bf16* qkv,          \
                                                                 const bf16* cache, const uint4* spans, bf16* out, float scale) { \
        decode<D>(heads, kv_heads, capacity, qkv, cache, spans, out, scale);                                                      \
    }
DECODE(64)
DECODE(128)
