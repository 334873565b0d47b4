//! A web server of which one thing is limited on purpose: threads of a pool that take whole
//! requests from connections that have one, and steps of work that each request takes.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, clock_gettime};
use xtask::verb::Result;

use crate::process::now;

/// Limits the busy time, even if the process that requested it is gone.
const LIFE: Duration = Duration::from_secs(120);
/// What one read takes, and how its buffer must lie (open(2), `O_DIRECT`).
const BLOCK_BYTES: usize = 4_096;
/// So long a read takes time on the disk, and little on a core.
const LONG_BYTES: usize = 2 * 1_024 * 1_024;
/// How long each of two is active in alternation.
const ALTERNATION: Duration = Duration::from_millis(100);

/// What a request takes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Time on a core.
    Cpu(Duration),
    /// The same, more of it while most replies are in transit, less while most requests wait here:
    /// so that core and link are saturated at once, on a machine of any speed.
    Balance(Duration),
    /// Time without anything.
    Sleep(Duration),
    /// Time without anything, one request at a time.
    Lock(Duration),
    /// A block of the file, past the page cache.
    Read,
    /// Time on a core in one tenth of a second, a long read of the file in the next.
    Alternate(Duration),
}

/// What the server is to be.
pub struct Staged {
    threads: usize,
    reply_bytes: usize,
    steps: Vec<Step>,
    file: Option<PathBuf>,
}

impl Staged {
    /// `threads=4 reply=100 cpu=200 read file=PATH`: times in microseconds.
    pub fn parse(arguments: &[impl AsRef<str>]) -> Result<Self> {
        let mut staged = Self { threads: 8, reply_bytes: 100, steps: Vec::new(), file: None };
        for word in arguments.iter().map(AsRef::as_ref) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let number = || value.parse::<u64>().map_err(|_| format!("{word}: not a number"));
            let time = || number().map(Duration::from_micros);
            match name {
                "threads" => staged.threads = number()? as usize,
                "reply" => staged.reply_bytes = number()? as usize,
                "file" => staged.file = Some(value.into()),
                "cpu" => staged.steps.push(Step::Cpu(time()?)),
                "balance" => staged.steps.push(Step::Balance(time()?)),
                "sleep" => staged.steps.push(Step::Sleep(time()?)),
                "lock" => staged.steps.push(Step::Lock(time()?)),
                "read" => staged.steps.push(Step::Read),
                "turns" => staged.steps.push(Step::Alternate(time()?)),
                _ => return Err(format!("{word}: no such part of a staged server")),
            }
        }
        Ok(staged)
    }
}

/// What the threads share.
struct Shared {
    steps: Vec<Step>,
    reply: Vec<u8>,
    file: Option<(File, u64)>,
    lock: Mutex<()>,
    next_block: AtomicU64,
    begin: Instant,
    connections: AtomicUsize,
    /// Requests that wait or are worked on.
    inside: AtomicUsize,
}

/// Serves until its time is over; prints the port first.
pub fn serve(address: &str, staged: Staged) -> Result<()> {
    let wrong = |e: std::io::Error| format!("staged server: {e}");
    let listener = TcpListener::bind(address).map_err(wrong)?;
    println!("{}", listener.local_addr().map_err(wrong)?.port());
    let mut reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", staged.reply_bytes);
    reply.extend(std::iter::repeat_n('x', staged.reply_bytes));
    let file = staged.file.as_ref().map(open).transpose()?;
    let shared = Arc::new(Shared {
        steps: staged.steps,
        reply: reply.into_bytes(),
        file,
        lock: Mutex::new(()),
        next_block: AtomicU64::new(0),
        begin: now(),
        connections: AtomicUsize::new(0),
        inside: AtomicUsize::new(0),
    });
    let (work, taken) = channel();
    let (back, returned) = channel();
    let taken = Arc::new(Mutex::new(taken));
    for _ in 0..staged.threads {
        let (taken, back, shared) = (Arc::clone(&taken), back.clone(), Arc::clone(&shared));
        std::thread::spawn(move || work_through(&taken, &back, &shared));
    }
    dispatch(&listener, &work, &returned, &shared).map_err(wrong)
}

fn open(path: &PathBuf) -> Result<(File, u64)> {
    let wrong = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut options = File::options();
    let file = options.read(true).custom_flags(libc::O_DIRECT).open(path).map_err(wrong)?;
    let blocks = file.metadata().map_err(wrong)?.len() / BLOCK_BYTES as u64;
    Ok((file, blocks.max(1)))
}

/// Hands connections that have a request to the threads. Those that wait for one are unread.
fn dispatch(
    listener: &TcpListener,
    work: &Sender<TcpStream>,
    returned: &Receiver<TcpStream>,
    shared: &Shared,
) -> std::io::Result<()> {
    let begin = now();
    let mut idle: Vec<TcpStream> = Vec::new();
    while begin.elapsed() < LIFE {
        idle.extend(returned.try_iter());
        let mut fds = vec![PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
        fds.extend(idle.iter().map(|c| PollFd::from_borrowed_fd(c.as_fd(), PollFlags::IN)));
        // Connections come back within a millisecond.
        let wait = rustix::time::Timespec { tv_sec: 0, tv_nsec: 200_000 };
        poll(&mut fds, Some(&wait))?;
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        for index in (0..idle.len()).rev() {
            if ready[index + 1] {
                shared.inside.fetch_add(1, Ordering::Relaxed);
                let _ = work.send(idle.swap_remove(index));
            }
        }
        if ready[0] {
            let (connection, _) = listener.accept()?;
            connection.set_nodelay(true)?;
            shared.connections.fetch_add(1, Ordering::Relaxed);
            idle.push(connection);
        }
    }
    Ok(())
}

fn work_through(taken: &Mutex<Receiver<TcpStream>>, back: &Sender<TcpStream>, shared: &Shared) {
    loop {
        let next = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut connection) = next else { return };
        let answered = answer(&mut connection, shared);
        shared.inside.fetch_sub(1, Ordering::Relaxed);
        match answered {
            true => drop(back.send(connection)),
            false => drop(shared.connections.fetch_sub(1, Ordering::Relaxed)),
        }
    }
}

/// False when the client has gone.
fn answer(connection: &mut TcpStream, shared: &Shared) -> bool {
    let mut request = [0; 4_096];
    // A request of this harness's fits into one read.
    if !matches!(connection.read(&mut request), Ok(1..)) {
        return false;
    }
    for step in &shared.steps {
        shared.take(*step);
    }
    connection.write_all(&shared.reply).is_ok()
}

impl Shared {
    fn take(&self, step: Step) {
        match step {
            Step::Cpu(time) => burn(time),
            Step::Balance(time) => burn(time.mul_f64(1.0 + 0.5 * self.imbalance())),
            Step::Sleep(time) => std::thread::sleep(time),
            Step::Lock(time) => {
                let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
                std::thread::sleep(time);
            }
            Step::Read => self.read(BLOCK_BYTES),
            Step::Alternate(time) => {
                match self.begin.elapsed().as_millis() / ALTERNATION.as_millis() % 2 {
                    0 => burn(time),
                    _ => self.read(LONG_BYTES),
                }
            }
        }
    }

    /// 1 if all replies are in transit, -1 if all requests wait here; 0 for few clients, which are
    /// never both.
    fn imbalance(&self) -> f64 {
        let connections = self.connections.load(Ordering::Relaxed);
        let inside = self.inside.load(Ordering::Relaxed).min(connections);
        match connections {
            0..4 => 0.0,
            _ => 1.0 - 2.0 * inside as f64 / connections as f64,
        }
    }

    fn read(&self, bytes: usize) {
        let Some((file, blocks)) = &self.file else { return };
        let mut buffer = vec![0; bytes + BLOCK_BYTES];
        let skip = buffer.as_ptr().align_offset(BLOCK_BYTES);
        // Far apart, so that no layer merges them.
        let block = self.next_block.fetch_add(1, Ordering::Relaxed).wrapping_mul(7_919) % blocks;
        let at = (block * BLOCK_BYTES as u64).min(blocks * BLOCK_BYTES as u64 - bytes as u64);
        let _ = file.read_at(&mut buffer[skip..skip + bytes], at);
    }
}

/// CPU time of the thread, whatever else competes.
fn burn(time: Duration) {
    let used = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    };
    let begin = used();
    while used() - begin < time {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staged_server_is_described_in_words() {
        let staged = Staged::parse(&["threads=2", "cpu=200", "read", "reply=7"]).unwrap();
        assert_eq!((staged.threads, staged.reply_bytes), (2, 7));
        assert_eq!(staged.steps, [Step::Cpu(Duration::from_micros(200)), Step::Read]);
        assert!(Staged::parse(&["cpu=x"]).is_err() && Staged::parse(&["fly"]).is_err());
    }
}
