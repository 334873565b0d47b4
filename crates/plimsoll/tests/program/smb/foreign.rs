//! A server by others that follows MS-SMB2 less closely than Samba does: impacket's.

use plimsoll_testkit::smb_peers::impacket;
use serde_json::Value;

use super::runs::{brief, check_as_expected, check_ended};
use plimsoll_testkit::program::{plimsoll, points_finished, result};

/// Document, message, section and field of each nonconformity in the run's replies.
fn nonconformities(result: &Value) -> Vec<[String; 4]> {
    let keys = ["document", "reply_to", "section", "field"];
    let of = |one: &'_ Value| -> [String; 4] {
        keys.map(|key| one[key].as_str().unwrap_or_default().to_owned())
    };
    result["nonconformities"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn impacket_lacks_operations_of_the_mix_which_are_named_before_any_load() {
    let share = tempfile::tempdir().unwrap();
    let Some(server) = impacket(share.path()) else { return };
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let run = plimsoll(&brief("disk-mix", &server.url, &bundle, &["--points", "1"]));
    let names = [
        "of the 48 operations that this suite needs do not work: ",
        "\"lock what another handle holds\" (expected a refusal, got success)",
        "\"query a path\" (expected success, got NT_STATUS_NOT_SUPPORTED)",
        "nothing was measured",
    ];
    run.check(3, &names);
    // Its NT_STATUS_NO_SUCH_FILE means the same for a missing name as
    // NT_STATUS_OBJECT_NAME_NOT_FOUND.
    assert!(!run.err.contains("missing name"), "{run:?}");
    assert_eq!(points_finished(&bundle), 0);
    // The files left by the refusal are cleaned as usual, and the server's nonconformities are
    // reported.
    let deviates = "the server deviates from MS-SMB2 in its replies to CLOSE (section 2.2.2; ";
    plimsoll(&["clean", &server.url]).check(0, &["removed", deviates, "StructureSize"]);
    assert_eq!(std::fs::read_dir(share.path()).unwrap().count(), 0);
}

#[test]
fn what_impacket_can_do_is_measured_and_its_ways_are_in_result_and_report() {
    let share = tempfile::tempdir().unwrap();
    let Some(server) = impacket(share.path()) else { return };
    let temp_dir = tempfile::tempdir().unwrap();
    for (suite, more) in [
        ("nic", &["--points", "1", "--set", "profiles.quick.clients_max=3"][..]),
        ("logons", &["--points", "10"]),
    ] {
        let bundle = temp_dir.path().join(suite);
        check_ended(&plimsoll(&brief(suite, &server.url, &bundle, more)));
        let result = result(&bundle);
        check_as_expected(&result["points"][0]);
        if suite == "nic" {
            let observed = nonconformities(&result);
            let action = &["MS-SMB2", "CREATE", "2.2.14", "CreateAction"].map(str::to_owned);
            let close = &["MS-SMB2", "CLOSE", "2.2.2", "StructureSize"].map(str::to_owned);
            assert!(observed.contains(action) && observed.contains(close), "{observed:?}");
            let report = std::fs::read_to_string(bundle.join("report.html")).unwrap();
            assert!(report.contains("deviates from MS-SMB2"));
        }
    }
}
