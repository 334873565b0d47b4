//! `plimsoll suites`: what is shipped.

use std::fmt::Write as _;

use crate::cli::{SuitesAction, SuitesArgs};
use crate::exit::{Exit, Failure};
use crate::{protocols, suite_source, terminal};

/// Lists the suites, shows one, or the schema of the format.
pub(crate) fn perform(args: &SuitesArgs) -> Result<Exit, Failure> {
    let text = match &args.action {
        None | Some(SuitesAction::List) => list()?,
        Some(SuitesAction::Show { name }) => {
            protocols::shipped(name).ok_or_else(|| suite_source::unknown(name))?.to_owned()
        }
        Some(SuitesAction::Schema) => schema(),
    };
    terminal::print(&text);
    Ok(Exit::Valid)
}

fn list() -> Result<String, Failure> {
    let mut out = String::new();
    for (name, text) in protocols::shipped_suites() {
        let suite = protocols::parse_suite(name, text, &[])?;
        let _ = writeln!(out, "{name:<14} {} ({})", suite.title, suite.source);
    }
    out.push_str("\nplimsoll suites show NAME prints one, a good start for your own\n");
    Ok(out)
}

/// Schema of the whole format; `[workload]` is that of the protocol, by its name.
pub(crate) fn schema() -> String {
    let mut schema = plimsoll_model::suite::Suite::schema().to_value();
    let workloads: Vec<_> = protocols::all()
        .map(|one| one.protocol)
        .map(|protocol| {
            serde_json::json!({
                "if": { "properties": { "protocol": { "const": protocol.name } } },
                "then": { "properties": { "workload": (protocol.workload_schema)().to_value() } },
            })
        })
        .collect();
    if let Some(object) = schema.as_object_mut() {
        object.insert("allOf".to_owned(), workloads.into());
    }
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}
