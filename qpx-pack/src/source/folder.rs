//! What lies in a checkpoint's folder, and which of it travels with the weights.

use crate::{note::Note, problem::Problem};
use qpx_format::manifest::Purpose;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// A file of the folder.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its name within the folder, `/` between parts.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
}

/// Folders that tools keep for themselves: no part of a checkpoint, and different on every machine.
const BOOKKEEPING: &[&str] = &[".git", ".cache"];

/// How deep folders are looked into.
const DEEPEST: usize = 8;

/// Every file below `folder`, in the order of their names. Symbolic links to files are followed (the hub's cache is made of
/// them); links to folders are not entered.
pub(crate) fn list(
    folder: &Path,
    notes: &mut Vec<Note>,
    problems: &mut Vec<Problem>,
) -> io::Result<Vec<Listed>> {
    let mut files = Vec::new();
    walk(folder, "", 0, &mut files, notes, problems)?;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let mut attached: BTreeMap<String, &str> = BTreeMap::new();
    for Listed { name, .. } in &files {
        let mut unfit = |reason| {
            problems.push(Problem::Unreadable {
                file: name.clone(),
                reason,
            });
        };
        if name.chars().any(char::is_control) {
            unfit("its name has a control character; rename or remove it".to_owned());
        } else if purpose(name).is_some()
            && let Some(other) = attached.insert(name.to_ascii_lowercase(), name)
        {
            unfit(format!(
                "{other} differs from it by letter case only; rename or remove one"
            ));
        }
    }
    Ok(files)
}

fn walk(
    folder: &Path,
    prefix: &str,
    depth: usize,
    files: &mut Vec<Listed>,
    notes: &mut Vec<Note>,
    problems: &mut Vec<Problem>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let path = entry.path();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if prefix.is_empty() && BOOKKEEPING.contains(&name.as_str()) {
                continue;
            }
            if depth == DEEPEST {
                notes.push(Note::NotEntered { name });
                continue;
            }
            walk(
                &path,
                &format!("{name}/"),
                depth + 1,
                files,
                notes,
                problems,
            )?;
            continue;
        }
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => files.push(Listed {
                name,
                path,
                bytes: metadata.len(),
            }),
            Ok(metadata) if metadata.is_dir() => notes.push(Note::NotEntered { name }),
            Ok(_) => problems.push(Problem::Unreadable {
                file: name,
                reason: "it is neither a file nor a folder".to_owned(),
            }),
            Err(error) if kind.is_symlink() => problems.push(Problem::Unreadable {
                file: name,
                reason: format!("it is a symbolic link that leads nowhere ({error})"),
            }),
            Err(error) => problems.push(Problem::Unreadable {
                file: name,
                reason: error.to_string(),
            }),
        }
    }
    Ok(())
}

/// What a file of the folder is for, if it travels with the weights.
pub(crate) fn purpose(name: &str) -> Option<Purpose> {
    let upper = name.to_ascii_uppercase();
    let starts = |words: &[&str]| words.iter().any(|word| upper.starts_with(word));
    Some(match name {
        "tokenizer.json"
        | "tokenizer_config.json"
        | "special_tokens_map.json"
        | "added_tokens.json"
        | "merges.txt"
        | "tokenizer.model"
        | "spiece.model"
        | "sentencepiece.bpe.model" => Purpose::Tokenizer,
        "config.json" => Purpose::Config,
        "generation_config.json" => Purpose::GenerationConfig,
        _ if name.starts_with("additional_chat_templates/") => Purpose::ChatTemplate,
        _ if name.contains('/') => return None,
        _ if name.starts_with("vocab.") || name.ends_with(".tiktoken") => Purpose::Tokenizer,
        _ if name.starts_with("chat_template.") => Purpose::ChatTemplate,
        _ if name.ends_with("processor_config.json") => Purpose::Other,
        _ if starts(&["LICENSE", "LICENCE", "NOTICE", "COPYING", "USE_POLICY"]) => Purpose::Licence,
        _ if starts(&["README"]) => Purpose::Card,
        _ => return None,
    })
}

/// The licence that a model card's front matter names.
pub(crate) fn licence_of_card(card: &str) -> Option<String> {
    let body = card
        .strip_prefix("---\n")
        .or_else(|| card.strip_prefix("---\r\n"))?;
    let front = body.split("\n---").next()?;
    let line = |key: &str| {
        let value = front.lines().find_map(|line| line.strip_prefix(key))?;
        let value = value.trim().trim_matches(['"', '\'']);
        (!value.is_empty()).then(|| value.to_owned())
    };
    match line("license:")? {
        other if other == "other" => Some(line("license_name:").unwrap_or(other)),
        named => Some(named),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_needs_later_travels() {
        for (name, expected) in [
            ("tokenizer.json", Some(Purpose::Tokenizer)),
            ("vocab.txt", Some(Purpose::Tokenizer)),
            ("qwen.tiktoken", Some(Purpose::Tokenizer)),
            ("chat_template.jinja", Some(Purpose::ChatTemplate)),
            (
                "additional_chat_templates/rag.jinja",
                Some(Purpose::ChatTemplate),
            ),
            ("video_preprocessor_config.json", Some(Purpose::Other)),
            ("LICENSE", Some(Purpose::Licence)),
            ("License.txt", Some(Purpose::Licence)),
            ("README.md", Some(Purpose::Card)),
            ("generation_config.json", Some(Purpose::GenerationConfig)),
            ("original/tokenizer.model", None),
            ("modeling_qwen.py", None),
            ("pytorch_model.bin", None),
        ] {
            assert_eq!(purpose(name), expected, "{name}");
        }
    }

    #[test]
    fn the_card_names_the_licence() {
        for (card, expected) in [
            (
                "---\nlicense: apache-2.0\ntags: [x]\n---\n# Model",
                Some("apache-2.0"),
            ),
            (
                "---\nlicense: other\nlicense_name: qwen\n---\n",
                Some("qwen"),
            ),
            ("---\nlicense: other\n---\n", Some("other")),
            ("# Model\nlicense: mit", None),
            ("---\ntags: [x]\n---\nlicense: mit", None),
        ] {
            assert_eq!(licence_of_card(card).as_deref(), expected, "{card}");
        }
    }
}
