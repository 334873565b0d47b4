//! Instructions per op: hardware counters through `perf stat`, else Valgrind. Runs of two lengths
//! are counted; their difference is without start-up and evaluation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use xtask::command;
use xtask::verb::Result;

use crate::bench::ours::Ours;
use crate::program;

/// Longest run under Valgrind, which makes a program some fifty times slower.
const RUN_MAX: Duration = Duration::from_secs(900);
/// Runs of each length. The lowest counts: what a run does each second only adds to its ops.
const ROUNDS: usize = 3;
/// Part of a symbol that only a worker's thread runs. The other threads have work for each second
/// rather than for each op, and a run takes many more seconds under Valgrind.
const WORKER: &str = "EpollDriver";

/// What counts the instructions.
pub enum Counter {
    /// In user mode, of all threads.
    Perf(PathBuf),
    /// Of the worker's thread.
    Callgrind(PathBuf),
}

impl Counter {
    /// The better one that works here.
    pub fn find() -> Result<Self> {
        if let Some(perf) = command::find("perf") {
            let mut trial = Command::new(&perf);
            let output = trial.args(["stat", "-x,", "-e", "instructions:u", "true"]).output();
            let output = output.map_err(|e| format!("perf: {e}"))?;
            if read_perf(&String::from_utf8_lossy(&output.stderr)).is_some() {
                return Ok(Self::Perf(perf));
            }
        }
        let missing = "perf counts no instructions on this machine, and Valgrind is not installed; \
                       sudo apt-get install valgrind";
        Ok(Self::Callgrind(command::find("valgrind").ok_or(missing)?))
    }

    /// A table of both builds, which ran in turns.
    pub fn compare(&self, builds: [Ours<'_>; 2]) -> Result<String> {
        let (lengths, name) = match self {
            Self::Perf(_) => ([20_000, 120_000], "`perf stat`, in user mode, all threads"),
            Self::Callgrind(_) => ([2_000, 12_000], "callgrind, the worker's thread"),
        };
        let mut lowest = [[u64::MAX; 2]; 2];
        for _ in 0..ROUNDS {
            for (ops, lowest) in lengths.into_iter().zip(&mut lowest) {
                for (build, lowest) in builds.iter().zip(lowest) {
                    let count = self.count(build, ops)?;
                    eprintln!("{}: {count} instructions, {ops} ops", build.program.display());
                    *lowest = count.min(*lowest);
                }
            }
        }
        let rows = table(lengths, lowest)?;
        Ok(format!("Counted by {name}; the lowest of {ROUNDS} runs.\n\n{rows}"))
    }

    fn count(&self, build: &Ours<'_>, ops: u64) -> Result<u64> {
        let folder = program::temporary()?;
        let file = folder.path().join("count").display().to_string();
        let prefix = match self {
            Self::Perf(perf) => format!("{} stat -x, -e instructions:u -o {file}", perf.display()),
            Self::Callgrind(valgrind) => format!(
                "{} -q --tool=callgrind --separate-threads=yes --callgrind-out-file={file}",
                valgrind.display()
            ),
        };
        build.run_ops(&prefix, ops, RUN_MAX).map_err(|message| match self {
            Self::Perf(_) => format!("{prefix}: {message}"),
            Self::Callgrind(_) => format!(
                "{prefix}: {message}\nIf Valgrind is the reason, use a newer one or a machine on which \
                 perf counts instructions; 3.19 does not know epoll_pwait2 and PR_GET_AUXV"
            ),
        })?;
        let count = match self {
            Self::Perf(_) => fs::read_to_string(&file).ok().and_then(|text| read_perf(&text)),
            Self::Callgrind(_) => read_callgrind(folder.path()),
        };
        count.ok_or_else(|| format!("{prefix}: its files have no count of the worker's thread"))
    }
}

/// Instructions of this build and of the other one, for each length.
fn table(lengths: [u64; 2], [short, long]: [[u64; 2]; 2]) -> Result<String> {
    let mut text = "| | this | other | this ÷ other |\n| --- | --- | --- | --- |\n".to_owned();
    for (ops, [this, other]) in lengths.into_iter().zip([short, long]) {
        text.push_str(&format!("| {ops} ops | {this} | {other} | |\n"));
    }
    let per_op = |build: usize| {
        let more = long[build].checked_sub(short[build]).filter(|more| *more > 0);
        more.map(|more| more as f64 / (lengths[1] - lengths[0]) as f64)
    };
    let both = per_op(0).zip(per_op(1));
    let (this, other) = both.ok_or("more ops took fewer instructions; end other programs")?;
    Ok(format!("{text}| per op | {this:.0} | {other:.0} | {:.4} |\n", this / other))
}

/// Of the output of `perf stat -x,`: count, unit, event …
fn read_perf(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains("instructions"))?;
    line.split(',').next()?.parse().ok()
}

/// Of callgrind's files, one for each thread, that of the worker.
fn read_callgrind(folder: &Path) -> Option<u64> {
    let texts = fs::read_dir(folder).ok()?.filter_map(|entry| {
        let path = entry.ok()?.path();
        fs::read_to_string(path).ok()
    });
    let worker = texts.into_iter().find(|text| text.contains(WORKER))?;
    worker.lines().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_up_is_in_no_figure() {
        let table = |counts| table([100, 200], counts);
        let text = table([[5_000, 9_000], [15_000, 17_000]]).unwrap();
        assert!(text.ends_with("| per op | 100 | 80 | 1.2500 |\n"), "{text}");
        assert!(table([[5_000, 9_000], [15_000, 9_000]]).is_err());
    }

    #[test]
    fn counts_are_read_from_the_files_of_both_counters() {
        let perf = "# started on Sat Nov 28 2026\n\n84213,,instructions:u,1203,100.00,,\n";
        assert_eq!(read_perf(perf), Some(84_213));
        assert_eq!(read_perf("<not supported>,,instructions:u,0,100.00,,\n"), None);
        let folder = program::temporary().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("count-01", "fn=(1) main\ntotals: 900\n");
        assert_eq!(read_callgrind(folder.path()), None);
        write("count-02", "fn=(1) <EpollDriver as Driver>::wait\ntotals: 70\n");
        assert_eq!(read_callgrind(folder.path()), Some(70));
    }
}
