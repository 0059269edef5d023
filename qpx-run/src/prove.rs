//! The decode proof: fixed probe prompts, digests of raw logits, and the stamp that keeps them.
//!
//! Probe p of `LENGTHS` has so many tokens (at most what leaves room in the model's context), drawn by SplitMix64 seeded with p: each is the
//! generator's next 64 bits modulo the vocabulary. After the probe eight tokens are decoded greedily, and the digest is the
//! BLAKE3 of the logits of every position, f32 little-endian, in order. CPU logits are the same bits on every machine, so
//! the comparison is exact.

use crate::{Engine, Error, Wanted, sample::Random};
use qpx_console::Exit;
use qpx_format::{Bundle, stamp};
use qpx_kernels::ops::{ARITHMETIC_VERSION, Activations};
use serde::{Deserialize, Serialize};

/// Tokens of each probe: one alone, a few, and more than fit in one chunk.
const LENGTHS: &[usize] = &[1, 7, 33, 130];
const CONTINUED: usize = 8;
const KIND: &str = "proof";

/// What a model answers to the probes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// Version of this list of probes.
    pub probes_version: u32,
    /// Version of the arithmetic's rules.
    pub arithmetic: u32,
    /// `encoded` or `f32`.
    pub activations: String,
    /// One for each probe.
    pub probes: Vec<Probe>,
}

/// The answer to one probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Tokens of the prompt.
    pub tokens: usize,
    /// BLAKE3 of the logits, in hex.
    pub logits: String,
    /// The most probable token after each token of the prompt.
    pub best: Vec<u32>,
    /// The greedy continuation.
    pub continued: Vec<u32>,
}

/// How a proof compares with what is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The same bits as recorded.
    Exact,
    /// Other bits than recorded.
    Differs,
    /// No proof of this arithmetic is recorded.
    NoProof,
    /// There was none; now there is.
    Recorded,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Exact => "exact: the logits are the recorded ones, to the bit",
            Self::Differs => "differs: the logits are not the recorded ones",
            Self::NoProof => "no proof: none is recorded for this arithmetic; `--record` does so",
            Self::Recorded => "recorded: there was no proof for this arithmetic, now there is",
        }
    }

    /// The program's exit code.
    pub fn exit(self) -> Exit {
        match self {
            Self::Exact | Self::Recorded => Exit::Success,
            Self::Differs => Exit::ProofDiffers,
            Self::NoProof => Exit::NoProof,
        }
    }
}

/// A verdict and what it rests on.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// Numbers of the probes whose answers differ.
    pub differing: Vec<usize>,
    /// What was computed now.
    pub proof: Proof,
    /// Something about the stamps that the user should know.
    pub note: Option<String>,
}

/// The context that probes need, within `most`.
pub fn context(most: u64) -> usize {
    let longest = LENGTHS.iter().max().copied().unwrap_or(0) + CONTINUED;
    usize::try_from(most).map_or(longest, |most| most.min(longest))
}

/// Computes the answers to all probes.
///
/// # Errors
/// Those of [`Engine::feed`].
pub fn compute(engine: &mut Engine) -> Result<Proof, Error> {
    let room = engine.plan().context.saturating_sub(CONTINUED).max(1);
    let probes = (0..)
        .zip(LENGTHS)
        .map(|(seed, length)| probe(engine, seed, (*length).min(room)))
        .collect::<Result<_, _>>()?;
    Ok(Proof {
        probes_version: 1,
        arithmetic: ARITHMETIC_VERSION,
        activations: match engine.cpu().activations {
            Activations::Encoded => "encoded",
            Activations::F32 => "f32",
        }
        .to_owned(),
        probes,
    })
}

fn probe(engine: &mut Engine, seed: u64, length: usize) -> Result<Probe, Error> {
    let vocabulary = engine.outline().vocabulary as u64;
    let mut random = Random::new(seed);
    let ids: Vec<u32> = (0..length)
        .map(|_| (random.next_bits() % vocabulary.max(1)) as u32)
        .collect();
    engine.reset();
    let mut hasher = blake3::Hasher::new();
    let mut best = Vec::with_capacity(length);
    let mut take = |logits: &[f32]| {
        for x in logits {
            hasher.update(&x.to_le_bytes());
        }
        let first = logits.iter().zip(0_u32..);
        let most = first.reduce(|best, next| if next.0 > best.0 { next } else { best });
        most.map_or(0, |(_, id)| id)
    };
    engine.feed(&ids, Wanted::All, &mut |_, logits| {
        best.push(take(logits));
        Ok(())
    })?;
    let mut next = best.last().copied().unwrap_or(0);
    let mut continued = Vec::with_capacity(CONTINUED);
    while continued.len() < CONTINUED && engine.position() < engine.plan().context {
        continued.push(next);
        engine.feed(&[next], Wanted::Last, &mut |_, logits| {
            next = take(logits);
            Ok(())
        })?;
    }
    Ok(Probe {
        tokens: length,
        logits: hasher.finalize().to_hex().to_string(),
        best,
        continued,
    })
}

/// Compares `proof` with the last one recorded for the same probes, arithmetic and activations; `record` appends it if there is none.
///
/// # Errors
/// [`Error::Stamps`] when the stamps are not as they were written.
pub fn compare(bundle: &Bundle, proof: Proof, record: bool) -> Result<Outcome, Error> {
    let stamps = bundle.stamps()?;
    if let Some(fault) = &stamps.fault {
        return Err(fault.in_file(bundle.path()).into());
    }
    let torn = stamps.torn.as_ref();
    let mut note = torn.map(|t| {
        format!(
            "a stamp was cut short (bytes {}..{}) and is ignored",
            t.bytes.start, t.bytes.end
        )
    });
    let mut recorded = None;
    for stamp in stamps.records.iter().filter(|s| s.kind == KIND) {
        let found: Proof = match serde_json::from_slice(&stamp.payload) {
            Ok(found) => found,
            Err(_) => {
                note = Some(format!(
                    "the proof at byte {} is of a kind that is not known here",
                    stamp.offset
                ));
                continue;
            }
        };
        let same =
            (found.probes_version, found.arithmetic) == (proof.probes_version, proof.arithmetic);
        if same && found.activations == proof.activations {
            recorded = Some(found);
        }
    }
    let Some(recorded) = recorded else {
        let verdict = if record {
            let text = serde_json::to_vec(&proof).map_err(|e| Error::Stamps {
                bundle: bundle.path().to_path_buf(),
                reason: e.to_string(),
            })?;
            stamp::append(bundle.path(), KIND, &text)?;
            Verdict::Recorded
        } else {
            Verdict::NoProof
        };
        return Ok(Outcome {
            verdict,
            differing: Vec::new(),
            proof,
            note,
        });
    };
    let count = recorded.probes.len().max(proof.probes.len());
    let differing: Vec<usize> = (0..count)
        .filter(|i| recorded.probes.get(*i) != proof.probes.get(*i))
        .collect();
    Ok(Outcome {
        verdict: if differing.is_empty() {
            Verdict::Exact
        } else {
            Verdict::Differs
        },
        differing,
        proof,
        note,
    })
}

impl qpx_console::Report for Outcome {
    fn text(&self) -> String {
        format!("{self}\n")
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!(self)
    }

    fn exit(&self) -> Exit {
        self.verdict.exit()
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.verdict.words())?;
        for (i, probe) in self.proof.probes.iter().enumerate() {
            let mark = if self.differing.contains(&i) {
                "  differs"
            } else {
                ""
            };
            write!(
                f,
                "\n  probe {i}  {:>4} tokens  {}{mark}",
                probe.tokens,
                &probe.logits[..16]
            )?;
        }
        write!(
            f,
            "\n  arithmetic {}, activations {}",
            self.proof.arithmetic, self.proof.activations
        )?;
        if let Some(note) = &self.note {
            write!(f, "\n  note: {note}")?;
        }
        Ok(())
    }
}
