// AdamW, and the global norm over many tensors in one launch.

extern "C" __global__ void adamw(u64 n, const float* grad, float* m, float* v, float* value, bf16* working, float lr, float beta1,
                                 float beta2, float eps, float weight_decay, float correction1, float correction2, float grad_scale) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float g = grad[i] * grad_scale, x = value[i];
    float a = beta1 * m[i] + (1.0f - beta1) * g, b = beta2 * v[i] + (1.0f - beta2) * g * g;
    m[i] = a;
    v[i] = b;
    x -= lr * (weight_decay * x + a / correction1 / (sqrtf(b / correction2) + eps));
    value[i] = x;
    if (working) put(working + i, x);
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
