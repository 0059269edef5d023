//! Text to token ids and back, by the tokenizer that is attached to the bundle.

use crate::Error;
use qpx_format::Bundle;
use tokenizers::Tokenizer;

const FILE: &str = "tokenizer.json";

/// The bundle's tokenizer.
pub struct Text {
    tokenizer: Tokenizer,
}

/// Bytes of the tokenizer's file, for the plan.
pub fn file_bytes(bundle: &Bundle) -> u64 {
    bundle.attached_named(FILE).map_or(0, |entry| entry.length)
}

impl Text {
    /// Reads it.
    ///
    /// # Errors
    /// [`Error::NoTokenizer`], [`Error::Attached`], or that it was altered.
    pub fn open(bundle: &Bundle) -> Result<Self, Error> {
        let entry = bundle
            .attached_named(FILE)
            .ok_or_else(|| Error::NoTokenizer {
                bundle: bundle.path().to_path_buf(),
            })?;
        let content = bundle.attached(entry)?;
        let mut tokenizer = Tokenizer::from_bytes(&content).map_err(|e| Error::Attached {
            bundle: bundle.path().to_path_buf(),
            name: FILE.to_owned(),
            reason: e.to_string(),
        })?;
        // A prompt is neither filled up nor cut, whatever the file says about batches.
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(|_| Error::Fault {
            reason: "the tokenizer can't be told to keep a text whole",
        })?;
        Ok(Self { tokenizer })
    }

    /// The ids of `text`; `special`: with the tokens that the tokenizer puts around a text of its own accord.
    ///
    /// # Errors
    /// [`Error::Fault`] when the tokenizer gives up.
    pub fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>, Error> {
        let encoding = self
            .tokenizer
            .encode_fast(text, special)
            .map_err(|_| Error::Fault {
                reason: "the tokenizer can't take this text",
            })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Whether `id` stands for anything: embeddings often have more rows than the tokenizer has tokens.
    pub fn knows(&self, id: u32) -> bool {
        self.tokenizer.id_to_token(id).is_some()
    }

    fn decode(&self, ids: &[u32]) -> String {
        self.tokenizer.decode(ids, true).unwrap_or_default()
    }
}

/// Turns ids into text as they come: a character whose bytes are spread over several tokens waits for the last of them.
pub struct Stream<'a> {
    text: &'a Text,
    ids: Vec<u32>,
    /// Ids before this one are only there for what the tokenizer does between tokens (spaces).
    context: usize,
    /// Ids before this one are printed.
    printed: usize,
}

/// No character has more bytes than this, so no more tokens without a whole one.
const LONGEST_CHARACTER: usize = 4;

impl<'a> Stream<'a> {
    /// Continues after `prompt`.
    pub fn new(text: &'a Text, prompt: &[u32]) -> Self {
        let ids: Vec<u32> = prompt[prompt.len().saturating_sub(4)..].to_vec();
        Self {
            text,
            context: 0,
            printed: ids.len(),
            ids,
        }
    }

    /// The text that `id` completes; often empty.
    pub fn push(&mut self, id: u32) -> String {
        self.ids.push(id);
        let waiting = self.ids.len() - self.printed;
        let (before, now) = self.texts();
        if now.ends_with('\u{fffd}') && waiting < LONGEST_CHARACTER {
            return String::new();
        }
        self.advance(&before, &now)
    }

    /// What is left at the end, whole or not.
    pub fn finish(&mut self) -> String {
        let (before, now) = self.texts();
        self.advance(&before, &now)
    }

    fn texts(&self) -> (String, String) {
        (
            self.text.decode(&self.ids[self.context..self.printed]),
            self.text.decode(&self.ids[self.context..]),
        )
    }

    fn advance(&mut self, before: &str, now: &str) -> String {
        // What was printed may end in a character that later ids complete: only what both have is left out.
        let same = before.chars().zip(now.chars()).take_while(|(a, b)| a == b);
        let length: usize = same.map(|(a, _)| a.len_utf8()).sum();
        let new = now.get(length..).unwrap_or_default().to_owned();
        self.context = self.printed;
        self.printed = self.ids.len();
        new
    }
}
