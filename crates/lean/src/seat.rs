//! A session's seat at a worker. A session that is held up there goes where it is served sooner:
//! states are known by their tactics, so that all it costs is to make them again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::pool::Pool;
use crate::slot::{Slot, Turn, file};
use crate::worker::{Owner, Place, Worker};

/// How long a session waits for its worker before it looks around.
const LOOK: Duration = Duration::from_secs(1);

/// See the module's text.
pub(crate) struct Seat {
    slot: Arc<Slot>,
    place: Arc<Place>,
    /// Whose workers it may choose from, and who is told what its tactics take.
    pool: Option<Arc<Pool>>,
    tactics: usize,
}

impl Seat {
    /// Takes a seat. A stranger's session stays where it is: what else its process was given is
    /// counted (`check.rs`).
    pub fn take(slot: Arc<Slot>, place: Arc<Place>, pool: &Arc<Pool>) -> Seat {
        slot.enter(&place);
        let pool = (place.owner == Owner::User).then(|| Arc::clone(pool));
        Seat { slot, place, pool, tactics: 0 }
    }

    /// The only seat at a worker.
    pub fn alone(worker: Worker, place: Arc<Place>) -> Seat {
        let slot = Slot::new(worker);
        slot.enter(&place);
        Seat { slot, place, pool: None, tactics: 0 }
    }

    pub fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    pub fn place(&self) -> &Arc<Place> {
        &self.place
    }

    /// Its worker, once that is free. Before it moves to another, it tells `left` so: what its
    /// states were called holds no more, and what `left` names is left behind.
    pub fn turn<S>(&mut self, mut left: impl FnMut() -> S) -> Turn
    where
        S: IntoIterator<Item = (u64, u64)>,
    {
        if let Some(worker) = self.slot.try_lock() {
            return worker;
        }
        let mut since = Instant::now();
        loop {
            let waited = since.elapsed();
            let pool = self.pool.as_ref();
            if let Some(slot) = pool.and_then(|pool| pool.sooner(&self.slot, &self.place, waited)) {
                self.slot.leave_behind(left());
                self.slot.leave(&self.place);
                self.slot = slot;
                since = Instant::now();
            }
            if let Some(worker) = self.slot.lock_within(LOOK) {
                return worker;
            }
        }
    }

    /// One of its tactics took so long.
    pub fn tried(&mut self, took: Duration) {
        self.tactics += 1;
        if let Some(pool) = &self.pool {
            pool.pace().tried(file(&self.place), took.as_secs_f64());
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.slot.leave(&self.place);
        if let Some(pool) = &self.pool {
            if self.tactics > 0 {
                pool.pace().ended(self.tactics);
            }
            pool.freed();
        }
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

    fn stays() -> Vec<(u64, u64)> {
        panic!("it moved")
    }

    #[test]
    fn a_session_that_is_held_up_moves() {
        let pool = pool(2);
        let mut seats: Vec<Seat> = (0..6).map(|_| pool.choose(&place("A", 10_000))).collect();
        let first = Arc::clone(seats[0].slot());
        let here = |seats: &[Seat]| seats.iter().filter(|s| Arc::ptr_eq(s.slot(), &first)).count();
        assert_eq!(here(&seats), 6, "a session is a second, and to open the file takes six");

        // Its tactics turn out to take seconds, and somebody else has the worker.
        for _ in 0..20 {
            seats[0].tried(Duration::from_secs(3));
        }
        let held = first.lock();
        let mut told = 0;
        let turn = seats[1].turn(|| {
            told += 1;
            [(1, 7)]
        });
        assert_eq!((told, here(&seats)), (1, 5));
        drop(turn);
        // Where nobody is, it stays although its old worker is free again.
        drop(held);
        drop(seats[1].turn(stays));
        // So many go as it pays for.
        let held = first.lock();
        drop(seats[2].turn(|| []));
        assert_eq!(here(&seats), 4);
        assert!(pool.sooner(&first, seats[3].place(), Duration::ZERO).is_none());
        drop(held);
        drop(seats);
        assert!(pool.slots.iter().all(|slot| slot.sessions() == 0));
    }

    /// A tactic that has not ended yet says nothing of how long it takes, but who waits can tell.
    #[test]
    fn a_session_that_has_waited_long_moves() {
        let pool = pool(2);
        let (one, mut other) = (pool.choose(&place("A", 10)), pool.choose(&place("A", 10)));
        let began = Instant::now();
        let _held = one.slot().lock();
        drop(other.turn(|| []));
        assert!(!Arc::ptr_eq(one.slot(), other.slot()));
        assert!(began.elapsed() > Duration::from_secs(5), "a new process takes four");
    }

    /// How long it waited at one worker says nothing of the next.
    #[test]
    fn a_session_that_has_moved_waits_anew() {
        let pool = pool(3);
        let mut seats: Vec<Seat> = (0..3).map(|_| pool.choose(&place("A", 10))).collect();
        let mut last = seats.pop().unwrap();
        let _held = last.slot().lock();
        let (mut moves, all) = (0, pool.slots.clone());
        std::thread::scope(|scope| {
            let moved = scope.spawn(move || {
                drop(last.turn(|| {
                    moves += 1;
                    []
                }));
                moves
            });
            // Where it goes it finds somebody, for less than it has waited before.
            let others: Vec<_> = all.iter().filter_map(|slot| slot.try_lock()).collect();
            assert_eq!(others.len(), 2);
            std::thread::sleep(Duration::from_secs(14));
            drop(others);
            assert_eq!(moved.join().unwrap(), 1);
        });
    }

    #[test]
    fn who_is_served_at_once_stays() {
        let pool = pool(2);
        let (mut one, _other) = (pool.choose(&place("A", 10)), pool.choose(&place("A", 10)));
        one.tried(Duration::from_secs(1000));
        drop(one.turn(stays));
    }

    #[test]
    fn a_strangers_session_stays() {
        let pool = pool(2);
        let stranger = Place { owner: Owner::Stranger, ..Place::clone(&place("A", 10)) };
        let mut seat = pool.choose(&Arc::new(stranger));
        let _others: Vec<Seat> = (0..8).map(|_| pool.choose(&place("A", 10))).collect();
        let slot = Arc::clone(seat.slot());
        let held = slot.lock();
        std::thread::scope(|scope| {
            let turn = scope.spawn(move || drop(seat.turn(stays)));
            std::thread::sleep(Duration::from_millis(50));
            drop(held);
            turn.join().unwrap();
        });
    }
}
