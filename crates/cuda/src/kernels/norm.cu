// RMSNorm, with and without the residual addition, one block per row; and the sums over rows that its weight's gradient needs.

// `part`, where there is one, is what an adapter adds to delta: it is added first, and delta is left so.
template <int V>
DEVICE void rms_norm_row(int d, float eps, const T* x, T* delta, const T* part, const T* weight, T* sum, float* rstd, T* out) {
    float squares = 0;
    const T* normed = delta ? sum : x;
    for (int c = threadIdx.x * V; c < d; c += blockDim.x * V) {
        float v[V];
        load<V>(x + c, v);
        if (delta) {
            float e[V];
            load<V>(delta + c, e);
            if (part) {
                add_part<V>(part + c, e);
                store<V>(delta + c, e);
            }
            // Rounded before it is squared: the backward pass only sees what was stored.
            for (int i = 0; i < V; i++) v[i] = rounded<T>(v[i] + e[i]);
            store<V>(sum + c, v);
        }
        for (int i = 0; i < V; i++) squares += v[i] * v[i];
    }
    float r = rsqrtf(block_sum(squares) / d + eps);
    if (threadIdx.x == 0) *rstd = r;
    for (int c = threadIdx.x * V; c < d; c += blockDim.x * V) {
        float v[V], w[V];
        load<V>(normed + c, v);
        load<V>(weight + c, w);
        for (int i = 0; i < V; i++) v[i] *= r * w[i];
        store<V>(out + c, v);
    }
}
extern "C" __global__ void rms_norm(int d, float eps, const T* x, const T* weight, float* rstd, T* out) {
    u64 row = blockIdx.x, at = row * d;
    if (d % 8 == 0) rms_norm_row<8>(d, eps, x + at, 0, 0, weight, 0, rstd + row, out + at);
    else rms_norm_row<1>(d, eps, x + at, 0, 0, weight, 0, rstd + row, out + at);
}
extern "C" __global__ void add_rms_norm(int d, float eps, const T* x, T* delta, const T* part, const T* weight, T* sum, float* rstd, T* out) {
    u64 row = blockIdx.x, at = row * d;
    if (part) part += at;
    if (d % 8 == 0) rms_norm_row<8>(d, eps, x + at, delta + at, part, weight, sum + at, rstd + row, out + at);
    else rms_norm_row<1>(d, eps, x + at, delta + at, part, weight, sum + at, rstd + row, out + at);
}

template <int V> DEVICE void rms_norm_backward_row(int d, const T* x, const T* weight, float rstd, const T* dout, T* dx) {
    float dot = 0;
    for (int c = threadIdx.x * V; c < d; c += blockDim.x * V) {
        float v[V], w[V], g[V];
        load<V>(x + c, v);
        load<V>(weight + c, w);
        load<V>(dout + c, g);
        for (int i = 0; i < V; i++) dot += v[i] * w[i] * g[i];
    }
    float along = block_sum(dot) * rstd * rstd / d;
    for (int c = threadIdx.x * V; c < d; c += blockDim.x * V) {
        float v[V], w[V], g[V], old[V];
        load<V>(x + c, v);
        load<V>(weight + c, w);
        load<V>(dout + c, g);
        load<V>(dx + c, old);
        for (int i = 0; i < V; i++) old[i] += rstd * (w[i] * g[i] - v[i] * along);
        store<V>(dx + c, old);
    }
}
extern "C" __global__ void rms_norm_backward(int d, const T* x, const T* weight, const float* rstd, const T* dout, T* dx) {
    u64 row = blockIdx.x, at = row * d;
    if (d % 8 == 0) rms_norm_backward_row<8>(d, x + at, weight, rstd[row], dout + at, dx + at);
    else rms_norm_backward_row<1>(d, x + at, weight, rstd[row], dout + at, dx + at);
}

// Sums over rows, in two steps whose order never changes. First step: block (columns, slice) sums its slice of the rows of
// dout, or of dout * x * rstd where x is given.
extern "C" __global__ void column_partials(int n, int d, const T* dout, const T* x, const float* rstd, float* partials) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, slices = gridDim.y;
    if (c >= d) return;
    float sum = 0;
    for (int row = blockIdx.y; row < n; row += slices) {
        float g = to_float(dout[(u64)row * d + c]);
        sum += x ? g * to_float(x[(u64)row * d + c]) * rstd[row] : g;
    }
    partials[(u64)blockIdx.y * d + c] = sum;
}
// Second step: adds the slices' sums to the gradient.
extern "C" __global__ void column_sums(int d, int slices, const float* partials, float* sums) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= d) return;
    float sum = 0;
    for (int s = 0; s < slices; s++) sum += partials[(u64)s * d + c];
    sums[c] += sum;
}
