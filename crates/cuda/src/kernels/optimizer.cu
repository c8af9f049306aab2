// AdamW, and the global norm over many tensors in one launch.

struct Update {
    const float* grad;
    float *m, *v, *value;
    bf16* working;
    u64 n;
};
struct Rates {
    float lr, beta1, beta2, eps, weight_decay, correction1, correction2, grad_scale;
};
DEVICE void adamw_step(const Rates& r, float g, float& m, float& v, float& x) {
    g *= r.grad_scale;
    m = r.beta1 * m + (1.0f - r.beta1) * g;
    v = r.beta2 * v + (1.0f - r.beta2) * g * g;
    x -= r.lr * (r.weight_decay * x + m / r.correction1 / (sqrtf(v / r.correction2) + r.eps));
}
// Many tensors in one launch: grid (stretches, tensors). Four parameters a thread: every tensor starts on a boundary of 256 bytes.
extern "C" __global__ void adamw(const Update* updates, Rates rates) {
    Update u = updates[blockIdx.y];
    for (u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 4; i < u.n; i += (u64)gridDim.x * blockDim.x * 4) {
        if (i + 4 <= u.n) {
            float g[4], m[4], v[4], x[4];
            load<4>(u.grad + i, g), load<4>(u.m + i, m), load<4>(u.v + i, v), load<4>(u.value + i, x);
            for (int j = 0; j < 4; j++) adamw_step(rates, g[j], m[j], v[j], x[j]);
            store<4>(u.m + i, m), store<4>(u.v + i, v), store<4>(u.value + i, x);
            if (u.working) *(uint2*)(u.working + i) = make_uint2(pack(x[0], x[1]), pack(x[2], x[3]));
        } else {
            for (u64 j = i; j < u.n; j++) {
                adamw_step(rates, u.grad[j], u.m[j], u.v[j], u.value[j]);
                if (u.working) put(u.working + j, u.value[j]);
            }
        }
    }
}

struct Stretch {
    uint4* data;
    u64 bytes;
};
// Zeroes many buffers in one launch: grid (stretches, buffers).
extern "C" __global__ void clear(const Stretch* stretches) {
    Stretch s = stretches[blockIdx.y];
    u64 whole = s.bytes / 16;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < whole; i += (u64)gridDim.x * blockDim.x) {
        s.data[i] = make_uint4(0, 0, 0, 0);
    }
    u64 rest = whole * 16 + threadIdx.x;
    if (blockIdx.x == 0 && rest < s.bytes) ((u8*)s.data)[rest] = 0;
}

struct Slice {
    const void* data;
    u64 len;
    u64 is_bf16;
};
// Block (x, tensor): the sum of squares of every gridDim.x-th stretch of one tensor, in double precision.
extern "C" __global__ void sum_of_squares(const Slice* slices, double* partials) {
    Slice s = slices[blockIdx.y];
    float sum = 0;
    double total = 0;
    int since = 0;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < s.len; i += (u64)gridDim.x * blockDim.x) {
        float x = s.is_bf16 ? to_float(((const bf16*)s.data)[i]) : ((const float*)s.data)[i];
        sum += x * x;
        if (++since == 64) {
            total += sum;
            sum = 0;
            since = 0;
        }
    }
    total = block_sum(total + (double)sum);
    if (threadIdx.x == 0) partials[(u64)blockIdx.y * gridDim.x + blockIdx.x] = total;
}
extern "C" __global__ void sum_partials(u64 n, const double* partials, double* out) {
    double total = 0;
    for (u64 i = threadIdx.x; i < n; i += blockDim.x) total += partials[i];
    total = block_sum(total);
    if (threadIdx.x == 0) *out = total;
}
