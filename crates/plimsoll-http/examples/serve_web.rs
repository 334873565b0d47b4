//! The smallest program that `Builtin` can start; its tests use it instead of the real one.
#![allow(clippy::print_stdout, reason = "announcing the address on standard output is its job")]

use std::error::Error;

use plimsoll_http::server::{TlsSource, WebConfig, WebContent, WebServer};
use plimsoll_servers::{ANNOUNCEMENT, Stop};

fn main() -> Result<(), Box<dyn Error>> {
    let mut config = WebConfig {
        listen: "127.0.0.1:0".parse()?,
        content: WebContent::only_bytes(),
        cores: Vec::new(),
        tls: None,
    };
    let stop = Stop::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "serve" | "web" => {}
            "--listen" => {
                config.listen = arguments.next().ok_or("--listen wants a value")?.parse()?
            }
            "--stop-with-stdin" => stop.request_when_stdin_ends(),
            "--cores" => {
                let list = arguments.next().ok_or("--cores wants a value")?;
                config.cores = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            "--tls" => config.tls = Some(TlsSource::SelfSigned),
            unknown => return Err(format!("unknown argument {unknown}").into()),
        }
    }
    let server = WebServer::bind(&config)?;
    println!("{ANNOUNCEMENT}{}", server.url());
    Ok(server.serve_until(&stop)?)
}
