//! How a server of ours answers a request, as a journey's file says it.

use plimsoll_model::suite::SuiteError;

use super::written::WrittenServe;
use super::{Builder, STATUSES, STATUSES_HELP};
use crate::journey::law::{SIZE_MAX, SIZES, SPANS, SizeLaw, SpanLaw};
use crate::journey::{Served, ServedBytes, Variable};
use crate::wire::template::{Piece, Template};

impl Builder<'_> {
    /// `target` is the path of the request.
    pub(super) fn served(
        &self,
        path: &str,
        written: &WrittenServe,
        target: &Template,
    ) -> Result<Served, SuiteError> {
        let key = |key: &str| format!("{path}.{key}");
        let refuse = |name: &str, text: &str, expected: &str| {
            let error = self.root.error_at(&key(name), format!("`serve.{name}` is {text:?}"));
            error.with_help(format!("write {expected}"))
        };
        let bytes = match written.bytes.as_deref() {
            None => ServedBytes::Any,
            Some(text) => match text.trim().strip_prefix("{{").and_then(|it| it.strip_suffix("}}"))
            {
                Some(column) => self.served_column(&key("bytes"), column.trim(), target)?,
                None => {
                    let law = SizeLaw::parse(text).ok_or_else(|| refuse("bytes", text, SIZES))?;
                    ServedBytes::Law(law)
                }
            },
        };
        let time = written.time.as_deref().map_or(Ok(SpanLaw::NONE), |text| {
            SpanLaw::parse(text).ok_or_else(|| refuse("time", text, SPANS))
        })?;
        if let Some(status) = written.status.filter(|status| !STATUSES.contains(status)) {
            let message = format!("{status} is no status that ends a request");
            return Err(self.root.error_at(&key("status"), message).with_help(STATUSES_HELP));
        }
        Ok(Served { bytes, time, status: written.status })
    }

    /// Sizes that are in a column of the rows that make the path.
    fn served_column(
        &self,
        key: &str,
        name: &str,
        target: &Template,
    ) -> Result<ServedBytes, SuiteError> {
        let error = |message: String| self.root.error_at(key, message);
        let (data, column) = name.split_once('.').unwrap_or((name, ""));
        let variable = self.column(data, column).map_err(error)?;
        let Variable::Column { data, column } = self.all.variables[usize::from(variable)] else {
            return Err(error(format!("{name} is no column of data")));
        };
        let is_of_row = |piece: &Piece| {
            let Piece::Variable { number, .. } = piece else { return false };
            let its = &self.all.variables[usize::from(*number)];
            matches!(its, Variable::Column { data: other, .. } if *other == data)
        };
        let rows = &self.all.data[data];
        if !target.pieces().iter().any(is_of_row) {
            let message = format!("the path of the request names no row of {:?}", rows.name);
            let help = "the server finds the row by the path: write a column of it there";
            return Err(error(message).with_help(help));
        }
        let is_no_size = |row: &u64| rows.number(*row, column).is_none_or(|bytes| bytes > SIZE_MAX);
        if let Some(row) = (0..rows.count()).find(is_no_size) {
            let message =
                format!("row {} of {:?} has no number of bytes there", row + 1, rows.name);
            return Err(error(message).with_help("write whole numbers, up to 1 TiB"));
        }
        Ok(ServedBytes::Column { data, column })
    }
}
