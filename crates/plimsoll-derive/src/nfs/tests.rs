use super::*;

const NFSD: &str = "rc 0 5 100\nfh 0 0 0 0 0\nio 81920000 40960000\nth 8 0\nnet 100 0 100 5\nrpc 100 0 0 0 0\n\
    proc3 22 1 1000 10 2700 700 700 10000 10000 100 3 0 0 100 1 2 0 200 900 100 4 2 500\nproc4 2 0 0\n\
    proc4ops 3 0 0 0\n";
const NFSSTAT: &str = "Server rpc stats:\ncalls      badcalls   badfmt     badauth    badclnt\n\
    100        0          0          0          0       \n\nServer nfs v3:\n\
    null             getattr          setattr          lookup           access           \n\
    1         0%     1000     50%     10        0%     2700     40%     700       9%     \n\
    readlink         read             write            create           mkdir            \n\
    700       0%     10000    40%     10000    40%     100       0%     3         0%     \n\n";
const MOUNTSTATS: &str = "device rootfs mounted on / with fstype rootfs\n\
    device host:/export mounted on /mnt with fstype nfs statvers=1.1\n\
    \topts:\trw,vers=3,rsize=1048576\n\tage:\t100\n\tbytes:\t1 2 0 0 81920000 40960000 0 0\n\
    \tRPC iostats version: 1.1  p/v: 100003/3 (nfs)\n\tper-op statistics\n\
    \t        NULL: 1 1 0 0 0 0 0 0\n\t     GETATTR: 1000 1000 0 1 1 1 1 1\n\
    \t        READ: 10000 10000 0 1 1 1 1 1\n\t       WRITE: 10000 10000 0 1 1 1 1 1\n";

/// Derives from counters that began at zero.
fn derive(text: &str, seconds: Option<f64>, swapped: bool) -> Result<(NfsFacts, String), String> {
    let folder = tempfile::tempdir().unwrap();
    let zero = |line: &str| {
        let number = |field: &str| match field.parse::<u64>() {
            Ok(_) => "0".to_owned(),
            Err(_) => field.to_owned(),
        };
        line.split(' ').map(number).collect::<Vec<_>>().join(" ")
    };
    let zeros: Vec<String> = text
        .lines()
        .map(|line| match line.starts_with("device") || line.contains("vers") {
            true => line.to_owned(),
            false if line.contains("age:") => "\tage:\t90".to_owned(),
            false => zero(line),
        })
        .collect();
    let (mut before, mut after) = (folder.path().join("before"), folder.path().join("after"));
    std::fs::write(&before, zeros.join("\n")).unwrap();
    std::fs::write(&after, text).unwrap();
    if swapped {
        std::mem::swap(&mut before, &mut after);
    }
    let out = folder.path().to_owned();
    let options = NfsOptions { before, after, seconds, out: out.clone() };
    let derived = derive_from_nfs(&options).map_err(|error| error.to_string())?;
    Ok((derived.facts, std::fs::read_to_string(out.join("model.toml")).unwrap()))
}

#[test]
fn counters_of_a_server_give_mix_rate_and_sizes() {
    let (facts, suite) = derive(NFSD, Some(10.0), false).unwrap();
    assert_eq!((facts.version, facts.mix["read"], facts.mix["readdirplus"]), (3, 10_000, 900));
    assert_eq!(
        facts.left_out.keys().collect::<Vec<_>>(),
        ["fsinfo", "mkdir", "null", "pathconf", "rename", "rmdir"]
    );
    assert_eq!((facts.read_bytes_mean, facts.write_bytes_mean), (Some(8_192.0), Some(4_096.0)));
    assert!(
        suite.contains("lookup = 2700") && suite.contains("write_blocks = [100, 0, 0, 0, 0, 0]"),
        "{suite}"
    );
    assert!(suite.contains(&format!("points = [{:.6}]", facts.ops as f64 / 10.0)), "{suite}");
}

#[test]
fn nfsstat_and_mountstats_are_read_too() {
    let (facts, suite) = derive(NFSSTAT, Some(10.0), false).unwrap();
    assert_eq!(
        (facts.mix["write"], facts.mix["lookup"], facts.write_bytes_mean),
        (10_000, 2_700, None)
    );
    assert!(!suite.contains("write_blocks"));
    let (facts, _) = derive(MOUNTSTATS, None, false).unwrap();
    assert_eq!((facts.mix["getattr"], facts.seconds), (1_000, 10.0));
    assert_eq!(facts.read_bytes_mean, Some(8_192.0));
}

#[test]
fn counters_that_make_no_load_are_refused_with_the_reason() {
    let refusal = |text: &str, swapped| derive(text, Some(10.0), swapped).unwrap_err();
    assert!(refusal(NFSD, true).contains("to 0: the server or the mount began anew"));
    assert!(refusal("a\nb\n", false).contains("/proc/net/rpc/nfsd, nfsstat -s"));
    assert!(
        refusal(&NFSD.replace("10000", "1e4"), false)
            .contains("line 7 has a field that is no number")
    );
    let version4 = "proc3 22 0\nproc4 2 1 50\nproc4ops 3 5 7 9\n";
    assert!(refusal(version4, false).contains("of version 4"));
    assert!(derive(NFSSTAT, Some(-1.0), false).unwrap_err().contains("--over 10m"));
}

#[test]
fn shares_of_blocks_have_the_mean_of_the_counters() {
    for mean in [4_096.0, 5_000.0, 7_000.0, 8_192.0, 65_536.0] {
        let blocks = write_blocks(mean);
        assert_eq!(
            blocks.iter().map(|percent| u32::from(*percent)).sum::<u32>(),
            100,
            "{blocks:?}"
        );
        let whole: f64 = blocks[1..]
            .iter()
            .zip([1.0, 2.0, 4.0, 8.0, 16.0])
            .map(|(percent, n)| f64::from(*percent) * n)
            .sum();
        let part = f64::from(blocks[0]);
        let bytes = (part * 4_096.0 + whole * 8_192.0) / (part + whole);
        assert!((bytes / f64::min(mean, 8_192.0) - 1.0).abs() < 0.02, "{mean}: {bytes} {blocks:?}");
    }
}
