// Numbers of eight bits (e4m3) for products: each row of a matrix is divided by a scale of its own, which takes its largest
// number to the largest that there is. `round_to_fp8` in the reference says the same.

#define MOST_FP8 448.0f

// Four numbers, the first at the lowest address. GPUs without fp8 compile this, too, and never run it.
DEVICE u32 four_fp8(const float* v) {
#if __CUDA_ARCH__ >= 890
    u16 low, high;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(v[1]), "f"(v[0]));
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(v[3]), "f"(v[2]));
    return (u32)low | (u32)high << 16;
#else
    return 0x7f7f7f7f;
#endif
}

// What a row is multiplied by, and by `scale` its result. A row of zeros stays one.
DEVICE float inverse_scale(float top, float* scale) {
    top = fmaxf(top, 1e-30f);
    *scale = top * (1.0f / MOST_FP8);
    return MOST_FP8 / top;
}

// A block per row of `d` numbers, a multiple of sixteen.
extern "C" __global__ void rows_to_fp8(int d, const bf16* x, u8* out, float* scales) {
    u64 row = blockIdx.x;
    x += row * d, out += row * d;
    float top = 0, scale;
    for (int c = threadIdx.x * 8; c < d; c += blockDim.x * 8) {
        float v[8];
        load<8>(x + c, v);
        for (int i = 0; i < 8; i++) top = fmaxf(top, fabsf(v[i]));
    }
    float inverse = inverse_scale(block_max(top), &scale);
    if (threadIdx.x == 0) scales[row] = scale;
    for (int c = threadIdx.x * 8; c < d; c += blockDim.x * 8) {
        float v[8];
        load<8>(x + c, v);
        for (int i = 0; i < 8; i++) v[i] *= inverse;
        *(uint2*)(out + c) = make_uint2(four_fp8(v), four_fp8(v + 4));
    }
}

// The same of the transpose: a block per 32 columns of `rows` rows of `d` numbers, both multiples of sixteen; 256 threads.
extern "C" __global__ void columns_to_fp8(int rows, int d, const bf16* x, u8* out, float* scales) {
    __shared__ float tops[8][33], tile[32][33], inverses[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, column = blockIdx.x * 32 + lane;
    float top = 0;
    if (column < d) {
        for (int r = warp; r < rows; r += 8) top = fmaxf(top, fabsf(to_float(x[(u64)r * d + column])));
    }
    tops[warp][lane] = top;
    __syncthreads();
    if (warp == 0 && column < d) {
        for (int w = 1; w < 8; w++) top = fmaxf(top, tops[w][lane]);
        float scale;
        inverses[lane] = inverse_scale(top, &scale);
        scales[column] = scale;
    }
    __syncthreads();
    // A thread of the second half of the loop has four numbers of one column.
    int own = threadIdx.x >> 3, from = (threadIdx.x & 7) * 4;
    for (int first = 0; first < rows; first += 32) {
        for (int r = warp; r < 32; r += 8) {
            if (first + r < rows && column < d) tile[r][lane] = to_float(x[(u64)(first + r) * d + column]) * inverses[lane];
        }
        __syncthreads();
        if (first + from < rows && blockIdx.x * 32 + own < d) {
            float v[4];
            for (int i = 0; i < 4; i++) v[i] = tile[from + i][own];
            *(u32*)(out + (u64)(blockIdx.x * 32 + own) * rows + first + from) = four_fp8(v);
        }
        __syncthreads();
    }
}

// What the library leaves to be done where it cannot scale rows and columns itself: out = beta out + raw * scales (+ bias).
// grid (rows, stretches of a row of `d` numbers, a multiple of eight)
extern "C" __global__ void apply_scales(int d, const bf16* raw, const float* rows, const float* columns, const bf16* bias, float beta,
                                        bf16* out) {
    int c = (blockIdx.y * blockDim.x + threadIdx.x) * 8;
    if (c >= d) return;
    u64 at = (u64)blockIdx.x * d + c;
    float v[8], scale[8], e[8], row = rows[blockIdx.x];
    load<8>(raw + at, v);
    load<8>(columns + c, scale);
    for (int i = 0; i < 8; i++) v[i] *= row * scale[i];
    if (bias) {
        load<8>(bias + c, e);
        for (int i = 0; i < 8; i++) v[i] += e[i];
    }
    if (beta != 0.0f) {
        load<8>(out + at, e);
        for (int i = 0; i < 8; i++) v[i] += beta * e[i];
    }
    store<8>(out + at, v);
}
