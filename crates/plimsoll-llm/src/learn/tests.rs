use std::cell::RefCell;

use super::*;
use crate::lengths::Length;

/// A server as a function of its requests.
struct Fake<F> {
    models: ServerReply,
    answer: F,
    requests: RefCell<Vec<Json>>,
}

impl<F: Fn(&Json) -> ServerReply> Fake<F> {
    fn new(models: &str, answer: F) -> Self {
        Self { models: ServerReply::with(200, models), answer, requests: RefCell::default() }
    }

    fn learn(&self, workload: &LlmWorkload) -> Result<Learnt, String> {
        learn(workload, self, &FakeTrials).map_err(|error| error.to_string())
    }
}

impl<F: Fn(&Json) -> ServerReply> Asks for Fake<F> {
    fn models(&self) -> Result<ServerReply, SetupError> {
        Ok(self.models.clone())
    }

    fn post(&self, body: &[u8]) -> Result<ServerReply, SetupError> {
        let json: Json = serde_json::from_slice(body).unwrap();
        self.requests.borrow_mut().push(json.clone());
        Ok((self.answer)(&json))
    }

    fn unusable(&self, why: String) -> SetupError {
        SetupError::Unusable(why)
    }
}

/// Bodies that consist of their number of words.
struct FakeTrials;

impl Trials for FakeTrials {
    fn streamed(&self, model: &str, offers: Offers, trial: Trial) -> Vec<u8> {
        let mut body = json!({
            "model": model, "words": trial.word_count, "max_tokens": trial.output_tokens,
            "number": trial.number,
        });
        for (key, value) in offers.fields() {
            body[key] = value;
        }
        if offers.min_tokens {
            body["min_tokens"] = json!(trial.output_tokens);
        }
        body.to_string().into_bytes()
    }
}

const MODELS: &str = r#"{"data":[{"id":"tiny","max_model_len":2000}]}"#;

/// What a good server answers: 20 tokens and 2 a word, up to its context.
fn good(request: &Json, context: u64) -> ServerReply {
    let tokens = 20 + 2 * request["words"].as_u64().unwrap();
    if tokens > context {
        return ServerReply::with(400, "{\"error\":{\"message\":\"exceeds the context\"}}");
    }
    let usage = json!({"prompt_tokens": tokens, "completion_tokens": request["max_tokens"]});
    if request["stream"] == false {
        return ServerReply::with(200, &json!({"usage": usage}).to_string());
    }
    let chunk = json!({"choices": [{"delta": {"content": "a"}}]});
    let last = json!({"choices": [], "usage": usage});
    ServerReply::with(
        200,
        &format!("data: {chunk}\n\ndata: {chunk}\n\ndata: {last}\n\ndata: [DONE]\n\n"),
    )
}

#[test]
fn a_good_server_is_known_after_six_requests_that_are_all_different() {
    let server = Fake::new(MODELS, |request| good(request, 1_100));
    let learnt = server.learn(&LlmWorkload::default()).unwrap();
    assert_eq!((&*learnt.model, learnt.offers, learnt.probes), ("tiny", Offers::ALL, 3));
    assert_eq!(learnt.fit.prompt_word_count(512), 246);
    assert!(learnt.says_usage && !learnt.says_continuous_usage && !learnt.is_cut_short);
    let requests = server.requests.borrow();
    let mut numbers: Vec<u64> =
        requests.iter().map(|one| one["number"].as_u64().unwrap()).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), requests.len());
    assert_eq!(requests.last().unwrap()["stream"], false, "the context ends the ladder");
    let text = serde_json::to_string(&learnt).unwrap();
    assert_eq!(serde_json::from_str::<Learnt>(&text).unwrap(), learnt, "agents are told");
}

#[test]
fn what_a_server_refuses_by_name_is_left_out() {
    let server = Fake::new(MODELS, |request| {
        for field in ["ignore_eos", "min_tokens"] {
            if !request[field].is_null() {
                let error = format!("Unrecognized request argument supplied: {field}");
                return ServerReply::with(400, &json!({"error": {"message": error}}).to_string());
            }
        }
        good(request, 10_000)
    });
    let learnt = server.learn(&LlmWorkload::default()).unwrap();
    assert_eq!(learnt.refused, ["ignore_eos", "min_tokens"]);
    assert!(learnt.offers.include_usage && !learnt.offers.ignore_eos);
}

#[test]
fn without_counts_a_word_is_a_token_and_the_plan_goes_on() {
    let server = Fake::new(MODELS, |_| {
        ServerReply::with(
            200,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n",
        )
    });
    let learnt = server.learn(&LlmWorkload::default()).unwrap();
    assert_eq!((learnt.fit, learnt.probes, learnt.says_usage), (Fit::UNKNOWN, 0, false));
}

fn refused(models: &str, workload: &LlmWorkload, reply: ServerReply) -> String {
    Fake::new(models, |_| reply.clone()).learn(workload).unwrap_err()
}

#[test]
fn what_is_wrong_is_said_in_the_servers_words_with_the_next_move() {
    let named = LlmWorkload { model: "m".to_owned(), ..LlmWorkload::default() };
    let error = |text: &str| json!({"error": {"message": text}}).to_string();
    let two = r#"{"data":[{"id":"a"},{"id":"b"}]}"#;
    for (status, body, expected) in [
        (
            401,
            error("Incorrect API key"),
            "saying \"Incorrect API key\"; the server wants a key: write --api-key",
        ),
        (404, error("The model `m` does not exist."), "write --model with one of tiny;"),
        (
            404,
            "<h1>Not Found</h1>".to_owned(),
            "see whether the URL is that of an OpenAI-compatible server",
        ),
        (503, error("Loading model"), "wait until its model is loaded"),
        (500, error("boom"), "see what its log says"),
        (429, error("slow down"), "lift that for this host"),
        (400, error("temperature must be positive"), "saying \"temperature must be positive\""),
        (200, "{\"choices\":[]}".to_owned(), "is no stream of events"),
        (
            200,
            "data: {\"error\":{\"message\":\"no memory\"}}\n\n".to_owned(),
            "an error in its stream: no memory",
        ),
        (
            200,
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n".to_owned(),
            "without any text",
        ),
    ] {
        let message = refused(MODELS, &named, ServerReply::with(status, &body));
        assert!(message.contains(expected), "{message}");
    }
    let nameless = LlmWorkload::default();
    let message = refused(two, &nameless, ServerReply::with(200, ""));
    assert!(message.contains("write --model with one of a, b"), "{message}");
    let message = refused("{}", &nameless, ServerReply::with(200, ""));
    assert!(message.contains("no model is named") && message.contains("--model NAME"), "{message}");
}

#[test]
fn requests_longer_than_the_context_are_refused_before_any_is_sent() {
    let server = Fake::new(MODELS, |request| good(request, 2_000));
    let workload = |input: u32, exchanges: u32| LlmWorkload {
        input_tokens: Length::Fixed(input),
        turns: exchanges,
        ..LlmWorkload::default()
    };
    assert!(server.learn(&workload(1_800, 1)).is_ok());
    let message = server.learn(&workload(1_900, 1)).unwrap_err();
    assert!(
        message.contains("context of 2000 tokens, and 2028 are asked for: 1900 in, 128"),
        "{message}"
    );
    let message = server.learn(&workload(512, 9)).unwrap_err();
    assert!(message.contains("at the end of a conversation"), "{message}");
}

#[test]
fn servers_of_one_run_have_one_model_and_take_the_same_fields() {
    let server = Fake::new(MODELS, |request| good(request, 2_000));
    let first = server.learn(&LlmWorkload::default()).unwrap();
    let less = Offers { ignore_eos: false, ..Offers::ALL };
    let refused = vec!["ignore_eos".to_owned()];
    let second = Learnt { offers: less, refused: refused.clone(), ..first.clone() };
    let both = first.clone().and(second, &server).unwrap();
    assert_eq!((both.offers, both.refused), (less, refused));
    let other = Learnt { model: "other".to_owned(), ..first.clone() };
    assert!(first.and(other, &server).is_err());
}
