//! What must not show in a report: the values of header fields that prove who somebody is.

/// Fields whose value is a secret; lower case, with the colon that ends the name.
const SECRET_FIELDS: [&str; 2] = ["authorization:", "cookie:"];

/// `text`, with everything from the value of a secret header field on left out. The name may end
/// a longer one (`Proxy-Authorization`, `Set-Cookie`).
pub fn without_secrets(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let ends = SECRET_FIELDS.iter().filter_map(|field| Some(lower.find(field)? + field.len()));
    match ends.min() {
        Some(end) => format!("{} (left out)", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_secret_field_is_left_out() {
        let said = without_secrets("workload.headers=[\"Proxy-Authorization: Basic Zm9v\"]");
        assert_eq!(said, "workload.headers=[\"Proxy-Authorization: (left out)");
        assert_eq!(without_secrets("COOKIE:a=b"), "COOKIE: (left out)");
        assert_eq!(without_secrets("Accept: text/html"), "Accept: text/html");
    }
}
