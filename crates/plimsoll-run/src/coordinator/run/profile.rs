//! The profile of the server (`--profile-server`), at a load point of its own.

use plimsoll_model::assignment::Purpose;
use plimsoll_model::event::JournalRecord;
use plimsoll_model::server_profile::{ProfileAt, ServerProfile};
use plimsoll_model::units::{Nanos, grouped};
use plimsoll_monitor::{Folded, Profiler, SourceOptions};
use plimsoll_protocol::host::Target;

use super::super::ladder;
use super::super::run_setup::{RunRequest, RunSetup};
use super::super::sources::{OpenedSource, SourceHost};
use super::{Planned, Run, Stop, Window};
use crate::clock::Countdown;
use crate::failure::Failure;
use crate::progress::{LoadUnit, RunProgress};

/// Refuses a profile that cannot be made, before there is any load.
pub(super) fn check(
    request: &RunRequest,
    setup: &RunSetup,
    sources: &[OpenedSource],
) -> Result<(), Failure> {
    if request.options.profile_server.is_none() {
        return Ok(());
    }
    let profiler = profiler(sources.iter().map(|it| &it.host), &setup.targets)?;
    profiler.check().map_err(|e| Failure::unusable(format!("--profile-server: {e}")))
}

/// Profiles the server's processes if they are known, else all of its host.
fn profiler<'h>(
    hosts: impl Iterator<Item = &'h SourceHost>,
    targets: &[Target],
) -> Result<Profiler, Failure> {
    if targets.iter().any(|target| target.is_here) {
        let pids: Vec<u32> = targets.iter().flat_map(Target::pids).collect();
        return Ok(Profiler::here(&pids));
    }
    let mut servers = hosts.filter(|host| !host.ports(targets).is_empty());
    let there = |host: &SourceHost| Profiler::there(host.url(), &SourceOptions::default());
    servers.find_map(there).ok_or_else(|| {
        Failure::wrong(
            "--profile-server: the server runs on another host, where nobody can start perf; \
             write --monitor ssh://[user@]HOST of that host as well",
        )
    })
}

impl Run<'_> {
    /// A profile was requested, and is not there yet.
    pub(super) fn is_to_be_profiled(&self) -> bool {
        let done = |record: &JournalRecord| matches!(record, JournalRecord::ServerProfiled(_));
        self.request.options.profile_server.is_some() && !self.records.iter().any(done)
    }

    /// Profiles the server after the last load point, if requested. Its load point is in no figure:
    /// perf disturbs the server.
    pub(super) fn profile_server(
        &mut self,
        stop: Stop,
        live: &mut dyn RunProgress,
    ) -> Result<Stop, Failure> {
        if !matches!(stop, Stop::Finished) || !self.is_to_be_profiled() {
            return Ok(stop);
        }
        let Some(requested) = self.load_to_profile() else {
            live.note(
                "warning: --profile-server: no load was found at which to profile the server",
            );
            return Ok(stop);
        };
        let load = ladder::load_at(&self.request.suite, self.profile, requested);
        let purpose = Purpose::Profile;
        self.settle_for(&load, purpose, live)?;
        let profiler = profiler(self.watcher.source_hosts(), &self.setup.targets)?;
        let seconds = ladder::profile_seconds(&self.phases(purpose));
        let unit = LoadUnit::from_suite(&self.request.suite, self.profile);
        let title = format!("profile of the server, {}", unit.text(requested));
        let countdown = Countdown::start(Nanos(self.point_ns(purpose)));
        self.watcher.profile_next(profiler.clone(), seconds);
        let window = Window::Usual(1);
        let point = Planned { load, purpose, window, title, countdown, last: true };
        if self.point(&point, live)?.is_none() {
            return Ok(Stop::Interrupted);
        }
        let why = match self.watcher.take_profile() {
            Some(Ok(folded)) => {
                self.keep_profile(folded, (&profiler, seconds, requested), live)?;
                return Ok(stop);
            }
            Some(Err(why)) => why.to_string(),
            None => "perf was not started".to_owned(),
        };
        live.note(&format!("warning: --profile-server: {why}"));
        Ok(stop)
    }

    fn load_to_profile(&self) -> Option<f64> {
        if let ProfileAt::Load(load) = self.request.options.profile_server? {
            return Some(load);
        }
        let result = self.analysis.finish();
        if self.request.capacity.is_some() {
            return result.summary.capacity.map(|capacity| capacity.value);
        }
        let achieved = result.points.iter().filter_map(|point| {
            Some((point.achieved_ops_per_s.filter(|rate| *rate > 0.0)?, point.requested))
        });
        achieved.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, requested)| requested)
    }

    fn keep_profile(
        &mut self,
        folded: Folded,
        (profiler, seconds, requested): (&Profiler, u32, f64),
        live: &mut dyn RunProgress,
    ) -> Result<(), Failure> {
        let point = self.finished(|purpose| purpose == Purpose::Profile).last();
        let Some(stem) = point.map(|record| record.point.stem()) else { return Ok(()) };
        let file = self.bundle.write_profile(&stem, &folded.stacks)?;
        let most = folded.functions.first().map_or_else(String::new, |it| {
            format!("; most in {} ({}), {:.0} %", it.name, it.module, 100.0 * it.self_ratio)
        });
        live.line(&format!("profile: {} samples in {file}{most}", grouped(folded.samples as f64)));
        self.record_durably(JournalRecord::ServerProfiled(Box::new(ServerProfile {
            stem,
            requested,
            achieved_ops_per_s: None,
            file,
            source: profiler.source().map(str::to_owned),
            scope: profiler.scope(),
            sampled_by: folded.event,
            seconds,
            samples: folded.samples,
            idle_samples: folded.idle_samples,
            left_out_samples: folded.left_out_samples,
            functions: folded.functions,
        })))
    }
}
