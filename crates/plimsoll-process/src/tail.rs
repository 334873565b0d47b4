//! The last bytes of an output, which may end when it likes.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How much of an output is kept for messages.
const TAIL_BYTES_MAX: usize = 4096;
/// How long the last output of a process that has ended may take to arrive.
const TAIL_WAIT: Duration = Duration::from_millis(500);

/// The last bytes that a process wrote.
#[derive(Debug)]
pub struct Tail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    /// Disconnected once the output has ended.
    complete: Receiver<()>,
}

impl Tail {
    /// Drains the output on a thread, so that the process never blocks on it, and keeps the end.
    pub fn from_output(output: Option<impl Read + Send + 'static>) -> io::Result<Self> {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let (until_complete, complete) = channel();
        if let Some(output) = output {
            let kept = Arc::clone(&kept);
            let drain = move || {
                keep_end(output, &kept);
                drop::<Sender<()>>(until_complete);
            };
            thread::Builder::new().name("plimsoll-tail".into()).spawn(drain)?;
        }
        Ok(Self { kept, complete })
    }

    /// What is kept once the output has ended, or after a while: a program that the process left
    /// behind may keep it open.
    pub fn text(&self) -> String {
        let _ = self.complete.recv_timeout(TAIL_WAIT);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn keep_end(mut output: impl Read, kept: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = output.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&buffer[..read]);
        let excess = kept.len().saturating_sub(TAIL_BYTES_MAX);
        kept.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Write as _, pipe};

    use super::*;

    #[test]
    fn the_end_of_an_output_is_kept_though_it_stays_open() {
        let (reader, mut writer) = pipe().unwrap();
        let tail = Tail::from_output(Some(reader)).unwrap();
        writer.write_all(&[b'x'; 3 * TAIL_BYTES_MAX]).unwrap();
        writer.write_all(b"last").unwrap();
        // Wait until the thread has read it.
        while !tail.text().ends_with("xlast") {}
        assert_eq!(tail.text().len(), TAIL_BYTES_MAX);
        drop(writer);
        assert!(tail.text().ends_with("xlast"));
    }

    #[test]
    fn no_output_has_no_end() {
        assert_eq!(Tail::from_output(None::<io::Empty>).unwrap().text(), "");
    }
}
