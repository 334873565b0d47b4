//! What a server costs per unit of its peak, and how two servers compare by that. A published
//! price/performance rests on a peak rounded to print; the unrounded one gives another figure, so
//! every result here says which it rests on.

use plimsoll_model::units::BYTES_PER_MIB;

/// How a peak enters a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peak {
    /// As printed: in MB of 2^20 bytes per second, rounded to one decimal.
    Rounded,
    /// As measured.
    Unrounded,
}

impl Peak {
    /// Both, the printed one first.
    pub const BOTH: [Self; 2] = [Self::Rounded, Self::Unrounded];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rounded => "rounded to one decimal",
            Self::Unrounded => "unrounded",
        }
    }

    /// The peak in MB of 2^20 bytes per second.
    pub fn mb_per_s(self, bytes_per_s: f64) -> f64 {
        let exact = bytes_per_s / BYTES_PER_MIB;
        match self {
            Self::Rounded => (exact * 10.0).round() / 10.0,
            Self::Unrounded => exact,
        }
    }
}

/// A server with its peak and its price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Priced {
    /// Highest throughput.
    pub peak_bytes_per_s: f64,
    /// Sum of its line items.
    pub price: f64,
}

impl Priced {
    /// Price per MB of 2^20 bytes per second; `None` for a peak of nothing.
    pub fn per_mb_per_s(&self, peak: Peak) -> Option<f64> {
        let rate = peak.mb_per_s(self.peak_bytes_per_s);
        (rate > 0.0).then(|| self.price / rate)
    }

    /// How many times the throughput of `other` this one has.
    pub fn times_the_throughput(&self, other: &Self, peak: Peak) -> Option<f64> {
        let [own, others] = [self, other].map(|it| peak.mb_per_s(it.peak_bytes_per_s));
        (others > 0.0).then(|| own / others)
    }

    /// How many times less a unit of this one's throughput costs than one of `other`'s.
    pub fn times_the_price_performance(&self, other: &Self, peak: Peak) -> Option<f64> {
        let (own, others) = (self.per_mb_per_s(peak)?, other.per_mb_per_s(peak)?);
        (own > 0.0).then(|| others / own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NT: Priced = Priced { peak_bytes_per_s: 8_398_371.0, price: 13_900.0 };
    const SUN: Priced = Priced { peak_bytes_per_s: 1_950_885.0, price: 37_047.0 };

    fn cents(value: Option<f64>) -> String {
        format!("{:.2}", value.unwrap())
    }

    #[test]
    fn the_published_figures_rest_on_rounded_peaks() {
        let peak = Peak::Rounded;
        assert_eq!(
            (peak.mb_per_s(NT.peak_bytes_per_s), peak.mb_per_s(SUN.peak_bytes_per_s)),
            (8.0, 1.9)
        );
        assert_eq!(cents(NT.per_mb_per_s(peak)), "1737.50");
        assert_eq!(cents(SUN.per_mb_per_s(peak)), "19498.42");
        assert_eq!(cents(NT.times_the_throughput(&SUN, peak)), "4.21");
        assert_eq!(cents(NT.times_the_price_performance(&SUN, peak)), "11.22");
    }

    #[test]
    fn unrounded_peaks_give_other_figures() {
        let peak = Peak::Unrounded;
        assert_eq!(cents(NT.per_mb_per_s(peak)), "1735.48");
        assert_eq!(cents(SUN.per_mb_per_s(peak)), "19912.29");
        assert_eq!(cents(NT.times_the_throughput(&SUN, peak)), "4.30");
        assert_eq!(cents(NT.times_the_price_performance(&SUN, peak)), "11.47");
    }

    #[test]
    fn nothing_has_no_price_per_unit() {
        let idle = Priced { peak_bytes_per_s: 0.0, price: 1.0 };
        assert_eq!(idle.per_mb_per_s(Peak::Unrounded), None);
        assert_eq!(NT.times_the_throughput(&idle, Peak::Rounded), None);
    }
}
