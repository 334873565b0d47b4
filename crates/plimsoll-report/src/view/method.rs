//! Every parameter of the run beside the method's.

use plimsoll_model::method::Parameter;
use plimsoll_model::result::RunResult;
use serde::Serialize;

use crate::table::{Table, words};
use crate::text::ABSENT;

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
    let mut table = Table::new(
        "Every parameter of the run",
        vec![words("parameter"), words("this run"), words("the method"), words("origin")],
    );
    for parameter in &run.method {
        table.push(row(parameter));
    }
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

/// Departures are from the method where it says anything, from the suite where it does not.
pub(super) fn departures_lead(run: &RunResult) -> String {
    let departing = run.method.iter().filter(|parameter| parameter.departure.is_some());
    let of_suite = departing.filter(|parameter| parameter.method.is_none()).count();
    let all = run.departures.len();
    let departures = |count: usize, what: &str| {
        format!("{count} deviation{} from {what}", if count == 1 { "" } else { "s" })
    };
    let (method, suite) = ("the published method", "the suite's full profile");
    match (all.saturating_sub(of_suite), of_suite) {
        (_, 0) => departures(all, method),
        (0, _) => departures(all, suite),
        (of_method, _) => format!("{}, {of_suite} from {suite}", departures(of_method, method)),
    }
}

fn row(parameter: &Parameter) -> Vec<String> {
    let Parameter { name, value, method, origin, said, departure, .. } = parameter;
    let mark = if departure.is_some() { DEVIATES } else { "" };
    let origin = match said.as_str() {
        "" => origin.as_str().to_owned(),
        said => format!("{}: {said}", origin.as_str()),
    };
    let method = method.clone().unwrap_or_else(|| ABSENT.to_owned());
    vec![name.clone(), format!("{mark}{value}"), method, origin]
}
