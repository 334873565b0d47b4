//! The rows: every pair of levels that is possible, in few runs.

use super::{EXCLUDED, FACTORS, REFUSED, Row};

/// The array: rows that run, which have all possible pairs, and one row for each refusal.
pub fn rows() -> Vec<Row> {
    let possible: Vec<Row> = all().filter(|row| row.refusal.is_none()).collect();
    let levels: Vec<Vec<usize>> = possible.iter().map(level_indices).collect();
    let mut rows: Vec<Row> = covering(&levels).into_iter().map(|at| possible[at].clone()).collect();
    let refused = (0..REFUSED.len()).filter_map(|index| all().find(|it| it.refusal == Some(index)));
    rows.extend(refused);
    rows
}

/// Indices of some of `rows` that together have every pair of levels that any of `rows` has. A row
/// has the index of a level for each factor. Greedy: each is the first of those with the most new
/// pairs.
pub fn covering(rows: &[Vec<usize>]) -> Vec<usize> {
    let factors = rows.first().map_or(0, Vec::len);
    let level_count =
        |factor: usize| rows.iter().map(|levels| levels[factor] + 1).max().unwrap_or_default();
    let counts: Vec<usize> = (0..factors).map(level_count).collect();
    let levels_max: usize = counts.iter().sum();
    let pairs: Vec<Vec<usize>> = rows.iter().map(|levels| pairs(levels, &counts)).collect();
    let mut is_open = vec![false; levels_max * levels_max];
    pairs.iter().flatten().for_each(|pair| is_open[*pair] = true);
    let mut chosen = Vec::new();
    while is_open.contains(&true) {
        let new_pairs = |at: &usize| pairs[*at].iter().filter(|pair| is_open[**pair]).count();
        // Of several, `max_by_key` takes the last.
        let Some(row) = (0..rows.len()).rev().max_by_key(new_pairs) else { break };
        pairs[row].iter().for_each(|pair| is_open[*pair] = false);
        chosen.push(row);
    }
    chosen
}

/// The pairs of a row's levels, each as a number; `counts` are the levels of each factor.
fn pairs(levels: &[usize], counts: &[usize]) -> Vec<usize> {
    let mut numbers = Vec::new();
    let mut before = 0;
    for (level, count) in levels.iter().zip(counts) {
        numbers.push(before + level);
        before += count;
    }
    let later = |at: usize| numbers[at + 1..].iter().map(move |other| (at, *other));
    let pairs = (0..numbers.len()).flat_map(later);
    pairs.map(|(at, other)| numbers[at] * before + other).collect()
}

/// The index of each of its levels.
fn level_indices(row: &Row) -> Vec<usize> {
    let levels = FACTORS.iter().zip(row.levels);
    levels
        .map(|(factor, level)| factor.levels.iter().take_while(|it| **it != level).count())
        .collect()
}

/// Every combination that exists, without those that two refusals apply to.
fn all() -> impl Iterator<Item = Row> {
    let count: usize = FACTORS.iter().map(|factor| factor.levels.len()).product();
    (0..count).filter_map(row)
}

fn row(number: usize) -> Option<Row> {
    let mut rest = number;
    let mut levels = [""; FACTORS.len()];
    // The last factor changes fastest: the first rows are the plainest.
    for (level, factor) in levels.iter_mut().zip(&FACTORS).rev() {
        *level = factor.levels[rest % factor.levels.len()];
        rest /= factor.levels.len();
    }
    let row = Row { levels, refusal: None };
    if EXCLUDED.iter().any(|(combination, _)| row.contains(combination)) {
        return None;
    }
    let mut refusals = (0..REFUSED.len()).filter(|index| row.contains(REFUSED[*index].levels));
    let refusal = refusals.next();
    refusals.next().is_none().then_some(Row { refusal, ..row })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer arrays take more than an hour.
    const ROWS_MAX: usize = 60;

    #[test]
    fn every_possible_pair_is_in_at_most_sixty_rows() {
        let rows = rows();
        assert!(rows.len() <= ROWS_MAX, "{}", rows.len());
        let run: Vec<&Row> = rows.iter().filter(|row| row.refusal.is_none()).collect();
        let mut pair_count = 0;
        for (first, one) in FACTORS.iter().enumerate() {
            for (second, other) in FACTORS.iter().enumerate().skip(first + 1) {
                for (level, with) in
                    one.levels.iter().flat_map(|it| other.levels.iter().map(move |with| (it, with)))
                {
                    let has = |row: &Row| row.is(first, level) && row.is(second, with);
                    let possible = all().any(|row| row.refusal.is_none() && has(&row));
                    let covered = run.iter().any(|row| has(row));
                    assert_eq!(
                        possible, covered,
                        "{} {level} with {} {with}",
                        one.name, other.name
                    );
                    pair_count += usize::from(covered);
                }
            }
        }
        assert!(pair_count > 200, "{pair_count}");
    }

    #[test]
    fn every_refusal_has_a_row_and_the_array_is_the_same_each_time() {
        let rows = rows();
        let refused: Vec<usize> = rows.iter().filter_map(|row| row.refusal).collect();
        assert_eq!(refused, (0..REFUSED.len()).collect::<Vec<_>>());
        assert_eq!(rows, super::rows());
    }
}
