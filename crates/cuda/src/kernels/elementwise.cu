// Element by element: conversion, sums of tensors, SwiGLU, rows by index, the rotary embedding.

extern "C" __global__ void to_bf16(u64 n, const float* x, bf16* y) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) put(y + i, x[i]);
}

// y += x.
extern "C" __global__ void add(u64 n, const T* x, T* y) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) put(y + i, to_float(x[i]) + to_float(y[i]));
}

// Normal numbers from a counter (Box and Muller), for weights that never exist on the host.
extern "C" __global__ void randomize(u64 n, u64 key, float std, T* x) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u64 z = i + key * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    float u = ((float)(u32)(z >> 40) + 0.5f) * (1.0f / 16777216.0f), v = (float)(u32)(z & 0xffffff) * (1.0f / 16777216.0f);
    put(x + i, std * sqrtf(-2.0f * logf(u)) * cospif(2.0f * v));
}

// A token outside the vocabulary gives NaN, which shows in the loss, rather than a stray read.
template <int V> DEVICE void embed_row(int d, int vocab, const T* weight, u32 token, T* out) {
    for (int c = threadIdx.x * V; c < d; c += blockDim.x * V) {
        float v[V];
        if (token < (u32)vocab) {
            load<V>(weight + (u64)token * d + c, v);
        } else {
            for (int i = 0; i < V; i++) v[i] = NAN_F;
        }
        store<V>(out + c, v);
    }
}
extern "C" __global__ void embed(int d, int vocab, const T* weight, const u32* tokens, T* out) {
    u64 row = blockIdx.x;
    if (d % 8 == 0) embed_row<8>(d, vocab, weight, tokens[row], out + row * d);
    else embed_row<1>(d, vocab, weight, tokens[row], out + row * d);
}
// One block per row; the first row of each token adds all of that token's rows, in order: no atomics, the same sum every time.
extern "C" __global__ void embed_backward(int n, int d, int vocab, const T* dout, const u32* tokens, float* dweight) {
    __shared__ u32 found[32];
    int row = blockIdx.x, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    u32 token = tokens[row];
    int earlier = 0;
    for (int j = threadIdx.x; j < row; j += blockDim.x) earlier |= tokens[j] == token;
    if (__syncthreads_or(earlier) || token >= (u32)vocab) return;
    for (int first = row; first < n; first += blockDim.x) {
        int j = first + threadIdx.x;
        u32 mask = __ballot_sync(~0u, j < n && tokens[j] == token);
        if ((threadIdx.x & 31) == 0) found[warp] = mask;
        __syncthreads();
        for (int w = 0; w < warps; w++) {
            for (u32 bits = found[w]; bits; bits &= bits - 1) {
                const T* from = dout + (u64)(first + w * 32 + __ffs(bits) - 1) * d;
                for (int c = threadIdx.x; c < d; c += blockDim.x) dweight[(u64)token * d + c] += to_float(from[c]);
            }
        }
        __syncthreads();
    }
}

// `part`, where there is one, is what an adapter adds to the input: it is added first, and the input is left so.
template <int V> DEVICE void swiglu_at(u64 row, int c, int f, T* gate_up, const T* part, T* out) {
    float g[V], u[V];
    u64 at = row * 2 * f + c;
    load<V>(gate_up + at, g);
    load<V>(gate_up + at + f, u);
    if (part) {
        add_part<V>(part + at, g);
        add_part<V>(part + at + f, u);
        store<V>(gate_up + at, g);
        store<V>(gate_up + at + f, u);
    }
    for (int j = 0; j < V; j++) g[j] = g[j] / (1.0f + expf(-g[j])) * u[j];
    store<V>(out + row * f + c, g);
}
// grid (rows, stretches of a row)
extern "C" __global__ void swiglu(int f, T* gate_up, const T* part, T* out) {
    int i = blockIdx.y * blockDim.x + threadIdx.x;
    if (f % 8 == 0) {
        if (i * 8 < f) swiglu_at<8>(blockIdx.x, i * 8, f, gate_up, part, out);
    } else if (i < f) {
        swiglu_at<1>(blockIdx.x, i, f, gate_up, part, out);
    }
}
template <int V> DEVICE void swiglu_backward_at(u64 row, int c, int f, const T* gate_up, const T* dout, T* dgate_up) {
    float g[V], u[V], d[V];
    load<V>(gate_up + row * 2 * f + c, g);
    load<V>(gate_up + row * 2 * f + f + c, u);
    load<V>(dout + row * f + c, d);
    for (int j = 0; j < V; j++) {
        float s = 1.0f / (1.0f + expf(-g[j])), silu = g[j] * s;
        g[j] = d[j] * u[j] * (s + silu * (1.0f - s));
        u[j] = d[j] * silu;
    }
    store<V>(dgate_up + row * 2 * f + c, g);
    store<V>(dgate_up + row * 2 * f + f + c, u);
}
// grid (rows, stretches of a row)
extern "C" __global__ void swiglu_backward(int f, const T* gate_up, const T* dout, T* dgate_up) {
    int i = blockIdx.y * blockDim.x + threadIdx.x;
    if (f % 8 == 0) {
        if (i * 8 < f) swiglu_backward_at<8>(blockIdx.x, i * 8, f, gate_up, dout, dgate_up);
    } else if (i < f) {
        swiglu_backward_at<1>(blockIdx.x, i, f, gate_up, dout, dgate_up);
    }
}

// Rotates the query and key heads of a row, and keeps its keys and values at their slot in the cache, if there is one: one block
// per row, a thread per V pairs. `part` as above. Rows of heads whose half is a multiple of V are aligned to V.
template <int V>
DEVICE void rotate_row(int rotated, int half, int width, T* x, const T* part, const float* angles, float sign, int q, T* kept) {
    int pairs = rotated * half / V, rest = (width - rotated * 2 * half) / V;
    for (int i = threadIdx.x; i < pairs + rest; i += blockDim.x) {
        float u[V], v[V], cosine[V], sine[V];
        if (i >= pairs) {
            int c = rotated * 2 * half + (i - pairs) * V;
            load<V>(x + c, u);
            if (part) {
                add_part<V>(part + c, u);
                store<V>(x + c, u);
            }
            if (kept) store<V>(kept + c - q, u);
            continue;
        }
        int j = i % (half / V) * V, c = i / (half / V) * 2 * half + j;
        load<V>(x + c, u);
        load<V>(x + c + half, v);
        load<V>(angles + j, cosine);
        load<V>(angles + half + j, sine);
        if (part) {
            add_part<V>(part + c, u);
            add_part<V>(part + c + half, v);
        }
        for (int k = 0; k < V; k++) {
            float first = u[k] * cosine[k] - sign * v[k] * sine[k];
            v[k] = v[k] * cosine[k] + sign * u[k] * sine[k];
            u[k] = first;
        }
        store<V>(x + c, u);
        store<V>(x + c + half, v);
        if (kept && c >= q) {
            store<V>(kept + c - q, u);
            store<V>(kept + c - q + half, v);
        }
    }
}
extern "C" __global__ void rotate_rows(int rotated, int half, int width, int positions, T* qkv, const T* part, const u32* position,
                                       const float* table, float sign, int q, int capacity, const u32* slots, T* cache) {
    u64 row = blockIdx.x;
    u32 p = position[row], slot = cache ? slots[row] : ~0u;
    if (p >= (u32)positions) p = positions - 1;
    const float* angles = table + (u64)p * 2 * half;
    T* kept = slot < (u32)capacity ? cache + (u64)slot * (width - q) : 0;
    if (part) part += row * width;
    if (half % 8 == 0) rotate_row<8>(rotated, half, width, qkv + row * width, part, angles, sign, q, kept);
    else rotate_row<1>(rotated, half, width, qkv + row * width, part, angles, sign, q, kept);
}

template <int V> DEVICE void copy_row(int d, const T* from, T* to) {
    for (int c = threadIdx.x * V; c < d; c += blockDim.x * V) {
        float v[V];
        load<V>(from + c, v);
        store<V>(to + c, v);
    }
}
extern "C" __global__ void gather(int d, int n, const T* x, const u32* rows, T* out) {
    u64 row = blockIdx.x;
    u32 from = rows[row];
    if (from >= (u32)n) return;
    if (d % 8 == 0) copy_row<8>(d, x + (u64)from * d, out + row * d);
    else copy_row<1>(d, x + (u64)from * d, out + row * d);
}
extern "C" __global__ void scatter(int d, int n, const T* x, const u32* rows, T* out) {
    u64 row = blockIdx.x;
    u32 to = rows[row];
    if (to >= (u32)n) return;
    if (d % 8 == 0) copy_row<8>(d, x + row * d, out + (u64)to * d);
    else copy_row<1>(d, x + row * d, out + (u64)to * d);
}
// The keys and values of each row to its slot in the cache.
extern "C" __global__ void cache_write(int width, int q, int capacity, const T* qkv, const u32* slots, T* cache) {
    u64 row = blockIdx.x;
    u32 slot = slots[row];
    int kv = width - q;
    if (slot >= (u32)capacity) return;
    if (q % 8 == 0 && kv % 8 == 0) copy_row<8>(kv, qkv + row * width + q, cache + (u64)slot * kv);
    else copy_row<1>(kv, qkv + row * width + q, cache + (u64)slot * kv);
}

// The rows of prompts that are known, from where they are: grid (prompts, stretches).
extern "C" __global__ void cache_copy(int width, int capacity, const uint4* places, T* cache) {
    uint4 place = places[blockIdx.x];  // to, rows of the prompt, from, rows to copy
    if ((u64)max(place.x, place.z) + place.w > (u32)capacity) return;
    T *to = cache + (u64)place.x * width, *from = cache + (u64)place.z * width;
    u64 n = (u64)place.w * width, thread = blockIdx.y * blockDim.x + threadIdx.x, threads = gridDim.y * blockDim.x;
    const int V = 16 / sizeof(T);
    if (width % V == 0) {
        for (u64 i = thread; i < n / V; i += threads) ((uint4*)to)[i] = ((const uint4*)from)[i];
    } else {
        for (u64 i = thread; i < n; i += threads) to[i] = from[i];
    }
}

// LoRA's dropout as an operation of its own, where it cannot be part of the product: to = drop(from), or to += drop(from).
extern "C" __global__ void dropout(u64 n, u64 key, float p, int add, const T* from, T* to) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = keeps(key, p, i) ? to_float(from[i]) / (1.0f - p) : 0.0f;
    put(to + i, add ? to_float(to[i]) + x : x);
}
