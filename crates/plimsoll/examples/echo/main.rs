//! The smallest protocol there is, complete: Plimsoll with `echo` over TCP beside its own protocols.
//! Session and script are `plimsoll_testkit::echo`; here are the suite, the reference server and
//! the registration.
//!
//! ```text
//! cargo run -p plimsoll --example echo -- run echo builtin: --profile quick
//! cargo run -p plimsoll --example echo -- serve echo
//! ```

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, FromArgMatches as _};
use plimsoll_model::suite::Parameters;
use plimsoll_protocol::host::{
    Console, HostError, Reference, Registration, ServerRequest, Started, own_program,
};
use plimsoll_protocol::{Plan, PlanError, PlanRequest, Protocol};
use plimsoll_servers::{Builtin, ServerError, cores};
use plimsoll_testkit::echo::Echo;
use plimsoll_testkit::sim::MESSAGE_BYTES;
use serde::{Deserialize, Serialize};

/// How often an idle server sees whether it is to stop.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What needs no socket.
const PROTOCOL: Protocol = Protocol {
    name: "echo",
    title: "echo",
    schemes: &[("echo", 7)],
    suites: &[("echo", include_str!("echo.toml"))],
    read_workload: |table| table.read::<EchoWorkload>().map(Into::into),
    workload_schema: || schemars::schema_for!(EchoWorkload),
    plan,
    needed_file_set: None,
    load_files: None,
    clean: None,
};

/// What the host needs.
const ECHO: Registration = Registration {
    refuse_user: Some("echo knows no users; leave the name out"),
    ..Registration::new(&PROTOCOL, Reference::new("echo", command, serve, start))
};

fn command() -> clap::Command {
    ServeEchoArgs::augment_args(clap::Command::new("echo").about("Says it again"))
}

fn main() -> ExitCode {
    plimsoll::program(&[&ECHO])
}

/// The `[workload]` of a suite: nothing can be chosen.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct EchoWorkload {}

impl Parameters for EchoWorkload {}

fn plan(_: &PlanRequest<'_>) -> Result<Plan, PlanError> {
    Ok(Plan::fixed(Arc::new(Echo), Vec::new(), Vec::new()))
}

#[derive(Args)]
struct ServeEchoArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7")]
    listen: SocketAddr,
    /// Cores to use, for example 0,2
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cores: Vec<u32>,
    /// Stop when standard input ends
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

fn start(request: &ServerRequest<'_>) -> Result<Started, HostError> {
    let server = Builtin::new("echo", own_program()?, request.cores);
    Ok(Started::at_its_url(server.listening_on(request.listen_on).start()?))
}

fn serve(matches: &clap::ArgMatches, console: &Console) -> Result<(), HostError> {
    let args = ServeEchoArgs::from_arg_matches(matches)?;
    let refused = |source| ServerError::Listen { address: args.listen, source };
    let _ = cores::pin_current_thread(&args.cores);
    let listener = TcpListener::bind(args.listen).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let stop =
        console.listens(&format!("echo://{address}/"), args.stop_with_stdin, &["echo URL"])?;
    while !stop.is_requested() {
        match listener.accept() {
            Ok((stream, _)) => drop(std::thread::spawn(move || echo_messages(stream))),
            Err(_) => std::thread::sleep(LOOK_AGAIN),
        }
    }
    Ok(())
}

/// Until the client leaves.
fn echo_messages(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let mut message = [0; MESSAGE_BYTES];
    loop {
        stream.read_exact(&mut message)?;
        stream.write_all(&message)?;
    }
}
