//! `managed:NAME` targets: real servers, started with a temporary configuration on a free port of
//! 127.0.0.1, watched, stopped.

mod nginx;

use std::path::{Path, PathBuf};

use crate::web::TlsSource;
use crate::{ServerError, ServerProcess};

/// Names that `managed:` takes.
pub const NAMES: [&str; 1] = ["nginx"];
/// Names that are meant to come.
const PLANNED: [&str; 3] = ["caddy", "samba", "ganesha"];
/// Below this likeness (0 to 1) a suggestion would only confuse.
const LIKENESS_MIN: f64 = 0.6;

/// What a managed web server is to serve, and how.
#[derive(Clone, Debug)]
pub struct ManagedRequest {
    /// Document root.
    pub root: PathBuf,
    /// Cores to pin it to, one worker each; empty: one worker, wherever the system puts it.
    pub cores: Vec<u32>,
    /// `https` with this certificate, or plain `http`.
    pub tls: Option<TlsSource>,
    /// Directories to look for the program in; `None`: `PATH` and where packages put it.
    pub search: Option<Vec<PathBuf>>,
    /// A directory of the caller's that is removed when the caller dies without stopping the
    /// server (`kill -9`): a temporary file set of many gigabytes should not stay behind.
    pub remove_when_killed: Option<PathBuf>,
}

/// Starts the server called `name` and waits until it answers.
pub fn start(name: &str, request: &ManagedRequest) -> Result<ServerProcess, ServerError> {
    if let Some(planned) = PLANNED.into_iter().find(|planned| *planned == name) {
        return Err(ServerError::NotSupportedYet { name: planned });
    }
    match name {
        "nginx" => nginx::start(request),
        _ => Err(ServerError::UnknownManaged { name: name.to_owned(), suggestion: near(name) }),
    }
}

/// Where nginx is on this host, if it is.
pub fn find_nginx() -> Option<PathBuf> {
    nginx::find(None).ok()
}

fn near(name: &str) -> Option<&'static str> {
    let likeness = |known: &&str| strsim::jaro_winkler(&name.to_lowercase(), known);
    NAMES
        .into_iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
        .filter(|best| likeness(best) >= LIKENESS_MIN)
}

/// Directories in which a program is looked for.
fn search_path(asked: Option<&[PathBuf]>, usual: &[&str]) -> Vec<PathBuf> {
    match asked {
        Some(asked) => asked.to_vec(),
        None => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).chain(usual.iter().map(PathBuf::from)).collect()
        }
    }
}

fn find_program(name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    directories.iter().map(|directory| directory.join(name)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ManagedRequest {
        ManagedRequest {
            root: ".".into(),
            cores: vec![],
            tls: None,
            search: Some(vec![]),
            remove_when_killed: None,
        }
    }

    fn refusal(name: &str) -> String {
        start(name, &request()).unwrap_err().to_string()
    }

    #[test]
    fn a_misspelt_name_gets_a_suggestion_and_a_strange_one_the_list() {
        assert_eq!(refusal("ngnix"), "there is no managed:ngnix; did you mean managed:nginx?");
        assert_eq!(refusal("iis"), "there is no managed:iis; known: nginx");
        let planned = "managed:caddy is not supported yet; start it yourself and give its URL";
        assert_eq!(refusal("caddy"), planned);
    }

    #[test]
    fn a_missing_nginx_says_how_to_get_it() {
        assert_eq!(
            refusal("nginx"),
            "managed:nginx: no nginx found in PATH, /usr/sbin, /usr/local/sbin or \
             /usr/local/nginx/sbin; install it (apt install nginx-light) or give a URL"
        );
    }
}
