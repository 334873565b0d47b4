//! Users driven by hand.

use std::path::Path;

use super::*;
use crate::journey::Variable;
use crate::wire::template::Variables as _;

const PARALLEL: &str = r#"
[[page]]
name = "home"
path = "/"
parallel = 2
think = "constant 1s"

[[page.request]]
path = "/{{int 1 1000000}}"
repeat = "3"

[[page]]
name = "last"
path = "/last"
"#;

/// A user on that journey, driven by hand.
struct Walk {
    journeys: Journeys,
    user: User,
    origin: Origin,
    tickets: u32,
}

impl Walk {
    fn new() -> Self {
        Self::along(PARALLEL)
    }

    fn along(text: &str) -> Self {
        let read = |_: &Path| Ok(b"path,n\na/b%20c,1\nd,1\ne,1\nf,1\n".to_vec());
        let journeys = super::super::file::parse(Path::new("j.toml"), text, &read).unwrap();
        let user = User::new(&journeys, 0, 0);
        let origin = Origin { scheme: "http".into(), host: "a".into(), host_field: "a".into() };
        let mut walk = Self { journeys, user, origin, tickets: 0 };
        walk.with(|user, context, _| user.arrive(context, 0));
        walk
    }

    fn with<T>(&mut self, f: impl FnOnce(&mut User, &SessionContext<'_>, &Origin) -> T) -> T {
        let draws = Draws { seed: 1, nonce: 0, clients: Some(1) };
        let context = SessionContext { journeys: &self.journeys, draws };
        f(&mut self.user, &context, &self.origin)
    }

    /// The fetches and tickets of all requests that go out now.
    fn send(&mut self) -> Vec<(usize, Ticket)> {
        let mut sent = Vec::new();
        while self.user.phase == UserPhase::Ready {
            let fetch = self.with(|user, context, origin| {
                user.send(context, origin, (Nanos::ZERO, Nanos::ZERO))
            });
            self.tickets += 1;
            self.user.note_ticket(Ticket(self.tickets));
            sent.push((fetch.unwrap(), Ticket(self.tickets)));
        }
        sent
    }

    fn reply(&mut self, (fetch, ticket): (usize, Ticket)) -> Completed {
        let now = Nanos::from_secs(2);
        let completed = self.with(|user, context, _| user.advance(fetch, context, now));
        assert!(!self.with(|user, context, _| user.end(ticket, false, context)));
        completed
    }

    /// True for the first failure of the session.
    fn fail(&mut self, (_, ticket): (usize, Ticket)) -> bool {
        self.with(|user, context, _| user.end(ticket, true, context))
    }
}

#[test]
fn further_requests_go_out_in_parallel_once_the_first_is_done() {
    let mut walk = Walk::new();
    let first = walk.send();
    assert_eq!(first.len(), 1);
    assert_eq!(walk.reply(first[0]), Completed::default());
    let two = walk.send();
    assert_eq!(two.len(), 2, "of three");
    let paths = two.iter().map(|(fetch, _)| walk.user.fetch(*fetch).path.clone());
    let paths: Vec<Vec<u8>> = paths.collect();
    assert_ne!(paths[0], paths[1], "each is drawn on its own");
    // The second is answered before the first.
    assert_eq!(walk.reply(two[1]), Completed::default());
    let third = walk.send();
    assert_eq!(third.len(), 1);
    walk.reply(two[0]);
    assert_eq!((walk.send().len(), walk.user.phase), (0, UserPhase::Waiting));
    assert_eq!(walk.reply(third[0]).page, Some(Nanos::from_secs(2)));
    assert_eq!(walk.user.phase, UserPhase::Thinking(Nanos::from_secs(1)));
}

#[test]
fn a_redirect_is_followed_beside_the_other_requests() {
    let mut walk = Walk::new();
    let first = walk.send();
    walk.reply(first[0]);
    let two = walk.send();
    let redirect = Redirect { with_get: true, count: 1 };
    walk.user.follow(two[0].0, (b"/there".to_vec(), redirect), &mut Vec::new());
    assert!(!walk.with(|user, context, _| user.end(two[0].1, false, context)));
    let again = walk.send();
    assert_eq!(again.len(), 1, "two are in flight");
    assert_eq!((again[0].0, &walk.user.fetch(again[0].0).path[..]), (two[0].0, &b"/there"[..]));
    walk.reply(again[0]);
    assert_eq!(walk.send().len(), 1);
}

#[test]
fn a_session_fails_once_and_ends_when_nothing_is_in_flight() {
    let mut walk = Walk::new();
    let first = walk.send();
    walk.reply(first[0]);
    let two = walk.send();
    assert!(walk.fail(two[0]));
    assert_eq!((walk.send().len(), walk.user.phase), (0, UserPhase::Waiting));
    assert!(!walk.fail(two[1]), "the session has failed already");
    assert_eq!(walk.user.phase, UserPhase::Leaving);

    let mut walk = Walk::new();
    let first = walk.send();
    walk.reply(first[0]);
    let two = walk.send();
    assert!(walk.fail(two[0]));
    let redirect = Redirect { with_get: true, count: 1 };
    walk.user.follow(two[1].0, (b"/there".to_vec(), redirect), &mut Vec::new());
    assert!(!walk.with(|user, context, _| user.end(two[1].1, false, context)));
    assert_eq!(walk.user.phase, UserPhase::Leaving, "nothing more is sent");
}

const DRAWN: &str = r#"
[[data]]
name = "item"
file = "items.csv"
order = "each_request"
weight = "n"

[[page]]
name = "home"
path = "/{{item.path}}?{{item.path}}"
parallel = 6
repeat = "300"
next = { end = 1.0 }

[[page.request]]
path = "/{{item.path}}"
headers.X-Item = "{{item.path}}"
repeat = "mean 0.4"

[[page.request]]
path = "/last"
repeat = "mean 1.5"
"#;

#[test]
fn each_request_draws_a_row_and_some_requests_are_not_made() {
    let mut walk = Walk::along(DRAWN);
    let mut sent: Vec<String> = Vec::new();
    while walk.user.phase != UserPhase::Leaving {
        if matches!(walk.user.phase, UserPhase::Thinking(_)) {
            walk.user.phase = UserPhase::Ready;
        }
        let all = walk.send();
        for one in &all {
            let path = walk.user.fetch(one.0).path.clone();
            // The header field has the row of the path, also with others in flight.
            let field = walk.with(|user, context, origin| {
                let (now, mut value) = (Nanos::ZERO, Vec::new());
                let variables =
                    UserVariables { user, fetch: one.0, path: &path, context, origin, now };
                variables.write(Variable::BUILT_IN.len() as u16, &mut value);
                String::from_utf8(value).unwrap()
            });
            let path = String::from_utf8(path).unwrap();
            assert!(path == "/last" || path[1..].split('?').all(|part| part == field), "{path}");
            sent.push(path);
        }
        for one in all {
            walk.reply(one);
        }
    }
    let count = |is_one: &dyn Fn(&str) -> bool| sent.iter().filter(|path| is_one(path)).count();
    let first = count(&|path| path.contains('?'));
    assert_eq!(first, 300);
    assert!(count(&|path| path.starts_with("/a/b%20c?")).abs_diff(75) < 30, "{sent:?}");
    assert!(count(&|path| !path.contains('?') && path != "/last").abs_diff(120) < 35);
    assert!(count(&|path| path == "/last").abs_diff(450) < 35);
}
