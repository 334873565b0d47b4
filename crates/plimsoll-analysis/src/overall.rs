//! Overall response time: one figure for a whole curve of mean response time over throughput.

use plimsoll_model::result::OverallResponse;

/// One point of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Throughput achieved.
    pub achieved_ops_per_s: f64,
    /// Mean service time.
    pub response_ms: f64,
}

/// Fewer points than these do not make a curve: two of them are a line, whose area says nothing
/// of how the response time rises.
const POINTS_MIN: usize = 3;

/// Both definitions over the points up to and including the one of highest throughput: what lies
/// past the peak folds back over the curve, so an area there has no meaning.
///
/// `origin` is the area under the curve from an added (0, 0) point to the peak, divided by the
/// peak's throughput (NFS benchmarks of the 3.0 and 2008 era). `span` is the area between first
/// and last point, divided by their distance (the 2020 definition). Both are absent with fewer
/// than three points.
pub fn overall_response(points: &[CurvePoint]) -> OverallResponse {
    let enough = points.len() >= POINTS_MIN;
    let Some(peak) = peak_index(points).filter(|_| enough) else {
        return OverallResponse::default();
    };
    let rising = &points[..=peak];
    let first = rising[0];
    let last = rising[peak];
    let between = area(rising);
    let triangle = first.achieved_ops_per_s * first.response_ms / 2.0;
    let distance = last.achieved_ops_per_s - first.achieved_ops_per_s;
    OverallResponse {
        origin: (last.achieved_ops_per_s > 0.0)
            .then(|| (triangle + between) / last.achieved_ops_per_s),
        span: (distance > 0.0).then(|| between / distance),
    }
}

/// The first point of highest throughput.
fn peak_index(points: &[CurvePoint]) -> Option<usize> {
    let mut peak: Option<usize> = None;
    for (i, point) in points.iter().enumerate() {
        if peak.is_none_or(|p| point.achieved_ops_per_s > points[p].achieved_ops_per_s) {
            peak = Some(i);
        }
    }
    peak
}

fn area(points: &[CurvePoint]) -> f64 {
    points
        .windows(2)
        .map(|pair| {
            let width = pair[1].achieved_ops_per_s - pair[0].achieved_ops_per_s;
            width * (pair[0].response_ms + pair[1].response_ms) / 2.0
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Vec<CurvePoint> {
        points
            .iter()
            .map(|&(achieved_ops_per_s, response_ms)| CurvePoint {
                achieved_ops_per_s,
                response_ms,
            })
            .collect()
    }

    fn origin_to_the_published_digit(points: &[(f64, f64)]) -> String {
        format!("{:.2}", overall_response(&curve(points)).origin.unwrap())
    }

    #[test]
    fn curves_with_a_known_origin_figure_give_it() {
        // Test data: where these two curves were published is not recorded.
        let first = [
            (25_025.0, 0.9),
            (49_940.0, 1.2),
            (74_807.0, 1.3),
            (99_889.0, 1.5),
            (128_059.0, 1.4),
            (154_587.0, 1.6),
            (178_734.0, 1.8),
            (202_428.0, 2.2),
            (225_822.0, 2.5),
            (250_573.0, 3.0),
        ];
        let second = [
            (29_435.0, 0.6),
            (58_907.0, 0.7),
            (88_372.0, 0.8),
            (117_878.0, 1.0),
            (147_284.0, 1.2),
            (177_021.0, 1.6),
            (206_422.0, 1.9),
            (236_207.0, 2.5),
            (265_729.0, 3.4),
            (293_128.0, 6.4),
        ];
        assert_eq!(origin_to_the_published_digit(&first), "1.58");
        assert_eq!(origin_to_the_published_digit(&second), "1.67");
    }

    #[test]
    fn span_ignores_what_lies_below_the_first_point() {
        let overall = overall_response(&curve(&[(100.0, 1.0), (150.0, 2.0), (200.0, 3.0)]));
        assert_eq!(overall.span, Some(2.0));
        assert_eq!(overall.origin, Some((50.0 + 200.0) / 200.0));
    }

    #[test]
    fn points_past_the_peak_do_not_count() {
        let up_to_peak = curve(&[(100.0, 1.0), (150.0, 2.0), (200.0, 3.0)]);
        let beyond = curve(&[(100.0, 1.0), (150.0, 2.0), (200.0, 3.0), (150.0, 9.0)]);
        assert_eq!(overall_response(&up_to_peak), overall_response(&beyond));
    }

    #[test]
    fn of_two_points_at_the_peak_the_first_ends_the_area() {
        let once = curve(&[(100.0, 1.0), (150.0, 2.0), (200.0, 3.0)]);
        let twice = curve(&[(100.0, 1.0), (150.0, 2.0), (200.0, 3.0), (150.0, 9.0), (200.0, 9.0)]);
        assert_eq!(overall_response(&once), overall_response(&twice));
    }

    #[test]
    fn fewer_than_three_points_have_no_overall_response() {
        let points = [(100.0, 1.0), (200.0, 3.0), (300.0, 4.0)];
        for few in 0..3 {
            assert_eq!(overall_response(&curve(&points[..few])), OverallResponse::default());
        }
        assert!(overall_response(&curve(&points)).origin.is_some());
        let idle = overall_response(&curve(&[(0.0, 1.0); 3]));
        assert_eq!(idle, OverallResponse::default());
    }
}
