//! Disks, adapters and memory for a load, each from the curve of its demand.

use plimsoll_model::size::{Ceiling, CeilingBasis, Ceilings, Need, SizeAsked, TermKind, Unknown};

use super::curve::{Fitted, Observation};
use super::measured::{Device, Measured};

/// A disk that was less busy does not tell what it can do.
const DISK_BUSY_MIN_RATIO: f64 = 0.05;

/// What is asked of the points of one size of the server.
pub(super) struct Needs<'a> {
    pub(super) points: &'a [&'a Measured],
    pub(super) asked: &'a SizeAsked,
    pub(super) highest_ops_per_s: f64,
}

/// Which demand of a device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Demand {
    DiskTransfers,
    DiskBytes,
    AdapterBytes,
}

impl Demand {
    fn device(self, point: &Measured) -> Option<Device> {
        match self {
            Self::AdapterBytes => point.adapters,
            Self::DiskTransfers | Self::DiskBytes => point.disks,
        }
    }

    fn observed(self, point: &Measured) -> Option<Observation> {
        let device = self.device(point)?;
        point.other(match self {
            Self::DiskTransfers => device.transfers,
            Self::DiskBytes | Self::AdapterBytes => device.bytes,
        })
    }

    const fn stated(self, stated: &Ceilings) -> Option<f64> {
        match self {
            Self::DiskTransfers => stated.disk_transfers_per_s,
            Self::DiskBytes => stated.disk_bytes_per_s,
            Self::AdapterBytes => stated.adapter_bytes_per_s,
        }
    }

    const fn known(self, device: &Device) -> Option<Ceiling> {
        match self {
            Self::DiskTransfers => device.transfers_each,
            Self::DiskBytes | Self::AdapterBytes => device.bytes_each,
        }
    }
}

impl Needs<'_> {
    /// How many of a device, and what that leaves open.
    pub(super) fn devices(&self, demand: Demand) -> (Option<Need>, Option<Unknown>) {
        let observed = self.points.iter().filter_map(|point| demand.observed(point));
        let observed: Vec<Observation> = observed.collect();
        let may = [TermKind::Background, TermKind::Contention];
        let Some(fitted) = Fitted::of(&observed, &may, &[]) else { return (None, None) };
        let load = self.asked.load_ops_per_s;
        let Some(per_op) = fitted.estimate(|curve| Some(curve.at(load, 1.0, 0.0))) else {
            return (None, None);
        };
        let total = per_op.times(load);
        let each = self.each(demand);
        let need = Need {
            count: each.map(|each| total.times(1.0 / (each.value * self.asked.headroom_ratio))),
            total,
            per_op: Some(per_op),
            each,
            law: fitted.curve.terms,
            load_ratio: load / self.highest_ops_per_s,
        };
        (Some(need), if each.is_none() { self.missing(demand) } else { None })
    }

    /// What one can do: as the user says, as the kernel does, or by how busy it was.
    fn each(&self, demand: Demand) -> Option<Ceiling> {
        let stated = demand.stated(&self.asked.stated);
        let stated = stated.map(|value| Ceiling { value, basis: CeilingBasis::Stated });
        let known = || {
            let all = self.points.iter().filter_map(|point| demand.device(point));
            all.filter_map(|device| demand.known(&device)).next_back()
        };
        stated.or_else(known).or_else(|| self.by_utilisation(demand))
    }

    fn by_utilisation(&self, demand: Demand) -> Option<Ceiling> {
        let busy = |point: &Measured| demand.device(point)?.busy_ratio;
        let by_use = |a: &&&Measured, b: &&&Measured| {
            busy(a).unwrap_or_default().total_cmp(&busy(b).unwrap_or_default())
        };
        let busiest = self.points.iter().max_by(by_use)?;
        let busy_ratio = busy(busiest).filter(|busy| *busy >= DISK_BUSY_MIN_RATIO)?;
        let count = demand.device(busiest)?.count;
        let done = demand.observed(busiest)?.value * busiest.ops_per_s / count;
        Some(Ceiling { value: done / busy_ratio, basis: CeilingBasis::Utilisation })
    }

    fn missing(&self, demand: Demand) -> Option<Unknown> {
        let last = self.points.last().and_then(|point| demand.device(point))?;
        Some(match demand {
            Demand::AdapterBytes if last.loopback => Unknown::SharedHost,
            Demand::AdapterBytes => Unknown::AdapterSpeed,
            Demand::DiskTransfers | Demand::DiskBytes => {
                Unknown::DiskIdle { busy_ratio: last.busy_ratio.unwrap_or_default() }
            }
        })
    }

    /// Memory grows in a straight line, if it does.
    pub(super) fn memory(&self) -> Option<Need> {
        let observed = self.points.iter().filter_map(|point| point.other(point.memory));
        let observed: Vec<Observation> = observed.collect();
        let fitted = Fitted::of(&observed, &[TermKind::Contention], &[])?;
        let load = self.asked.load_ops_per_s;
        let total = fitted.estimate(|curve| Some(curve.at(load, 1.0, 0.0)))?;
        let law = fitted.curve.terms;
        let load_ratio = load / self.highest_ops_per_s;
        Some(Need { count: None, total, per_op: None, each: None, law, load_ratio })
    }
}
