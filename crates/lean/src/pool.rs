//! The workers that serve sessions, and which of them serves the next one.
//!
//! A worker that has elaborated a theorem's file is worth waiting for: a file takes seconds, a
//! search often less. So a session goes where it is expected to be served soonest, by what sessions
//! in the files there took so far. A file takes memory that its process never gives back, and a
//! process that is full has to be replaced, with all that it holds: so a session in a file more
//! than a worker has room for waits for another to end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::pace::Pace;
use crate::seat::Seat;
use crate::slot::{Expected, Slot, file};
use crate::worker::{Place, Worker};

/// How long a session waits for room. Whoever holds it may be waiting for the same thread.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);

/// A session moves where it is served in half the time, and in so many seconds less: what is
/// expected may be wrong, and its states have to be made again.
const HALF: f64 = 0.5;
const WORTH: f64 = 1.0;

/// See the module's text.
pub(crate) struct Pool {
    pub slots: Vec<Arc<Slot>>,
    expected: Mutex<Vec<Expected>>,
    pace: Mutex<Pace>,
    /// A worker that holds so many MiB is replaced.
    most_mb: u64,
    /// Told when a session ends.
    freed: Condvar,
}

impl Pool {
    pub fn new(workers: impl Iterator<Item = Worker>, most_mb: u64) -> Pool {
        let slots: Vec<_> = workers.map(Slot::new).collect();
        let expected = Mutex::new(slots.iter().map(|_| Expected::default()).collect());
        let (pace, freed) = Default::default();
        Pool { slots, expected, pace, most_mb, freed }
    }

    /// What is known of how long sessions take.
    pub fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock()
    }

    /// A session has ended.
    pub fn freed(&self) {
        self.freed.notify_all();
    }

    /// A seat at the worker that is expected to serve a session at `place` soonest, once one has
    /// room.
    pub fn choose(self: &Arc<Self>, place: &Arc<Place>) -> Seat {
        let mut expected = self.expected.lock();
        let begin = Instant::now();
        let at = loop {
            let anyway = begin.elapsed() >= PATIENCE;
            let open = |slot: &Slot, holds: &Expected| anyway || self.room(slot, place, holds);
            if let Some((at, _)) = self.soonest(&mut expected, place, open) {
                break at;
            }
            self.freed.wait_for(&mut expected, LOOK);
        };
        expected[at].add(place);
        Seat::take(Arc::clone(&self.slots[at]), Arc::clone(place), self)
    }

    /// A worker that serves a session at `place` so much sooner than that of `slot`, for which it
    /// has waited already, that it is worth moving to; it is counted there from then on.
    pub fn sooner(&self, slot: &Slot, place: &Place, waited: Duration) -> Option<Arc<Slot>> {
        let mut expected = self.expected.lock();
        let another = |other: &Slot, holds: &Expected| {
            !std::ptr::eq(other, slot) && self.room(other, place, holds)
        };
        let (at, there) = self.soonest(&mut expected, place, another)?;
        let pace = self.pace();
        let others = slot.busy_for(&pace) - pace.session(&file(place));
        // Whoever has waited for long will probably wait for as long again.
        let here = others.max(waited.as_secs_f64());
        (there + WORTH < here * HALF).then(|| {
            expected[at].add(place);
            self.slots[at].enter(place);
            Arc::clone(&self.slots[at])
        })
    }

    fn room(&self, slot: &Slot, place: &Place, holds: &Expected) -> bool {
        slot.has_room(place, holds, self.most_mb)
    }

    /// Where, of the workers that are open to it, a session would be served soonest, and in how
    /// many seconds.
    fn soonest(
        &self,
        expected: &mut [Expected],
        place: &Place,
        open: impl Fn(&Slot, &Expected) -> bool,
    ) -> Option<(usize, f64)> {
        let pace = self.pace();
        let mut soonest = None;
        for (at, (slot, holds)) in self.slots.iter().zip(expected).enumerate() {
            // A worker at rest may have been replaced since: look at what it really holds.
            if slot.sessions() == 0
                && let Some(worker) = slot.try_lock()
            {
                *holds = Expected::of(&worker);
            }
            let delay = holds.delay(place) + slot.busy_for(&pace);
            if open(slot, holds) && soonest.is_none_or(|(_, least)| delay < least) {
                soonest = Some((at, delay));
            }
        }
        soonest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Launch;
    use crate::slot::tests::place;

    fn pool(workers: usize) -> Arc<Pool> {
        let worker = |_| Worker::new(Launch::of_nothing(), Arc::default());
        Arc::new(Pool::new((0..workers).map(worker), 1000))
    }

    #[test]
    fn a_session_in_one_more_file_waits_for_room() {
        let (a, b, c) = (place("A", 10), place("B", 10), place("C", 10));
        let pool = pool(1);
        let first = pool.choose(&a);
        pool.slots[0].holds(1, 700);
        // What is loaded needs no more room, and another file has some.
        let second = pool.choose(&a);
        let third = pool.choose(&b);
        // That one is on its way: there is room for its 60 MiB, and not for as many again.
        pool.slots[0].holds(1, 780);
        let (sender, chosen) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| sender.send(pool.choose(&c)));
            let wait = LOOK * 2;
            assert!(chosen.recv_timeout(wait).is_err(), "it has no room");
            drop(first);
            assert!(chosen.recv_timeout(wait).is_err(), "others are in both files");
            drop((second, third));
            // Nobody needs what the process holds: it may be replaced.
            let last = chosen.recv_timeout(wait).expect("a seat");
            assert_eq!(last.slot().sessions(), 1);
        });
    }

    #[test]
    fn a_full_worker_is_passed_over_for_one_with_room() {
        let (a, b) = (place("A", 10), place("B", 500_000));
        let pool = pool(2);
        let first = pool.choose(&a);
        pool.slots[0].holds(1, 800);
        let other = pool.choose(&b);
        assert!(!Arc::ptr_eq(first.slot(), other.slot()));
        let own = pool.choose(&a);
        assert!(Arc::ptr_eq(first.slot(), own.slot()), "its own file is no more to hold");
    }

    #[test]
    fn sessions_in_a_slow_file_are_spread() {
        let (slow, quick) = (place("Slow", 10_000), place("Quick", 10_000));
        let pool = pool(2);
        let mut first = pool.choose(&slow);
        for _ in 0..20 {
            first.tried(Duration::from_secs(1));
        }
        let seats: Vec<Seat> = (0..3).map(|_| pool.choose(&slow)).collect();
        let here = |seat: &&Seat| Arc::ptr_eq(seat.slot(), first.slot());
        assert_eq!(seats.iter().filter(here).count(), 1, "two each");
        let seat = pool.choose(&quick);
        let again = pool.choose(&quick);
        assert!(Arc::ptr_eq(seat.slot(), again.slot()), "a quick one is where it is loaded");
    }
}
