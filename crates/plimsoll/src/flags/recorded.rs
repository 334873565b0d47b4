//! Flags of recorded loads: load files of dbench, traces of language models, replays of a web
//! server's log. And the values that a replay sets.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_model::suite::{Override, ProfileName, Suite};
use plimsoll_model::units::{Nanos, span_text};
use plimsoll_protocol::InputFile;
use plimsoll_run::{load_file, protocols};

use super::url::{Set, UrlArgs};
use super::values::parse_rate;
use crate::exit::Failure;
use crate::suite_source;

/// Key of a replay's file.
const REPLAY_FILE: &str = "replay_file";
/// Flags of web-url that a replay has.
pub(super) const OF_REPLAYS: [&str; 16] = [
    "length",
    "timeout",
    "connections",
    "header",
    "header_file",
    "basic_auth",
    "cookie",
    "connect_to",
    "all_addresses",
    "unix",
    "new_connection",
    "insecure",
    "cacert",
    "cert",
    "key",
    // And those of all suites for web servers.
    "http",
];

/// Flags of recorded loads.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of recorded loads")]
pub(crate) struct ReplayArgs {
    /// Load file of dbench for every client of disk-mix to replay, instead of the suite's mix
    #[arg(long, value_name = "FILE")]
    pub loadfile: Option<PathBuf>,
    /// Replay of a web server's log (docs/derive.md), or --trace: K times as fast as recorded
    /// [default: 1]
    #[arg(long, value_name = "K", conflicts_with = "rate", value_parser = parse_rate)]
    pub speed: Option<f64>,
}

impl ReplayArgs {
    /// Sets the load of a replay: the part of it that is played, its speed, and its rate on
    /// average. `given` are values of the command line.
    pub(super) fn set_replay(
        &self,
        name: &str,
        given: &[Override],
        (url, profile): (&UrlArgs, ProfileName),
        set: &mut Set,
    ) -> Result<InputFile, Failure> {
        if self.loadfile.is_some() {
            return Err(Failure::wrong(
                "--loadfile: this suite names the file that it replays; write --set \
                 workload.replay_file=FILE",
            ));
        }
        set.given("workload.speed", self.speed);
        let suite = suite_source::find(name, &[&set.values[..], given].concat())?;
        let files = suite.workload.adjacent_files();
        let file = files.into_iter().find(|(key, _)| *key == REPLAY_FILE).map(|(_, name)| name);
        let file = file.ok_or_else(|| {
            Failure::wrong(format!(
                "{name}: a replay needs its file: write replay_file = \"replay.csv\" below [workload]"
            ))
        })?;
        let input = load_file::read(Path::new(file), &suite)?;
        let its = protocols::of_suite(&suite)?.protocol.load_files;
        let recorded = its.and_then(|its| (its.due_times)(&input.content));
        let recorded = recorded
            .ok_or_else(|| Failure::wrong(format!("{file}: it has no requests at times")))?;
        let speed = speed_of(&suite);
        let whole = Nanos::from_secs_f64(recorded.length().as_secs_f64() / speed);
        let window = url.length.map_or(whole, |length| length.min(whole));
        let ops = recorded.ops_within(Nanos::from_secs_f64(window.as_secs_f64() * speed));
        set.to("ladder.kind", "points");
        set.to("ladder.points", vec![ops as f64 / window.as_secs_f64()]);
        let profile = profile.as_str();
        set.to(&format!("profiles.{profile}.measure"), span_text(window));
        set.to(&format!("profiles.{profile}.warm_up"), "0s");
        set.to(&format!("profiles.{profile}.ramp_down"), "0s");
        Ok(input)
    }
}

/// How many times as fast as recorded.
fn speed_of(suite: &Suite) -> f64 {
    let workload = toml::Table::try_from(&suite.workload).unwrap_or_default();
    workload.get("speed").and_then(toml::Value::as_float).unwrap_or(1.0)
}
