//! Which clients are free to take an op, the longest idle first, by the schedule that they serve.

use std::collections::VecDeque;

use plimsoll_model::units::Nanos;

/// The free clients of every schedule.
#[derive(Default)]
pub(super) struct FreeClients {
    /// By schedule.
    lists: Vec<VecDeque<u32>>,
    /// By client.
    places: Vec<Place>,
}

struct Place {
    schedule: u32,
    /// Stands in its schedule's list.
    listed: bool,
    /// Since when it could have taken an op.
    free_since: Nanos,
}

impl FreeClients {
    pub(super) fn add_schedule(&mut self) {
        self.lists.push(VecDeque::new());
    }

    /// One more client, free, that serves this schedule.
    pub(super) fn add_client(&mut self, schedule: u32) {
        let client = self.places.len() as u32;
        self.places.push(Place { schedule, listed: true, free_since: Nanos::ZERO });
        self.lists[schedule as usize].push_back(client);
    }

    /// Which schedule the client serves.
    pub(super) fn schedule_of(&self, client: u32) -> u32 {
        self.places[client as usize].schedule
    }

    /// Since when the client could have taken an op.
    pub(super) fn free_since(&self, client: u32) -> Nanos {
        self.places[client as usize].free_since
    }

    pub(super) fn is_listed(&self, client: u32) -> bool {
        self.places[client as usize].listed
    }

    /// How many clients stand in the schedule's list.
    pub(super) fn count(&self, schedule: u32) -> usize {
        self.lists[schedule as usize].len()
    }

    /// The first of them.
    pub(super) fn first(&self, schedule: u32) -> Option<u32> {
        self.lists[schedule as usize].front().copied()
    }

    /// Takes the first of them.
    pub(super) fn take(&mut self, schedule: u32) -> Option<u32> {
        let client = self.lists[schedule as usize].pop_front()?;
        self.places[client as usize].listed = false;
        Some(client)
    }

    /// From `now` on the client could take an op.
    pub(super) fn became_free(&mut self, client: u32, now: Nanos) {
        self.places[client as usize].free_since = now;
    }

    /// Puts the client at the end of its list, unless it stands there.
    pub(super) fn list(&mut self, client: u32) {
        let place = &mut self.places[client as usize];
        if !std::mem::replace(&mut place.listed, true) {
            self.lists[place.schedule as usize].push_back(client);
        }
    }

    /// Takes the client out, wherever it stands.
    pub(super) fn remove(&mut self, client: u32) {
        let place = &mut self.places[client as usize];
        place.listed = false;
        self.lists[place.schedule as usize].retain(|free| *free != client);
    }
}
