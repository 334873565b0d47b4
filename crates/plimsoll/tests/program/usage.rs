//! Wrong commands and suite files: exit code 2, with location and suggestion.

use std::path::Path;

use plimsoll_model::result::RunResult;

use plimsoll_testkit::program::{plimsoll, short};

fn check_suite(change: impl Fn(String) -> String, parts: &[&str]) {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("mine.toml");
    let shipped = plimsoll(&["suites", "show", "web-static"]).out;
    std::fs::write(&file, change(shipped)).unwrap();
    plimsoll(&["check", file.to_str().unwrap()]).check(2, parts);
}

#[test]
fn a_wrong_command_ends_with_2() {
    plimsoll(&[]).check(2, &["Usage"]);
    plimsoll(&["serv"]).check(2, &["serve"]);
    plimsoll(&["capacity", "web-static"]).check(2, &["--within"]);
    plimsoll(&["run", "web-static"]).check(2, &["TARGET"]);
    plimsoll(&["--help"]).check(0, &["demo", "Exit codes"]);
    plimsoll(&["--version"]).check(0, &["plimsoll"]);
}

#[test]
fn a_wrong_key_in_a_suite_is_shown_with_line_caret_and_suggestion() {
    check_suite(
        |text| text.replace("verify_one_in", "verify_one_inn"),
        &["mine.toml:", "unknown key", "^^^", "verify_one_in"],
    );
}

/// `plimsoll check` named one of three typos.
#[test]
fn every_mistake_of_a_suite_is_shown() {
    let lines = |ended: &plimsoll_testkit::program::Ended| ended.err.matches("mine.toml:").count();
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("mine.toml");
    let shipped = plimsoll(&["suites", "show", "web-static"]).out;
    let check = |text: String, more: &[&str]| {
        std::fs::write(&file, text).unwrap();
        plimsoll(&[&["check", file.to_str().unwrap()], more].concat())
    };
    let typos = shipped
        .replace("verify_one_in", "verify_one_inn")
        .replace("[35, 50, 14, 1]", "[35, 50, 14, 2]")
        .replace("op_timeout", "op_timout")
        .replace("steps = 10", "stepz = 10");
    let ended = check(typos, &[]);
    ended.check(2, &["verify_one_in`", "sum to 100", "did you mean `op_timeout`?", "`steps`?"]);
    assert_eq!(lines(&ended), 5, "the origin of op_timeout too: {}", ended.err);
    // A required key under a wrong name is one mistake.
    let ended = check(shipped.replace("\ntitle =", "\ntitel ="), &[]);
    ended.check(2, &["did you mean `title`?"]);
    assert_eq!(lines(&ended), 1, "{}", ended.err);
    let ended = check(shipped.clone(), &["--set", "load.cleints=3", "--set", "rules.x=1"]);
    ended.check(2, &["--set load.cleints", "--set rules.x"]);
    check(shipped, &[]).check(0, &["is a valid suite"]);
}

/// Flags that a verb refuses get an answer, and are not offered.
#[test]
fn help_lists_the_flags_that_a_verb_takes() {
    let listed = |verb: &str, flag: &str| {
        let help = plimsoll(&[verb, "--help"]);
        help.check(0, &["--out"]);
        help.out.lines().any(|line| {
            let tokens = line.split(|c: char| c.is_whitespace() || c == ',');
            line.trim_start().starts_with('-') && tokens.into_iter().any(|word| word == flag)
        })
    };
    let ladder = ["--points", "--peak", "--steps", "--repeat", "--clients", "--rate", "--report"];
    for flag in ladder {
        assert!(listed("run", flag) && !listed("capacity", flag), "{flag}");
        let value = if flag == "--report" { "last" } else { "3" };
        plimsoll(&["capacity", "web-url", "builtin:", "--within", "p99<1s", flag, value])
            .check(2, &[flag, "plimsoll run"]);
    }
    for verb in ["versus", "scale"] {
        assert!(listed(verb, "--repeat") && !listed(verb, "--report"), "{verb}");
    }
    assert!(!listed("experiment", "--points") && listed("experiment", "--factor"));
}

#[test]
fn a_mix_that_does_not_sum_is_refused() {
    check_suite(
        |text| text.replace("[35, 50, 14, 1]", "[35, 50, 14, 2]"),
        &["mine.toml:", "[35, 50, 14, 2]", "sum to 100"],
    );
}

#[test]
fn a_negative_load_is_refused() {
    check_suite(
        |text| text.replace("kind = \"auto\"", "kind = \"points\"\npoints = [100, -5]"),
        &["mine.toml:", "-5", "ops/s above 0"],
    );
    plimsoll(&["run", "web-static", "builtin:", "--points=-5"])
        .check(2, &["--points: load point -5", "ops/s above 0"]);
}

#[test]
fn a_target_of_another_protocol_is_refused() {
    plimsoll(&["run", "web-static", "smb://h/share"])
        .check(2, &["protocol http has no scheme \"smb\"", "write http:// or https://"]);
}

#[test]
fn the_ladder_of_the_command_line_replaces_the_files_whole() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("mine.toml");
    let text = plimsoll(&["suites", "show", "web-static"]).out;
    assert!(text.contains("kind = \"auto\"\nsteps = 10"));
    std::fs::write(&file, text.replace("steps = 10", "steps = 4")).unwrap();
    // Enough for this test: the target is checked only after the suite.
    let suite = file.to_str().unwrap();
    plimsoll(&["run", suite, "http://no-such-host.invalid/", "--points", "5,6"]).check(3, &[]);
    plimsoll(&["run", suite, "http://no-such-host.invalid/", "--peak", "60"]).check(3, &[]);
    plimsoll(&["run", "disk-mix", "builtin:", "--peak", "auto"]).check(2, &["closed load"]);
    // The one suite that may be either: a peak is searched in requests per second.
    let url = ["run", "web-url", "http://no-such-host.invalid/"];
    plimsoll(&[&url[..], &["--peak", "auto"]].concat()).check(3, &[]);
    plimsoll(&[&url[..], &["--connections", "9"]].concat()).check(2, &["--rate N", "--peak auto"]);
    for flags in [["--points", "5,6"], ["--peak", "60"], ["--peak", "auto"]] {
        let run = ["run", "web-static", "http://no-such-host.invalid/"];
        plimsoll(&[&run[..], &flags].concat()).check(3, &[]);
    }
    let open = ["run", "web-url", "http://no-such-host.invalid/", "--set", "load.mode=open"];
    for flags in [["--peak", "auto"], ["--peak", "60"], ["--set", "ladder.kind=auto"]] {
        plimsoll(&[&open[..], &flags].concat()).check(3, &[]);
    }
}

#[test]
fn a_shipped_suite_is_right_and_an_unknown_one_gets_a_suggestion() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("copy.toml");
    std::fs::write(&file, plimsoll(&["suites", "show", "web-url"]).out).unwrap();
    plimsoll(&["check", file.to_str().unwrap()]).check(0, &["web-url", "is a valid suite"]);
    plimsoll(&["run", "web-statik", "builtin:"]).check(2, &["did you mean web-static?"]);
    plimsoll(&["check", "/no/such/file.toml"]).check(2, &["/no/such/file.toml"]);
}

#[test]
fn the_schema_of_suites_is_json() {
    let schema = plimsoll(&["suites", "schema"]);
    schema.check(0, &["file_set"]);
    serde_json::from_str::<serde_json::Value>(&schema.out).unwrap();
}

#[test]
fn a_wrong_target_or_flag_says_what_to_write() {
    plimsoll(&["run", "web-static", "localhost:80"]).check(2, &["is not a URL", "write http://"]);
    plimsoll(&["run", "web-static", "nginx"]).check(2, &["is not a URL", "builtin:"]);
    plimsoll(&["http://127.0.0.1/a"]).check(2, &["plimsoll run web-url http://127.0.0.1/a"]);
    plimsoll(&["run", "web-static", "nfs://127.0.0.1/x"]).check(2, &["http://"]);
    plimsoll(&["run", "web-static", "managed:ngnix"]).check(2, &["did you mean managed:nginx?"]);
    plimsoll(&["run", "nfs-v3", "managed:nginx"]).check(2, &["serves HTTP, not NFS"]);
    plimsoll(&["run", "nfs-v3", "http://127.0.0.1/x"]).check(2, &["nfs://", "managed:NAME"]);
    plimsoll(&["prepare", "nfs-v3", "nfs://127.0.0.1:9/x", "--peak", "1", "--seed", "5"])
        .check(2, &["workload.file_set_seed=N"]);
    plimsoll(&["run", "web-static", "builtin:", "--clients", "3"]).check(2, &["web-url"]);
    plimsoll(&["run", "web-static", "builtin:", "--set", "load.cleints=3"])
        .check(2, &["--set load.cleints", "did you mean `clients`?"]);
}

#[test]
fn what_a_fresh_reader_types_is_done_or_answered() {
    let alone = plimsoll(&["suites"]);
    alone.check(0, &["web-url", "plimsoll suites show NAME"]);
    assert_eq!(plimsoll(&["suites", "list"]).out, alone.out);
    assert_eq!(plimsoll(&["published", "list"]).out, plimsoll(&["published"]).out);
    plimsoll(&["suites", "nonsense"]).check(2, &["nonsense", "Usage: plimsoll suites"]);
    let url = "http://127.0.0.1/a";
    plimsoll(&["web-url", url])
        .check(2, &["is a suite", "plimsoll run web-url http://127.0.0.1/a"]);
    let run = |flags: &[&str]| plimsoll(&[&["run", "web-static", "builtin:"], flags].concat());
    run(&["--points", "1kk"]).check(2, &["--points", "for example 500 or 2.5k"]);
    run(&["--peak", "fast"]).check(2, &["--peak", "for example 500 or 2.5k, or auto"]);
    run(&["--rate", "1G"]).check(2, &["--rate", "for example 500 or 2.5k"]);
    run(&["--clients", "0.5k", "--peak", "1k"]).check(2, &["--clients", "--peak"]);
}

#[test]
fn the_first_line_says_how_long_a_point_will_take() {
    let temp_dir = tempfile::tempdir().unwrap();
    let out = temp_dir.path().join("b");
    let mut arguments = vec!["run", "web-url", "builtin:", "--out", out.to_str().unwrap()];
    arguments.extend(["--rate", "0.1k", "--warm-up", "100ms", "--for", "200ms"]);
    let first =
        |ended: &plimsoll_testkit::program::Ended| ended.err.lines().next().unwrap().to_owned();
    assert_eq!(first(&plimsoll(&arguments)), "100 ops/s, 100 ms warm-up + 200 ms");
}

#[test]
fn a_user_name_in_a_url_is_refused_and_its_password_not_shown() {
    let ended = plimsoll(&["run", "web-url", "http://ada:hush@127.0.0.1/"]);
    ended.check(2, &["http://ada@127.0.0.1/", "Authorization"]);
    assert!(!ended.err.contains("hush"), "{}", ended.err);
}

#[test]
fn every_directory_of_repeated_runs_is_looked_at_before_the_first_run() {
    let temp_dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(temp_dir.path().join("b-2")).unwrap();
    std::fs::write(temp_dir.path().join("b-2/mine.txt"), "x").unwrap();
    let out = temp_dir.path().join("b");
    let more = ["--clients", "1", "--repeat", "2"];
    plimsoll(&short("web-url", "builtin:", &out, &more)).check(2, &["b-2", "is not empty"]);
    assert!(!temp_dir.path().join("b-1").exists());
}

#[test]
fn an_existing_output_directory_is_left_alone() {
    let temp_dir = tempfile::tempdir().unwrap();
    std::fs::write(temp_dir.path().join("mine.txt"), "x").unwrap();
    let arguments = short("web-static", "builtin:", temp_dir.path(), &["--points", "10"]);
    plimsoll(&arguments).check(2, &["is not empty", "--out", "plimsoll resume"]);
    assert_eq!(std::fs::read_dir(temp_dir.path()).unwrap().count(), 1);
}

#[test]
fn what_is_no_bundle_is_called_so() {
    let temp_dir = tempfile::tempdir().unwrap();
    for verb in ["analyse", "report", "verify", "resume"] {
        plimsoll(&[verb, temp_dir.path().to_str().unwrap()])
            .check(2, &["is not a Plimsoll bundle"]);
    }
}

#[test]
fn a_curve_from_elsewhere_is_analysed_and_a_bad_one_refused() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("curve.csv");
    let analyse = |text: &str| {
        std::fs::write(&file, text).unwrap();
        plimsoll(&["analyse", "--curve", file.to_str().unwrap(), "--json"])
    };
    let good = analyse("load,throughput,response_ms\n100,100,1.5\n200,199,2.5\n");
    good.check(0, &["\"peak_ops_per_s\": 199.0", "\"valid\": true", "foreign_curve"]);
    // By the contents of the file, and so is the exit code.
    let idle = analyse("load,throughput,response_ms\n100,100,1.5\n200,0,2.5\n");
    idle.check(1, &["throughput is 0"]);
    analyse("load,throughput\n1,2\n").check(2, &["response_ms"]);
}

#[test]
fn curves_with_a_known_overall_response_time_give_it() {
    // Test data: where these curves were published is not recorded. By hand: span is
    // (origin × peak − the triangle below the first point) ÷ (peak − first point).
    let curves = [
        (
            "25025:0.9 49940:1.2 74807:1.3 99889:1.5 128059:1.4 154587:1.6 178734:1.8 202428:2.2 \
          225822:2.5 250573:3.0",
            "1.58",
            "1.70",
        ),
        (
            "29435:0.6 58907:0.7 88372:0.8 117878:1.0 147284:1.2 177021:1.6 206422:1.9 236207:2.5 \
          265729:3.4 293128:6.4",
            "1.67",
            "1.82",
        ),
    ];
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("curve.csv");
    for (points, origin, span) in curves {
        let mut text = "load,throughput,response_ms\n".to_owned();
        for point in points.split_whitespace() {
            let (ops, ms) = point.split_once(':').unwrap();
            text.push_str(&format!("{ops},{ops},{ms}\n"));
        }
        std::fs::write(&file, text).unwrap();
        let ended = plimsoll(&["analyse", "--curve", file.to_str().unwrap(), "--json"]);
        ended.check(0, &[]);
        let result: RunResult = serde_json::from_str(&ended.out).unwrap();
        let overall = result.summary.overall_response_ms;
        let text = |value: Option<f64>| format!("{:.2}", value.unwrap());
        assert_eq!((text(overall.origin), text(overall.span)), (origin.into(), span.into()));
    }
}

#[test]
fn inventory_and_published_results_are_shown() {
    plimsoll(&["inventory"]).check(0, &["kernel", "memory"]);
    plimsoll(&["published"]).check(0, &["web-n440bx-1998"]);
    plimsoll(&["published", "show", "web-n440bx-1998"]).check(0, &["1,661"]);
    plimsoll(&["published", "show", "nfs-pseries-v2-2002"]).check(0, &["111,687", "-17.6 %"]);
    plimsoll(&["published", "show", "nfs-pseries-v3-2002"]).check(0, &["61,120", "RainFiler"]);
    plimsoll(&["published", "show", "nothing"]).check(2, &["web-n440bx-1998"]);
}

#[test]
fn a_file_set_is_prepared_and_cleaned_only_where_it_is_ours() {
    let temp_dir = tempfile::tempdir().unwrap();
    let dir = temp_dir.path().join("www");
    let www = dir.to_str().unwrap();
    plimsoll(&["prepare", "web-static", www, "--peak", "0.05"]).check(0, &["1 directories", www]);
    assert!(dir.join("dir00000/class3_9").exists());
    plimsoll(&["clean", www]).check(0, &[]);
    assert!(!dir.exists());
    let foreign: &Path = temp_dir.path();
    std::fs::write(foreign.join("mine.txt"), "x").unwrap();
    plimsoll(&["clean", foreign.to_str().unwrap()]).check(2, &["carries no"]);
    plimsoll(&["prepare", "web-static", foreign.to_str().unwrap(), "--peak", "1"])
        .check(2, &["is not empty"]);
}

#[test]
fn a_load_file_for_a_suite_of_another_protocol_is_refused() {
    let load = ["run", "web-url", "builtin:", "--loadfile", "no-such-file.txt"];
    plimsoll(&load).check(2, &["a load file belongs to", "suite disk-mix", "web-url"]);
}
