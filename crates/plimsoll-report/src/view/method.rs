//! Every parameter of the run and the method's.

use plimsoll_model::result::RunResult;
use serde::Serialize;

use crate::table::{Rows, Table};

/// Before a value that is not the method's, so that it does not rest on colour.
const DEVIATES: &str = "≠ ";

/// The table, and how it is read.
#[derive(Debug, Default, Serialize)]
pub(crate) struct MethodView {
    /// How many parameters, and how many of them deviate.
    pub(crate) summary: String,
    pub(crate) table: Table,
    pub(crate) note: String,
}

pub(super) fn view(run: &RunResult) -> MethodView {
    let table = Rows::new("Every parameter of the run", &run.method)
        .text("parameter", |it| it.name.clone())
        .text("this run", |it| {
            let mark = if it.departure.is_some() { DEVIATES } else { "" };
            format!("{mark}{}", it.value)
        })
        .text("the method", |it| it.method.clone())
        .text("origin", |it| match it.said.as_str() {
            "" => it.origin.as_str().to_owned(),
            note => format!("{}: {note}", it.origin.as_str()),
        })
        .table();
    let departing = run.method.iter().filter(|it| it.departure.is_some()).count();
    let source = run.suite.as_ref().map(|suite| suite.source.as_str()).unwrap_or_default();
    MethodView {
        summary: format!("{} parameters, {departing} with a deviation", run.method.len()),
        table,
        note: format!(
            "Origin: source, the report that the suite follows ({source}); public, a standard or rule \
             book of the method; substitute, measured on something public that is not the \
             method's, because the method's own was never published; ours, chosen for the suite, \
             as no source gives a value; yours, chosen by whoever wrote or ran the suite. Only \
             source and public give the method's own values. ≠ marks a value that differs from the \
             method, or from the suite where no method gives a value."
        ),
    }
}

/// Deviations are from the method where it has a value, else from the suite.
pub(super) fn deviations_lead(run: &RunResult) -> String {
    let departing = run.method.iter().filter(|parameter| parameter.departure.is_some());
    let of_suite = departing.filter(|parameter| parameter.method.is_none()).count();
    let all = run.departures.len();
    let deviations = |count: usize, what: &str| {
        format!("{count} deviation{} from {what}", if count == 1 { "" } else { "s" })
    };
    let (method, suite) = ("the published method", "the suite's full profile");
    match (all.saturating_sub(of_suite), of_suite) {
        (_, 0) => deviations(all, method),
        (0, _) => deviations(all, suite),
        (of_method, _) => format!("{}, {of_suite} from {suite}", deviations(of_method, method)),
    }
}
