//! What a text of a journey may name: what replies gave, and columns of data.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::suite::SuiteError;

use super::Builder;
use super::written::WrittenData;
use crate::journey::data::{DataError, DataRows, RowOrder};
use crate::journey::{UserCertificates, Variable};
use crate::tls::ClientIdentity;
use crate::wire::template::{Encoding, Piece, Template};

impl Builder<'_> {
    pub(super) fn add_data(&mut self, path: &str, data: WrittenData) -> Result<(), SuiteError> {
        self.check_name(&format!("{path}.name"), &data.name)?;
        let at_file = format!("{path}.file");
        let file = self.folder.join(&data.file);
        let bytes = (self.read)(&file).map_err(|e| {
            let message = format!("cannot read the data from {}: {e}", file.display());
            self.root.error_at(&at_file, message)
        })?;
        let is_of_requests = data.order == RowOrder::EachRequest;
        if data.weight.is_some() && !is_of_requests {
            let message = "rows with weights are drawn for each request";
            let error = self.root.error_at(&format!("{path}.weight"), message);
            return Err(error.with_help("write order = \"each_request\", or leave `weight` out"));
        }
        let rows =
            DataRows::read_weighted((&data.name, data.order, data.weight.as_deref()), &bytes);
        let rows = rows.map_err(|error| match error {
            DataError::NoColumn { .. } => {
                self.root.error_at(&format!("{path}.weight"), error.to_string())
            }
            error => self.root.error_at(&at_file, format!("{}: {error}", file.display())),
        })?;
        let number = self.all.data.len();
        if let Some(column) = &data.certificate {
            if is_of_requests {
                let message =
                    "a user has one certificate, and these rows are drawn for each request";
                let error = self.root.error_at(&format!("{path}.certificate"), message);
                return Err(
                    error.with_help("write order = \"in_turn\", or another [[data]] for them")
                );
            }
            let by_row = self.certificates(&format!("{path}.certificate"), &rows, column)?;
            self.all.certificates = Some(UserCertificates { data: number, by_row });
        }
        let columns =
            (0..rows.columns.len()).map(|column| Variable::Column { data: number, column });
        self.all.variables.extend(columns);
        self.all.data.push(rows);
        Ok(())
    }

    /// The certificate of each row, from the file that this column names.
    fn certificates(
        &self,
        path: &str,
        rows: &DataRows,
        column: &str,
    ) -> Result<Vec<ClientIdentity>, SuiteError> {
        if self.all.certificates.is_some() {
            let message = "the rows of two [[data]] have certificates";
            return Err(self.root.error_at(path, message).with_help("leave one out"));
        }
        let at = rows.column(column).map_err(|e| self.root.error_at(path, e.to_string()))?;
        let mut of_files: BTreeMap<&[u8], ClientIdentity> = BTreeMap::new();
        let mut by_row = Vec::new();
        for row in 0..rows.count() {
            let file = rows.value(row, at);
            let identity = match of_files.get(file) {
                Some(read) => read.clone(),
                None => {
                    let file = self.folder.join(&*String::from_utf8_lossy(file));
                    ClientIdentity::read(&file, self.read)
                        .map_err(|e| self.root.error_at(path, format!("row {}: {e}", row + 1)))?
                }
            };
            of_files.entry(file).or_insert_with(|| identity.clone());
            by_row.push(identity);
        }
        Ok(by_row)
    }

    /// Index of the variable of this name that replies give.
    pub(super) fn taken(&mut self, name: &str) -> u16 {
        let variable = Variable::Taken(name.to_owned());
        let existing = self.all.variables.iter().position(|other| *other == variable);
        existing.unwrap_or_else(|| {
            self.all.variables.push(variable);
            self.all.variables.len() - 1
        }) as u16
    }

    /// A text with variables, and which of those that are taken it uses.
    pub(super) fn template(
        &mut self,
        key: &str,
        text: &str,
        encoding: Encoding,
        uses: &mut BTreeSet<u16>,
    ) -> Result<Template, SuiteError> {
        let mut unresolved = None;
        let read = Template::parse_with(text, &mut |part| {
            let tokens: Vec<&str> = part.split_whitespace().collect();
            let (name, encoding) = match tokens[..] {
                ["urlencode", name] => (name, Encoding::Component),
                [name] => (name, encoding),
                _ => return None,
            };
            let number = match name.split_once('.') {
                Some((data, column)) => match self.column(data, column) {
                    Ok(number) => number,
                    Err(message) => {
                        unresolved = Some(message);
                        return None;
                    }
                },
                None => match Variable::NAMED.iter().find(|(named, _)| *named == name) {
                    Some((_, number)) => *number,
                    None => {
                        let number = self.taken(name);
                        uses.insert(number);
                        number
                    }
                },
            };
            Some(Piece::Variable { number, encoding })
        });
        read.map_err(|error| {
            let message = unresolved.unwrap_or_else(|| {
                format!("{{{{{}}}}} is neither a variable nor a function", error.0)
            });
            self.root.error_at(key, message).with_help(
                "write {{name}} for what a reply gave, {{user.name}} for a column of data, {{uuid}}, \
                 {{int 1 1000}} or {{urlencode name}}",
            )
        })
    }

    /// Index of the variable that a column of data is.
    pub(super) fn column(&self, data: &str, column: &str) -> Result<u16, String> {
        let at = self.all.data.iter().position(|rows| rows.name == data);
        let number = at.ok_or_else(|| format!("no [[data]] is called {data:?}"))?;
        let column = self.all.data[number].column(column).map_err(|e| e.to_string())?;
        let variable = Variable::Column { data: number, column };
        let at = self.all.variables.iter().position(|other| *other == variable);
        at.map(|at| at as u16).ok_or_else(|| format!("no column {data}.{column}"))
    }
}
