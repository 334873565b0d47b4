//! Where the processor time of each host went: shares and rates of what was read.

use plimsoll_model::consumers::{Consumer, ConsumerWork, HostConsumers, HostWork, InterruptRate};
use plimsoll_model::event::PointRecord;
use plimsoll_model::units::NANOS_PER_SECOND;

/// Of a load point, by host.
pub(crate) fn host_consumers(record: &PointRecord) -> Vec<HostConsumers> {
    let ops_per_s = record.totals.done_in_window as f64 / record.measured_ns.as_secs_f64();
    let hosts = record.host_work.iter().filter(|work| work.elapsed_ns > 0);
    hosts.map(|work| of_host(work, ops_per_s)).collect()
}

fn of_host(work: &HostWork, ops_per_s: f64) -> HostConsumers {
    let elapsed_s = seconds(work.elapsed_ns);
    let capacity_s = elapsed_s * f64::from(work.processors.max(1));
    let interrupts = work.interrupts.iter().map(|it| {
        let per_s = it.count as f64 / elapsed_s;
        let per_op = Some(per_s / ops_per_s).filter(|ratio| ratio.is_finite());
        InterruptRate { name: it.name.clone(), kind: it.kind, count: it.count, per_s, per_op }
    });
    let all = work.consumers.iter().chain([&work.others]);
    let seen_ns = all.fold(0u64, |sum, it| sum.saturating_add(it.cpu_ns()));
    HostConsumers {
        source: work.source.clone(),
        seconds: elapsed_s,
        processors: work.processors,
        busy_s: seconds(work.busy_ns),
        irq_s: seconds(work.irq_ns),
        softirq_s: seconds(work.softirq_ns),
        not_seen_s: seconds(work.busy_ns.saturating_sub(seen_ns)),
        forks_per_s: work.forks.map(|forks| forks as f64 / elapsed_s),
        consumers: work.consumers.iter().map(|it| consumer(it, capacity_s)).collect(),
        others: consumer(&work.others, capacity_s),
        interrupts: interrupts.collect(),
    }
}

fn consumer(work: &ConsumerWork, capacity_s: f64) -> Consumer {
    Consumer {
        name: work.name.clone(),
        kind: work.kind,
        ended: work.ended,
        processes: work.processes,
        user_s: seconds(work.user_ns),
        system_s: seconds(work.system_ns),
        share_ratio: seconds(work.cpu_ns()) / capacity_s,
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / NANOS_PER_SECOND as f64
}

#[cfg(test)]
mod tests {
    use plimsoll_model::consumers::{InterruptCount, InterruptKind};
    use plimsoll_model::event::JournalRecord;

    use super::*;
    use crate::analyse;
    use crate::testing::RunBuilder;

    #[test]
    fn shares_are_of_all_processors_and_what_no_process_had_is_not_seen() {
        let mut run = RunBuilder::open(&[500.0]);
        let server = ConsumerWork {
            name: "nginx".to_owned(),
            processes: 2,
            user_ns: 6_000_000_000,
            system_ns: 9_000_000_000,
            ..ConsumerWork::default()
        };
        let kind = InterruptKind::Soft;
        let work = HostWork {
            elapsed_ns: 30 * NANOS_PER_SECOND,
            processors: 2,
            busy_ns: 18 * NANOS_PER_SECOND,
            forks: Some(60),
            consumers: vec![server],
            others: ConsumerWork { user_ns: NANOS_PER_SECOND, ..ConsumerWork::default() },
            interrupts: vec![InterruptCount { name: "NET_RX".to_owned(), kind, count: 30_000 }],
            ..HostWork::default()
        };
        for record in &mut run.journal {
            if let JournalRecord::PointFinished(point) = record {
                point.host_work = vec![work.clone()];
            }
        }
        let point = &analyse(&run.raw()).points[0];
        let [host] = &point.consumers[..] else { panic!("{:?}", point.consumers) };
        assert_eq!((host.busy_s, host.not_seen_s, host.forks_per_s), (18.0, 2.0, Some(2.0)));
        assert_eq!((host.consumers[0].share_ratio, host.others.user_s), (0.25, 1.0));
        let seen = &host.interrupts[0];
        let per_op = 1_000.0 / point.achieved_ops_per_s.unwrap();
        assert_eq!((seen.per_s, seen.per_op), (1_000.0, Some(per_op)));
    }
}
