use proptest::prelude::*;

use super::*;

fn read_text(text: &str) -> Result<Trace, String> {
    read(&mut text.as_bytes(), "t").map_err(|error| error.to_string())
}

fn rows(text: &str) -> Vec<(u64, u32, u32)> {
    let trace = read_text(text).unwrap();
    let row = |row: &Row| (row.due.0 / 1_000_000, row.input_tokens, row.output_tokens);
    trace.rows.iter().map(row).collect()
}

const MOONCAKE: &str = "\
{\"timestamp\": 27482, \"input_length\": 1030, \"output_length\": 52, \"hash_ids\": [46, 47, 2352]}
{\"timestamp\": 30535, \"input_length\": 600, \"output_length\": 26, \"hash_ids\": [46, 2366]}
";

#[test]
fn a_mooncake_trace_has_times_lengths_and_blocks() {
    assert_eq!(rows(MOONCAKE), [(0, 1030, 52), (3_053, 600, 26)]);
    let trace = read_text(MOONCAKE).unwrap();
    assert_eq!(trace.blocks(&trace.rows[0]), [46, 47, 2352]);
    assert_eq!(trace.blocks(&trace.rows[1]), [46, 2366]);
    let plain = "{\"timestamp\":0.5,\"input_length\":8,\"output_length\":2}\n\n\
                 {\"timestamp\":10,\"input_length\":9,\"output_length\":0}";
    assert_eq!(rows(plain), [(0, 8, 2), (9, 9, 1)], "an answer has a token at least");
    assert!(!read_text(plain).unwrap().has_blocks());
}

#[test]
fn an_azure_trace_is_read_by_its_column_names() {
    let text = "\u{feff}TIMESTAMP,ContextTokens,GeneratedTokens\r\n\
                2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04.0319600,3180,8\r\n";
    assert_eq!(rows(text), [(0, 4808, 10), (52, 3180, 8)]);
}

#[test]
fn failed_calls_of_a_burst_gpt_trace_are_counted_and_not_sent() {
    let text = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,230,1317,Conversation log\n\
                50,GPT-4,12,0,12,API log\n118,GPT-4,417,276,693,Conversation log\n";
    assert_eq!(rows(text), [(0, 472, 18), (40_000, 1087, 230), (113_000, 417, 276)]);
    assert_eq!(read_text(text).unwrap().failed_rows, 1);
}

#[test]
fn rows_out_of_order_are_sent_at_their_times() {
    let row = |at: u32, tokens: u32| {
        format!("{{\"timestamp\":{at},\"input_length\":{tokens},\"output_length\":1}}\n")
    };
    let text = [row(30, 3), row(10, 1), row(20, 2)].concat();
    assert_eq!(rows(&text), [(0, 1, 1), (10, 2, 1), (20, 3, 1)]);
}

#[test]
fn a_mistake_is_named_with_its_line() {
    let json = |text: &str| format!("{MOONCAKE}{text}");
    for (text, message) in [
        (json("{\"timestamp\": 1}"), "t:3: missing field `input_length`; a line has timestamp"),
        (json("a,b"), "t:3: this line is not JSON as those before it are"),
        (
            json("{\"timestamp\":1,\"input_length\":-4,\"output_length\":1}"),
            "t:3: -4 is no number of tokens of the prompt",
        ),
        (
            json("{\"timestamp\":1e30,\"input_length\":4,\"output_length\":1}"),
            "t:3: 1000000000000000000000000000000 is no time",
        ),
        ("a,b\n1,2".to_owned(), "t:1: no format that is known"),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\nx,1,2".to_owned(),
            "t:2: \"x\" is no time; write for example 2023",
        ),
        (
            "Timestamp,Request tokens,Response tokens\n1,2".to_owned(),
            "t:2: 2 columns, and 3 are needed",
        ),
        ("Timestamp,Request tokens,Response tokens\n1,2,z".to_owned(), "t:2: \"z\" is no number"),
        (String::new(), "t: it holds no request"),
        ("Timestamp,Request tokens,Response tokens\n1,2,3".to_owned(), "t: all its requests"),
    ] {
        let error = read_text(&text).unwrap_err();
        assert!(error.starts_with(message), "{error}");
    }
    let long = format!("{MOONCAKE}{}", " ".repeat(1 << 20));
    assert!(read_text(&long).unwrap_err().contains("t:3: the line is longer"));
}

proptest! {
    #[test]
    fn whatever_a_file_holds_reading_it_ends(text in ".{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_text(&format!("Timestamp,Request tokens,Response tokens\n{text}"));
        let _ = read_text(&format!("TIMESTAMP,ContextTokens,GeneratedTokens\n{text},1,2"));
        let _ = read_text(&format!("{{{text}"));
        let _ = read(&mut &bytes[..], "t");
    }
}

fn seconds(text: &str) -> f64 {
    date_ns(text).unwrap() as f64 / 1e9
}

#[test]
fn times_differ_by_what_lies_between_them() {
    let first = seconds("2023-11-16 18:17:03.9799600");
    for (later, after_s) in [
        ("2023-11-16 18:17:04.0319600", 0.052),
        ("2023-11-17 18:17:03.97996", 86_400.0),
        ("2024-11-16T18:17:03.9799600", 366.0 * 86_400.0),
        ("2023-11-16 18:17:03.979960+00:00", 0.0),
        ("2023-11-16 20:17:03.979960+02:00", 0.0),
        ("2023-11-16T18:17:03.979960Z", 0.0),
    ] {
        assert!((seconds(later) - first - after_s).abs() < 1e-4, "{later}");
    }
}

#[test]
fn what_is_no_time_is_refused() {
    for wrong in [
        "",
        "2023-11-16",
        "18:17:03",
        "2023-13-01 00:00:00",
        "2023-1-1 1:1:1.x",
        "2023-1-1 24:0:0",
        "99999-1-1 1:1:1",
        "2023-1-1 1:1:1+é",
        "2023-1-1 1:1:1-",
    ] {
        assert!(date_ns(wrong).is_err(), "{wrong}");
    }
}
