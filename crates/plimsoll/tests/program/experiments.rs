//! Experiments from the command line: factors of all kinds, messages of mistakes in the file, and
//! the state after Ctrl-C.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::listening::Listening;
use plimsoll_testkit::program::{command, plimsoll, points_finished, signal, wait_for, wait_until};

/// Runs of a third of a second.
const OPTIONS: &str = "options = \"--profile quick --rate 50,100 --workers 1 --warm-up 50ms \
                       --for 200ms --set profiles.quick.drain=1s\"\n";

/// A directory with the file of an experiment.
struct ExperimentDir {
    dir: tempfile::TempDir,
    file: PathBuf,
}

impl ExperimentDir {
    fn new(head: &str, factors: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("e.toml");
        std::fs::write(&file, format!("suite = \"web-url\"\n{OPTIONS}{head}{factors}")).unwrap();
        Self { dir, file }
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    /// A build with debug assertions measures nothing, so its runs are forced.
    fn arguments(&self) -> Vec<String> {
        let of = |path: &Path| path.to_str().unwrap().to_owned();
        let arguments = ["experiment", &of(&self.file), "--out", &of(&self.out()), "--force"];
        arguments.into_iter().chain(["--progress", "plain", "--json"]).map(str::to_owned).collect()
    }
}

fn texts(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

fn runs(out: &Path) -> usize {
    let records = std::fs::read_to_string(out.join("experiment.jsonl")).unwrap_or_default();
    records.lines().filter(|line| line.contains("\"event\":\"run\"")).count()
}

#[test]
fn factors_of_commands_keys_and_hands_make_one_document() {
    let server = Listening::start();
    let head = format!("target = \"{}\"\nrepeats = 2\nresponse = \"p50@100\"\n", server.url);
    let state = tempfile::NamedTempFile::new().unwrap();
    let path = state.path().display();
    let experiment_dir = ExperimentDir::new(
        &head,
        &format!(
            "[[factors]]\nname = \"cache\"\nlevels = [\"off\", \"on\"]\n\
             set = \"echo $LEVEL > {path}\"\nverify = \"grep -qx $LEVEL {path}\"\n\
             undo = \"echo as before > {path}\"\n\
             [[factors]]\nname = \"clock\"\nunit = \"MHz\"\nlevels = [350, 450]\nmanual = true\n"
        ),
    );
    let mut child = command(&texts(&experiment_dir.arguments()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Four settings, and up to six more where the best combination is run again.
    child.stdin.take().unwrap().write_all(b"\n\n\n\n\n\n\n\n\n\n").unwrap();
    let ended = wait_for(child);
    ended.check(1, &["By hand: set clock = ", "run 8 of 8 (repeat 2 of 2)", "report: "]);
    let document: Value = serde_json::from_str(&ended.out).unwrap();
    let experiment = &document["experiment"];
    assert_eq!(experiment["response"]["figure"], "p50");
    assert_eq!(experiment["factors"][1]["set"], "by_hand");
    assert_eq!(experiment["cells"].as_array().unwrap().len(), 4);
    let best = &experiment["best"];
    let is_open = best["claim"] == "run_again";
    assert_eq!(best["again"]["runs"].as_u64(), is_open.then_some(3), "{best}");
    assert_eq!(runs(&experiment_dir.out().join("again")), if is_open { 6 } else { 0 });
    assert_eq!(document["groups"][1]["label"], "cache = off, clock = 450 MHz");
    let differs = document["differences"].to_string();
    assert!(differs.contains("stated: cache") && differs.contains("450 MHz"), "{differs}");
    assert_eq!(std::fs::read_to_string(state.path()).unwrap(), "as before\n");
    for ending in ["html", "md", "json", "jsonl", "toml"] {
        assert!(experiment_dir.out().join(format!("experiment.{ending}")).exists(), "{ending}");
    }
    plimsoll(&texts(&experiment_dir.arguments())).check(2, &["plimsoll resume"]);
    // The bundles again, as if they were of another day.
    let cell = |name: &str| {
        format!("clock={name},run={}/cache-off_clock-{name}", experiment_dir.out().display())
    };
    let joined = ["experiment", "--factor", &cell("350"), "--factor", &cell("450"), "--force"];
    plimsoll(&joined).check(0, &["clock"]);
}

#[test]
fn an_option_of_the_run_is_a_factor() {
    let server = Listening::start();
    let head = format!("target = \"{}\"\nrepeats = 1\n", server.url);
    let experiment_dir = ExperimentDir::new(
        &head,
        "[[factors]]\nname = \"header\"\nflag = \"--header\"\n\
         levels = [false, { name = \"on\", value = \"x-level: on\" }]\n",
    );
    let ended = plimsoll(&texts(&experiment_dir.arguments()));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    assert_eq!(runs(&experiment_dir.out()), 2, "{ended:?}");
    server.saw("x-level: on");
    let suite_of = |cell: &str| {
        std::fs::read_to_string(experiment_dir.out().join(cell).join("suite.toml")).unwrap()
    };
    assert!(suite_of("header-on").contains("x-level"), "{}", suite_of("header-on"));
    assert!(!suite_of("header-false").contains("x-level"), "{}", suite_of("header-false"));
}

#[test]
fn ctrl_c_loses_the_run_under_way_and_resume_makes_the_others() {
    let server = Listening::start();
    let head = format!("target = \"{}\"\nrepeats = 2\n", server.url);
    let experiment_dir = ExperimentDir::new(
        &head,
        "[[factors]]\nname = \"t\"\nkey = \"op_timeout\"\nlevels = [\"4s\", \"5s\"]\n",
    );
    let child = command(&texts(&experiment_dir.arguments()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let out = experiment_dir.out();
    let second =
        || ["4s", "5s"].map(|level| points_finished(&out.join(format!("t-{level}/1"))) > 0);
    wait_until("a second run has begun", || runs(&out) == 1 && second() == [true; 2]);
    signal(&child, Signal::INT);
    wait_for(child).check(4, &["to go on: plimsoll resume"]);
    let left = 4 - runs(&out);
    assert!(left > 0);
    // The file now has another experiment.
    std::fs::write(&experiment_dir.file, "suite = 1").unwrap();
    let resumed = plimsoll(&["resume", out.to_str().unwrap(), "--progress", "plain"]);
    resumed.check(1, &["run 4 of 4 (repeat 2 of 2)"]);
    assert_eq!((runs(&out), resumed.err.matches("run ").count()), (4, left), "{resumed:?}");
}

#[test]
fn mistakes_are_told_before_any_load() {
    let head = "target = \"http://127.0.0.1:9/\"\n";
    let refused = |factor: &str, parts: &[&str]| {
        let experiment_dir =
            ExperimentDir::new(head, &format!("[[factors]]\nname = \"f\"\n{factor}\n"));
        plimsoll(&texts(&experiment_dir.arguments())).check(2, parts);
        assert!(!experiment_dir.out().join("experiment.jsonl").exists());
    };
    refused("levels = [1]", &["e.toml:4", "nothing says how factor \"f\" is set"]);
    refused("levels = [1]\nserver = \"cores\"", &["it must be started here"]);
    refused("levels = [1]\nset = \"true\"\nafter_start = true", &["after_start is for servers"]);
    refused("levels = [true]\nflag = \"monitor\"", &["e.toml:7", "such as --monitor"]);
    refused("levels = [true]\nflag = \"--speed\"", &["options: ", "--speed"]);
    refused("levels = [2]\nflag = \"--repeat\"", &["--repeat: write repeats = N"]);
    refused("levels = [\"9\"]\nserver = \"link_rate\"", &["level 9", "100Mbit/s"]);
    refused("levels = [1.5]\nkey = \"load.clients\"", &["load.clients"]);
    let experiment_dir = ExperimentDir::new(
        "target = \"http://127.0.0.1:9/\"\nresponse = \"p99\"\n",
        "[[factors]]\nname = \"f\"\nlevels = [1]\nmanual = true\n",
    );
    plimsoll(&texts(&experiment_dir.arguments())).check(2, &["with a load point, as in p99@1000"]);
    let with_key = |key: &str, parts: &[&str]| {
        let head = format!("target = \"http://127.0.0.1:9/\"\n{key}\n");
        let factor = "[[factors]]\nname = \"f\"\nlevels = [1, 2]\nmanual = true\n";
        let experiment_dir = ExperimentDir::new(&head, factor);
        plimsoll(&texts(&experiment_dir.arguments())).check(2, parts);
    };
    with_key("response = \"capacity\"", &["no run searches one", "within = "]);
    with_key("within = \"p99<50\"", &["\"50\" is no span of time"]);
    with_key("within = \"p99<50ms\"", &["--rate: plimsoll capacity finds the load itself"]);
    let gated = OPTIONS.replace("--workers 1", "--workers 1 --fail-if 'peak < 0.97x'");
    let text = "suite = \"web-url\"\ntarget = \"http://127.0.0.1:9/\"\nrepeats = 2\n[[factors]]\n\
                name = \"f\"\nlevels = [1, 2]\nkey = \"load.clients\"\n";
    std::fs::write(&experiment_dir.file, gated + text).unwrap();
    plimsoll(&texts(&experiment_dir.arguments())).check(2, &["'peak < 0.97x'", "repeats = 3"]);
    plimsoll(&["experiment"]).check(2, &["FILE.toml"]);
    plimsoll(&["experiment", "--factor", "clock=1"]).check(2, &["run=DIR"]);
}

#[test]
fn nobody_at_the_terminal_is_told() {
    let server = Listening::start();
    let head = format!("target = \"{}\"\n", server.url);
    let experiment_dir = ExperimentDir::new(
        &head,
        "[[factors]]\nname = \"clock\"\nlevels = [1, 2]\nmanual = true\n",
    );
    let child = command(&texts(&experiment_dir.arguments()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ended = wait_for(child);
    ended.check(2, &["nobody answers on standard input"]);
    assert!(!ended.err.contains("plimsoll resume"), "nothing was made: {}", ended.err);
}
