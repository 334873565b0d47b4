//! A server of known behaviour, as data: the law of its service times, how many servers it has,
//! and a pause it makes. Written `service=exp:1ms,servers=4,stall=1400ms@5s,seed=7`.

use std::f64::consts::TAU;
use std::fmt;
use std::str::FromStr;

use crate::units::{Nanos, parse_span, span_text};

/// Most servers of one queue: each costs a look per arrival.
pub const SERVERS_MAX: u32 = 1_024;
/// Longest service time that is drawn, and longest pause.
pub const SERVICE_MAX: Nanos = Nanos::from_secs(3_600);
/// Widest lognormal: at 4 the mean is 3,000 medians already.
const SIGMA_MAX: f64 = 4.0;
/// Seed when none is given.
const SEED_DEFAULT: u64 = 1;

/// What a calibrated server does.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibratedSpec {
    /// How long a service takes.
    pub service: ServiceLaw,
    /// Services at a time.
    pub servers: u32,
    /// A pause, once.
    pub stall: Option<Stall>,
    /// Service times follow from this and the number of the request.
    pub seed: u64,
}

/// A pause in which nothing is served and nothing leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// For how long.
    pub length: Nanos,
    /// When it begins, from the first request on.
    pub after: Nanos,
}

/// Distribution of service times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServiceLaw {
    /// Always the same.
    Constant(Nanos),
    /// Even between the two.
    Uniform(Nanos, Nanos),
    /// Exponential with this mean.
    Exponential(Nanos),
    /// Lognormal: its logarithm is normal.
    Lognormal {
        /// Half are shorter.
        median: Nanos,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
}

impl ServiceLaw {
    /// Mean, in seconds.
    pub fn mean_s(&self) -> f64 {
        match *self {
            Self::Constant(time) | Self::Exponential(time) => time.as_secs_f64(),
            Self::Uniform(low, high) => f64::midpoint(low.as_secs_f64(), high.as_secs_f64()),
            Self::Lognormal { median, sigma } => median.as_secs_f64() * (sigma * sigma / 2.0).exp(),
        }
    }

    /// Mean of the square, in seconds².
    pub fn second_moment_s2(&self) -> f64 {
        match *self {
            Self::Constant(time) => time.as_secs_f64().powi(2),
            Self::Exponential(mean) => 2.0 * mean.as_secs_f64().powi(2),
            Self::Uniform(low, high) => {
                let (low, high) = (low.as_secs_f64(), high.as_secs_f64());
                (low * low + low * high + high * high) / 3.0
            }
            Self::Lognormal { median, sigma } => {
                median.as_secs_f64().powi(2) * (2.0 * sigma * sigma).exp()
            }
        }
    }

    /// A service time from numbers that are uniform in `[0, 1)`: by inversion, the lognormal by
    /// Box and Muller's transform of two.
    pub fn draw(&self, mut unit: impl FnMut() -> f64) -> Nanos {
        let ns = match *self {
            Self::Constant(time) => return time,
            Self::Uniform(low, high) => low.0 as f64 + (high.0 - low.0) as f64 * unit(),
            Self::Exponential(mean) => -(1.0 - unit()).ln() * mean.0 as f64,
            Self::Lognormal { median, sigma } => {
                let radius = (-2.0 * (1.0 - unit()).ln()).sqrt();
                median.0 as f64 * (sigma * radius * (TAU * unit()).cos()).exp()
            }
        };
        Nanos(ns.round() as u64).min(SERVICE_MAX)
    }
}

impl CalibratedSpec {
    /// Requests per second it can serve in the long run; `None` when a service takes no time.
    pub fn capacity_ops_per_s(&self) -> Option<f64> {
        let mean_s = self.service.mean_s();
        (mean_s > 0.0).then(|| f64::from(self.servers) / mean_s)
    }
}

/// Why a text describes no calibrated server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalibratedSpecError {
    /// A part is not `KEY=VALUE` of a known key.
    #[error("{0:?} is not known; write service=LAW,servers=N[,stall=LENGTH@AFTER][,seed=N]")]
    Key(String),
    /// No law was given.
    #[error("no service is given; write for example service=exp:1ms")]
    NoService,
    /// Not a law.
    #[error(
        "service {0:?} is not known; write const:TIME, uniform:LOW:HIGH, exp:MEAN or \
         lognormal:MEDIAN:SIGMA, times up to an hour (1ms, 500us), sigma from 0 to 4"
    )]
    Service(String),
    /// Not a number of servers.
    #[error("servers {0:?}: write a number from 1 to {SERVERS_MAX}")]
    Servers(String),
    /// Not a pause.
    #[error("stall {0:?}: write LENGTH@AFTER, for example 1400ms@5s: up to an hour each")]
    Stall(String),
    /// Not a seed.
    #[error("seed {0:?}: write a whole number")]
    Seed(String),
}

impl FromStr for CalibratedSpec {
    type Err = CalibratedSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut service = None;
        let (mut servers, mut stall, mut seed) = (1, None, SEED_DEFAULT);
        for part in text.split(',') {
            let unknown = || CalibratedSpecError::Key(part.to_owned());
            let (key, value) = part.split_once('=').ok_or_else(unknown)?;
            let own = || value.to_owned();
            match key.trim() {
                "service" => service = Some(value.parse()?),
                "servers" => {
                    let number = value.parse().ok().filter(|n| (1..=SERVERS_MAX).contains(n));
                    servers = number.ok_or_else(|| CalibratedSpecError::Servers(own()))?;
                }
                "stall" => {
                    let parsed = parse_stall(value);
                    stall = Some(parsed.ok_or_else(|| CalibratedSpecError::Stall(own()))?);
                }
                "seed" => seed = value.parse().map_err(|_| CalibratedSpecError::Seed(own()))?,
                _ => return Err(unknown()),
            }
        }
        let service = service.ok_or(CalibratedSpecError::NoService)?;
        Ok(Self { service, servers, stall, seed })
    }
}

impl FromStr for ServiceLaw {
    type Err = CalibratedSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split(':').collect();
        let law = match parts[..] {
            ["const", time] => span(time).map(Self::Constant),
            ["exp", mean] => span(mean).map(Self::Exponential),
            ["uniform", low, high] => span(low)
                .zip(span(high))
                .filter(|(low, high)| low <= high)
                .map(|(low, high)| Self::Uniform(low, high)),
            ["lognormal", median, sigma] => span(median)
                .zip(sigma.parse().ok().filter(|sigma| (0.0..=SIGMA_MAX).contains(sigma)))
                .map(|(median, sigma)| Self::Lognormal { median, sigma }),
            _ => None,
        };
        law.ok_or_else(|| CalibratedSpecError::Service(text.to_owned()))
    }
}

fn parse_stall(text: &str) -> Option<Stall> {
    let (length, after) = text.split_once('@')?;
    Some(Stall { length: span(length)?, after: span(after)? })
}

/// A span within the limit; zero needs no unit.
fn span(text: &str) -> Option<Nanos> {
    let span = if text == "0" { Nanos::ZERO } else { parse_span(text)? };
    (span <= SERVICE_MAX).then_some(span)
}

impl fmt::Display for CalibratedSpec {
    /// As [`FromStr`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "service={},servers={}", self.service, self.servers)?;
        if let Some(Stall { length, after }) = self.stall {
            write!(f, ",stall={}@{}", span_text(length), span_text(after))?;
        }
        write!(f, ",seed={}", self.seed)
    }
}

impl fmt::Display for ServiceLaw {
    /// As [`FromStr`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Constant(time) => write!(f, "const:{}", span_text(time)),
            Self::Uniform(low, high) => write!(f, "uniform:{}:{}", span_text(low), span_text(high)),
            Self::Exponential(mean) => write!(f, "exp:{}", span_text(mean)),
            Self::Lognormal { median, sigma } => {
                write!(f, "lognormal:{}:{sigma}", span_text(median))
            }
        }
    }
}

/// A 53-bit fraction in `[0, 1)` from 64 random bits.
pub fn unit_from_bits(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spec(text: &str) -> CalibratedSpec {
        text.parse().unwrap()
    }

    #[test]
    fn a_description_reads_back_as_it_was_written() {
        for text in [
            "service=exp:1ms,servers=4,seed=1",
            "service=const:500us,servers=1,stall=1400ms@5s,seed=7",
            "service=uniform:1ms:3ms,servers=2,seed=1",
            "service=lognormal:2ms:0.5,servers=1,seed=1",
            "service=const:0,servers=1",
        ] {
            assert_eq!(spec(&spec(text).to_string()), spec(text), "{text}");
        }
        assert_eq!(spec("service=exp:1ms,servers=4").capacity_ops_per_s(), Some(4_000.0));
        assert_eq!(spec("service=const:0").capacity_ops_per_s(), None);
    }

    #[test]
    fn a_wrong_description_is_refused_with_what_to_write() {
        for (text, expected) in [
            ("servers=4", "no service"),
            ("service=exp", "const:TIME"),
            ("service=exp:1", "const:TIME"),
            ("service=exp:2h", "an hour"),
            ("service=uniform:3ms:1ms", "uniform:LOW:HIGH"),
            ("service=lognormal:1ms:NaN", "sigma"),
            ("service=exp:1ms,servers=0", "from 1 to 1024"),
            ("service=exp:1ms,stall=5s", "LENGTH@AFTER"),
            ("service=exp:1ms,seed=x", "whole number"),
            ("service=exp:1ms,sevrers=4", "sevrers"),
        ] {
            let error = text.parse::<CalibratedSpec>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn draws_have_the_moments_that_the_law_names() {
        // A fixed sequence that fills the unit interval evenly enough: Weyl's.
        let mut state = 0.5_f64;
        let mut unit = || {
            state = (state + 0.618_033_988_749_895).fract();
            state
        };
        for text in ["const:2ms", "uniform:1ms:3ms", "exp:1ms"] {
            let law: ServiceLaw = text.parse().unwrap();
            let draws: Vec<f64> = (0..400_000).map(|_| law.draw(&mut unit).as_secs_f64()).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let square = draws.iter().map(|x| x * x).sum::<f64>() / draws.len() as f64;
            assert!((mean / law.mean_s() - 1.0).abs() < 1e-3, "{text}: mean {mean}");
            assert!((square / law.second_moment_s2() - 1.0).abs() < 3e-3, "{text}: {square}");
        }
    }

    #[test]
    fn the_lognormal_has_its_median_and_its_mean() {
        let law = ServiceLaw::Lognormal { median: Nanos::from_millis(2), sigma: 0.5 };
        // Hand-computed: 2 ms · e^{1/8}.
        assert!((law.mean_s() - 2.266_297e-3).abs() < 1e-8, "{}", law.mean_s());
        let mut bits = 1_u64;
        let mut unit = || {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            unit_from_bits(bits)
        };
        let mut draws: Vec<u64> = (0..200_001).map(|_| law.draw(&mut unit).0).collect();
        draws.sort_unstable();
        let mean = draws.iter().sum::<u64>() as f64 / draws.len() as f64 / 1e9;
        assert!((draws[100_000] as f64 / 2e6 - 1.0).abs() < 0.01, "{}", draws[100_000]);
        assert!((mean / law.mean_s() - 1.0).abs() < 0.01, "{mean}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,60}") {
            if let Ok(read) = text.parse::<CalibratedSpec>() {
                prop_assert_eq!(read.to_string().parse::<CalibratedSpec>(), Ok(read));
            }
        }
    }
}
