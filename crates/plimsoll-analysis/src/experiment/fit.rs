//! Least squares within groups: a value and its regressors, both less the mean of their group, by
//! the sweep operator (Goodnight 1979). Missing runs need no rule of their own.

use std::collections::BTreeMap;

/// A column that keeps less than this share of its squares next to the others is a combination of
/// them.
const LEFT_MIN_RATIO: f64 = 1e-9;

/// A value with its regressors.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Has a level of its own, which is not estimated.
    pub(super) group: usize,
    /// The same number in each row.
    pub(super) columns: Vec<f64>,
    pub(super) value: f64,
}

/// The fit of some rows.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    /// The normal equations with the values as last row and column, swept by each column that the
    /// others do not explain: the inverse, next to it the coefficients, in the corner the residual.
    swept: Vec<Vec<f64>>,
    is_swept: Vec<bool>,
    groups: BTreeMap<usize, Means>,
    /// Degrees of freedom of the residual.
    pub(super) degrees: f64,
}

/// Of a group.
#[derive(Clone, Debug, Default)]
struct Means {
    rows: f64,
    columns: Vec<f64>,
    value: f64,
}

/// A sum of coefficients: its variance is `factor` times that of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sum {
    pub(super) value: f64,
    pub(super) factor: f64,
}

impl Fit {
    pub(super) fn from_rows(rows: &[Row]) -> Self {
        let columns = rows.first().map_or(0, |row| row.columns.len());
        let groups = means(rows, columns);
        let mut swept = vec![vec![0.0; columns + 1]; columns + 1];
        for row in rows {
            let group = &groups[&row.group];
            let centred = row.columns.iter().zip(&group.columns).map(|(value, mean)| value - mean);
            let centred: Vec<f64> = centred.chain([row.value - group.value]).collect();
            for (line, a) in swept.iter_mut().zip(&centred).filter(|(_, a)| **a != 0.0) {
                for (sum, b) in line.iter_mut().zip(&centred) {
                    *sum += a * b;
                }
            }
        }
        let squares: Vec<f64> = (0..columns).map(|at| swept[at][at]).collect();
        let mut is_swept = vec![false; columns];
        for at in 0..columns {
            if swept[at][at] > LEFT_MIN_RATIO * squares[at].max(1.0) {
                sweep(&mut swept, at);
                is_swept[at] = true;
            }
        }
        let rank = is_swept.iter().filter(|is| **is).count();
        let degrees = (rows.len() - groups.len() - rank) as f64;
        Self { swept, is_swept, groups, degrees }
    }

    /// Columns that the others do not explain.
    pub(super) fn rank(&self) -> f64 {
        self.is_swept.iter().filter(|is| **is).count() as f64
    }

    /// Squares of the values that the columns do not explain.
    pub(super) fn squares(&self) -> f64 {
        self.swept.last().and_then(|line| line.last()).map_or(0.0, |left| left.max(0.0))
    }

    /// Mean square of the residual; `None` without a degree of freedom.
    pub(super) fn variance(&self) -> Option<f64> {
        (self.degrees > 0.0).then(|| self.squares() / self.degrees)
    }

    /// The coefficients times these weights; `None` where the rows do not determine the sum.
    pub(super) fn sum(&self, weights: &[f64]) -> Option<Sum> {
        const CLOSE: f64 = 1e-6;
        let last = self.is_swept.len();
        let named = || (0..last).filter(|at| self.is_swept[*at] && weights[*at] != 0.0);
        let explained =
            |at: usize| -> f64 { named().map(|of| weights[of] * self.swept[of][at]).sum() };
        let mut others = (0..last).filter(|at| !self.is_swept[*at]);
        if !others.all(|at| (explained(at) - weights[at]).abs() < CLOSE) {
            return None;
        }
        let factor: f64 = named().map(|at| weights[at] * explained(at)).sum();
        Some(Sum { value: explained(last), factor: factor.max(0.0) })
    }

    /// Of the rows of a group.
    pub(super) fn mean(&self, group: usize) -> Option<f64> {
        self.groups.get(&group).map(|means| means.value)
    }

    /// The mean over the `groups` of a row with these columns.
    pub(super) fn level(&self, columns: &[f64], groups: &[usize]) -> Option<Sum> {
        let means: Vec<&Means> = groups.iter().filter_map(|group| self.groups.get(group)).collect();
        let count = means.len() as f64;
        if means.is_empty() {
            return None;
        }
        let mean = |at: usize| means.iter().map(|group| group.columns[at]).sum::<f64>() / count;
        let weights: Vec<f64> =
            columns.iter().enumerate().map(|(at, value)| value - mean(at)).collect();
        let shift = self.sum(&weights)?;
        let value = means.iter().map(|group| group.value).sum::<f64>() / count;
        let factor = means.iter().map(|group| 1.0 / group.rows).sum::<f64>() / (count * count);
        Some(Sum { value: value + shift.value, factor: factor + shift.factor })
    }
}

fn means(rows: &[Row], columns: usize) -> BTreeMap<usize, Means> {
    let mut groups: BTreeMap<usize, Means> = BTreeMap::new();
    for row in rows {
        let group = groups.entry(row.group).or_default();
        group.columns.resize(columns, 0.0);
        group.rows += 1.0;
        group.value += row.value;
        for (sum, value) in group.columns.iter_mut().zip(&row.columns) {
            *sum += value;
        }
    }
    for group in groups.values_mut() {
        group.value /= group.rows;
        for sum in &mut group.columns {
            *sum /= group.rows;
        }
    }
    groups
}

/// Solves for the column at `pivot`, so that the others no longer explain it.
fn sweep(matrix: &mut [Vec<f64>], pivot: usize) {
    let mut line = std::mem::take(&mut matrix[pivot]);
    let at = line[pivot];
    line.iter_mut().for_each(|value| *value /= at);
    line[pivot] = 1.0 / at;
    for other in matrix.iter_mut().filter(|other| !other.is_empty()) {
        let times = other[pivot];
        for (at, (value, of)) in other.iter_mut().zip(&line).enumerate() {
            *value = if at == pivot { -times * of } else { *value - times * of };
        }
    }
    matrix[pivot] = line;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[(usize, usize, f64)]) -> Vec<Row> {
        let row = |(group, column, value): &(usize, usize, f64)| {
            let mut columns = vec![0.0; 3];
            columns[*column] = 1.0;
            Row { group: *group, columns, value: *value }
        };
        values.iter().map(row).collect()
    }

    #[test]
    fn groups_are_left_out_of_what_is_compared() {
        // Columns 0, 1, 2 lie at 1, 2 and 4 above their group's level.
        let rows = rows(&[(0, 0, 11.0), (0, 1, 12.0), (1, 0, 21.0), (1, 2, 24.0), (2, 1, 32.0)]);
        let fit = Fit::from_rows(&rows);
        assert_eq!((fit.rank(), fit.degrees), (2.0, 0.0));
        let apart = fit.sum(&[-1.0, 0.0, 1.0]).unwrap();
        assert!((apart.value - 3.0).abs() < 1e-12 && (apart.factor - 2.0).abs() < 1e-12);
        // Through column 0: two differences, each of two rows.
        let apart = fit.sum(&[0.0, -1.0, 1.0]).unwrap();
        assert!((apart.value - 2.0).abs() < 1e-12 && (apart.factor - 4.0).abs() < 1e-12);
        assert_eq!(fit.sum(&[1.0, 0.0, 0.0]), None, "a column alone is not told from its groups");
        let level = fit.level(&[0.0, 0.0, 1.0], &[0, 1, 2]).unwrap();
        assert!((level.value - 24.0).abs() < 1e-12, "{level:?}");
    }

    #[test]
    fn columns_that_never_meet_are_not_compared() {
        let fit = Fit::from_rows(&rows(&[(0, 0, 1.0), (0, 1, 2.0), (1, 2, 3.0), (2, 2, 3.5)]));
        assert!(fit.sum(&[-1.0, 1.0, 0.0]).is_some());
        assert_eq!(fit.sum(&[-1.0, 0.0, 1.0]), None);
        assert_eq!(Fit::from_rows(&[]).variance(), None);
    }
}
