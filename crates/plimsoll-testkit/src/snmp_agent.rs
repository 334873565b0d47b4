//! An SNMP agent with written values: answers GetBulk requests of SNMP version 2c on a UDP socket.
//! Its BER is written by hand, so that tests do not rely on the crate for it.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::thread::JoinHandle;

/// The community that an agent lets in.
pub const COMMUNITY: &str = "s3cret";
/// Tags of values (RFC 2578 §7.1).
pub const INTEGER: u8 = 0x02;
/// See [`INTEGER`].
pub const COUNTER_32: u8 = 0x41;
/// See [`INTEGER`].
pub const GAUGE_32: u8 = 0x42;
/// See [`INTEGER`].
pub const TIME_TICKS: u8 = 0x43;
/// See [`INTEGER`].
pub const COUNTER_64: u8 = 0x46;

/// Values in BER by their object identifiers.
pub type Table = BTreeMap<Vec<u64>, Vec<u8>>;

/// A running agent; stops when dropped.
pub struct SnmpAgent {
    socket: UdpSocket,
    thread: Option<JoinHandle<()>>,
}

impl SnmpAgent {
    /// Serves on this socket what `table` returns at each request; a request without a table stays
    /// without an answer.
    pub fn start(socket: UdpSocket, table: impl Fn() -> Option<Table> + Send + 'static) -> Self {
        let serving = socket.try_clone().unwrap();
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            // A socket that was shut down returns an error, or nothing.
            while let Ok((length @ 1.., from)) = serving.recv_from(&mut buffer) {
                let answer = table().and_then(|table| answer(&buffer[..length], &table));
                if let Some(answer) = answer {
                    serving.send_to(&answer, from).unwrap();
                }
            }
        });
        Self { socket, thread: Some(thread) }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }
}

impl Drop for SnmpAgent {
    fn drop(&mut self) {
        // Wakes the thread, although the socket "is not connected".
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

/// A text.
pub fn text(text: &str) -> Vec<u8> {
    element(0x04, text.as_bytes())
}

/// A number with this tag.
pub fn number(tag: u8, value: u64) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let skip = bytes.iter().take_while(|byte| **byte == 0).count().min(7);
    let mut content = bytes[skip..].to_vec();
    if content[0] & 0x80 != 0 {
        content.insert(0, 0);
    }
    element(tag, &content)
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut bytes = vec![tag];
    match length {
        ..=127 => bytes.push(length as u8),
        _ => bytes.extend([0x82, (length >> 8) as u8, length as u8]),
    }
    bytes.extend_from_slice(content);
    bytes
}

fn oid(id: &[u64]) -> Vec<u8> {
    let mut content = vec![(id[0] * 40 + id[1]) as u8];
    for part in &id[2..] {
        let mut groups = vec![(part & 0x7f) as u8];
        let mut rest = part >> 7;
        while rest > 0 {
            groups.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        content.extend(groups.iter().rev());
    }
    element(6, &content)
}

/// The content of the next element, and what follows it.
fn content(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (start, length) = match bytes[1] {
        0x81 => (3, usize::from(bytes[2])),
        0x82 => (4, usize::from(bytes[2]) << 8 | usize::from(bytes[3])),
        short => (2, usize::from(short)),
    };
    (&bytes[start..start + length], &bytes[start + length..])
}

fn id_of(bytes: &[u8]) -> Vec<u64> {
    let mut id = vec![u64::from(bytes[0] / 40), u64::from(bytes[0] % 40)];
    let mut part = 0;
    for byte in &bytes[1..] {
        part = part << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            id.push(part);
            part = 0;
        }
    }
    id
}

/// Answer to a GetBulk with the right community (RFC 3416 §4.2.3).
pub fn answer(question: &[u8], table: &Table) -> Option<Vec<u8>> {
    let (message, _) = content(question);
    let (_, rest) = content(message);
    let (community, pdu) = content(rest);
    if community != COMMUNITY.as_bytes() {
        return None;
    }
    let (fields, _) = content(pdu);
    let (request, rest) = content(fields);
    let (_, rest) = content(rest);
    let (repetitions, rest) = content(rest);
    let (binding, _) = content(content(rest).0);
    let requested = id_of(content(binding).0);
    let mut bindings = Vec::new();
    let after = table.range(requested.clone()..).filter(|(id, _)| **id > requested);
    for (id, value) in after.take(usize::from(repetitions[0])) {
        bindings.extend(element(0x30, &[oid(id), value.clone()].concat()));
    }
    if bindings.is_empty() {
        bindings = element(0x30, &[oid(&requested), vec![0x82, 0]].concat());
    }
    let none = number(INTEGER, 0);
    let body = [element(2, request), none.clone(), none, element(0x30, &bindings)].concat();
    let message = [number(INTEGER, 1), element(4, community), element(0xa2, &body)].concat();
    Some(element(0x30, &message))
}
