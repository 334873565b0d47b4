//! Child processes: run to their end and accounted for (CPU time to the microsecond, peak memory),
//! or running until their owner goes.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _};
use std::process::{Child, Command, Stdio};
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

impl Finished {
    /// How it ended and what it wrote, for an error message.
    pub fn failure(&self) -> String {
        let message = [self.errors.as_str(), self.output.as_str()].join("\n");
        let message: String = message.trim().chars().take(2_000).collect();
        format!("exit code {:?}\n{message}", self.code)
    }
}

/// Runs to the end; kills what takes longer than `limit`. `look` is called with the process id
/// and the time since the start, about twenty times a second.
pub fn run(
    command: &mut Command,
    limit: Duration,
    mut look: impl FnMut(u32, Duration),
) -> Result<Finished> {
    let shown = command::shown(command);
    let (mut output, mut errors) = (unnamed()?, unnamed()?);
    let start = now();
    #[allow(clippy::zombie_processes, reason = "`account` waits for the child and reaps it")]
    let child = command
        .stdin(Stdio::null())
        .stdout(handle(&output)?)
        .stderr(handle(&errors)?)
        .spawn()
        .map_err(|e| format!("cannot start {shown}: {e}"))?;
    let id = child.id();
    let mut peak_rss_bytes = 0;
    loop {
        peak_rss_bytes = peak_rss_bytes.max(memory_bytes(id, "VmHWM:").unwrap_or(0));
        look(id, start.elapsed());
        if let Some((status, cpu)) = account(id)? {
            let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
            let (output, errors) = (text(&mut output)?, text(&mut errors)?);
            return Ok(Finished { code, output, errors, cpu, peak_rss_bytes });
        }
        if start.elapsed() > limit {
            stop(id);
            return Err(format!("{shown}: still running after {} s", limit.as_secs()));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// A child that is ended with its owner.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server and waits for the line with its address.
pub fn first_line(mut command: Command) -> Result<(Running, String)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let shown = command::shown(&command);
    let mut child = command.spawn().map_err(|e| format!("cannot start {shown}: {e}"))?;
    let output = child.stdout.take();
    let mut errors = child.stderr.take();
    let running = Running(child);
    let mut line = String::new();
    if let Some(output) = output {
        BufReader::new(output).read_line(&mut line).map_err(|e| format!("{shown}: {e}"))?;
    }
    if line.is_empty() {
        drop(running);
        let mut message = String::new();
        let _ = errors.as_mut().map(|errors| errors.read_to_string(&mut message));
        return Err(format!("{shown}: {}", message.trim()));
    }
    Ok((running, line))
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

/// Children of a process's main thread.
pub fn children(id: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|id| id.parse().ok()).collect()
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
fn unnamed() -> Result<File> {
    tempfile::tempfile().map_err(|e| format!("temporary file: {e}"))
}

/// A second handle, for the child.
fn handle(file: &File) -> Result<File> {
    file.try_clone().map_err(|e| format!("temporary file: {e}"))
}

/// Everything in it.
fn text(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    read.map_err(|e| format!("temporary file: {e}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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
