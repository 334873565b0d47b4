//! Rows of files: how they are read, and which is drawn.

use super::*;

fn read(text: &str) -> Result<DataRows, DataError> {
    DataRows::read("user", RowOrder::EachOnce, text.as_bytes())
}

#[test]
fn csv_and_json_lines_give_the_same_rows() {
    let csv = read("name,password\nann,\"a,\"\"b\"\nbob,\n").unwrap();
    let json = read(
        "{\"name\": \"ann\", \"password\": \"a,\\\"b\"}\n\n{\"password\": \"\", \"name\": \"bob\"}\n",
    );
    assert_eq!(json.unwrap(), csv);
    assert_eq!((csv.count(), csv.value(0, 1), csv.value(1, 0)), (2, &b"a,\"b"[..], &b"bob"[..]));
    assert_eq!(csv.value(1, 1), b"");
}

#[test]
fn rows_go_by_the_number_of_the_session() {
    let mut rows = read("a\n1\n2\n3\n").unwrap();
    assert_eq!([0, 2, 3].map(|session| rows.row(session, 9)), [Some(0), Some(2), None]);
    rows.order = RowOrder::InTurn;
    assert_eq!([0, 2, 3].map(|session| rows.row(session, 9)), [Some(0), Some(2), Some(0)]);
    rows.order = RowOrder::Random;
    let drawn = (0..100).filter_map(|key| rows.row(0, rng::key(&[key])));
    assert_eq!(drawn.collect::<std::collections::BTreeSet<_>>().len(), 3);
}

#[test]
fn rows_of_requests_are_drawn_by_their_weights() {
    let order = RowOrder::EachRequest;
    let read = |text: &str| DataRows::read_weighted(("item", order, Some("n")), text.as_bytes());
    let rows = read("path,n\na,1\nb,2.5\nc,0.5\nd,6\n").unwrap();
    let mut counts = [0_u32; 4];
    let n = 100_000;
    (0..n).for_each(|key| counts[rows.row_of_request(rng::key(&[3, key])) as usize] += 1);
    // Chi-square with three degrees of freedom: above 16.3 once in a thousand seeds.
    let chi: f64 = counts
        .iter()
        .zip([0.1, 0.25, 0.05, 0.6])
        .map(|(count, share)| {
            let expected = n as f64 * share;
            (f64::from(*count) - expected).powi(2) / expected
        })
        .sum();
    assert!(chi < 16.3, "{counts:?} {chi}");
    let refusal = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(refusal("path,n\na,1\nb,0\n"), "line 3: its weight is not a number above 0");
    assert!(refusal("path,n\na,inf\n").starts_with("line 2: its weight"));
    assert!(refusal("{\"n\": 1}\n{\"n\": \"x\"}\n").starts_with("line 2: its weight"));
    assert!(refusal("path\na\n").ends_with("has no column \"n\"; it has path"));
    let even = DataRows::read("item", order, b"a\n1\n2\n").unwrap();
    let drawn = (0..50).map(|key| even.row_of_request(rng::key(&[key])));
    assert_eq!(drawn.collect::<std::collections::BTreeSet<_>>().len(), 2);
}

#[test]
fn a_mistake_has_its_line_and_no_value_of_it() {
    let refusal = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(refusal("a,b\n1,2\ns3cret\n"), "line 3 has 1 values, the header line has 2");
    assert_eq!(refusal("{\"a\": 1}\n{\"b\": \"s3cret\"}"), "line 2 has no \"a\", which line 1 has");
    assert!(refusal("{\"a\": 1}\ns3cret").starts_with("line 2 is not a JSON object"));
    assert!(refusal("a,b\n").starts_with("it has no row"));
    assert_eq!(DataRows::read("x", RowOrder::Random, b"\xff\xfe"), Err(DataError::NotText));
}
