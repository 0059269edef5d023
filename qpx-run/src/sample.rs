//! From logits to a token: greedy, or drawn by temperature, top-k and top-p.
//!
//! The order is that of the published generation settings: repetition penalty, temperature, top-k, top-p. Nothing is allocated
//! after [`Sampler::new`], and the same seed gives the same tokens on every machine.

use crate::Error;
use qpx_format::{Bundle, manifest::Purpose};
use qpx_kernels::math;
use serde_json::{Map, Value};

/// How a token is chosen. Absent settings are off.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Sampling {
    /// 0 is greedy.
    pub temperature: f32,
    /// Only this many of the most probable.
    pub top_k: Option<usize>,
    /// Only the most probable that together reach this probability.
    pub top_p: Option<f32>,
    /// Logits of tokens that have occurred are divided by this if positive, multiplied if negative.
    pub repetition_penalty: Option<f32>,
    /// Where the random numbers begin.
    pub seed: u64,
}

impl Sampling {
    /// Always the most probable token.
    pub const GREEDY: Self = Self {
        temperature: 0.0,
        top_k: None,
        top_p: None,
        repetition_penalty: None,
        seed: 0,
    };
}

/// Settings from the command line, each over the bundle's own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `--temperature`
    pub temperature: Option<f32>,
    /// `--top-k`
    pub top_k: Option<usize>,
    /// `--top-p`
    pub top_p: Option<f32>,
    /// `--seed`
    pub seed: Option<u64>,
}

/// Settings that change which token is chosen and that are not done here, each with the value that means "off".
const NOT_DONE: &[(&str, &[f64])] = &[
    ("min_p", &[0.0]),
    ("typical_p", &[1.0]),
    ("epsilon_cutoff", &[0.0]),
    ("eta_cutoff", &[0.0]),
    ("top_h", &[]),
    ("penalty_alpha", &[0.0]),
    ("num_beams", &[1.0]),
    ("num_beam_groups", &[1.0]),
    ("diversity_penalty", &[0.0]),
    ("encoder_repetition_penalty", &[1.0]),
    ("no_repeat_ngram_size", &[0.0]),
    ("encoder_no_repeat_ngram_size", &[0.0]),
    ("min_length", &[0.0]),
    ("min_new_tokens", &[0.0]),
    ("forced_bos_token_id", &[]),
    ("forced_eos_token_id", &[]),
    ("bad_words_ids", &[]),
    ("force_words_ids", &[]),
    ("constraints", &[]),
    ("suppress_tokens", &[]),
    ("begin_suppress_tokens", &[]),
    ("sequence_bias", &[]),
    ("guidance_scale", &[1.0]),
    ("exponential_decay_length_penalty", &[]),
    ("watermarking_config", &[]),
    ("dola_layers", &[]),
];

/// The settings for this bundle: its own generation configuration, under what the user says. Without one, greedy.
///
/// # Errors
/// [`Error::Sampling`] for a setting that is not done here, unless the user asks for greedy decoding; [`Error::Attached`];
/// [`Error::Usage`].
pub fn settings(bundle: &Bundle, overrides: &Overrides) -> Result<Sampling, Error> {
    let files = &bundle.manifest().checked.attached;
    let file = files
        .iter()
        .find(|a| a.purpose == Purpose::GenerationConfig);
    let own: Map<String, Value> = match file {
        Some(entry) => {
            let content = bundle.attached(entry)?;
            serde_json::from_slice(&content).map_err(|e| Error::Attached {
                bundle: bundle.path().to_path_buf(),
                name: entry.name.clone(),
                reason: e.to_string(),
            })?
        }
        None => Map::new(),
    };
    merge(bundle, &own, overrides)
}

fn merge(bundle: &Bundle, own: &Map<String, Value>, o: &Overrides) -> Result<Sampling, Error> {
    let refused = |field: &str, value: &Value| Error::Sampling {
        bundle: bundle.path().to_path_buf(),
        field: field.to_owned(),
        value: value.to_string(),
    };
    let seed = o.seed.unwrap_or(0);
    if o.temperature == Some(0.0) {
        no_effect(o)?;
        return Ok(Sampling {
            seed,
            ..Sampling::GREEDY
        });
    }
    let set = |field: &str| own.get(field).filter(|v| !v.is_null());
    for (field, off) in NOT_DONE {
        let Some(value) = set(field) else { continue };
        let is_off = value.as_f64().is_some_and(|v| off.contains(&v))
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_bool() == Some(false);
        if !is_off {
            return Err(refused(field, value));
        }
    }
    let number = |field: &str, range: std::ops::RangeInclusive<f64>| match set(field) {
        None => Ok(None),
        Some(value) => match value.as_f64().filter(|v| range.contains(v)) {
            Some(v) => Ok(Some(v as f32)),
            None => Err(refused(field, value)),
        },
    };
    let penalty = number("repetition_penalty", 1e-3..=1e3)?.filter(|p| *p != 1.0);
    let draws = match set("do_sample") {
        None => false,
        Some(value) => value.as_bool().ok_or_else(|| refused("do_sample", value))?,
    };
    if !draws && o.temperature.is_none() {
        no_effect(o)?;
        return Ok(Sampling {
            seed,
            repetition_penalty: penalty,
            ..Sampling::GREEDY
        });
    }
    let temperature = match o.temperature {
        Some(t) => t,
        None => number("temperature", 0.0..=1e3)?.unwrap_or(1.0),
    };
    let top_k = match o.top_k {
        Some(k) => Some(k),
        None => number("top_k", 0.0..=1e9)?.map(|k| k as usize),
    };
    let top_p = match o.top_p {
        Some(p) => Some(p),
        None => number("top_p", 0.0..=1.0)?,
    };
    Ok(Sampling {
        temperature,
        top_k: top_k.filter(|k| *k > 0),
        top_p: top_p.filter(|p| *p < 1.0),
        repetition_penalty: penalty,
        seed,
    })
}

fn no_effect(o: &Overrides) -> Result<(), Error> {
    let flag = match (o.top_k, o.top_p) {
        (Some(_), _) => "--top-k",
        (_, Some(_)) => "--top-p",
        _ => return Ok(()),
    };
    Err(Error::Usage {
        flag,
        reason: "has no effect, since decoding is greedy; give a --temperature above 0".to_owned(),
    })
}

/// Chooses tokens.
pub struct Sampler {
    sampling: Sampling,
    random: Random,
    /// (logit, id), then (probability, id).
    candidates: Vec<(f32, u32)>,
    occurred: Vec<bool>,
}

impl Sampler {
    /// For a vocabulary of this size.
    pub fn new(sampling: Sampling, vocabulary: usize) -> Self {
        Self {
            sampling,
            random: Random::new(sampling.seed),
            candidates: Vec::with_capacity(vocabulary),
            occurred: vec![false; vocabulary],
        }
    }

    /// Notes a token of the text so far.
    pub fn note(&mut self, id: u32) {
        if let Some(mark) = self.occurred.get_mut(id as usize) {
            *mark = true;
        }
    }

    /// The next token. Equal logits: the lower id.
    pub fn choose(&mut self, logits: &[f32]) -> u32 {
        self.candidates.clear();
        let penalty = self.sampling.repetition_penalty;
        for (id, logit) in (0_u32..).zip(logits) {
            let logit = match penalty {
                Some(p) if self.occurred[id as usize] && *logit > 0.0 => logit / p,
                Some(p) if self.occurred[id as usize] => logit * p,
                _ => *logit,
            };
            self.candidates.push((logit, id));
        }
        if self.sampling.temperature == 0.0 {
            let best = self.candidates.iter().copied();
            return best
                .reduce(|best, next| if next.0 > best.0 { next } else { best })
                .map_or(0, |(_, id)| id);
        }
        let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if let Some(k) = self.sampling.top_k
            && k < self.candidates.len()
        {
            self.candidates.select_nth_unstable_by(k - 1, order);
            self.candidates.truncate(k);
        }
        self.candidates.sort_unstable_by(order);
        let largest = self.candidates.first().map_or(0.0, |c| c.0);
        let mut total = 0.0_f64;
        for (value, _) in &mut self.candidates {
            *value = math::exp((*value - largest) / self.sampling.temperature);
            total += f64::from(*value);
        }
        if let Some(p) = self.sampling.top_p {
            let enough = total * f64::from(p);
            let mut sum = 0.0;
            let kept = self.candidates.iter().position(|(value, _)| {
                sum += f64::from(*value);
                sum >= enough
            });
            if let Some(last) = kept {
                self.candidates.truncate(last + 1);
                total = sum;
            }
        }
        let mut point = self.random.next_unit() * total;
        for (value, id) in &self.candidates {
            point -= f64::from(*value);
            if point < 0.0 {
                return *id;
            }
        }
        self.candidates.last().map_or(0, |(_, id)| *id)
    }
}

/// SplitMix64: a counter, stirred. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// Begins at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to below 1.
    pub fn next_unit(&mut self) -> f64 {
        (self.next_bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(sampling: Sampling, logits: &[f32], times: usize) -> Vec<u32> {
        let mut sampler = Sampler::new(sampling, logits.len());
        (0..times).map(|_| sampler.choose(logits)).collect()
    }

    #[test]
    fn greedy_takes_the_first_of_equals() {
        assert_eq!(drawn(Sampling::GREEDY, &[1.0, 3.0, 3.0, -2.0], 1), [1]);
    }

    #[test]
    fn top_k_and_top_p_keep_the_most_probable_alone() {
        let logits = [0.0, 2.0, 1.0, -1.0];
        let warm = Sampling {
            temperature: 1.0,
            ..Sampling::GREEDY
        };
        let cases = [
            (
                Sampling {
                    top_k: Some(1),
                    ..warm
                },
                vec![1],
            ),
            (
                Sampling {
                    top_k: Some(2),
                    ..warm
                },
                vec![1, 2],
            ),
            // The probabilities are 0.64, 0.24, 0.09, 0.03 of ids 1, 2, 0, 3.
            (
                Sampling {
                    top_p: Some(0.6),
                    ..warm
                },
                vec![1],
            ),
            (
                Sampling {
                    top_p: Some(0.7),
                    ..warm
                },
                vec![1, 2],
            ),
            (warm, vec![0, 1, 2, 3]),
        ];
        for (sampling, expected) in cases {
            let mut ids = drawn(sampling, &logits, 2000);
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids, expected, "{sampling:?}");
        }
    }

    #[test]
    fn shares_are_those_of_the_softmax() {
        let sampling = Sampling {
            temperature: 0.5,
            seed: 7,
            ..Sampling::GREEDY
        };
        // At temperature ½ the odds are e² : 1.
        let ids = drawn(sampling, &[1.0, 0.0], 20_000);
        let share = ids.iter().filter(|id| **id == 0).count() as f64 / 20_000.0;
        assert!((share - 0.8808).abs() < 0.01, "{share}");
        assert_eq!(ids, drawn(sampling, &[1.0, 0.0], 20_000), "the same seed");
    }

    #[test]
    fn the_penalty_meets_tokens_that_have_occurred() {
        let sampling = Sampling {
            repetition_penalty: Some(2.0),
            ..Sampling::GREEDY
        };
        let mut sampler = Sampler::new(sampling, 2);
        assert_eq!(sampler.choose(&[3.0, 2.0]), 0);
        sampler.note(0);
        assert_eq!(sampler.choose(&[3.0, 2.0]), 1);
        assert_eq!(sampler.choose(&[-1.0, -1.5]), 1, "-1 becomes -2");
    }
}
