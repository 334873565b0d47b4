use super::*;

/// As nginx 1.22 writes it, with its blanks at the ends of lines.
const PAGE: &str = "Active connections: 4 \nserver accepts handled requests\n \
    20 18 4100 \nReading: 0 Writing: 3 Waiting: 1 \n";

#[test]
fn the_status_page_of_nginx_is_read() {
    let expected = StubStatus {
        active: 4,
        accepts: 20,
        handled: 18,
        requests: 4_100,
        reading: 0,
        writing: 3,
        waiting: 1,
    };
    assert_eq!(parse_stub_status(PAGE), Some(expected));
}

#[test]
fn our_own_questions_are_no_work_of_the_server() {
    let text = parse_stub_status(PAGE).unwrap().metrics_text(7);
    for line in [
        "plimsoll_app_connections 3\n",
        "plimsoll_app_connections_accepted_total 13\n",
        "plimsoll_app_connections_refused_total 2\n",
        "plimsoll_app_requests_total 4093\n",
        "plimsoll_app_connections_writing 2\n",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

#[test]
fn other_pages_are_none() {
    for odd in ["", "<html>", "Active connections: x\n", &PAGE[..60], &PAGE[..PAGE.len() - 4]] {
        assert_eq!(parse_stub_status(odd), None, "{odd:?}");
    }
}

/// The lines of Linux 6.1 that count; those of operations have a number for each.
const RECORDED: &str = "rc 0 4211 86093\nfh 0 0 0 0 0\nio 1073741824 268435456\n\
    th 8 0 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000\n\
    ra 32 0 0 0 0 0 0 0 0 0 0 0\nnet 90310 0 90304 6\nrpc 90304 2 0 2 0\n\
    proc3 22 2 11 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\nproc4 2 2 90291\n\
    proc4ops 20 0 0 0 3 0 0 0 0 0 0 0 0 0 0 0 0 0 0 7 0\n";

#[test]
fn threads_calls_and_bytes_of_the_nfs_server_are_read() {
    let counters = parse_nfsd(RECORDED);
    let expected = NfsdCounters {
        threads: Some(8),
        calls: Some(90_304),
        bad_calls: Some(2),
        bytes_read: Some(1 << 30),
        bytes_written: Some(1 << 28),
        connections: Some(6),
        operations: Some(10),
        opens: Some(7),
    };
    assert_eq!(counters, expected);
}

#[test]
fn what_the_file_does_not_have_is_absent() {
    assert_eq!(parse_nfsd("th x\nrpc\nio 7\n").bytes_read, Some(7));
    assert_eq!(parse_nfsd("th x\nrpc\nio 7\n").threads, None);
    assert_eq!(parse_nfsd(""), NfsdCounters::default());
}
