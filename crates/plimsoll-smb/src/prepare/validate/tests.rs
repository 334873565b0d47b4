//! Which operations are tried, also when connections end.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::time::Duration;

use plimsoll_protocol::blocking::STOP_HEARD_WITHIN;
use plimsoll_protocol::net::Channel;

use super::*;
use crate::prepare::tests::hostile::client_on;

/// How a connection ends with the first operation over it.
#[derive(Clone, Copy)]
enum End {
    Reset,
    Closed,
    Silence,
}

impl Channel for End {
    fn send(&mut self, _: &[u8]) -> Result<(), ChannelError> {
        Ok(())
    }

    fn receive(&mut self, _: &mut Vec<u8>, _: Duration) -> Result<(), ChannelError> {
        Err(match self {
            Self::Reset => ChannelError::Failed(io::Error::from(ErrorKind::ConnectionReset)),
            Self::Closed => ChannelError::Closed,
            Self::Silence => ChannelError::Timeout,
        })
    }
}

/// Tries three operations over these connections. Answers with what did not work, and with how
/// many connections are left.
fn tried(opened: Vec<Result<End, SetupError>>) -> (Result<Vec<&'static str>, SetupError>, usize) {
    let left = RefCell::new(opened.into_iter());
    let open = || {
        let end = left.borrow_mut().next().expect("no more connections than said")?;
        let Remote(blocking) = client_on(Box::new(end));
        Ok(Remote(blocking.silent_for(STOP_HEARD_WITHIN)))
    };
    let checks = ["first", "second", "third"].map(|name| done(name, SmbOp::Echo));
    let lacking = try_all(checks.into(), &open);
    let names = lacking.map(|lacking| lacking.iter().map(|one| one.name).collect());
    (names, left.into_inner().len())
}

fn unreachable() -> Result<End, SetupError> {
    Err(SetupError::Unusable("unreachable".to_owned()))
}

#[test]
fn an_operation_that_ends_the_connection_does_not_keep_others_from_being_tried() {
    let (lacking, left) = tried(vec![Ok(End::Reset), Ok(End::Closed), Ok(End::Reset)]);
    assert_eq!((lacking.unwrap(), left), (vec!["first", "second", "third"], 0));
}

#[test]
fn silence_is_not_waited_for_again() {
    let (lacking, left) = tried(vec![Ok(End::Reset), Ok(End::Silence), Ok(End::Reset)]);
    assert_eq!((lacking.unwrap(), left), (vec!["first", "second"], 1));
}

#[test]
fn a_server_that_is_gone_leaves_the_list_and_a_stop_leaves_nothing() {
    let (lacking, _) = tried(vec![Ok(End::Reset), unreachable()]);
    assert_eq!(lacking.unwrap(), ["first"]);
    let (lacking, _) = tried(vec![unreachable()]);
    assert!(matches!(lacking, Err(SetupError::Unusable(_))), "{lacking:?}");
    let (lacking, _) = tried(vec![Ok(End::Reset), Err(SetupError::Stopped)]);
    assert!(matches!(lacking, Err(SetupError::Stopped)), "{lacking:?}");
}

#[test]
fn every_check_builds_on_steps_that_were_tried_before() {
    for checks in [mix(), nic(1, 1 << 20, 1 << 16), logons()] {
        let mut steps = Vec::new();
        for Check { name, step, given, .. } in checks {
            assert!(given.iter().all(|step| steps.contains(step)), "{name}: {given:?}");
            assert!(step.is_none_or(|step| !steps.contains(&step)), "{name} is another {step:?}");
            steps.extend(step);
        }
    }
}
