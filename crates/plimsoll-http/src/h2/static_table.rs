//! The fields that every connection knows by an index. RFC 7541 Appendix A

/// Names and values; the first has index 1.
const FIELDS: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// Fields of the table; the indexes of what a connection has seen follow.
pub(super) const STATIC_COUNT: usize = FIELDS.len();

/// The field with this index.
pub(super) fn static_field(index: usize) -> Option<(&'static str, &'static str)> {
    FIELDS.get(index.checked_sub(1)?).copied()
}

/// Index of a field.
pub(super) fn find_static(name: &str, value: &str) -> Option<usize> {
    FIELDS.iter().position(|field| *field == (name, value)).map(|at| at + 1)
}

/// Index of the first field of that name.
pub(super) fn find_static_name(name: &str) -> Option<usize> {
    FIELDS.iter().position(|field| field.0 == name).map(|at| at + 1)
}
