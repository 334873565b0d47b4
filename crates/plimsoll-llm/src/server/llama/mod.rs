//! `managed:llama`: llama.cpp's own server, as an installed `llama-server` or out of the Python
//! package xllamacpp. With a model of the user's, or with one of random weights.

mod tiny_model;

use std::ffi::OsString;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_servers::clock::Deadline;
use plimsoll_servers::process::{Facts, Launch, ParentWatch, Process};
use plimsoll_servers::programs::{find_program, on_a_free_port, scratch, search_path, searched};
use plimsoll_servers::{Bounded, ServerError, ServerProcess, Software};

/// Names the file of a model to serve.
pub const MODEL_VARIABLE: &str = "PLIMSOLL_LLAMA_MODEL";
/// Names a Python that has xllamacpp.
pub const PYTHON_VARIABLE: &str = "PLIMSOLL_LLAMA_PYTHON";
/// Further arguments of `llama-server`, separated by spaces.
pub const ARGUMENTS_VARIABLE: &str = "PLIMSOLL_LLAMA_ARGS";
/// Where packages put the program.
const INSTALL_DIRECTORIES: [&str; 2] = ["/usr/bin", "/usr/local/bin"];
/// A large model takes minutes to load.
const START_WAIT: Duration = Duration::from_secs(300);
/// Requests that it works at together; more wait.
const SLOTS: u32 = 4;
/// Tokens that each of them has room for.
const TOKENS_PER_SLOT: u32 = 8_192;
const START_SCRIPT: &str = include_str!("start.py");

/// What a managed llama.cpp is to be.
#[derive(Clone, Debug)]
pub struct LlamaRequest {
    /// Address it listens on.
    pub listen_on: IpAddr,
    /// Cores to pin it to; empty: wherever the system puts it.
    pub cores: Vec<u32>,
    /// The model; `None`: one of random weights.
    pub model: Option<PathBuf>,
    /// A Python that has xllamacpp; `None`: the one in `PATH`, if it has.
    pub python: Option<PathBuf>,
    /// Further arguments of `llama-server`.
    pub arguments: Vec<String>,
    /// Directories to look for programs in; `None`: `PATH` and the directories of packages.
    pub search: Option<Vec<PathBuf>>,
}

impl LlamaRequest {
    /// From environment variables.
    pub fn from_environment(listen_on: IpAddr, cores: &[u32]) -> Self {
        let path = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(Into::into);
        let arguments = std::env::var(ARGUMENTS_VARIABLE).unwrap_or_default();
        Self {
            listen_on,
            cores: cores.to_vec(),
            model: path(MODEL_VARIABLE),
            python: path(PYTHON_VARIABLE),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            search: None,
        }
    }
}

/// How the server is started.
enum LaunchMethod {
    Program(PathBuf),
    Python(PathBuf),
}

/// Starts it and waits until it has loaded its model.
pub fn start(request: &LlamaRequest) -> Result<ServerProcess, ServerError> {
    let (method, version) = find(request)?;
    if let Some(model) = request.model.as_ref().filter(|model| !model.is_file()) {
        let message = format!("{MODEL_VARIABLE}: there is no file {}", model.display());
        return Err(ServerError::Own(message.into()));
    }
    let software = Software { name: "llama.cpp".to_owned(), version };
    on_a_free_port(request.listen_on, |address| start_at(address, &method, &software, request))
}

fn find(request: &LlamaRequest) -> Result<(LaunchMethod, String), ServerError> {
    let search = search_path(request.search.as_deref(), &INSTALL_DIRECTORIES);
    if request.python.is_none()
        && let Some(program) = find_program("llama-server", &search)
    {
        let text = output_text(Command::new(&program).arg("--version"));
        let version = text.split_whitespace().skip_while(|word| *word != "version:").nth(1);
        return Ok((
            LaunchMethod::Program(program),
            version.unwrap_or("of unknown version").to_owned(),
        ));
    }
    let python = request.python.clone().or_else(|| find_program("python3", &search));
    let with_package = python.and_then(|python| {
        const ASK: &str =
            "import xllamacpp, importlib.metadata as m; print(m.version('xllamacpp'))";
        let version = output_text(Command::new(&python).args(["-c", ASK]));
        let version = version.lines().next().filter(|line| line.starts_with(char::is_numeric))?;
        Some((LaunchMethod::Python(python), format!("of xllamacpp {version}")))
    });
    with_package.ok_or_else(|| ServerError::NotInstalled {
        name: "llama",
        program: "llama-server, and no python3 with the package xllamacpp,",
        searched: searched(&INSTALL_DIRECTORIES),
        install: "build llama.cpp, or make a venv, pip install xllamacpp there, and set \
                  PLIMSOLL_LLAMA_PYTHON=VENV/bin/python",
    })
}

/// What a program prints about itself; empty if it fails.
fn output_text(command: &mut Command) -> String {
    let Ok(output) = command.stdin(Stdio::null()).output() else { return String::new() };
    match output.status.success() {
        true => String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        false => String::new(),
    }
}

fn start_at(
    address: SocketAddr,
    method: &LaunchMethod,
    software: &Software,
    request: &LlamaRequest,
) -> Result<ServerProcess, ServerError> {
    let system = |source| ServerError::System { doing: "make files for a server", source };
    let scratch = scratch("plimsoll-llama-")?;
    let model = match &request.model {
        Some(model) => model.clone(),
        None => write_model(scratch.path()).map_err(system)?,
    };
    let (program, arguments) = match method {
        LaunchMethod::Program(program) => (program, of_program(address, &model, request)),
        LaunchMethod::Python(python) => {
            let script = scratch.path().join("start.py");
            std::fs::write(&script, START_SCRIPT).map_err(system)?;
            (python, of_script(script, address, (&model, request)))
        }
    };
    let shown: Vec<_> = arguments.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let configuration = format!("{} {}", program.display(), shown.join(" "));
    let mut process = Process::start(Launch {
        program: program.clone(),
        arguments,
        environment: Vec::new(),
        cores: &request.cores,
        scratch: Some(scratch),
        remove_when_killed: None,
        parent_watch: ParentWatch::Shell,
    })?;
    process.wait_until(software, START_WAIT, |until| is_ready(address, until).unwrap_or(false))?;
    let (scheme, path, cores) = ("http".to_owned(), "/".to_owned(), request.cores.clone());
    let facts = Facts { scheme, path, software: software.clone(), configuration, cores };
    Ok(ServerProcess::new(process, address, facts))
}

fn write_model(directory: &Path) -> io::Result<PathBuf> {
    let path = directory.join("random.gguf");
    let mut out = BufWriter::new(std::fs::File::create(&path)?);
    tiny_model::write(&mut out)?;
    out.flush()?;
    Ok(path)
}

fn of_program(address: SocketAddr, model: &Path, request: &LlamaRequest) -> Vec<OsString> {
    let mut all: Vec<OsString> = vec!["--model".into(), model.into()];
    let context = SLOTS * TOKENS_PER_SLOT;
    for (flag, value) in [
        ("--host", address.ip().to_string()),
        ("--port", address.port().to_string()),
        ("--parallel", SLOTS.to_string()),
        ("--ctx-size", context.to_string()),
    ] {
        all.extend([flag.into(), value.into()]);
    }
    if !request.cores.is_empty() {
        all.extend(["--threads".into(), request.cores.len().to_string().into()]);
    }
    all.push("--metrics".into());
    all.extend(request.arguments.iter().map(Into::into));
    all
}

fn of_script(
    script: PathBuf,
    address: SocketAddr,
    (model, request): (&Path, &LlamaRequest),
) -> Vec<OsString> {
    let threads = request.cores.len().max(1);
    let mut all: Vec<OsString> = vec![script.into(), model.into(), address.ip().to_string().into()];
    let numbers = [u32::from(address.port()), SLOTS, TOKENS_PER_SLOT, threads as u32];
    all.extend(numbers.map(|number| number.to_string().into()));
    all
}

/// While it loads its model it answers with another status.
fn is_ready(address: SocketAddr, deadline: Deadline) -> io::Result<bool> {
    let mut stream = Bounded::connect(address, deadline)?;
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut start = [0; 12];
    stream.read_exact(&mut start)?;
    Ok(&start == b"HTTP/1.1 200")
}

#[cfg(test)]
mod tests {
    use plimsoll_servers::programs::LOOPBACK;

    use super::*;

    fn request() -> LlamaRequest {
        LlamaRequest {
            listen_on: LOOPBACK,
            cores: vec![0],
            model: None,
            python: None,
            arguments: vec!["--mlock".into()],
            search: Some(vec![]),
        }
    }

    #[test]
    fn a_missing_llama_says_how_to_get_it() {
        assert_eq!(
            start(&request()).unwrap_err().to_string(),
            "managed:llama: no llama-server, and no python3 with the package xllamacpp, found in \
             PATH, /usr/bin or /usr/local/bin; install it (build llama.cpp, or make a venv, pip \
             install xllamacpp there, and set PLIMSOLL_LLAMA_PYTHON=VENV/bin/python) or give a URL"
        );
    }

    #[test]
    fn an_installed_program_gets_its_slots_and_what_the_user_adds() {
        let address = "127.0.0.1:99".parse().unwrap();
        let all = of_program(address, Path::new("m.gguf"), &request());
        let text: Vec<_> = all.iter().map(|argument| argument.to_str().unwrap()).collect();
        assert_eq!(
            text.join(" "),
            "--model m.gguf --host 127.0.0.1 --port 99 --parallel 4 --ctx-size 32768 --threads 1 \
             --metrics --mlock"
        );
    }
}
