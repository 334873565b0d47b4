//! The file of an experiment as users write it: a suite, a target, and factors with levels.
//!
//! ```toml
//! suite = "web-url"
//! target = "http://server/"
//! repeats = 3
//! options = "--rate 1k,2k,4k --monitor ssh://server"
//!
//! [[factors]]
//! name = "workers"
//! levels = [2, 4, 8]
//! set = "ssh server sudo set-workers $LEVEL"
//! verify = "ssh server test $(get-workers) = $LEVEL"
//! settle = "5s"
//!
//! [[factors]]
//! name = "clock"
//! unit = "MHz"
//! levels = [350, 450]
//! manual = true
//! ```

use schemars::JsonSchema;
use serde::Deserialize;

use crate::suite::{SuiteError, TableReader, read_document};
use crate::units::{Nanos, parse_span};

/// Levels of a factor, and repeats of a cell, at most.
const LEVELS_MAX: usize = 64;
const REPEATS_MAX: u32 = 100;
/// Combinations of levels at most.
pub const CELLS_MAX: usize = 256;
/// How long a command may take by default.
const TIMEOUT: Nanos = Nanos::from_secs(60);

/// An experiment as requested.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentFile {
    /// Name of a shipped suite, or path of a suite file.
    pub suite: String,
    /// Targets of every run; empty where a factor is the target.
    pub targets: Vec<String>,
    /// Runs of each cell.
    pub repeats: u32,
    /// The order follows from it.
    pub seed: u64,
    /// What the effects are of, as `--fail-if` names figures: `p99@1000`. `None`: the headline.
    pub response: Option<String>,
    /// Limits of `plimsoll capacity`: each run searches the highest load within them.
    pub within: Option<String>,
    /// Options of `plimsoll run`, or of `plimsoll capacity` with `within`, as a shell would take
    /// them.
    pub options: String,
    /// What is changed.
    pub factors: Vec<FactorTable>,
}

/// A factor as requested.
#[derive(Clone, Debug, PartialEq)]
pub struct FactorTable {
    /// What it is called.
    pub name: String,
    /// Unit of its levels.
    pub unit: Option<String>,
    /// Its levels.
    pub levels: Vec<LevelValue>,
    /// What sets it.
    pub set_by: SetBy,
    /// Checks whether the level is set: a shell command that then ends with status 0.
    pub verify: Option<String>,
    /// Waited after the level was set.
    pub settle: Nanos,
    /// How long each command may take.
    pub timeout: Nanos,
}

/// What sets a factor.
#[derive(Clone, Debug, PartialEq)]
pub enum SetBy {
    /// A shell command, `$LEVEL` being the level.
    Command {
        /// Sets the level.
        set: String,
        /// Run once at the end, `$LEVEL` being the last level.
        undo: Option<String>,
        /// Of the server that each run starts: the command runs once it answers.
        after_start: bool,
    },
    /// A key of the suite.
    Key(String),
    /// The target.
    Target,
    /// A limit of the server that each run starts.
    Server(Resource),
    /// An option of the run: `true` gives it, `false` leaves it out, another level is its value.
    Flag(String),
    /// The user, by hand.
    Hand {
        /// Set once for all repeats instead of anew in each.
        once: bool,
    },
}

/// A limit that a server may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Cores; a fraction is a quota.
    Cores,
    /// CPU time per time, in cores.
    Quota,
    /// Bytes of memory, with its part of the page cache.
    Memory,
    /// Bytes per second of each disk: `"50MiB/s"`.
    DiskRate,
    /// Transfers per second of each disk.
    DiskTransfers,
    /// Bits per second of the server's link: `"100Mbit/s"`.
    LinkRate,
    /// Service threads.
    Threads,
}

/// A level as it is written: `0.5`, `"on"`, `true`, or a value with a name of its own.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "not a number, a text, true, false or { name = …, value = … }")]
pub enum LevelValue {
    /// A number.
    Number(f64),
    /// `true` or `false`.
    Flag(bool),
    /// A text.
    Text(String),
    /// A value with a name.
    Named {
        /// How reports call it.
        name: String,
        /// What is set.
        value: Box<LevelValue>,
    },
}

impl LevelValue {
    /// What is set, as text.
    pub fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Text(text) => text.clone(),
            Self::Named { value, .. } => value.text(),
        }
    }

    /// How reports call it.
    pub fn name(&self) -> String {
        match self {
            Self::Named { name, .. } => name.clone(),
            other => other.text(),
        }
    }

    /// As a number, where it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Named { value, .. } => value.number(),
            Self::Flag(_) | Self::Text(_) => None,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Written {
    /// Name of a shipped suite, or path of a suite file.
    suite: String,
    /// The target of every run.
    target: Option<String>,
    /// Targets of every run, where there are several.
    #[serde(default)]
    targets: Vec<String>,
    /// Runs of each cell.
    #[serde(default = "repeats")]
    #[schemars(range(min = 1, max = REPEATS_MAX))]
    repeats: u32,
    /// The order follows from it.
    #[serde(default = "seed")]
    seed: u64,
    /// What the effects are of.
    response: Option<String>,
    /// Limits of plimsoll capacity, such as p99<50ms: each run searches the highest load within
    /// them.
    within: Option<String>,
    /// Options of plimsoll run.
    #[serde(default)]
    options: String,
    /// What is changed.
    factors: Vec<WrittenFactor>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WrittenFactor {
    /// What it is called.
    name: String,
    /// Unit of its levels.
    unit: Option<String>,
    /// Its levels.
    levels: Vec<LevelValue>,
    /// A shell command that sets the level.
    set: Option<String>,
    /// A shell command that ends with status 0 where the level is set.
    verify: Option<String>,
    /// A shell command that restores what was there.
    undo: Option<String>,
    /// Waited after the level was set.
    settle: Option<String>,
    /// How long each command may take.
    timeout: Option<String>,
    /// The commands are for the server that each run starts.
    #[serde(default)]
    after_start: bool,
    /// A key of the suite.
    key: Option<String>,
    /// The levels are targets.
    #[serde(default)]
    target: bool,
    /// The limit of the server.
    server: Option<Resource>,
    /// An option of the run, as --monitor: true gives it, false leaves it out, another level is its
    /// value.
    flag: Option<String>,
    /// Set by hand.
    #[serde(default)]
    manual: bool,
    /// Set once for all repeats.
    #[serde(default)]
    set_once: bool,
}

const fn repeats() -> u32 {
    3
}

const fn seed() -> u64 {
    1
}

impl ExperimentFile {
    /// Reads the file of an experiment; `file` names it in messages.
    ///
    /// # Errors
    /// With file, line and what to do next.
    pub fn parse(file: &str, text: &str) -> Result<Self, SuiteError> {
        read_document(file, text, |written: Written, root| written.finish(root))
    }
}

impl Written {
    fn finish(self, root: &TableReader<'_>) -> Result<ExperimentFile, SuiteError> {
        if self.factors.is_empty() {
            let help = "write [[factors]] with a name and levels for each thing you change";
            return Err(root.error_at("factors", "there are no factors").with_help(help));
        }
        let mut factors: Vec<FactorTable> = Vec::new();
        for (at, factor) in self.factors.into_iter().enumerate() {
            let path = format!("factors.{at}");
            if factors.iter().any(|earlier| earlier.name == factor.name) {
                let message = format!("a second factor is called {:?}", factor.name);
                return Err(root.error_at(&format!("{path}.name"), message));
            }
            factors.push(factor.finish(root, &path)?);
        }
        let targets: Vec<String> = self.target.into_iter().chain(self.targets).collect();
        let is_target = |factor: &FactorTable| factor.set_by == SetBy::Target;
        match (targets.is_empty(), factors.iter().filter(|factor| is_target(factor)).count()) {
            (true, 1) | (false, 0) => {}
            (true, _) => {
                let help = "write target = \"http://server/\", or a factor with target = true \
                            whose levels are targets";
                return Err(root.error_at("", "no target is named").with_help(help));
            }
            (false, _) => {
                let message = "the target is named here and is a factor too";
                return Err(root.error_at("target", message).with_help("leave one of them out"));
            }
        }
        let cells: usize = factors.iter().map(|factor| factor.levels.len()).product();
        if cells > CELLS_MAX {
            let message = format!("the factors have {cells} combinations of levels");
            let help =
                format!("at most {CELLS_MAX} are run; take fewer levels, or two experiments");
            return Err(root.error_at("factors", message).with_help(help));
        }
        Ok(ExperimentFile {
            suite: self.suite,
            targets,
            repeats: self.repeats,
            seed: self.seed,
            response: self.response,
            within: self.within,
            options: self.options,
            factors,
        })
    }
}

impl WrittenFactor {
    fn finish(self, root: &TableReader<'_>, path: &str) -> Result<FactorTable, SuiteError> {
        let at = |key: &str| format!("{path}.{key}");
        if !(1..=LEVELS_MAX).contains(&self.levels.len()) {
            let message = format!("factor {:?} has {} levels", self.name, self.levels.len());
            let help = format!("write from 1 to {LEVELS_MAX} of them");
            return Err(root.error_at(&at("levels"), message).with_help(help));
        }
        let names: Vec<String> = self.levels.iter().map(LevelValue::name).collect();
        if let Some(twice) = (1..names.len()).find(|i| names[..*i].contains(&names[*i])) {
            let message = format!("factor {:?} has the level {} twice", self.name, names[twice]);
            return Err(root.error_at(&at("levels"), message));
        }
        let span = |text: &Option<String>, key: &str, otherwise: Nanos| match text {
            None => Ok(otherwise),
            Some(text) => parse_span(text).ok_or_else(|| {
                let message = format!("`{}` is {text:?}, not a time", at(key));
                root.error_at(&at(key), message).with_help("write a time such as 5s or 2m")
            }),
        };
        let settle = span(&self.settle, "settle", Nanos(0))?;
        let timeout = span(&self.timeout, "timeout", TIMEOUT)?;
        Ok(FactorTable {
            settle,
            timeout,
            set_by: self.set_by(root, path)?,
            name: self.name,
            unit: self.unit,
            levels: self.levels,
            verify: self.verify,
        })
    }

    fn set_by(&self, root: &TableReader<'_>, path: &str) -> Result<SetBy, SuiteError> {
        let command = self.set.as_ref().map(|set| SetBy::Command {
            set: set.clone(),
            undo: self.undo.clone(),
            after_start: self.after_start,
        });
        let setters = [
            command,
            self.key.clone().map(SetBy::Key),
            self.target.then_some(SetBy::Target),
            self.server.map(SetBy::Server),
            self.flag.clone().map(SetBy::Flag),
            self.manual.then_some(SetBy::Hand { once: self.set_once }),
        ];
        let mut setters = setters.into_iter().flatten();
        let at_flag = format!("{path}.flag");
        let help = "write one of: set = \"COMMAND\", key = \"KEY OF THE SUITE\", target = true, \
                    server = \"cores|quota|memory|disk_rate|\
                    disk_transfers|link_rate|threads\", flag = \"--OPTION\", manual = true";
        let setter = match (setters.next(), setters.next()) {
            (Some(SetBy::Flag(flag)), None) if !flag.starts_with("--") => {
                let message = format!("`flag` of factor {:?} is {flag:?}", self.name);
                let help = "write an option of plimsoll run, such as --monitor";
                return Err(root.error_at(&at_flag, message).with_help(help));
            }
            (Some(setter), None) => setter,
            (None, _) => {
                let message = format!("nothing says how factor {:?} is set", self.name);
                return Err(root.error_at(path, message).with_help(help));
            }
            (Some(_), Some(_)) => {
                let message = format!("factor {:?} is set in two ways", self.name);
                return Err(root.error_at(path, message).with_help(help));
            }
        };
        let by_command = matches!(setter, SetBy::Command { .. });
        let by_hand = matches!(setter, SetBy::Hand { .. });
        let astray = [
            ("undo", self.undo.is_some() && !by_command, "set"),
            ("undo", self.undo.is_some() && self.after_start, "a set without after_start"),
            ("after_start", self.after_start && !by_command, "set"),
            ("verify", self.verify.is_some() && !by_command && !by_hand, "set or manual"),
            ("settle", self.settle.is_some() && !by_command && !by_hand, "set or manual"),
            ("set_once", self.set_once && !by_hand, "manual"),
        ];
        match astray.into_iter().find(|(_, astray, _)| *astray) {
            Some((key, _, with)) => {
                let message = format!("`{key}` of factor {:?} goes with {with}", self.name);
                Err(root.error_at(&format!("{path}.{key}"), message).with_help("leave it out"))
            }
            None => Ok(setter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "suite = \"web-url\"\ntarget = \"http://h/\"\n";

    fn wrong(text: &str) -> String {
        let error = ExperimentFile::parse("e.toml", text).unwrap_err();
        format!("{error} {}", error.help.as_deref().unwrap_or_default())
    }

    #[test]
    fn every_way_to_set_a_factor_is_read() {
        let text = format!(
            "{HEAD}[[factors]]\nname = \"a\"\nlevels = [1, 2.5]\nset = \"s $LEVEL\"\nundo = \"u\"\n\
             settle = \"5s\"\n[[factors]]\nname = \"b\"\nlevels = [true]\nkey = \"load.clients\"\n\
             [[factors]]\nname = \"c\"\nlevels = [\"64 MiB\"]\nserver = \"memory\"\n\
             [[factors]]\nname = \"d\"\nmanual = true\n\
             levels = [{{ name = \"slow\", value = 350 }}, \"fast\"]\n"
        );
        let file = ExperimentFile::parse("e.toml", &text).unwrap();
        assert_eq!((file.repeats, file.seed, file.targets.len()), (3, 1, 1));
        let [a, b, c, d] = &file.factors[..] else { panic!("{file:?}") };
        assert!(matches!(&a.set_by, SetBy::Command { undo: Some(_), .. }), "{a:?}");
        assert_eq!((a.settle, a.levels[1].text()), (Nanos::from_secs(5), "2.5".to_owned()));
        assert_eq!(a.levels[0].text(), "1");
        assert_eq!(b.set_by, SetBy::Key("load.clients".into()));
        assert_eq!(c.set_by, SetBy::Server(Resource::Memory));
        assert_eq!((d.levels[0].name(), d.levels[0].number()), ("slow".into(), Some(350.0)));
        assert_eq!(d.set_by, SetBy::Hand { once: false });
    }

    #[test]
    fn mistakes_say_where_and_what_to_write() {
        let factor = |more: &str| format!("{HEAD}[[factors]]\nname = \"a\"\n{more}\n");
        let none = wrong(&factor("levels = [1]"));
        assert!(none.contains("nothing says how") && none.contains("manual = true"), "{none}");
        let two = wrong(&factor("levels = [1]\nkey = \"k\"\nmanual = true"));
        assert!(two.contains("set in two ways"), "{two}");
        let twice = wrong(&factor("levels = [1, 1]\nkey = \"k\""));
        assert!(twice.contains("the level 1 twice") && twice.contains("e.toml:5"), "{twice}");
        let astray = wrong(&factor("levels = [1]\nkey = \"k\"\nundo = \"u\""));
        assert!(astray.contains("`undo` of factor \"a\" goes with set"), "{astray}");
        let level = wrong(&factor("levels = [[1]]\nkey = \"k\""));
        assert!(level.contains("a number, a text"), "{level}");
        let time = wrong(&factor("levels = [1]\nset = \"s\"\nsettle = \"soon\""));
        assert!(time.contains("not a time"), "{time}");
        let no_target =
            wrong("suite = \"s\"\n[[factors]]\nname = \"a\"\nlevels = [1]\nkey = \"k\"");
        assert!(no_target.contains("no target is named"), "{no_target}");
        let both = wrong(&factor("levels = [\"http://a/\"]\ntarget = true"));
        assert!(both.contains("is a factor too"), "{both}");
    }
}
