// What every kernel file starts with. No CUDA header is needed: bf16 is handled as its bits.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct bf16 {
    u16 bits;
};

#define DEVICE __device__ __forceinline__
#define INFINITY_F __int_as_float(0x7f800000)
#define NAN_F __int_as_float(0x7fffffff)
#define LOG2_E 1.4426950408889634f
#define LN_2 0.6931471805599453f

DEVICE float to_float(float x) { return x; }
DEVICE float to_float(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
DEVICE void put(float* p, float x) { *p = x; }
DEVICE void put(bf16* p, float x) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(p->bits) : "f"(x));
}
// The number that a T would hold.
template <class T> DEVICE float rounded(float x) {
    T t;
    put(&t, x);
    return to_float(t);
}

// Two numbers in one register: `low` at the lower address.
DEVICE u32 pack(float low, float high) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
DEVICE float low_half(u32 x) { return __uint_as_float(x << 16); }
DEVICE float high_half(u32 x) { return __uint_as_float(x & 0xffff0000u); }

// V consecutive numbers: sixteen-byte accesses when V is 8, one number when V is 1.
template <int V> DEVICE void load(const float* p, float* v) {
    if (V == 1) {
        v[0] = *p;
        return;
    }
    for (int i = 0; i < V / 4; i++) {
        float4 x = ((const float4*)p)[i];
        v[4 * i] = x.x, v[4 * i + 1] = x.y, v[4 * i + 2] = x.z, v[4 * i + 3] = x.w;
    }
}
template <int V> DEVICE void load(const bf16* p, float* v) {
    if (V == 1) {
        v[0] = to_float(*p);
        return;
    }
    uint4 x = *(const uint4*)p;
    u32 w[4] = {x.x, x.y, x.z, x.w};
    for (int i = 0; i < 4; i++) v[2 * i] = low_half(w[i]), v[2 * i + 1] = high_half(w[i]);
}
template <int V> DEVICE void store(float* p, const float* v) {
    if (V == 1) {
        *p = v[0];
        return;
    }
    for (int i = 0; i < V / 4; i++) ((float4*)p)[i] = make_float4(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
}
template <int V> DEVICE void store(bf16* p, const float* v) {
    if (V == 1) {
        put(p, v[0]);
        return;
    }
    *(uint4*)p = make_uint4(pack(v[0], v[1]), pack(v[2], v[3]), pack(v[4], v[5]), pack(v[6], v[7]));
}

// Adds what an adapter has yet to add to V numbers, which are then what a P would hold.
template <int V, class P> DEVICE void add_part(const P* part, float* v) {
    float e[V];
    load<V>(part, e);
    for (int i = 0; i < V; i++) v[i] = rounded<P>(v[i] + e[i]);
}

DEVICE float warp_sum(float x) {
    for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
    return x;
}
DEVICE double warp_sum(double x) {
    for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
    return x;
}
DEVICE float warp_max(float x) {
    for (int o = 16; o; o >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, o));
    return x;
}
// The sum over a block, in a fixed order, for every thread. Safe to call again at once.
template <class N> DEVICE N block_sum(N x) {
    __shared__ N part[32];
    x = warp_sum(x);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = x;
    __syncthreads();
    N sum = 0;
    for (int i = 0; i < (blockDim.x + 31) / 32; i++) sum += part[i];
    return sum;
}
DEVICE float block_max(float x) {
    __shared__ float part[32];
    x = warp_max(x);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = x;
    __syncthreads();
    float top = part[0];
    for (int i = 1; i < (blockDim.x + 31) / 32; i++) top = fmaxf(top, part[i]);
    return top;
}

// Whether LoRA's dropout keeps element `i`: the same hash as on the host.
DEVICE bool keeps(u64 key, float p, u64 i) {
    u32 z = (u32)i ^ (u32)key ^ (u32)(i >> 32) * 0x9e3779b9u;
    z = (z ^ (z >> 16)) * 0x7feb352du;
    z = (z ^ (u32)(key >> 32) ^ (z >> 15)) * 0x846ca68bu;
    z ^= z >> 16;
    return (float)(z >> 8) * (1.0f / 16777216.0f) >= p;
}

// The precision of activations and weights in this program: bf16, or f32 for comparison with the processor.
typedef ACTIVATION T;
