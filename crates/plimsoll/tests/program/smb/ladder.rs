//! Quick ladders of the disk mix, signed, plain and encrypted: every operation ends as expected.

use plimsoll_servers::Login;
use plimsoll_smb::server::samba::{SambaRequest, SmbEncryption, SmbSigning};
use plimsoll_testkit::smb_peers::samba_as;
use serde_json::Value;

use super::runs::{brief, check_as_expected, check_ended, gist, ops_done};
use plimsoll_testkit::program::{plimsoll, result};
use plimsoll_testkit::shared_files::{serve_user, with_password};

/// Two points, of one client and of four. Rules about time are for machines that do nothing else.
#[track_caller]
pub fn check_ladder(url: &str, more: &[&str]) -> Value {
    check_ladder_of("disk-mix", url, more)
}

#[track_caller]
fn check_ladder_of(suite: &str, url: &str, more: &[&str]) -> Value {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let window = ["--set", "profiles.quick.measure=1500ms"];
    let flags = [&["--points", "1,4"], &window[..], more].concat();
    let run = plimsoll(&brief(suite, url, &bundle, &flags));
    check_ended(&run);
    let result = result(&bundle);
    let points = result["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    for (point, clients) in points.iter().zip([1, 4]) {
        check_as_expected(point);
        assert_eq!(point["clients_participating"], clients, "{}", gist(point));
    }
    assert!(ops_done(points) > 0);
    for file in ["report.html", "manifest.json"] {
        assert!(bundle.join(file).exists(), "{file}");
    }
    result
}

#[track_caller]
fn check_samba(signing: SmbSigning, encryption: SmbEncryption, more: &[&str]) {
    let login = Some(Login::with_new_password("ann").unwrap());
    let request = SambaRequest { login, signing, encryption, ..SambaRequest::default() };
    let Some(server) = samba_as(&request) else { return };
    check_ladder(&server.url_with_password(), more);
}

#[test]
fn signed_clients_do_the_whole_mix() {
    let more = ["--set", "workload.signing=required"];
    check_samba(SmbSigning::Required, SmbEncryption::Offered, &more);
}

#[test]
fn clients_that_sign_nothing_do_the_whole_mix() {
    let more = ["--set", "workload.signing=off"];
    check_samba(SmbSigning::Offered, SmbEncryption::Off, &more);
}

#[test]
fn clients_that_encrypt_do_the_whole_mix() {
    let more = ["--set", "workload.encryption=true"];
    check_samba(SmbSigning::Offered, SmbEncryption::Required, &more);
}

#[test]
fn a_server_that_demands_signing_is_obeyed_and_not_where_it_is_off() {
    let login = Some(Login::with_new_password("ann").unwrap());
    let signing = SmbSigning::Required;
    let Some(server) = samba_as(&SambaRequest { login, signing, ..SambaRequest::default() }) else {
        return;
    };
    let url = server.url_with_password();
    check_ladder(&url, &[]);
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let more = ["--points", "1", "--set", "workload.signing=off"];
    let run = plimsoll(&brief("disk-mix", &url, &bundle, &more));
    run.check(3, &["the server demands signed messages", "when-asked"]);
    assert!(!bundle.exists());
}

#[test]
fn clients_of_older_dialects_do_the_whole_mix() {
    for dialect in ["workload.dialect_max=2.0.2", "workload.dialect_max=3.0"] {
        check_samba(SmbSigning::Required, SmbEncryption::Offered, &["--set", dialect]);
    }
}

#[test]
fn guests_do_the_whole_mix_where_they_are_let_in() {
    let Some(server) = samba_as(&SambaRequest::default()) else { return };
    check_ladder(&server.url(), &[]);
    let result = check_ladder_of("disk-mix-superlab", &server.url(), &[]);
    let disclosure = result["disclosure"].to_string();
    assert!(disclosure.contains("application spreadsheet"), "{disclosure}");
    let applications = result["method"].as_array().unwrap().iter();
    let mut applications = applications.filter(|row| row["key"] == "generator.applications");
    let row = applications.next().unwrap();
    assert!(row["departure"].is_null() && row["origin"] == "source", "{row}");
}

#[test]
fn clients_that_cache_and_share_do_the_whole_mix() {
    let sets = [
        "workload.caching=lease",
        "workload.shared_percent=20",
        "workload.shared_write_percent=30",
        "workload.model.mix.lock=3",
    ];
    let more: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    check_samba(SmbSigning::Offered, SmbEncryption::Offered, &more);
}

#[test]
fn a_managed_samba_and_a_builtin_server_need_no_set_up() {
    let result = check_ladder("builtin:", &[]);
    let software = &result["disclosure"]["targets"][0]["software"];
    assert!(software.as_str().unwrap().contains("plimsoll serve smb"), "{software}");
    if plimsoll_testkit::peers::require_peer("smbd").is_some() {
        let result = check_ladder("managed:samba", &[]);
        let software = &result["disclosure"]["targets"][0]["software"];
        assert!(software.as_str().unwrap().contains("Samba"), "{software}");
    }
}

#[test]
fn guests_are_let_in_where_the_suite_asks_for_it() {
    let check = |url: &str, more: &[&str], who: &str| {
        let disclosure = check_ladder(url, more)["disclosure"].to_string();
        assert!(disclosure.contains(&format!(r#""name":"user","value":"{who}""#)), "{disclosure}");
    };
    let as_guest = ["--set", "workload.guest=true"];
    check("builtin:", &[], "plimsoll");
    check("builtin:", &as_guest, "guest");
    if plimsoll_testkit::peers::require_peer("smbd").is_some() {
        check("managed:samba", &as_guest, "guest");
    }
}

#[test]
fn several_shares_bear_the_load_together() {
    let (one, two) = (serve_user(&[]), serve_user(&[]));
    let (one, two) = (with_password(&one), with_password(&two));
    let result = check_ladder(&one, &[&two]);
    assert_eq!(result["targets"].as_array().unwrap().len(), 2);
}
