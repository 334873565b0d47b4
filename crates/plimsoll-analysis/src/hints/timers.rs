//! Times that gather where a timer of TCP ends: 40 ms for a delayed acknowledgement, 200 ms for a
//! segment sent again, a second for a connect tried again. Linux has these as constants
//! (`TCP_DELACK_MIN`, `TCP_RTO_MIN`, `TCP_TIMEOUT_INIT`).

use std::ops::Range;

use plimsoll_model::event::Times;
use plimsoll_model::hint::Hint;

use super::Seen;

/// Of the ops at a timer's end, the kernel must have counted so many. Rates of samples and ops that
/// straddle the window's ends make it less than all.
const COUNTED_MIN_RATIO: f64 = 0.7;
/// As many times more ops than the times around lead one to expect.
const GATHERED_MIN_FACTOR: f64 = 5.0;
/// Acknowledgements are delayed to a tick of the kernel's timer. Chance gives 40 waits half of this.
const TICK_CONCENTRATION_MIN: f64 = 0.6;
/// An op may take so much without its timer.
const BASE_NS_MAX: u64 = 20_000_000;

const MS: u64 = 1_000_000;

/// Where ops gather, and the times around it.
struct Band {
    inside: Range<u64>,
    below: Range<u64>,
    above: Range<u64>,
    /// Fewer are chance.
    ops_min: u64,
    /// So are fewer of all.
    share_min_ratio: f64,
}

impl Band {
    /// How many ops gather there, if they do; `count` is how many lie in a range, `all` how many
    /// there are.
    fn gathered(&self, all: u64, count: impl Fn(&Range<u64>) -> u64) -> Option<u64> {
        let width = |range: &Range<u64>| (range.end - range.start) as f64;
        let ops = count(&self.inside);
        let around = (count(&self.below) + count(&self.above)) as f64;
        let expected = around * width(&self.inside) / (width(&self.below) + width(&self.above));
        let enough = ops >= self.ops_min && ops as f64 >= self.share_min_ratio * all as f64;
        (enough && ops as f64 >= GATHERED_MIN_FACTOR * expected).then_some(ops)
    }
}

/// Does a counter explain so many ops?
fn explains(counted: f64, ops: u64) -> bool {
    counted >= COUNTED_MIN_RATIO * ops as f64
}

pub(super) fn delayed_ack(seen: &Seen<'_>) -> Option<Hint> {
    // The kernel's timer ends with a tick, of 4 ms by default.
    let band = Band {
        inside: 39 * MS..47 * MS,
        below: 24 * MS..38 * MS,
        above: 50 * MS..90 * MS,
        ops_min: 40,
        share_min_ratio: 0.01,
    };
    let signs = &seen.record.totals.signs;
    let kept = signs.kept_connections.n();
    let ops = band.gathered(kept, |range| signs.part_waits.waits.between(range.clone()))?;
    let delayed_acks = seen.rose("host.tcp_delayed_acks")?;
    let at_ticks = signs.part_waits.tick_concentration()? >= TICK_CONCENTRATION_MIN;
    (at_ticks && explains(delayed_acks, ops)).then(|| Hint::DelayedAck {
        ops,
        share_ratio: ops as f64 / kept as f64,
        between_ns: [band.inside.start, band.inside.end],
        delayed_acks: delayed_acks.round() as u64,
    })
}

pub(super) fn retransmitted(seen: &Seen<'_>) -> Option<Hint> {
    let service = &seen.times.service;
    let base_ns = service.value_at_quantile(0.5);
    if base_ns > BASE_NS_MAX {
        return None;
    }
    let band = Band {
        inside: 198 * MS..240 * MS + base_ns,
        below: 120 * MS..190 * MS,
        above: 270 * MS..380 * MS,
        ops_min: 10,
        share_min_ratio: 0.001,
    };
    let ops = band.gathered(service.len(), |range| count_between(service, range))?;
    let rose = |name| seen.rose(name).unwrap_or(0.0);
    // A lone segment is sent again as a probe for a lost tail at the time of its timeout. Connects
    // time out too.
    let timeouts = seen.rose("host.tcp_timeouts")? + rose("host.tcp_loss_probes")
        - rose("host.tcp_syn_retransmits");
    explains(timeouts, ops).then(|| Hint::Retransmitted {
        ops,
        share_ratio: ops as f64 / service.len() as f64,
        between_ns: [band.inside.start, band.inside.end],
        timeouts: timeouts.round() as u64,
        listen_overflows: seen.rose_anywhere("host.tcp_listen_overflows"),
    })
}

pub(super) fn syn_retransmitted(seen: &Seen<'_>) -> Option<Hint> {
    let new = &seen.record.totals.signs.new_connections;
    let band = Band {
        inside: 985 * MS..1_150 * MS,
        below: 550 * MS..960 * MS,
        above: 1_250 * MS..1_900 * MS,
        ops_min: 10,
        share_min_ratio: 0.002,
    };
    band.gathered(new.n(), |range| new.between(range.clone()))?;
    let syn_retransmits = seen.rose("host.tcp_syn_retransmits")?;
    // The second try follows after two seconds; newer kernels have four tries a second apart.
    let ops = new.between(985 * MS..u64::MAX);
    explains(syn_retransmits, ops).then(|| Hint::SynRetransmitted {
        ops,
        share_ratio: ops as f64 / new.n() as f64,
        syn_retransmits: syn_retransmits.round() as u64,
        listen_overflows: seen.rose_anywhere("host.tcp_listen_overflows"),
    })
}

fn count_between(times: &Times, range: &Range<u64>) -> u64 {
    let recorded = times.iter_recorded();
    let inside = recorded.filter(|value| range.contains(&value.value_iterated_to()));
    inside.map(|value| u64::from(value.count_at_value())).sum()
}
