//! Products of few rows in fp8 by kernels of our own, on Hopper: they wait for the weights, of
//! which these keep more on their way than the library's do. How one is cut up is a choice, made
//! like that of the library's algorithm (`choice.rs`).

use catamount_model::Result;

use crate::address::Address;
use crate::device::Device;
use crate::kernels::{FEW_1, FEW_2, FEW_5, Few, HOPPER, Kernels, few_shared};
use crate::launch::{Grid, Kernel, Parameters};
use crate::matmul::Product;
use crate::tensor::Format;

/// Rows at most.
const ROWS: usize = 64;
/// Outputs of a tile.
const TILE: usize = 64;
/// Blocks of a cluster at most.
const BLOCKS: usize = 8;
/// Shared memory of a multiprocessor, and what a block takes of it beyond what it asks for.
const SHARED: usize = 228 << 10;
const RESERVED: usize = 1 << 10;

/// A kernel; see few.cu.
struct Variant {
    /// Tiles of a block.
    tiles: usize,
    /// Stages in shared memory.
    slots: usize,
    kernel: Kernel<Few>,
}

impl Variant {
    /// Blocks that a multiprocessor has room for.
    fn room(&self) -> usize {
        SHARED / (few_shared(self.tiles, self.slots) + RESERVED)
    }
}

static VARIANTS: [Variant; 3] = [
    Variant { tiles: 2, slots: 8, kernel: FEW_2 },
    Variant { tiles: 5, slots: 4, kernel: FEW_5 },
    Variant { tiles: 1, slots: 6, kernel: FEW_1 },
];

/// All cuts.
pub(crate) const CUTS: usize = VARIANTS.len() * BLOCKS;

/// How a product is cut up: into stretches of outputs as a kernel takes them, and these along the
/// inner dimension among the blocks of a cluster.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    variant: &'static Variant,
    blocks: usize,
}

impl Cut {
    /// The cuts that could be the fastest for a product, if there are any.
    pub fn candidates(device: &Device, p: &Product) -> Vec<Cut> {
        let worth = |cut: &Cut| {
            // Or so many blocks that the last ones do not matter.
            cut.at_once(device.processors, p.columns)
                || (cut.blocks == 1
                    && cut.grid(p.columns) >= 3 * device.processors * cut.variant.room())
        };
        if !Cut::fit(device, p) {
            return Vec::new();
        }
        (0..CUTS).map(Cut::any).filter(worth).collect()
    }

    /// A cut that suits a product, if there is one: what is taken where nothing is timed.
    pub fn untimed(device: &Device, p: &Product) -> Option<Cut> {
        Cut::usual(device.processors, p.columns).filter(|_| Cut::fit(device, p))
    }

    /// Two tiles where all blocks run at once, otherwise five, in the largest clusters that do;
    /// those of other sizes than powers of two may leave a part of the GPU out.
    fn usual(processors: usize, columns: usize) -> Option<Cut> {
        let of = |variant| [8, 4, 2, 1].map(|blocks| Cut { variant, blocks });
        VARIANTS[..2].iter().flat_map(of).find(|cut| cut.at_once(processors, columns))
    }

    /// One of all cuts, sensible or not.
    pub fn any(index: usize) -> Cut {
        Cut { variant: &VARIANTS[index / BLOCKS % VARIANTS.len()], blocks: 1 + index % BLOCKS }
    }

    /// Whether they can compute a product: few rows times the rows of the weights, all of them
    /// whole and in sixteens of bytes. Sums are as short as the tensor cores keep them.
    pub fn fit(device: &Device, p: &Product) -> bool {
        let addresses = [p.x.address.raw(), p.y.address.raw(), p.out.address.raw()];
        let beside = [p.bias.map_or(0, Address::raw), p.y.scales.raw()];
        device.capability == HOPPER
            && (p.x.format, p.y.format, p.out.format) == (Format::Fp8, Format::Fp8, Format::Bf16)
            && p.is_scaled()
            && p.fast
            && (1..=ROWS).contains(&p.rows)
            && (p.x.transposed, p.y.transposed, p.out.transposed) == (false, true, false)
            && (p.x.stride, p.y.stride, p.out.stride) == (p.inner, p.inner, p.columns)
            && p.columns.is_multiple_of(8)
            && p.inner.is_multiple_of(16)
            && p.inner <= i32::MAX as usize / 2
            && addresses.iter().chain(&beside).all(|address| address.is_multiple_of(16))
    }

    /// As notes have it: tiles of a block, blocks of a cluster.
    pub fn name(&self) -> String {
        format!("{}x{}", self.variant.tiles, self.blocks)
    }

    pub fn parse(name: &str) -> Option<Cut> {
        (0..CUTS).map(Cut::any).find(|cut| cut.name() == name)
    }

    fn grid(&self, columns: usize) -> usize {
        columns.div_ceil(self.variant.tiles * TILE) * self.blocks
    }

    /// Whether all blocks run at once, and have most of the GPU.
    fn at_once(&self, processors: usize, columns: usize) -> bool {
        let blocks = self.grid(columns);
        blocks <= processors * self.variant.room() && 2 * blocks >= processors
    }

    /// Queues a product that fits.
    pub fn launch(&self, device: &Device, kernels: &Kernels, p: &Product) -> Result<()> {
        let &Variant { tiles, slots, kernel } = self.variant;
        let grid = Grid::row(self.grid(p.columns), tiles * 128 + 32)
            .with_shared(few_shared(tiles, slots))
            .in_clusters(self.blocks);
        let list: Few = (
            p.rows,
            p.columns,
            p.inner,
            p.x.address.cast(),
            p.y.address.cast(),
            p.x.scales,
            p.y.scales,
            p.bias.unwrap_or(Address::NULL),
            p.alpha,
            p.beta,
            p.out.address,
        );
        let (args, count) = list.args();
        kernels.launch(device.stream, kernel.name, grid, &args[..count])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_known_by_its_name() {
        for index in 0..CUTS {
            let cut = Cut::any(index);
            let found = Cut::parse(&cut.name()).unwrap();
            assert_eq!((found.variant.tiles, found.blocks), (cut.variant.tiles, cut.blocks));
        }
        for unknown in ["", "x", "7x1", "1x0", "1x9", "2-deepx4", "01x1"] {
            assert!(Cut::parse(unknown).is_none(), "{unknown}");
        }
    }

    #[test]
    fn untimed_products_are_cut_into_about_as_many_blocks_as_run_at_once() {
        let usual = |columns| Cut::usual(132, columns).map(|cut| cut.name());
        let expected = [(3584, "2x4"), (4608, "2x2"), (37_888, "5x1"), (16, "")];
        for (columns, name) in expected {
            assert_eq!(usual(columns).unwrap_or_default(), name, "{columns} outputs");
        }
    }
}
