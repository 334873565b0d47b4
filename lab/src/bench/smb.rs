//! `bench smb`: CPU per load-file line next to smbtorture's nbench, and per echo next to its
//! `smb2.bench.echo`, on Samba. Its processes, one per connection, come and go; their CPU time is
//! not counted.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use plimsoll_servers::ServerProcess;
use plimsoll_smb::server::samba::{self, SambaRequest};
use xtask::command;
use xtask::verb::Result;

use super::Options;
use super::ours::{Ours, Reading, without_fault};
use super::record::{record, section};
use super::row::{Row, Sample, Take, comparison, interleave};
use crate::network::{GENERATOR_CORE, Network, SERVER_CORE};
use crate::process::{self, Finished};
use crate::program;

/// The public load file, of Debian's package dbench.
const LOAD_FILE: &str = "/usr/share/dbench/client.txt";
/// Size of the share.
const SHARE_BYTES: u64 = 4 << 30;
/// Clients that replay it at the same time.
const REPLAY_CLIENTS: [u32; 3] = [1, 4, 8];
/// Connections, and ECHOs outstanding on each.
const ECHOES: [(u32, u32); 2] = [(4, 1), (4, 8)];

/// Measures every requested part and prints one table each.
pub fn smb(options: &Options) -> Result<()> {
    let program = program::plimsoll()?;
    let mut text = String::new();
    if options.wants("replay") {
        for clients in REPLAY_CLIENTS {
            let title = format!("Replay of the public load file, {clients} clients");
            text.push_str(&section(&title, || replay(&program, clients, options)));
        }
    }
    if options.wants("echo") {
        for (connections, outstanding) in ECHOES {
            let title = format!("ECHO, {connections} connections, {outstanding} outstanding each");
            text.push_str(&section(&title, || echo(&program, connections, outstanding, options)));
        }
    }
    record("smb", &text, options)
}

/// nbench speaks SMB1 only; Samba serves both, to guests and therefore unsigned. The share lies in
/// memory: what a disk does meanwhile would be done on the generator's core too.
fn start_samba() -> Result<ServerProcess> {
    let request = SambaRequest {
        cores: vec![SERVER_CORE],
        smb1: true,
        share_bytes: Some(SHARE_BYTES),
        ..SambaRequest::default()
    };
    samba::start(&request).map_err(|e| e.to_string())
}

fn replay(program: &Path, clients: u32, options: &Options) -> Result<String> {
    let server = start_samba()?;
    let arguments = format!("--loadfile {LOAD_FILE} --points {clients}");
    let rival = || nbench(&server, clients, options.seconds());
    let rows = compare(program, &server, &arguments, ("nbench (SMB1)", Box::new(rival)), options);
    Ok(comparison(&rows, "line", "smbtorture"))
}

fn echo(program: &Path, connections: u32, outstanding: u32, options: &Options) -> Result<String> {
    let server = start_samba()?;
    let arguments = format!(
        "--points {connections} --set workload.pattern=echo \
         --set workload.outstanding_max={outstanding}"
    );
    let rival = || torture_echo(&server, connections, outstanding, options.seconds());
    let rows = compare(program, &server, &arguments, ("smb2.bench.echo", Box::new(rival)), options);
    Ok(comparison(&rows, "ECHO", "smbtorture"))
}

/// Runs ours and the rival alternately, round by round.
fn compare(
    program: &Path,
    server: &ServerProcess,
    arguments: &str,
    (test, rival): (&str, Take<'_>),
    options: &Options,
) -> Vec<Row> {
    let run = |pacing: &str| {
        let arguments = arguments.split_whitespace().chain(["--pacing", pacing]);
        let ours = Ours {
            program,
            suite: "disk-mix",
            url: server.url(),
            arguments: arguments.map(str::to_owned).collect(),
            settings: vec!["load.think.mean=0s".to_owned(), "load.start_delay=0s".to_owned()],
        };
        let (finished, reading) = ours.run(options.seconds())?;
        without_fault(&finished.output)?;
        Ok(Sample::from_finished(&finished, reading))
    };
    let takes: [(String, Take<'_>); 3] = [
        ("**plimsoll**, auto".to_owned(), Box::new(|| run("auto"))),
        ("**plimsoll**, coalesce".to_owned(), Box::new(|| run("coalesce"))),
        (format!("smbtorture {test}"), rival),
    ];
    interleave(takes, options.rounds)
}

fn torture(server: &ServerProcess, test: &str, seconds: u64) -> Result<Command> {
    let program = command::find("smbtorture")
        .ok_or("smbtorture is not installed; sudo apt-get install samba-testsuite")?;
    let mut command = Network::Host.pinned(GENERATOR_CORE, &program.to_string_lossy());
    let port = server.address.port().to_string();
    let share = server.path.trim_matches('/');
    command.args([&format!("//{}/{share}", server.address.ip()), "-p", &port]);
    match &server.login {
        Some(login) => command.args(["-U", &format!("{}%{}", login.user, login.password)]),
        None => command.args(["-U", "guest%"]),
    };
    command.args(["-t", &seconds.to_string(), test]);
    Ok(command)
}

fn nbench(server: &ServerProcess, clients: u32, seconds: u64) -> Result<Sample> {
    let mut command = torture(server, "bench.nbench", seconds)?;
    command.args([&format!("--loadfile={LOAD_FILE}"), &format!("--num-progs={clients}")]);
    let finished = finish(&mut command, seconds)?;
    let lines = read_nbench(&finished.output)
        .ok_or_else(|| format!("nbench said\n{}{}", finished.output, finished.errors))?;
    Ok(sample(&finished, lines, seconds))
}

fn torture_echo(
    server: &ServerProcess,
    connections: u32,
    outstanding: u32,
    seconds: u64,
) -> Result<Sample> {
    let mut command = torture(server, "smb2.bench.echo", seconds)?;
    command.arg(format!("--num-progs={connections}"));
    command.arg(format!("--option=torture:qdepth={outstanding}"));
    let finished = finish(&mut command, seconds)?;
    let echoes = read_echo(&[finished.output.as_str(), finished.errors.as_str()].concat())
        .ok_or_else(|| format!("smbtorture said\n{}{}", finished.output, finished.errors))?;
    Ok(sample(&finished, echoes, seconds))
}

fn sample(finished: &Finished, requests: f64, seconds: u64) -> Sample {
    let requests_per_s = requests / seconds as f64;
    Sample::from_finished(finished, Reading { requests, requests_per_s, ..Reading::default() })
}

fn finish(command: &mut Command, seconds: u64) -> Result<Finished> {
    let finished = process::run(command, Duration::from_secs(3 * seconds + 60), |_, _| ())?;
    match finished.code {
        Some(0) => Ok(finished),
        _ => Err(finished.failure()),
    }
}

/// Lines all clients did: each report has the clients and their mean line number.
fn read_nbench(output: &str) -> Option<f64> {
    let last = output.lines().rfind(|line| line.contains("MB/sec") && line.contains(" sec "))?;
    let mut tokens = last.split_whitespace();
    let clients: f64 = tokens.next()?.parse().ok()?;
    let lines: f64 = tokens.next()?.parse().ok()?;
    (lines > 0.0).then_some(clients * lines)
}

/// ECHOs of all seconds: the reports overwrite each other in one line.
fn read_echo(output: &str) -> Option<f64> {
    let rates = output.split("num/s=").skip(1);
    let counts = rates.filter_map(|rest| rest.split(',').next()?.parse::<f64>().ok());
    let sum: f64 = counts.sum();
    (sum > 0.0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_report_of_nbench_counts() {
        let output = "   4      2570  83.23 MB/sec  execute 1 sec  latency 0.00 msec \n   \
                      4      9740  68.44 MB/sec  cleanup 4 sec   \n\nThroughput 68.4443 MB/sec\n";
        assert_eq!(read_nbench(output), Some(38_960.0));
        assert_eq!(read_nbench("no such share"), None);
    }

    #[test]
    fn every_second_of_the_echo_bench_counts() {
        let output = "1.00 second: echo[num/s=15570,avslat=0.000264]      \
                      2.00 second: echo[num/s=15430,avslat=0.000258]\n3.00 seconds\n";
        assert_eq!(read_echo(output), Some(31_000.0));
    }
}
