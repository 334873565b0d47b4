//! Effects in words: *twice the processors bring 1.66 x (1.61–1.71)*, *raid 5 costs 9.1 %
//! (8.2–10.0) with 2 processors*. What was not seen is never nothing: it is *at most* so much.

use std::fmt;

use plimsoll_model::comparison::RatioFigure;
use plimsoll_model::comparison::experiment::{
    AtLevel, Basis, BestClaim, Effect, EffectClaim, Experiment, Factor, Law, Missing, MissingWhy,
    Response,
};
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
    let says_it = name.to_lowercase().contains(&of.to_lowercase());
    match (&factor.unit, level.value) {
        _ if says_it => name.clone(),
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

/// Factors that were held.
pub(super) fn held(it: &Experiment, at: &[AtLevel]) -> String {
    let named = at.iter().filter_map(|at| Some(level(it.factors.get(at.factor)?, at.level)));
    named.collect::<Vec<_>>().join(" and ")
}

/// A factor is called by more than one thing.
fn is_plural(name: &str) -> bool {
    name.ends_with('s') && !name.ends_with("ss")
}

/// What the effects are of, where it is not the headline.
pub(super) fn response(it: &Experiment) -> Option<String> {
    let Response { figure, load } = it.response;
    let place = load.map(|load| format!(" at {}", grouped(load))).unwrap_or_default();
    let is_plain = figure.is_headline() && load.is_none();
    (!is_plain).then(|| format!("The effects are those on {}{place}.", ratios::name(figure)))
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
    let says = match at_levels.is_empty() {
        true => says(it.response.figure, factor, main).to_string(),
        false => at_each(it, factor, &at_levels),
    };
    let (subject, against) = match times(factor, main) {
        Some(times) => (times, String::new()),
        None => {
            let first = level(factor, main.from);
            (level(factor, main.to), format!(", compared with {first}"))
        }
    };
    Some(capitalised(&format!("{subject} {says}{against}.")))
}

/// The verb once for all that follow it.
fn at_each(it: &Experiment, factor: &Factor, effects: &[&Effect]) -> String {
    let mut text = String::new();
    let mut before: Option<String> = None;
    for effect in effects {
        let said = says(it.response.figure, factor, effect);
        let verb = match before.as_ref() == Some(&said.verb) {
            _ if text.is_empty() => format!("{} ", said.verb),
            true => ", ".to_owned(),
            false => format!("; {} ", said.verb),
        };
        text.push_str(&format!("{verb}{} with {}", said.object, held(it, &effect.at)));
        before = Some(said.verb);
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

/// What a level does, behind the level's name.
struct Says {
    verb: String,
    object: String,
}

impl fmt::Display for Says {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.object)
    }
}

fn says(figure: RatioFigure, factor: &Factor, effect: &Effect) -> Says {
    let has_size = factor.values().is_some();
    let s = if has_size && is_plural(&factor.name) { "" } else { "s" };
    let to = if figure.is_less_better() {
        format!("{} to ", ratios::name(figure))
    } else {
        String::new()
    };
    let says = |verb: &str, object: String| Says { verb: verb.to_owned(), object };
    let bring = |object: String| says(&format!("bring{s}"), format!("{to}{object}"));
    let x = |ratio: f64| format!("{} x", three_digits(ratio));
    match (effect.claim, effect.ratio, effect.interval) {
        (EffectClaim::Differs, Some(ratio), Some(interval)) => {
            let is_large = !(1.0 / FACTOR_MIN..FACTOR_MIN).contains(&ratio);
            match has_size || is_large {
                true => bring(format!("{} ({})", by(ratio, interval), range(interval))),
                false => by_share(figure, ratio, interval),
            }
        }
        (EffectClaim::Within, _, Some([low, high])) if has_size => {
            let [at_least, at_most] = [low, high].map(|end| by(end, [low, high]));
            bring(format!("at least {at_least} and at most {at_most}"))
        }
        (EffectClaim::Within, _, Some(interval)) => within(figure, interval),
        (EffectClaim::RatioOnly, Some(ratio), _) => {
            bring(format!("{}, {}", x(ratio), without_interval(effect.basis)))
        }
        (EffectClaim::AtLeast, Some(ratio), _) => {
            bring(format!("at least {}, since the server would have carried more", x(ratio)))
        }
        (EffectClaim::AtMost, Some(ratio), _) => {
            bring(format!("at most {}, since the server would have carried more without", x(ratio)))
        }
        (EffectClaim::Open, ..) => says(
            "cannot",
            "be judged: the server would have carried more both with and without".to_owned(),
        ),
        _ => says("cannot", "be judged: no combination has runs both with and without".to_owned()),
    }
}

/// `costs 9.1 % (8.2–10.0)`.
fn by_share(figure: RatioFigure, ratio: f64, interval: [f64; 2]) -> Says {
    let share = shares(ratio, interval);
    let (verb, of) = match (figure.is_less_better(), ratio < 1.0) {
        (false, true) => ("costs", String::new()),
        (false, false) => ("brings", String::new()),
        (true, true) => ("lowers", format!("{} by ", ratios::name(figure))),
        (true, false) => ("raises", format!("{} by ", ratios::name(figure))),
    };
    Says { verb: verb.to_owned(), object: format!("{of}{share}") }
}

/// An effect that may be none is no larger than its interval; the worse comes first.
fn within(figure: RatioFigure, [low, high]: [f64; 2]) -> Says {
    let (less, more) = (percent(1.0 - low), percent(high - 1.0));
    let (verb, object) = match figure.is_less_better() {
        false => ("costs", format!("at most {less} (or brings at most {more})")),
        true => {
            let name = ratios::name(figure);
            ("raises", format!("{name} by at most {more} (or lowers it by at most {less})"))
        }
    };
    Says { verb: verb.to_owned(), object }
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
    let places = decimals(a.min(share), 2).min(2);
    format!("{share:.places$} % ({a:.places$}–{b:.places$})")
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
    let found = it.interaction?;
    let [above, below] = found.degrees;
    let test = format!("F({above:.0}, {below:.0}) = {}, p {}", three_digits(found.f), p(found.p));
    Some(match found.found {
        true => format!(
            "The effects depend on each other ({test}): each is stated at the levels of the others."
        ),
        false => format!(
            "The effects do not visibly depend on each other ({test}). Four of five such \
             experiments would detect it if the effect of a factor differed by {} between two \
             levels of another.",
            percent(found.detectable - 1.0)
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
            "The best combination is {other}: {ratio}{interval} of {first}, by an interval that \
             holds for all combinations at once."
        ),
        BestClaim::RunAgain => format!(
            "The {mean} mean is that of {other}: {ratio}{interval} of {first}. Among {} \
             combinations that may be chance; run both again.",
            it.cells.len()
        ),
    })
}

/// How throughput grows.
pub(super) fn law(it: &Experiment, law: &Law) -> Option<String> {
    let factor = it.factors.get(law.factor)?;
    let (fit, held) = (&law.fit, held(it, &law.at));
    let at = if held.is_empty() { String::new() } else { format!(" with {held}") };
    let number = |value: f64| if value < 1e-6 { "0".to_owned() } else { three_digits(value) };
    let known = |value: f64, [low, high]: [f64; 2]| {
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
        known(fit.alpha, fit.alpha_interval),
        known(fit.beta, fit.beta_interval),
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
