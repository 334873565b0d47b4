//! Writes a page made from the fixtures or from a result, to look at: `fixture_report FILE
//! [valid|invalid|full|interrupted|curve|single|nfs|smb|sweep|several|RESULT.json]`.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: fixture_report FILE [KIND]")?;
    let runs = match arguments.next().as_deref() {
        None | Some("valid") => vec![fixture::valid(30)],
        Some("invalid") => vec![fixture::invalid(30)],
        Some("full") => vec![fixture::valid(600)],
        Some("interrupted") => vec![fixture::interrupted()],
        Some("curve") => vec![fixture::curve()],
        Some("single") => vec![fixture::single()],
        Some("nfs") => vec![fixture::nfs(30)],
        Some("smb") => vec![fixture::smb(30)],
        Some("sweep") => vec![fixture::sweep(30)],
        Some("several") => vec![fixture::valid(30), fixture::invalid(3)],
        Some(path) if path.ends_with(".json") => {
            vec![serde_json::from_str(&std::fs::read_to_string(path)?)?]
        }
        Some(other) => return Err(format!("{other:?} is no kind of fixture").into()),
    };
    let text = match file.ends_with(".md") {
        true => plimsoll_report::markdown(&runs),
        false => plimsoll_report::html(&runs)?,
    };
    std::fs::write(&file, text)?;
    Ok(())
}
