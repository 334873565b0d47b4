//! `--prices FILE` of `report` and `compare`: what systems cost beside what they carry.

use std::path::Path;

use plimsoll_analysis::board::{price_of, system_among};
use plimsoll_analysis::compare::GroupInput;
use plimsoll_analysis::price::{Performance, PriceError, compare_priced, priced, system_of};
use plimsoll_model::board::BoardPrice;
use plimsoll_model::prices::{PriceComparison, PriceList, PricedSystem, SystemPrices};
use plimsoll_model::result::RunResult;

use crate::exit::Failure;

/// A price file that was read, and its name for messages.
pub(crate) struct Prices<'p> {
    file: &'p Path,
    list: PriceList,
}

impl<'p> Prices<'p> {
    /// Reads a price file; nothing where none was named.
    pub(crate) fn read(file: Option<&'p Path>) -> Result<Option<Self>, Failure> {
        let Some(file) = file else { return Ok(None) };
        let text = std::fs::read_to_string(file).map_err(|e| {
            Failure::wrong(format!("{}: cannot read the price file: {e}", file.display()))
        })?;
        let list = PriceList::parse(&file.display().to_string(), &text)?;
        Ok(Some(Self { file, list }))
    }

    /// The price of the run in a bundle: of the system that has its directory's name, or of the
    /// only one.
    pub(crate) fn of_run(&self, bundle: &Path, run: &RunResult) -> Result<PricedSystem, Failure> {
        Ok(priced(&self.list, self.system_of(bundle)?, &Performance::of(run)))
    }

    /// The system that has the name of a bundle's directory, or the only one.
    pub(crate) fn system_of(&self, bundle: &Path) -> Result<&SystemPrices, Failure> {
        system_of(&self.list, &label_of(bundle)).map_err(|e| self.failure(&e))
    }

    /// Groups of runs side by side, each by its label, or by the name of its first bundle's
    /// directory where no system is called like the label.
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

    /// The system of a run in a table of results: it is called like the run's directory, like that
    /// without the number of a repeat, like the directory above, or like the target; or it is the
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

    /// What a unit of the run's peak costs.
    pub(crate) fn of_line(&self, bundle: &Path, run: &RunResult) -> Option<BoardPrice> {
        price_of(&self.list, self.system_on_board(bundle, run)?, run)
    }

    /// No run is of a system that the file prices.
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
