//! A server that nobody here wrote, and that follows MS-SMB2 less closely than Samba does:
//! impacket's.

use plimsoll_testkit::smb_peers::impacket;
use serde_json::Value;

use crate::runs::{brief, check_as_expected, check_ended};
use plimsoll_testkit::program::{plimsoll, points_finished, result};

/// Document, message, section and field of each way in which the run's replies differ from MS-SMB2.
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
    let place = tempfile::tempdir().unwrap();
    let bundle = place.path().join("b");
    let run = plimsoll(&brief("disk-mix", &server.url, &bundle, &["--points", "1"]));
    let names = [
        "of the 48 operations that this suite needs do not work: ",
        "\"lock what another handle holds\" (expected a refusal, got success)",
        "\"open a missing name\" (expected NT_STATUS_OBJECT_NAME_NOT_FOUND, got \
         NT_STATUS_NO_SUCH_FILE)",
        "nothing was measured",
    ];
    run.check(3, &names);
    assert_eq!(points_finished(&bundle), 0);
    // What the refusal left is cleaned as anything else, and the ways of the server are told.
    let deviates = "the server deviates from MS-SMB2 in its replies to CLOSE (section 2.2.2; ";
    plimsoll(&["clean", &server.url]).check(0, &["removed", deviates, "StructureSize"]);
    assert_eq!(std::fs::read_dir(share.path()).unwrap().count(), 0);
}

#[test]
fn what_impacket_can_do_is_measured_and_its_ways_are_in_result_and_report() {
    let share = tempfile::tempdir().unwrap();
    let Some(server) = impacket(share.path()) else { return };
    let place = tempfile::tempdir().unwrap();
    for (suite, more) in [
        ("nic", &["--points", "1", "--set", "profiles.quick.clients_max=3"][..]),
        ("logons", &["--points", "10"]),
    ] {
        let bundle = place.path().join(suite);
        check_ended(&plimsoll(&brief(suite, &server.url, &bundle, more)));
        let result = result(&bundle);
        check_as_expected(&result["points"][0]);
        if suite == "nic" {
            let seen = nonconformities(&result);
            let action = &["MS-SMB2", "CREATE", "2.2.14", "CreateAction"].map(str::to_owned);
            let close = &["MS-SMB2", "CLOSE", "2.2.2", "StructureSize"].map(str::to_owned);
            assert!(seen.contains(action) && seen.contains(close), "{seen:?}");
            let report = std::fs::read_to_string(bundle.join("report.html")).unwrap();
            assert!(report.contains("deviates from MS-SMB2"));
        }
    }
}
