//! Empty histograms for a worker's next interval, made on another thread: they are a megabyte for
//! each op kind, and the half millisecond that clearing some of them takes would hold up ops. If
//! that thread did not run (its core is the server's, and full), the worker takes memory that the
//! kernel clears page by page, as it is touched.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use plimsoll_model::event::OpTimes;

/// Where a worker takes its empty histograms from.
pub struct FreshTimes {
    kinds: usize,
    made: Option<Receiver<Vec<OpTimes>>>,
}

/// Makes them ahead of time.
pub struct Supplier {
    kinds: usize,
    made: SyncSender<Vec<OpTimes>>,
}

impl FreshTimes {
    /// For `kinds` op kinds, made when they are taken.
    pub const fn on_the_spot(kinds: usize) -> Self {
        Self { kinds, made: None }
    }

    /// For `kinds` op kinds, made by a [`Supplier`] that runs on its own thread.
    pub fn supplied(kinds: usize) -> (Supplier, Self) {
        let (to, made) = sync_channel(1);
        (Supplier { kinds, made: to }, Self { kinds, made: Some(made) })
    }

    /// An empty set for each op kind; created here if none is ready.
    pub fn take(&self) -> Vec<OpTimes> {
        let ready = self.made.as_ref().and_then(|made| made.try_recv().ok());
        ready.unwrap_or_else(|| (0..self.kinds).map(|_| OpTimes::new()).collect())
    }
}

impl Supplier {
    /// Keeps one set ready until the worker is gone.
    pub fn run(self) {
        while self.made.send(touched(self.kinds)).is_ok() {}
    }
}

fn touched(kinds: usize) -> Vec<OpTimes> {
    let mut all: Vec<OpTimes> = (0..kinds).map(|_| OpTimes::new()).collect();
    all.iter_mut().for_each(OpTimes::clear);
    all
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn every_set_is_empty_and_the_supplier_ends_with_its_worker() {
        let (supplier, fresh) = FreshTimes::supplied(2);
        thread::scope(|scope| {
            let supplying = scope.spawn(|| supplier.run());
            for _ in 0..5 {
                let mut set = fresh.take();
                assert_eq!(set.len(), 2);
                assert!(set.iter().all(|times| times.response.is_empty()));
                set[1].response.record(7).unwrap();
            }
            drop(fresh);
            supplying.join().unwrap();
        });
    }
}
