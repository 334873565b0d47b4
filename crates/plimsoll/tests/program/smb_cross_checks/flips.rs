//! Flipped bits on the way: signatures detect them at any offset, verification those in data.

use plimsoll_testkit::hostile_smb::{HostileSmb, Recipe, Trick, command};

use plimsoll_testkit::program::Served;
use plimsoll_testkit::shared_files::{run, serve_user, through};

/// Bytes of a header, and of a READ reply before its data.
const HEADER_BYTES: usize = 64;
const READ_BYTES: usize = 16;

/// For some flips on a busy machine too; a point without clients ends before.
const LONG_ENOUGH: [&str; 2] = ["--set", "profiles.quick.measure=5s"];

#[test]
fn with_signing_a_flipped_bit_in_any_reply_ends_the_client() {
    let server = serve_user(&[]);
    // A wrong byte in the framing, or in the offset of the next command, is found before the
    // signature is checked.
    for (from, every, why) in
        [(0, 10, ""), (14, 20, "sign"), (24, 20, "sign"), (HEADER_BYTES, 10, "sign")]
    {
        let recipe = Recipe::always(Trick::Flip(from)).every(every);
        let proxy = HostileSmb::before(server.address(), recipe);
        let url = through(&server, proxy.address());
        let set = ["--set", "workload.signing=required", "--points", "4"];
        let finished = run(&url, &[&set[..], &LONG_ENOUGH].concat(), || proxy.arm());
        let point = finished.point();
        finished.ended.check(1, &["invalid"]);
        // Every flip ends its client; the fifth would find none.
        assert_eq!((proxy.played(), finished.stayed()), (4, 0), "{point}");
        let verdict = finished.result["verdict"].to_string();
        assert!(verdict.contains(why), "{verdict}");
    }
}

#[test]
fn without_signing_every_flipped_bit_of_read_data_is_caught() {
    let server = Served::with("smb", &[]);
    let recipe = Recipe::on(command::READ, Trick::Flip(HEADER_BYTES + READ_BYTES)).every(11);
    let proxy = HostileSmb::before(server.address(), recipe);
    let url = through(&server, proxy.address());
    let finished = run(&url, &[&["--points", "2"], &LONG_ENOUGH[..]].concat(), || proxy.arm());
    finished.ended.check(1, &["invalid"]);
    let point = finished.point();
    assert!(proxy.played() > 2, "{} injected", proxy.played());
    assert_eq!(finished.errors("corrupt"), proxy.played(), "{point}");
}
