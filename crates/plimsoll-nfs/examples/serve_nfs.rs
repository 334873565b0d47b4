//! The smallest program that `Builtin` can start; tests use it in place of the real one.
#![allow(clippy::print_stdout, reason = "announcing the address on standard output is its job")]

use std::error::Error;

use plimsoll_nfs::server::{NfsConfig, NfsServer};
use plimsoll_servers::{ANNOUNCEMENT, Stop};

fn main() -> Result<(), Box<dyn Error>> {
    let mut config = NfsConfig {
        listen: "127.0.0.1:0".parse()?,
        memory_bytes_max: 1 << 30,
        portmapper: None,
        cores: Vec::new(),
    };
    let stop = Stop::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} wants a value"));
        match argument.as_str() {
            "serve" | "nfs" => {}
            "--listen" => config.listen = value()?.parse()?,
            "--portmapper" => config.portmapper = Some(value()?.parse()?),
            "--memory-max" => config.memory_bytes_max = value()?.parse()?,
            "--stop-with-stdin" => stop.request_when_stdin_ends(),
            "--cores" => {
                config.cores = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            unknown => return Err(format!("unknown argument {unknown}").into()),
        }
    }
    plimsoll_servers::raise_descriptor_limit();
    let server = NfsServer::bind(&config)?;
    println!("{ANNOUNCEMENT}{}", server.url());
    Ok(server.serve_until(&stop)?)
}
