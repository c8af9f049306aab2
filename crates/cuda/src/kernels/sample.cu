// Drawing one token a row: a block of 32 warps per row. Sums are in double precision and in a fixed order.

// What the walk over the tokens needs to know.
struct Row {
    const float* logits;
    int vocab;
    float top, inverse_temperature;
    u32 threshold;  // bits of the smallest weight kept
    int last_tie;   // the last token of exactly that weight that is kept
    DEVICE float weight(int i) const {
        float w = expf((logits[i] - top) * inverse_temperature);
        u32 bits = __float_as_uint(w);
        return bits > threshold || (bits == threshold && i <= last_tie) ? w : 0.0f;
    }
};

// The sum of weights of tokens from..to by one warp.
DEVICE double range_sum(const Row& row, int from, int to) {
    double sum = 0;
    for (int i = from + (threadIdx.x & 31); i < to; i += 32) sum += row.weight(i);
    return warp_sum(sum);
}

// Among `sums` of 32 ranges, the one that holds `left`, from which what comes before is taken; the last range with any
// weight where rounding leaves none.
DEVICE int choose(const double* sums, double* left) {
    int last = 0;
    double before = 0, at_last = 0;
    for (int i = 0; i < 32; i++) {
        if (sums[i] > 0) {
            last = i;
            at_last = before;
            if (*left < before + sums[i]) break;
        }
        before += sums[i];
    }
    *left -= at_last;
    return last;
}

// The bits of the smallest weight in the set of most probable tokens whose weights reach `goal`: three bits a pass.
DEVICE u32 find_threshold(const Row& row, double goal) {
    u32 prefix = 0;
    for (int shift = 27; shift >= 0; shift -= 3) {
        float sums[7] = {};
        for (int i = threadIdx.x; i < row.vocab; i += blockDim.x) {
            float w = row.weight(i);
            u32 bits = __float_as_uint(w);
#pragma unroll
            for (int d = 0; d < 7; d++) sums[d] += bits >= (prefix | (u32)(d + 1) << shift) ? w : 0.0f;
        }
        int digit = 0;
        for (int d = 0; d < 7; d++) {
            if (block_sum((double)sums[d]) >= goal) digit = d + 1;
        }
        prefix |= (u32)digit << shift;
    }
    return prefix;
}

// Keeps only as many of the tokens that tie at the threshold as are needed to reach `goal`, the first ones.
DEVICE int find_last_tie(const Row& row, u32 threshold, double goal) {
    __shared__ int result;
    float above = 0;
    int ties = 0;
    for (int i = threadIdx.x; i < row.vocab; i += blockDim.x) {
        float w = row.weight(i);
        above += __float_as_uint(w) > threshold ? w : 0.0f;
        ties += __float_as_uint(w) == threshold;
    }
    double missing = goal - block_sum((double)above);
    ties = (int)block_sum((float)ties);
    double wanted = ceil(missing / __uint_as_float(threshold));
    int keep = wanted < 1 ? 1 : wanted > ties ? ties : (int)wanted;
    if (keep >= ties) return row.vocab;
    int seen = 0;
    for (int first = 0; first < row.vocab; first += blockDim.x) {
        int i = first + threadIdx.x;
        bool tie = i < row.vocab && __float_as_uint(row.weight(i)) == threshold;
        int here = __syncthreads_count(tie);
        if (seen + here >= keep) {
            if (threadIdx.x == 0) {
                for (int j = first, left = keep - seen; left > 0 && j < row.vocab; j++) {
                    if (__float_as_uint(row.weight(j)) == threshold) left--, result = j;
                }
            }
            __syncthreads();
            return result;
        }
        seen += here;
    }
    return row.vocab;
}

// In the first warp: the first of the places from..to at which the running sum of weights exceeds `left`; the last place
// with any weight where rounding leaves none, `otherwise` where there is no weight at all.
template <class Weight>
DEVICE int walk(int from, int to, double left, int otherwise, Weight weight) {
    int lane = threadIdx.x & 31, at = otherwise;
    double before = 0;
    for (int i = from; i < to; i += 32) {
        float w = i + lane < to ? weight(i + lane) : 0.0f;
        double upto = w;
        for (int o = 1; o < 32; o <<= 1) {
            double other = __shfl_up_sync(~0u, upto, o);
            if (lane >= o) upto += other;
        }
        u32 positive = __ballot_sync(~0u, w > 0), holds = __ballot_sync(~0u, w > 0 && left < before + upto);
        if (holds) return i + __ffs(holds) - 1;
        if (positive) at = i + 31 - __clz(positive);
        before += __shfl_sync(~0u, upto, 31);
    }
    return at;
}

// `starts` is null where no row has scarce tokens. A row's scarce tokens come after its others: their logits are taken
// out of the row, kept, and put back at the end.
extern "C" __global__ void __launch_bounds__(1024)
    sample(int vocab, float* logits, float temperature, float top_p, const float* uniforms, const u32* starts,
           const u32* scarce, const float* left_of, float* kept, float* weights, u32* tokens, float* log_p, float* p,
           float* rest) {
    __shared__ double sums[32];
    __shared__ u32 chosen;
    __shared__ int chosen_scarce;
    __shared__ double left;
    float* own = logits + (u64)blockIdx.x * vocab;
    Row row = {own, vocab, 0, temperature > 0 ? 1.0f / temperature : 1.0f, 0, vocab};
    int first = starts ? starts[blockIdx.x] : 0, end_scarce = starts ? starts[blockIdx.x + 1] : 0;
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    float top = -INFINITY_F;
    for (int i = threadIdx.x; i < vocab; i += blockDim.x) top = fmaxf(top, row.logits[i]);
    row.top = block_max(top);
    // The log-probability that is reported is always at temperature 1.
    double all = 0;
    for (int i = threadIdx.x; i < vocab; i += blockDim.x) all += expf(row.logits[i] - row.top);
    all = block_sum(all);

    if (threadIdx.x == 0) chosen = vocab - 1, chosen_scarce = -1;
    __syncthreads();
    // The weight of all tokens, of those that are left, and of the scarce ones that are left.
    double whole = 1, total = 1, few = 0;
    if (temperature <= 0) {
        for (int i = threadIdx.x; i < vocab; i += blockDim.x) {
            if (row.logits[i] == row.top) atomicMin(&chosen, (u32)i);
        }
    } else {
        int range = (vocab + 31) / 32, part = (range + 31) / 32;
        int from = min(warp * range, vocab), to = min(from + range, vocab);
        double mine = range_sum(row, from, to);
        if (top_p < 1) {
            if (lane == 0) sums[warp] = mine;
            __syncthreads();
            double total = 0;
            for (int i = 0; i < 32; i++) total += sums[i];
            u32 threshold = find_threshold(row, top_p * total);
            int last_tie = find_last_tie(row, threshold, top_p * total);
            row.threshold = threshold;
            row.last_tie = last_tie;
            mine = range_sum(row, from, to);
            __syncthreads();
        }
        if (lane == 0) sums[warp] = mine;
        __syncthreads();
        total = 0;
        for (int i = 0; i < 32; i++) total += sums[i];
        whole = total;
        if (first < end_scarce) {
            for (int i = first + threadIdx.x; i < end_scarce; i += blockDim.x) {
                int token = scarce[i];
                float w = row.weight(token) * left_of[i];
                kept[i] = own[token];
                weights[i] = w;
                few += w;
                own[token] = -INFINITY_F;
            }
            few = block_sum(few);
            // Not subtracted: what is left may be little.
            mine = range_sum(row, from, to);
            __syncthreads();
            if (lane == 0) sums[warp] = mine;
            __syncthreads();
            total = 0;
            for (int i = 0; i < 32; i++) total += sums[i];
        }
        double many = total;
        total += few;
        double aim = uniforms[blockIdx.x] * total;
        if (few > 0 && aim >= many) {
            if (warp == 0) {
                int at = walk(first, end_scarce, aim - many, first, [&](int i) { return weights[i]; });
                if (lane == 0) chosen_scarce = at, chosen = scarce[at];
            }
        } else {
            int which = choose(sums, &aim);
            __syncthreads();
            int base = which * range, end = min(base + range, vocab);
            from = min(base + warp * part, end), to = min(from + part, end);
            mine = range_sum(row, from, to);
            if (lane == 0) sums[warp] = mine;
            __syncthreads();
            which = choose(sums, &aim);
            from = min(base + which * part, end), to = min(from + part, end);
            if (threadIdx.x == 0) left = aim;
            __syncthreads();
            if (warp == 0) {
                int at = walk(from, to, left, vocab - 1, [&](int i) { return row.weight(i); });
                if (lane == 0) chosen = at;
            }
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        bool is_scarce = chosen_scarce >= 0;
        float logit = is_scarce ? kept[chosen_scarce] : row.logits[chosen], own_logit = logit;
        // Where nothing at all is left, the last token stands for it; it may have been taken out.
        for (int i = first; own_logit == -INFINITY_F && i < end_scarce; i++) {
            if (scarce[i] == chosen) own_logit = kept[i];
        }
        tokens[blockIdx.x] = chosen;
        log_p[blockIdx.x] = own_logit - row.top - (float)log(all);
        float w = expf((logit - row.top) * row.inverse_temperature), gone = is_scarce ? weights[chosen_scarce] : w;
        p[blockIdx.x] = temperature > 0 ? (float)(w / whole) : 1.0f;
        rest[blockIdx.x] = temperature > 0 ? (float)(fmax(total - gone, 0.0) / whole) : 0.0f;
    }
    if (temperature > 0) {
        __syncthreads();
        for (int i = first + threadIdx.x; i < end_scarce; i += blockDim.x) own[scarce[i]] = kept[i];
    }
}
