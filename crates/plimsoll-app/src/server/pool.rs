//! The service threads and the one queue they take from.
//!
//! A push wakes at most one thread, the one that fell asleep last: its stack and scratch memory
//! are the warmest. A thread that finds work when it is done does not sleep at all.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A bounded number of threads, and what waits for them.
pub(super) struct Pool<Job> {
    state: Mutex<State<Job>>,
    /// Where each thread sleeps.
    beds: Box<[Condvar]>,
}

struct State<Job> {
    queue: VecDeque<Job>,
    queue_length_max: usize,
    /// Threads asleep, the last to lie down at the end.
    asleep: Vec<usize>,
    /// By thread: whether it was woken.
    is_woken: Box<[bool]>,
    ended: bool,
}

impl<Job> State<Job> {
    fn wake_one(&mut self) -> Option<usize> {
        let thread = self.asleep.pop()?;
        self.is_woken[thread] = true;
        Some(thread)
    }
}

/// The state of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Business {
    pub(super) threads: usize,
    pub(super) threads_busy: usize,
    pub(super) queue_length: usize,
    pub(super) queue_length_max: usize,
}

impl<Job> Pool<Job> {
    /// For `threads` threads, each of which calls [`Pool::take`] with its number. At most
    /// `queue_max` jobs exist at a time.
    pub(super) fn new(threads: usize, queue_max: usize) -> Self {
        let state = State {
            queue: VecDeque::with_capacity(queue_max),
            queue_length_max: 0,
            asleep: Vec::with_capacity(threads),
            is_woken: vec![false; threads].into(),
            ended: false,
        };
        Self { state: Mutex::new(state), beds: (0..threads).map(|_| Condvar::new()).collect() }
    }

    fn state(&self) -> MutexGuard<'_, State<Job>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a job.
    pub(super) fn push(&self, job: Job) {
        let mut state = self.state();
        state.queue.push_back(job);
        state.queue_length_max = state.queue_length_max.max(state.queue.len());
        let sleeper = state.wake_one();
        drop(state);
        sleeper.into_iter().for_each(|thread| self.beds[thread].notify_one());
    }

    /// Queues a job behind the others; `Some`: there are none, and the calling thread can do it at
    /// once.
    pub(super) fn push_unless_first(&self, job: Job) -> Option<Job> {
        let mut state = self.state();
        if state.queue.is_empty() {
            return Some(job);
        }
        // The calling thread takes from the queue next: no wakeup is needed.
        state.queue.push_back(job);
        state.queue_length_max = state.queue_length_max.max(state.queue.len());
        None
    }

    /// The next job for thread number `thread`; sleeps until there is one. `None`: the thread ends.
    pub(super) fn take(&self, thread: usize) -> Option<Job> {
        let mut state = self.state();
        loop {
            if let Some(job) = state.queue.pop_front() {
                return Some(job);
            }
            if state.ended {
                return None;
            }
            state.asleep.push(thread);
            let is_asleep = |state: &mut State<Job>| !std::mem::take(&mut state.is_woken[thread]);
            let woken = self.beds[thread].wait_while(state, is_asleep);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes the jobs that have not begun; the queue is empty afterwards.
    pub(super) fn clear(&self) -> Vec<Job> {
        self.state().queue.drain(..).collect()
    }

    /// Sends the threads home, each after its present job and what is queued.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        while state.wake_one().is_some() {}
        self.beds.iter().for_each(Condvar::notify_one);
    }

    pub(super) fn business(&self) -> Business {
        let state = self.state();
        Business {
            threads: self.beds.len(),
            threads_busy: self.beds.len() - state.asleep.len(),
            queue_length: state.queue.len(),
            queue_length_max: state.queue_length_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Barrier};

    use super::*;

    #[test]
    fn every_job_is_done_once_and_the_threads_go_home() {
        let pool = Arc::new(Pool::new(3, 10_000));
        let done = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                let (pool, done) = (Arc::clone(&pool), Arc::clone(&done));
                std::thread::spawn(move || {
                    while let Some(job) = pool.take(thread) {
                        done.fetch_add(job, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        (1..=10_000).for_each(|job| pool.push(job));
        pool.end();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(done.load(Ordering::Relaxed), 50_005_000);
    }

    #[test]
    fn as_many_jobs_as_threads_are_under_way_at_a_time() {
        let pool = Arc::new(Pool::new(2, 8));
        let meeting = Arc::new(Barrier::new(3));
        for thread in 0..2 {
            let (pool, meeting) = (Arc::clone(&pool), Arc::clone(&meeting));
            std::thread::spawn(move || {
                while let Some(()) = pool.take(thread) {
                    meeting.wait();
                    meeting.wait();
                }
            });
        }
        (0..3).for_each(|_| pool.push(()));
        meeting.wait();
        let busy = pool.business();
        assert_eq!((busy.threads_busy, busy.queue_length), (2, 1));
        assert_eq!(pool.clear().len(), 1);
        meeting.wait();
        pool.end();
    }
}
