//! The score of a mix and of a ladder of mixes.
//!
//! IBM's Netfinity report on ServerBench 4.02 (1999): the overall score is a weighted harmonic
//! mean, over the mixes, of the total TPS that all clients obtain in each. The report does not say
//! how a total is computed from its clients. The sum is the plain reading ([`ScoreKind::Total`]);
//! an option is the harmonic mean of the clients' TPS times their number
//! ([`ScoreKind::HarmonicClients`]).

use plimsoll_model::event::PointRecord;
use plimsoll_model::finding::Rule;
use plimsoll_model::outcome::OpNames;
use plimsoll_model::result::PointResult;
use plimsoll_model::suite::{Score, ScoreKind, Suite};

/// The score of one mix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixScore {
    /// In transactions per second.
    pub value: f64,
    /// Clients without any transaction that counts, where one of them makes the score 0: with the
    /// harmonic mean the other clients' transactions cannot make up for it.
    pub idle_clients: u32,
}

/// The score of a mix from its clients' TPS; `None` without clients.
pub fn mix_score(kind: ScoreKind, clients_tps: &[f64]) -> Option<MixScore> {
    match (kind, clients_tps) {
        (_, []) => None,
        (ScoreKind::Total, _) => {
            Some(MixScore { value: clients_tps.iter().sum(), idle_clients: 0 })
        }
        (ScoreKind::HarmonicClients, _) => Some(harmonic(clients_tps)),
    }
}

/// Harmonic mean of the clients' TPS times the number of clients, so that a starved client weighs
/// more than a well served one.
fn harmonic(clients_tps: &[f64]) -> MixScore {
    let n = clients_tps.len() as f64;
    let idle_clients = clients_tps.iter().filter(|tps| **tps <= 0.0).count() as u32;
    let value = match idle_clients {
        0 => n * n / clients_tps.iter().map(|tps| tps.recip()).sum::<f64>(),
        _ => 0.0,
    };
    MixScore { value, idle_clients }
}

/// Weighted harmonic mean of the scores of mixes, given as (score, weight above 0); `None` without
/// mixes. A mix of score 0 makes it 0.
pub fn overall_score(mixes: &[(f64, f64)]) -> Option<f64> {
    if mixes.is_empty() {
        return None;
    }
    if mixes.iter().any(|(score, _)| *score <= 0.0) {
        return Some(0.0);
    }
    let weights: f64 = mixes.iter().map(|(_, weight)| weight).sum();
    Some(weights / mixes.iter().map(|(score, weight)| weight / score).sum::<f64>())
}

/// The mix's score from the counts in its record; `None` where clients were not counted.
pub(crate) fn score_of_point(
    score: &Score,
    names: &OpNames,
    record: &PointRecord,
) -> Option<MixScore> {
    let counted = &record.totals.per_client;
    let seconds = record.measured_ns.as_secs_f64();
    if counted.is_empty() || seconds <= 0.0 {
        return None;
    }
    let mut tps: Vec<f64> = counted
        .iter()
        .map(|client| {
            let weighted = |(name, done): (&String, &u64)| score.op_weight(name) * *done as f64;
            names.0.iter().zip(&client.done).map(weighted).sum::<f64>() / seconds
        })
        .collect();
    // Clients of a worker that did not report did nothing that could be counted.
    let clients = record.load.clients() as usize;
    tps.resize(clients.max(tps.len()), 0.0);
    mix_score(score.kind, &tps)
}

/// The warning of a mix whose score is 0.
pub(crate) fn idle_clients(mix: &MixScore, clients: u32) -> Option<Rule> {
    let idle_clients = mix.idle_clients;
    (idle_clients > 0).then_some(Rule::Score { idle_clients, clients })
}

/// The overall score of a run's ladder, and how it was computed or why there is none.
pub(crate) fn score_of_run(
    suite: &Suite,
    planned: usize,
    points: &[PointResult],
) -> (Option<f64>, Option<String>) {
    let Some(score) = &suite.score else { return (None, None) };
    let none = |why: String| (None, Some(format!("none: {why}")));
    if points.len() < planned {
        return none(format!("{} of {planned} mixes were measured", points.len()));
    }
    let wrong: Vec<String> = points
        .iter()
        .filter(|point| !point.counts() || point.score.is_none())
        .map(|point| point.position.to_string())
        .collect();
    match wrong.as_slice() {
        [] => {}
        [one] => return none(format!("mix {one} does not count, and a score needs every mix")),
        many => {
            let many = many.join(", ");
            return none(format!("mixes {many} do not count, and a score needs every mix"));
        }
    }
    let mixes: Vec<(f64, f64)> = points
        .iter()
        .enumerate()
        .filter_map(|(index, point)| Some((point.score?, score.mix_weight(index))))
        .collect();
    let weighted = score.mix_weights.is_some() || !score.op_weights.is_empty();
    let weights = if weighted { "" } else { ", all weights equal" };
    let of = match score.kind {
        ScoreKind::Total => "the clients' total",
        ScoreKind::HarmonicClients => "the clients' harmonic mean times their number",
    };
    let how = match mixes.len() {
        1 => format!("{of} in the one mix{weights}"),
        n => format!("weighted harmonic mean over {n} mixes of {of}{weights}"),
    };
    (overall_score(&mixes), Some(how))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::analyse;
    use crate::testing::{PointBuilder, RunBuilder};
    use plimsoll_model::outcome::ClientCounts;
    use plimsoll_report::sentences::finding;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * b.abs().max(1.0)
    }

    #[test]
    fn the_score_of_a_mix_is_the_harmonic_mean_times_the_clients() {
        let value = |tps: &[f64]| mix_score(ScoreKind::HarmonicClients, tps).unwrap().value;
        assert!(close(value(&[7.0]), 7.0));
        assert!(close(value(&[10.0; 4]), 40.0), "equal clients: their sum");
        // 1/10 + 1/40 = 1/8; two clients: 2 · 2 · 8.
        assert!(close(value(&[10.0, 40.0]), 32.0), "{}", value(&[10.0, 40.0]));
        // 1/2 + 1/3 + 1/6 = 1; three clients: 3 · 3 · 1.
        assert!(close(value(&[2.0, 3.0, 6.0]), 9.0));
        assert_eq!(mix_score(ScoreKind::HarmonicClients, &[]), None);
    }

    #[test]
    fn a_client_without_any_transaction_makes_its_mix_0_by_the_harmonic_mean() {
        let mix = |kind| mix_score(kind, &[5.0, 0.0, 5.0, 0.0]).unwrap();
        let nothing = MixScore { value: 0.0, idle_clients: 2 };
        assert_eq!(mix(ScoreKind::HarmonicClients), nothing);
        // Of a total it is one part.
        assert_eq!(mix(ScoreKind::Total), MixScore { value: 10.0, idle_clients: 0 });
    }

    #[test]
    fn the_overall_score_is_the_weighted_harmonic_mean_of_the_mixes() {
        assert_eq!(overall_score(&[]), None);
        // 2 / (1/30 + 1/60) = 40.
        assert!(close(overall_score(&[(30.0, 1.0), (60.0, 1.0)]).unwrap(), 40.0));
        // 3 / (1/30 + 2/60) = 45.
        assert!(close(overall_score(&[(30.0, 1.0), (60.0, 2.0)]).unwrap(), 45.0));
        assert_eq!(overall_score(&[(30.0, 1.0), (0.0, 1.0)]), Some(0.0));
    }

    /// Clients of each mix: (gets, puts) done in the window of 30 s.
    fn scored(mixes: &[&[(u64, u64)]]) -> RunBuilder {
        let points = mixes.iter().map(|clients| {
            let ops: u64 = clients.iter().map(|(gets, puts)| gets + puts).sum();
            PointBuilder::closed(clients.len() as u32).achieved(ops / 30)
        });
        let mut run = RunBuilder::from_points(points.collect::<Vec<_>>());
        run.started_mut().op_names.0 = vec!["get".to_owned(), "put".to_owned()];
        run.suite.score = Some(Score {
            kind: ScoreKind::HarmonicClients,
            mix_weights: None,
            op_weights: BTreeMap::new(),
        });
        for (index, clients) in mixes.iter().enumerate() {
            let did = |(client, (gets, puts)): (u32, &(u64, u64))| ClientCounts {
                client,
                done: vec![*gets, *puts],
            };
            run.finished_mut(index).totals.per_client = (0..).zip(*clients).map(did).collect();
        }
        run
    }

    #[test]
    fn a_run_has_the_score_of_each_mix_and_of_all() {
        let result = analyse(&scored(&[&[(3_000, 0)], &[(200, 100), (1_200, 0)]]).raw());
        assert!(result.verdict.valid, "{:?}", result.verdict);
        // 100 TPS; then 10 and 40 TPS, as above.
        let scores: Vec<f64> = result.points.iter().filter_map(|p| p.score).collect();
        assert!(close(scores[0], 100.0) && close(scores[1], 32.0), "{scores:?}");
        // 2 / (1/100 + 1/32) = 48.48…
        assert!(close(result.summary.score.unwrap(), 6_400.0 / 132.0));
        let ends = result.summary.score_interval.unwrap();
        for (end, expected) in ends.into_iter().enumerate() {
            let scaled = |point: &PointResult| {
                let bounds = point.achieved_interval_ops_per_s.unwrap();
                (point.score.unwrap() * bounds[end] / point.achieved_ops_per_s.unwrap(), 1.0)
            };
            let mixes: Vec<_> = result.points.iter().map(scaled).collect();
            assert!(close(overall_score(&mixes).unwrap(), expected), "{ends:?}");
        }
        assert!(ends[0] <= 6_400.0 / 132.0 && ends[1] > 48.5, "{ends:?}");
        let note = result.summary.score_note.unwrap();
        let how = "weighted harmonic mean over 2 mixes of the clients' harmonic mean times their \
                   number, all weights equal";
        assert_eq!(note, how);
    }

    #[test]
    fn the_score_of_the_source_is_of_the_total_of_all_clients() {
        let mut run = scored(&[&[(3_000, 0)], &[(200, 100), (1_200, 0)]]);
        run.suite.score.as_mut().unwrap().kind = ScoreKind::Total;
        let summary = analyse(&run.raw()).summary;
        // 100 TPS; then 10 + 40 TPS; 2 / (1/100 + 1/50) = 66.67.
        assert!(close(summary.score.unwrap(), 200.0 / 3.0), "{:?}", summary.score);
        let how = "weighted harmonic mean over 2 mixes of the clients' total, all weights equal";
        assert_eq!(summary.score_note.as_deref(), Some(how));
    }

    #[test]
    fn ops_and_mixes_count_by_their_weights() {
        let mut run = scored(&[&[(3_000, 0)], &[(0, 150), (1_200, 0)]]);
        let score = run.suite.score.as_mut().unwrap();
        score.op_weights = BTreeMap::from([("put".to_owned(), 2.0)]);
        score.mix_weights = Some(vec![1.0, 3.0]);
        let result = analyse(&run.raw());
        assert!(close(result.points[1].score.unwrap(), 32.0), "a put counts twice: 10 and 40 TPS");
        // 4 / (1/100 + 3/32).
        assert!(close(result.summary.score.unwrap(), 4.0 / (0.01 + 3.0 / 32.0)));
        let note = result.summary.score_note.unwrap();
        assert!(note.ends_with("times their number"), "equal weights are not said: {note}");
    }

    #[test]
    fn a_client_that_did_nothing_is_warned_of_and_the_score_is_0() {
        let mut run = scored(&[&[(3_000, 0)], &[(300, 0), (0, 0)]]);
        let result = analyse(&run.raw());
        assert_eq!((result.points[1].score, result.summary.score), (Some(0.0), Some(0.0)));
        let warning = result.points[1].warnings.iter().find(|w| w.rule.name() == "score").unwrap();
        assert!(
            finding::text(&warning.rule)
                .starts_with("1 of 2 clients finished no transaction that counts"),
            "{warning:?}"
        );
        assert!(result.verdict.warnings.contains(warning));
        // A client whose worker never reported is one of them.
        run.finished_mut(1).totals.per_client.pop();
        assert_eq!(analyse(&run.raw()).points[1].score, Some(0.0));
    }

    #[test]
    fn a_ladder_with_a_mix_that_is_invalid_or_missing_has_no_score() {
        let mixes: [&[(u64, u64)]; 2] = [&[(3_000, 0)], &[(200, 100), (1_200, 0)]];
        let none = |run: &RunBuilder| {
            let summary = analyse(&run.raw()).summary;
            assert_eq!(summary.score, None);
            summary.score_note.unwrap()
        };
        let mut invalid = scored(&mixes);
        invalid.finished_mut(0).panic = Some("index out of bounds".to_owned());
        let why = "none: mix 1 does not count, and a score needs every mix";
        assert_eq!(none(&invalid), why);
        let mut uncounted = scored(&mixes);
        uncounted.finished_mut(0).totals.per_client.clear();
        assert_eq!(none(&uncounted), why);
        let mut missing = scored(&mixes);
        let last_point = missing.journal.len() - 2;
        missing.journal.remove(last_point);
        assert_eq!(none(&missing), "none: 1 of 2 mixes were measured");
    }

    #[test]
    fn a_suite_without_a_score_says_nothing_of_it() {
        let result = analyse(&RunBuilder::open(&[500.0]).raw());
        let json = serde_json::to_string(&result).unwrap();
        assert_eq!(json.matches("score").count(), 1, "{json}");
        assert!(json.contains("\"score\":null"), "as ever: {json}");
    }
}
