//! `cargo lab bench`: what `docs/performance.md` claims, measured again.
//!
//! Every figure comes with its rival's, taken in the same run on the same machine, in turns.

mod app;
mod facts;
mod generators;
mod memory;
mod nfs;
mod ours;
mod reading;
mod record;
mod row;
mod smb;
mod tables;
mod web;

use xtask::verb::Result;

/// What the command line asked for.
struct Options {
    rounds: usize,
    seconds: u64,
    /// Parts to measure; empty means all.
    only: Vec<String>,
    /// Also write the tables to `docs/performance.md`.
    write: bool,
}

impl Options {
    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }
}

/// `bench web`, `nfs`, `smb`, `app` or `memory`, with options.
pub fn bench(words: &[&str]) -> Result<()> {
    let ready = |words, seconds| -> Result<Options> {
        let options = options(words, seconds)?;
        if options.write {
            // Before the minutes that the measurement takes.
            record::writable()?;
        }
        Ok(options)
    };
    match words {
        ["web", rest @ ..] => web::web(&ready(rest, 5)?),
        ["nfs", rest @ ..] => nfs::nfs(&ready(rest, 5)?),
        ["smb", rest @ ..] => smb::smb(&ready(rest, 8)?),
        ["app", rest @ ..] => app::app(&ready(rest, 5)?),
        ["memory", rest @ ..] => memory::memory(&ready(rest, 600)?),
        _ => Err("usage: cargo lab bench web|nfs|smb|app|memory [--rounds 5] [--seconds 5] \
                  [--only PART,PART] [--write]"
            .to_owned()),
    }
}

fn options(words: &[&str], seconds: u64) -> Result<Options> {
    let mut options = Options { rounds: 5, seconds, only: Vec::new(), write: false };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: &str| {
            text.parse()
                .ok()
                .filter(|n| *n > 0)
                .ok_or(format!("{word} {text}: not a number above 0"))
        };
        match *word {
            "--rounds" => options.rounds = number(value()?)? as usize,
            "--seconds" => options.seconds = number(value()?)?,
            "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
            "--write" => options.write = true,
            other => return Err(format!("{other}: no such option of bench")),
        }
    }
    if options.write && !options.only.is_empty() {
        return Err(
            "--write replaces all tables of a bench in docs/performance.md, and those that \
                    --only leaves out would be lost; write without --only, or measure a part \
                    without --write"
                .to_owned(),
        );
    }
    Ok(options)
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
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn options_say_what_is_wrong_with_them() {
        assert_eq!(options(&["--rounds", "3", "--write"], 5).unwrap().rounds, 3);
        assert!(options(&["--rounds", "0"], 5).is_err());
        assert!(options(&["--rounds"], 5).is_err());
        assert!(options(&["--fast"], 5).is_err());
        let refused = options(&["--write", "--only", "echo"], 5).err().unwrap();
        assert!(refused.contains("would be lost"), "{refused}");
        assert_eq!(options(&["--only", "echo,replay"], 5).unwrap().only, ["echo", "replay"]);
    }
}
