// Tensor-core building blocks: bf16 products with f32 accumulation, 16 x 8 x 16 at a time by one warp.
//
// Fragment layout, with g = lane / 4 and q = lane % 4:
//   A (16 x 16): a[0] row g, a[1] row g + 8, columns 2q, 2q + 1; a[2], a[3] the same rows, columns 2q + 8, 2q + 9.
//   B (16 x 8):  b[0] rows 2q, 2q + 1, b[1] rows 2q + 8, 2q + 9, column g.
//   C (16 x 8):  c[0], c[1] row g, c[2], c[3] row g + 8, columns 2q, 2q + 1.

DEVICE void mma(float* c, const u32* a, const u32* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
DEVICE u32 shared_address(const void* p) {
    u32 a;
    asm("{ .reg .u64 p; cvta.to.shared.u64 p, %1; cvt.u32.u64 %0, p; }" : "=r"(a) : "l"(p));
    return a;
}
DEVICE void ldmatrix(u32* r, u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}
DEVICE void ldmatrix_transposed(u32* r, u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}
// Sixteen bytes to shared memory in the background; zeros when `valid` is false (the source is then not read).
DEVICE void copy_async(u32 to, const void* from, bool valid) {
    int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
DEVICE void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// Two rows of numbers to pairs down the columns: element 2i of (x, y), and element 2i + 1.
DEVICE u32 pair_low(u32 x, u32 y) { return __byte_perm(x, y, 0x5410); }
DEVICE u32 pair_high(u32 x, u32 y) { return __byte_perm(x, y, 0x7632); }

// A tile of 64 rows of D numbers in shared memory, its sixteen-byte chunks swizzled so that ldmatrix meets no bank twice.
#define ROWS 64
template <int D> DEVICE u32 chunk_at(u32 tile, int row, int chunk) { return tile + row * (D * 2) + ((chunk ^ (row & 7)) << 4); }
// Fills a tile from rows first.. of a matrix with `stride` numbers a row; rows past `end` become zeros.
template <int D, int THREADS> DEVICE void load_tile(u32 tile, const bf16* from, u64 stride, int first, int end) {
    for (int i = threadIdx.x; i < ROWS * (D / 8); i += THREADS) {
        int row = i / (D / 8), chunk = i % (D / 8);
        bool valid = first + row < end;
        copy_async(chunk_at<D>(tile, row, chunk), from + (u64)(valid ? first + row : first) * stride + chunk * 8, valid);
    }
}
// The A fragment of 16 rows starting at `row`, k step `kk`.
template <int D> DEVICE void a_fragment(u32* a, u32 tile, int row, int kk) {
    int lane = threadIdx.x & 31;
    ldmatrix(a, chunk_at<D>(tile, row + (lane & 15), kk * 2 + (lane >> 4)));
}
// Two B fragments whose columns are the tile's rows 16 nn.. (8 each), k step `kk` along the row.
template <int D> DEVICE void b_fragments(u32* b, u32 tile, int nn, int kk) {
    int lane = threadIdx.x & 31;
    ldmatrix(b, chunk_at<D>(tile, nn * 16 + (lane & 7) + ((lane >> 4) << 3), kk * 2 + ((lane >> 3) & 1)));
}
// Two B fragments whose columns are the tile's columns 16 nn.., k step `kk` down the rows.
template <int D> DEVICE void b_fragments_down(u32* b, u32 tile, int nn, int kk) {
    int lane = threadIdx.x & 31;
    ldmatrix_transposed(b, chunk_at<D>(tile, kk * 16 + (lane & 15), nn * 2 + (lane >> 4)));
}
// s (16 x 64) += A rows (16 at `row` of `a`) times the 64 rows of `b`, over D.
template <int D> DEVICE void product_rows(float s[8][4], u32 a, int row, u32 b) {
#pragma unroll
    for (int kk = 0; kk < D / 16; kk++) {
        u32 fa[4];
        a_fragment<D>(fa, a, row, kk);
#pragma unroll
        for (int nn = 0; nn < 4; nn++) {
            u32 fb[4];
            b_fragments<D>(fb, b, nn, kk);
            mma(s[2 * nn], fa, fb);
            mma(s[2 * nn + 1], fa, fb + 2);
        }
    }
}
// The same with the A fragments already in registers.
template <int D> DEVICE void product_held(float s[8][4], const u32 fa[D / 16][4], u32 b) {
#pragma unroll
    for (int kk = 0; kk < D / 16; kk++) {
#pragma unroll
        for (int nn = 0; nn < 4; nn++) {
            u32 fb[4];
            b_fragments<D>(fb, b, nn, kk);
            mma(s[2 * nn], fa[kk], fb);
            mma(s[2 * nn + 1], fa[kk], fb + 2);
        }
    }
}
// acc (16 x D) += p (16 x 64, as accumulators) times the tile (64 x D).
template <int D> DEVICE void product_down(float acc[D / 8][4], const float p[8][4], u32 tile) {
#pragma unroll
    for (int kk = 0; kk < 4; kk++) {
        u32 fa[4] = {pack(p[2 * kk][0], p[2 * kk][1]), pack(p[2 * kk][2], p[2 * kk][3]),
                     pack(p[2 * kk + 1][0], p[2 * kk + 1][1]), pack(p[2 * kk + 1][2], p[2 * kk + 1][3])};
#pragma unroll
        for (int nn = 0; nn < D / 16; nn++) {
            u32 fb[4];
            b_fragments_down<D>(fb, tile, nn, kk);
            mma(acc[2 * nn], fa, fb);
            mma(acc[2 * nn + 1], fa, fb + 2);
        }
    }
}

// Sixteen bytes, or zeros where there is nothing to read.
DEVICE uint4 fetch(const bf16* p, bool valid) { return valid ? *(const uint4*)p : make_uint4(0, 0, 0, 0); }

// Ranges of columns of a wide matrix, each with its own narrow one.
struct Parts {
    int begin[4], len[4];
};
DEVICE u64 before(const Parts& parts, int part) {
    u64 sum = 0;
    for (int i = 0; i < part; i++) sum += parts.len[i];
    return sum;
}
