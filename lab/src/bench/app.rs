//! `bench app`: CPU per transaction next to a client that only moves the bytes, on the reference
//! server; and what a second core brings that server.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use plimsoll_app::host::builtin;
use plimsoll_servers::ServerProcess;
use xtask::verb::Result;

use super::place::Place;
use super::record::{record, section};
use super::row::{Row, Sample, counted};
use super::tables::{beside, shown, spread};
use super::web::free_bundle;
use super::{GENERATOR_CORE, Options, SERVER_CORE, build, process};

/// Closed clients of a section.
const CLIENTS: [u32; 2] = [32, 256];
/// Bytes of a request and of its reply, headers included, as in the suite.
const EXCHANGE_BYTES: (u32, u32) = (128, 1_024);
/// Enough that requests wait at the server while the generator, which shares a core with it, waits
/// for its turn.
const PROCESSOR_CLIENTS: u32 = 64;
/// The suite's kinds of transactions.
const KINDS: [&str; 8] = [
    "client_server",
    "processor",
    "server_client",
    "random_read",
    "random_write",
    "sequential_read",
    "sequential_write",
    "append",
];

/// Measures every part that was asked for and prints one table each.
pub fn app(options: &Options) -> Result<()> {
    let built = build()?;
    let mut text = String::new();
    if options.wants("exchange") {
        for clients in CLIENTS {
            let (request, reply) = EXCHANGE_BYTES;
            let title = format!(
                "Small exchanges, {request} bytes to {reply} bytes, {clients} clients, closed loop"
            );
            text.push_str(&section(&title, || exchange(&built, clients, options)));
        }
    }
    if options.wants("cores") {
        let title = format!(
            "The reference server: processor transactions on one core and on two, \
             {PROCESSOR_CLIENTS} clients"
        );
        text.push_str(&section(&title, || cores(&built, options)));
    }
    record("app", &text, options)
}

fn start(built: &Path, cores: &[u32]) -> Result<ServerProcess> {
    builtin(built.join("plimsoll"), cores).start().map_err(|e| e.to_string())
}

/// Turns of plimsoll and of the bare client, round by round, and their table.
fn exchange(built: &Path, clients: u32, options: &Options) -> Result<String> {
    let server = start(built, &[SERVER_CORE])?;
    let pacings = ["auto", "coalesce"];
    let mut rows: Vec<Row> =
        pacings.iter().map(|pacing| Row::new(&format!("**plimsoll**, {pacing}"))).collect();
    let mut bare_row = Row::new("bare client");
    for round in 1..=options.rounds {
        for (row, pacing) in rows.iter_mut().zip(pacings) {
            let words = ["--pacing", pacing];
            let ours = Ours { built, server: &server, kind: "client_server", clients };
            row.take(ours.run(&words, options.seconds));
        }
        bare_row.take(bare(built, &server, clients, options.seconds));
        eprintln!("round {round} of {} done", options.rounds);
    }
    Ok(beside(&rows, &bare_row, "transaction", "the bare client"))
}

/// The same load on a server held to one core and on one that has the generator's too.
fn cores(built: &Path, options: &Options) -> Result<String> {
    let held: [(&str, &[u32]); 2] =
        [("core 1", &[SERVER_CORE]), ("cores 0 and 1", &[GENERATOR_CORE, SERVER_CORE])];
    let mut rows: Vec<Row> = held.iter().map(|(name, _)| Row::new(name)).collect();
    for round in 1..=options.rounds {
        for (row, (_, cores)) in rows.iter_mut().zip(held) {
            let server = start(built, cores)?;
            let ours =
                Ours { built, server: &server, kind: "processor", clients: PROCESSOR_CLIENTS };
            // Asleep between replies: the generator's core is wanted by the server.
            row.take(ours.run(&["--pacing", "precise"], options.seconds));
        }
        eprintln!("round {round} of {} done", options.rounds);
    }
    let host = held.map(|(_, cores)| work(built, cores, options));
    let rate: fn(&Sample) -> f64 = |s| s.ops_per_s;
    let one = rows.first().and_then(|row| row.median(rate));
    let mut table = "| server held to | transactions/s (lowest–highest) | ÷ one core's |\n\
                     | --- | --- | --- |\n"
        .to_owned();
    for row in &rows {
        let ratio = row.median(rate).zip(one).map(|(its, one)| its / one);
        let rates = spread(&row.values(rate), 0);
        table.push_str(&format!("| {} | {rates} | {} |\n", row.label(), shown(ratio, 2)));
    }
    let [one, two] = host;
    let (one, two) = (one?, two?);
    table.push_str(&format!(
        "\nThe host's own limit: the same work without a server, a thread on each core, {one:.0} \
         units/s on one core and {two:.0} on two, {:.2} times as much.\n",
        two / one,
    ));
    Ok(table)
}

/// Units of work a second that the host itself does on those cores; the median of all rounds.
fn work(built: &Path, cores: &[u32], options: &Options) -> Result<f64> {
    let list = cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let mut rates = Vec::new();
    for _ in 0..options.rounds {
        let mut command = Command::new(built.join("bare"));
        command.args(["work", &list, &options.seconds.to_string()]);
        let finished = finish(&mut command, options.seconds)?;
        let rate = finished.output.trim().strip_prefix("units_per_s=");
        rates.push(rate.and_then(|rate| rate.parse().ok()).ok_or_else(|| said(&finished))?);
    }
    rates.sort_by(f64::total_cmp);
    Ok(rates[rates.len() / 2])
}

/// This project as the generator, with transactions of one kind.
struct Ours<'a> {
    built: &'a Path,
    server: &'a ServerProcess,
    kind: &'a str,
    clients: u32,
}

impl Ours<'_> {
    fn run(&self, words: &[&str], seconds: u64) -> Result<Sample> {
        let bundle = free_bundle();
        let program = self.built.join("plimsoll");
        let mut command = Place::Host.pinned(GENERATOR_CORE, &program.to_string_lossy());
        command.args(["run", "transactions", &self.server.url(), "--workers", "1"]);
        command.args(["--points", &self.clients.to_string()]).args(words);
        for kind in KINDS {
            let weight = u32::from(kind == self.kind);
            command.args(["--set", &format!("workload.mix.{kind}={weight}")]);
        }
        let (request, reply) = EXCHANGE_BYTES;
        let settings = [
            format!("workload.request_bytes={request}"),
            format!("workload.reply_bytes={reply}"),
            "profiles.standard.warm_up=1s".to_owned(),
            format!("profiles.standard.measure={seconds}s"),
        ];
        for setting in &settings {
            command.args(["--set", setting]);
        }
        command.args(["--progress", "none", "--json", "--out"]).arg(&bundle);
        let finished = finish(&mut command, seconds);
        let _ = std::fs::remove_dir_all(&bundle);
        let finished = finished?;
        // 1 says that the run is invalid: a generator at its limit is the point of a closed loop.
        let good = matches!(finished.code, Some(0 | 1));
        let counted = good.then(|| counted(&finished.output)).flatten();
        let counted = counted.ok_or_else(|| said(&finished))?;
        Ok(Sample::of_ours(&finished, &counted))
    }
}

/// The same bytes, and nothing else.
fn bare(built: &Path, server: &ServerProcess, clients: u32, seconds: u64) -> Result<Sample> {
    let program = built.join("bare");
    let mut command = Place::Host.pinned(GENERATOR_CORE, &program.to_string_lossy());
    let (request, reply) = EXCHANGE_BYTES;
    command.args(["app", &server.address.to_string(), &format!("{request}/{reply}")]);
    command.args([clients.to_string(), seconds.to_string()]);
    let finished = finish(&mut command, seconds)?;
    let number = |name: &str| -> Option<f64> {
        let words = finished.output.split_whitespace();
        words.filter_map(|word| word.strip_prefix(name)).next()?.parse().ok()
    };
    let counted =
        number("requests=").zip(number("seconds=")).filter(|(requests, _)| *requests > 0.0);
    let (requests, seconds) = counted.ok_or_else(|| said(&finished))?;
    Ok(Sample::of_generator(&finished, requests, requests / seconds))
}

fn finish(command: &mut Command, seconds: u64) -> Result<process::Finished> {
    process::run(command, Duration::from_secs(3 * seconds + 60), |_, _| ())
}

fn said(finished: &process::Finished) -> String {
    let said = [finished.errors.as_str(), finished.output.as_str()].join("\n");
    let said: String = said.trim().chars().take(2_000).collect();
    format!("exit code {:?}\n{said}", finished.code)
}
