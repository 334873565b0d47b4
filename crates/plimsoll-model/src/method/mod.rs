//! Every parameter of a run and of its method: the value here, the method's, and its origin.
//!
//! [`parameters`] makes the table from the suite as it was run, the shipped suite of its name and
//! the protocol's [`Practice`]s. The deviations from the method are read off the same table
//! ([`deviations`]), so that the two cannot disagree. *The method has* is written only of values
//! from a source or from something public.

mod lines;

use serde::{Deserialize, Serialize};

use crate::suite::{Ladder, Origin, Origins, ProfileName, Suite};
use lines::{Line, Shown, lines};

/// How many hosts the clients run on.
pub const HOSTS: &str = "generator.hosts";
/// How near the load has to come to the one requested.
pub const RATE_TOLERANCE: &str = "rules.rate_tolerance_ratio";
/// The value of [`HOSTS`] where this program alone makes the load.
const ONE_HOST: &str = "one program on one host";
/// The same where the server runs on it too, and both have to share it.
pub const SERVERS_HOST: &str = "one program on the server's own host";
/// Shown where one side has no such parameter.
const NONE: &str = "none";

/// A parameter of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Dotted path in the suite (timings: of the profile `full`); below `generator` for a choice
    /// of the program that no key sets.
    pub key: String,
    /// For a person.
    pub name: String,
    /// In this run.
    pub value: String,
    /// The method's; absent where no source has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Where the value comes from.
    pub origin: Origin,
    /// Page, section or standard; of a choice, why. May be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
    /// How the run deviates from the method here, or from the suite where no method has a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departure: Option<String>,
}

/// Load points of a ladder at which the requested load was not sustained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissedLoads {
    /// Positions from 1.
    pub missed: Vec<u32>,
    /// Load points of the ladder.
    pub of: usize,
}

impl Parameter {
    /// Records that the measurement deviates from the method, which sustains every load point.
    /// Only for parameters that have a method's value.
    pub fn deviates_by(&mut self, loads: &MissedLoads) {
        let MissedLoads { missed, of } = loads;
        let positions = missed.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let sustained = of.saturating_sub(missed.len());
        let Self { name, value, .. } = self;
        let value = format!("{value} at {sustained} of {of} load points, not at {positions}");
        let method = format!("{} at every load point", self.method.as_deref().unwrap_or(NONE));
        self.departure = Some(format!("{name}: {value}; the method has {method}"));
        (self.value, self.method) = (value, Some(method));
    }
}

/// A protocol's entry for a parameter: the effective value of a suite's key in this run, or a
/// choice that no key sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Practice {
    /// Path of a suite's key, or one below `generator`.
    pub key: String,
    /// In this run.
    pub value: String,
    /// The suite's effective value, unscaled and unchanged; absent: its key's value, or that in
    /// `[origins.method]`.
    pub unscaled: Option<String>,
    /// A deviation whatever the suite has: the user requested it, and no method has it.
    pub departs: bool,
}

impl Practice {
    /// A choice of the program.
    pub fn new(key: &str, value: impl Into<String>) -> Self {
        Self { key: key.to_owned(), value: value.into(), unscaled: None, departs: false }
    }

    /// Sets the suite's effective value at full scale.
    pub fn unscaled(self, value: impl Into<String>) -> Self {
        Self { unscaled: Some(value.into()), ..self }
    }

    /// Marks it as requested by the user in addition to the suite.
    pub fn as_deviation(self) -> Self {
        Self { departs: true, ..self }
    }
}

/// What the table is made from.
#[derive(Clone, Copy, Debug)]
pub struct MethodOf<'a> {
    /// As it was run.
    pub suite: &'a Suite,
    /// The profile of the run.
    pub profile: ProfileName,
    /// The shipped suite of its name, nothing changed; `None` for a user's own.
    pub shipped: Option<&'a Suite>,
    /// The protocol's entries.
    pub practices: &'a [Practice],
}

/// Deviations of a run from its method, in the order of the table.
pub fn deviations(parameters: &[Parameter]) -> Vec<String> {
    parameters.iter().filter_map(|parameter| parameter.departure.clone()).collect()
}

/// Every parameter of the run.
pub fn parameters(of: &MethodOf<'_>) -> Vec<Parameter> {
    let method = of.shipped.unwrap_or(of.suite);
    let side = Side {
        origins: &method.origins,
        method: lines(method, ProfileName::Full, &method.origins),
        own: lines(of.suite, of.profile, &method.origins),
    };
    let practice = |key: &str| of.practices.iter().find(|practice| practice.key == key);
    let changed = |line: &Line| match line.key.as_str() {
        lines::LADDER => lines::ladder_differs(&of.suite.ladder, &method.ladder),
        _ => side.method_line(&line.key).is_none_or(|expected| expected.shown != line.shown),
    };
    let mut table = Vec::new();
    for line in &side.own {
        table.push(match practice(&line.key) {
            Some(practice) => side.of_practice(practice, &line.name),
            None => side.of_line(line, changed(line), side.speaks_of(&line.key, of.suite)),
        });
    }
    table.extend(side.absent().map(|line| side.of_absent(line)));
    let is_in_suite = |key: &str| side.own.iter().any(|line| line.key == key);
    let choices = of.practices.iter().filter(|practice| !is_in_suite(&practice.key));
    table.extend(choices.map(|it| side.of_practice(it, &lines::name_of(&it.key))));
    if practice(HOSTS).is_none() {
        table.push(side.of_practice(&Practice::new(HOSTS, ONE_HOST), &lines::name_of(HOSTS)));
    }
    table
}

/// The run and its method.
struct Side<'a> {
    origins: &'a Origins,
    own: Vec<Line>,
    method: Vec<Line>,
}

impl Side<'_> {
    fn method_line(&self, key: &str) -> Option<&Line> {
        self.method.iter().find(|line| line.key == key)
    }

    /// A deviation at `key` gets a line of its own, since no other line reports it already: the
    /// line of its kind reports a load of another kind, the think times report their scale.
    fn speaks_of(&self, key: &str, suite: &Suite) -> bool {
        let is_of_load = key.starts_with("load.") || key.starts_with(lines::LADDER);
        match key {
            lines::MODE => true,
            lines::THINK_SCALE => matches!(suite.ladder, Ladder::Think { .. }),
            _ => !is_of_load || self.is_of_the_methods_mode(),
        }
    }

    fn is_of_the_methods_mode(&self) -> bool {
        let mode = |lines: &[Line]| {
            lines.iter().find(|line| line.key == lines::MODE).map(|line| line.shown.clone())
        };
        mode(&self.own) == mode(&self.method)
    }

    /// Lines that only the method has, and that a run of its kind of load would have.
    fn absent(&self) -> impl Iterator<Item = &Line> {
        let same_load = self.is_of_the_methods_mode();
        self.method.iter().filter(move |line| {
            let of_kind = ["load.", lines::LADDER, lines::THINK_SCALE];
            let is_of_kind = of_kind.iter().any(|start| line.key.starts_with(start));
            (same_load || !is_of_kind) && !self.own.iter().any(|own| own.key == line.key)
        })
    }

    fn of_line(&self, line: &Line, changed: bool, speaks: bool) -> Parameter {
        let (origin, note) = self.origins.find(&line.key);
        let named = self.origins.method.get(&line.key);
        let expected = self.method_line(&line.key);
        let (value, suites) = match expected {
            Some(expected) => line.shown.differences(&expected.shown),
            None => (line.shown.text(), NONE.to_owned()),
        };
        let method = match (named, expected) {
            (Some(named), _) => named.clone(),
            (None, Some(expected)) => expected.shown.text(),
            (None, None) => NONE.to_owned(),
        };
        let deviation = match (origin.is_the_methods(), named) {
            _ if !speaks => None,
            (true, Some(named)) if *named != line.shown.text() => {
                Some(format!("{}: {}; the method has {named}", line.name, line.shown.text()))
            }
            (true, None) if changed => {
                Some(format!("{}: {value}; the method has {suites}", line.name))
            }
            (false, _) if changed => {
                self.deviation_from_suite(&line.key, &line.name, &value, &suites)
            }
            _ => None,
        };
        Parameter {
            key: line.key.clone(),
            name: line.name.clone(),
            value: line.shown.text(),
            method: origin.is_the_methods().then_some(method),
            origin,
            said: note.to_owned(),
            departure: deviation,
        }
    }

    /// For parameters without a method's value. Those left to the user deviate from the profile
    /// only.
    fn deviation_from_suite(
        &self,
        key: &str,
        name: &str,
        value: &str,
        suites: &str,
    ) -> Option<String> {
        let is_timing = key.starts_with(lines::PROFILE);
        let whose = if is_timing { "full profile" } else { "suite" };
        let is_of_suite = matches!(self.origins.find(key).0, Origin::Ours | Origin::Substitute);
        (is_timing || is_of_suite).then(|| format!("{name}: {value}; the {whose} has {suites}"))
    }

    fn of_absent(&self, line: &Line) -> Parameter {
        let none = Line { shown: Shown::One(NONE.to_owned()), ..line.clone() };
        self.of_line(&none, true, true)
    }

    fn of_practice(&self, practice: &Practice, name: &str) -> Parameter {
        let Practice { key, value, unscaled, departs } = practice;
        let (origin, note) = self.origins.find(key);
        let suites = unscaled.clone().or_else(|| Some(self.method_line(key)?.shown.text()));
        let method = self.origins.method.get(key).or(suites.as_ref());
        let deviation = match (origin.is_the_methods(), method, &suites) {
            (true, Some(method), _) if method != value => {
                Some(format!("{name}: {value}; the method has {method}"))
            }
            _ if *departs => Some(format!("{name}: {value}")),
            (false, _, Some(suites)) if suites != value => {
                self.deviation_from_suite(key, name, value, suites)
            }
            _ => None,
        };
        Parameter {
            key: key.clone(),
            name: name.to_owned(),
            value: value.clone(),
            method: method.cloned().filter(|_| origin.is_the_methods()),
            origin,
            said: note.to_owned(),
            departure: deviation,
        }
    }
}

#[cfg(test)]
mod tests;
