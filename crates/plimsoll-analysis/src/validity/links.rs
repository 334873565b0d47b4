//! Could the generator's network links carry what was counted?

use plimsoll_model::disclosure::Network;
use plimsoll_model::finding::Rule;

use super::Evidence;
use super::host::mean;

/// An interface that carried less than this part of the load's bytes had no part in it.
const CARRIED_MIN_RATIO: f64 = 0.01;

/// More bytes than the links carry: a counter or a clock is wrong. Not judged when a target is on
/// this host, which has no link to it, nor where a virtual interface names no speed.
pub(super) fn link_capacity(e: &Evidence<'_>) -> Option<Rule> {
    let links = carriers(e)?;
    let speeds: Option<Vec<u64>> = links.iter().map(|link| link.speed_mbit_per_s).collect();
    let speeds = speeds.filter(|speeds| !speeds.is_empty())?;
    let limit_mbit_per_s = speeds.iter().sum::<u64>() as f64;
    let used_mbit_per_s = bytes_per_s(e) * 8.0 / 1e6;
    let too_much = used_mbit_per_s > limit_mbit_per_s;
    too_much.then_some(Rule::LinkCapacity { used_mbit_per_s, limit_mbit_per_s })
}

/// The interfaces that carried the load, as far as the monitors tell, else all of them. `None`
/// where a target is on this host, or where nothing is known of targets.
fn carriers<'e>(e: &'e Evidence<'_>) -> Option<Vec<&'e Network>> {
    let disclosure = e.disclosure?;
    if disclosure.targets.is_empty() || disclosure.targets.iter().any(|t| t.same_host) {
        return None;
    }
    let all: Vec<&Network> =
        disclosure.generator.networks.iter().filter(|network| network.name != "lo").collect();
    let least = bytes_per_s(e) * CARRIED_MIN_RATIO;
    let carried = |network: &&Network| {
        let of = |way: &str| mean(e, &format!("network.{}.{way}", network.name));
        let bytes_per_s = of("received").unwrap_or(0.0) + of("sent").unwrap_or(0.0);
        bytes_per_s > 0.0 && bytes_per_s >= least
    };
    let carried: Vec<&Network> = all.iter().copied().filter(carried).collect();
    Some(if carried.is_empty() { all } else { carried })
}

/// Of the direction that carried more, by the worker's own count.
fn bytes_per_s(e: &Evidence<'_>) -> f64 {
    let totals = &e.view.record.totals;
    let seconds = e.view.record.measured_ns.as_secs_f64().max(f64::MIN_POSITIVE);
    totals.wire_bytes_in.max(totals.wire_bytes_out) as f64 / seconds
}

#[cfg(test)]
mod tests {
    use plimsoll_model::disclosure::{Disclosure, Host, Network, TargetDisclosure};
    use plimsoll_model::event::ResourceUse;

    use crate::testing::{PointBuilder, TestPoint, check_rule};

    const GIGABIT: Option<u64> = Some(1_000);
    /// 1,000 Mbit/s over 30 s.
    const FULL: u64 = 3_750_000_000;

    fn network(name: &str, speed_mbit_per_s: Option<u64>) -> Network {
        Network { name: name.to_owned(), speed_mbit_per_s, ..Network::default() }
    }

    /// A load on a target elsewhere, from a host with `lo` and these.
    fn remote(bytes: u64, networks: &[Network]) -> TestPoint {
        let mut point = PointBuilder::open(1_000.0).build();
        point.record.totals.wire_bytes_in = bytes;
        let networks = [&[network("lo", None)], networks].concat();
        point.disclosure = Some(Disclosure {
            generator: Host { networks, ..Host::default() },
            targets: vec![TargetDisclosure::default()],
            ..Disclosure::default()
        });
        point
    }

    fn on_this_host(mut point: TestPoint) -> TestPoint {
        for target in point.disclosure.iter_mut().flat_map(|d| &mut d.targets) {
            target.same_host = true;
        }
        point
    }

    fn carried(mut point: TestPoint, name: &str) -> TestPoint {
        let (name, mean) = (format!("network.{name}.received"), 125e6);
        let resource = ResourceUse { name, mean, ..ResourceUse::default() };
        point.record.resources.push(resource);
        point
    }

    #[test]
    fn more_bytes_than_the_link_carries_cannot_be() {
        let at = |bytes, speed| remote(bytes, &[network("eth0", speed)]);
        check_rule("link_capacity", &at(FULL + 1, GIGABIT), &at(FULL, GIGABIT));
        let here = on_this_host(at(u64::MAX / 8, GIGABIT));
        check_rule("link_capacity", &at(u64::MAX / 8, GIGABIT), &here);
    }

    #[test]
    fn a_link_of_unknown_speed_is_not_judged() {
        let unknown = [network("ens5", None), network("ens6", GIGABIT)];
        assert_eq!(remote(2 * FULL, &unknown).reasons(), [""; 0]);
        assert_eq!(remote(FULL, &[]).reasons(), [""; 0]);
    }

    #[test]
    fn interfaces_that_carried_nothing_of_the_load_have_no_part_in_it() {
        let two = [network("eth0", GIGABIT), network("eth1", GIGABIT)];
        let (over, held) = (remote(FULL + 1, &two), remote(FULL, &two));
        check_rule("link_capacity", &carried(over, "eth0"), &carried(held, "eth0"));
    }
}
