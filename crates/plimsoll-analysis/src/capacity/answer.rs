//! From the load points of a bundle to the capacity: the same tries give the same answer. The search
//! for it in sentences.

use plimsoll_model::assignment::Purpose;
use plimsoll_model::capacity::{
    Capacity, CapacityRequest, CapacitySearch, CapacityTry, TryOutcome, TryReason,
};
use plimsoll_model::event::Bound;
use plimsoll_model::finding::Finding;
use plimsoll_model::limit::{Limit, LimitFacts};
use plimsoll_model::result::{OverallResponse, PointResult, Summary};
use plimsoll_model::sentences::Sentences;
use plimsoll_model::suite::{LoadSpec, ProfileName, Suite};
use plimsoll_model::units::{clients, grouped};

use super::level::Tries;
use super::{Answer, Config, RERUNS, Search, Step};
use crate::climb::{Ceiling, LevelState};
use crate::raw::{RunView, profile_named};

/// Replaces the headline with the capacity, or gives the reason why there is none. `tries` are in
/// order of time.
pub(crate) fn summarise(
    summary: &mut Summary,
    (suite, view, sentences): (&Suite, &RunView, &Sentences),
    tries: Vec<CapacityTry>,
    (points, probes): (&[PointResult], &[PointResult]),
) {
    let Some(request) = &view.started.capacity else { return };
    let profile = profile_named(&view.started.profile).unwrap_or(ProfileName::Standard);
    let mut search = Search::new(Config::from_suite(suite, profile));
    if let Some(achieved) = probes.first().and_then(|probe| probe.achieved_ops_per_s) {
        search.saturated(achieved);
    }
    tries.iter().for_each(|attempt| search.report(attempt.clone()));
    let answer = search.answer();
    let unit = suite.load.unit(suite.metric);
    summary.metric = format!("capacity within {}", request.within);
    summary.unit = unit.to_owned();
    summary.value = answer.map(|answer| answer.value);
    summary.value_interval = answer.and_then(|answer| Some([answer.value, answer.high?]));
    summary.bound = answer.map(|answer| answer.bound).unwrap_or_default();
    // Those of a ladder: the tries cluster near the limits.
    summary.overall_response_ms = OverallResponse::default();
    summary.overall_response_interval_ms = None;
    (summary.score, summary.score_interval, summary.score_note) = (None, None, None);
    let text = |answer| limit_text(sentences, &tries, &answer, (points, unit));
    if let Some(text) = answer.and_then(text) {
        summary.limit = Some(text);
    }
    summary.capacity = answer.map(|answer| Capacity {
        value: answer.value,
        unit: unit.to_owned(),
        low: answer.value,
        high: answer.high,
        undecided_to: answer.undecided_to,
        within: request.within.clone(),
        passed: answer.passed,
        tries: answer.tries,
        users: users(suite, request, answer.value, &reruns(&tries, &answer, points)),
        client: client(suite, request),
        limit: limit(&tries, &answer, points),
    });
    summary.capacity_search =
        Some(CapacitySearch { asked: request.clone(), how: view.capacity.clone(), tries });
}

/// Why the capacity is not valid, where its deciding load points are not: the re-runs of the claim,
/// and, where nothing exceeded the server's limits, the tries that ended the search because other
/// programs had the generator's core.
pub(crate) fn unsound(summary: &Summary, points: &[PointResult]) -> Vec<Finding> {
    let (Some(capacity), Some(search)) = (&summary.capacity, &summary.capacity_search) else {
        return Vec::new();
    };
    let reruns = search.tries.iter().filter(|attempt| {
        attempt.purpose == Purpose::Verify
            && attempt.load == capacity.value
            && attempt.standing == TryOutcome::Within
    });
    let reruns: Vec<&PointResult> = reruns.filter_map(|it| point_of(it, points)).collect();
    let valid = reruns.iter().filter(|point| point.valid).count();
    let late = reruns.iter().filter(|_| valid < RERUNS as usize).flat_map(|it| it.reasons.clone());
    let ended = search.tries.iter().filter(|attempt| {
        summary.bound == Bound::AtLeast
            && Some(attempt.load) == capacity.high
            && attempt.standing == TryOutcome::NotJudged
    });
    let disturbed = ended.filter_map(|attempt| match &attempt.reason {
        TryReason::Rule { rule } if rule.disturbance().is_some() => {
            Some(rule.clone().of_point(attempt.point))
        }
        _ => None,
    });
    let mut findings: Vec<Finding> = Vec::new();
    for finding in late.chain(disturbed) {
        if !findings.iter().any(|listed| listed.rule.is_same(&finding.rule)) {
            findings.push(finding);
        }
    }
    findings
}

/// The load points that re-ran the claim.
fn reruns<'p>(
    tries: &[CapacityTry],
    answer: &Answer,
    points: &'p [PointResult],
) -> Vec<&'p PointResult> {
    let of_claim = |attempt: &&CapacityTry| {
        attempt.purpose == Purpose::Verify && attempt.load == answer.value && attempt.passed
    };
    tries.iter().filter(of_claim).filter_map(|attempt| point_of(attempt, points)).collect()
}

fn point_of<'p>(attempt: &CapacityTry, points: &'p [PointResult]) -> Option<&'p PointResult> {
    points.get((attempt.point as usize).checked_sub(1)?)
}

/// What one client stands for, where nothing converts clients to users.
fn client(suite: &Suite, request: &CapacityRequest) -> Option<String> {
    let is_closed = matches!(suite.load, LoadSpec::Closed { .. });
    suite.origins.client().filter(|_| is_closed && request.users_per_client.is_none())
}

/// Clients are users unless the method takes them for something else; ops are converted by the time
/// between two of one user (the interactive law).
fn users(
    suite: &Suite,
    request: &CapacityRequest,
    value: f64,
    reruns: &[&PointResult],
) -> Option<f64> {
    match suite.load {
        LoadSpec::Closed { .. } => match client(suite, request) {
            Some(_) => None,
            None => Some(value * request.users_per_client.unwrap_or(1.0)),
        },
        LoadSpec::Open { .. } => {
            let think_s = request.think.filter(|_| !suite.load.is_sessions())?.as_secs_f64();
            let means: Vec<f64> = reruns.iter().filter_map(|it| it.response_ns?.mean).collect();
            let mean_s = means.iter().sum::<f64>() / means.len().max(1) as f64 / 1e9;
            Some(value * (think_s + mean_s))
        }
    }
}

/// Tries with a faulty measurement were repeated: they do not limit the answer, unless nothing else
/// did.
fn limit_text(
    sentences: &Sentences,
    tries: &[CapacityTry],
    answer: &Answer,
    (points, unit): (&[PointResult], &str),
) -> Option<String> {
    let high = answer.high.filter(|_| answer.bound == Bound::Exact)?;
    let named =
        Some((sentences.limit)(&limit(tries, answer, points))).filter(|text| !text.is_empty());
    let why = || Some((sentences.why)(beyond(tries, high)?));
    named.or_else(|| Some(format!("{} {unit} was too much: {}", grouped(high), why()?)))
}

/// What limited the lowest load that was too high.
fn limit(tries: &[CapacityTry], answer: &Answer, points: &[PointResult]) -> Limit {
    let Some(high) = answer.high else {
        return Limit::new(LimitFacts::NoneTooMuch, Vec::new());
    };
    beyond(tries, high)
        .and_then(|attempt| point_of(attempt, points))
        .map(|point| point.limit.clone())
        .unwrap_or_default()
}

/// The first try of that load that was beyond a limit; else one that could not be evaluated.
fn beyond(tries: &[CapacityTry], high: f64) -> Option<&CapacityTry> {
    let mut failed = tries.iter().filter(|attempt| attempt.load == high && !attempt.passed);
    let is_evaluated = |attempt: &&CapacityTry| attempt.standing != TryOutcome::NotJudged;
    failed.clone().find(is_evaluated).or_else(|| failed.next())
}

fn load_text(unit: &str, load: f64) -> String {
    if unit == "clients" { clients(load) } else { format!("{} {unit}", grouped(load)) }
}

impl Search {
    /// The outcome of the search, and how it was reached; `why` says what decided a try.
    pub fn how(&self, answer: &Answer, why: fn(&CapacityTry) -> String) -> String {
        let load_text = |load| load_text(self.config.unit, load);
        let undecided = answer.undecided_to.map(|load| {
            format!(
                "up to {} it stayed undecided (--profile standard tells more); ",
                load_text(load)
            )
        });
        let text = format!(
            "{} stayed within the limits in {} of {} re-runs; {} load points were run in all; {}",
            load_text(answer.value),
            answer.passed,
            answer.tries,
            self.tries.len(),
            undecided.unwrap_or_default(),
        );
        match self.lowest_beyond(answer.value) {
            None => text + "no load was too much: the server may carry more",
            Some((load, Ceiling::Generator)) => format!(
                "{text}{} was more than could be measured ({}): the server may carry more",
                load_text(load),
                self.why_not(load, why),
            ),
            Some((load, _)) => {
                format!("{text}{} was too much ({})", load_text(load), self.why_not(load, why))
            }
        }
    }

    /// A step, in words for a person.
    pub fn step_text(&self, step: &Step) -> String {
        let load_text = |load: &f64| load_text(self.config.unit, *load);
        match step {
            Step::Saturate => "all clients at once".to_owned(),
            Step::Probe { load } if self.tries.iter().any(|attempt| attempt.load == *load) => {
                format!("{} once more", load_text(load))
            }
            Step::Probe { load } => load_text(load),
            Step::Verify { load, number } => {
                let of = RERUNS.max(*number);
                format!("re-run {number} of {of} of {}", load_text(load))
            }
            Step::Answer(answer) => format!("capacity {}", load_text(&answer.value)),
            Step::Nothing => "no load within the limits".to_owned(),
        }
    }

    fn why_not(&self, load: f64, why: fn(&CapacityTry) -> String) -> String {
        let levels = self.claims().into_iter().chain(self.probed());
        let mut at = levels.filter(|level| level.load == load);
        at.find_map(|level| level.failed().map(why)).unwrap_or_else(|| "no reason given".to_owned())
    }

    /// Why no load was found; `why` says what decided a try.
    pub fn why_none(&self, why: fn(&CapacityTry) -> String) -> String {
        let claims = self.claims();
        let why = |level: &Tries<'_>, or: &str| level.failed().map_or_else(|| or.to_owned(), why);
        if let Some(claim) = claims.last() {
            return format!(
                "no load passed {RERUNS} re-runs; the lowest of {} claims, {}, did not: {}; the \
                 figure scatters too much for so near a limit: measure longer (--profile \
                 standard), or take a wider limit",
                claims.len(),
                load_text(self.config.unit, claim.load),
                why(claim, "the time was over"),
            );
        }
        let probed = self.probed();
        let Some(lowest) = probed.iter().min_by(|a, b| a.load.total_cmp(&b.load)) else {
            return "no load was tried; run it again with more time".to_owned();
        };
        let load = load_text(self.config.unit, lowest.load);
        let why = why(lowest, "undecided");
        match lowest.state(&self.config) {
            LevelState::Missed(Ceiling::Generator) => format!(
                "nothing could be measured, down to {load}: {why}; mend that, and run it again"
            ),
            _ => format!(
                "no load is within the limits: the lowest that was tried, {load}, was not: {why}; \
                 take wider limits, or give the server more"
            ),
        }
    }
}
