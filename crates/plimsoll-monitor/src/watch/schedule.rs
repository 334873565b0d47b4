//! When to sample next. Pure.

/// The next sample after `last`, which is when the last one was due, on the monotonic clock.
///
/// Samples fall on the borders of a window, so that the window is covered exactly. A tick that
/// would fall shortly before a border is left out, since rates over short times are mostly noise:
/// samples within a window are between a half and one and a half intervals apart.
pub(super) fn next_sample_ns(last: u64, interval: u64, borders: Option<(u64, u64)>) -> u64 {
    let tick = last.saturating_add(interval);
    let reach = tick.saturating_add(interval / 2);
    let borders = borders.map(|(start, end)| [start, end]).into_iter().flatten();
    borders.into_iter().find(|&border| border > last && border <= reach).unwrap_or(tick)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(start: u64, interval: u64, window: (u64, u64), until: u64) -> Vec<u64> {
        let mut times = vec![start];
        while times[times.len() - 1] < until {
            times.push(next_sample_ns(times[times.len() - 1], interval, Some(window)));
        }
        times
    }

    #[test]
    fn without_a_window_samples_follow_at_the_interval() {
        assert_eq!(next_sample_ns(100, 10, None), 110);
    }

    #[test]
    fn samples_fall_on_the_borders_of_the_window() {
        assert_eq!(schedule(0, 10, (13, 47), 50), [0, 13, 23, 33, 47, 57]);
        assert_eq!(schedule(0, 10, (4, 30), 30), [0, 4, 14, 24, 30]);
    }

    #[test]
    fn a_window_shorter_than_the_interval_has_one_sample() {
        assert_eq!(schedule(0, 10, (3, 6), 16), [0, 3, 6, 16]);
    }

    #[test]
    fn no_sample_of_a_window_is_shorter_than_half_an_interval() {
        for length in 20..200 {
            for offset in 0..40 {
                let times = schedule(0, 20, (offset, offset + length), offset + length);
                let inside = times.windows(2).filter(|w| w[0] >= offset && w[1] <= offset + length);
                for pair in inside {
                    let gap = pair[1] - pair[0];
                    assert!((10..=30).contains(&gap), "{offset} {length}: {times:?}");
                }
                assert!(times.contains(&(offset + length)));
            }
        }
    }
}
