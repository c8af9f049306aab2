// AdamW, and the global norm over many tensors in one launch.

// Four parameters a thread: every tensor starts on a boundary of 256 bytes.
extern "C" __global__ void adamw(u64 n, const float* grad, float* m, float* v, float* value, bf16* working, float lr, float beta1,
                                 float beta2, float eps, float weight_decay, float correction1, float correction2, float grad_scale) {
    u64 first = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 4;
    int count = first + 4 <= n ? 4 : first < n ? (int)(n - first) : 0;
    float g[4], a[4], b[4], x[4];
    if (count == 4) {
        load<4>(grad + first, g), load<4>(m + first, a), load<4>(v + first, b), load<4>(value + first, x);
    } else {
        for (int i = 0; i < count; i++) g[i] = grad[first + i], a[i] = m[first + i], b[i] = v[first + i], x[i] = value[first + i];
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        g[i] *= grad_scale;
        a[i] = beta1 * a[i] + (1.0f - beta1) * g[i];
        b[i] = beta2 * b[i] + (1.0f - beta2) * g[i] * g[i];
        x[i] -= lr * (weight_decay * x[i] + a[i] / correction1 / (sqrtf(b[i] / correction2) + eps));
    }
    if (count == 4) {
        store<4>(m + first, a), store<4>(v + first, b), store<4>(value + first, x);
        if (working) *(uint2*)(working + first) = make_uint2(pack(x[0], x[1]), pack(x[2], x[3]));
        return;
    }
    for (int i = 0; i < count; i++) {
        m[first + i] = a[i], v[first + i] = b[i], value[first + i] = x[i];
        if (working) put(working + first + i, x[i]);
    }
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
