//! `cargo lab bench`: what `docs/performance.md` claims, measured again.
//!
//! Every figure comes with its rival's, taken in the same run on the same machine, alternately.

mod against;
mod app;
pub mod facts;
mod generators;
mod memory;
mod nfs;
mod ours;
pub mod record;
mod row;
mod smb;
mod web;

use clap::{Parser, ValueEnum};
use xtask::verb::Result;

/// What is compared.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Part {
    /// CPU per request and lateness, compared with other generators on nginx; some 20 minutes
    Web,
    /// CPU per operation, compared with libnfs on NFS-Ganesha, and the reference server; 6 minutes
    Nfs,
    /// CPU per load-file line and per echo, compared with smbtorture on Samba; 8 minutes
    Smb,
    /// CPU per transaction, compared with a bare client on the reference server; 5 minutes
    App,
    /// Growth at full speed, and memory per idle client; 11 minutes
    Memory,
}

/// Options of `cargo lab bench`.
#[derive(Parser)]
pub struct Options {
    part: Part,
    /// Runs of each generator.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Length of a run. [default: 5; smb: 8, memory: 600]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// Sections to measure.
    #[arg(long, value_name = "SECTION", value_delimiter = ',')]
    only: Vec<String>,
    /// Replace all tables of this bench in docs/performance.md.
    #[arg(long, conflicts_with = "only")]
    write: bool,
    #[command(flatten)]
    against: against::AgainstOptions,
}

impl Options {
    fn seconds(&self) -> u64 {
        self.seconds.unwrap_or(match self.part {
            Part::Web | Part::Nfs | Part::App => 5,
            Part::Smb => 8,
            Part::Memory => 600,
        })
    }

    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }
}

/// Measures one part and prints its tables.
pub fn bench(options: &Options) -> Result<()> {
    if let Some(other) = &options.against.other {
        return against::against(options, other);
    }
    if options.write {
        // Before the minutes that the measurement takes.
        record::writable()?;
    }
    match options.part {
        Part::Web => web::web(options),
        Part::Nfs => nfs::nfs(options),
        Part::Smb => smb::smb(options),
        Part::App => app::app(options),
        Part::Memory => memory::memory(options),
    }
}

/// Middle of the values; of an even number the mean of the two in the middle.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        let options = |arguments: &[&str]| {
            Options::try_parse_from(["bench", "web"].iter().chain(arguments)).map_err(|e| e.kind())
        };
        assert_eq!(options(&["--rounds", "3", "--write"]).unwrap().rounds, 3);
        assert!(options(&["--rounds", "0"]).is_err());
        assert!(options(&["--rounds"]).is_err());
        assert!(options(&["--fast"]).is_err());
        let refused = options(&["--write", "--only", "echo"]).err();
        assert_eq!(refused, Some(ErrorKind::ArgumentConflict));
        assert_eq!(options(&["--only", "echo,replay"]).unwrap().only, ["echo", "replay"]);
        let pairs = options(&["--against", "other/plimsoll", "--pairs", "3", "--out", "r.md"]);
        assert_eq!(pairs.unwrap().against.other, Some("other/plimsoll".into()));
        let refused = |arguments: &[&str]| options(arguments).err();
        assert!(refused(&["--against", "x", "--pairs", "0"]).is_some());
        for alone in [["--pairs", "3"], ["--program", "x"], ["--out", "r.md"]] {
            assert_eq!(refused(&alone), Some(ErrorKind::MissingRequiredArgument), "{alone:?}");
        }
        for other in [["--rounds", "3"], ["--only", "echo"]] {
            let arguments = [&["--against", "x"], other.as_slice()].concat();
            assert_eq!(refused(&arguments), Some(ErrorKind::ArgumentConflict), "{other:?}");
        }
    }
}
