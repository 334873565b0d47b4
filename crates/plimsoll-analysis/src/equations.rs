//! Linear equations.

/// Gauss's elimination of a positive matrix with the right side as its last column. `None` where a
/// column keeps at most `least_ratio` of its squares next to the others.
pub(crate) fn solved(mut rows: Vec<Vec<f64>>, least_ratio: f64) -> Option<Vec<f64>> {
    let size = rows.len();
    let squares: Vec<f64> = (0..size).map(|at| rows[at][at]).collect();
    for at in 0..size {
        if rows[at][at] <= least_ratio * squares[at] {
            return None;
        }
        let (above, below) = rows.split_at_mut(at + 1);
        let pivot = &above[at];
        for row in below {
            let factor = row[at] / pivot[at];
            for (value, of_pivot) in row.iter_mut().zip(pivot).skip(at) {
                *value -= factor * of_pivot;
            }
        }
    }
    let mut solution = vec![0.0; size];
    for at in (0..size).rev() {
        let substituted: f64 =
            (at + 1..size).map(|column| rows[at][column] * solution[column]).sum();
        solution[at] = (rows[at][size] - substituted) / rows[at][at];
    }
    Some(solution)
}
