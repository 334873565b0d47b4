//! Relays between a controller and an agent, and counts their messages by kind.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use xtask::verb::Result;

/// Word that makes this program the meter.
pub const METER: &str = "fleet-meter";
/// `PLMS`, version, length.
const HEADER_BYTES: usize = 10;
const CHUNK_BYTES: usize = 64 * 1024;

/// Frames and bytes of one kind.
pub type Sum = (u64, u64);
/// By kind of message. `to` and `from` are the agent's.
pub type Sums = BTreeMap<String, Sum>;

/// Runs the command, and writes the sums to the file when its output ends.
pub fn meter(file: &Path, command_line: &[OsString]) -> Result<()> {
    let [program, arguments @ ..] = command_line else { return Err("no command".to_owned()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("cannot start the agent: {e}"))?;
    let sums = Arc::new(Mutex::new(Sums::new()));
    let (to, from) = (child.stdin.take(), child.stdout.take());
    let input_sums = Arc::clone(&sums);
    // It may wait for more until this process ends.
    thread::spawn(move || to.map(|to| pass(std::io::stdin().lock(), to, ("to", &input_sums))));
    if let Some(from) = from {
        pass(from, std::io::stdout().lock(), ("from", &sums));
    }
    child.wait().map_err(|e| format!("cannot wait for the agent: {e}"))?;
    let sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
    let text = serde_json::to_string(&*sums).map_err(|e| e.to_string())?;
    fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))
}

/// What a meter wrote.
pub fn read(file: &Path) -> Result<Sums> {
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))
}

/// Until either end goes.
fn pass(mut from: impl Read, mut to: impl Write, (direction, sums): (&str, &Mutex<Sums>)) {
    let (mut chunk, mut rest) = (vec![0; CHUNK_BYTES], Vec::new());
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        let bytes = &chunk[..length];
        if to.write_all(bytes).and_then(|()| to.flush()).is_err() {
            return;
        }
        rest.extend_from_slice(bytes);
        let read =
            count(&rest, direction, &mut sums.lock().unwrap_or_else(PoisonError::into_inner));
        rest.drain(..read);
    }
}

/// Adds the frames that are whole; answers with their bytes.
fn count(bytes: &[u8], direction: &str, sums: &mut Sums) -> usize {
    let mut read = 0;
    while let Some((header, rest)) = bytes[read..].split_first_chunk::<HEADER_BYTES>() {
        let [.., l0, l1, l2, l3] = *header;
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        let Some(payload) = rest.get(..length) else { break };
        let sum = sums.entry(format!("{direction} {}", kind(payload))).or_default();
        sum.0 += 1;
        sum.1 += (HEADER_BYTES + length) as u64;
        read += HEADER_BYTES + length;
    }
    read
}

/// The name of a message: a short text in MessagePack, alone or as the one key of a map.
fn kind(payload: &[u8]) -> String {
    let text = match payload {
        [0x81, text @ ..] | text => text,
    };
    let name = match text {
        [marker @ 0xa0..=0xbf, name @ ..] => name.get(..usize::from(marker & 0x1f)),
        _ => None,
    };
    name.map_or_else(|| "?".to_owned(), |name| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [b"PLMS\0\x01", &length[..], payload].concat()
    }

    #[test]
    fn messages_are_counted_by_name_once_they_are_whole() {
        let stream = [frame(b"\xa5Alive"), frame(b"\x81\xa6Second\x90"), frame(b"\xa5Alive")];
        let stream = stream.concat();
        for (whole, read) in [(stream.len(), 51), (stream.len() - 1, 35), (20, 16), (9, 0)] {
            let mut sums = Sums::new();
            assert_eq!(count(&stream[..whole], "from", &mut sums), read);
        }
        let mut sums = Sums::new();
        count(&stream, "from", &mut sums);
        assert_eq!((sums["from Alive"], sums["from Second"]), ((2, 32), (1, 19)));
    }
}
