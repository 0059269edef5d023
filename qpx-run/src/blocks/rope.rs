//! Rotary frequencies: radians per position of each pair of dims.
//!
//! Source: arXiv 2104.09864; the `llama3` scaling as the published checkpoints' configuration class computes it.

use qpx_kernels::math;
use serde::Deserialize;

/// The manifest's `rope` object.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "SPEC.md lists the fields")]
pub enum Scaling {
    Default {
        theta: f64,
    },
    Llama3 {
        theta: f64,
        factor: f64,
        low_frequency: f64,
        high_frequency: f64,
        original_context: u64,
    },
}

impl Scaling {
    /// The frequencies of `dim / 2` pairs:  f_i = theta^(−2i/dim), scaled by what the kind says.
    pub fn frequencies(&self, dim: usize) -> Vec<f32> {
        match *self {
            Self::Default { theta } => plain(theta, dim),
            Self::Llama3 {
                theta,
                factor,
                low_frequency,
                high_frequency,
                original_context,
            } => {
                let mut frequencies = plain(theta, dim);
                let (low, high) = (low_frequency as f32, high_frequency as f32);
                let (context, factor) = (original_context as f32, factor as f32);
                for f in &mut frequencies {
                    // Waves shorter than context / high stay, those longer than context / low are stretched by the factor.
                    let wave = 2.0 * std::f32::consts::PI / *f;
                    let scaled = *f / factor;
                    *f = if wave < context / high {
                        *f
                    } else if wave > context / low {
                        scaled
                    } else {
                        let keep = (context / wave - low) / (high - low);
                        (1.0 - keep) * scaled + keep * *f
                    };
                }
                frequencies
            }
        }
    }

    /// What is wrong with the numbers.
    pub fn problem(&self) -> Option<String> {
        let numbers: &[(&str, f64)] = match self {
            Self::Default { theta } => &[("theta", *theta)],
            Self::Llama3 {
                theta,
                factor,
                low_frequency,
                high_frequency,
                original_context,
            } => {
                if low_frequency >= high_frequency {
                    return Some("rope.low_frequency must be below rope.high_frequency".to_owned());
                }
                &[
                    ("theta", *theta),
                    ("factor", *factor),
                    ("low_frequency", *low_frequency),
                    ("high_frequency", *high_frequency),
                    ("original_context", *original_context as f64),
                ]
            }
        };
        (numbers.iter())
            .find(|(_, n)| !(n.is_finite() && *n > 0.0))
            .map(|(name, n)| format!("rope.{name} is {n}, not a positive number"))
    }
}

fn plain(theta: f64, dim: usize) -> Vec<f32> {
    (0..dim / 2)
        .map(|i| 1.0 / math::pow(theta as f32, (2 * i) as f32 / dim as f32))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_waves_are_stretched_and_short_ones_stay() {
        let plain = Scaling::Default { theta: 10_000.0 }.frequencies(16);
        let scaled = Scaling::Llama3 {
            theta: 10_000.0,
            factor: 8.0,
            low_frequency: 1.0,
            high_frequency: 4.0,
            original_context: 64,
        }
        .frequencies(16);
        assert_eq!(plain[0], 1.0);
        assert_eq!(scaled[0], plain[0], "a wave of 6 positions");
        assert_eq!(scaled[7], plain[7] / 8.0, "a wave of 20000 positions");
        assert!(
            scaled[1] < plain[1] && scaled[1] > plain[1] / 8.0,
            "between"
        );
    }

    #[test]
    fn a_kind_nobody_knows_is_refused() {
        let text = r#"{"kind":"yarn","theta":1.0}"#;
        assert!(serde_json::from_str::<Scaling>(text).is_err());
        let text = r#"{"kind":"default","theta":1.0,"factor":2.0}"#;
        assert!(serde_json::from_str::<Scaling>(text).is_err());
    }
}
