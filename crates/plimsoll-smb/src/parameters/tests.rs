//! The table as users write it.

use plimsoll_model::suite::{Suite, SuiteError};
use plimsoll_testkit::suites::small_suite;

use super::*;

fn suite(set: &[&str]) -> Result<Suite, SuiteError> {
    small_suite(("smb", ""), set, read)
}

fn typed(set: &[&str]) -> SmbWorkload {
    suite(set).unwrap().workload.parameters::<SmbWorkload>().clone()
}

#[test]
fn an_empty_table_is_the_methods_disk_mix() {
    let workload = typed(&[]);
    assert_eq!(workload.model, DiskMixModel::default());
    assert_eq!((workload.pattern, workload.workspace_mib), (Pattern::DiskMix, 20.0));
}

#[test]
fn dialects_may_be_written_with_and_without_quotes() {
    for dialect in Dialect::ALL {
        let name = dialect.as_str();
        for value in [name.to_owned(), format!("\"{name}\"")] {
            assert_eq!(typed(&[&format!("workload.dialect_max={value}")]).dialect_max, dialect);
        }
    }
    let near = suite(&["workload.dialect_max=2.14"]).unwrap_err();
    assert_eq!(near.help.unwrap(), "did you mean \"2.1\"?");
    for wrong in ["9.9", "4", "true"] {
        let error = suite(&[&format!("workload.dialect_max={wrong}")]).unwrap_err();
        assert!(error.help.unwrap().contains("write one of: 2.0.2, 2.1, 3.0"), "{wrong}");
    }
}

#[test]
fn shares_are_those_of_the_method_also_where_they_follow() {
    let method = [
        (SmbKind::Read, 27.1),
        (SmbKind::Create, 17.3),
        (SmbKind::QueryPath, 15.7),
        (SmbKind::Close, 12.7),
        (SmbKind::Write, 8.6),
        (SmbKind::Find, 6.1),
        (SmbKind::Unlink, 3.5),
        (SmbKind::QueryFs, 2.9),
        (SmbKind::QueryFile, 2.8),
        (SmbKind::SetFile, 1.4),
        (SmbKind::Flush, 1.2),
        (SmbKind::Rename, 0.7),
        (SmbKind::Lock, 0.06),
        (SmbKind::Unlock, 0.06),
        (SmbKind::Echo, 0.0),
    ];
    let shares = op_shares(&typed(&[])).unwrap();
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    for (kind, percent) in method {
        let share = shares[kind as usize] * 100.0;
        assert!((share - percent).abs() < 0.07, "{}: {share}", kind.name());
    }
    assert_eq!(op_shares(&typed(&["workload.pattern=\"nic\""])), None);
    assert_eq!(op_names()[3], "read");
}

#[test]
fn bytes_are_read_and_written_as_59_to_41_and_5_kilobytes_an_op() {
    let model = DiskMixModel::default();
    let bytes = |kind, sizes: &SizeTable| model.shares()[kind as usize] * sizes.mean_bytes();
    let read = bytes(SmbKind::Read, &model.read_sizes);
    let written = bytes(SmbKind::Write, &model.write_sizes);
    assert!((read / (read + written) - 0.59).abs() < 0.005, "{read} : {written}");
    assert!((read + written - 5_400.0).abs() < 100.0, "{}", read + written);
    let pass = f64::from(model.ops_per_pass);
    assert!((read * pass - 11.4e6).abs() < 0.1e6 && (written * pass - 7.8e6).abs() < 0.15e6);
}

#[test]
fn wrong_workloads_are_refused_with_a_next_move() {
    let refusal = |set: &str| {
        let error = suite(&[set]).unwrap_err();
        format!("{error} | {}", error.help.as_deref().unwrap_or_default())
    };
    assert!(refusal("workload.pattern=\"diskmix\"").contains("did you mean \"disk-mix\"?"));
    let guest = |set: &str| suite(&["workload.guest=true", set]).unwrap_err().message;
    assert!(guest("workload.encryption=true").contains("neither signed nor encrypted"));
    assert!(guest("workload.signing=\"required\"").contains("neither signed nor encrypted"));
    assert!(refusal("workload.dialect_max=\"1.0\"").contains("\"1.0\""));
    assert!(refusal("workload.outstanding_max=4").contains("one op in flight"));
    assert!(refusal("workload.shared_percent=101").contains("from 0 to 100"));
    assert!(refusal("workload.model.mix.raed=3").contains("did you mean `read`?"));
    assert!(refusal("workload.model.mix.close=3").contains("close"));
    assert!(refusal("workload.model.mix.create=0").contains("create = 17.3"));
    assert!(refusal("workload.model.handles_open_max=2").contains("from 5 to"));
    assert!(refusal("workload.model.sessions=1000").contains("quotient"));
    assert!(refusal("workload.model.reads_between=400").contains("smaller reads_between"));
    assert!(refusal("workload.model.missing_create_percent=80").contains("below"));
    assert!(refusal("workload.model.read_sizes.percent=[1, 2]").contains("same length"));
    assert!(refusal("workload.model.read_sizes.bytes_max=[0]").contains("from 1 to 65536"));
    let old = |set: &str| suite(&["workload.dialect_max=\"2.0.2\"", set]).unwrap_err().message;
    assert!(old("workload.encryption=true").contains("dialect 3.0"));
    assert!(old("workload.caching=\"lease\"").contains("dialect 2.1"));
}

#[test]
fn applications_make_the_pass_and_their_mistakes_are_placed() {
    const LETTER: &str = "workload.model.applications.letter";
    let text = format!(
        "[workload.model]\nreads_between = 0\n[{LETTER}]\nops = 200\ndocument = 50\n\
         files = 9\nmix = {{ lock = 0 }}\nread_sizes = {{ percent = [1, 0, 0, 0, 0, 0] }}\n\
         write_sizes = {{ percent = [1, 0, 0, 0, 0, 0, 0, 0] }}\n"
    );
    let read = |set: &[&str]| small_suite(("smb", &text), set, read);
    let suite = read(&[]).unwrap();
    let model = &suite.workload.parameters::<SmbWorkload>().model;
    assert_eq!((model.sessions, model.ops_per_pass), (1, 200));
    let own = model.of_application(&model.applications["letter"]);
    assert_eq!((own.mix.lock, own.missing_find_percent), (0.0, 52.0), "the rest is the model's");
    let both = model.shares().into_iter().zip(own.shares());
    assert!(both.into_iter().all(|(pass, one)| (pass - one).abs() < 1e-12));
    let longer = read(&["workload.model.applications.letter.ops=300"]).unwrap();
    assert_eq!(longer.workload.parameters::<SmbWorkload>().model.ops_per_pass, 300);
    let refusal = |set: &str| {
        let error = read(&[set]).unwrap_err();
        format!("{error} | {}", error.help.as_deref().unwrap_or_default())
    };
    assert!(refusal("workload.model.sessions=7").contains("leave sessions out, or write 1"));
    assert!(refusal(&format!("{LETTER}.files=7")).contains("from 8 to 48"));
    assert!(refusal("workload.model.handles_kept=9").contains("9 files for 9 handles"));
    assert!(refusal(&format!("{LETTER}.document=47")).contains("from 48 to 55"));
    assert!(refusal(&format!("{LETTER}.mix.create=0")).contains("create = 17.3"));
    assert!(refusal(&format!("{LETTER}.sequental_read_percent=3")).contains("did you mean"));
    assert!(refusal("workload.shared_write_percent=5").contains("shared_percent above 0"));
}

#[test]
fn the_schema_names_every_key() {
    let schema = schemars::schema_for!(SmbWorkload).as_value().to_string();
    for key in ["pattern", "3.1.1", "when-asked", "sequential_read_percent", "query_path"] {
        assert!(schema.contains(key), "{key}");
    }
}
