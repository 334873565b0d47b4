//! Every parameter of a run beside the method's: its value here, the method's, who says so.
//!
//! [`parameters`] makes the table from the suite as it was run, the shipped suite of its name and
//! what the protocol says of itself ([`Practice`]). What departs from the method is read off the
//! same table ([`departures`]), so that nothing is said in one place and not in the other. *The
//! method has* is said of what a source or something public says, and of nothing else.

mod lines;

use serde::{Deserialize, Serialize};

use crate::suite::{Ladder, Origin, Origins, ProfileName, Suite};
use lines::{Line, Shown, lines};

/// How many hosts the clients run on.
pub const HOSTS: &str = "generator.hosts";
/// How near the load has to come to the one requested.
pub const LOADS_HELD: &str = "rules.rate_tolerance_ratio";
/// The value of [`HOSTS`] where this program alone makes the load.
const ONE_HOST: &str = "one program on one host";
/// The same where the server runs on it too, and both have to share it.
pub const SERVERS_HOST: &str = "one program on the server's own host";
/// What stands where one side has no such parameter.
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
    /// The method's; absent where no source says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Who says it.
    pub origin: Origin,
    /// Page, section or standard; of a choice, why. May be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
    /// How the run departs from the method here, or from the suite where no method says anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departure: Option<String>,
}

/// At which load points of a ladder the requested load was not held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadsHeld {
    /// Positions from 1.
    pub missed: Vec<u32>,
    /// Load points of the ladder.
    pub of: usize,
}

impl Parameter {
    /// What was measured deviates from the method, whose every load point is held. Only for
    /// parameters that have a method's value.
    pub fn deviates_by(&mut self, loads: &LoadsHeld) {
        let LoadsHeld { missed, of } = loads;
        let positions = missed.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let held = of.saturating_sub(missed.len());
        let Self { name, value, .. } = self;
        let value = format!("{value} at {held} of {of} load points, not at {positions}");
        let method = format!("{} at every load point", self.method.as_deref().unwrap_or(NONE));
        self.departure = Some(format!("{name}: {value}; the method has {method}"));
        (self.value, self.method) = (value, Some(method));
    }
}

/// What a protocol says of a parameter: of a suite's key, what it comes to in this run; of a choice
/// that no key sets, what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Practice {
    /// Path of a suite's key, or one below `generator`.
    pub key: String,
    /// In this run.
    pub value: String,
    /// What the suite comes to, unscaled and unchanged; absent: its key's value, or what
    /// `[origins.method]` says.
    pub unscaled: Option<String>,
    /// Departs whatever the suite says: what the user asked for has no place in any method.
    pub departs: bool,
}

impl Practice {
    /// A choice of the program.
    pub fn new(key: &str, value: impl Into<String>) -> Self {
        Self { key: key.to_owned(), value: value.into(), unscaled: None, departs: false }
    }

    /// What the suite comes to at full scale.
    pub fn unscaled(self, value: impl Into<String>) -> Self {
        Self { unscaled: Some(value.into()), ..self }
    }

    /// Asked for by the user beside the suite.
    pub fn beside_the_method(self) -> Self {
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
    /// What the protocol says of itself.
    pub practices: &'a [Practice],
}

/// How a run departs from its method, in the order of the table.
pub fn departures(parameters: &[Parameter]) -> Vec<String> {
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
        _ => side.method_line(&line.key).is_none_or(|wanted| wanted.shown != line.shown),
    };
    let mut table = Vec::new();
    for line in &side.own {
        table.push(match practice(&line.key) {
            Some(practice) => side.of_practice(practice, &line.name),
            None => side.of_line(line, changed(line), side.speaks_of(&line.key, of.suite)),
        });
    }
    table.extend(side.absent().map(|line| side.of_absent(line)));
    let known = |key: &str| side.own.iter().any(|line| line.key == key);
    let choices = of.practices.iter().filter(|practice| !known(&practice.key));
    table.extend(choices.map(|it| side.of_practice(it, &lines::name_of(&it.key))));
    if practice(HOSTS).is_none() {
        table.push(side.of_practice(&Practice::new(HOSTS, ONE_HOST), &lines::name_of(HOSTS)));
    }
    table
}

/// The run beside its method.
struct Side<'a> {
    origins: &'a Origins,
    own: Vec<Line>,
    method: Vec<Line>,
}

impl Side<'_> {
    fn method_line(&self, key: &str) -> Option<&Line> {
        self.method.iter().find(|line| line.key == key)
    }

    /// A departure at `key` is one of its own: other lines do not say it already. A load of another
    /// kind is said by its kind, a scale by what it does to think times.
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
        let (origin, said) = self.origins.find(&line.key);
        let named = self.origins.method.get(&line.key);
        let wanted = self.method_line(&line.key);
        let (value, suites) = match wanted {
            Some(wanted) => line.shown.beside(&wanted.shown),
            None => (line.shown.text(), NONE.to_owned()),
        };
        let method = match (named, wanted) {
            (Some(named), _) => named.clone(),
            (None, Some(wanted)) => wanted.shown.text(),
            (None, None) => NONE.to_owned(),
        };
        let departure = match (origin.is_the_methods(), named) {
            _ if !speaks => None,
            (true, Some(named)) if *named != line.shown.text() => {
                Some(format!("{}: {}; the method has {named}", line.name, line.shown.text()))
            }
            (true, None) if changed => {
                Some(format!("{}: {value}; the method has {suites}", line.name))
            }
            (false, _) if changed => self.beside_the_suite(&line.key, &line.name, &value, &suites),
            _ => None,
        };
        Parameter {
            key: line.key.clone(),
            name: line.name.clone(),
            value: line.shown.text(),
            method: origin.is_the_methods().then_some(method),
            origin,
            said: said.to_owned(),
            departure,
        }
    }

    /// Of what no method says. What is left to the user departs from nothing but the profile.
    fn beside_the_suite(&self, key: &str, name: &str, value: &str, suites: &str) -> Option<String> {
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
        let (origin, said) = self.origins.find(key);
        let suites = unscaled.clone().or_else(|| Some(self.method_line(key)?.shown.text()));
        let method = self.origins.method.get(key).or(suites.as_ref());
        let departure = match (origin.is_the_methods(), method, &suites) {
            (true, Some(method), _) if method != value => {
                Some(format!("{name}: {value}; the method has {method}"))
            }
            _ if *departs => Some(format!("{name}: {value}")),
            (false, _, Some(suites)) if suites != value => {
                self.beside_the_suite(key, name, value, suites)
            }
            _ => None,
        };
        Parameter {
            key: key.clone(),
            name: name.to_owned(),
            value: value.clone(),
            method: method.cloned().filter(|_| origin.is_the_methods()),
            origin,
            said: said.to_owned(),
            departure,
        }
    }
}

#[cfg(test)]
mod tests;
