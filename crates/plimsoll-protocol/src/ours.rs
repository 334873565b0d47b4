//! Our directory on a file server: is it there, is it ours, what does its marker say. Nothing is
//! written or removed where it is not.

use crate::marker::Marker;
use crate::net::SetupError;

/// The directory.
pub const ROOT: &str = "plimsoll-files";
/// File in [`ROOT`] that says the directory is ours, and what it holds.
pub const MARKER: &str = ".plimsoll";
/// The marker in the making; renamed when it is whole.
pub const MARKER_NEW: &str = ".plimsoll.new";
/// A marker is a few hundred bytes.
pub const MARKER_BYTES_MAX: u32 = 8192;

/// A file server, as far as our directory goes.
pub trait Place {
    /// How it calls a directory.
    type Dir;
    /// Why it refused.
    type Error;
    /// Where else the user may go: `another export`.
    const ELSEWHERE: &'static str;

    /// As the user named it.
    fn name(&self) -> String;
    /// For the user: what could not be done, and the next move.
    fn unable_to(&self, doing: &str, error: Self::Error) -> SetupError;
    /// [`ROOT`], if it is there.
    fn find(&mut self) -> Result<Option<Self::Dir>, Self::Error>;
    /// Makes [`ROOT`].
    fn make(&mut self) -> Result<Self::Dir, Self::Error>;
    /// The text of [`MARKER`], if it is there.
    fn marker(&mut self, root: &Self::Dir) -> Result<Option<Vec<u8>>, Self::Error>;
    /// There is nothing in [`ROOT`] but [`MARKER_NEW`].
    fn is_bare(&mut self, root: &Self::Dir) -> Result<bool, Self::Error>;
    /// Writes [`MARKER_NEW`], and makes it [`MARKER`]: the marker is whole at any instant.
    fn replace_marker(&mut self, root: &Self::Dir, text: &str) -> Result<(), Self::Error>;
}

/// What a server has under [`ROOT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootState<D, M> {
    /// Nothing.
    Absent,
    /// Our directory. Without a marker when it is bare: its making was cut short.
    Ours(D, Option<M>),
}

impl<D, M> RootState<D, M> {
    /// What the marker says.
    pub const fn marker(&self) -> Option<&M> {
        match self {
            Self::Ours(_, marker) => marker.as_ref(),
            Self::Absent => None,
        }
    }
}

/// Looks; a directory of somebody else is an error.
pub fn look<P: Place, M: Marker>(place: &mut P) -> Result<RootState<P::Dir, M>, SetupError> {
    let found = place.find().map_err(|e| place.unable_to("look for plimsoll-files", e))?;
    let Some(root) = found else { return Ok(RootState::Absent) };
    let text = place.marker(&root);
    let text = text.map_err(|e| place.unable_to("read the marker in plimsoll-files", e))?;
    let Some(text) = text else {
        let bare = place.is_bare(&root);
        return match bare.map_err(|e| place.unable_to("list plimsoll-files", e))? {
            true => Ok(RootState::Ours(root, None)),
            false => Err(SetupError::Wrong(format!(
                "{}: {ROOT} exists there and carries no {MARKER}, so it is not ours and nothing \
                 is written or removed; move it away, or use {}",
                place.name(),
                P::ELSEWHERE
            ))),
        };
    };
    match M::parse(&text) {
        Ok(marker) => Ok(RootState::Ours(root, Some(marker))),
        Err(error) => Err(SetupError::Wrong(format!("{}: {error}", place.name()))),
    }
}

/// Refuses files of another seed.
pub fn check_seed(place: &impl Place, held: u64, seed: u64) -> Result<(), SetupError> {
    if held == seed {
        return Ok(());
    }
    Err(SetupError::Wrong(format!(
        "{}: {ROOT} holds files of seed {held}, not {seed}; use them with --set \
         workload.file_set_seed={held}, or remove them with plimsoll clean",
        place.name()
    )))
}

/// The directory, made where it is missing, with this marker.
pub fn open<P: Place, M: Marker + PartialEq>(
    place: &mut P,
    state: RootState<P::Dir, M>,
    marker: &M,
) -> Result<P::Dir, SetupError> {
    let root = match state {
        RootState::Ours(root, Some(held)) if held == *marker => return Ok(root),
        RootState::Ours(root, _) => root,
        RootState::Absent => place.make().map_err(|e| place.unable_to("make plimsoll-files", e))?,
    };
    write_marker(place, &root, marker)?;
    Ok(root)
}

/// Says what the directory holds now.
pub fn write_marker<P: Place>(
    place: &mut P,
    root: &P::Dir,
    marker: &impl Marker,
) -> Result<(), SetupError> {
    let written = place.replace_marker(root, &marker.to_json());
    written.map_err(|e| place.unable_to("write the marker in plimsoll-files", e))
}
