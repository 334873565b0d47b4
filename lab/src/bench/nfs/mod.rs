//! `bench nfs`: CPU per operation next to libnfs, and the reference server next to NFS-Ganesha.

mod rival;

use std::path::Path;

use plimsoll_nfs::server::ganesha::{self, GaneshaRequest};
use plimsoll_servers::{Builtin, ServerProcess};
use xtask::verb::Result;

use self::rival::Rival;
use super::Options;
use super::ours::{Ours, Reading};
use super::record::{record, section};
use super::row::{Sample, Take, comparison, interleave, shown, spread};
use crate::network::SERVER_CORE;
use crate::process::{self, Finished};
use crate::program;

/// Calls of one connection that are in flight at the same time.
const OUTSTANDING: u32 = 32;

/// How the connection is kept full.
#[derive(Clone, Copy)]
enum Shape {
    /// A closed load: each reply makes room for the next call, which goes out at once.
    Closed,
    /// The same, polled on a coarse grid: all replies that have arrived are handled together, and
    /// the calls that follow are sent together.
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
    fn arguments(self) -> &'static str {
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

/// Measures every requested part and prints one table each.
pub fn nfs(options: &Options) -> Result<()> {
    let program = program::plimsoll()?;
    let mut text = String::new();
    for job in [GETATTR, READ] {
        if options.wants(job.part) {
            text.push_str(&section(job.title, || compare_libnfs(job, &program, options)));
        }
    }
    if options.wants("server") {
        let title = "Reference server beside NFS-Ganesha: GETATTR, 1 connection, 32 outstanding";
        text.push_str(&section(title, || compare_ganesha(&program, options)));
    }
    record("nfs", &text, options)
}

fn compare_libnfs(job: Job, program: &Path, options: &Options) -> Result<String> {
    let server = start_ganesha()?;
    let run = |shape, seconds| ours(program, &server, (job, shape), seconds);
    // Writes the file set, which the rival uses too.
    run(Shape::Closed, 1)?;
    let rival = Rival::build(&server);
    let run_rival = || {
        let rival = rival.as_ref().map_err(Clone::clone)?;
        sampled(&server, || rival.run(job.op, OUTSTANDING, options.seconds(), &server))
    };
    let ours = Shape::ALL.map(|shape| {
        let take: Take<'_> = Box::new(move || run(shape, options.seconds()));
        (format!("**plimsoll**, {}", shape.name()), take)
    });
    let its: (String, Take<'_>) = ("libnfs, raw async".to_owned(), Box::new(run_rival));
    let rows = interleave(ours.into_iter().chain([its]), options.rounds);
    let mut table = comparison(&rows, "op", "libnfs");
    if let Err(message) = &rival {
        table.push_str(&format!("\nlibnfs was not measured: {message}\n"));
    }
    Ok(table)
}

fn compare_ganesha(program: &Path, options: &Options) -> Result<String> {
    let (reference, ganesha) = (start_reference(program)?, start_ganesha()?);
    let mut takes: Vec<(String, Take<'_>)> = Vec::new();
    for shape in Shape::ALL {
        let servers =
            [("**plimsoll serve nfs**, in memory", &reference), ("NFS-Ganesha, VFS", &ganesha)];
        for (name, server) in servers {
            let run = move |seconds| ours(program, server, (GETATTR, shape), seconds);
            run(1)?;
            let take: Take<'_> = Box::new(move || run(options.seconds()));
            takes.push((format!("{name} | {}", shape.name()), take));
        }
    }
    let rows = interleave(takes, options.rounds);
    let mut table = String::from(
        "| server | load | GETATTRs/s | server's CPU µs per GETATTR (lowest–highest) | GETATTRs per CPU \
         second | ÷ Ganesha's |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for (number, row) in rows.iter().enumerate() {
        // Every second row is Ganesha's.
        let its = rows[number | 1].server_cost();
        let ratio = its.zip(row.server_cost()).map(|(its, ours)| its / ours);
        table.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            row.label(),
            shown(row.rate(), 0),
            spread(&row.values(|s| s.server_us_per_op), 2),
            shown(row.server_cost().map(|us| 1e6 / us), 0),
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

/// A sample of this project: one client whose connection is always full.
fn ours(
    program: &Path,
    server: &ServerProcess,
    (job, shape): (Job, Shape),
    seconds: u64,
) -> Result<Sample> {
    let mut settings = vec![
        // What still waits then is not sent any more, and does not count.
        "profiles.standard.drain=10ms".to_owned(),
        format!("workload.outstanding_max={OUTSTANDING}"),
    ];
    // What is set goes into the suite's mix.
    settings.extend(SUITE_MIX.map(|op| format!("workload.mix.{op}={}", u8::from(op == job.op))));
    settings.extend(job.settings.iter().map(ToString::to_string));
    let arguments = shape.arguments().split_whitespace().map(str::to_owned).collect();
    let ours = Ours { program, suite: "nfs-v3", url: server.url(), arguments, settings };
    sampled(server, || ours.run(seconds))
}

/// A sample with the server's CPU time, in steps of a clock tick.
fn sampled(
    server: &ServerProcess,
    run: impl FnOnce() -> Result<(Finished, Reading)>,
) -> Result<Sample> {
    let before = process::cpu_of(server.pid())?;
    let (finished, reading) = run()?;
    let used = process::cpu_of(server.pid())?.saturating_sub(before);
    let server_us_per_op = Some(used.as_secs_f64() * 1e6 / reading.requests);
    Ok(Sample { server_us_per_op, ..Sample::from_finished(&finished, reading) })
}
