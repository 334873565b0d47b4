//! `bench app`: CPU per transaction next to a client that only moves the bytes, on the reference
//! server; and what a second core brings that server.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use plimsoll_app::host::builtin;
use plimsoll_servers::ServerProcess;
use xtask::verb::Result;

use super::ours::{Ours, read_bare};
use super::record::{record, section};
use super::row::{Row, Sample, Take, comparison, interleave, shown, spread};
use super::{Options, median};
use crate::network::{GENERATOR_CORE, Network, SERVER_CORE};
use crate::{process, program};

/// Closed clients of a section.
const CLIENTS: [u32; 2] = [32, 256];
/// Bytes of a request and of its reply, headers included, as in the suite.
const EXCHANGE_BYTES: (u32, u32) = (128, 1_024);
/// Enough that requests wait at the server while the generator, which shares a core with it, waits
/// for that core.
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

/// Measures every requested part and prints one table each.
pub fn app(options: &Options) -> Result<()> {
    let built = program::plimsoll_and_bare()?;
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

/// Runs plimsoll and the bare client alternately, round by round; their table.
fn exchange(built: &Path, clients: u32, options: &Options) -> Result<String> {
    let server = start(built, &[SERVER_CORE])?;
    let run =
        |pacing| ours(built, &server, ("client_server", clients), (pacing, options.seconds()));
    let takes: [(&str, Take<'_>); 3] = [
        ("**plimsoll**, auto", Box::new(|| run("auto"))),
        ("**plimsoll**, coalesce", Box::new(|| run("coalesce"))),
        ("bare client", Box::new(|| bare(built, &server, clients, options.seconds()))),
    ];
    Ok(comparison(&interleave(takes, options.rounds), "transaction", "the bare client"))
}

/// The same load on a server pinned to one core and on one that has the generator's too.
fn cores(built: &Path, options: &Options) -> Result<String> {
    let pinned: [(&str, &[u32]); 2] =
        [("core 1", &[SERVER_CORE]), ("cores 0 and 1", &[GENERATOR_CORE, SERVER_CORE])];
    let run = |cores| {
        let server = start(built, cores)?;
        // Asleep between replies: the server needs the generator's core.
        ours(built, &server, ("processor", PROCESSOR_CLIENTS), ("precise", options.seconds()))
    };
    let takes = pinned.map(|(name, cores)| (name, Box::new(move || run(cores)) as Take<'_>));
    let rows = interleave(takes, options.rounds);
    let (one, two) = (work(built, pinned[0].1, options)?, work(built, pinned[1].1, options)?);
    let first = rows.first().and_then(Row::rate);
    let mut table = "| server held to | transactions/s (lowest–highest) | ÷ one core's |\n\
                     | --- | --- | --- |\n"
        .to_owned();
    for row in &rows {
        let ratio = row.rate().zip(first).map(|(its, first)| its / first);
        let rates = spread(&row.values(|s| Some(s.reading.requests_per_s)), 0);
        table.push_str(&format!("| {} | {rates} | {} |\n", row.label(), shown(ratio, 2)));
    }
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
        command.args(["work", &list, &options.seconds().to_string()]);
        let finished = finish(&mut command, options.seconds())?;
        let rate = finished.output.trim().strip_prefix("units_per_s=");
        rates.push(rate.and_then(|rate| rate.parse().ok()).ok_or_else(|| finished.failure())?);
    }
    median(&rates).ok_or_else(|| "no round".to_owned())
}

/// This project as the generator, with transactions of one kind.
fn ours(
    built: &Path,
    server: &ServerProcess,
    (kind, clients): (&str, u32),
    (pacing, seconds): (&str, u64),
) -> Result<Sample> {
    let (request, reply) = EXCHANGE_BYTES;
    let mix = KINDS.map(|of| format!("workload.mix.{of}={}", u32::from(of == kind)));
    let sizes =
        [format!("workload.request_bytes={request}"), format!("workload.reply_bytes={reply}")];
    let arguments = ["--points", &clients.to_string(), "--pacing", pacing].map(str::to_owned);
    let ours = Ours {
        program: &built.join("plimsoll"),
        suite: "transactions",
        url: server.url(),
        arguments: arguments.to_vec(),
        settings: mix.into_iter().chain(sizes).collect(),
    };
    let (finished, reading) = ours.run(seconds)?;
    Ok(Sample::from_finished(&finished, reading))
}

/// The same bytes, and nothing else.
fn bare(built: &Path, server: &ServerProcess, clients: u32, seconds: u64) -> Result<Sample> {
    let program = built.join("bare");
    let mut command = Network::Host.pinned(GENERATOR_CORE, &program.to_string_lossy());
    let (request, reply) = EXCHANGE_BYTES;
    command.args(["app", &server.address.to_string(), &format!("{request}/{reply}")]);
    command.args([clients.to_string(), seconds.to_string()]);
    let finished = finish(&mut command, seconds)?;
    let reading = read_bare(&finished.output).ok_or_else(|| finished.failure())?;
    Ok(Sample::from_finished(&finished, reading))
}

fn finish(command: &mut Command, seconds: u64) -> Result<process::Finished> {
    process::run(command, Duration::from_secs(3 * seconds + 60), |_, _| ())
}
