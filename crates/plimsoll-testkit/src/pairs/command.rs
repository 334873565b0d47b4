//! The command line of a row.

use std::fs;
use std::path::{Path, PathBuf};

use super::bench::Bench;
use super::{ENCRYPTED, HTTP, PROTOCOL, Row, SERVER, VERB};

/// Suite, low loads, and further options of a protocol.
struct Load {
    suite: &'static str,
    loads: &'static str,
    more: &'static [&'static str],
}

/// The load of a row: one that every server follows.
fn load(row: &Row) -> Load {
    match row.levels[PROTOCOL] {
        "web" if row.is(SERVER, "foreign") => {
            Load { suite: "web-url", loads: "500,3000", more: &[] }
        }
        "web" => Load { suite: "web-static", loads: "100,500", more: &[] },
        "nfs" => Load { suite: "nfs-v3", loads: "200,1000", more: &[] },
        "smb" => Load { suite: "disk-mix", loads: "1,4", more: &[] },
        // A third client fills the server's core.
        "app" => Load { suite: "transactions", loads: "1", more: &[] },
        _ => Load {
            suite: "llm-chat",
            loads: "1,2",
            more: &["--input-tokens", "64", "--output-tokens", "16"],
        },
    }
}

/// The loads that a run of this row makes; `None` if it searches them.
pub fn requested_loads(row: &Row) -> Option<Vec<f64>> {
    let loads = load(row).loads.split(',').map(|load| load.parse().unwrap());
    (!row.is(VERB, "capacity")).then(|| loads.collect())
}

/// Where the bundles of a row are.
pub fn out(bench: &Bench) -> PathBuf {
    bench.folder().join("out")
}

/// Bundles of runs in this directory.
pub fn bundles(directory: &Path) -> Vec<PathBuf> {
    if directory.join("journal.jsonl").exists() {
        return vec![directory.to_owned()];
    }
    let mut entries: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.iter().filter(|entry| entry.is_dir()).flat_map(|entry| bundles(entry)).collect()
}

/// The arguments of the program.
pub fn arguments(row: &Row, bench: &Bench) -> Vec<String> {
    let Load { suite, loads, more } = load(row);
    let verb = row.levels[VERB];
    let out = out(bench).display().to_string();
    let mut options: Vec<String> =
        ["--profile", "quick", "--workers", "1"].map(String::from).into();
    for (key, value) in [("warm_up", "300ms"), ("measure", "2s"), ("drain", "5s")] {
        options.extend(["--set".to_owned(), format!("profiles.quick.{key}={value}")]);
    }
    options.extend(more.iter().map(|text| (*text).to_owned()));
    match (suite, verb) {
        (_, "capacity") => {}
        ("web-url", _) => options.extend(["--rate".to_owned(), loads.to_owned()]),
        _ => options.extend(["--points".to_owned(), loads.to_owned()]),
    }
    if row.is(HTTP, "2") {
        options.extend(["--http".to_owned(), "2".to_owned()]);
    }
    if row.is(ENCRYPTED, "yes") {
        match suite {
            "web-url" => options.push("-k".to_owned()),
            _ => options.extend(["--set".to_owned(), "workload.encryption=true".to_owned()]),
        }
    }
    options.extend(bench.agents.iter().chain(&bench.monitors).cloned());
    let mut targets = bench.targets.clone();
    let of_verb: &[&str] = match verb {
        "capacity" => &["--within", "p99<100ms"],
        "versus" => &["--repeat", "1", "--force"],
        "scale" => &["--over", "cores=0.5,1", "--force"],
        _ => &[],
    };
    if verb == "versus" && targets.len() == 1 {
        targets = vec![targets[0].clone(), targets[0].clone()];
    }
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let head = match verb {
        "experiment" => {
            let file = experiment_file(suite, &targets, &options, bench.folder());
            return texts(&[verb, &file, "--out", &out, "--progress", "none"]);
        }
        _ => texts(&[verb, suite]),
    };
    let tail = texts(&["--out", &out, "--progress", "none"]);
    [head, targets, options, texts(of_verb), tail].concat()
}

/// An experiment of one factor, which any suite has.
fn experiment_file(suite: &str, targets: &[String], options: &[String], folder: &Path) -> String {
    let options: Vec<String> = options.iter().map(|text| format!("'{text}'")).collect();
    let text = format!(
        "suite = \"{suite}\"\ntargets = {targets:?}\nrepeats = 1\noptions = \"{}\"\n\
         [[factors]]\nname = \"seconds\"\nkey = \"profiles.quick.drain\"\nlevels = [\"5s\", \"6s\"]\n",
        options.join(" ")
    );
    let file = folder.join("pair.toml");
    fs::write(&file, text).unwrap();
    file.display().to_string()
}
