//! `bench PART --against PROGRAM`: this build and another one of plimsoll, in turns, on the same
//! server: CPU per op in pairs of runs, and instructions per op.

mod count;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use plimsoll_nfs::server::ganesha::{self, GaneshaRequest};
use plimsoll_servers::{Builtin, ServerProcess};
use plimsoll_smb::server::samba::{self, SambaRequest};
use xtask::command;
use xtask::verb::Result;

use self::count::Counter;
use super::ours::{Ours, without_fault};
use super::row::{Sample, spread};
use super::{Options, Part, facts};
use crate::network::{GENERATOR_CORE, Network, SERVER_CORE};
use crate::nginx::Nginx;
use crate::program;

/// Options of the comparison.
#[derive(Args)]
pub struct AgainstOptions {
    /// Compare this build with another one of plimsoll (web, nfs, smb)
    #[arg(id = "against", long = "against", value_name = "PROGRAM", conflicts_with_all = ["rounds", "only", "write"])]
    pub other: Option<PathBuf>,
    /// This build. [default: target/release/plimsoll, built now]
    #[arg(long, value_name = "PATH", requires = "against")]
    program: Option<PathBuf>,
    /// Pairs of runs, one run of each build.
    #[arg(long, default_value_t = 5, requires = "against", value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// Write the report to this file too.
    #[arg(long, value_name = "FILE", requires = "against")]
    out: Option<PathBuf>,
}

/// What both builds do.
struct Load {
    suite: &'static str,
    /// Enough clients to keep the connection or the server busy, for the CPU time.
    busy: &'static str,
    /// One op at a time, so that each run of instructions is the same, for their count.
    single: &'static str,
}

/// A server on the server's core.
enum Server {
    Nginx(Nginx),
    Process(Box<ServerProcess>),
}

/// Compares the builds and prints the report.
pub fn against(options: &Options, other: &Path) -> Result<()> {
    let load = Load::from_part(options.part)?;
    let other = existing(other, "--against")?;
    let this = match &options.against.program {
        Some(path) => existing(path, "--program")?,
        None => program::plimsoll()?,
    };
    let builds = [this.as_path(), &other];
    let server = Server::start(options.part, &this)?;
    let pairs = cpu_pairs(builds, &load, &server, options)?;
    let singles = builds.map(|build| load.ours(build, &server, load.single));
    let counted = Counter::find().and_then(|counter| counter.compare(singles));
    let [this, other] = builds.map(described);
    let text = format!(
        "- this: {this}\n- other: {other}\n- server on core {SERVER_CORE}, generator on core \
         {GENERATOR_CORE}: {}\n{}\n### CPU µs per op: `{} {}`\n\n{}\n### Instructions per op: \
         `{} {}`\n\n{}",
        server.url(),
        facts::facts("against"),
        load.suite,
        load.busy,
        cpu_table(&pairs),
        load.suite,
        load.single,
        counted.unwrap_or_else(|message| format!("Not counted: {message}\n")),
    );
    println!("{text}");
    match &options.against.out {
        Some(path) => fs::write(path, text).map_err(|e| format!("--out {}: {e}", path.display())),
        None => Ok(()),
    }
}

impl Load {
    fn from_part(part: Part) -> Result<Self> {
        match part {
            Part::Web => Ok(Self { suite: "web-url", busy: "--clients 32", single: "--clients 1" }),
            Part::Nfs => Ok(Self {
                suite: "nfs-v3",
                busy: "--points 1 --set load.mode=closed --set load.clients=1 \
                       --set workload.mib_per_op_per_s=0.15",
                single: "--points 1 --set load.mode=closed --set load.clients=1 \
                         --set workload.mib_per_op_per_s=0.15 --set workload.outstanding_max=1 \
                         --set workload.reads_outstanding_max=1 \
                         --set workload.writes_outstanding_max=1",
            }),
            Part::Smb => Ok(Self {
                suite: "disk-mix",
                busy: "--points 4 --set load.think.mean=0s --set load.start_delay=0s",
                single: "--points 1 --set load.think.mean=0s --set load.start_delay=0s",
            }),
            Part::App | Part::Memory => Err(format!(
                "bench {part:?} --against: only web, nfs and smb compare two builds; choose one of \
                 these"
            )
            .to_lowercase()),
        }
    }

    fn ours<'a>(&self, program: &'a Path, server: &Server, arguments: &str) -> Ours<'a> {
        let arguments = arguments.split_whitespace().chain(["--pacing", "precise"]);
        Ours {
            program,
            suite: self.suite,
            url: server.url(),
            arguments: arguments.map(str::to_owned).collect(),
            settings: Vec::new(),
        }
    }
}

impl Server {
    /// A foreign one if it is installed, else the reference server of `program`.
    fn start(part: Part, program: &Path) -> Result<Self> {
        let cores = vec![SERVER_CORE];
        let reference = |verb| Builtin::new(verb, program.to_owned(), &[SERVER_CORE]).start();
        let started = match part {
            Part::Nfs if command::find("ganesha.nfsd").is_some() => {
                ganesha::start(&GaneshaRequest { cores, ..GaneshaRequest::default() })
            }
            Part::Nfs => reference("nfs"),
            Part::Smb if command::find("smbd").is_some() => {
                samba::start(&SambaRequest { cores, ..SambaRequest::default() })
            }
            Part::Smb => reference("smb"),
            _ if command::find("nginx").is_some() => {
                return Nginx::start(&Network::Host).map(Self::Nginx);
            }
            _ => reference("web"),
        };
        started.map(|server| Self::Process(Box::new(server))).map_err(|e| e.to_string())
    }

    fn url(&self) -> String {
        match self {
            Self::Nginx(nginx) => nginx.url("/1k"),
            // Where the reference web server has a reply of the same size.
            Self::Process(server) if server.scheme == "http" => {
                format!("{}bytes/1024", server.url())
            }
            Self::Process(server) => server.url(),
        }
    }
}

/// CPU µs per op of this build and of the other one.
type Pair = [f64; 2];

/// This, other, this, other …
fn cpu_pairs(
    builds: [&Path; 2],
    load: &Load,
    server: &Server,
    options: &Options,
) -> Result<Vec<Pair>> {
    let run = |build: &Path, seconds| -> Result<f64> {
        let (finished, reading) = load.ours(build, server, load.busy).run(seconds)?;
        without_fault(&finished.output).map_err(|e| format!("{}: {e}", build.display()))?;
        Ok(Sample::from_finished(&finished, reading).generator_us_per_op)
    };
    // Writes the data of a file server, which both use.
    run(builds[0], 1)?;
    let mut pairs = Vec::new();
    for number in 1..=options.against.pairs {
        let seconds = options.seconds();
        let pair = [run(builds[0], seconds)?, run(builds[1], seconds)?];
        eprintln!("pair {number}: this {:.3} µs, other {:.3} µs per op", pair[0], pair[1]);
        pairs.push(pair);
    }
    Ok(pairs)
}

fn cpu_table(pairs: &[Pair]) -> String {
    let mut text = "| pair | this | other | this ÷ other |\n| --- | --- | --- | --- |\n".to_owned();
    let ratios: Vec<f64> = pairs.iter().map(|[this, other]| this / other).collect();
    for (number, ([this, other], ratio)) in pairs.iter().zip(&ratios).enumerate() {
        text.push_str(&format!("| {} | {this:.3} | {other:.3} | {ratio:.3} |\n", number + 1));
    }
    format!("{text}\nMedian ratio: {}\n", spread(&ratios, 3))
}

fn existing(path: &Path, flag: &str) -> Result<PathBuf> {
    // Absolute, because a name without `/` would be looked for in the PATH.
    let program = path.canonicalize().ok().filter(|path| path.is_file());
    program.ok_or_else(|| {
        format!(
            "{flag} {}: no such program; build it with `cargo build --release --bin plimsoll` in a \
             checkout of its commit",
            path.display()
        )
    })
}

fn described(build: &Path) -> String {
    let version = command::output(Command::new(build).arg("--version"));
    format!("{} ({})", build.display(), version.unwrap_or_else(|message| message).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_and_the_median_ratio_are_written_down() {
        let table = cpu_table(&[[2.0, 1.0], [1.1, 1.0], [1.0, 2.0]]);
        assert!(table.contains("| 1 | 2.000 | 1.000 | 2.000 |\n"), "{table}");
        assert!(table.ends_with("Median ratio: 1.100 (0.500–2.000)\n"), "{table}");
    }

    #[test]
    fn what_cannot_be_compared_is_named_with_the_next_step() {
        let message = Load::from_part(Part::Memory).err().unwrap();
        assert!(message.starts_with("bench memory --against: only web, nfs and smb"), "{message}");
        let message = existing(Path::new("/no/such/plimsoll"), "--against").unwrap_err();
        assert!(message.starts_with("--against /no/such/plimsoll: no such program"), "{message}");
    }
}
