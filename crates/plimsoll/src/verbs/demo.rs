//! `plimsoll demo`: a short tour on the built-in servers.

use plimsoll_model::assignment::{Pacing, Priority};
use plimsoll_model::suite::ProfileName;
use plimsoll_model::target::TargetSpec;

use crate::cli::{DEFAULT_SEED, DemoArgs};
use crate::coordinator::RunRequest;
use crate::coordinator::signals::Signals;
use crate::exit::{Exit, Failure};
use crate::secrets::SecretHeaders;
use crate::suite_source;
use crate::terminal;
use crate::verbs::run::{command_line, default_out, run_and_show};

/// The suites of the tour, and how each goes.
const SUITES: [(&str, &str); 4] = [
    ("web-static", "a search for its peak, ten load points"),
    ("nfs-v3", "a search for its peak, ten load points"),
    ("disk-mix", "sixteen load points of 1 to 60 clients"),
    ("transactions", "sixteen load points of 1 to 60 clients"),
];

/// Runs each suite on its built-in server and shows where the report is.
pub(crate) fn perform(args: &DemoArgs) -> Result<Exit, Failure> {
    let out = args.out.clone().unwrap_or_else(|| default_out("demo"));
    let signals = Signals::listen()?;
    let mut worst = Exit::Valid;
    for (name, how) in SUITES {
        terminal::note(&format!("{name}: a server of our own, {how}; about 15 s"));
        let request = RunRequest {
            suite: suite_source::find(name, &[])?,
            headers: SecretHeaders::default(),
            profile: ProfileName::Demo,
            targets: vec![TargetSpec::Builtin],
            seed: DEFAULT_SEED,
            out: out.join(name),
            workers: None,
            pacing: Pacing::Auto,
            priority: Priority::Auto,
            loadfile: None,
            monitors: Vec::new(),
            statements: Vec::new(),
            capacity: None,
            gates: plimsoll_model::gate::Gates::default(),
            held: None,
            command: command_line(),
        };
        let exit = run_and_show(&request, &signals, args.output)?.exit;
        worst = worst.max(exit);
        if exit == Exit::Interrupted {
            break;
        }
    }
    Ok(worst)
}
