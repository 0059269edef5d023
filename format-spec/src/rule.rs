//! The numbered rules of SPEC.md, so that an error can name the one that is broken.
//!
//! A test compares this list with SPEC.md and with the vectors: a rule cannot be in one and not in the others.

/// Number and title of every rule, in the order of SPEC.md.
pub const RULES: &[(&str, &str)] = &[
    ("2.1", "magic"),
    ("2.2", "digest of page 0"),
    ("2.3", "major version"),
    ("2.4", "page size"),
    ("2.5", "reserved bytes of page 0"),
    ("2.6", "content length"),
    ("2.7", "file at least as long as its content"),
    ("2.8", "place of the manifest"),
    ("2.9", "place of the digest table"),
    ("2.10", "digest of the manifest"),
    ("2.11", "digest of the digest table"),
    ("3.1", "manifest is one JSON object"),
    ("3.2", "no duplicate keys"),
    ("3.3", "depth and numbers of the manifest"),
    ("3.4", "fields and types of the manifest"),
    ("3.5", "no unknown keys"),
    ("3.6", "required features"),
    ("3.7", "architecture"),
    ("3.8", "parameter counts"),
    ("3.9", "census"),
    ("3.10", "SHA-256 of source files"),
    ("3.11", "names of source files"),
    ("3.12", "source of a tensor"),
    ("4.1", "order of segments"),
    ("4.2", "place of segments"),
    ("4.3", "length of segments"),
    ("4.4", "leaf size"),
    ("4.5", "place of items"),
    ("4.6", "expert records"),
    ("4.7", "digest of a leaf"),
    ("4.8", "padding is zero"),
    ("4.9", "length of the digest table"),
    ("4.10", "order of items"),
    ("5.1", "known encoding"),
    ("5.2", "shape"),
    ("5.3", "stored length"),
    ("5.4", "block encodings need rows"),
    ("5.5", "shape of an expert's part"),
    ("6.1", "grammar of roles"),
    ("6.2", "roles are unique"),
    ("6.3", "role and segment agree"),
    ("6.4", "aliases"),
    ("6.5", "kept tensors"),
    ("7.1", "names of attached files"),
    ("7.2", "attached names are distinct"),
    ("7.3", "lengths of attached files"),
    ("7.4", "content of attached files"),
    ("8.1", "header of a stamp"),
    ("8.2", "length of a stamp"),
    ("8.3", "a stamp names its bundle"),
    ("8.4", "a stamp names the one before it"),
    ("8.5", "digest of a stamp"),
    ("8.6", "payload of a stamp"),
    ("8.7", "a stamp cut short"),
];

/// The title of the rule called `number`.
pub fn title(number: &str) -> &'static str {
    RULES
        .iter()
        .find(|(n, _)| *n == number)
        .map_or("unnumbered", |(_, title)| title)
}
