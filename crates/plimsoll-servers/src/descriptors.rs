//! How many files a process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process have as many files open as the system allows: every connection is one.
/// Fewer are no error, only slower.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Refused where a sandbox says so; the limit stays what it was.
    let _ = setrlimit(Resource::Nofile, raised);
}
