//! `plimsoll suites`: the shipped suites.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use plimsoll_run::protocols;

use crate::exit::{Exit, Failure};
use crate::{suite_source, terminal};

#[derive(Debug, Args)]
pub(crate) struct SuitesArgs {
    #[command(subcommand)]
    pub action: Option<SuitesAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SuitesAction {
    /// List them, as `plimsoll suites` alone does
    List,
    /// Print a shipped suite, a good start for your own
    Show {
        /// Name of the suite
        name: String,
    },
    /// Print the journey of a shipped suite of users, with the pages of a published method
    Journey {
        /// Name of the suite, such as web-banking
        name: String,
    },
    /// Print the JSON Schema of the suite format
    Schema,
}

/// Lists the suites, shows one, or the schema of the format.
pub(crate) fn perform(args: &SuitesArgs) -> Result<Exit, Failure> {
    let text = match &args.action {
        None | Some(SuitesAction::List) => list()?,
        Some(SuitesAction::Show { name }) => {
            protocols::shipped(name).ok_or_else(|| suite_source::unknown(name))?.to_owned()
        }
        Some(SuitesAction::Journey { name }) => protocols::published_journey(name)
            .ok_or_else(|| {
                Failure::wrong(format!(
                    "suite {name} has no journey of its own; web-banking, web-shopping and \
                     web-support have one"
                ))
            })?
            .to_owned(),
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

/// Schema of the whole format; `[workload]` is that of the protocol with the given name.
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
