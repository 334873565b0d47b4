//! Laws fitted to what the log has: popularity by Zipf's law, think times and sizes by the closest
//! of a few laws or, where none is close, by their own quantiles.

use hdrhistogram::Histogram;
use plimsoll_model::units::{Nanos, span_text};
use serde::Serialize;

/// Pages with fewer requests are left out of the fit: their ranks are chance.
const ZIPF_REQUESTS_MIN: u64 = 20;
/// Largest exponent that is looked for.
const ZIPF_EXPONENT_MAX: f64 = 5.0;
/// Distance of two distribution functions up to which a law does for a large sample.
const DISTANCE_MAX: f64 = 0.02;
/// Larger values are cut to this: an hour of microseconds is far below.
const VALUE_MAX: u64 = 1 << 50;
/// Parts of a law that is made of quantiles.
const QUANTILES: u32 = 100;

/// Popularity by rank: of the r-th page, proportional to r to the minus exponent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ZipfFit {
    /// By maximum likelihood.
    pub exponent: f64,
    /// 95 % of the exponent.
    pub interval: [f64; 2],
    /// Paths with at least 20 requests.
    pub paths: usize,
    /// Their requests.
    pub requests: u64,
}

impl ZipfFit {
    /// Of the requests of each path; `None` for fewer than three frequent ones.
    pub fn from_counts(counts: impl Iterator<Item = u64>) -> Option<Self> {
        let mut counts: Vec<u64> = counts.filter(|count| *count >= ZIPF_REQUESTS_MIN).collect();
        if counts.len() < 3 {
            return None;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let logs: Vec<f64> = (1..=counts.len()).map(|rank| (rank as f64).ln()).collect();
        let requests: u64 = counts.iter().sum();
        let observed: f64 = counts.iter().zip(&logs).map(|(count, log)| *count as f64 * log).sum();
        let observed = observed / requests as f64;
        // The mean of ln r falls with the exponent.
        let (mut low, mut high) = (0.0, ZIPF_EXPONENT_MAX);
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            match moments(&logs, middle).0 > observed {
                true => low = middle,
                false => high = middle,
            }
        }
        let exponent = f64::midpoint(low, high);
        let error = 1.96 / (requests as f64 * moments(&logs, exponent).1).sqrt();
        let interval = [exponent - error, exponent + error];
        Some(Self { exponent, interval, paths: counts.len(), requests })
    }
}

/// Mean and variance of ln r by Zipf's law.
fn moments(logs: &[f64], exponent: f64) -> (f64, f64) {
    let sums = logs.iter().fold([0.0; 3], |sums, log| {
        let weight = (-exponent * log).exp();
        [sums[0] + weight, sums[1] + weight * log, sums[2] + weight * log * log]
    });
    let mean = sums[1] / sums[0];
    (mean, sums[2] / sums[0] - mean * mean)
}

/// Values of a quantity that is not negative: sizes in bytes, or times in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    values: Histogram<u32>,
    sum: f64,
    /// Values above zero, the sum of their logarithms and of the squares of those.
    logs: [f64; 3],
}

impl Default for Sample {
    fn default() -> Self {
        // Three digits are in range.
        let values = Histogram::new(3).expect("three digits are supported");
        Self { values, sum: 0.0, logs: [0.0; 3] }
    }
}

/// A law and how far from the sample its distribution function is at most.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FittedLaw {
    pub law: Law,
    pub distance: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Law {
    Constant(f64),
    Exponential { mean: f64 },
    Lognormal { mean: f64, shape: f64 },
    Quantiles(Vec<f64>),
}

impl Sample {
    /// One more value.
    pub fn insert(&mut self, value: u64) {
        // It grows; what no histogram of 64 bits has is cut.
        _ = self.values.record(value.min(VALUE_MAX));
        self.sum += value as f64;
        if value > 0 {
            let log = (value as f64).ln();
            self.logs = [self.logs[0] + 1.0, self.logs[1] + log, self.logs[2] + log * log];
        }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.values.len()
    }

    /// Their mean; `None` without any.
    pub fn mean(&self) -> Option<f64> {
        (self.len() > 0).then(|| self.sum / self.len() as f64)
    }

    /// The value below which this share of them is.
    pub fn quantile(&self, share: f64) -> f64 {
        let value = self.values.value_at_quantile(share);
        f64::midpoint(self.values.lowest_equivalent(value) as f64, value as f64)
    }

    /// Mean and standard deviation of the logarithms of those above zero.
    pub fn log_moments(&self) -> Option<(f64, f64)> {
        let [n, sum, squares] = self.logs;
        (n > 1.0).then(|| (sum / n, (squares / n - (sum / n).powi(2)).max(0.0).sqrt()))
    }

    /// The closest law with the sample's mean; its quantiles if none is close. `None` without a
    /// value.
    pub fn fit(&self) -> Option<FittedLaw> {
        let mean = self.mean()?;
        let (least, most) = (self.values.min() as f64, self.values.max() as f64);
        if most - least <= 0.02 * mean {
            return Some(FittedLaw { law: Law::Constant(mean), distance: 0.0 });
        }
        let mut laws = vec![Law::Exponential { mean }];
        if let Some((_, shape)) = self.log_moments().filter(|(_, shape)| *shape <= 5.0) {
            laws.push(Law::Lognormal { mean, shape });
        }
        let closest = laws.into_iter().map(|law| FittedLaw { distance: self.distance(&law), law });
        let closest = closest.min_by(|a, b| a.distance.total_cmp(&b.distance))?;
        // What chance leaves between a sample and its own law in 95 of 100.
        let chance = 1.36 / (self.len() as f64).sqrt();
        match closest.distance <= DISTANCE_MAX.max(chance) {
            true => Some(closest),
            false => Some(FittedLaw { law: self.quantiles(mean), distance: closest.distance }),
        }
    }

    /// Kolmogorov and Smirnov's distance.
    fn distance(&self, law: &Law) -> f64 {
        let n = self.len() as f64;
        let (mut below, mut largest) = (0.0, 0.0_f64);
        for step in self.values.iter_recorded() {
            let value = step.value_iterated_to();
            let low = law.share_below(self.values.lowest_equivalent(value) as f64);
            let high = law.share_below(value as f64 + 1.0);
            let share = below + f64::from(step.count_at_value()) / n;
            largest = largest.max(low - share).max(below - high).max(share - high).max(low - below);
            below = share;
        }
        largest
    }

    /// The last one is such that the law has this mean.
    fn quantiles(&self, mean: f64) -> Law {
        let share = |part: u32| f64::from(part) / f64::from(QUANTILES);
        let mut values: Vec<f64> = (0..QUANTILES).map(|part| self.quantile(share(part))).collect();
        values[0] = self.values.min() as f64;
        let (first, last) = (values[0], values[values.len() - 1]);
        let sum: f64 = values.iter().sum::<f64>() - first / 2.0;
        values.push((2.0 * (mean * f64::from(QUANTILES) - sum)).max(last));
        Law::Quantiles(values)
    }
}

impl Law {
    /// Share of the values below this one.
    fn share_below(&self, value: f64) -> f64 {
        match self {
            Self::Exponential { mean } => -(-value / mean).exp_m1(),
            Self::Lognormal { mean, shape } if *shape > 0.0 && value > 0.0 => {
                let location = mean.ln() - shape * shape / 2.0;
                normal_below((value.ln() - location) / shape)
            }
            Self::Lognormal { .. } => f64::from(u8::from(value > 0.0)),
            Self::Constant(_) | Self::Quantiles(_) => 0.5,
        }
    }

    /// As a think time of a journey: values are microseconds.
    pub fn span_law(&self) -> String {
        let span = |micros: &f64| span_text(Nanos::from_micros(micros.round() as u64));
        match self {
            Self::Constant(value) => format!("constant {}", span(value)),
            Self::Exponential { mean } => format!("exponential {}", span(mean)),
            Self::Lognormal { mean, shape } => format!("lognormal {} {shape:.4}", span(mean)),
            Self::Quantiles(values) => {
                format!("quantiles {}", values.iter().map(span).collect::<Vec<_>>().join(" "))
            }
        }
    }

    /// As a size of a journey, in bytes.
    pub fn size_law(&self) -> String {
        let bytes = |bytes: &f64| format!("{bytes:.0}");
        match self {
            Self::Constant(value) => bytes(value),
            Self::Exponential { mean } => format!("exponential {}", bytes(mean)),
            Self::Lognormal { mean, shape } => format!("lognormal {} {shape:.4}", bytes(mean)),
            Self::Quantiles(values) => {
                format!("quantiles {}", values.iter().map(bytes).collect::<Vec<_>>().join(" "))
            }
        }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Constant(_) => "constant",
            Self::Exponential { .. } => "exponential",
            Self::Lognormal { .. } => "lognormal",
            Self::Quantiles(_) => "quantiles of the log",
        }
    }
}

/// Share of the standard normal distribution below `z`. Abramowitz and Stegun 7.1.26, to 1.5e-7.
fn normal_below(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let terms = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let sum = terms.iter().fold(0.0, |sum, term| (sum + term) * t);
    let erf = 1.0 - sum * (-x * x).exp();
    if z < 0.0 { (1.0 - erf) / 2.0 } else { (1.0 + erf) / 2.0 }
}

#[cfg(test)]
mod tests;
