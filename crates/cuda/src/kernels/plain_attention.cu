// Attention in any precision and for any head up to 256 numbers wide, a warp per query: what the fast kernels are compared
// with, and what runs where they do not apply.
#define PER_LANE 8

template <class N> DEVICE void load_head(const N* p, int dim, float* v) {
    for (int i = 0; i < PER_LANE; i++) {
        int c = i * 32 + (threadIdx.x & 31);
        v[i] = c < dim ? to_float(p[c]) : 0;
    }
}
template <class N> DEVICE void store_head(N* p, int dim, const float* v, float factor) {
    for (int i = 0; i < PER_LANE; i++) {
        int c = i * 32 + (threadIdx.x & 31);
        if (c < dim) put(p + c, v[i] * factor);
    }
}
DEVICE float dot(const float* a, const float* b) {
    float s = 0;
    for (int i = 0; i < PER_LANE; i++) s += a[i] * b[i];
    return warp_sum(s);
}

// A running softmax average of values.
struct Average {
    float top, sum, acc[PER_LANE];
    DEVICE void start() {
        top = -INFINITY_F;
        sum = 0;
        for (int i = 0; i < PER_LANE; i++) acc[i] = 0;
    }
    DEVICE void add(float s, const float* v) {
        float most = fmaxf(top, s), shrink = expf(top - most), p = expf(s - most);
        top = most;
        sum = sum * shrink + p;
        for (int i = 0; i < PER_LANE; i++) acc[i] = acc[i] * shrink + p * v[i];
    }
};

// A query's average over keys of `stride` numbers a row, up to its own, and the values `kv` numbers further on.
DEVICE Average look(const T* query, const T* k, u64 stride, int kv, int dim, int seen, float scale) {
    float q[PER_LANE], x[PER_LANE];
    load_head(query, dim, q);
    Average average;
    average.start();
    for (int j = 0; j < seen; j++) {
        load_head(k + j * stride, dim, x);
        float s = dot(q, x) * scale;
        load_head(k + j * stride + kv, dim, x);
        average.add(s, x);
    }
    return average;
}

// grid (rows of the longest sequence / warps, heads, sequences)
extern "C" __global__ void plain_attention(int heads, int kv_heads, int dim, const u32* starts, const T* qkv, T* out, float* lse,
                                           float scale) {
    int head = blockIdx.y, start = starts[blockIdx.z], len = starts[blockIdx.z + 1] - start;
    int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (row >= len) return;
    u64 stride = (u64)(heads + 2 * kv_heads) * dim;
    const T* k = qkv + start * stride + (heads + head / (heads / kv_heads)) * dim;
    Average average = look(qkv + (start + row) * stride + head * dim, k, stride, kv_heads * dim, dim, row + 1, scale);
    u64 at = (u64)(start + row) * heads + head;
    store_head(out + at * dim, dim, average.acc, 1.0f / average.sum);
    if ((threadIdx.x & 31) == 0) lse[at] = average.top + logf(average.sum);
}

// The ends of prompts that are in the cache: the same grid.
extern "C" __global__ void plain_prompt_attention(int heads, int kv_heads, int dim, int capacity, const u32* starts, const T* qkv,
                                                  const T* cache, const uint4* places, T* out, float scale) {
    int head = blockIdx.y, start = starts[blockIdx.z], len = starts[blockIdx.z + 1] - start;
    int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (row >= len) return;
    uint4 place = places[blockIdx.z];  // its first row, its rows
    if ((u64)place.x + place.y > (u32)capacity || place.y < (u32)len) return;
    u64 stride = (u64)(heads + 2 * kv_heads) * dim, past = (u64)2 * kv_heads * dim;
    const T* k = cache + place.x * past + head / (heads / kv_heads) * dim;
    const T* query = qkv + (start + row) * stride + head * dim;
    Average average = look(query, k, past, kv_heads * dim, dim, place.y - len + row + 1, scale);
    store_head(out + ((u64)(start + row) * heads + head) * dim, dim, average.acc, 1.0f / average.sum);
}

extern "C" __global__ void plain_query_gradient(int heads, int kv_heads, int dim, const u32* starts, const T* qkv, const T* out,
                                                const float* lse, const T* dout, T* dqkv, float scale) {
    int head = blockIdx.y, start = starts[blockIdx.z], len = starts[blockIdx.z + 1] - start;
    int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (row >= len) return;
    u64 stride = (u64)(heads + 2 * kv_heads) * dim, at = (u64)(start + row) * heads + head;
    const T* k = qkv + start * stride + (heads + head / (heads / kv_heads)) * dim;
    float q[PER_LANE], d[PER_LANE], x[PER_LANE], dq[PER_LANE] = {};
    load_head(qkv + (start + row) * stride + head * dim, dim, q);
    load_head(dout + at * dim, dim, d);
    load_head(out + at * dim, dim, x);
    float delta = dot(d, x), l = lse[at];
    for (int j = 0; j <= row; j++) {
        load_head(k + j * stride + kv_heads * dim, dim, x);
        float dp = dot(d, x);
        load_head(k + j * stride, dim, x);
        float ds = expf(dot(q, x) * scale - l) * (dp - delta);
        for (int i = 0; i < PER_LANE; i++) dq[i] += ds * x[i];
    }
    store_head(dqkv + (start + row) * stride + head * dim, dim, dq, scale);
}

// grid (rows of the longest sequence / warps, key/value heads, sequences)
extern "C" __global__ void plain_key_value_gradient(int heads, int kv_heads, int dim, const u32* starts, const T* qkv, const T* out,
                                                    const float* lse, const T* dout, T* dqkv, float scale) {
    int kv_head = blockIdx.y, start = starts[blockIdx.z], len = starts[blockIdx.z + 1] - start;
    int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5), group = heads / kv_heads;
    if (row >= len) return;
    u64 stride = (u64)(heads + 2 * kv_heads) * dim, at = (start + row) * stride + (heads + kv_head) * dim;
    float k[PER_LANE], v[PER_LANE], dk[PER_LANE] = {}, dv[PER_LANE] = {};
    load_head(qkv + at, dim, k);
    load_head(qkv + at + kv_heads * dim, dim, v);
    for (int head = kv_head * group; head < (kv_head + 1) * group; head++) {
        for (int j = row; j < len; j++) {
            u64 query = (u64)(start + j) * heads + head;
            float q[PER_LANE], d[PER_LANE], o[PER_LANE];
            load_head(qkv + (start + j) * stride + head * dim, dim, q);
            load_head(dout + query * dim, dim, d);
            load_head(out + query * dim, dim, o);
            float p = expf(dot(q, k) * scale - lse[query]), ds = p * (dot(d, v) - dot(d, o));
            for (int i = 0; i < PER_LANE; i++) dk[i] += ds * q[i], dv[i] += p * d[i];
        }
    }
    store_head(dqkv + at, dim, dk, scale);
    store_head(dqkv + at + kv_heads * dim, dim, dv, 1.0f);
}

// One decoded row and head per warp: grid (rows, heads).
extern "C" __global__ void plain_cache_attention(int heads, int kv_heads, int dim, int capacity, const T* qkv, const T* cache,
                                                 const uint4* spans, T* out, float scale) {
    int row = blockIdx.x, head = blockIdx.y;
    uint4 span = spans[row];  // prefix, its length, own, its length
    u64 kv = (u64)2 * kv_heads * dim;
    float q[PER_LANE], x[PER_LANE];
    load_head(qkv + (u64)row * (heads + 2 * kv_heads) * dim + head * dim, dim, q);
    Average average;
    average.start();
    for (u32 j = 0; j < span.y + span.w; j++) {
        u32 at = j < span.y ? span.x + j : span.z + j - span.y;
        if (at >= (u32)capacity) continue;
        const T* k = cache + at * kv + head / (heads / kv_heads) * dim;
        load_head(k, dim, x);
        float s = dot(q, x) * scale;
        load_head(k + kv_heads * dim, dim, x);
        average.add(s, x);
    }
    store_head(out + ((u64)row * heads + head) * dim, dim, average.acc, average.sum > 0 ? 1.0f / average.sum : 0.0f);
}
