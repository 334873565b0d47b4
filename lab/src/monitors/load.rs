//! A load that uses a part of a processor, of the disk and of the loopback network, evenly.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_monitor::ClockReading;
use xtask::verb::Result;
use xtask::workspace;

const PERIOD: Duration = Duration::from_millis(10);
/// Duration of each spin.
const SPIN: Duration = Duration::from_millis(4);
const CHUNK_BYTES: usize = 64 * 1024;
/// The file is written over and over.
const FILE_CHUNKS: u64 = 64;

/// What `body` gives, while the load runs.
pub fn under_load<T>(body: impl FnOnce() -> T) -> Result<T> {
    let path = workspace::target().join("monitors-load");
    let file = File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let (from, to) = connection().map_err(|e| format!("loopback: {e}"))?;
    let ended = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| repeat(&ended, |_| spin()));
        scope.spawn(|| repeat(&ended, |iteration| write_chunk(&file, iteration)));
        scope.spawn(|| repeat(&ended, |_| (&from).write_all(&[7; CHUNK_BYTES]).is_ok()));
        scope.spawn(|| receive(&to));
        let outcome = body();
        ended.store(true, Ordering::Relaxed);
        // The receiver reads until then.
        let _ = from.shutdown(std::net::Shutdown::Write);
        outcome
    });
    let _ = std::fs::remove_file(&path);
    Ok(outcome)
}

fn connection() -> std::io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let from = TcpStream::connect(listener.local_addr()?)?;
    Ok((from, listener.accept()?.0))
}

/// Repeats `work` until the end or until it fails.
fn repeat(ended: &AtomicBool, mut work: impl FnMut(u64) -> bool) {
    for iteration in 0.. {
        let due_ns = now_ns() + PERIOD.as_nanos() as u64;
        if ended.load(Ordering::Relaxed) || !work(iteration) {
            return;
        }
        std::thread::sleep(Duration::from_nanos(due_ns.saturating_sub(now_ns())));
    }
}

fn now_ns() -> u64 {
    ClockReading::now().monotonic_ns
}

fn spin() -> bool {
    let until_ns = now_ns() + SPIN.as_nanos() as u64;
    while now_ns() < until_ns {
        std::hint::spin_loop();
    }
    true
}

fn write_chunk(file: &File, iteration: u64) -> bool {
    let at = iteration % FILE_CHUNKS * CHUNK_BYTES as u64;
    file.write_all_at(&[iteration as u8; CHUNK_BYTES], at).and_then(|()| file.sync_data()).is_ok()
}

fn receive(mut to: &TcpStream) {
    let mut buffer = vec![0; CHUNK_BYTES];
    while to.read(&mut buffer).is_ok_and(|n| n > 0) {}
}
