//! From TOML text to a [`Suite`]: defaults filled in, every rule checked, every mistake placed.

use schemars::JsonSchema;
use serde::Deserialize;

use super::document::{Document, Override, SuiteError};
use super::file::{LadderKind, LadderTable, SuiteFile};
use super::reader::TableReader;
use super::{
    CLIENTS_MAX, LADDER_POINTS_MAX, Ladder, LoadSpec, RATE_OPS_PER_S_MAX, SUITE_FORMAT, Suite,
};
use crate::units::{Nanos, SpanText};

/// Reads a protocol's `[workload]` table and answers with every default explicit. The first
/// argument is the protocol's name; an unknown one is the function's error to give.
pub(super) type ReadWorkload<'f> =
    &'f dyn Fn(&str, &TableReader<'_>) -> Result<toml::Table, SuiteError>;

/// Looked at before anything else: another version may have other keys.
#[derive(Deserialize, JsonSchema)]
struct Format {
    format: u32,
}

impl Suite {
    /// Reads a suite file. `file` names it in messages; `overrides` come before its values.
    pub fn parse(
        file: &str,
        text: &str,
        overrides: &[Override],
        read_workload: ReadWorkload<'_>,
    ) -> Result<Self, SuiteError> {
        let document = Document::new(file, text, overrides)?;
        let root = TableReader::root(&document);
        let Format { format } = root.read()?;
        if format != SUITE_FORMAT {
            let message = format!("`format` is {format}; this program reads {SUITE_FORMAT}");
            return Err(root
                .error_at("format", message)
                .with_help("use the version of plimsoll that wrote the file"));
        }
        let file: SuiteFile = root.read()?;
        let load = file.load.finish();
        let ladder = file.ladder.finish(&root.table("ladder"), &load)?;
        if let Some(score) = &file.score {
            score.check(&root, &load, &ladder)?;
        }
        let suite = Self {
            format: SUITE_FORMAT,
            name: file.name,
            title: file.title,
            about: file.about,
            source: file.source,
            op_timeout: file.op_timeout,
            metric: file.metric,
            conditioning: file.conditioning,
            load,
            ladder,
            rules: file.rules,
            score: file.score,
            profiles: file.profiles.finish(),
            workload: read_workload(&file.protocol, &root.table("workload"))?,
            protocol: file.protocol,
            origins: file.origins,
        };
        suite.origins.check(&root.table("origins"))?;
        suite.check_spans(&root)?;
        Ok(suite)
    }

    /// JSON Schema of a suite file, `[workload]` apart.
    pub fn schema() -> schemars::Schema {
        schemars::schema_for!(SuiteFile)
    }

    fn check_spans(&self, root: &TableReader<'_>) -> Result<(), SuiteError> {
        let profiles = &self.profiles;
        let positive = [
            ("op_timeout", self.op_timeout),
            ("rules.send_lag_p99_max", self.rules.send_lag_p99_max),
            ("profiles.full.measure", profiles.full.measure),
            ("profiles.standard.measure", profiles.standard.measure),
            ("profiles.quick.measure", profiles.quick.measure),
            ("profiles.demo.measure", profiles.demo.measure),
        ];
        match positive.iter().find(|(_, span)| *span == Nanos::ZERO) {
            None => Ok(()),
            Some((key, _)) => Err(root
                .error_at(key, format!("`{key}` is zero"))
                .with_help("write a span of time above zero, like \"30s\"")),
        }
    }
}

impl LadderTable {
    fn finish(self, table: &TableReader<'_>, load: &LoadSpec) -> Result<Ladder, SuiteError> {
        let kind = self.kind.unwrap_or(match load {
            LoadSpec::Open { .. } => LadderKind::Auto,
            LoadSpec::Closed { .. } => LadderKind::Points,
        });
        let steps = self.steps.unwrap_or(10);
        match kind {
            LadderKind::Points => {
                let points = self.points.ok_or_else(|| table.missing("points"))?;
                check_length(table, "points", points.len())?;
                points
                    .iter()
                    .try_for_each(|load_point| check_load(table, "points", *load_point, load))?;
                Ok(Ladder::Points { points })
            }
            LadderKind::Peak => {
                let peak = self.peak.ok_or_else(|| table.missing("peak"))?;
                check_load(table, "peak", peak, load)?;
                Ok(Ladder::Peak { peak, steps })
            }
            LadderKind::Auto => Ok(Ladder::Auto { steps, headroom: self.headroom.unwrap_or(1.0) }),
            LadderKind::Think => {
                if let LoadSpec::Open { .. } = load {
                    return Err(table
                        .error_at("kind", "a ladder of think times needs a closed load")
                        .with_help(
                            "clients of an open load do not think; write load.mode = \"closed\"",
                        ));
                }
                let clients = self.clients.ok_or_else(|| table.missing("clients"))?;
                let thinks = self.thinks.ok_or_else(|| table.missing("thinks"))?;
                check_length(table, "thinks", thinks.len())?;
                let thinks = thinks.into_iter().map(|SpanText(think)| think).collect();
                Ok(Ladder::Think { clients, thinks })
            }
        }
    }
}

fn check_length(table: &TableReader<'_>, key: &str, points: usize) -> Result<(), SuiteError> {
    if points > 0 && points <= LADDER_POINTS_MAX {
        return Ok(());
    }
    Err(table
        .error_at(key, format!("a ladder has {points} load points"))
        .with_help(format!("write from 1 to {LADDER_POINTS_MAX}")))
}

fn check_load(
    table: &TableReader<'_>,
    key: &str,
    value: f64,
    load: &LoadSpec,
) -> Result<(), SuiteError> {
    let (good, unit) = match load {
        LoadSpec::Open { .. } => (value > 0.0 && value <= RATE_OPS_PER_S_MAX, "ops/s above 0"),
        LoadSpec::Closed { .. } => (
            value.fract() == 0.0 && value >= 1.0 && value <= f64::from(CLIENTS_MAX),
            "clients, a whole number from 1 up",
        ),
    };
    if good {
        return Ok(());
    }
    Err(table
        .error_at(key, format!("load point {value} is not a load"))
        .with_help(format!("a load point of this suite is a number of {unit}")))
}

#[cfg(test)]
mod tests {
    use super::super::{Metric, OnClientFailure, Origin};
    use super::*;

    const SMALL: &str = r#"
format = 1
name = "small"
title = "A small suite"
protocol = "echo"

[load]
mode = "open"

[workload]
size = 10
"#;

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Echo {
        #[serde(default = "one")]
        #[schemars(range(min = 1, max = 100))]
        size: u32,
    }

    const fn one() -> u32 {
        1
    }

    fn read_echo(protocol: &str, table: &TableReader<'_>) -> Result<toml::Table, SuiteError> {
        assert_eq!(protocol, "echo");
        let Echo { size } = table.read()?;
        Ok(toml::Table::from_iter([("size".to_owned(), toml::Value::Integer(size.into()))]))
    }

    fn parse(text: &str) -> Result<Suite, SuiteError> {
        Suite::parse("small.toml", text, &[], &read_echo)
    }

    fn refusal(text: &str) -> String {
        let error = parse(text).expect_err("the suite is wrong");
        format!("{error} | {}", error.help.as_deref().unwrap_or_default())
    }

    #[test]
    fn every_default_is_explicit_and_reads_back_as_the_same_suite() {
        let suite = parse(SMALL).unwrap();
        assert_eq!(suite.ladder, Ladder::Auto { steps: 10, headroom: 1.0 });
        assert_eq!(suite.workload["size"].as_integer(), Some(10));
        let text = suite.to_toml();
        assert!(text.contains("rate_tolerance_ratio = 0.05"), "{text}");
        assert_eq!(parse(&text).unwrap(), suite);
    }

    #[test]
    fn a_wrong_key_has_its_line_and_a_suggestion() {
        let text = SMALL.replace("mode = \"open\"", "mode = \"open\"\narivals = \"shared\"");
        assert_eq!(
            refusal(&text),
            "small.toml:9: unknown key `load.arivals` | did you mean `arrivals`?"
        );
    }

    const SWEEP: &str = "format = 1\nname = \"sweep\"\ntitle = \"t\"\nprotocol = \"echo\"\n\
        metric = \"bytes\"\n[load]\nmode = \"closed\"\non_client_failure = \"abort\"\n\
        [ladder]\nkind = \"think\"\nclients = 974\nthinks = [\"15s\", \"2500ms\"]\n\
        [profiles.full]\nramp_down = \"30s\"\n";

    #[test]
    fn a_ladder_of_think_times_and_what_goes_with_it_read_back_as_the_same() {
        let suite = parse(SWEEP).unwrap();
        let thinks = vec![Nanos::from_secs(15), Nanos::from_millis(2_500)];
        assert_eq!(suite.ladder, Ladder::Think { clients: 974, thinks });
        assert_eq!(suite.metric, Metric::Bytes);
        assert_eq!(suite.load.on_client_failure(), OnClientFailure::Abort);
        assert_eq!(suite.profiles.full.ramp_down, Nanos::from_secs(30));
        assert_eq!(suite.profiles.quick.ramp_down, Nanos::ZERO);
        assert_eq!(parse(&suite.to_toml()).unwrap(), suite);
    }

    #[test]
    fn a_ladder_of_think_times_needs_clients_that_think() {
        let check = |from: &str, to: &str, message: &str| {
            let said = refusal(&SWEEP.replace(from, to));
            assert!(said.contains(message), "{said}");
        };
        check("\"closed\"", "\"open\"", "needs a closed load");
        check("clients = 974", "clients = 0", "clients");
        check("clients = 974", "", "clients");
        check("\"15s\", \"2500ms\"", "", "0 load points");
        check("\"15s\"", "15", "not a span of time");
        check("\"bytes\"", "\"bits\"", "bits");
    }

    #[test]
    fn origins_read_back_and_every_parameter_has_one() {
        let with = |extra: &str| format!("{SMALL}\n{extra}");
        let text = with(
            "[origins.source]\n\"load.gaps\" = \"page 3\"\n\"workload\" = \"Table 2\"\n\
             [origins.ours]\n\"workload.size\" = \"left open\"\n\
             [origins.method]\n\"load.gaps\" = \"even\"\n",
        );
        let suite = parse(&text).unwrap();
        assert_eq!(suite.origins.find("load.gaps"), (Origin::Source, "page 3"));
        assert_eq!(suite.origins.find("workload.size"), (Origin::Ours, "left open"));
        assert_eq!(suite.origins.find("workload.other"), (Origin::Source, "Table 2"));
        assert_eq!(suite.origins.find("rules.errors_max_ratio"), (Origin::Yours, ""));
        assert_eq!(parse(&suite.to_toml()).unwrap(), suite);
        let twice = with("[origins.source]\n\"load\" = \"a\"\n[origins.ours]\n\"load\" = \"b\"");
        assert!(
            refusal(&twice).contains("\"load\" is in origins.source too"),
            "{}",
            refusal(&twice)
        );
        let unknown = with("[origins.source]\n\"laod.gaps\" = \"a\"");
        assert!(refusal(&unknown).contains("no parameter"), "{}", refusal(&unknown));
    }

    #[test]
    fn wrong_values_say_what_is_expected() {
        let with = |extra: &str| refusal(&format!("{SMALL}\n{extra}"));
        assert!(with("[ladder]\nkind = \"points\"\npoints = [-5]").contains("load point -5"));
        assert!(with("[ladder]\nkind = \"peak\"\npeak = -100").contains("-100"));
        assert!(with("[rules]\nerrors_max_ratio = 2").contains("from 0 to 1"));
        assert!(with("[profiles.full]\nmeasure = \"0s\"").contains("is zero"));
        assert!(with("[profiles.full]\nmeasure = 5").contains("a span of time"));
        assert!(refusal("format = 9").contains("this program reads 1"));
        assert!(refusal("format = ").starts_with("small.toml:1: "));
    }

    #[test]
    fn a_value_from_the_command_line_comes_before_the_file() {
        let set = [Override::parse("load.clients=7").unwrap()];
        let suite = Suite::parse("small.toml", SMALL, &set, &read_echo).unwrap();
        assert!(matches!(suite.load, LoadSpec::Open { clients: 7, .. }));
        let wrong = [Override::parse("load.cleints=7").unwrap()];
        let error = Suite::parse("small.toml", SMALL, &wrong, &read_echo).unwrap_err();
        assert_eq!(error.to_string(), "--set load.cleints: unknown key `load.cleints`");
    }

    #[test]
    fn a_bare_word_on_the_command_line_is_a_string() {
        let set = Override::parse("workload.connections=per-request").unwrap();
        assert_eq!(set.value.as_str(), Some("per-request"));
        assert_eq!(Override::parse("a=1").unwrap().value.as_integer(), Some(1));
        assert_eq!(Override::parse("no equals sign"), None);
    }
}
