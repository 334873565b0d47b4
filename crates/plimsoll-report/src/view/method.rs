//! Every parameter of the run beside the method's.

use plimsoll_model::method::Parameter;
use plimsoll_model::result::RunResult;
use serde::Serialize;

use crate::table::{Table, words};
use crate::text::ABSENT;

/// Before a value that is not the method's, so that it does not rest on colour.
const DEPARTS: &str = "≠ ";

/// The table, and how it is read.
#[derive(Debug, Default, Serialize)]
pub(crate) struct MethodView {
    /// How many parameters, and how many of them depart.
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
        summary: format!("{} parameters, {departing} with a departure", run.method.len()),
        table,
        note: format!(
            "Origin: source, the report that the suite follows ({source}); public, a standard, \
             rule book or file that anybody can read; ours, chosen for the suite, as no source \
             says it; yours, chosen by whoever wrote or ran the suite. What is not the method's, \
             or not the suite's, has a ≠."
        ),
    }
}

/// A suite whose parameters nobody published is departed from itself.
pub(super) fn departs_from(run: &RunResult) -> &'static str {
    match run.method.iter().all(|parameter| parameter.method.is_none()) {
        true if !run.method.is_empty() => "suite",
        _ => "published method",
    }
}

fn row(parameter: &Parameter) -> Vec<String> {
    let Parameter { name, value, method, origin, said, departure, .. } = parameter;
    let mark = if departure.is_some() { DEPARTS } else { "" };
    let origin = match said.as_str() {
        "" => origin.as_str().to_owned(),
        said => format!("{}: {said}", origin.as_str()),
    };
    let method = method.clone().unwrap_or_else(|| ABSENT.to_owned());
    vec![name.clone(), format!("{mark}{value}"), method, origin]
}
