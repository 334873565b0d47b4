//! `/proc/net/tcp` and `tcp6`: what waits in the queues of a server's sockets.

/// State of an established connection (`TCP_ESTABLISHED` of the kernel).
const ESTABLISHED: &str = "01";
/// The peer has closed, we have not (`TCP_CLOSE_WAIT`).
const CLOSE_WAIT: &str = "08";
/// Waits for connections (`TCP_LISTEN`).
const LISTENS: &str = "0A";

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

/// Adds up the sockets of these local ports (proc_net(5)).
pub fn parse_socket_queues(text: &str, ports: &[u16], queues: &mut SocketQueues) {
    for line in text.lines().skip(1) {
        // Most lines are of other sockets: no more of them is read than needed.
        if let Some(socket) = parse_line(line, ports) {
            match socket.state {
                LISTENS => queues.accept += socket.receive,
                ESTABLISHED | CLOSE_WAIT => {
                    queues.connections += 1;
                    queues.send_bytes = queues.send_bytes.saturating_add(socket.send);
                    queues.receive_bytes = queues.receive_bytes.saturating_add(socket.receive);
                }
                _ => {}
            }
        }
    }
}

struct Socket<'t> {
    state: &'t str,
    send: u64,
    receive: u64,
}

fn parse_line<'t>(line: &'t str, ports: &[u16]) -> Option<Socket<'t>> {
    let mut words = line.split_ascii_whitespace();
    let (_, port) = words.nth(1)?.rsplit_once(':')?;
    let port = u16::from_str_radix(port, 16).ok().filter(|port| ports.contains(port));
    port?;
    let state = words.nth(1)?;
    let (send, receive) = words.next()?.split_once(':')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(Socket { state, send: number(send)?, receive: number(receive)? })
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
