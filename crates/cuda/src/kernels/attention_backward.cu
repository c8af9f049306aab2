// The gradient of attention, without a score matrix and without atomics, so that it is the same every time: one kernel
// computes the probabilities again for the queries' gradient, another for the keys' and values'.

// A block owns 64 queries of one head and walks over the keys up to them. It also leaves delta, each row's sum(dout * out), for
// the other kernel.
// Shared memory: queries, dout, then two stages of keys and values.
template <int D>
DEVICE void query_gradient(int heads, int kv_heads, const u32* starts, const bf16* qkv, const bf16* out, const float* lse,
                           const bf16* dout, float* delta, bf16* dqkv, float scale) {
    extern __shared__ __align__(128) u8 shared[];
    const int TILE = ROWS * D * 2;
    u32 tile_q = shared_address(shared), tile_d = tile_q + TILE, tile_k = tile_d + TILE, tile_v = tile_k + 2 * TILE;
    int sequence = blockIdx.z, head = blockIdx.y;
    int start = starts[sequence], len = starts[sequence + 1] - start;
    int first = (gridDim.x - 1 - blockIdx.x) * ROWS;
    if (first >= len) return;
    u64 stride = (u64)(heads + 2 * kv_heads) * D, out_stride = (u64)heads * D;
    int kv_head = head / (heads / kv_heads);
    const bf16* q = qkv + start * stride + head * D;
    const bf16* k = qkv + start * stride + (heads + kv_head) * D;
    const bf16* v = k + kv_heads * D;
    const bf16* d = dout + start * out_stride + head * D;
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    int steps = (min(first + ROWS, len) + ROWS - 1) / ROWS;

    load_tile<D, 128>(tile_q, q, stride, first, len);
    load_tile<D, 128>(tile_d, d, out_stride, first, len);
    load_tile<D, 128>(tile_k, k, stride, 0, len);
    load_tile<D, 128>(tile_v, v, stride, 0, len);
    commit();
    int row = first + warp * 16 + (lane >> 2);
    float row_lse[2], row_delta[2];
    for (int h = 0; h < 2; h++) {
        int r = row + h * 8;
        u64 at = (u64)(start + min(r, len - 1)) * heads + head;
        // Rows past the end get probability zero.
        row_lse[h] = r < len ? lse[at] * LOG2_E : 1e30f;
        float sum = 0;
        for (int c = (lane & 3) * 8; c < D; c += 32) {
            float a[8], b[8];
            load<8>(out + at * D + c, a);
            load<8>(dout + at * D + c, b);
            for (int i = 0; i < 8; i++) sum += a[i] * b[i];
        }
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        row_delta[h] = sum;
        if (r < len && (lane & 3) == 0) delta[at] = sum;
    }
    float acc[D / 8][4] = {};
    float scale_log2 = scale * LOG2_E;
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
        float s[8][4] = {}, dp[8][4] = {};
        product_rows<D>(s, tile_q, warp * 16, keys);
        product_rows<D>(dp, tile_d, warp * 16, values);
        bool diagonal = (step + 1) * ROWS > first + warp * 16;
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                int column = step * ROWS + i * 8 + (lane & 3) * 2 + (j & 1), h = j >> 1;
                float p = exp2f(s[i][j] * scale_log2 - row_lse[h]);
                if (diagonal && column > row + h * 8) p = 0;
                s[i][j] = p * (dp[i][j] - row_delta[h]);
            }
        }
        product_down<D>(acc, s, keys);
        __syncthreads();
    }
    for (int h = 0; h < 2; h++) {
        if (row + h * 8 >= len) continue;
        bf16* to = dqkv + (start + row + h * 8) * stride + head * D;
        for (int i = 0; i < D / 8; i++) {
            *(u32*)(to + i * 8 + (lane & 3) * 2) = pack(acc[i][2 * h] * scale, acc[i][2 * h + 1] * scale);
        }
    }
}

// A block owns 64 keys and values and walks over the queries of one query head from them on. With grouped queries each
// query head's part goes to `parts` ([n, heads, 2, D]) and is summed afterwards; otherwise it goes straight to its place.
// Shared memory: keys, values, then two stages of queries and dout, then two stages of their lse and delta.
template <int D>
DEVICE void key_value_gradient(int heads, int kv_heads, const u32* starts, const bf16* qkv, const float* lse, const bf16* dout,
                               const float* delta, bf16* dqkv, bf16* parts, float scale) {
    extern __shared__ __align__(128) u8 shared[];
    const int TILE = ROWS * D * 2;
    u32 tile_k = shared_address(shared), tile_v = tile_k + TILE, tile_q = tile_v + TILE, tile_d = tile_q + 2 * TILE;
    float* statistics = (float*)(shared + 6 * TILE);  // [stage][lse, delta][ROWS]
    int sequence = blockIdx.z, head = blockIdx.y;
    int start = starts[sequence], len = starts[sequence + 1] - start;
    int first = blockIdx.x * ROWS;
    if (first >= len) return;
    u64 stride = (u64)(heads + 2 * kv_heads) * D, out_stride = (u64)heads * D;
    int kv_head = head / (heads / kv_heads);
    const bf16* q = qkv + start * stride + head * D;
    const bf16* k = qkv + start * stride + (heads + kv_head) * D;
    const bf16* v = k + kv_heads * D;
    const bf16* d = dout + start * out_stride + head * D;
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    int step0 = first / ROWS, steps = (len + ROWS - 1) / ROWS;
    auto fetch = [&](int step) {
        int stage = (step - step0) & 1;
        load_tile<D, 128>(tile_q + stage * TILE, q, stride, step * ROWS, len);
        load_tile<D, 128>(tile_d + stage * TILE, d, out_stride, step * ROWS, len);
        commit();
        int which = threadIdx.x / ROWS, r = step * ROWS + threadIdx.x % ROWS;
        u64 at = (u64)(start + min(r, len - 1)) * heads + head;
        float x = which ? delta[at] : lse[at] * LOG2_E;
        statistics[stage * 2 * ROWS + threadIdx.x] = r < len ? x : (which ? 0.0f : 1e30f);
    };

    load_tile<D, 128>(tile_k, k, stride, first, len);
    load_tile<D, 128>(tile_v, v, stride, first, len);
    fetch(step0);
    float dk[D / 8][4] = {}, dv[D / 8][4] = {};
    float scale_log2 = scale * LOG2_E;
    int row = first + warp * 16 + (lane >> 2);
    for (int step = step0; step < steps; step++) {
        int stage = (step - step0) & 1;
        if (step + 1 < steps) {
            fetch(step + 1);
            wait<1>();
        } else {
            wait<0>();
        }
        __syncthreads();
        u32 queries = tile_q + stage * TILE, gradients = tile_d + stage * TILE;
        const float* st = statistics + stage * 2 * ROWS;
        float p[8][4] = {};
        product_rows<D>(p, tile_k, warp * 16, queries);
        bool diagonal = step * ROWS < first + warp * 16 + 16;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int c = i * 8 + (lane & 3) * 2;
            float2 l = *(const float2*)(st + c);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                p[i][j] = exp2f(p[i][j] * scale_log2 - ((j & 1) ? l.y : l.x));
                if (diagonal && step * ROWS + c + (j & 1) < row + (j >> 1) * 8) p[i][j] = 0;
            }
        }
        product_down<D>(dv, p, gradients);
        float ds[8][4] = {};
        product_rows<D>(ds, tile_v, warp * 16, gradients);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float2 e = *(const float2*)(st + ROWS + i * 8 + (lane & 3) * 2);
#pragma unroll
            for (int j = 0; j < 4; j++) ds[i][j] = p[i][j] * (ds[i][j] - ((j & 1) ? e.y : e.x));
        }
        product_down<D>(dk, ds, queries);
        __syncthreads();
    }
    for (int h = 0; h < 2; h++) {
        if (row + h * 8 >= len) continue;
        u64 at = start + row + h * 8;
        bf16* to_k = parts ? parts + (at * heads + head) * 2 * D : dqkv + at * stride + (heads + kv_head) * D;
        bf16* to_v = parts ? to_k + D : to_k + kv_heads * D;
        for (int i = 0; i < D / 8; i++) {
            int c = i * 8 + (lane & 3) * 2;
            *(u32*)(to_k + c) = pack(dk[i][2 * h] * scale, dk[i][2 * h + 1] * scale);
            *(u32*)(to_v + c) = pack(dv[i][2 * h], dv[i][2 * h + 1]);
        }
    }
}

// Sums the query heads' parts of each key and value head: a thread per eight numbers.
extern "C" __global__ void sum_key_value_parts(u64 n, int heads, int kv_heads, int dim, const bf16* parts, bf16* dqkv) {
    int group = heads / kv_heads, chunks = kv_heads * 2 * dim / 8;
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * chunks) return;
    u64 row = i / chunks;
    int c = (int)(i % chunks) * 8;  // in [2][kv_heads][dim]
    int value = c / (kv_heads * dim), kv_head = c % (kv_heads * dim) / dim, at = c % dim;
    float sum[8] = {};
    for (int g = 0; g < group; g++) {
        float x[8];
        load<8>(parts + ((row * heads + kv_head * group + g) * 2 + value) * dim + at, x);
        for (int j = 0; j < 8; j++) sum[j] += x[j];
    }
    store<8>(dqkv + row * (heads + 2 * kv_heads) * dim + heads * dim + c, sum);
}

#define BACKWARD(D)                                                                                                             \
    extern "C" __global__ void __launch_bounds__(128, 2)                                                                        \
        query_gradient_##D(int heads, int kv_heads, const u32* starts, const bf16* qkv, const bf16* out, const float* lse,      \
                           const bf16* dout, float* delta, bf16* dqkv, float scale) {                                           \
        query_gradient<D>(heads, kv_heads, starts, qkv, out, lse, dout, delta, dqkv, scale);                                    \
    }                                                                                                                           \
    extern "C" __global__ void __launch_bounds__(128, 2)                                                                        \
        key_value_gradient_##D(int heads, int kv_heads, const u32* starts, const bf16* qkv, const float* lse, const bf16* dout, \
                               const float* delta, bf16* dqkv, bf16* parts, float scale) {                                      \
        key_value_gradient<D>(heads, kv_heads, starts, qkv, lse, dout, delta, dqkv, parts, scale);                              \
    }
BACKWARD(64)
BACKWARD(128)
