//! `/proc/net/tcp` and `tcp6`: what waits in the queues of a server's sockets.

/// States of a TCP socket in which something may wait (the kernel's numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketState {
    /// Open on both sides.
    Established = 1,
    /// The peer has closed, we have not.
    CloseWait = 8,
    /// Waits for connections.
    Listens = 10,
}

impl SocketState {
    /// All of them.
    pub const QUEUED: [Self; 3] = [Self::Established, Self::CloseWait, Self::Listens];

    /// As the kernel numbers it.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// None of other states.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::QUEUED.into_iter().find(|state| state.number() == number)
    }
}

/// Queues of the sockets of some ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketQueues {
    /// Open connections.
    pub connections: u64,
    /// Bytes that the server has written and the peers have not acknowledged.
    pub send_bytes: u64,
    /// Bytes that have arrived and the server has not read.
    pub receive_bytes: u64,
    /// Connections that wait to be accepted.
    pub accept: u64,
}

impl SocketQueues {
    /// One socket more.
    pub fn add(&mut self, state: SocketState, send_bytes: u64, receive: u64) {
        match state {
            SocketState::Listens => self.accept = self.accept.saturating_add(receive),
            SocketState::Established | SocketState::CloseWait => {
                self.connections += 1;
                self.send_bytes = self.send_bytes.saturating_add(send_bytes);
                self.receive_bytes = self.receive_bytes.saturating_add(receive);
            }
        }
    }
}

/// Adds up the sockets of these local ports (proc_net(5)).
pub fn parse_socket_queues(text: &str, ports: &[u16], queues: &mut SocketQueues) {
    for line in text.lines().skip(1) {
        // Most lines are of other sockets: no more of them is read than needed.
        if let Some((state, send, receive)) = parse_line(line, ports) {
            queues.add(state, send, receive);
        }
    }
}

fn parse_line(line: &str, ports: &[u16]) -> Option<(SocketState, u64, u64)> {
    let mut words = line.split_ascii_whitespace();
    let (_, port) = words.nth(1)?.rsplit_once(':')?;
    let port = u16::from_str_radix(port, 16).ok().filter(|port| ports.contains(port));
    port?;
    let state = SocketState::of_number(u8::from_str_radix(words.nth(1)?, 16).ok()?)?;
    let (send, receive) = words.next()?.split_once(':')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((state, number(send)?, number(receive)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_of_the_ports_asked_for() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000 0 0 1 1 0\n\
            1: 0100007F:1F90 0100007F:C350 01 00000400:00000010 00:00000000 00000000 0 0 2 1 0\n\
            2: 0100007F:C350 0100007F:1F90 01 00000001:00000001 00:00000000 00000000 0 0 3 1 0\n\
            3: 0100007F:1F90 0100007F:C351 06 00000000:00000000 03:00000000 00000000 0 0 0 3 0\n\
            4: garbage\n";
        let mut queues = SocketQueues::default();
        parse_socket_queues(text, &[8_080], &mut queues);
        let expected =
            SocketQueues { connections: 1, send_bytes: 1_024, receive_bytes: 16, accept: 3 };
        assert_eq!(queues, expected);
    }
}
