//! `--prices FILE` of `report` and `compare`: the price of systems with the load they carry.

use std::path::Path;

use plimsoll_analysis::board::{price_of, system_among};
use plimsoll_analysis::compare::GroupInput;
use plimsoll_analysis::price::{Performance, PriceError, compare_priced, priced, system_of};
use plimsoll_model::board::BoardPrice;
use plimsoll_model::prices::{PriceComparison, PriceList, PricedSystem, SystemPrices};
use plimsoll_model::result::RunResult;
use plimsoll_run::text_file;

use crate::exit::Failure;

/// A price file, and its name for messages.
pub(crate) struct Prices<'p> {
    file: &'p Path,
    list: PriceList,
}

impl<'p> Prices<'p> {
    /// Reads a price file; `None` if none was named.
    pub(crate) fn read(file: Option<&'p Path>) -> Result<Option<Self>, Failure> {
        let Some(file) = file else { return Ok(None) };
        let text = text_file::read(file).map_err(|e| {
            Failure::wrong(format!("{}: cannot read the price file: {e}", file.display()))
        })?;
        let list = PriceList::parse(&file.display().to_string(), &text)?;
        Ok(Some(Self { file, list }))
    }

    /// The price of the run in a bundle: of the system named like its directory, or of the only
    /// one.
    pub(crate) fn of_run(&self, bundle: &Path, run: &RunResult) -> Result<PricedSystem, Failure> {
        Ok(priced(&self.list, self.system_of(bundle)?, &Performance::from_run(run)))
    }

    /// The system named like a bundle's directory, or the only one.
    pub(crate) fn system_of(&self, bundle: &Path) -> Result<&SystemPrices, Failure> {
        system_of(&self.list, &label_of(bundle)).map_err(|e| self.failure(&e))
    }

    /// Groups of runs with their prices. A group's system has its label as its name, or else the
    /// name of its first bundle's directory.
    pub(crate) fn compare(&self, groups: &[GroupInput]) -> Result<PriceComparison, Failure> {
        let named = |group: &GroupInput| match (self.list.system(&group.label), &*group.runs) {
            (None, [first, ..]) => label_of(Path::new(&first.bundle)),
            _ => group.label.clone(),
        };
        let performance = |group: &GroupInput| {
            let runs: Vec<&RunResult> = group.runs.iter().map(|run| &run.result).collect();
            (named(group), Performance::of_runs(&runs))
        };
        let groups: Vec<_> = groups.iter().map(performance).collect();
        compare_priced(&self.list, &groups).map_err(|e| self.failure(&e))
    }

    /// The system of a run in a table of results. Its name is that of the run's directory, the same
    /// without the number of a repeat, that of the directory above, or the target; or it is the
    /// only one.
    pub(crate) fn system_on_board(&self, bundle: &Path, run: &RunResult) -> Option<&SystemPrices> {
        let own = label_of(bundle);
        let stem = own.rsplit_once('-').filter(|(_, number)| number.parse::<u32>().is_ok());
        let stem = stem.map(|(stem, _)| stem.to_owned());
        let above = bundle.parent().filter(|dir| !dir.as_os_str().is_empty()).map(label_of);
        let mut labels = vec![own];
        labels.extend(stem.into_iter().chain(above).chain([run.targets.join(", ")]));
        system_among(&self.list, &labels)
    }

    /// The price of a unit of the run's peak.
    pub(crate) fn of_line(&self, bundle: &Path, run: &RunResult) -> Option<BoardPrice> {
        price_of(&self.list, self.system_on_board(bundle, run)?, run)
    }

    /// Reports that the file prices no run's system.
    pub(crate) fn nothing_priced(&self) -> Failure {
        let names: Vec<&str> = self.list.names().collect();
        Failure::wrong(format!(
            "{}: it prices none of these runs, only {}; a system is called like the \
             directory of its runs, or like their target",
            self.file.display(),
            names.join(", ")
        ))
    }

    fn failure(&self, error: &PriceError) -> Failure {
        Failure::wrong(format!("{}: {error}", self.file.display()))
    }
}

/// The label of a bundle: the name of its directory.
pub(crate) fn label_of(bundle: &Path) -> String {
    let whole = std::fs::canonicalize(bundle).unwrap_or_else(|_| bundle.to_owned());
    whole.file_name().unwrap_or(whole.as_os_str()).to_string_lossy().into_owned()
}
