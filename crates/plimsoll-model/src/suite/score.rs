//! `[score]`: one figure for each mix of a ladder, and one for all of them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{SuiteError, nearest};
use super::workload::{TableReader, WEIGHT_MAX};
use super::{Ladder, LoadSpec};
use crate::outcome::OpNames;

/// Lightest weight of a mix, for the same reason. None is zero: a mix that does not count is left
/// out of the ladder.
const MIX_WEIGHT_MIN: f64 = 1e-6;

/// One figure for each mix (load point) of a closed load, and one for the whole ladder, both in
/// transactions per second.
///
/// IBM's Netfinity report on `ServerBench` 4.02 (1999) has the weighted harmonic mean, over the
/// mixes, of the total TPS that all clients obtain in each. Its weights are unpublished; where a
/// suite names none they are equal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// How it is made.
    pub kind: ScoreKind,
    /// Weight of each mix in the overall score, in the ladder's order; above 0, without unit.
    /// Absent: all equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix_weights: Option<Vec<f64>>,
    /// How many transactions an op of that name counts as; from 0, without unit. An op that is not
    /// named counts as 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub op_weights: BTreeMap<String, f64>,
}

/// How a score is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ScoreKind {
    /// Of a mix: the total of its clients' TPS. Of the ladder: the weighted harmonic mean of the
    /// mixes.
    #[serde(rename = "total")]
    Total,
    /// Of a mix: the harmonic mean of the clients' TPS times their number, so that a client that
    /// is starved weighs more than one that is served well. Of the ladder: the weighted harmonic
    /// mean of the mixes.
    #[serde(rename = "harmonic-clients")]
    HarmonicClients,
}

impl Score {
    /// Checks that it fits a suite whose load and ladder are known.
    pub(super) fn check(
        &self,
        root: &TableReader<'_>,
        load: &LoadSpec,
        ladder: &Ladder,
    ) -> Result<(), SuiteError> {
        if let LoadSpec::Open { .. } = load {
            return Err(root.error_at("score", "`[score]` needs a closed load").with_help(
                "it is made of what each client gets done, one op after the other; write \
                 load.mode = \"closed\", or leave the table out",
            ));
        }
        let wrong = |key: &str, message: String, help: String| {
            Err(root.error_at(&format!("score.{key}"), message).with_help(help))
        };
        let points = ladder.points_planned();
        if let Some(weights) = &self.mix_weights {
            if weights.len() != points {
                let message = format!("{} weights for {points} mixes", weights.len());
                let help = "write one weight for each load point of the ladder, in its order";
                return wrong("mix_weights", message, help.to_owned());
            }
            let mut weights = weights.iter();
            if let Some(bad) = weights.find(|one| !(MIX_WEIGHT_MIN..=WEIGHT_MAX).contains(*one)) {
                let help = format!("a weight is from {MIX_WEIGHT_MIN} to {WEIGHT_MAX}");
                return wrong("mix_weights", format!("a mix cannot weigh {bad}"), help);
            }
        }
        let mut weights = self.op_weights.iter();
        if let Some((name, bad)) = weights.find(|(_, one)| !(0.0..=WEIGHT_MAX).contains(*one)) {
            let help = format!("a weight is from 0 to {WEIGHT_MAX}");
            return wrong("op_weights", format!("op \"{name}\" cannot weigh {bad}"), help);
        }
        Ok(())
    }

    /// Transactions an op of that name counts as.
    pub fn op_weight(&self, name: &str) -> f64 {
        self.op_weights.get(name).copied().unwrap_or(1.0)
    }

    /// Weight of the mix at this index of the ladder, from 0.
    pub fn mix_weight(&self, index: usize) -> f64 {
        let weights = self.mix_weights.as_deref();
        weights.and_then(|weights| weights.get(index).copied()).unwrap_or(1.0)
    }

    /// Why the weights do not fit a workload with these ops, and what to do.
    pub fn refuse_ops(&self, ops: &OpNames) -> Result<(), String> {
        let names = || ops.0.iter().map(String::as_str);
        if let Some(word) = self.op_weights.keys().find(|word| !ops.0.contains(word)) {
            let help = match nearest(word, names()) {
                Some(name) => format!("did you mean \"{name}\"?"),
                None => format!("its ops are: {}", ops.0.join(", ")),
            };
            return Err(format!(
                "score.op_weights names \"{word}\", which is no op of this suite; {help}"
            ));
        }
        if names().all(|name| self.op_weight(name) <= 0.0) {
            return Err(
                "score.op_weights gives every op weight 0; give one a weight above 0".to_owned()
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Override, Suite};
    use super::*;

    const MIXES: &str = "format = 1\nname = \"mixes\"\ntitle = \"t\"\nprotocol = \"echo\"\n\
        [load]\nmode = \"closed\"\n[ladder]\nkind = \"points\"\npoints = [1, 4, 8]\n\
        [workload]\n[score]\nkind = \"harmonic-clients\"\n";

    fn parse(text: &str, set: &[&str]) -> Result<Suite, SuiteError> {
        let set: Vec<Override> = set.iter().filter_map(|text| Override::parse(text)).collect();
        Suite::parse("mixes.toml", text, &set, &|_, _| Ok(toml::Table::new()))
    }

    fn refusal(text: &str, set: &[&str]) -> String {
        let error = parse(text, set).expect_err("the suite is wrong");
        format!("{error} | {}", error.help.as_deref().unwrap_or_default())
    }

    #[test]
    fn a_score_reads_back_as_the_same_with_weights_and_without() {
        let plain = parse(MIXES, &[]).unwrap();
        let score = plain.score.as_ref().unwrap();
        assert_eq!((score.op_weight("read"), score.mix_weight(2)), (1.0, 1.0));
        assert_eq!(parse(&plain.to_toml(), &[]).unwrap(), plain);
        let weights = "mix_weights = [1, 2, 3.5]\nop_weights = { read = 2, write = 0 }\n";
        let weighted = parse(&format!("{MIXES}{weights}"), &[]).unwrap();
        let score = weighted.score.as_ref().unwrap();
        assert_eq!((score.op_weight("read"), score.op_weight("write")), (2.0, 0.0));
        assert_eq!((score.op_weight("append"), score.mix_weight(2)), (1.0, 3.5));
        assert_eq!(parse(&weighted.to_toml(), &[]).unwrap(), weighted);
    }

    #[test]
    fn a_suite_without_a_score_says_nothing_of_it() {
        let text = MIXES.replace("[score]\nkind = \"harmonic-clients\"\n", "");
        let suite = parse(&text, &[]).unwrap();
        assert_eq!(suite.score, None);
        assert!(!suite.to_toml().contains("score"), "{}", suite.to_toml());
    }

    #[test]
    fn a_score_of_an_open_load_is_refused_with_its_line() {
        let open = MIXES.replace("closed", "open");
        let printed = refusal(&open, &[]);
        assert!(printed.starts_with("mixes.toml:11: `[score]` needs a closed load"), "{printed}");
    }

    #[test]
    fn wrong_weights_say_what_is_expected() {
        let with = |extra: &str| refusal(&format!("{MIXES}{extra}\n"), &[]);
        assert!(with("mix_weights = [1, 2]").contains("2 weights for 3 mixes"));
        assert!(with("mix_weights = [1, 0, 2]").contains("a mix cannot weigh 0"));
        assert!(with("op_weights = { read = -1 }").contains("op \"read\" cannot weigh -1"));
        assert!(with("op_weights = { read = \"x\" }").contains("not a number"));
        assert!(with("op_wieghts = {}").contains("did you mean `op_weights`?"));
        let unknown = refusal(&MIXES.replace("harmonic-clients", "harmonic"), &[]);
        assert!(unknown.contains("did you mean \"harmonic-clients\"?"), "{unknown}");
    }

    #[test]
    fn a_weight_may_come_from_the_command_line() {
        let weights = format!("{MIXES}op_weights = {{ read = 2 }}\n");
        let suite = parse(&weights, &["score.op_weights.read=3", "score.op_weights.a/b=4"]);
        let score = suite.unwrap().score.unwrap();
        assert_eq!((score.op_weight("read"), score.op_weight("a/b")), (3.0, 4.0));
        let wrong = refusal(MIXES, &["score.op_weights.read=much"]);
        assert!(wrong.starts_with("--set score.op_weights.read: "), "{wrong}");
    }

    #[test]
    fn weights_of_ops_that_are_not_there_are_refused_when_the_ops_are_known() {
        let score = |text: &str| parse(&format!("{MIXES}{text}"), &[]).unwrap().score.unwrap();
        let ops = OpNames(vec!["read".to_owned(), "write".to_owned()]);
        assert_eq!(score("op_weights = { write = 2 }").refuse_ops(&ops), Ok(()));
        let printed = score("op_weights = { raed = 2 }").refuse_ops(&ops).unwrap_err();
        assert!(
            printed.contains("\"raed\"") && printed.contains("did you mean \"read\"?"),
            "{printed}"
        );
        let printed = score("op_weights = { read = 0, write = 0 }").refuse_ops(&ops).unwrap_err();
        assert!(printed.contains("every op weight 0"), "{printed}");
    }
}
