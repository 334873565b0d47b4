//! From a status to how an op ended.

use plimsoll_model::outcome::OpStatus;

use super::super::op::{Expected, SmbOp, Wanted};
use super::super::wire::status;
use super::failure::Failure;
use super::in_flight::OpInFlight;

/// How an op ended, or what is wrong with it.
pub(super) type Verdict<'m> = Result<OpStatus, Failure<'m>>;

/// Judges an op whose commands ended with `status`.
pub(super) fn verdict(in_flight: &OpInFlight, code: u32) -> Verdict<'static> {
    if let Some(failure) = in_flight.failure {
        return Err(failure);
    }
    let code = as_desktop_sees_it(in_flight, code);
    let judged = expectation(in_flight.call.expected, code)?;
    match in_flight.call.op {
        SmbOp::Read { wanted: Wanted::Exactly(expected), .. }
            if !status::is_failure(code) && in_flight.moved != expected =>
        {
            Err(Failure::Length { expected, found: in_flight.moved })
        }
        SmbOp::Write { length, .. } if !status::is_failure(code) && in_flight.moved != length => {
            Err(Failure::Length { expected: length, found: in_flight.moved })
        }
        _ => Ok(judged),
    }
}

/// A status against what the script expects.
pub(super) fn expectation(expected: Expected, actual: u32) -> Verdict<'static> {
    let failed = status::is_failure(actual);
    let expected = match expected {
        Expected::Success if !failed => return Ok(OpStatus::Ok),
        Expected::Failure(code) if actual == code => return Ok(OpStatus::ExpectedFailure),
        Expected::AnyFailure if failed => return Ok(OpStatus::ExpectedFailure),
        Expected::Anything if failed => return Ok(OpStatus::ExpectedFailure),
        Expected::Anything => return Ok(OpStatus::Ok),
        Expected::Success => status::SUCCESS,
        Expected::Failure(code) => code,
        Expected::AnyFailure => status::UNSUCCESSFUL,
    };
    Err(Failure::Unexpected { expected, actual })
}

/// A read that begins at the end of a file is a read of nothing: what SMB2 calls a failure is none
/// to an application, unless the script says so.
fn as_desktop_sees_it(in_flight: &OpInFlight, code: u32) -> u32 {
    match (&in_flight.call.op, in_flight.call.expected) {
        (SmbOp::Read { wanted, .. }, Expected::Success | Expected::Anything)
            if code == status::END_OF_FILE
                && matches!(wanted, Wanted::Any | Wanted::Exactly(0)) =>
        {
            status::SUCCESS
        }
        (SmbOp::Read { .. }, _) if code == status::END_OF_FILE && in_flight.moved > 0 => {
            // An earlier part of the same read brought something.
            status::SUCCESS
        }
        _ => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_FOUND: u32 = status::OBJECT_NAME_NOT_FOUND;

    #[test]
    fn statuses_are_held_against_what_is_expected() {
        let (ok, expected) = (Ok(OpStatus::Ok), Ok(OpStatus::ExpectedFailure));
        let other = |expected, actual| Err(OpStatus::Unexpected { expected, actual });
        let denied = status::ACCESS_DENIED;
        let cases = [
            (Expected::Success, 0, ok),
            (Expected::Success, NOT_FOUND, other(0, NOT_FOUND)),
            (Expected::Failure(NOT_FOUND), NOT_FOUND, expected),
            (Expected::Failure(NOT_FOUND), 0, other(NOT_FOUND, 0)),
            (Expected::Failure(NOT_FOUND), denied, other(NOT_FOUND, denied)),
            (Expected::AnyFailure, denied, expected),
            (Expected::AnyFailure, 0, other(status::UNSUCCESSFUL, 0)),
            (Expected::Anything, 0, ok),
            (Expected::Anything, denied, expected),
        ];
        for (wanted, actual, judged) in cases {
            let found = expectation(wanted, actual).map_err(|failure| failure.status());
            assert_eq!(found, judged, "{wanted:?} {actual:#x}");
        }
    }
}
