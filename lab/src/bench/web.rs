//! `bench web`: the same job for every generator, in turns, medians of all rounds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use xtask::verb::Result;

use super::generators::{Generator, Job, Reading};
use super::nginx::Nginx;
use super::place::Place;
use super::row::label;
use super::tables::{shown, spread};
use super::{Options, build, median, process, record};

/// One table: one job, several generators.
struct Section {
    /// Its name on the command line.
    part: &'static str,
    title: &'static str,
    job: fn(u64) -> Job,
    generators: &'static [Generator],
    /// The table shows times beside the cost.
    timed: bool,
    /// The rate is this share of what the first generator does in a closed load.
    of_closed: Option<f64>,
    /// TCP congestion control of a namespace made for it; `None` uses the host as it is.
    congestion_control: Option<&'static str>,
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

const SECTIONS: [Section; 8] = [
    Section {
        part: "1k-32",
        title: "1 KB replies, 32 connections, closed loop",
        job: |seconds| Job { path: "/1k", connections: 32, seconds, rate: None },
        generators: CLOSED,
        timed: false,
        of_closed: None,
        congestion_control: None,
    },
    Section {
        part: "1k-256",
        title: "1 KB replies, 256 connections, closed loop",
        job: |seconds| Job { path: "/1k", connections: 256, seconds, rate: None },
        generators: CLOSED,
        timed: false,
        of_closed: None,
        congestion_control: None,
    },
    Section {
        part: "100k-32",
        title: "100 KB replies, 32 connections, closed loop, the host's congestion control",
        job: |seconds| Job { path: "/100k", connections: 32, seconds, rate: None },
        generators: CLOSED,
        timed: false,
        of_closed: None,
        congestion_control: None,
    },
    Section {
        part: "100k-32-reno",
        title: "100 KB replies, 32 connections, closed loop, reno",
        job: |seconds| Job { path: "/100k", connections: 32, seconds, rate: None },
        generators: CLOSED,
        timed: false,
        of_closed: None,
        congestion_control: Some("reno"),
    },
    Section {
        part: "open-20k",
        title: "Open load: 1 KB replies at 20,000 requests/s, 32 connections, evenly spaced",
        job: |seconds| Job { path: "/1k", connections: 32, seconds, rate: Some(20_000) },
        generators: OPEN,
        timed: true,
        of_closed: None,
        congestion_control: None,
    },
    Section {
        part: "open-2k",
        title: "Open load: 1 KB replies at 2,000 requests/s, 32 connections, evenly spaced",
        job: |seconds| Job { path: "/1k", connections: 32, seconds, rate: Some(2_000) },
        generators: OPEN,
        timed: true,
        of_closed: None,
        congestion_control: None,
    },
    Section {
        part: "open-full",
        title: "Open load at 95 % of what a closed load of 32 connections had done, 1 KB replies",
        job: |seconds| Job { path: "/1k", connections: 32, seconds, rate: None },
        generators: FULL,
        timed: true,
        of_closed: Some(0.95),
        congestion_control: None,
    },
    Section {
        part: "1k-1",
        title: "1 KB replies, 1 connection, closed loop",
        job: |seconds| Job { path: "/1k", connections: 1, seconds, rate: None },
        generators: ONE,
        timed: true,
        of_closed: None,
        congestion_control: None,
    },
];

/// One run of one generator.
struct Sample {
    reading: Reading,
    cpu_us_per_request: f64,
    peak_rss_mb: f64,
}

/// All runs of one generator in one section.
struct Row {
    generator: Generator,
    program: String,
    samples: Vec<Sample>,
    /// Rounds that gave no sample.
    failed: usize,
}

impl Row {
    fn median(&self, of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        median(&self.samples.iter().filter_map(of).collect::<Vec<_>>())
    }

    fn cpu(&self) -> Option<f64> {
        median(&self.cpu_values())
    }

    fn cpu_values(&self) -> Vec<f64> {
        self.samples.iter().map(|s| s.cpu_us_per_request).collect()
    }
}

/// Measures every section that was asked for and prints one table each.
pub fn web(options: &Options) -> Result<()> {
    let built = build()?;
    let mut text = String::new();
    for section in SECTIONS.iter().filter(|section| options.wants(section.part)) {
        eprintln!("\n== {} ==", section.title);
        match measure(section, &built, options) {
            Ok((rows, missing)) => text.push_str(&table(section, &rows, &missing)),
            Err(message) => {
                eprintln!("NOT MEASURED: {message}");
                text.push_str(&format!("### {}\n\nNot measured: {message}\n\n", section.title));
            }
        }
    }
    record::record("web", &text, options)
}

fn measure(section: &Section, built: &Path, options: &Options) -> Result<(Vec<Row>, Vec<String>)> {
    let place = match section.congestion_control {
        Some(name) => Place::with_congestion_control(name)?,
        None => Place::Host,
    };
    let server = Nginx::start(&place)?;
    let mut job = (section.job)(options.seconds);
    let mut rows = Vec::new();
    let mut missing = Vec::new();
    for generator in section.generators {
        match generator.program(built) {
            Some(program) => {
                rows.push(Row { generator: *generator, program, samples: Vec::new(), failed: 0 });
            }
            None => missing.push(generator.name()),
        }
    }
    for name in &missing {
        eprintln!("SKIPPED, not installed: {name}");
    }
    for round in 1..=options.rounds {
        if let (Some(share), Some(first)) = (section.of_closed, rows.first()) {
            let closed = sample(first, &Job { rate: None, ..job }, &server, &place)?;
            job.rate = Some((closed.reading.requests_per_s * share) as u32);
            eprintln!("asked for next: {}/s", job.rate.unwrap_or_default());
        }
        for row in &mut rows {
            match sample(row, &job, &server, &place) {
                Ok(sample) => row.samples.push(sample),
                Err(message) => {
                    eprintln!("FAILED: {message}");
                    row.failed += 1;
                }
            }
        }
        eprintln!("round {round} of {} done", options.rounds);
    }
    Ok((rows, missing))
}

fn sample(row: &Row, job: &Job, server: &Nginx, place: &Place) -> Result<Sample> {
    let bundle = free_bundle();
    let mut command = row.generator.command(&row.program, job, server, (place, &bundle));
    let limit = Duration::from_secs(3 * job.seconds + 60);
    let finished = process::run(&mut command, limit, |_, _| ());
    let _ = std::fs::remove_dir_all(&bundle);
    let finished = finished?;
    // plimsoll says 1 when the run is invalid: a generator at its limit is the point of a closed
    // loop at full speed.
    let good = finished.code == Some(0) || finished.code == Some(1) && row.generator.is_ours();
    let reading = row.generator.read(&finished.output).filter(|r| good && r.requests > 0.0);
    let Some(reading) = reading else {
        let said = [finished.errors.as_str(), finished.output.as_str()].join("\n");
        let said: String = said.trim().chars().take(2_000).collect();
        return Err(format!("{}: exit code {:?}\n{said}", row.generator.name(), finished.code));
    };
    let sample = Sample {
        reading,
        cpu_us_per_request: match reading.cpu_us {
            Some((cpu_us, _)) => cpu_us,
            None => finished.cpu.as_secs_f64() * 1e6 / reading.requests,
        },
        peak_rss_mb: finished.peak_rss_bytes as f64 / 1e6,
    };
    eprintln!(
        "{:24} {:9.0}/s {:7.2} µs CPU/request",
        row.generator.name(),
        reading.requests_per_s,
        sample.cpu_us_per_request
    );
    Ok(sample)
}

/// A path for one bundle, removed after the run.
pub fn free_bundle() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("plimsoll-bench-bundle-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn table(section: &Section, rows: &[Row], missing: &[String]) -> String {
    let mut text = format!("### {}\n\n", section.title);
    let ours: Vec<f64> =
        rows.iter().filter(|row| row.generator.is_ours()).filter_map(Row::cpu).collect();
    if section.timed {
        text.push_str("| generator | requests/s | p50 µs | p99 µs | p99.9 µs | CPU µs per request | work µs | peak memory MB |\n");
        text.push_str("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    } else {
        text.push_str("| generator | requests/s | CPU µs per request (lowest–highest) | plimsoll's CPU ÷ its | peak memory MB |\n");
        text.push_str("| --- | --- | --- | --- | --- |\n");
    }
    for row in rows {
        let cells =
            if section.timed { timed_cells(row) } else { closed_cells(row, ours.first().copied()) };
        let label = label(&row.generator.name(), row.samples.len(), row.failed);
        text.push_str(&format!("| {label} | {} |\n", cells.join(" | ")));
    }
    for name in missing {
        text.push_str(&format!("\nNot measured, not installed: {name}.\n"));
    }
    text.push('\n');
    text
}

fn timed_cells(row: &Row) -> Vec<String> {
    let time = |of: fn(&Reading) -> Option<f64>| shown(row.median(|s| of(&s.reading)), 0);
    vec![
        shown(row.median(|s| Some(s.reading.requests_per_s)), 0),
        time(|r| r.p50_us),
        time(|r| r.p99_us),
        time(|r| r.p999_us),
        spread(&row.cpu_values(), 2),
        shown(row.median(|s| Some(s.reading.cpu_us?.1)), 2),
        shown(row.median(|s| Some(s.peak_rss_mb)), 0),
    ]
}

fn closed_cells(row: &Row, ours: Option<f64>) -> Vec<String> {
    let ratio = ours.zip(row.cpu()).map(|(ours, its)| ours / its);
    vec![
        shown(row.median(|s| Some(s.reading.requests_per_s)), 0),
        spread(&row.cpu_values(), 2),
        shown(ratio, 2),
        shown(row.median(|s| Some(s.peak_rss_mb)), 0),
    ]
}
