//! How fast `plimsoll prepare` writes a file set through the reference server, next to threads
//! that write the same files to the same file system without any protocol.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{Folder, start_reference};
use crate::bench::tables::{shown, spread};
use crate::bench::{Options, median, process};
use crate::{Result, command};

/// The file set of so many requested ops/s: some 19,000 files, 500 MiB.
const PEAK_OPS_PER_S: u32 = 50;
const LIMIT: Duration = Duration::from_secs(600);

/// What lies in a file set.
struct FileSet {
    directories: Vec<PathBuf>,
    files: Vec<(PathBuf, u64)>,
}

impl FileSet {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// What a writer waits for before it goes on to its next file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Written,
    OnDisk,
}

/// Rates of both writers, in files per second.
#[derive(Default)]
struct Pair {
    ours: Vec<f64>,
    plain: Vec<f64>,
}

/// One table.
pub fn measure(program: &Path, options: &Options) -> Result<String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut pairs = [(Until::OnDisk, Pair::default()), (Until::Written, Pair::default())];
    let mut written = String::new();
    for round in 1..=options.rounds {
        for (until, pair) in &mut pairs {
            let set = measure_once(program, (*until, threads), pair)?;
            written = format!("{} files, {:.0} MB", set.files.len(), set.bytes() as f64 / 1e6);
            eprintln!(
                "round {round}: {:?} against {:?} files/s",
                pair.ours.last(),
                pair.plain.last()
            );
        }
    }
    let mut table = format!(
        "{written}; no process is held to a core.\n\n\
         | writer | files/s (lowest–highest) | share of the plain writer's |\n| --- | --- | --- |\n"
    );
    for (until, Pair { ours, plain }) in &pairs {
        let ratio = median(ours).zip(median(plain)).map(|(ours, plain)| ours / plain);
        let (ours_do, plain_do) = match until {
            Until::OnDisk => ("", "create, write, sync and close"),
            Until::Written => (" --no-sync", "create, write and close"),
        };
        table.push_str(&format!(
            "| **plimsoll prepare** through `plimsoll serve nfs --root DIR{ours_do}` | {} | {} |\n\
             | {threads} threads that {plain_do} | {} | 1.00 |\n",
            spread(ours, 0),
            shown(ratio, 2),
            spread(plain, 0),
        ));
    }
    Ok(table)
}

fn measure_once(
    program: &Path,
    (until, threads): (Until, usize),
    pair: &mut Pair,
) -> Result<FileSet> {
    settle()?;
    let folder = Folder::new("through-server")?;
    let seconds = prepare(program, &folder.0, until)?;
    let set = look(&folder.0)?;
    pair.ours.push(set.files.len() as f64 / seconds);
    drop(folder);
    settle()?;
    let folder = Folder::new("plain")?;
    let seconds = write_plainly(&set, &folder.0, (until, threads))?;
    pair.plain.push(set.files.len() as f64 / seconds);
    Ok(set)
}

/// What was written or removed before must not be paid for by what is measured next.
fn settle() -> Result<()> {
    command::run(&mut Command::new("sync"))
}

/// Seconds from the start of `plimsoll prepare` to its end.
fn prepare(program: &Path, root: &Path, until: Until) -> Result<f64> {
    let mut arguments = vec!["--root".as_ref(), root.as_os_str()];
    if until == Until::Written {
        arguments.push("--no-sync".as_ref());
    }
    let server = start_reference(program, &arguments, Vec::new())?;
    let mut command = Command::new(program);
    command.args(["prepare", "nfs-v3", &server.url(), "--progress", "none"]);
    command.args(["--peak", &PEAK_OPS_PER_S.to_string()]);
    let start = process::now();
    let finished = process::run(&mut command, LIMIT, |_, _| ())?;
    let seconds = start.elapsed().as_secs_f64();
    match finished.code {
        Some(0) => Ok(seconds),
        code => Err(format!("plimsoll prepare: exit code {code:?}\n{}", finished.errors)),
    }
}

fn look(root: &Path) -> Result<FileSet> {
    let mut set = FileSet { directories: Vec::new(), files: Vec::new() };
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let about = entry.metadata().map_err(failed)?;
            let path = entry.path();
            let relative = path.strip_prefix(root).unwrap_or(&path).to_owned();
            if about.is_dir() {
                set.directories.push(relative);
                waiting.push(path);
            } else if about.is_file() {
                set.files.push((relative, about.len()));
            }
        }
    }
    // A directory comes after the one it lies in, and neighbours are written together.
    set.directories.sort();
    set.files.sort();
    Ok(set)
}

/// Seconds that so many threads take for the same files.
fn write_plainly(set: &FileSet, root: &Path, (until, threads): (Until, usize)) -> Result<f64> {
    let longest = set.files.iter().map(|(_, bytes)| *bytes).max().unwrap_or_default();
    let content: Vec<u8> = (0..longest).map(|i| (i % 251) as u8).collect();
    let next = AtomicUsize::new(0);
    let start = process::now();
    for directory in &set.directories {
        std::fs::create_dir(root.join(directory)).map_err(|e| e.to_string())?;
    }
    let write = || -> std::io::Result<()> {
        while let Some((path, bytes)) = set.files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut file = File::create(root.join(path))?;
            file.write_all(&content[..*bytes as usize])?;
            if until == Until::OnDisk {
                file.sync_data()?;
            }
        }
        Ok(())
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(write)).collect();
        handles.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let seconds = start.elapsed().as_secs_f64();
    for outcome in outcomes {
        let outcome = outcome.map_err(|_| "a writer panicked".to_owned())?;
        outcome.map_err(|e| format!("{}: {e}", root.display()))?;
    }
    Ok(seconds)
}
