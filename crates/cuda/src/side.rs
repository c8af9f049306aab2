//! Work beside the stream's. An operation marks where a side may start from, goes on queueing, and
//! then queues beside that; what was queued there is joined, or left until something needs it. Each
//! of these steps gives what the next one takes, and while work is queued beside, the turn is
//! borrowed: a product, which runs on the main stream, cannot be among it.
//!
//! ```
//! # use catamount_cuda::turns::{Ready, Side};
//! # use catamount_model::Result;
//! # #[deny(unused_must_use)]
//! fn beside(turn: &mut Ready<'_>) -> Result<()> {
//!     let fork = turn.fork()?;
//!     product(turn);
//!     let left = fork.beside(turn, Side::Behind, |_aside| Ok(()));
//!     left.join(turn)
//! }
//! fn product(_: &Ready<'_>) {}
//! ```
//!
//! A product beside does not compile:
//!
//! ```compile_fail,E0502
//! # use catamount_cuda::turns::{Ready, Side};
//! # use catamount_model::Result;
//! # #[deny(unused_must_use)]
//! fn beside(turn: &mut Ready<'_>) -> Result<()> {
//!     let fork = turn.fork()?;
//!     let left = fork.beside(turn, Side::Behind, |_aside| Ok(product(turn)));
//!     left.join(turn)
//! }
//! fn product(_: &Ready<'_>) {}
//! ```
//!
//! nor does what nobody joins:
//!
//! ```compile_fail
//! # use catamount_cuda::turns::{Ready, Side};
//! # use catamount_model::Result;
//! # #[deny(unused_must_use)]
//! fn beside(turn: &mut Ready<'_>) -> Result<()> {
//!     let fork = turn.fork()?;
//!     product(turn);
//!     fork.beside(turn, Side::Behind, |_aside| Ok(()));
//!     Ok(())
//! }
//! fn product(_: &Ready<'_>) {}
//! ```
//!
//! nor two that start from one fork:
//!
//! ```compile_fail,E0382
//! # use catamount_cuda::turns::{Ready, Side};
//! # use catamount_model::Result;
//! # #[deny(unused_must_use)]
//! fn beside(turn: &mut Ready<'_>) -> Result<()> {
//!     let fork = turn.fork()?;
//!     fork.beside(turn, Side::Ahead, |_aside| Ok(())).join(turn)?;
//!     fork.beside(turn, Side::Behind, |_aside| Ok(())).join(turn)
//! }
//! ```

use std::cell::RefMut;
use std::sync::atomic::Ordering;

use catamount_model::Result;
use cudarc::driver::sys;

use crate::cuda::State;
use crate::turn::Ready;

/// A stream beside the main one.
#[derive(Clone, Copy)]
pub enum Side {
    /// Before everything else: small work that a long product would keep waiting.
    Ahead,
    /// After everything else: it fills what large products leave idle.
    Behind,
}

/// Where kernels can be queued: the turn's own stream, or a side.
pub(crate) trait Queue {
    fn state(&self) -> RefMut<'_, State>;
    fn stream(&self) -> sys::CUstream;
}

impl Queue for Ready<'_> {
    fn state(&self) -> RefMut<'_, State> {
        Ready::state(self)
    }

    fn stream(&self) -> sys::CUstream {
        self.cuda().device.stream
    }
}

/// Where what is queued beside starts from.
#[must_use]
pub struct Fork(());

/// The right to queue kernels, and nothing else, on a side.
pub struct Aside<'a> {
    turn: &'a Ready<'a>,
    stream: sys::CUstream,
}

impl Queue for Aside<'_> {
    fn state(&self) -> RefMut<'_, State> {
        self.turn.state()
    }

    fn stream(&self) -> sys::CUstream {
        self.stream
    }
}

/// What was queued on a side, if it was (while a profile is taken, nothing runs beside anything
/// else), and whether that went well.
#[must_use]
pub struct Left {
    side: Option<Side>,
    queued: Result<()>,
}

impl Ready<'_> {
    /// Where what is queued beside starts from: what is queued before is done by then. What is
    /// queued afterwards, but before [`Fork::beside`], is the first to be given room.
    pub fn fork(&self) -> Result<Fork> {
        let profiling = self.state().profile.is_some();
        if !profiling {
            self.cuda().device.fork()?;
        }
        Ok(Fork(()))
    }
}

impl Fork {
    /// Queues `work` beside the rest. What it uses must stay untouched until it is joined.
    pub fn beside(
        self,
        turn: &mut Ready<'_>,
        side: Side,
        work: impl FnOnce(&Aside<'_>) -> Result<()>,
    ) -> Left {
        let turn = &*turn;
        let device = &turn.cuda().device;
        let profiling = turn.state().profile.is_some();
        if profiling {
            let queued = work(&Aside { turn, stream: device.stream });
            return Left { side: None, queued };
        }
        let queued = device.beside(side, |stream| work(&Aside { turn, stream }));
        Left { side: Some(side), queued }
    }
}

impl Left {
    /// Lets what follows wait for it.
    pub fn join(self, turn: &Ready<'_>) -> Result<()> {
        let joined = self.side.map_or(Ok(()), |side| turn.cuda().device.join(side));
        joined.and(self.queued)
    }

    /// Leaves it to run until an operation needs what it uses; it reads these buffers. It must be
    /// on the side behind, which is the one that operations look for.
    pub fn leave(self, turn: &Ready<'_>, reads: [u64; 3]) -> Result<()> {
        if self.queued.is_err() || !matches!(self.side, Some(Side::Behind)) {
            return self.join(turn);
        }
        turn.state().read_beside = reads;
        turn.cuda().device.loose.store(true, Ordering::Relaxed);
        Ok(())
    }
}
