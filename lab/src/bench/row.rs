//! Rows of a table: all runs of one generator against one server, alternating with the others. The
//! cells of rows.

use xtask::verb::Result;

use super::median;
use super::ours::Reading;
use crate::process::Finished;

/// One run of one generator against one server.
pub struct Sample {
    pub reading: Reading,
    /// User and system time of the whole process.
    pub generator_us_per_op: f64,
    /// Where it was measured.
    pub server_us_per_op: Option<f64>,
    pub peak_rss_mb: f64,
}

impl Sample {
    /// Of a generator that has finished, the server's cost not measured.
    pub fn from_finished(finished: &Finished, reading: Reading) -> Self {
        let whole = finished.cpu.as_secs_f64() * 1e6 / reading.requests;
        Self {
            reading,
            generator_us_per_op: reading.cpu_us.map_or(whole, |(cpu_us, _)| cpu_us),
            server_us_per_op: None,
            peak_rss_mb: finished.peak_rss_bytes as f64 / 1e6,
        }
    }
}

/// All runs of one pair.
pub struct Row {
    name: String,
    samples: Vec<Sample>,
    /// Rounds that gave no sample.
    failed: usize,
}

/// Takes one sample.
pub type Take<'a> = Box<dyn Fn() -> Result<Sample> + 'a>;

/// A row for each name; each round takes one sample for every row.
pub fn interleave<'a, Name: Into<String>>(
    named: impl IntoIterator<Item = (Name, Take<'a>)>,
    rounds: u32,
) -> Vec<Row> {
    let (mut rows, takes): (Vec<Row>, Vec<Take<'a>>) =
        named.into_iter().map(|(name, take)| (Row::new(name.into()), take)).unzip();
    for round in 1..=rounds {
        for (row, take) in rows.iter_mut().zip(&takes) {
            row.take(take());
        }
        eprintln!("round {round} of {rounds} done");
    }
    rows
}

impl Row {
    pub fn new(name: String) -> Self {
        Self { name, samples: Vec::new(), failed: 0 }
    }

    /// Adds the outcome of a round, and prints it.
    pub fn take(&mut self, outcome: Result<Sample>) {
        match outcome {
            Ok(sample) => {
                let (rate, cpu) = (sample.reading.requests_per_s, sample.generator_us_per_op);
                let server = sample.server_us_per_op;
                let server = server.map_or_else(String::new, |us| format!(" {us:7.2} µs server"));
                eprintln!("{:24} {rate:9.0}/s {cpu:7.2} µs generator{server}", self.name);
                self.samples.push(sample);
            }
            Err(message) => {
                eprintln!("FAILED: {}: {message}", self.name);
                self.failed += 1;
            }
        }
    }

    /// The label of its line in a table; if rounds failed, with the number of the successful ones.
    pub fn label(&self) -> String {
        let (name, counted) = (&self.name, self.samples.len());
        match self.failed {
            0 => name.clone(),
            failed => format!("{name} ({counted} of {} rounds counted)", counted + failed),
        }
    }

    /// A figure of every sample that has it.
    pub fn values(&self, of: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
        self.samples.iter().filter_map(of).collect()
    }

    pub fn median(&self, of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        median(&self.values(of))
    }

    pub fn rate(&self) -> Option<f64> {
        self.median(|s| Some(s.reading.requests_per_s))
    }

    /// CPU time of the generator per op, of every sample.
    pub fn costs(&self) -> Vec<f64> {
        self.values(|s| Some(s.generator_us_per_op))
    }

    pub fn cost(&self) -> Option<f64> {
        median(&self.costs())
    }

    /// The worker's own part of the cost, of this project alone.
    pub fn work(&self) -> Option<f64> {
        self.median(|s| Some(s.reading.cpu_us?.1))
    }

    pub fn server_cost(&self) -> Option<f64> {
        self.median(|s| s.server_us_per_op)
    }

    pub fn memory(&self) -> Option<f64> {
        self.median(|s| Some(s.peak_rss_mb))
    }
}

/// The value, or a dash where there is none.
pub fn shown(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "—".to_owned(), |value| format!("{value:.decimals$}"))
}

/// The median with the range it comes from.
pub fn spread(values: &[f64], decimals: usize) -> String {
    let Some(middle) = median(values) else { return "—".to_owned() };
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = values.iter().copied().fold(0.0, f64::max);
    format!("{middle:.decimals$} ({lowest:.decimals$}–{highest:.decimals$})")
}

/// Ours and, as the last, the rival's, row by row: rate, CPU per `unit` and its ratio to the
/// rival's, the server's CPU where it was measured, memory. `rival` is what the ratio's column
/// calls it.
pub fn comparison(rows: &[Row], unit: &str, rival: &str) -> String {
    let rivals = rows.last().and_then(Row::cost);
    let with_server = rows.iter().any(|row| row.server_cost().is_some());
    let server = |cell: String| if with_server { format!(" {cell} |") } else { String::new() };
    let mut table = format!(
        "| generator | {unit}s/s | CPU µs per {unit} (lowest–highest) | its CPU ÷ {rival}'s | work µs \
         per {unit} | its work ÷ {rival}'s CPU |{} peak memory MB |\n\
         | --- | --- | --- | --- | --- | --- |{} --- |\n",
        server(format!("server's CPU µs per {unit}")),
        server("---".to_owned()),
    );
    for row in rows {
        let ratio = |its: Option<f64>| shown(its.zip(rivals).map(|(its, rivals)| its / rivals), 2);
        table.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} |{} {} |\n",
            row.label(),
            shown(row.rate(), 0),
            spread(&row.costs(), 2),
            ratio(row.cost()),
            shown(row.work(), 2),
            ratio(row.work()),
            server(shown(row.server_cost(), 2)),
            shown(row.memory(), 0),
        ));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_failed_rounds_says_how_many_counted() {
        let sample = Sample {
            reading: Reading::default(),
            generator_us_per_op: 1.0,
            server_us_per_op: None,
            peak_rss_mb: 1.0,
        };
        let mut row = Row::new("ours".to_owned());
        row.take(Ok(sample));
        assert_eq!(row.label(), "ours");
        row.take(Err("it failed".to_owned()));
        assert_eq!(row.label(), "ours (1 of 2 rounds counted)");
    }
}
