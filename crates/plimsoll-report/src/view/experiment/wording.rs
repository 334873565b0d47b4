//! Effects as text: *twice the processors bring 1.66 x (1.61–1.71)*, *raid 5 costs 9.1 %
//! (8.2–10.0) with 2 processors*. An effect that was not detected is never called zero: it is *at
//! most* a bound.

use std::fmt;

use plimsoll_model::comparison::experiment::{
    AtLevel, Basis, BestClaim, Effect, EffectClaim, Experiment, Factor, Law, Missing, MissingWhy,
    Response, RunAgain,
};
use plimsoll_model::comparison::{Comparison, Group, RatioFigure};
use plimsoll_model::units::{decimals, grouped, three_digits};

use crate::text::capitalised;
use crate::view::ratios;

/// From here on, and below its inverse, a ratio is plainer than a percentage.
const FACTOR_MIN: f64 = 2.0;
/// A smaller share is rounding.
const PERCENT_MIN: f64 = 0.05;

/// A level as a reader calls it: `2 processors`, `clock 450 MHz`, `raid 5`.
pub(crate) fn level(factor: &Factor, index: usize) -> String {
    let Some(level) = factor.levels.get(index) else { return factor.name.clone() };
    let (name, of) = (&level.name, &factor.name);
    if let Some(system) = &level.system {
        return system.clone();
    }
    let names_factor = name.to_lowercase().contains(&of.to_lowercase());
    match (&factor.unit, level.value) {
        _ if names_factor => name.clone(),
        (Some(unit), _) => format!("{of} {name} {unit}"),
        (None, Some(1.0)) if is_plural(of) => format!("{name} {}", of.trim_end_matches('s')),
        (None, Some(_)) if is_plural(of) => format!("{name} {of}"),
        _ => format!("{of} {name}"),
    }
}

/// The levels of a cell.
pub(crate) fn cell(it: &Experiment, levels: &[usize]) -> String {
    let named = it.factors.iter().zip(levels).map(|(factor, at)| level(factor, *at));
    named.collect::<Vec<_>>().join(", ")
}

/// Factors that were fixed.
pub(super) fn fixed_levels(it: &Experiment, at: &[AtLevel]) -> String {
    let named = at.iter().filter_map(|at| Some(level(it.factors.get(at.factor)?, at.level)));
    named.collect::<Vec<_>>().join(" and ")
}

/// A factor is called by more than one thing.
fn is_plural(name: &str) -> bool {
    name.ends_with('s') && !name.ends_with("ss")
}

/// The figure of the effects, where it is not the headline; and the groups whose peaks are unknown,
/// if that is the reason.
pub(super) fn response(comparison: &Comparison, it: &Experiment) -> Option<String> {
    let Response { figure, load } = it.response;
    let at_load = load.map(|load| format!(" at {}", grouped(load))).unwrap_or_default();
    let unknown = it.peak_unknown.iter().filter_map(|at| comparison.groups.get(*at));
    let unknown: Vec<&str> = unknown.map(Group::name).collect();
    let why = match unknown.as_slice() {
        [] if figure.is_headline() && load.is_none() => return None,
        [] => String::new(),
        [one] => format!("The peak of {one} is not known. "),
        several => format!("The peaks of {} are not known. ", several.join("; ")),
    };
    Some(match figure.is_headline() {
        true => why.trim_end().to_owned(),
        false => format!("{why}The effects are those on {}{at_load}.", ratios::name(figure)),
    })
}

/// The combinations without a run that counts: they come before the text about the others.
pub(super) fn combinations_missing(it: &Experiment) -> Option<String> {
    let without = it.cells.iter().filter(|cell| cell.mean.is_none());
    let names: Vec<String> = without.map(|without| cell(it, &without.levels)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Missing: no run of {} has the figure. What follows leaves {} out.",
            names.join("; "),
            if names.len() == 1 { "it" } else { "them" }
        )
    })
}

/// The combinations of the others that an effect is the mean of, where some are missing.
pub(super) fn averaged_levels(it: &Experiment, effect: &Effect) -> String {
    let names: Vec<String> = effect.over.iter().map(|at| fixed_levels(it, at)).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => format!("with {one}"),
        [first @ .., last] => format!("on average with {}; and with {last}", first.join("; with ")),
    }
}

/// A sentence for each level that is compared with the first of its factor; where effects depend on
/// other factors, with all that it is there.
pub(super) fn effects(it: &Experiment) -> Vec<String> {
    let main = it.effects.iter().filter(|effect| effect.at.is_empty());
    main.filter_map(|effect| sentence(it, effect)).collect()
}

fn sentence(it: &Experiment, main: &Effect) -> Option<String> {
    let factor = it.factors.get(main.factor)?;
    let is_its = |effect: &&Effect| {
        (effect.factor, effect.to) == (main.factor, main.to) && !effect.at.is_empty()
    };
    let at_levels: Vec<&Effect> = it.effects.iter().filter(is_its).collect();
    let phrase = match at_levels.is_empty() {
        true => {
            let combinations =
                Some(averaged_levels(it, main)).filter(|combinations| !combinations.is_empty());
            let combinations =
                combinations.map(|combinations| format!(" {combinations}")).unwrap_or_default();
            format!("{}{combinations}", predicate(it.response.figure, factor, main))
        }
        false => at_each(it, factor, &at_levels),
    };
    let (subject, against) = match times(factor, main) {
        Some(times) => (times, String::new()),
        None => {
            let first = level(factor, main.from);
            (level(factor, main.to), format!(", compared with {first}"))
        }
    };
    Some(capitalised(&format!("{subject} {phrase}{against}.")))
}

/// The verb once for all that follow it.
fn at_each(it: &Experiment, factor: &Factor, effects: &[&Effect]) -> String {
    let mut text = String::new();
    let mut before: Option<String> = None;
    for effect in effects {
        let phrase = predicate(it.response.figure, factor, effect);
        let verb = match before.as_ref() == Some(&phrase.verb) {
            _ if text.is_empty() => format!("{} ", phrase.verb),
            true => ", ".to_owned(),
            false => format!("; {} ", phrase.verb),
        };
        text.push_str(&format!("{verb}{} with {}", phrase.object, fixed_levels(it, &effect.at)));
        before = Some(phrase.verb);
    }
    text
}

/// `twice the processors`, of factors with sizes.
fn times(factor: &Factor, effect: &Effect) -> Option<String> {
    let values = factor.values()?;
    let times = values.get(effect.to)? / values.get(effect.from)?;
    let times = match times {
        2.0 => "twice".to_owned(),
        0.5 => "half".to_owned(),
        times if times.fract() == 0.0 => format!("{times:.0} times"),
        times => format!("{} times", three_digits(times)),
    };
    Some(format!("{times} the {}", factor.name))
}

/// The effect of a level, after the level's name.
struct Predicate {
    verb: String,
    object: String,
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.object)
    }
}

fn predicate(figure: RatioFigure, factor: &Factor, effect: &Effect) -> Predicate {
    let has_size = factor.values().is_some();
    let changes = |ratio: f64, object: String| changes(figure, factor, ratio, object);
    let x = |ratio: f64| format!("{} x", three_digits(ratio));
    let cannot = |why: &str| Predicate { verb: "cannot".to_owned(), object: why.to_owned() };
    match (effect.claim, effect.ratio, effect.interval) {
        (EffectClaim::Differs, Some(ratio), Some(interval)) => {
            let is_large = !(1.0 / FACTOR_MIN..FACTOR_MIN).contains(&ratio);
            match has_size || is_large {
                true => changes(ratio, format!("{} ({})", by(ratio, interval), range(interval))),
                false => by_share(figure, ratio, interval),
            }
        }
        (EffectClaim::Within, _, Some([low, high])) if has_size => {
            let [at_least, at_most] = [low, high].map(|end| by(end, [low, high]));
            let to = format!("between {at_least} and {at_most}");
            match figure.is_less_better() {
                true => Predicate {
                    verb: verb(factor, "bring"),
                    object: format!("{} to {to}", the(figure)),
                },
                false => changes(1.0, to),
            }
        }
        (EffectClaim::Within, _, Some(interval)) => within(figure, interval),
        (EffectClaim::RatioOnly, Some(ratio), _) => {
            changes(ratio, format!("{}, {}", x(ratio), without_interval(effect.basis)))
        }
        (EffectClaim::AtLeast, Some(ratio), _) => {
            let since = "since the server may carry more";
            match ratio < 1.0 {
                true => Predicate {
                    verb: verb(factor, "cost"),
                    object: format!("at most {}, {since}", percent(1.0 - ratio)),
                },
                false => changes(ratio, format!("at least {}, {since}", x(ratio))),
            }
        }
        (EffectClaim::AtMost, Some(ratio), _) => {
            changes(ratio, format!("at most {}, since the server may carry more without", x(ratio)))
        }
        (EffectClaim::Open, ..) => {
            cannot("be judged: the server may carry more both with and without")
        }
        _ => cannot("be judged: no combination has runs both with and without"),
    }
}

/// `bring 1.66 x`; what makes a figure smaller lowers it, and what makes a time larger raises it.
fn changes(figure: RatioFigure, factor: &Factor, ratio: f64, object: String) -> Predicate {
    let (word, to) = match (ratio < 1.0, figure.is_less_better()) {
        (true, _) => ("lower", format!("{} to ", the(figure))),
        (false, true) => ("raise", format!("{} to ", the(figure))),
        (false, false) => ("bring", String::new()),
    };
    Predicate { verb: verb(factor, word), object: format!("{to}{object}") }
}

/// The verb of a level of this factor: several of a thing, or one.
fn verb(factor: &Factor, word: &str) -> String {
    let several = factor.values().is_some() && is_plural(&factor.name);
    if several { word.to_owned() } else { format!("{word}s") }
}

/// `the peak`, `p99`.
fn the(figure: RatioFigure) -> String {
    let name = ratios::name(figure);
    if figure.is_headline() { format!("the {name}") } else { name.to_owned() }
}

/// `costs 9.1 % (8.2–10.0)`.
fn by_share(figure: RatioFigure, ratio: f64, interval: [f64; 2]) -> Predicate {
    let share = shares(ratio, interval);
    let (verb, of) = match (figure.is_less_better(), ratio < 1.0) {
        (false, true) => ("costs", String::new()),
        (false, false) => ("brings", String::new()),
        (true, true) => ("lowers", format!("{} by ", ratios::name(figure))),
        (true, false) => ("raises", format!("{} by ", ratios::name(figure))),
    };
    Predicate { verb: verb.to_owned(), object: format!("{of}{share}") }
}

/// An effect that may be none is no larger than its interval; the worse comes first.
fn within(figure: RatioFigure, [low, high]: [f64; 2]) -> Predicate {
    let (less, more) = (percent(1.0 - low), percent(high - 1.0));
    let (verb, object) = match figure.is_less_better() {
        false => ("costs", format!("at most {less} (or brings at most {more})")),
        true => {
            let name = ratios::name(figure);
            ("raises", format!("{name} by at most {more} (or lowers it by at most {less})"))
        }
    };
    Predicate { verb: verb.to_owned(), object }
}

pub(super) fn without_interval(basis: Basis) -> &'static str {
    match basis {
        Basis::SetOnce => {
            "without an interval: each level was set once, so its effect cannot be told from what \
             else differed then"
        }
        _ => "without an interval: that takes three repeats",
    }
}

/// `1.66 x`, with the decimals that the interval leaves.
pub(super) fn by(ratio: f64, [low, high]: [f64; 2]) -> String {
    format!("{} x", ratios::times(ratio, high / low))
}

pub(super) fn range([low, high]: [f64; 2]) -> String {
    let [low, high] = [low, high].map(|end| ratios::times(end, high / low));
    format!("{low}–{high}")
}

/// `9.1 % (8.2–10.0)`: how far below or above 1.
fn shares(ratio: f64, [low, high]: [f64; 2]) -> String {
    let [share, mut a, mut b] = [ratio, low, high].map(|end| (end - 1.0).abs() * 100.0);
    if a > b {
        (a, b) = (b, a);
    }
    let precision = decimals(a.min(share), 2).min(2);
    format!("{share:.precision$} % ({a:.precision$}–{b:.precision$})")
}

/// A share of a bound; never none at all.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        _ if percent < PERCENT_MIN => "0.1 %".to_owned(),
        _ if percent >= 9.95 => format!("{percent:.0} %"),
        _ => format!("{percent:.1} %"),
    }
}

/// Do the effects depend on each other?
pub(super) fn interaction(it: &Experiment) -> Option<String> {
    let result = it.interaction?;
    let [above, below] = result.degrees;
    let test = format!("F({above:.0}, {below:.0}) = {}, p {}", three_digits(result.f), p(result.p));
    Some(match result.found {
        true => format!(
            "The effects depend on each other ({test}): each is stated at the levels of the others."
        ),
        false => format!(
            "The effects do not visibly depend on each other ({test}). Four of five such \
             experiments would detect it if the effect of a factor differed by {} between two \
             levels of another.",
            percent(result.detectable - 1.0)
        ),
    })
}

fn p(p: f64) -> String {
    match p {
        ..0.001 => "< 0.001".to_owned(),
        p => format!("= {p:.3}"),
    }
}

/// The best combination against the first.
pub(super) fn best(it: &Experiment) -> Option<String> {
    let best = it.best.as_ref()?;
    let [first, cell] = [0, best.cell].map(|at| it.cells.get(at).map(|it| &it.levels));
    let [first, other] = [self::cell(it, first?), self::cell(it, cell?)];
    let interval = best.interval.map(|it| format!(" ({})", range(it))).unwrap_or_default();
    let ratio = by(best.ratio, best.interval.unwrap_or([1.0, f64::INFINITY]));
    let mean = if it.response.figure.is_less_better() { "lowest" } else { "highest" };
    Some(match best.claim {
        BestClaim::First => format!("The first combination, {first}, has the {mean} mean."),
        BestClaim::Better => format!(
            "The {mean} mean is that of {other}: {ratio}{interval} of {first}, by an interval that \
             holds for all combinations at once."
        ),
        BestClaim::RunAgain => format!(
            "The {mean} mean is that of {other}: {ratio}{interval} of {first}. Among {} \
             combinations that may be chance{}.",
            it.cells.len(),
            best.again.as_ref().map_or("; run both again".to_owned(), again)
        ),
    })
}

/// `. Both ran again, 3 times each: 1.02 x (0.99–1.05)`.
fn again(again: &RunAgain) -> String {
    let interval = again.interval.map(|it| format!(" ({})", range(it))).unwrap_or_default();
    let ratio = by(again.ratio, again.interval.unwrap_or([1.0, f64::INFINITY]));
    format!(". Both ran again, {} times each: {ratio}{interval}", again.runs)
}

/// How throughput grows.
pub(super) fn law(it: &Experiment, law: &Law) -> Option<String> {
    let factor = it.factors.get(law.factor)?;
    let (fit, fixed) = (&law.fit, fixed_levels(it, &law.at));
    let at = if fixed.is_empty() { String::new() } else { format!(" with {fixed}") };
    let number = |value: f64| if value < 1e-6 { "0".to_owned() } else { three_digits(value) };
    let with_interval = |value: f64, [low, high]: [f64; 2]| {
        format!("{} ({}–{})", number(value), number(low), number(high))
    };
    let n = match law.one {
        1.0 => factor.name.clone(),
        one => format!("{} / {}", factor.name, three_digits(one)),
    };
    Some(format!(
        "Growth over {}{at} follows the scalability law with N = {n}: contention α = {}, coherency \
         β = {}.",
        factor.name,
        with_interval(fit.alpha, fit.alpha_interval),
        with_interval(fit.beta, fit.beta_interval),
    ))
}

/// Why a repeat has no figure, with the end of what a command printed.
pub(super) fn missing(missing: &Missing) -> String {
    let why = match &missing.why {
        MissingWhy::Invalid { rules } => format!("the run is invalid ({})", rules.join(", ")),
        MissingWhy::Unusable { message } => message.clone(),
        MissingWhy::NotRun => "not run".to_owned(),
        MissingWhy::NoFigure => "the run has no such figure".to_owned(),
        MissingWhy::Hook(failure) => failure.to_string(),
    };
    format!("repeat {}: {why}", missing.block + 1)
}
