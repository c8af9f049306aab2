// The head: from a row of f32 logits to the target's log-probability, and to the gradient.

// One block per row, in one reading: each thread keeps a running maximum and sum.
template <int V> DEVICE void log_sum_exp(int vocab, const float* row, float* top, float* sum) {
    float m = -INFINITY_F, s = 0;
    for (int c = threadIdx.x * V; c < vocab; c += blockDim.x * V) {
        float v[V];
        load<V>(row + c, v);
        float most = v[0];
        for (int i = 1; i < V; i++) most = fmaxf(most, v[i]);
        if (most > m) {
            s *= expf(m - most);
            m = most;
        }
        for (int i = 0; i < V; i++) s += expf(v[i] - m);
    }
    *top = block_max(m);
    // A thread that saw nothing has m = -inf and s = 0; NaN logits make s, and so the result, NaN.
    *sum = block_sum(s == 0 ? 0.0f : s * expf(m - *top));
}
extern "C" __global__ void head_scores(int vocab, const float* logits, const u32* targets, float* log_p, float* lse) {
    u64 row = blockIdx.x;
    const float* l = logits + row * vocab;
    float top, sum;
    if (vocab % 4 == 0) log_sum_exp<4>(vocab, l, &top, &sum);
    else log_sum_exp<1>(vocab, l, &top, &sum);
    if (threadIdx.x == 0) {
        float all = top + logf(sum);
        u32 target = targets[row];
        lse[row] = all;
        log_p[row] = target < (u32)vocab ? l[target] - all : NAN_F;
    }
}

// Replaces a row of logits by coefficient * (one-hot(target) - softmax), as numbers of type T at the start of the same row.
// A group of threads reads before any of them writes, and writing never overtakes reading: T is not larger than f32.
template <int V> DEVICE void gradient_row(int vocab, float* row, u32 target, float lse, float coefficient) {
    T* out = (T*)row;
    for (int first = 0; first < vocab; first += blockDim.x * V) {
        int c = first + threadIdx.x * V;
        float v[V];
        if (c < vocab) {
            load<V>(row + c, v);
            for (int i = 0; i < V; i++) v[i] = coefficient * ((c + i == target ? 1.0f : 0.0f) - expf(v[i] - lse));
        }
        __syncthreads();
        if (c < vocab) store<V>(out + c, v);
    }
}
extern "C" __global__ void head_gradient(int vocab, float* logits, const u32* targets, const float* lse, const float* coefficients) {
    u64 row = blockIdx.x;
    if (vocab % 8 == 0) gradient_row<8>(vocab, logits + row * vocab, targets[row], lse[row], coefficients[row]);
    else gradient_row<1>(vocab, logits + row * vocab, targets[row], lse[row], coefficients[row]);
}
