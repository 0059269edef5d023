//! Files of token ids: a JSON array of ids, an array of such arrays, or ids with spaces between them.

use crate::Error;
use std::{fs, path::Path};

/// Larger files are no token lists.
const MOST_BYTES: u64 = 256 << 20;

/// The sequences of ids in `file`.
///
/// # Errors
/// [`Error::File`], [`Error::Tokens`].
pub fn read(file: &Path) -> Result<Vec<Vec<u32>>, Error> {
    let failed = |source| Error::File {
        file: file.to_path_buf(),
        doing: "read",
        source,
    };
    let metadata = fs::metadata(file).map_err(failed)?;
    if !metadata.is_file() {
        return Err(Error::Tokens {
            file: file.to_path_buf(),
            reason: "it is no regular file".to_owned(),
        });
    }
    if metadata.len() > MOST_BYTES {
        return Err(Error::Tokens {
            file: file.to_path_buf(),
            reason: "it is larger than 256 MiB".to_owned(),
        });
    }
    let text = fs::read_to_string(file).map_err(failed)?;
    parse(&text).map_err(|reason| Error::Tokens {
        file: file.to_path_buf(),
        reason,
    })
}

fn parse(text: &str) -> Result<Vec<Vec<u32>>, String> {
    let text = text.trim();
    let rows = if let Some(inner) = text.strip_prefix('[') {
        let nested = inner.trim_start().starts_with('[');
        let parsed = if nested {
            serde_json::from_str(text)
        } else {
            serde_json::from_str(text).map(|row| vec![row])
        };
        parsed.map_err(|e| e.to_string())?
    } else {
        let id = |word: &str| word.parse().map_err(|_| format!("`{word}` is no token id"));
        vec![text.split_whitespace().map(id).collect::<Result<_, _>>()?]
    };
    match rows.iter().position(Vec::is_empty) {
        _ if rows.is_empty() => Err("it is empty".to_owned()),
        Some(n) => Err(format!("sequence {n} is empty")),
        None => Ok(rows),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_form_is_read() {
        let cases: &[(&str, Option<Vec<Vec<u32>>>)] = &[
            ("[1,2]", Some(vec![vec![1, 2]])),
            ("[[1],[2,3]]\n", Some(vec![vec![1], vec![2, 3]])),
            ("7 8\n9", Some(vec![vec![7, 8, 9]])),
            ("", None),
            ("[]", None),
            ("[[1],[]]", None),
            ("[-1]", None),
            ("1,2", None),
            ("[1.5]", None),
        ];
        for (text, expected) in cases {
            assert_eq!(
                super::parse(text).ok().as_ref(),
                expected.as_ref(),
                "{text}"
            );
        }
    }
}
