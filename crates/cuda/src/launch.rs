//! Kernels with the types of their parameters, and how launches are spread out.

use std::ffi::CStr;
use std::marker::PhantomData;

use half::bf16;

use crate::address::{Address, Computed, Four, Slice, Stretch, Tensors};

/// A kernel that takes these parameters, a tuple. `kernels.rs` declares them all; a test holds the
/// declarations to the sources.
pub(crate) struct Kernel<P> {
    pub name: &'static CStr,
    parameters: PhantomData<fn(P)>,
}

impl<P> Clone for Kernel<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Kernel<P> {}

impl<P> Kernel<P> {
    pub const fn new(name: &'static CStr) -> Self {
        Kernel { name, parameters: PhantomData }
    }
}

/// How a kernel is spread out.
#[derive(Clone, Copy)]
pub(crate) struct Grid {
    pub blocks: (usize, usize, usize),
    /// Threads of a block.
    pub threads: usize,
    /// Bytes of shared memory of a block, beyond what the kernel declares.
    pub shared: usize,
    /// Blocks of a cluster, which run at once and reach each other's shared memory.
    pub cluster: usize,
}

impl Grid {
    pub fn row(blocks: usize, threads: usize) -> Self {
        Grid::of((blocks, 1, 1), threads)
    }

    pub fn of(blocks: (usize, usize, usize), threads: usize) -> Self {
        Grid { blocks, threads, shared: 0, cluster: 1 }
    }

    pub fn with_shared(self, shared: usize) -> Self {
        Grid { shared, ..self }
    }

    pub fn in_clusters(self, cluster: usize) -> Self {
        Grid { cluster, ..self }
    }
}

/// One argument: large enough for the largest, eight numbers of 32 bits passed by value.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Arg(pub [u64; 4]);

/// What a kernel can be given.
pub(crate) trait Parameter {
    /// Its type in the sources.
    #[cfg(test)]
    const TYPE: &'static str;
    fn arg(self) -> Arg;
}

macro_rules! parameter {
    ($type:ty, $c:literal, |$x:ident| $bits:expr) => {
        impl Parameter for $type {
            #[cfg(test)]
            const TYPE: &'static str = $c;
            fn arg(self) -> Arg {
                let $x = self;
                Arg($bits)
            }
        }
    };
}

parameter!(u64, "u64", |x| [x, 0, 0, 0]);
// Sizes are checked to fit when the operation is called.
parameter!(usize, "int", |x| [x as u32 as u64, 0, 0, 0]);
parameter!(f32, "float", |x| [u64::from(x.to_bits()), 0, 0, 0]);
parameter!(Address<Computed>, "T*", |x| [x.raw(), 0, 0, 0]);
parameter!(Address<bf16>, "bf16*", |x| [x.raw(), 0, 0, 0]);
parameter!(Address<f32>, "float*", |x| [x.raw(), 0, 0, 0]);
parameter!(Address<f64>, "double*", |x| [x.raw(), 0, 0, 0]);
parameter!(Address<u32>, "u32*", |x| [x.raw(), 0, 0, 0]);
parameter!(Address<u8>, "u8*", |x| [x.raw(), 0, 0, 0]);
parameter!(Address<Four>, "uint4*", |x| [x.raw(), 0, 0, 0]);
parameter!(Address<Stretch>, "Stretch*", |x| [x.raw(), 0, 0, 0]);
parameter!(Address<Tensors>, "Update*", |x| [x.raw(), 0, 0, 0]);
parameter!(Address<Slice>, "Slice*", |x| [x.raw(), 0, 0, 0]);

/// Column ranges: four starts, four lengths.
#[derive(Clone, Copy)]
pub(crate) struct Parts(pub [i32; 8]);

/// An optimizer step's numbers.
#[derive(Clone, Copy)]
pub(crate) struct Rates(pub [f32; 8]);

fn pairs(x: [u32; 8]) -> [u64; 4] {
    std::array::from_fn(|i| u64::from(x[2 * i]) | u64::from(x[2 * i + 1]) << 32)
}

parameter!(Parts, "Parts", |x| pairs(x.0.map(|n| n as u32)));
parameter!(Rates, "Rates", |x| pairs(x.0.map(f32::to_bits)));

/// At most so many arguments.
pub(crate) const MOST: usize = 16;

/// All that a kernel is given: a tuple of [`Parameter`]s.
pub(crate) trait Parameters {
    /// Their types in the sources.
    #[cfg(test)]
    const TYPES: &'static [&'static str];
    /// Them, and nothing after them.
    fn args(self) -> ([Arg; MOST], usize);
}

macro_rules! parameters {
    ($($type:ident)+) => {
        impl<$($type: Parameter),+> Parameters for ($($type,)+) {
            #[cfg(test)]
            const TYPES: &'static [&'static str] = &[$($type::TYPE),+];
            #[allow(non_snake_case)]
            fn args(self) -> ([Arg; MOST], usize) {
                let ($($type,)+) = self;
                let given = [$($type.arg()),+];
                let mut all = [Arg([0; 4]); MOST];
                all[..given.len()].copy_from_slice(&given);
                (all, given.len())
            }
        }
    };
}

parameters!(A);
parameters!(A B);
parameters!(A B C);
parameters!(A B C D);
parameters!(A B C D E);
parameters!(A B C D E F);
parameters!(A B C D E F G);
parameters!(A B C D E F G H);
parameters!(A B C D E F G H I);
parameters!(A B C D E F G H I J);
parameters!(A B C D E F G H I J K);
parameters!(A B C D E F G H I J K L);
parameters!(A B C D E F G H I J K L M);
parameters!(A B C D E F G H I J K L M N);
