//! Sharing rows out over the cores.

use std::marker::PhantomData;
use std::ops::Range;

use rayon::prelude::*;

/// Below this many elements, waking another thread costs more than it saves.
const WORTH_IT: usize = 1 << 15;
/// Elements in one task.
const TASK: usize = 1 << 13;

/// Calls `f` on ranges that cover `0..n`, in parallel when `n * cost` elements are worth it.
pub fn rows(n: usize, cost: usize, f: impl Fn(Range<usize>) + Sync) {
    if n * cost < WORTH_IT {
        f(0..n);
    } else {
        let step = (TASK / cost.max(1)).max(1);
        (0..n.div_ceil(step)).into_par_iter().for_each(|t| f(t * step..((t + 1) * step).min(n)));
    }
}

/// A buffer that several tasks write, each its own part.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    data: *mut f32,
    len: usize,
    life: PhantomData<&'a mut [f32]>,
}

// SAFETY: `part` is unsafe and asks for disjoint parts.
unsafe impl Send for Shared<'_> {}
// SAFETY: as above.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    /// Shares a buffer until the borrow ends.
    pub fn new(data: &'a mut [f32]) -> Self {
        Shared { data: data.as_mut_ptr(), len: data.len(), life: PhantomData }
    }

    /// A part of the buffer.
    ///
    /// # Safety
    /// No two parts that are alive at once may overlap.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, first: usize, len: usize) -> &'a mut [f32] {
        assert!(first + len <= self.len, "a part outside its buffer");
        // SAFETY: inside the buffer, and disjoint by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(first), len) }
    }
}
