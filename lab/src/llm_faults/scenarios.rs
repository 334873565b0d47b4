//! The scenarios: what the server does in each, and what a client should report of it. The tests of
//! the faults do the same in more detail: `plimsoll-llm`'s `fault_tests.rs` and the program's
//! `llm_faults.rs`.

use std::time::Duration;

use plimsoll_testkit::llm_server::{
    Act, ReceivedRequest, answer, begin, delta, end, event, plain, text_event,
};

/// One server that reproduces a known problem of clients.
pub struct Scenario {
    /// Numbers of `docs/llm-faults.md`.
    pub fault: &'static str,
    /// What the server does, for the table.
    pub server: &'static str,
    pub load: Load,
    /// Tokens that each request asks for.
    pub tokens: u64,
    pub truth: Truth,
    pub script: fn(&ReceivedRequest) -> Vec<Act>,
}

/// The number of requests, and how many of them are in flight at a time.
#[derive(Clone, Copy)]
pub struct Load {
    pub requests: u64,
    pub streams: u64,
}

/// The figure that shows the fault, and its true value.
#[derive(Clone, Copy)]
pub enum Truth {
    /// Requests that ended well. The others failed.
    Good(u64),
    /// The median time to first output: any of these, since output may be defined with or without
    /// reasoning.
    FirstMs(&'static [f64]),
    /// The median time of an output token after the first; `None` where no time passes.
    TokenMs(Option<f64>),
    /// Tokens of an answer whose server does not report them: these or none.
    Tokens(u64),
    /// Successes in a second: their number over the time from the first request to the end of the
    /// last, as the server saw them.
    GoodPerS(u64),
    /// Most streams that the server saw open at once.
    Open(u64),
    /// Connections on which requests came.
    Connections(u64),
}

const SMALL: Load = Load { requests: 32, streams: 4 };
const WORD: &str = " w17";

/// Of 32 requests of 20 tokens.
const fn scenario(
    fault: &'static str,
    server: &'static str,
    truth: Truth,
    script: fn(&ReceivedRequest) -> Vec<Act>,
) -> Scenario {
    Scenario { fault, server, load: SMALL, tokens: 20, truth, script }
}

const GOOD_0: Truth = Truth::Good(0);
const TOKEN_10_MS: Truth = Truth::TokenMs(Some(10.0));
const CROWD: Load = Load { requests: 512, streams: 256 };

/// Do empty or truncated answers count as failures?
pub const BROKEN: [Scenario; 4] = [
    scenario("6", "role and finish reason, no text", GOOD_0, empty),
    scenario("7", "`{\"error\": …}` after some text, with status 200", GOOD_0, in_band),
    scenario("8", "a well-formed body without finish reason and `[DONE]`", GOOD_0, broken_off),
    scenario("8", "the connection closes within the body", GOOD_0, closed),
];

/// Is each request reported correctly as success or failure?
pub const MIXED: [Scenario; 4] = [
    scenario("–", "finish reason, but no `[DONE]`", Truth::Good(32), not_done),
    scenario("36", "a malformed event between good ones", GOOD_0, malformed),
    scenario("19", "status 429, with a message", GOOD_0, refused),
    scenario("18", "every other answer is a quick status 500", Truth::GoodPerS(16), half),
];

/// Does the time to the first output end with the first output?
pub const FIRST: [Scenario; 4] = [
    scenario(
        "5",
        "role and empty text after 5 ms, text after 214 ms",
        Truth::FirstMs(&[214.0]),
        role_first,
    ),
    scenario(
        "11",
        "lines end with CRLF; text from 80 ms on, the end after 500 ms",
        Truth::FirstMs(&[80.0]),
        crlf,
    ),
    scenario(
        "16",
        "reasoning after 50 ms, text after 500 ms",
        Truth::FirstMs(&[50.0, 500.0]),
        reasoning,
    ),
    scenario("17", "nothing but a tool call, from 50 ms on", Truth::FirstMs(&[50.0]), tool_call),
];

/// Are tokens counted and timed, and not chunks?
pub const TOKENS: [Scenario; 4] = [
    Scenario {
        tokens: 100,
        ..scenario("12", "25 chunks 40 ms apart, of four tokens each", TOKEN_10_MS, four_a_chunk)
    },
    Scenario {
        tokens: 36,
        ..scenario(
            "13",
            "16 tokens in the first chunk, then one each 10 ms",
            TOKEN_10_MS,
            full_first,
        )
    },
    Scenario {
        tokens: 64,
        ..scenario("34", "all 64 tokens in one write", Truth::TokenMs(None), one_write)
    },
    scenario("–", "20 tokens, which the server does not count", Truth::Tokens(20), uncounted),
];

/// Are connections, and streams that do not end, handled correctly?
pub const CONNECTIONS: [Scenario; 4] = [
    Scenario {
        load: CROWD,
        ..scenario("21", "answers of 1 s to 512 requests, 256 at once", Truth::Open(256), slow)
    },
    scenario("28", "connections of 32 requests, 4 at once", Truth::Connections(4), whole),
    scenario(
        "29",
        "a connection closes after its second answer, without a word",
        Truth::Good(32),
        closes,
    ),
    scenario("31", "one stream of 32 stops and never ends", Truth::Good(31), endless),
];

const MS: fn(u64) -> Duration = Duration::from_millis;

fn word() -> Act {
    Act::Text(WORD.to_owned())
}

fn wait(ms: u64) -> Act {
    Act::Wait(MS(ms))
}

/// The end of a body of chunks.
fn body_end() -> Act {
    Act::Write("0\r\n\r\n".to_owned())
}

fn whole(_: &ReceivedRequest) -> Vec<Act> {
    answer(MS(50), MS(10), 20)
}

/// From request to end of an answer of [`slow`].
pub const SLOW_S: f64 = 1.0;

fn slow(_: &ReceivedRequest) -> Vec<Act> {
    answer(MS(50), MS(50), 20)
}

fn empty(_: &ReceivedRequest) -> Vec<Act> {
    vec![begin(), role(), wait(20), Act::Write(end(0))]
}

fn role() -> Act {
    Act::Event(delta("{\"role\":\"assistant\",\"content\":\"\"}"))
}

fn in_band(_: &ReceivedRequest) -> Vec<Act> {
    let error =
        "{\"error\":{\"message\":\"out of memory\",\"type\":\"InternalServerError\",\"code\":500}}";
    let events = [error, "[DONE]"].map(|data| Act::Event(data.to_owned()));
    [text_chunks(5), events.to_vec(), vec![body_end()]].concat()
}

fn times(number: usize, acts: &[Act]) -> Vec<Act> {
    std::iter::repeat_n(acts, number).flatten().cloned().collect()
}

/// The head and `number` words, 10 ms apart.
fn text_chunks(number: usize) -> Vec<Act> {
    [vec![begin()], times(number, &[wait(10), word()])].concat()
}

fn broken_off(_: &ReceivedRequest) -> Vec<Act> {
    [text_chunks(5), vec![body_end()]].concat()
}

fn closed(_: &ReceivedRequest) -> Vec<Act> {
    [text_chunks(5), vec![Act::Close]].concat()
}

fn not_done(_: &ReceivedRequest) -> Vec<Act> {
    let events = [finish(), USAGE.to_owned()].map(Act::Event);
    [text_chunks(20), events.to_vec(), vec![body_end()]].concat()
}

const USAGE: &str = "{\"choices\":[],\"usage\":{\"prompt_tokens\":64,\"completion_tokens\":20}}";

fn finish() -> String {
    delta("{}").replace("\"finish_reason\":null", "\"finish_reason\":\"length\"")
}

fn malformed(_: &ReceivedRequest) -> Vec<Act> {
    let bad = "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b}}".to_owned();
    [
        text_chunks(5),
        vec![Act::Event(bad)],
        times(14, &[wait(10), word()]),
        vec![Act::Write(end(20))],
    ]
    .concat()
}

fn refused(_: &ReceivedRequest) -> Vec<Act> {
    vec![plain("429 Too Many Requests", "{\"error\":{\"message\":\"queue is full\",\"code\":429}}")]
}

fn half(request: &ReceivedRequest) -> Vec<Act> {
    match request.index % 2 {
        0 => vec![plain("500 Internal Server Error", "{\"error\":{\"message\":\"no\"}}")],
        _ => slow(request),
    }
}

fn role_first(_: &ReceivedRequest) -> Vec<Act> {
    let first = vec![begin(), wait(5), role(), wait(209), word()];
    [first, times(19, &[wait(10), word()]), vec![Act::Write(end(20))]].concat()
}

fn crlf(_: &ReceivedRequest) -> Vec<Act> {
    let with_crlf = |data: &str| {
        let event = format!("data: {data}\r\n\r\n");
        Act::Write(format!("{:x}\r\n{event}\r\n", event.len()))
    };
    let text = with_crlf(&text_event(WORD));
    let last = [finish().as_str(), USAGE, "[DONE]"].map(with_crlf);
    let texts = times(20, &[text, wait(10)]);
    [vec![begin(), wait(80)], texts, vec![wait(220)], last.to_vec(), vec![body_end()]].concat()
}

fn reasoning(_: &ReceivedRequest) -> Vec<Act> {
    let thought = Act::Event(delta("{\"reasoning_content\":\" w18\"}"));
    let thoughts = times(10, &[thought, wait(45)]);
    let texts = times(10, &[word(), wait(10)]);
    [vec![begin(), wait(50)], thoughts, texts, vec![Act::Write(end(20))]].concat()
}

fn tool_call(_: &ReceivedRequest) -> Vec<Act> {
    let call = |id: &str, function: &str| {
        let call = format!("{{\"index\":0,{id}\"function\":{function}}}");
        Act::Event(delta(&format!("{{\"tool_calls\":[{call}]}}")))
    };
    let begins =
        call("\"id\":\"c1\",\"type\":\"function\",", "{\"name\":\"look\",\"arguments\":\"\"}");
    let goes_on = call("", "{\"arguments\":\" w17\"}");
    let first = vec![begin(), wait(50), begins];
    [first, times(19, &[wait(10), goes_on]), vec![Act::Write(end(20))]].concat()
}

fn four_a_chunk(_: &ReceivedRequest) -> Vec<Act> {
    let four = Act::Text(WORD.repeat(4));
    [vec![begin(), wait(60)], times(25, &[wait(40), four]), vec![Act::Write(end(100))]].concat()
}

fn full_first(_: &ReceivedRequest) -> Vec<Act> {
    let first = vec![begin(), wait(100), Act::Text(WORD.repeat(16))];
    [first, times(20, &[wait(10), word()]), vec![Act::Write(end(36))]].concat()
}

fn one_write(_: &ReceivedRequest) -> Vec<Act> {
    let all = event(&text_event(WORD)).repeat(64) + &end(64);
    vec![begin(), wait(100), Act::Write(all)]
}

fn uncounted(_: &ReceivedRequest) -> Vec<Act> {
    let last = [finish(), "[DONE]".to_owned()].map(Act::Event);
    [text_chunks(20), last.to_vec(), vec![body_end()]].concat()
}

fn closes(request: &ReceivedRequest) -> Vec<Act> {
    let mut acts = whole(request);
    acts.extend((request.on_connection == 1).then_some(Act::Close));
    acts
}

fn endless(request: &ReceivedRequest) -> Vec<Act> {
    match request.index {
        5 => [text_chunks(3), vec![Act::Hold]].concat(),
        _ => whole(request),
    }
}
