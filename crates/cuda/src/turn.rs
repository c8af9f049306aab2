//! Whose turn it is, and what may be done in it. Operations share streams and scratch memory, so
//! one thread queues at a time; and some operations leave work to the next (`pending.rs`), so that
//! an operation must say what becomes of that before it queues anything of its own. A turn's type
//! is how far that has come:
//!
//! ```text
//! turn_beside() ─▶ Beside ──writing(ids)──▶ Waiting ──settle()─────────▶ Ready ──leave(..)──▶ over
//! turn_to_wait() ─────────────────────────▶ Waiting ──take_part(..)────▶ Ready
//! turn() ──────────────────────────────────────────────────────────────▶ Ready
//! ```
//!
//! Only a [`Ready`] turn launches, and there is no way to it past what waits. There is one at a
//! time: what one leaves would otherwise be unknown to another on the same thread, to which the
//! lock is open. And it does not compile to go on with a turn that has left something:
//!
//! ```
//! # use catamount_cuda::turns::Ready;
//! fn once(turn: Ready<'_>) {
//!     queue(&turn);
//!     leave(turn);
//! }
//! fn queue(_: &Ready<'_>) {}
//! fn leave(_: Ready<'_>) {}
//! ```
//!
//! ```compile_fail,E0382
//! # use catamount_cuda::turns::Ready;
//! fn once(turn: Ready<'_>) {
//!     leave(turn);
//!     queue(&turn);
//! }
//! fn queue(_: &Ready<'_>) {}
//! fn leave(_: Ready<'_>) {}
//! ```

use std::cell::RefMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use catamount_model::{Error, Result};
use parking_lot::ReentrantMutexGuard;

use crate::address::{Address, Computed};
use crate::correction::Correction;
use crate::cuda::{Cuda, State};
use crate::matmul::Product;
use crate::pending::Pending;
use crate::side::Side;

type Guard<'a> = ReentrantMutexGuard<'a, std::cell::RefCell<State>>;

/// A turn in which work left on a side may still run: it reads buffers that must not be written to.
#[must_use]
pub(crate) struct Beside<'a>(Held<'a>);

/// A turn in which an operation may still wait.
#[must_use]
pub(crate) struct Waiting<'a>(Held<'a>);

/// A turn in which nothing waits: operations can be queued.
#[must_use]
pub struct Ready<'a> {
    /// Given up before the lock is.
    _only: Only,
    held: Held<'a>,
}

/// Whether there is a turn that can queue.
#[derive(Default)]
pub(crate) struct Live(Arc<AtomicBool>);

/// Held by the one turn that can queue.
struct Only(Arc<AtomicBool>);

impl Live {
    fn claim(&self) -> Result<Only> {
        if self.0.swap(true, Ordering::Relaxed) {
            return Err(Error::Device(
                "an operation began within another one's turn: end that first, or hold it".into(),
            ));
        }
        Ok(Only(self.0.clone()))
    }
}

impl Drop for Only {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Keeps other threads out, and no more.
pub(crate) struct Held<'a> {
    cuda: &'a Cuda,
    guard: Guard<'a>,
}

impl<'a> Held<'a> {
    pub fn state(&self) -> RefMut<'_, State> {
        self.guard.borrow_mut()
    }

    fn ready(self) -> Result<Ready<'a>> {
        let only = self.state().live.claim()?;
        Ok(Ready { _only: only, held: self })
    }
}

impl Cuda {
    /// The right to queue an operation, after what waits.
    pub(crate) fn turn(&self) -> Result<Ready<'_>> {
        let turn = self.turn_to_wait()?;
        if self.device.pending.load(Ordering::Relaxed) { turn.settle() } else { turn.0.ready() }
    }

    /// The right to say what becomes of what waits.
    pub(crate) fn turn_to_wait(&self) -> Result<Waiting<'_>> {
        let Beside(held) = self.turn_beside()?;
        self.join_loose()?;
        Ok(Waiting(held))
    }

    /// The same for operations that may run while a side still has work that nothing waits for.
    pub(crate) fn turn_beside(&self) -> Result<Beside<'_>> {
        let guard = self.lock();
        self.device.bind()?;
        Ok(Beside(Held { cuda: self, guard }))
    }

    /// Lets what follows wait for what was left on a side.
    pub(crate) fn join_loose(&self) -> Result<()> {
        if self.device.loose.load(Ordering::Relaxed) {
            self.device.join(Side::Behind)?;
            if !self.device.pending.load(Ordering::Relaxed) && !self.device.is_recording() {
                self.device.release_deferred();
            }
        }
        Ok(())
    }
}

impl<'a> Beside<'a> {
    /// Goes on with an operation that writes to these buffers and to no others that a side may be
    /// reading: what the side does is waited for where it reads one of them.
    pub fn writing(self, ids: &[u64]) -> Result<Waiting<'a>> {
        let read = self.0.state().read_beside;
        if read.iter().any(|id| ids.contains(id)) {
            self.0.cuda.join_loose()?;
        }
        Ok(Waiting(self.0))
    }
}

impl<'a> Waiting<'a> {
    /// Queues what waits.
    pub fn settle(self) -> Result<Ready<'a>> {
        let (cuda, turn) = (self.0.cuda, self.0.ready()?);
        let pending = turn.state().pending.take();
        match pending {
            None => {}
            Some(Pending::Product(product, _)) => cuda.product(&turn, &product)?,
            Some(Pending::Correction(correction)) => cuda.add_correction(&turn, &correction)?,
            Some(Pending::Rotation(rotation)) => cuda.rotate(&turn, &rotation, None)?,
        }
        turn.let_go();
        Ok(turn)
    }

    /// What waits, if it is what is looked for: the caller queues it. Anything else is queued.
    pub fn take<T>(
        self,
        find: impl FnOnce(&Pending) -> Option<T>,
    ) -> Result<(Ready<'a>, Option<T>)> {
        let found = self.0.state().pending.as_ref().and_then(find);
        if found.is_none() {
            return Ok((self.settle()?, None));
        }
        let turn = self.0.ready()?;
        turn.state().pending = None;
        Ok((turn, found))
    }

    /// The product with these operands, if it is what waits: the caller queues it.
    pub fn take_product(self, operands: [u64; 2]) -> Result<(Ready<'a>, Option<Product>)> {
        self.take(|pending| match pending {
            Pending::Product(product, of) if *of == operands => Some(*product),
            _ => None,
        })
    }

    /// The address of what an adapter has yet to add to the first `len` numbers of this buffer, or
    /// null: the caller adds it.
    pub fn take_part(self, y_id: u64, len: usize) -> Result<(Ready<'a>, Address<Computed>)> {
        let (turn, part) = self.take(|pending| match pending {
            Pending::Correction(c @ Correction { .. }) if c.y_id == y_id && c.len == len => {
                Some(c.part)
            }
            _ => None,
        })?;
        Ok((turn, part.unwrap_or(Address::NULL)))
    }
}

impl<'a> Ready<'a> {
    pub(crate) fn state(&self) -> RefMut<'_, State> {
        self.held.state()
    }

    pub(crate) fn cuda(&self) -> &'a Cuda {
        self.held.cuda
    }

    /// Leaves work to the operation that comes next, and ends the turn.
    pub(crate) fn leave(self, pending: Pending) {
        self.state().pending = Some(pending);
        self.held.cuda.device.pending.store(true, Ordering::Relaxed);
    }

    /// Gives up the right to queue, and still keeps other threads out: for work that takes turns of
    /// its own.
    pub(crate) fn hold(self) -> Held<'a> {
        let held = Held { cuda: self.held.cuda, guard: self.held.cuda.lock() };
        drop(self);
        held
    }

    /// Frees the buffers that were given back while something waited, which is queued by now.
    fn let_go(&self) {
        let device = &self.held.cuda.device;
        device.pending.store(false, Ordering::Relaxed);
        if !device.is_recording() && !device.loose.load(Ordering::Relaxed) {
            device.release_deferred();
        }
    }
}

impl Drop for Ready<'_> {
    /// What waited when the turn began is queued by now, or something else has been left.
    fn drop(&mut self) {
        let nothing = self.state().pending.is_none();
        if nothing && self.held.cuda.device.pending.load(Ordering::Relaxed) {
            self.let_go();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_turn_is_refused_while_one_can_queue() {
        let live = Live::default();
        let first = live.claim().unwrap();
        assert!(live.claim().is_err_and(|e| e.to_string().contains("another one's turn")));
        drop(first);
        assert!(live.claim().is_ok());
    }
}
