// What Hopper has beyond mma.cuh: products that four warps start together and that read both operands from shared memory, and
// blocks in clusters that read one another's.

// Sixty-four lines of 128 bytes, as `chunk_at<64>` swizzles them, the way the tensor cores are told of them: the address,
// without the bits that say which block of a cluster, 1,024 bytes from eight lines to the next eight, the swizzle.
DEVICE u64 lines_at(u32 tile) { return (u64)((tile & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62; }

#define SUMS_4(c, i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define SUMS_8(c, i) SUMS_4(c, i), SUMS_4(c, i + 4)
#define SUMS_32 \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}"
// c (64 x 64) += 32 bytes, numbers of eight bits, of each of the 64 lines of `a` times those of `b`. Four warps start it together;
// warp w has rows 16 w.., and a lane's numbers are those of eight fragments of mma.cuh, side by side. They arrive with
// `products_ended`.
DEVICE void start_product(float* c, u64 a, u64 b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 " SUMS_32 ", %32, %33, 1, 1, 1;"
                 : SUMS_8(c, 0), SUMS_8(c, 8), SUMS_8(c, 16), SUMS_8(c, 24)
                 : "l"(a), "l"(b));
}
// Before a thread's first product, and after it has touched the sums.
DEVICE void before_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// Closes a batch of products, and waits until at most N batches are under way.
template <int N> DEVICE void products_ended() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
// Shows what this thread has written to shared memory to the products that will read it.
DEVICE void show_products() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Which block of its cluster this is, and how many there are.
DEVICE int cluster_rank() {
    u32 rank = 0;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
DEVICE int cluster_blocks() {
    u32 blocks = 1;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    return blocks;
}
// Waits for every thread of the cluster; what they wrote before can be read after.
DEVICE void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Four numbers from the shared memory of a block of the cluster, where they are at the same address as here.
DEVICE float4 cluster_load(u32 address, int rank) {
    float4 v;
    u32 there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(there));
    return v;
}

// A number that is the same in all lanes, as the compiler cannot see.
DEVICE int uniform(int x) { return __shfl_sync(~0u, x, 0); }

// Marks bytes that are read once: they leave the cache first.
DEVICE u64 read_once() {
    u64 policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
// Bytes that others will read, too.
DEVICE u64 read_often() {
    u64 policy;
    asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
// As copy_async, with such a mark.
DEVICE void copy_async(u32 to, const void* from, bool valid, u64 policy) {
    int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(to), "l"(from), "r"(bytes), "l"(policy)
                 : "memory");
}
