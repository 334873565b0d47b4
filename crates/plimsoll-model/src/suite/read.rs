//! From TOML text to a [`Suite`]: defaults filled in, every rule checked, every mistake placed.

use toml::de::DeTable;

use super::reader::{Override, Source, SuiteError, TableReader};
use super::{
    Arrivals, CLIENTS_MAX, Gaps, LADDER_POINTS_MAX, Ladder, LoadSpec, Metric, OnClientFailure,
    Profile, Profiles, RATE_OPS_PER_S_MAX, Rules, SUITE_FORMAT, Score, Suite, Think,
    ThinkDistribution,
};
use crate::units::Nanos;

/// Reads a protocol's `[workload]` table and answers with every default explicit. The first
/// argument is the protocol's name; an unknown one is the function's error to give.
pub(super) type ReadWorkload<'f> =
    &'f dyn Fn(&str, &TableReader<'_>) -> Result<toml::Table, SuiteError>;

impl Suite {
    /// Reads a suite file. `file` names it in messages; `overrides` come before its values.
    pub fn parse(
        file: &str,
        text: &str,
        overrides: &[Override],
        read_workload: ReadWorkload<'_>,
    ) -> Result<Self, SuiteError> {
        let source = Source::new(file, text, overrides);
        let table =
            DeTable::parse(text).map_err(|e| source.error(e.span(), e.message().to_owned()))?;
        let root = TableReader::root(&source, &table);
        let suite = read_root(&root, read_workload)?;
        root.finish()?;
        Ok(suite)
    }
}

fn read_root(root: &TableReader<'_>, read_workload: ReadWorkload<'_>) -> Result<Suite, SuiteError> {
    let format =
        root.count("format", 1..=u64::from(u32::MAX))?.ok_or_else(|| root.missing("format"))?;
    if format != u64::from(SUITE_FORMAT) {
        return Err(root
            .error_at("format", format!("`format` is {format}; this program reads {SUITE_FORMAT}"))
            .with_help("use the version of plimsoll that wrote the file"));
    }
    let protocol = root.required_text("protocol")?;
    let load = read_load(&root.table("load")?)?;
    let workload = root.table("workload")?;
    let explicit = read_workload(&protocol, &workload)?;
    workload.finish()?;
    let mut suite = Suite {
        format: SUITE_FORMAT,
        name: root.required_text("name")?,
        title: root.required_text("title")?,
        about: root.text("about")?.unwrap_or_default(),
        source: root.text("source")?.unwrap_or_default(),
        op_timeout: positive_span(root, "op_timeout", Nanos::from_secs(10))?,
        metric: read_metric(root)?,
        ladder: read_ladder(&root.table("ladder")?, &load)?,
        rules: read_rules(&root.table("rules")?)?,
        profiles: read_profiles(&root.table("profiles")?)?,
        load,
        protocol,
        workload: explicit,
        score: None,
    };
    suite.score = Score::read(root, &suite)?;
    Ok(suite)
}

fn read_metric(root: &TableReader<'_>) -> Result<Metric, SuiteError> {
    let metrics = [("ops", Metric::Ops), ("bytes", Metric::Bytes), ("logons", Metric::Logons)];
    Ok(root.choice("metric", &metrics)?.unwrap_or_default())
}

fn read_load(load: &TableReader<'_>) -> Result<LoadSpec, SuiteError> {
    #[derive(Clone, Copy)]
    enum Mode {
        Open,
        Closed,
    }
    // A load may be changed on the command line; what only the other mode uses may stay.
    let keys = [
        "arrivals",
        "gaps",
        "clients",
        "backlog_ops_max",
        "think",
        "start_delay",
        "on_client_failure",
    ];
    for key in keys {
        load.has(key);
    }
    let mode = load
        .choice("mode", &[("open", Mode::Open), ("closed", Mode::Closed)])?
        .ok_or_else(|| load.missing("mode").with_help("write \"open\" or \"closed\""))?;
    let spec = match mode {
        Mode::Open => LoadSpec::Open {
            arrivals: load
                .choice(
                    "arrivals",
                    &[("per_client", Arrivals::PerClient), ("shared", Arrivals::Shared)],
                )?
                .unwrap_or(Arrivals::PerClient),
            gaps: load
                .choice("gaps", &[("exponential", Gaps::Exponential), ("uniform", Gaps::Uniform)])?
                .unwrap_or(Gaps::Exponential),
            clients: load.count("clients", 1..=CLIENTS_MAX)?.unwrap_or(64) as u32,
            backlog_ops_max: load.count("backlog_ops_max", 1..=1 << 24)?.unwrap_or(65_536) as u32,
        },
        Mode::Closed => LoadSpec::Closed {
            think: read_think(&load.table("think")?)?,
            start_delay: load.span("start_delay")?.unwrap_or_default(),
            on_client_failure: load
                .choice(
                    "on_client_failure",
                    &[("drop", OnClientFailure::Drop), ("abort", OnClientFailure::Abort)],
                )?
                .unwrap_or_default(),
        },
    };
    load.finish()?;
    Ok(spec)
}

fn read_think(think: &TableReader<'_>) -> Result<Think, SuiteError> {
    let value = Think {
        mean: think.span("mean")?.unwrap_or_default(),
        distribution: think
            .choice(
                "distribution",
                &[
                    ("constant", ThinkDistribution::Constant),
                    ("uniform", ThinkDistribution::Uniform),
                    ("exponential", ThinkDistribution::Exponential),
                ],
            )?
            .unwrap_or(ThinkDistribution::Constant),
    };
    think.finish()?;
    Ok(value)
}

fn read_ladder(ladder: &TableReader<'_>, load: &LoadSpec) -> Result<Ladder, SuiteError> {
    #[derive(Clone, Copy)]
    enum Kind {
        Points,
        Peak,
        Auto,
        Think,
    }
    let kinds = [
        ("points", Kind::Points),
        ("peak", Kind::Peak),
        ("auto", Kind::Auto),
        ("think", Kind::Think),
    ];
    // A ladder may be changed on the command line; what only the other kinds use may stay.
    for key in ["points", "peak", "steps", "headroom", "clients", "thinks"] {
        ladder.has(key);
    }
    let kind = ladder.choice("kind", &kinds)?.unwrap_or(match load {
        LoadSpec::Open { .. } => Kind::Auto,
        LoadSpec::Closed { .. } => Kind::Points,
    });
    let steps = || Ok(ladder.count("steps", 1..=LADDER_POINTS_MAX as u64)?.unwrap_or(10) as u32);
    let value = match kind {
        Kind::Points => {
            let points = ladder.numbers("points")?.ok_or_else(|| ladder.missing("points"))?;
            check_points(ladder, &points, load)?;
            Ladder::Points { points }
        }
        Kind::Peak => {
            let peak = ladder.number("peak")?.ok_or_else(|| ladder.missing("peak"))?;
            check_points(ladder, &[peak], load).map_err(|e| {
                ladder.error_at("peak", e.message).with_help(e.help.unwrap_or_default())
            })?;
            Ladder::Peak { peak, steps: steps()? }
        }
        Kind::Auto => Ladder::Auto {
            steps: steps()?,
            headroom: ladder.number_in("headroom", 0.01..=1.0)?.unwrap_or(1.0),
        },
        Kind::Think => read_thinks(ladder, load)?,
    };
    ladder.finish()?;
    Ok(value)
}

fn read_thinks(ladder: &TableReader<'_>, load: &LoadSpec) -> Result<Ladder, SuiteError> {
    if let LoadSpec::Open { .. } = load {
        return Err(ladder
            .error_at("kind", "a ladder of think times needs a closed load")
            .with_help("clients of an open load do not think; write load.mode = \"closed\""));
    }
    let clients =
        ladder.count("clients", 1..=CLIENTS_MAX)?.ok_or_else(|| ladder.missing("clients"))?;
    let thinks = ladder.spans("thinks")?.ok_or_else(|| ladder.missing("thinks"))?;
    check_length(ladder, "thinks", thinks.len())?;
    Ok(Ladder::Think { clients: clients as u32, thinks })
}

fn check_length(
    ladder: &TableReader<'_>,
    key: &'static str,
    points: usize,
) -> Result<(), SuiteError> {
    if points > 0 && points <= LADDER_POINTS_MAX {
        return Ok(());
    }
    Err(ladder
        .error_at(key, format!("a ladder has {points} load points"))
        .with_help(format!("write from 1 to {LADDER_POINTS_MAX}")))
}

fn check_points(
    ladder: &TableReader<'_>,
    points: &[f64],
    load: &LoadSpec,
) -> Result<(), SuiteError> {
    check_length(ladder, "points", points.len())?;
    for value in points {
        let (good, unit) = match load {
            LoadSpec::Open { .. } => {
                (*value > 0.0 && *value <= RATE_OPS_PER_S_MAX, "ops/s above 0")
            }
            LoadSpec::Closed { .. } => (
                value.fract() == 0.0 && *value >= 1.0 && *value <= CLIENTS_MAX as f64,
                "clients, a whole number from 1 up",
            ),
        };
        if !good {
            return Err(ladder
                .error_at("points", format!("load point {value} is not a load"))
                .with_help(format!("a load point of this suite is a number of {unit}")));
        }
    }
    Ok(())
}

fn read_rules(rules: &TableReader<'_>) -> Result<Rules, SuiteError> {
    let value = Rules {
        rate_tolerance_ratio: rules.number_in("rate_tolerance_ratio", 0.0..=1.0)?.unwrap_or(0.05),
        errors_max_ratio: rules.number_in("errors_max_ratio", 0.0..=1.0)?.unwrap_or(0.001),
        response_cap_ms: rules.number_in("response_cap_ms", 0.001..=3.6e6)?,
        generator_cpu_max_ratio: rules
            .number_in("generator_cpu_max_ratio", 0.0..=1.0)?
            .unwrap_or(0.9),
        send_lag_p99_max: positive_span(rules, "send_lag_p99_max", Nanos::from_millis(1))?,
        op_mix_max_points: rules.number_in("op_mix_max_points", 0.0..=100.0)?.unwrap_or(1.0),
        target_share_max_ratio: rules.number_in("target_share_max_ratio", 0.0..=1.0)?,
    };
    rules.finish()?;
    Ok(value)
}

fn read_profiles(profiles: &TableReader<'_>) -> Result<Profiles, SuiteError> {
    let seconds = Nanos::from_secs;
    let millis = Nanos::from_millis;
    let profile = |warm_up, measure, drain, scale| Profile {
        warm_up,
        measure,
        ramp_down: Nanos::ZERO,
        drain,
        workload_scale: scale,
        think_scale: scale,
        clients_max: None,
    };
    let value = Profiles {
        full: read_profile(
            profiles,
            "full",
            profile(seconds(300), seconds(300), seconds(30), 1.0),
        )?,
        standard: read_profile(
            profiles,
            "standard",
            profile(seconds(10), seconds(30), seconds(10), 1.0),
        )?,
        quick: read_profile(profiles, "quick", profile(seconds(1), seconds(3), seconds(1), 0.1))?,
        demo: read_profile(profiles, "demo", profile(millis(200), millis(700), millis(300), 0.02))?,
    };
    profiles.finish()?;
    Ok(value)
}

fn read_profile(
    profiles: &TableReader<'_>,
    name: &'static str,
    default: Profile,
) -> Result<Profile, SuiteError> {
    let table = profiles.table(name)?;
    let value = Profile {
        warm_up: table.span("warm_up")?.unwrap_or(default.warm_up),
        measure: positive_span(&table, "measure", default.measure)?,
        ramp_down: table.span("ramp_down")?.unwrap_or(default.ramp_down),
        drain: table.span("drain")?.unwrap_or(default.drain),
        workload_scale: table
            .number_in("workload_scale", 0.0001..=1.0)?
            .unwrap_or(default.workload_scale),
        think_scale: table.number_in("think_scale", 0.0..=1.0)?.unwrap_or(default.think_scale),
        clients_max: table.count("clients_max", 1..=CLIENTS_MAX)?.map(|max| max as u32),
    };
    table.finish()?;
    Ok(value)
}

fn positive_span(
    table: &TableReader<'_>,
    key: &'static str,
    default: Nanos,
) -> Result<Nanos, SuiteError> {
    let span = table.span(key)?.unwrap_or(default);
    if span == Nanos::ZERO {
        return Err(table
            .error_at(key, format!("`{}` is zero", table.full_path(key)))
            .with_help("write a span of time above zero, like \"30s\""));
    }
    Ok(span)
}

#[cfg(test)]
mod tests {
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

    fn read_echo(protocol: &str, table: &TableReader<'_>) -> Result<toml::Table, SuiteError> {
        assert_eq!(protocol, "echo");
        let size = table.count("size", 1..=100)?.unwrap_or(1);
        Ok(toml::Table::from_iter([("size".to_owned(), toml::Value::Integer(size as i64))]))
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
        check("\"15s\"", "15", "a list of spans of time");
        check("\"bytes\"", "\"bits\"", "bits");
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
