//! How many tokens a prompt or an answer is to have: a number, or a distribution that each request
//! draws from.

use std::borrow::Cow;
use std::fmt;

use plimsoll_engine::rng;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// More than any server's context.
pub(crate) const TOKENS_MAX: u32 = 4_000_000;
/// Draws of a bounded distribution before its nearest bound is taken.
const DRAWS_MAX: u64 = 32;

/// A number of tokens, or how it is drawn. A suite has it as a number or as text: `512`,
/// `"uniform 64..256"`, `"lognormal 200 150 1..2000"` (mean, standard deviation, bounds).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Always the same.
    Fixed(u32),
    /// All equally likely, both bounds included.
    Uniform {
        /// Least.
        from: u32,
        /// Most.
        to: u32,
    },
    /// Lognormal; what lies outside the bounds is drawn again.
    Lognormal {
        /// Before it is bounded.
        mean: f64,
        /// Standard deviation, before it is bounded.
        deviation: f64,
        /// Least.
        from: u32,
        /// Most.
        to: u32,
    },
}

impl Length {
    /// Reads the text; `None` where it is no length.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split_whitespace().collect();
        let length = match parts[..] {
            ["uniform", bounds] => {
                let (from, to) = read_bounds(bounds)?;
                Self::Uniform { from, to }
            }
            ["lognormal", mean, deviation, bounds] => {
                let (from, to) = read_bounds(bounds)?;
                let positive = |text: &str| {
                    let number = text.parse::<f64>().ok()?;
                    (number > 0.0 && number <= f64::from(TOKENS_MAX)).then_some(number)
                };
                Self::Lognormal { mean: positive(mean)?, deviation: positive(deviation)?, from, to }
            }
            [number] => Self::Fixed(read_tokens(number)?),
            _ => return None,
        };
        Some(length)
    }

    /// The length that follows from `key`.
    pub(crate) fn draw(self, key: u64) -> u32 {
        match self {
            Self::Fixed(tokens) => tokens,
            Self::Uniform { from, to } => from + rng::below(key, u64::from(to - from) + 1) as u32,
            Self::Lognormal { mean, deviation, from, to } => {
                let spread = (1.0 + (deviation / mean).powi(2)).ln();
                let middle = mean.ln() - spread / 2.0;
                let one =
                    |draw| (middle + spread.sqrt() * rng::normal(rng::key(&[key, draw]))).exp();
                let within = |tokens: &f64| (f64::from(from)..=f64::from(to)).contains(tokens);
                let tokens = (0..DRAWS_MAX).map(one).map(f64::round).find(within);
                tokens.map_or_else(|| (mean as u32).clamp(from, to), |tokens| tokens as u32)
            }
        }
    }

    /// The most it can be.
    pub(crate) const fn most(self) -> u32 {
        match self {
            Self::Fixed(tokens) => tokens,
            Self::Uniform { to, .. } | Self::Lognormal { to, .. } => to,
        }
    }
}

fn read_tokens(text: &str) -> Option<u32> {
    text.parse().ok().filter(|tokens| (1..=TOKENS_MAX).contains(tokens))
}

fn read_bounds(text: &str) -> Option<(u32, u32)> {
    let (from, to) = text.split_once("..")?;
    let (from, to) = (read_tokens(from)?, read_tokens(to)?);
    (from <= to).then_some((from, to))
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(tokens) => write!(f, "{tokens}"),
            Self::Uniform { from, to } => write!(f, "uniform {from}..{to}"),
            Self::Lognormal { mean, deviation, from, to } => {
                write!(f, "lognormal {mean} {deviation} {from}..{to}")
            }
        }
    }
}

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(tokens) => serializer.serialize_u32(*tokens),
            drawn => serializer.collect_str(drawn),
        }
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reads;

        impl Visitor<'_> for Reads {
            type Value = Length;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a number of tokens from 1, \"uniform 64..256\" or \"lognormal 200 150 1..2000\" \
                     (mean, standard deviation, bounds)",
                )
            }

            fn visit_i64<E: serde::de::Error>(self, tokens: i64) -> Result<Length, E> {
                self.visit_str(&tokens.to_string())
            }

            fn visit_u64<E: serde::de::Error>(self, tokens: u64) -> Result<Length, E> {
                self.visit_str(&tokens.to_string())
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Length, E> {
                let wrong = || E::invalid_value(serde::de::Unexpected::Str(text), &self);
                Length::parse(text).ok_or_else(wrong)
            }
        }

        deserializer.deserialize_any(Reads)
    }
}

impl JsonSchema for Length {
    fn schema_name() -> Cow<'static, str> {
        "Length".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "examples": [512, "uniform 64..256", "lognormal 200 150 1..2000"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str) -> Vec<f64> {
        let length = Length::parse(text).unwrap();
        (0..20_000).map(|key| f64::from(length.draw(rng::key(&[key])))).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn lengths_are_drawn_as_their_distribution_says() {
        assert!(drawn("512").iter().all(|tokens| *tokens == 512.0));
        let uniform = drawn("uniform 10..20");
        assert!((10..=20).all(|n| uniform.contains(&f64::from(n))));
        assert!((mean(&uniform) - 15.0).abs() < 0.1);
        let lognormal = drawn("lognormal 200 100 1..100000");
        let about = mean(&lognormal);
        let squares: Vec<f64> = lognormal.iter().map(|n| (n - about).powi(2)).collect();
        assert!((about / 200.0 - 1.0).abs() < 0.03, "{about}");
        assert!((mean(&squares).sqrt() / 100.0 - 1.0).abs() < 0.06);
    }

    #[test]
    fn a_bounded_distribution_keeps_its_bounds_even_where_they_are_far_out() {
        for text in ["lognormal 200 300 100..250", "lognormal 200 10 1..50", "uniform 7..7"] {
            let length = Length::parse(text).unwrap();
            let bounds = match length {
                Length::Lognormal { from, to, .. } | Length::Uniform { from, to } => from..=to,
                Length::Fixed(_) => unreachable!("{text}"),
            };
            assert!(
                (0..2_000).all(|key| bounds.contains(&length.draw(rng::key(&[key])))),
                "{text}"
            );
        }
    }

    #[test]
    fn a_length_reads_back_as_it_is_written() {
        for text in ["512", "uniform 64..256", "lognormal 200.5 150 1..2000"] {
            assert_eq!(Length::parse(text).unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "0",
            "-1",
            "x",
            "uniform",
            "uniform 9..8",
            "uniform 0..8",
            "512 tokens",
            "lognormal 0 1 1..2",
            "lognormal nan 1 1..2",
            "5000000",
        ] {
            assert_eq!(Length::parse(wrong), None, "{wrong:?}");
        }
    }
}
