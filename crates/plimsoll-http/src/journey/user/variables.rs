//! The values that variables have for a request of a user.

use plimsoll_model::units::Nanos;

use super::{Origin, SessionContext, User};
use crate::journey::Variable;
use crate::journey::cookies::CookieRequest;
use crate::wire::template::Variables;

/// The request to that path and query with which cookies go and come.
pub(crate) fn cookie_request<'a>(
    origin: &'a Origin,
    path: &'a [u8],
    now: Nanos,
) -> CookieRequest<'a> {
    let end = memchr::memchr(b'?', path).unwrap_or(path.len());
    let host = origin.host.as_str();
    CookieRequest { host, path: &path[..end], is_secure: origin.scheme == "https", now }
}

/// The values of a user's variables for a request.
#[derive(Debug)]
pub(crate) struct UserVariables<'a> {
    pub(crate) user: &'a User,
    /// Index of the fetch whose request it is.
    pub(crate) fetch: usize,
    /// Path and query of the request, once they are made.
    pub(crate) path: &'a [u8],
    pub(crate) context: &'a SessionContext<'a>,
    pub(crate) origin: &'a Origin,
    pub(crate) now: Nanos,
}

impl Variables for UserVariables<'_> {
    fn write(&self, number: u16, into: &mut Vec<u8>) {
        let Self { user, context, .. } = self;
        let journeys = context.journeys;
        match journeys.variables.get(usize::from(number)) {
            Some(Variable::Cookies) => {
                user.jar.write(&cookie_request(self.origin, self.path, self.now), into);
            }
            Some(Variable::Path) => into.extend_from_slice(self.path),
            Some(Variable::Origin) => {
                into.extend_from_slice(self.origin.scheme.as_bytes());
                into.extend_from_slice(b"://");
                into.extend_from_slice(self.origin.host_field.as_bytes());
            }
            Some(Variable::SessionNumber) => {
                into.extend_from_slice(user.session.to_string().as_bytes());
            }
            Some(Variable::Taken(_)) => {
                into.extend_from_slice(&user.values[usize::from(number)]);
            }
            Some(Variable::Column { data, column }) => {
                let row = user.row(self.fetch, *data, context);
                into.extend_from_slice(journeys.data[*data].value(row, *column));
            }
            None => {}
        }
    }
}
