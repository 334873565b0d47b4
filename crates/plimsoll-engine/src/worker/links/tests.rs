//! Tests of links over sockets that take everything, or only so much at once.

use super::*;
use crate::driver::{LocalPort, Ready, Received, Wait};

/// Takes everything, or only so much at once.
struct Sockets {
    room_bytes: usize,
    sent: Vec<u8>,
}

impl Driver for Sockets {
    fn now(&mut self) -> Nanos {
        Nanos::ZERO
    }
    fn connect(&mut self, _: Slot, _: LinkKind, _: &Route) -> Result<(), LinkError> {
        Ok(())
    }
    fn connected(&mut self, _: Slot) -> Result<(), LinkError> {
        Ok(())
    }
    fn send(&mut self, _: Slot, bytes: &[u8]) -> Result<usize, LinkError> {
        let taken = &bytes[..bytes.len().min(self.room_bytes)];
        self.sent.extend_from_slice(taken);
        Ok(taken.len())
    }
    fn recv(&mut self, _: Slot, _: &mut [u8]) -> Result<Received, LinkError> {
        Ok(Received::Nothing)
    }
    fn discard(&mut self, _: Slot, _: usize) -> Result<Received, LinkError> {
        Ok(Received::Nothing)
    }
    fn close(&mut self, _: Slot) {}
    fn wait(&mut self, _: Wait, _: &mut Vec<Ready>) {}
}

fn links(room_bytes: usize) -> Links<Sockets> {
    Links::new(Sockets { room_bytes, sent: Vec::new() }, Sending::Batched)
}

fn connect(links: &mut Links<Sockets>) -> Link {
    let to = "127.0.0.1:1".parse().expect("an address");
    let route = Route { to, unix: None, from: None, port: LocalPort::Any };
    let link = links.connect(0, LinkKind::Stream, &route);
    assert_eq!(links.writable(link), Ok(true));
    link
}

#[test]
fn a_closed_slot_is_used_again_in_the_next_round_under_another_name() {
    let mut links = links(usize::MAX);
    let mut names = std::collections::BTreeSet::new();
    let mut before: Option<Link> = None;
    for _ in 0..1_000 {
        let first = connect(&mut links);
        let old_is_nobody =
            |links: &mut Links<Sockets>| before.is_none_or(|old| links.get(old).is_none());
        assert!(old_is_nobody(&mut links));
        links.close(first);
        let second = connect(&mut links);
        assert!(old_is_nobody(&mut links));
        before = Some(first);
        assert_ne!(first.slot(), second.slot(), "events of this round may name the first");
        links.close(second);
        assert!(names.insert(first.0) && names.insert(second.0), "a name is used once");
        assert!(links.get(first).is_none() && links.get(second).is_none());
        links.end_round();
    }
    assert_eq!(links.states.len(), 2);
}

#[test]
fn what_was_sent_in_the_turn_leaves_before_its_link_is_closed() {
    let mut links = links(usize::MAX);
    let link = connect(&mut links);
    links.send(link, b"last words");
    links.close(link);
    links.flush_queued();
    assert_eq!(links.driver().sent, b"last words");
}

#[test]
fn a_socket_that_takes_no_more_is_not_asked_again_when_its_link_is_closed() {
    let mut links = links(4);
    let link = connect(&mut links);
    links.send(link, b"last words");
    links.flush_queued();
    links.close(link);
    assert_eq!(links.driver().sent, b"last");
    assert_eq!(links.bytes_sent(), 4);
}

#[test]
fn a_buffer_is_kept_unless_it_has_grown_large_or_is_seldom_needed() {
    let mut outbox = Outbox::default();
    outbox.push(LinkKind::Datagram, &[1; 100]);
    outbox.push(LinkKind::Datagram, &[]);
    outbox.clear(Memory::Keep);
    assert!(outbox.is_empty() && outbox.bytes.capacity() >= 100);
    outbox.clear(Memory::Free);
    assert_eq!(outbox.bytes.capacity(), 0);
    outbox.push(LinkKind::Stream, &vec![1; KEPT_BYTES_MAX + 1]);
    outbox.clear(Memory::Keep);
    assert_eq!((outbox.len(), outbox.bytes.capacity()), (0, 0));
}
