//! Writes a page made from the fixtures or from a result, to look at: `fixture_report FILE
//! [valid|invalid|full|interrupted|curve|single|nfs|smb|sweep|RESULT.json]`.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: fixture_report FILE [KIND]")?;
    let run = match arguments.next().as_deref() {
        None | Some("valid") => fixture::valid(30),
        Some("invalid") => fixture::invalid(30),
        Some("full") => fixture::valid(600),
        Some("interrupted") => fixture::interrupted(),
        Some("curve") => fixture::curve(),
        Some("single") => fixture::single(),
        Some("nfs") => fixture::nfs(30),
        Some("smb") => fixture::smb(30),
        Some("sweep") => fixture::sweep(30),
        Some(path) if path.ends_with(".json") => {
            serde_json::from_str(&std::fs::read_to_string(path)?)?
        }
        Some(other) => return Err(format!("{other:?} is no kind of fixture").into()),
    };
    let text = match file.ends_with(".md") {
        true => plimsoll_report::markdown(&run),
        false => plimsoll_report::html(&run)?,
    };
    std::fs::write(&file, text)?;
    Ok(())
}
