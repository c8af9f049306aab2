// Products of few rows in fp8: out = x wᵀ, where x has at most 64. They wait for the weights, so what counts is how many bytes of
// these are on their way at any moment, and how few others: a block asks for stages of many outputs at once, since each block reads
// the stages of x, too. Where there are few outputs, the blocks of a cluster share a stretch of them out along the inner dimension
// and add their sums up in the order of their ranks. A row's result depends on nothing but the row.
//
// A stage has 128 bytes of each line: the lines of w, then 64 of x.
#define LINE 128

// Lines line.., STEP apart, of those before `end`, from byte `at` of each on; zeros stand for what is outside. Of eight lines the
// last four have their halves exchanged.
template <int COUNT, int STEP> DEVICE void fetch_lines(u32 to, const u8* from, int width, int line, int end, int at, u64 policy) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        bool valid = line + i * STEP < end && at < width;
        u64 offset = valid ? (u64)(line + i * STEP) * width + at : 0;
        copy_async((to + i * STEP * LINE) ^ (i * STEP % 8 ? 64 : 0), from + offset, valid, policy);
    }
}

// Waits for a stage, of which every thread brings a part.
template <int SLOTS> DEVICE void stage_there() {
    wait<SLOTS - 3>();
    show_products();
    __syncthreads();
}

// TILES tiles of 64 outputs, each four warps', and a warp that fetches x; SLOTS stages in shared memory. `rows` and `columns` are
// what the lines of x and of w are multiplied by. grid (stretches of outputs * blocks of a cluster)
template <int TILES, int SLOTS>
DEVICE void few(int n, int outputs, int inner, const u8* x, const u8* w, const float* rows, const float* columns, const bf16* bias,
                float alpha, float beta, bf16* out) {
    const int OWN = TILES * 64, SLOT = (OWN + 64) * LINE, PITCH = OWN + 4, THREADS = TILES * 128 + 32;
    extern __shared__ u8 memory[];
    u32 base = (shared_address(memory) + 1023) & ~1023u;
    int warp = uniform(threadIdx.x >> 5), lane = threadIdx.x & 31, tile = warp >> 2;
    int rank = cluster_rank(), blocks = cluster_blocks();
    int first = blockIdx.x / blocks * OWN, stages = (inner + LINE - 1) / LINE;
    int begin = stages * rank / blocks, count = stages * (rank + 1) / blocks - begin;
    // A thread brings the same sixteen bytes of every line that it brings. Stage i is there for everybody after its barrier, when
    // nobody reads stage i - 2 any more: the next one takes that one's place.
    bool fetches = warp == TILES * 4;
    int line = (fetches ? lane : threadIdx.x) >> 3, at = begin * LINE + (lane & 7) * 16;
    u32 to = chunk_at<64>(base + (fetches ? OWN * LINE : 0), line, lane & 7);
    float acc[32] = {};
    if (fetches) {
        u64 policy = read_often();
        for (int i = 2 - SLOTS; i < count; i++) {
            if (i >= 0) stage_there<SLOTS>();
            int next = i + SLOTS - 2;
            u32 slot = to + next % SLOTS * SLOT;
            if (next < count) fetch_lines<16, 4>(slot, x, inner, line, n, at + next * LINE, policy);
            commit();
        }
    } else {
        int mine = first + line;
        u64 policy = read_once();
        for (int i = 2 - SLOTS; i < 0; i++) {
            int next = i + SLOTS - 2;
            u32 slot = to + next * SLOT;
            if (next < count) fetch_lines<4, TILES * 16>(slot, w, inner, mine, outputs, at + next * LINE, policy);
            commit();
        }
        for (int i = 0; i < count; i++) {
            stage_there<SLOTS>();
            int next = i + SLOTS - 2;
            u32 slot = to + next % SLOTS * SLOT;
            if (next < count) fetch_lines<4, TILES * 16>(slot, w, inner, mine, outputs, at + next * LINE, policy);
            commit();
            u32 stage = base + i % SLOTS * SLOT, own = stage + tile * 64 * LINE, lines = stage + OWN * LINE;
            before_products();
#pragma unroll
            for (int kk = 0; kk < 4; kk++) start_product(acc, lines_at(own + kk * 32), lines_at(lines + kk * 32));
            products_ended<1>();
        }
        products_ended<0>();
    }
    __syncthreads();
    // Sums in shared memory, a line of outputs for each row, padded so that a warp meets no bank twice.
    if (!fetches) {
        float* sums = (float*)(memory + (base - shared_address(memory)));
        int g = lane >> 2, q = lane & 3;
#pragma unroll
        for (int e = 0; e < 32; e++) {
            int row = (e >> 2) * 8 + 2 * q + (e & 1);
            int output = tile * 64 + (warp & 3) * 16 + g + (e >> 1 & 1) * 8;
            sums[row * PITCH + output] = acc[e];
        }
    }
    cluster_sync();
    for (int i = rank * THREADS + threadIdx.x; i < n * (OWN / 8); i += blocks * THREADS) {
        int row = i / (OWN / 8), own = i % (OWN / 8) * 8, c = first + own;
        if (c >= outputs) continue;
        u64 to = (u64)row * outputs + c;
        float v[8] = {};
        for (int before = 0; before < blocks; before += 4) {
            float4 low[4], high[4];
            u32 from = base + (row * PITCH + own) * 4;
#pragma unroll
            for (int r = 0; r < 4; r++) {
                if (before + r < blocks) low[r] = cluster_load(from, before + r), high[r] = cluster_load(from + 16, before + r);
            }
#pragma unroll
            for (int r = 0; r < 4; r++) {
                if (before + r >= blocks) continue;
                v[0] += low[r].x, v[1] += low[r].y, v[2] += low[r].z, v[3] += low[r].w;
                v[4] += high[r].x, v[5] += high[r].y, v[6] += high[r].z, v[7] += high[r].w;
            }
        }
        float e[8], factor = alpha * rows[row];
        load<8>(columns + c, e);
        for (int j = 0; j < 8; j++) v[j] *= factor * e[j];
        if (bias) {
            load<8>(bias + c, e);
            for (int j = 0; j < 8; j++) v[j] += e[j];
        }
        if (beta != 0.0f) {
            load<8>(out + to, e);
            for (int j = 0; j < 8; j++) v[j] += beta * e[j];
        }
        store<8>(out + to, v);
    }
    // A block's sums stay until all have read them.
    if (blocks > 1) cluster_sync();
}
#define FEW(NAME, TILES, SLOTS)                                                                                                 \
    extern "C" __global__ void __launch_bounds__(TILES * 128 + 32, 1)                                                           \
        NAME(int n, int outputs, int inner, const u8* x, const u8* w, const float* rows, const float* columns, const bf16* bias, \
             float alpha, float beta, bf16* out) {                                                                              \
        few<TILES, SLOTS>(n, outputs, inner, x, w, rows, columns, bias, alpha, beta, out);                                      \
    }
FEW(few_1, 1, 6)
FEW(few_2, 2, 8)
FEW(few_5, 5, 4)
