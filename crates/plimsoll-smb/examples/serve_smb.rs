//! The smallest program that `Builtin` can start; tests use it in place of the real one.
#![allow(clippy::print_stdout, reason = "announcing the address on standard output is its job")]

use std::error::Error;

use plimsoll_servers::{ANNOUNCEMENT, Login, PASSWORD_VARIABLE, Stop};
use plimsoll_smb::server::{Encryption, FilesAccess, SmbConfig, SmbFiles, SmbServer};

fn main() -> Result<(), Box<dyn Error>> {
    let mut config = SmbConfig {
        listen: "127.0.0.1:0".parse()?,
        files: SmbFiles::Memory { bytes_max: 1 << 30 },
        login: None,
        encryption: Encryption::AsClient,
        cores: Vec::new(),
        work: plimsoll_servers::delay::Work::default(),
    };
    let stop = Stop::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} wants a value"));
        match argument.as_str() {
            "serve" | "smb" => {}
            "--listen" => config.listen = value()?.parse()?,
            "--root" => {
                let (root, access) = (value()?.into(), FilesAccess::ReadWrite);
                config.files = SmbFiles::Directory { root, access };
            }
            "--user" => {
                let password = std::env::var(PASSWORD_VARIABLE)?;
                config.login = Some(Login { user: value()?, password });
            }
            "--encrypt" => config.encryption = Encryption::Required,
            "--stop-with-stdin" => stop.request_when_stdin_ends(),
            "--cores" => {
                config.cores = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            unknown => return Err(format!("unknown argument {unknown}").into()),
        }
    }
    let server = SmbServer::bind(&config)?;
    println!("{ANNOUNCEMENT}{}", server.url());
    Ok(server.serve_until(&stop)?)
}
