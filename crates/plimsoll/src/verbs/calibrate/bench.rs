//! Runs the instrument against the calibrated server: starts the server on separate cores, makes an
//! ordinary run against it, and returns the records of both sides.

use std::path::{Path, PathBuf};

use plimsoll_calibration::trial::DRAIN;
use plimsoll_calibration::wire::Start;
use plimsoll_calibration::{Observation, Pattern, ServerLog, Trial, Wire};
use plimsoll_model::assignment::Purpose;
use plimsoll_model::bundle::BundleReader;
use plimsoll_model::event::{OpTimes, RunOptions};
use plimsoll_model::finding::Finding;
use plimsoll_model::result::RunResult;
use plimsoll_model::suite::{Override, ProfileName};
use plimsoll_model::target::TargetSpec;
use plimsoll_model::units::{Nanos, span_text};
use plimsoll_protocol::host::HostError;
use plimsoll_report::sentences;
use plimsoll_run::clock::wall_ahead_of_monotonic_ns;
use plimsoll_run::coordinator::placement::Placement;
use plimsoll_run::coordinator::{RunRequest, run};
use plimsoll_run::protocols::parse_suite;
use plimsoll_run::{Signals, derive};
use plimsoll_servers::ServerProcess;
use toml::Value;

use super::wires;
use crate::exit::Failure;
use crate::flags::Progress;
use crate::terminal::Live;

/// The wall clock may move this much against the monotonic one during a run: windows are mapped to
/// the server's log by the wall clock.
const CLOCK_STEP_MAX: Nanos = Nanos::from_millis(1);
/// Readings of both clocks; the least disturbed one is used.
const CLOCK_READINGS: u32 = 5;

pub(super) struct Bench<'a> {
    /// Bundles and logs go here.
    pub(super) dir: &'a Path,
    pub(super) placement: &'a Placement,
    pub(super) seed: u64,
    pub(super) signals: &'a Signals,
}

impl plimsoll_calibration::Bench for Bench<'_> {
    fn seed(&self) -> u64 {
        self.seed
    }

    fn proper(&self) -> Wire {
        wires::proper()
    }

    fn run(&self, trial: &Trial, spec: &str) -> Result<(Vec<Observation>, ServerLog), HostError> {
        Ok(self.run_and_log(trial, spec)?)
    }

    fn start(
        &self,
        wire: Wire,
        spec: &str,
        log: Option<&Path>,
    ) -> Result<ServerProcess, HostError> {
        Ok(self.server(wire, spec, log)?)
    }

    fn run_on(&self, trial: &Trial, server: &ServerProcess) -> Result<Vec<Observation>, HostError> {
        Ok(self.run_against(trial, server)?)
    }
}

impl Bench<'_> {
    /// A run against a server of its own, and that server's log.
    fn run_and_log(
        &self,
        trial: &Trial,
        spec: &str,
    ) -> Result<(Vec<Observation>, ServerLog), Failure> {
        let log = self.dir.join(format!("{}.server.csv", trial.name));
        let mut server = self.server(trial.wire, spec, Some(&log))?;
        let observations = self.run_against(trial, &server)?;
        server.check()?;
        let ended = server.stop()?;
        if !ended.success() {
            return Err(Failure::unusable(format!(
                "the calibrated server ended with {ended} and left no log ({}): look at what it said \
                 above and whether the directory has space, then calibrate again",
                log.display()
            )));
        }
        Ok((observations, ServerLog::read(&log)?))
    }

    /// Starts a server with a queue of known law.
    fn server(&self, wire: Wire, spec: &str, log: Option<&Path>) -> Result<ServerProcess, Failure> {
        let program = std::env::current_exe().map_err(|e| {
            Failure::unusable(format!(
                "cannot find this program, which is the calibrated server too: {e}; start it by \
                 its full path"
            ))
        })?;
        let cores = self.placement.server_cores.clone();
        Ok(wire.start(Start { program, spec, log, cores, dir: self.dir })?)
    }

    /// A run against a running server.
    fn run_against(
        &self,
        trial: &Trial,
        server: &ServerProcess,
    ) -> Result<Vec<Observation>, Failure> {
        let out = self.dir.join(&trial.name);
        let request = self.request(trial, server, out.clone())?;
        let before_ns = wall_ahead_ns();
        let end = run(&request, self.signals, &mut Live::new(Progress::None))?;
        if end.is_interrupted || self.signals.is_stop_requested() {
            return Err(Failure::interrupted("interrupted"));
        }
        let ahead_ns = unstepped(before_ns, wall_ahead_ns()).map_err(|step| {
            Failure::unusable(format!(
                "the wall clock was stepped by {step} during the run \"{}\" (limit \
                 {CLOCK_STEP_MAX}): what client and server wrote down cannot be laid side by \
                 side; let the clock settle (chrony, ntpd) and calibrate again",
                trial.name
            ))
        })?;
        read(&out, (trial.wire, ahead_ns), &end.result)
    }

    fn request(
        &self,
        trial: &Trial,
        server: &ServerProcess,
        out: PathBuf,
    ) -> Result<RunRequest, Failure> {
        let text = match trial.load {
            Pattern::Poisson | Pattern::Even { .. } | Pattern::OfSuite => trial.wire.suite(),
            Pattern::Closed => trial.wire.its_own().map_or("", |proper| proper.closed_suite),
        };
        let set = |path: &str, value: Value| Override { path: path.to_owned(), value };
        let span = |span: Nanos| Value::from(span_text(span));
        let mut overrides = vec![
            set("ladder.points", Value::from(trial.points.clone())),
            set("profiles.standard.warm_up", span(trial.warm_up)),
            set("profiles.standard.measure", span(trial.window)),
            set("profiles.standard.drain", span(DRAIN)),
        ];
        if let Pattern::Even { clients } = trial.load {
            overrides.push(set("load.gaps", Value::from("uniform")));
            overrides.push(set("load.clients", Value::from(i64::from(clients))));
        }
        let suite = parse_suite("calibration.toml", text, &overrides)?;
        let target = TargetSpec::parse(&trial.wire.url(server))?;
        let options = RunOptions {
            workers: Some(self.placement.workers),
            pacing: trial.pacing.unwrap_or(self.placement.pacing),
            ..RunOptions::default()
        };
        let plain = RunRequest::plain(suite, ProfileName::Standard);
        Ok(RunRequest { seed: self.seed, targets: vec![target], out, options, ..plain })
    }
}

/// How far the wall clock is ahead. A preemption between the two readings makes it seem less.
fn wall_ahead_ns() -> i64 {
    (0..CLOCK_READINGS).map(|_| wall_ahead_of_monotonic_ns()).max().unwrap_or_default()
}

/// The mean of both readings, or by how much the clock was stepped.
fn unstepped(before_ns: i64, after_ns: i64) -> Result<i64, Nanos> {
    let step = Nanos(before_ns.abs_diff(after_ns));
    if step > CLOCK_STEP_MAX { Err(step) } else { Ok(i64::midpoint(before_ns, after_ns)) }
}

/// The load points of a bundle.
fn read(
    bundle: &Path,
    (wire, wall_ahead_ns): (Wire, i64),
    result: &RunResult,
) -> Result<Vec<Observation>, Failure> {
    let reader = BundleReader::open(bundle)?;
    let Some(started) = reader.journal().started() else { return Ok(Vec::new()) };
    let points = reader.journal().points().filter(|p| p.point.purpose == Purpose::Ladder);
    (1..)
        .zip(points)
        .map(|(position, record)| {
            let times = derive::point_times(&reader, record.point, &started.op_names)?;
            let origin_ns = record.started_unix_ns.saturating_add_signed(-wall_ahead_ns);
            let from = origin_ns + record.warm_up_ns.0;
            Ok(Observation {
                record: record.clone(),
                times: with_wire_response(wire, times.window_total()),
                window_ns: (from, from + record.measured_ns.0),
                reasons: reasons_at(&result.verdict.reasons, position),
                reported: result
                    .points
                    .get(position as usize - 1)
                    .and_then(|point| point.response_interval_ns),
            })
        })
        .collect()
}

/// The times with the response that this protocol evaluates.
fn with_wire_response(wire: Wire, mut times: OpTimes) -> OpTimes {
    if let Some(response) = wire.checked_time().times_in(&times).cloned() {
        times.response = response;
    }
    times
}

/// Reasons that concern the load point or the whole run, with their sentences.
fn reasons_at(reasons: &[Finding], position: u32) -> Vec<Finding> {
    let concern = reasons.iter().filter(|it| it.point.is_none_or(|point| point == position));
    let mut reasons: Vec<Finding> = concern.cloned().collect();
    sentences::add_to_findings(&mut reasons);
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_stepped_during_a_run_is_refused_in_either_direction() {
        assert_eq!(unstepped(5_000_000, 5_400_000), Ok(5_200_000));
        assert_eq!(unstepped(-5_000_000, -6_000_000), Ok(-5_500_000));
        assert_eq!(unstepped(0, 1_000_001), Err(Nanos(1_000_001)));
        assert_eq!(unstepped(0, -600_000_000_000), Err(Nanos::from_secs(600)));
    }
}
