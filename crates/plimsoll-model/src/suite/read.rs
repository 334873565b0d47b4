//! From TOML text to a [`Suite`]: defaults filled in, every rule checked, every mistake placed.

use schemars::JsonSchema;
use serde::Deserialize;

use super::document::{Document, Override, SuiteError};
use super::file::SuiteFile;
use super::ladder::LadderChange;
use super::workload::{TableReader, Workload};
use super::{SUITE_FORMAT, Suite};
use crate::goodput::GoodLimits;
use crate::units::Nanos;

/// Values of the command line that replace those of a suite file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Changes<'a> {
    /// Values of `--set`, and of flags that have a key.
    pub values: &'a [Override],
    /// The ladder.
    pub ladder: Option<&'a LadderChange>,
    /// Dotted paths of keys that are read as if they were not there.
    pub without: &'a [String],
}

impl<'a, V: AsRef<[Override]> + ?Sized> From<&'a V> for Changes<'a> {
    fn from(values: &'a V) -> Self {
        Self { values: values.as_ref(), ..Self::default() }
    }
}

/// Looked at before anything else: another version may have other keys.
#[derive(Deserialize, JsonSchema)]
struct Format {
    format: u32,
}

impl Suite {
    /// Reads a suite file. `file` names it in messages; `changes` come before its values.
    /// `read_workload` reads the `[workload]` of the protocol it is given the name of.
    pub fn parse<'a, W: Into<Workload>>(
        file: &str,
        text: &str,
        changes: impl Into<Changes<'a>>,
        read_workload: &dyn Fn(&str, &TableReader<'_>) -> Result<W, SuiteError>,
    ) -> Result<Self, SuiteError> {
        let Changes { values, ladder: change, without } = changes.into();
        let mut document = Document::new(file, text, values)?;
        without.iter().for_each(|path| document.leave_out(path));
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
        let mut ladder = file.ladder.finish(&root.table("ladder"), &load)?;
        let check_score = |ladder: &_| match &file.score {
            Some(score) => score.check(&root, &load, ladder),
            None => Ok(()),
        };
        check_score(&ladder)?;
        if let Some(change) = change {
            let changed = change.apply_to(ladder, &load);
            let checked = changed.and_then(|ladder| check_score(&ladder).map(|()| ladder));
            ladder = checked.map_err(|error| error.of_flag(change.flag()))?;
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
            goodput: file.goodput.filter(|limits| *limits != GoodLimits::default()),
            endpoints: file.endpoints,
            profiles: file.profiles.finish(),
            workload: read_workload(&file.protocol, &root.table("workload"))?.into(),
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
        let limits = self.goodput.unwrap_or_default();
        let good = [
            ("goodput.first_output", limits.first_output),
            ("goodput.tpot", limits.tpot),
            ("goodput.response", limits.response),
        ];
        let good = good.iter().filter_map(|(key, limit)| Some((*key, (*limit)?)));
        let mut all = positive.into_iter().chain(good);
        match all.find(|(_, span)| *span == Nanos::ZERO) {
            None => Ok(()),
            Some((key, _)) => Err(root
                .error_at(key, format!("`{key}` is zero"))
                .with_help("write a span of time above zero, like \"30s\"")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::super::{Ladder, LoadSpec, Metric, OnClientFailure, Origin, Parameters, Peak};
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

    #[derive(Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Echo {
        #[serde(default = "one")]
        #[schemars(range(min = 1, max = 100))]
        size: u32,
    }

    const fn one() -> u32 {
        1
    }

    impl Parameters for Echo {}

    fn read_echo(protocol: &str, table: &TableReader<'_>) -> Result<Echo, SuiteError> {
        assert_eq!(protocol, "echo");
        table.read()
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
        assert_eq!(suite.workload.parameters::<Echo>().size, 10);
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
            let printed = refusal(&SWEEP.replace(from, to));
            assert!(printed.contains(message), "{printed}");
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

    fn with_ladder(text: &str, change: LadderChange) -> Result<Ladder, String> {
        let changes = Changes { ladder: Some(&change), ..Changes::default() };
        let suite = Suite::parse("small.toml", text, changes, &read_echo);
        suite.map(|suite| suite.ladder).map_err(|error| error.to_string())
    }

    #[test]
    fn a_ladder_from_the_command_line_replaces_that_of_the_file() {
        let points = vec![5.0, 7.5];
        let given = with_ladder(SMALL, LadderChange::Points(points.clone()));
        assert_eq!(given, Ok(Ladder::Points { points }));
        let peak = LadderChange::Peak { peak: Peak::At(60.0), steps: None };
        assert_eq!(with_ladder(SMALL, peak), Ok(Ladder::Peak { peak: 60.0, steps: 10 }));
        let steps = with_ladder(SMALL, LadderChange::Steps(3));
        assert_eq!(steps, Ok(Ladder::Auto { steps: 3, headroom: 1.0 }));
        let text = format!("{SMALL}[ladder]\nheadroom = 0.5\n");
        let auto = with_ladder(&text, LadderChange::Peak { peak: Peak::Auto, steps: Some(4) });
        assert_eq!(auto, Ok(Ladder::Auto { steps: 4, headroom: 0.5 }));
        let seconds = with_ladder(SWEEP, LadderChange::Points(vec![0.5]));
        let thinks = vec![Nanos::from_millis(500)];
        assert_eq!(seconds, Ok(Ladder::Think { clients: 974, thinks }));
        let again = with_ladder(SWEEP, LadderChange::Again(vec![974.0]));
        assert_eq!(again, Ok(parse(SWEEP).unwrap().ladder));
    }

    #[test]
    fn a_wrong_ladder_from_the_command_line_names_its_flag() {
        let check = |text: &str, change, expected: &str| {
            let printed = with_ladder(text, change).unwrap_err();
            assert!(printed.starts_with(expected), "{printed}");
        };
        check(SMALL, LadderChange::Points(vec![-5.0]), "--points: load point -5 is not a load");
        check(SMALL, LadderChange::Points(vec![]), "--points: a ladder has 0 load points");
        let peak = || LadderChange::Peak { peak: Peak::At(0.0), steps: None };
        check(SMALL, peak(), "--peak: load point 0");
        check(SWEEP, peak(), "--peak: this suite's ladder is a list of think times");
        check(SWEEP, LadderChange::Points(vec![1e6]), "--points: 1000000 is not a think time");
        check(SWEEP, LadderChange::Steps(3), "--steps: this suite's ladder is");
        let closed = "format = 1\nname = \"c\"\ntitle = \"t\"\nprotocol = \"echo\"\n\
            [load]\nmode = \"closed\"\n[ladder]\npoints = [1, 2]\n\
            [score]\nkind = \"harmonic-clients\"\nmix_weights = [1, 2]\n";
        let auto = LadderChange::Peak { peak: Peak::Auto, steps: None };
        check(closed, auto, "--peak: this suite has a closed load");
        check(closed, LadderChange::Points(vec![1.5]), "--points: load point 1.5");
        check(closed, LadderChange::Points(vec![1.0]), "--points: 2 weights for 1 mixes");
        check(closed, LadderChange::Steps(3), "--steps: this suite's ladder is a list of loads");
    }

    #[test]
    fn a_bare_word_on_the_command_line_is_a_string() {
        let set = Override::parse("workload.connections=per-request").unwrap();
        assert_eq!(set.value.as_str(), Some("per-request"));
        assert_eq!(Override::parse("a=1").unwrap().value.as_integer(), Some(1));
        assert_eq!(Override::parse("no equals sign"), None);
    }
}
