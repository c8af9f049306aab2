// The low-rank products, each reading its wide matrix once: with a rank of 16 they move bytes, they do not compute. Dropout is
// decided as elements pass by. Which column of a product a lane owns, and in which order it sums, is ours to choose: always
// so that a lane reads sixteen contiguous bytes.

// Zeroes what dropout drops among the eight numbers from element `i` on; survivors are scaled later.
DEVICE uint4 dropped(uint4 x, u64 key, float p, u64 i) {
    u32 w[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if (!keeps(key, p, i + 2 * j)) w[j] &= 0xffff0000u;
        if (!keeps(key, p, i + 2 * j + 1)) w[j] &= 0x0000ffffu;
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}

// to[j, c] = from[c, j] within each part: B becomes what the inner product reads.
extern "C" __global__ void transpose_parts(Parts parts, int rank, const bf16* from, bf16* to) {
    int part = blockIdx.y, len = parts.len[part], c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= len) return;
    u64 offset = before(parts, part) * rank;
    for (int j = 0; j < rank; j++) to[offset + (u64)j * len + c] = from[offset + (u64)c * rank + j];
}

// Wide to narrow: t[row, part * rows_of_m + j] = factor * sum_k drop(x)[row, begin + k] * m_part[j, k].
// A block owns 32 rows and a slice of k, which its eight warps share out 32 at a time; the block that finishes last adds the slices
// up, in their order. grid (rows / 32, parts, j / (8 NT) * slices).
template <int NT, bool DROP>
DEVICE void inner(int n, Parts parts, int rows_of_m, const bf16* __restrict__ x, int x_stride, const bf16* __restrict__ m, bf16* t,
                  int t_stride, float factor, u64 key, float p, int slices, float* partials, u32* counters) {
    // Lines are padded, so that a warp's rows do not meet in one bank.
    const int SIZE = 32 * NT * 8, LINE = NT * 8 + 8;
    __shared__ float sums[4][32 * LINE];
    __shared__ u32 earlier;
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    int part = blockIdx.y, len = parts.len[part], j0 = blockIdx.z / slices * NT * 8, slice = blockIdx.z % slices;
    int row = blockIdx.x * 32 + g;
    m += before(parts, part) * rows_of_m;
    const bf16* from = x + (u64)row * x_stride + parts.begin[part];
    float acc[2][NT][4] = {};
    int chunks = (len + 255) / 256, end = min(len, (slice + 1) * chunks / slices * 256);
#pragma unroll(NT <= 2 ? 2 : 1)
    for (int k = slice * chunks / slices * 256 + warp * 32 + q * 8; k < end; k += 256) {
        uint4 a[4], b[NT];
#pragma unroll
        for (int h = 0; h < 4; h++) a[h] = fetch(from + (u64)h * 8 * x_stride + k, row + h * 8 < n);
#pragma unroll
        for (int i = 0; i < NT; i++) b[i] = fetch(m + (u64)(j0 + i * 8 + g) * len + k, j0 + i * 8 + g < rows_of_m);
        if (DROP) {
#pragma unroll
            for (int h = 0; h < 4; h++) a[h] = dropped(a[h], key, p, (u64)(row + h * 8) * x_stride + parts.begin[part] + k);
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            uint4 u = a[2 * h], v = a[2 * h + 1];
            u32 first[4] = {u.x, v.x, u.y, v.y}, second[4] = {u.z, v.z, u.w, v.w};
#pragma unroll
            for (int i = 0; i < NT; i++) {
                u32 b1[2] = {b[i].x, b[i].y}, b2[2] = {b[i].z, b[i].w};
                mma(acc[h][i], first, b1);
                mma(acc[h][i], second, b2);
            }
        }
    }
    for (int round = 1; round >= 0; round--) {
        if ((warp >> 2) == round) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
#pragma unroll
                for (int i = 0; i < NT; i++) {
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        float* to = &sums[warp & 3][(h * 16 + g + (e >> 1) * 8) * LINE + i * 8 + 2 * q + (e & 1)];
                        *to = round ? acc[h][i][e] : *to + acc[h][i][e];
                    }
                }
            }
        }
        __syncthreads();
    }
    u64 group = ((u64)blockIdx.z / slices * gridDim.y + part) * gridDim.x + blockIdx.x;
    float* mine = partials + group * slices * SIZE;
    if (slices > 1) {
        for (int i = threadIdx.x; i < SIZE; i += blockDim.x) {
            int at = i / (NT * 8) * LINE + i % (NT * 8);
            mine[slice * SIZE + i] = sums[0][at] + sums[1][at] + sums[2][at] + sums[3][at];
        }
        __threadfence();
        __syncthreads();
        // The counter returns to zero with the last block.
        if (threadIdx.x == 0) earlier = atomicInc(counters + group, slices - 1);
        __syncthreads();
        if (earlier != slices - 1) return;
        __threadfence();
    }
    // Four columns a thread, and all slices of them on their way at once: this is what the whole kernel waits for.
    for (int i = threadIdx.x * 4; i < SIZE; i += blockDim.x * 4) {
        int r = blockIdx.x * 32 + i / (NT * 8), j = j0 + i % (NT * 8), at = i / (NT * 8) * LINE + i % (NT * 8);
        float sum[4] = {};
        if (slices > 1) {
            for (int first = 0; first < slices; first += 16) {
                float4 v[16];
#pragma unroll
                for (int s = 0; s < 16; s++) {
                    bool valid = first + s < slices;
                    v[s] = valid ? __ldcg((const float4*)(mine + (first + s) * SIZE + i)) : make_float4(0, 0, 0, 0);
                }
#pragma unroll
                for (int s = 0; s < 16; s++) sum[0] += v[s].x, sum[1] += v[s].y, sum[2] += v[s].z, sum[3] += v[s].w;
            }
        } else {
            for (int e = 0; e < 4; e++) sum[e] = sums[0][at + e] + sums[1][at + e] + sums[2][at + e] + sums[3][at + e];
        }
        for (int e = 0; e < 4; e++) {
            if (r < n && j + e < rows_of_m) put(t + (u64)r * t_stride + part * rows_of_m + j + e, sum[e] * factor);
        }
    }
}
#define INNER(NAME, NT, DROP)                                                                                                           \
    extern "C" __global__ void __launch_bounds__(256, NT < 8 ? 2 : 1)                                                                     \
        NAME(int n, Parts parts, int rows_of_m, const bf16* x, int x_stride, const bf16* m, bf16* t, int t_stride, float factor, u64 key, \
             float p, int slices, float* partials, u32* counters) {                                                                     \
        inner<NT, DROP>(n, parts, rows_of_m, x, x_stride, m, t, t_stride, factor, key, p, slices, partials, counters);                  \
    }
INNER(lora_inner_2, 2, false)
INNER(lora_inner_4, 4, false)
INNER(lora_inner_6, 6, false)
INNER(lora_inner_8, 8, false)
INNER(lora_inner_drop_2, 2, true)
INNER(lora_inner_drop_4, 4, true)
INNER(lora_inner_drop_6, 6, true)
INNER(lora_inner_drop_8, 8, true)

// Narrow to wide: y[row, begin + c] = drop(factor * sum_k t[row, part * depth + k] * m_part(c, k)). `down` says that m is
// stored [k, columns] (A, for the input's gradient) rather than [columns, k] (B, for the output); `add` adds to what y
// holds. A warp owns 32 columns, keeps their part of m in registers and walks over rows, 32 at a time. grid (columns / 128, rows / 128, parts).
template <int KS, bool DROP>
DEVICE void outer(int n, Parts parts, int depth, const bf16* __restrict__ t, int t_stride, const bf16* __restrict__ m, int down, bf16* y,
                  int y_stride, float factor, u64 key, float p, int add) {
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    int part = blockIdx.z, len = parts.len[part], column = blockIdx.x * 128 + (warp & 3) * 32;
    if (column >= len) return;
    m += before(parts, part) * depth;
    const u16* bits = (const u16*)m;
    u32 b[KS][4][2];
#pragma unroll
    for (int s = 0; s < KS; s++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int c = column + (g >> 1) * 8 + i * 2 + (g & 1);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int k = s * 16 + 2 * q + h * 8;
                u32 x = 0;
                if (k < depth) {
                    x = down ? bits[(u64)k * len + c] | (u32)bits[(u64)(k + 1) * len + c] << 16
                             : *(const u32*)(m + (u64)c * depth + k);
                }
                b[s][i][h] = x;
            }
        }
    }
    const bf16* from = t + part * depth;
    bf16* to = y + parts.begin[part] + column + q * 8;
    int end = min(n, (int)(blockIdx.y + 1) * 128);
    for (int first = blockIdx.y * 128 + (warp >> 2) * 32; first < end; first += 64) {
        int row = first + g;
        uint4 old[4];
#pragma unroll
        for (int h = 0; h < 4; h++) old[h] = fetch(to + (u64)(row + h * 8) * y_stride, add && row + h * 8 < n);
        float acc[2][4][4] = {};
#pragma unroll
        for (int s = 0; s < KS; s++) {
#pragma unroll
            for (int tile = 0; tile < 2; tile++) {
                u32 a[4];
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    int r = row + tile * 16 + (e & 1) * 8, k = s * 16 + 2 * q + (e >> 1) * 8;
                    a[e] = r < n && k < depth ? *(const u32*)(from + (u64)r * t_stride + k) : 0;
                }
#pragma unroll
                for (int i = 0; i < 4; i++) mma(acc[tile][i], a, b[s][i]);
            }
        }
#pragma unroll
        for (int h = 0; h < 4; h++) {
            int r = row + h * 8;
            if (r >= n) continue;
            u32 w[4] = {old[h].x, old[h].y, old[h].z, old[h].w};
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float u = acc[h >> 1][i][2 * (h & 1)] * factor, v = acc[h >> 1][i][2 * (h & 1) + 1] * factor;
                if (DROP) {
                    u64 at = (u64)r * y_stride + parts.begin[part] + column + q * 8 + i * 2;
                    u = keeps(key, p, at) ? u : 0;
                    v = keeps(key, p, at + 1) ? v : 0;
                }
                w[i] = pack(low_half(w[i]) + u, high_half(w[i]) + v);
            }
            *(uint4*)(to + (u64)r * y_stride) = make_uint4(w[0], w[1], w[2], w[3]);
        }
    }
}
#define OUTER(NAME, KS, DROP)                                                                                                           \
    extern "C" __global__ void __launch_bounds__(256, KS < 3 ? 3 : 2)                                                                                \
        NAME(int n, Parts parts, int depth, const bf16* t, int t_stride, const bf16* m, int down, bf16* y, int y_stride, float factor,    \
             u64 key, float p, int add) {                                                                                               \
        outer<KS, DROP>(n, parts, depth, t, t_stride, m, down, y, y_stride, factor, key, p, add);                                       \
    }
OUTER(lora_outer_1, 1, false)
OUTER(lora_outer_2, 2, false)
OUTER(lora_outer_3, 3, false)
OUTER(lora_outer_6, 6, false)
OUTER(lora_outer_drop_1, 1, true)
OUTER(lora_outer_drop_2, 2, true)
OUTER(lora_outer_drop_3, 3, true)
OUTER(lora_outer_drop_6, 6, true)

// Gradient of a narrow matrix: grad[c * c_stride + j * j_stride] += factor * sum_row drop(x)[row, begin + c] * t[row, part * width + j],
// where part p's gradient starts at column_before(p) * c_stride. A block owns 64 columns and all rows, which its warps share
// out 16 at a time; their sums are added in a fixed order. grid (columns / 64, j / (16 JT), parts).
template <int JT, bool DROP>
DEVICE void gradient(int n, Parts parts, int width, const bf16* __restrict__ x, int x_stride, const bf16* __restrict__ t, int t_stride,
                     float* grad, int c_stride, int j_stride, float factor, u64 key, float p) {
    extern __shared__ float sums[];  // [4][16 JT][66]
    const int LINE = 66, SLAB = 16 * JT * LINE;
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    int part = blockIdx.z, len = parts.len[part], column = blockIdx.x * 64, j0 = blockIdx.y * 16 * JT;
    if (column >= len) return;
    bool inside = column + g * 8 < len;
    const bf16* from = x + parts.begin[part] + column + g * 8;
    float acc[JT][8][4] = {};
#pragma unroll 2
    for (int first = warp * 16; first < n; first += blockDim.x / 2) {
        uint4 wide[4];
        u32 narrow[JT][4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int row = first + 2 * q + (i & 1) + (i >> 1) * 8;
            wide[i] = fetch(from + (u64)row * x_stride, inside && row < n);
#pragma unroll
            for (int jt = 0; jt < JT; jt++) {
                int j = j0 + jt * 16 + 2 * g;
                narrow[jt][i] = j < width && row < n ? *(const u32*)(t + (u64)row * t_stride + part * width + j) : 0;
            }
            if (DROP) wide[i] = dropped(wide[i], key, p, (u64)row * x_stride + parts.begin[part] + column + g * 8);
        }
        u32 a[JT][4];
#pragma unroll
        for (int jt = 0; jt < JT; jt++) {
            a[jt][0] = pair_low(narrow[jt][0], narrow[jt][1]), a[jt][1] = pair_high(narrow[jt][0], narrow[jt][1]);
            a[jt][2] = pair_low(narrow[jt][2], narrow[jt][3]), a[jt][3] = pair_high(narrow[jt][2], narrow[jt][3]);
        }
        u32 w[4][4];
#pragma unroll
        for (int i = 0; i < 4; i++) w[i][0] = wide[i].x, w[i][1] = wide[i].y, w[i][2] = wide[i].z, w[i][3] = wide[i].w;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            u32 even[2] = {pair_low(w[0][i], w[1][i]), pair_low(w[2][i], w[3][i])};
            u32 odd[2] = {pair_high(w[0][i], w[1][i]), pair_high(w[2][i], w[3][i])};
#pragma unroll
            for (int jt = 0; jt < JT; jt++) {
                mma(acc[jt][2 * i], a[jt], even);
                mma(acc[jt][2 * i + 1], a[jt], odd);
            }
        }
    }
    int last = blockDim.x / 128 - 1;
    for (int round = last; round >= 0; round--) {
        if ((warp >> 2) == round) {
            float* slab = sums + (warp & 3) * SLAB;
#pragma unroll
            for (int jt = 0; jt < JT; jt++) {
#pragma unroll
                for (int i = 0; i < 8; i++) {
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        float* to = slab + (jt * 16 + 2 * g + (e >> 1)) * LINE + 16 * q + (e & 1) * 8 + i;
                        *to = round == last ? acc[jt][i][e] : *to + acc[jt][i][e];
                    }
                }
            }
        }
        __syncthreads();
    }
    grad += before(parts, part) * c_stride;
    for (int i = threadIdx.x; i < 16 * JT * 64; i += blockDim.x) {
        // Neighbouring threads take neighbouring addresses in either layout.
        int j = c_stride == 1 ? i / 64 : i % (16 * JT), c = c_stride == 1 ? i % 64 : i / (16 * JT);
        if (j0 + j >= width || column + c >= len) continue;
        const float* s = sums + j * LINE + c;
        grad[(u64)(column + c) * c_stride + (u64)(j0 + j) * j_stride] += factor * (s[0] + s[SLAB] + s[2 * SLAB] + s[3 * SLAB]);
    }
}
#define GRADIENT(NAME, JT, DROP, THREADS)                                                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                               \
        NAME(int n, Parts parts, int width, const bf16* x, int x_stride, const bf16* t, int t_stride, float* grad, int c_stride,          \
             int j_stride, float factor, u64 key, float p) {                                                                            \
        gradient<JT, DROP>(n, parts, width, x, x_stride, t, t_stride, grad, c_stride, j_stride, factor, key, p);                        \
    }
GRADIENT(lora_gradient_1, 1, false, 512)
GRADIENT(lora_gradient_2, 2, false, 512)
GRADIENT(lora_gradient_3, 3, false, 256)
GRADIENT(lora_gradient_drop_1, 1, true, 512)
GRADIENT(lora_gradient_drop_2, 2, true, 512)
GRADIENT(lora_gradient_drop_3, 3, true, 256)
