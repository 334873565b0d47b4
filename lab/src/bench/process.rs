//! Runs one generator to its end and accounts for it: CPU time to the microsecond, peak memory.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use xtask::command;
use xtask::verb::Result;

/// How often the process is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What a finished process leaves.
pub struct Finished {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Everything it wrote to standard output.
    pub output: String,
    /// Everything it wrote to standard error.
    pub errors: String,
    /// User and system time of all its threads.
    pub cpu: Duration,
    /// Highest resident memory seen, in bytes.
    pub peak_rss_bytes: u64,
}

/// Runs to the end; kills what takes longer than `limit`. `look` is called with the process id
/// and the time since the start, about twenty times a second.
pub fn run(
    command: &mut Command,
    limit: Duration,
    mut look: impl FnMut(u32, Duration),
) -> Result<Finished> {
    let shown = command::shown(command);
    let mut output = Scratch::new("out")?;
    let mut errors = Scratch::new("err")?;
    let start = now();
    #[allow(clippy::zombie_processes, reason = "`account` waits for the child and reaps it")]
    let child = command
        .stdin(Stdio::null())
        .stdout(output.handle()?)
        .stderr(errors.handle()?)
        .spawn()
        .map_err(|e| format!("cannot start {shown}: {e}"))?;
    let id = child.id();
    let mut peak_rss_bytes = 0;
    loop {
        peak_rss_bytes = peak_rss_bytes.max(memory_bytes(id, "VmHWM:").unwrap_or(0));
        look(id, start.elapsed());
        if let Some((status, cpu)) = account(id)? {
            let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
            let (output, errors) = (output.text()?, errors.text()?);
            return Ok(Finished { code, output, errors, cpu, peak_rss_bytes });
        }
        if start.elapsed() > limit {
            stop(id);
            return Err(format!("{shown}: still running after {} s", limit.as_secs()));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// A line of `/proc/ID/status`, in bytes.
pub fn memory_bytes(id: u32, line: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let value = status.lines().find_map(|l| l.strip_prefix(line))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// User and system time of all threads of a process that runs, in steps of a clock tick: proc(5),
/// `/proc/PID/stat`, fields 14 and 15.
pub fn cpu_of(id: u32) -> Result<Duration> {
    let path = format!("/proc/{id}/stat");
    let stat = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

fn stop(id: u32) {
    let _ = Command::new("kill").args(["-KILL", &id.to_string()]).status();
    while matches!(account(id), Ok(None)) {
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Exit status and CPU time of a child that has ended; `None` while it runs.
#[allow(unsafe_code, reason = "only wait4 tells one child's CPU time to the microsecond")]
fn account(id: u32) -> Result<Option<(libc::c_int, Duration)>> {
    let mut status = 0;
    // SAFETY: `rusage` is plain numbers, for which all zeros is a value; both pointers are to
    // locals that live through the call.
    let (waited, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let waited = libc::wait4(id as libc::pid_t, &raw mut status, libc::WNOHANG, &raw mut usage);
        (waited, usage)
    };
    match waited {
        0 => Ok(None),
        -1 => Err(format!("wait4 {id}: {}", std::io::Error::last_os_error())),
        _ => Ok(Some((status, span(usage.ru_utime) + span(usage.ru_stime)))),
    }
}

fn span(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
}

/// A file without a name: a pipe would stall a process that writes more than anybody reads.
struct Scratch(File);

impl Scratch {
    fn new(kind: &str) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll-bench-{}-{number}.{kind}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(|e| format!("{}: {e}", path.display()))?;
        let _ = fs::remove_file(&path);
        Ok(Self(file))
    }

    fn handle(&self) -> Result<File> {
        self.0.try_clone().map_err(|e| format!("scratch file: {e}"))
    }

    fn text(&mut self) -> Result<String> {
        let mut bytes = Vec::new();
        let read = self.0.seek(SeekFrom::Start(0)).and_then(|_| self.0.read_to_end(&mut bytes));
        read.map_err(|e| format!("scratch file: {e}"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[allow(clippy::disallowed_methods, reason = "a developer command times what it starts")]
pub fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_accounted_for() {
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo $i; exit 3"]);
        let finished = run(&mut command, Duration::from_secs(20), |_, _| ()).unwrap();
        assert_eq!(finished.code, Some(3));
        assert_eq!(finished.output, "20000\n");
        assert!(finished.cpu > Duration::ZERO);
    }

    #[test]
    fn a_process_that_takes_too_long_is_stopped() {
        let mut command = Command::new("sleep");
        let outcome = run(command.arg("60"), Duration::from_millis(100), |_, _| ());
        assert!(outcome.is_err());
    }
}
