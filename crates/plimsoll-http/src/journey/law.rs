//! Think times, sizes and repeats as text, and how they are drawn: each draw follows from a key.

use std::fmt;
use std::sync::Arc;

use plimsoll_engine::rng;
use plimsoll_model::units::{Nanos, parse_span, span_text};

/// Longest think time.
const SPAN_MAX: Nanos = Nanos::from_secs(3_600);
/// Largest reply.
pub(crate) const SIZE_MAX: u64 = 1 << 40;
/// Most repeats of a page.
const COUNT_MAX: u32 = 10_000;
/// Largest shape of a lognormal.
const SHAPE_MAX: f64 = 5.0;
/// Quantiles of a law: steps of a ten-thousandth.
const QUANTILES_MAX: usize = 10_001;

/// What a think time may be, for messages.
pub(crate) const SPANS: &str = "\"constant 1s\", \"uniform 1s..3s\", \"exponential 7s\", \"lognormal \
                                2s 0.8\" (mean, and shape: the deviation of its logarithm) or \
                                \"quantiles 0s 1s 9s\" (from the minimum to the maximum, evenly \
                                spaced), each also with \"max 70s\"";
/// What the number of repeats of a page may be.
pub(crate) const PAGE_COUNTS: &str =
    "\"3\", \"uniform 1..5\", \"geometric 2.5\" or \"mean 2.5\" (means from 1)";
/// What a number of repeats may be.
pub(crate) const COUNTS: &str = "\"3\", \"uniform 1..5\", \"geometric 2.5\" (its mean, from 1) or \
                                 \"mean 0.35\" (a whole number next to it)";

/// What a size may be.
pub(crate) const SIZES: &str = "\"13294\", \"uniform 1000..3000\", \"exponential 5000\", \"lognormal \
                                9357 1.3\" or \"quantiles 120 300 9000\", in bytes, each also with \
                                \"max 100000\"; or a column of the data in the path, such as \
                                \"{{item.bytes}}\"";

/// How a whole number is drawn.
#[derive(Clone, Debug, PartialEq)]
struct Law {
    shape: LawShape,
    /// A larger one is cut to this.
    max: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum LawShape {
    Constant(u64),
    Uniform(u64, u64),
    Exponential(u64),
    Lognormal {
        mean: u64,
        shape: f64,
    },
    /// Evenly spaced quantiles, from the minimum to the maximum; linear between them.
    Quantiles(Arc<[u64]>),
}

impl Law {
    /// Reads the text, whose numbers `number` reads; `None` where it is no law.
    fn parse(text: &str, max: u64, number: impl Fn(&str) -> Option<u64>) -> Option<Self> {
        let number = |text: &str| number(text).filter(|number| *number <= max);
        let tokens: Vec<&str> = text.split_whitespace().collect();
        let (law, max) = match &tokens[..] {
            [law @ .., "max", max] => (law, number(max).filter(|max| *max > 0)?),
            law => (law, max),
        };
        let shape = match law {
            ["constant", value] => LawShape::Constant(number(value)?),
            ["uniform", bounds] => {
                let (from, to) = bounds.split_once("..")?;
                let (from, to) = (number(from)?, number(to)?);
                (from <= to).then_some(LawShape::Uniform(from, to))?
            }
            ["exponential", mean] => LawShape::Exponential(number(mean)?),
            ["lognormal", mean, shape] => {
                let shape = shape.parse().ok().filter(|it| (0.0..=SHAPE_MAX).contains(it))?;
                LawShape::Lognormal { mean: number(mean)?, shape }
            }
            ["quantiles", values @ ..] if (2..=QUANTILES_MAX).contains(&values.len()) => {
                let values: Option<Arc<[u64]>> = values.iter().map(|value| number(value)).collect();
                LawShape::Quantiles(values.filter(|values| values.is_sorted())?)
            }
            _ => return None,
        };
        Some(Self { shape, max })
    }

    fn draw(&self, key: u64) -> u64 {
        let unit = rng::unit(key);
        let scaled = |value: u64, factor: f64| (value as f64 * factor) as u64;
        let value = match &self.shape {
            LawShape::Constant(value) => *value,
            LawShape::Uniform(from, to) => from + scaled(to - from, unit),
            LawShape::Exponential(mean) => scaled(*mean, -(1.0 - unit).ln()),
            LawShape::Lognormal { mean, shape } => {
                scaled(*mean, (shape * rng::normal(key) - shape * shape / 2.0).exp())
            }
            LawShape::Quantiles(values) => {
                let position = unit * (values.len() - 1) as f64;
                let below = (position as usize).min(values.len() - 2);
                let (from, to) = (values[below], values[below + 1]);
                from + ((to - from) as f64 * (position - below as f64)).round() as u64
            }
        };
        value.min(self.max)
    }
}

/// How long a pause is.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanLaw(Law);

impl SpanLaw {
    /// No pause.
    pub const NONE: Self = Self(Law { shape: LawShape::Constant(0), max: SPAN_MAX.0 });

    /// Reads the text; `None` where it is no law.
    pub fn parse(text: &str) -> Option<Self> {
        Law::parse(text, SPAN_MAX.0, |text| Some(parse_span(text)?.0)).map(Self)
    }

    /// The pause that follows from `key`.
    pub fn draw(&self, key: u64) -> Nanos {
        Nanos(self.0.draw(key))
    }
}

impl fmt::Display for SpanLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |ns: u64| span_text(Nanos(ns));
        match &self.0.shape {
            LawShape::Constant(0) => f.write_str("none")?,
            LawShape::Constant(span) => write!(f, "constant {}", text(*span))?,
            LawShape::Uniform(from, to) => write!(f, "uniform {}..{}", text(*from), text(*to))?,
            LawShape::Exponential(mean) => write!(f, "exponential {}", text(*mean))?,
            LawShape::Lognormal { mean, shape } => write!(f, "lognormal {} {shape}", text(*mean))?,
            LawShape::Quantiles(values) => {
                let (from, to) = (values[0], values[values.len() - 1]);
                let (from, to) = (text(from), text(to));
                write!(f, "{} quantiles from {from} to {to}", values.len())?;
            }
        }
        match Nanos(self.0.max) {
            SPAN_MAX => Ok(()),
            max => write!(f, " max {}", span_text(max)),
        }
    }
}

/// How large a reply is, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeLaw(Law);

impl SizeLaw {
    /// Reads the text; `None` where it is no law.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.parse().ok();
        let constant = number(text.trim()).map(|bytes: u64| format!("constant {bytes}"));
        Law::parse(constant.as_deref().unwrap_or(text), SIZE_MAX, number).map(Self)
    }

    /// The size that follows from `key`.
    pub fn draw(&self, key: u64) -> u64 {
        self.0.draw(key)
    }

    /// The size that all replies have, if they have one.
    pub fn constant(&self) -> Option<u64> {
        match self.0.shape {
            LawShape::Constant(bytes) => Some(bytes.min(self.0.max)),
            _ => None,
        }
    }
}

/// How often a request is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CountLaw {
    /// Always as often.
    Constant(u32),
    /// Both bounds included, all equally likely.
    Uniform(u32, u32),
    /// From 1, with this mean.
    Geometric(f64),
    /// The whole number below or above, so that this is the mean; below 1 the request may not be
    /// made at all.
    Mean(f64),
}

impl CountLaw {
    /// Reads the text; `None` where it is no law.
    pub fn parse(text: &str) -> Option<Self> {
        let count = |text: &str| text.parse().ok().filter(|n| (1..=COUNT_MAX).contains(n));
        let tokens: Vec<&str> = text.split_whitespace().collect();
        match tokens[..] {
            [value] => Some(Self::Constant(count(value)?)),
            ["uniform", bounds] => {
                let (from, to) = bounds.split_once("..")?;
                let (from, to) = (count(from)?, count(to)?);
                (from <= to).then_some(Self::Uniform(from, to))
            }
            ["geometric", mean] => {
                let mean = mean.parse().ok()?;
                (1.0..=f64::from(COUNT_MAX)).contains(&mean).then_some(Self::Geometric(mean))
            }
            ["mean", mean] => {
                let mean = mean.parse().ok()?;
                (mean > 0.0 && mean <= f64::from(COUNT_MAX)).then_some(Self::Mean(mean))
            }
            _ => None,
        }
    }

    /// It may be zero.
    pub fn may_be_none(self) -> bool {
        matches!(self, Self::Mean(mean) if mean < 1.0)
    }

    /// The number that follows from `key`.
    pub fn draw(self, key: u64) -> u32 {
        match self {
            Self::Constant(count) => count,
            Self::Uniform(from, to) => from + rng::below(key, u64::from(to - from) + 1) as u32,
            Self::Geometric(mean) => {
                let again = 1.0 - 1.0 / mean;
                let more = (1.0 - rng::unit(key)).ln() / again.ln();
                // Nothing over nothing where it is always 1.
                1 + if more.is_finite() { (more as u32).min(COUNT_MAX) } else { 0 }
            }
            Self::Mean(mean) => mean as u32 + u32::from(rng::unit(key) < mean.fract()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_s(text: &str) -> f64 {
        let law = SpanLaw::parse(text).unwrap();
        let n = 40_000;
        let sum: f64 = (0..n).map(|key| law.draw(rng::key(&[7, key])).as_secs_f64()).sum();
        sum / n as f64
    }

    #[test]
    fn every_law_has_its_mean_and_keeps_its_bounds() {
        assert_eq!(mean_s("constant 1500ms"), 1.5);
        assert!((mean_s("uniform 1s..3s") - 2.0).abs() < 0.02);
        assert!((mean_s("exponential 7s") - 7.0).abs() < 0.14);
        assert!((mean_s("lognormal 2s 0.8") - 2.0).abs() < 0.06);
        let cut = SpanLaw::parse("exponential 7s max 10s").unwrap();
        assert!((0..1_000).all(|key| cut.draw(rng::key(&[key])) <= Nanos::from_secs(10)));
        // E min(X, m) of an exponential.
        let expected = 7.0 * (1.0 - (-10.0f64 / 7.0).exp());
        assert!((mean_s("exponential 7s max 10s") - expected).abs() < 0.1);
    }

    #[test]
    fn laws_are_written_as_they_are_read_and_others_are_refused() {
        for text in
            ["constant 1s", "uniform 1s..3s", "exponential 200ms", "lognormal 2s 0.8 max 9s"]
        {
            assert_eq!(SpanLaw::parse(text).unwrap().to_string(), text);
        }
        for bad in ["", "1s", "uniform 3s..1s", "normal 1s", "constant 2h", "exponential 1s max 0s"]
        {
            assert_eq!(SpanLaw::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_are_numbers_or_laws_of_them() {
        assert_eq!(SizeLaw::parse("13294").unwrap().draw(3), 13_294);
        let law = SizeLaw::parse("lognormal 9357 1.3 max 100000").unwrap();
        assert!((0..1_000).all(|key| law.draw(rng::key(&[key])) <= 100_000));
        for bad in
            ["", "5kB", "uniform 9..1", "2000000000000", "-1", "quantiles 5", "quantiles 9 1"]
        {
            assert_eq!(SizeLaw::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn quantiles_are_kept_with_straight_lines_between_them() {
        let law = SizeLaw::parse("quantiles 100 200 200 1000").unwrap();
        let mut drawn: Vec<u64> = (0..30_000).map(|key| law.draw(rng::key(&[5, key]))).collect();
        drawn.sort_unstable();
        let quantile = |share: f64| drawn[(share * 30_000.0) as usize];
        for (share, expected) in [(0.0, 100), (1.0 / 6.0, 150), (0.5, 200), (5.0 / 6.0, 600)] {
            assert!(quantile(share).abs_diff(expected) < 20, "{share}: {}", quantile(share));
        }
        assert!(*drawn.last().unwrap() <= 1_000 && quantile(0.999) > 990);
        let span = SpanLaw::parse("quantiles 0s 1s 9s max 8s").unwrap();
        assert_eq!(span.to_string(), "3 quantiles from 0s to 9s max 8s");
        assert_eq!(SpanLaw::parse("quantiles 0s 5"), None);
    }

    #[test]
    fn repeats_have_their_means() {
        let mean = |text: &str| {
            let law = CountLaw::parse(text).unwrap();
            let sum: u64 = (0..20_000).map(|key| u64::from(law.draw(rng::key(&[3, key])))).sum();
            sum as f64 / 20_000.0
        };
        assert_eq!(mean("3"), 3.0);
        assert!((mean("uniform 1..5") - 3.0).abs() < 0.05);
        assert!((mean("geometric 2.5") - 2.5).abs() < 0.05);
        assert_eq!(mean("geometric 1"), 1.0);
        assert!((mean("mean 0.35") - 0.35).abs() < 0.02);
        assert!((mean("mean 2.25") - 2.25).abs() < 0.02);
        assert_eq!(mean("mean 2"), 2.0);
        let may_be_none = |text: &str| CountLaw::parse(text).unwrap().may_be_none();
        assert!(may_be_none("mean 0.35") && !may_be_none("mean 1") && !may_be_none("3"));
        assert!(
            ["0", "uniform 5..1", "geometric 0.5", "-1", "mean 0", "mean x", "mean NaN"]
                .iter()
                .all(|t| CountLaw::parse(t).is_none())
        );
    }
}
