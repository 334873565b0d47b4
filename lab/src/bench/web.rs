//! `bench web`: the same job for every generator, alternately, medians of all rounds.

use std::path::Path;
use std::time::Duration;

use xtask::verb::Result;

use super::Options;
use super::generators::{Generator, Job};
use super::record::{record, section};
use super::row::{Row, Sample, shown, spread};
use crate::network::Network;
use crate::nginx::Nginx;
use crate::{process, program};

/// One table: one job, several generators.
struct Section {
    /// Its name on the command line.
    part: &'static str,
    title: &'static str,
    path: &'static str,
    connections: u32,
    load: Load,
    generators: &'static [Generator],
    /// The table shows times as well as the cost.
    timed: bool,
    /// TCP congestion control of a namespace made for it; `None` uses the host as it is.
    congestion_control: Option<&'static str>,
    /// Over HTTP/2, with this many requests in flight on each connection.
    streams: Option<u32>,
}

/// How many requests there are.
#[derive(Clone, Copy)]
enum Load {
    /// Every connection is kept busy.
    Closed,
    /// This many a second, evenly spaced.
    Open(u32),
    /// This share of what the first generator does in a closed load.
    ShareOfClosed(f64),
}

/// At full speed, where the cost is compared: with those that sleep between replies.
const CLOSED: &[Generator] = &[
    Generator::Plimsoll("coalesce"),
    Generator::Plimsoll("precise"),
    Generator::Wrk,
    Generator::H2load,
    Generator::Ab,
    Generator::Oha,
    Generator::Bare("closed"),
    Generator::Bare("discard"),
];
const HTTP2: &[Generator] = &[
    Generator::Plimsoll("coalesce"),
    Generator::Plimsoll("precise"),
    Generator::H2loadHttp2,
    Generator::OhaHttp2,
];
const ONE: &[Generator] = &[
    Generator::PlimsollFree,
    Generator::Plimsoll("precise"),
    Generator::Wrk,
    Generator::Bare("poll"),
    Generator::Bare("closed"),
];
const FULL: &[Generator] = &[Generator::PlimsollFree];
const OPEN: &[Generator] = &[
    Generator::PlimsollFree,
    Generator::Plimsoll("spin"),
    Generator::Plimsoll("precise"),
    Generator::Plimsoll("coalesce"),
    Generator::Wrk2,
    Generator::Oha,
    Generator::Bare("spin"),
    Generator::Bare("precise"),
];

const SECTIONS: [Section; 12] = [
    closed("1k-32", "1 KB replies, 32 connections, closed loop", "/1k", 32),
    closed("1k-256", "1 KB replies, 256 connections, closed loop", "/1k", 256),
    closed(
        "100k-32",
        "100 KB replies, 32 connections, closed loop, the host's congestion control",
        "/100k",
        32,
    ),
    Section {
        congestion_control: Some("reno"),
        ..closed("100k-32-reno", "100 KB replies, 32 connections, closed loop, reno", "/100k", 32)
    },
    timed(
        "open-20k",
        "Open load: 1 KB replies at 20,000 requests/s, 32 connections, evenly spaced",
        32,
        Load::Open(20_000),
        OPEN,
    ),
    timed(
        "open-2k",
        "Open load: 1 KB replies at 2,000 requests/s, 32 connections, evenly spaced",
        32,
        Load::Open(2_000),
        OPEN,
    ),
    timed(
        "open-full",
        "Open load at 95 % of what a closed load of 32 connections had done, 1 KB replies",
        32,
        Load::ShareOfClosed(0.95),
        FULL,
    ),
    timed("1k-1", "1 KB replies, 1 connection, closed loop", 1, Load::Closed, ONE),
    http2(
        "h2-1k-32x1",
        "1 KB replies over HTTP/2, 32 connections with a request each, closed loop",
        "/1k",
        (32, 1),
    ),
    http2(
        "h2-1k-1x32",
        "1 KB replies over HTTP/2, 1 connection with 32 requests in flight, closed loop",
        "/1k",
        (1, 32),
    ),
    http2(
        "h2-100k-32x1",
        "100 KB replies over HTTP/2, 32 connections with a request each, closed loop",
        "/100k",
        (32, 1),
    ),
    http2(
        "h2-100k-1x32",
        "100 KB replies over HTTP/2, 1 connection with 32 requests in flight, closed loop",
        "/100k",
        (1, 32),
    ),
];

const fn http2(
    part: &'static str,
    title: &'static str,
    path: &'static str,
    (connections, streams): (u32, u32),
) -> Section {
    let streams = Some(streams);
    Section { streams, generators: HTTP2, ..closed(part, title, path, connections) }
}

const fn closed(
    part: &'static str,
    title: &'static str,
    path: &'static str,
    connections: u32,
) -> Section {
    Section {
        part,
        title,
        path,
        connections,
        load: Load::Closed,
        generators: CLOSED,
        timed: false,
        congestion_control: None,
        streams: None,
    }
}

const fn timed(
    part: &'static str,
    title: &'static str,
    connections: u32,
    load: Load,
    generators: &'static [Generator],
) -> Section {
    Section { load, generators, timed: true, ..closed(part, title, "/1k", connections) }
}

/// A generator that is installed.
struct InstalledGenerator {
    generator: Generator,
    program: String,
}

/// Measures every requested section and prints one table each.
pub fn web(options: &Options) -> Result<()> {
    let built = program::plimsoll_and_bare()?;
    let mut text = String::new();
    for one in SECTIONS.iter().filter(|section| options.wants(section.part)) {
        text.push_str(&section(one.title, || measure(one, &built, options)));
    }
    record("web", &text, options)
}

fn measure(section: &Section, built: &Path, options: &Options) -> Result<String> {
    let network = match section.congestion_control {
        Some(name) => Network::with_congestion_control(name)?,
        None => Network::Host,
    };
    let server = Nginx::start(&network)?;
    let (mut installed, mut missing) = (Vec::new(), Vec::new());
    for generator in section.generators {
        match generator.program(built) {
            Some(program) => installed.push(InstalledGenerator { generator: *generator, program }),
            None => missing.push(generator.name()),
        }
    }
    for name in &missing {
        eprintln!("SKIPPED, not installed: {name}");
    }
    let mut rows: Vec<Row> = installed.iter().map(|one| Row::new(one.generator.name())).collect();
    for round in 1..=options.rounds {
        let job = job(section, installed.first(), options.seconds(), (&server, &network))?;
        for (row, one) in rows.iter_mut().zip(&installed) {
            row.take(one.sample(&job, &server, &network));
        }
        eprintln!("round {round} of {} done", options.rounds);
    }
    Ok(table(section, &installed, &rows, &missing))
}

/// What all generators do in a round.
fn job(
    section: &Section,
    first: Option<&InstalledGenerator>,
    seconds: u64,
    (server, network): (&Nginx, &Network),
) -> Result<Job> {
    let Section { path, connections, streams, .. } = *section;
    let closed = Job { path, connections, seconds, rate: None, streams };
    let rate = match (section.load, first) {
        (Load::Open(rate), _) => Some(rate),
        (Load::ShareOfClosed(share), Some(first)) => {
            let reading = first.sample(&closed, server, network)?.reading;
            Some((reading.requests_per_s * share) as u32)
        }
        _ => None,
    };
    Ok(Job { rate, ..closed })
}

impl InstalledGenerator {
    fn sample(&self, job: &Job, server: &Nginx, network: &Network) -> Result<Sample> {
        let Self { generator, program } = self;
        let folder = program::temporary()?;
        let bundle = folder.path().join("run");
        let mut command = generator.command(program, job, server, (network, &bundle));
        let limit = Duration::from_secs(3 * job.seconds + 60);
        let finished = process::run(&mut command, limit, |_, _| ())?;
        // plimsoll exits with 1 if the run is invalid: a generator at its limit is the point of a
        // closed loop at full speed.
        let good = finished.code == Some(0) || finished.code == Some(1) && generator.is_ours();
        let reading = generator.read(&finished.output).filter(|r| good && r.requests > 0.0);
        Ok(Sample::from_finished(&finished, reading.ok_or_else(|| finished.failure())?))
    }
}

fn table(
    section: &Section,
    installed: &[InstalledGenerator],
    rows: &[Row],
    missing: &[String],
) -> String {
    let is_ours = |(one, _): &(&InstalledGenerator, &Row)| one.generator.is_ours();
    let ours = installed.iter().zip(rows).filter(is_ours).find_map(|(_, row)| row.cost());
    let head = match section.timed {
        true => {
            "| generator | requests/s | p50 µs | p99 µs | p99.9 µs | CPU µs per request | work µs \
             | peak memory MB |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
        }
        false => {
            "| generator | requests/s | CPU µs per request (lowest–highest) | plimsoll's CPU ÷ its \
             | peak memory MB |\n| --- | --- | --- | --- | --- |\n"
        }
    };
    let mut text = head.to_owned();
    for row in rows {
        let cells = if section.timed { timed_cells(row) } else { closed_cells(row, ours) };
        text.push_str(&format!("| {} | {} |\n", row.label(), cells.join(" | ")));
    }
    for name in missing {
        text.push_str(&format!("\nNot measured, not installed: {name}.\n"));
    }
    text
}

fn timed_cells(row: &Row) -> Vec<String> {
    vec![
        shown(row.rate(), 0),
        shown(row.median(|s| s.reading.p50_us), 0),
        shown(row.median(|s| s.reading.p99_us), 0),
        shown(row.median(|s| s.reading.p999_us), 0),
        spread(&row.costs(), 2),
        shown(row.work(), 2),
        shown(row.memory(), 0),
    ]
}

fn closed_cells(row: &Row, ours: Option<f64>) -> Vec<String> {
    let ratio = ours.zip(row.cost()).map(|(ours, its)| ours / its);
    vec![shown(row.rate(), 0), spread(&row.costs(), 2), shown(ratio, 2), shown(row.memory(), 0)]
}
