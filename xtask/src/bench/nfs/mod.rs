//! `bench nfs`: CPU per operation next to libnfs, and the reference server next to NFS-Ganesha.

mod rival;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use plimsoll_nfs::server::ganesha::{self, GaneshaRequest};
use plimsoll_servers::{Builtin, ServerProcess};

use self::rival::Rival;
use super::place::Place;
use super::record::{record, section};
use super::row::{Row, Sample, counted};
use super::tables::{shown, spread};
use super::web::free_bundle;
use super::{GENERATOR_CORE, Options, SERVER_CORE, build, process};
use crate::Result;

/// Calls of one connection that are on their way at the same time.
const OUTSTANDING: u32 = 32;

/// How the connection is kept full.
#[derive(Clone, Copy)]
enum Shape {
    /// A closed load: each reply makes room for the next call, which goes out at once.
    Closed,
    /// The same, looked after on a coarse grid: all replies that have come are dealt with together,
    /// and the calls they make room for leave together.
    ClosedCoalesced,
    /// An open load above what a server answers, on the same grid.
    Coalesced,
}

impl Shape {
    const ALL: [Self; 3] = [Self::Closed, Self::ClosedCoalesced, Self::Coalesced];

    fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::ClosedCoalesced => "closed, coalesce",
            Self::Coalesced => "open, coalesce",
        }
    }

    /// The load, and a file set of some 5,700 files and 150 MiB for it. Of an open load what is
    /// too much waits in the backlog and is then dropped, which costs a little CPU.
    fn words(self) -> &'static str {
        match self {
            Self::Closed => {
                "--points 1 --set load.mode=closed --set load.clients=1 \
                 --set workload.mib_per_op_per_s=0.15"
            }
            Self::ClosedCoalesced => {
                "--points 1 --pacing coalesce --set load.mode=closed --set load.clients=1 \
                 --set workload.mib_per_op_per_s=0.15"
            }
            Self::Coalesced => {
                "--points 150000 --pacing coalesce --set load.clients=1 \
                 --set workload.mib_per_op_per_s=0.001"
            }
        }
    }
}

/// Ops that have a weight in `nfs-v3`.
const SUITE_MIX: [&str; 13] = [
    "lookup",
    "read",
    "write",
    "getattr",
    "readlink",
    "readdir",
    "create",
    "remove",
    "fsstat",
    "setattr",
    "readdirplus",
    "access",
    "commit",
];

/// One kind of call.
#[derive(Clone, Copy)]
struct Job {
    part: &'static str,
    title: &'static str,
    /// For the rival.
    op: &'static str,
    /// For us.
    settings: &'static [&'static str],
}

const GETATTR: Job = Job {
    part: "getattr",
    title: "GETATTR, 1 connection, 32 outstanding",
    op: "getattr",
    settings: &[],
};
/// Reads of two blocks choose files that have them, so each of their RPCs is a whole block.
const READ: Job = Job {
    part: "read",
    title: "READ of 8 KiB, 1 connection, 32 outstanding",
    op: "read",
    settings: &["workload.reads_outstanding_max=32", "workload.read_blocks=[0,100,0,0,0]"],
};

/// Measures every part that was asked for and prints one table each.
pub fn nfs(options: &Options) -> Result<()> {
    let program = build()?.join("plimsoll");
    let mut text = String::new();
    for job in [GETATTR, READ] {
        if options.wants(job.part) {
            text.push_str(&section(job.title, || beside_libnfs(job, &program, options)));
        }
    }
    if options.wants("server") {
        let title = "Reference server beside NFS-Ganesha: GETATTR, 1 connection, 32 outstanding";
        text.push_str(&section(title, || beside_ganesha(&program, options)));
    }
    record("nfs", &text, options)
}

fn beside_libnfs(job: Job, program: &Path, options: &Options) -> Result<String> {
    let server = start_ganesha()?;
    let generators = Shape::ALL.map(|shape| Ours { program, server: &server, job, shape });
    // Writes the file set, which the rival asks for too.
    generators[0].run(1)?;
    let rival = Rival::build(&server);
    let mut ours = Shape::ALL.map(|shape| Row::new(&format!("**plimsoll**, {}", shape.name())));
    let mut its = Row::new("libnfs, raw async");
    for round in 1..=options.rounds {
        for (row, generator) in ours.iter_mut().zip(&generators) {
            row.take(generator.run(options.seconds));
        }
        if let Ok(rival) = &rival {
            its.take(rival.run(job.op, OUTSTANDING, options.seconds, &server));
        }
        eprintln!("round {round} of {} done", options.rounds);
    }
    let mut table = String::from(
        "| generator | ops/s | CPU µs per op (lowest–highest) | its CPU ÷ libnfs's | work µs per op \
         | its work ÷ libnfs's CPU | server's CPU µs per op | peak memory MB |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let cost: fn(&Sample) -> f64 = |s| s.generator_us_per_op;
    for row in ours.iter().chain([&its]) {
        let beside = |ours: Option<f64>| Some(ours? / its.median(cost)?);
        table.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
            row.label(),
            shown(row.median(|s| s.ops_per_s), 0),
            spread(&row.values(cost), 2),
            shown(beside(row.median(cost)), 2),
            shown(row.work(), 2),
            shown(beside(row.work()), 2),
            shown(row.median(|s| s.server_us_per_op), 2),
            shown(row.median(|s| s.peak_rss_mb), 0),
        ));
    }
    if let Err(message) = rival {
        table.push_str(&format!("\nlibnfs was not measured: {message}\n"));
    }
    Ok(table)
}

fn beside_ganesha(program: &Path, options: &Options) -> Result<String> {
    let (reference, ganesha) = (start_reference(program)?, start_ganesha()?);
    let row = |server: &str, shape: Shape| Row::new(&format!("{server} | {}", shape.name()));
    let on = |server, shape| Ours { program, server, job: GETATTR, shape };
    let mut rows = Vec::new();
    for shape in Shape::ALL {
        rows.push((row("**plimsoll serve nfs**, in memory", shape), on(&reference, shape)));
        rows.push((row("NFS-Ganesha, VFS", shape), on(&ganesha, shape)));
    }
    for (_, generator) in &rows {
        generator.run(1)?;
    }
    for round in 1..=options.rounds {
        for (row, generator) in &mut rows {
            row.take(generator.run(options.seconds));
        }
        eprintln!("round {round} of {} done", options.rounds);
    }
    let mut table = String::from(
        "| server | load | GETATTRs/s | server's CPU µs per GETATTR (lowest–highest) | GETATTRs per CPU \
         second | ÷ Ganesha's |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    let cost: fn(&Sample) -> f64 = |s| s.server_us_per_op;
    for (number, (row, _)) in rows.iter().enumerate() {
        // Every second row is Ganesha's.
        let its = rows[number | 1].0.median(cost);
        let ratio = its.zip(row.median(cost)).map(|(its, ours)| its / ours);
        table.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            row.label(),
            shown(row.median(|s| s.ops_per_s), 0),
            spread(&row.values(cost), 2),
            shown(row.median(cost).map(|us| 1e6 / us), 0),
            shown(ratio, 2),
        ));
    }
    Ok(table)
}

fn start_ganesha() -> Result<ServerProcess> {
    let request = GaneshaRequest { cores: vec![SERVER_CORE], ..GaneshaRequest::default() };
    ganesha::start(&request).map_err(|e| e.to_string())
}

/// `plimsoll serve nfs`.
fn start_reference(program: &Path) -> Result<ServerProcess> {
    let server = Builtin::new("nfs", program.to_owned(), &[SERVER_CORE]);
    server.start().map_err(|e| e.to_string())
}

/// This project as the generator.
struct Ours<'a> {
    program: &'a Path,
    server: &'a ServerProcess,
    job: Job,
    shape: Shape,
}

impl Ours<'_> {
    fn run(&self, seconds: u64) -> Result<Sample> {
        let bundle = free_bundle();
        let before = process::cpu_of(self.server.pid())?;
        let limit = Duration::from_secs(3 * seconds + 120);
        let finished = process::run(&mut self.command(seconds, &bundle), limit, |_, _| ());
        let server_cpu = process::cpu_of(self.server.pid())?.saturating_sub(before);
        let _ = std::fs::remove_dir_all(&bundle);
        let finished = finished?;
        let good = matches!(finished.code, Some(0 | 1));
        let counted = good.then(|| counted(&finished.output)).flatten();
        let Some(counted) = counted else {
            let said = [finished.errors.as_str(), finished.output.as_str()].join("\n");
            let said: String = said.trim().chars().take(2_000).collect();
            return Err(format!("plimsoll: exit code {:?}\n{said}", finished.code));
        };
        let server_us_per_op = server_cpu.as_secs_f64() * 1e6 / counted.ops;
        Ok(Sample { server_us_per_op, ..Sample::of_ours(&finished, &counted) })
    }

    /// One client whose connection is always full.
    fn command(&self, seconds: u64, bundle: &Path) -> Command {
        let mut command = Place::Host.pinned(GENERATOR_CORE, &self.program.to_string_lossy());
        command.args(["run", "nfs-v3", &self.server.url()]);
        command.args(["--workers", "1"]).args(self.shape.words().split_whitespace());
        let mut settings = vec![
            "profiles.standard.warm_up=1s".to_owned(),
            format!("profiles.standard.measure={seconds}s"),
            // What still waits then is not asked for any more, and does not count.
            "profiles.standard.drain=10ms".to_owned(),
            format!("workload.outstanding_max={OUTSTANDING}"),
        ];
        // What is set goes into the suite's mix.
        settings.extend(SUITE_MIX.map(|op| {
            let weight = u8::from(op == self.job.op);
            format!("workload.mix.{op}={weight}")
        }));
        settings.extend(self.job.settings.iter().map(ToString::to_string));
        for setting in settings {
            command.args(["--set", &setting]);
        }
        command.args(["--progress", "none", "--json", "--out"]).arg(bundle);
        command
    }
}

/// A folder for one measurement, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Self> {
        let path =
            std::env::temp_dir().join(format!("plimsoll-bench-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
