//! The rules of MLPerf Endpoints, from draft v1.0 of MLCommons' `endpoints_policies` and the
//! documents of the reference client at revision ea332753. Regions and early stopping are the
//! rules' own arithmetic. The steady window is simplified ([`steady`]). No MLPerf result follows
//! from any of it.

mod early;
mod steady;
mod trend;

use plimsoll_model::result::{Endpoints, EndpointsPoint, PointResult, Region, RegionName, Wanting};

pub(crate) use early::early_stopping;
pub(crate) use steady::{Pass, steady_window};

/// Concurrencies of the ultra-low region end here.
const ULTRA_LOW_TO: u32 = 32;
/// Points of a submission, its offline point not among them.
const POINTS_MIN: u32 = 7;

/// Ends of the low and of the medium region: `C_min + 2^I` and `C_min + 2^(2I)` with
/// `I = log2(C_max − C_min) / 3`, each rounded half to even.
fn region_ends(c_min: u32, c_max: u32) -> [u32; 2] {
    let third = f64::from(c_max.saturating_sub(c_min)).max(1.0).log2() / 3.0;
    [1.0, 2.0].map(|thirds| {
        let end = f64::from(c_min) + (thirds * third).exp2();
        end.round_ties_even() as u32
    })
}

/// The four regions between these concurrencies.
fn regions(c_min: u32, c_max: u32, points: &[u32]) -> Vec<Region> {
    let [low_end, medium_end] = region_ends(c_min, c_max);
    let region = |name, from: u32, to: u32| Region {
        name,
        from,
        to,
        points: points.iter().filter(|load| (from..=to).contains(*load)).count() as u32,
    };
    vec![
        region(RegionName::UltraLow, 1, ULTRA_LOW_TO),
        region(RegionName::Low, c_min + 1, low_end),
        region(RegionName::Medium, low_end + 1, medium_end),
        region(RegionName::High, medium_end + 1, c_max),
    ]
}

/// What the rules want beyond these points. An empty region wants nothing.
fn wanting(regions: &[Region], c_max: u32, points: u32) -> Vec<Wanting> {
    let few = Wanting::Points { points, points_min: POINTS_MIN };
    let few = (points < POINTS_MIN).then_some(few);
    let low = (c_max <= ULTRA_LOW_TO).then_some(Wanting::HighestConcurrency);
    let bare = regions.iter().filter(|region| region.points == 0 && region.from <= region.to);
    let bare = bare.map(|region| Wanting::Region { name: region.name });
    few.into_iter().chain(low).chain(bare).collect()
}

/// The ladder by the rules; nothing without a point that has generated.
pub(crate) fn endpoints(points: &[PointResult]) -> Option<Endpoints> {
    let figures: Vec<EndpointsPoint> = points.iter().filter_map(figures).collect();
    let valid = |figures: &&EndpointsPoint| {
        points.iter().any(|point| point.position == figures.position && point.valid)
    };
    let loads: Vec<u32> = figures.iter().filter(valid).map(|point| point.concurrency).collect();
    let (c_min, c_max) = (*loads.iter().min()?, *loads.iter().max()?);
    let regions = regions(c_min, c_max, &loads);
    let region_of = |load: u32| {
        let holds = |region: &&Region| (region.from..=region.to).contains(&load);
        regions.iter().rfind(holds).map(|region| region.name)
    };
    let placed = |point: EndpointsPoint| {
        let region = region_of(point.concurrency);
        EndpointsPoint { region, ..point }
    };
    let wanting = wanting(&regions, c_max, loads.len() as u32);
    let points = figures.into_iter().map(placed).collect();
    Some(Endpoints { c_min, c_max, wanting, points, regions })
}

fn figures(point: &PointResult) -> Option<EndpointsPoint> {
    let generation = point.generation.as_ref()?;
    Some(EndpointsPoint {
        position: point.position,
        concurrency: point.clients_requested?,
        region: None,
        system_tps: generation.output_tokens_per_s,
        tps_per_user: generation.tps_per_user,
        ttft_p90_ns: generation.first_output_ns.and_then(|times| times.p90),
        tpot_p90_ns: generation.later_token_time_ns.and_then(|times| times.p90),
        tpot_p90_early_ns: generation.later_token_time_p90_early_ns,
        steady: generation.steady.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (C_max, C_min), end of low, end of medium: appendix B of the rules.
    const VECTORS: [((u32, u32), [u32; 2]); 14] = [
        ((64, 2), [6, 18]),
        ((128, 2), [7, 27]),
        ((256, 2), [8, 42]),
        ((256, 8), [14, 47]),
        ((512, 8), [16, 71]),
        ((1_024, 8), [18, 109]),
        ((512, 16), [24, 79]),
        ((1_024, 16), [26, 117]),
        ((2_048, 16), [29, 176]),
        ((1_024, 32), [42, 131]),
        ((2_048, 32), [45, 192]),
        ((4_096, 32), [48, 287]),
        ((8_192, 32), [52, 437]),
        ((16_384, 32), [57, 676]),
    ];

    #[test]
    fn regions_end_where_the_rules_print_it() {
        for ((c_max, c_min), ends) in VECTORS {
            assert_eq!(region_ends(c_min, c_max), ends, "{c_max}, {c_min}");
        }
    }

    #[test]
    fn a_ladder_wants_seven_points_and_one_in_each_region() {
        let wanting_of = |loads: &[u32]| {
            let (c_min, c_max) = (*loads.iter().min().unwrap(), *loads.iter().max().unwrap());
            wanting(&regions(c_min, c_max, loads), c_max, loads.len() as u32)
        };
        assert_eq!(wanting_of(&[1, 2, 4, 8, 32, 64, 128, 256]), []);
        let few = Wanting::Points { points: 3, points_min: 7 };
        let low = Wanting::Region { name: RegionName::Low };
        assert_eq!(wanting_of(&[1, 8, 256]), [few, low]);
        assert!(wanting_of(&[1, 2, 3, 4, 5, 6, 32]).contains(&Wanting::HighestConcurrency));
    }
}
