//! Where a file's name says something else than the bundle in it: the bundle is right.

use qpx_console::count;
use std::path::Path;

const RECIPES: &[&str] = &[
    "lossless", "q8", "q6", "q5", "q4", "q3", "q2", "bf16", "fp16", "f16",
];
const FAMILIES: &[&str] = &[
    "llama", "qwen2", "qwen3", "mistral", "mixtral", "gemma", "phi", "deepseek", "glm", "gpt",
];

/// A line for each disagreement.
pub fn disagreements(path: &Path, family: &str, recipe: &str, parameters: u64) -> Vec<String> {
    let mut found = Vec::new();
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    let Some(stem) = name.strip_suffix(".qpx") else {
        found.push("the name does not end in .qpx".to_owned());
        return found;
    };
    let words: Vec<&str> = stem
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '.')
        .filter(|word| !word.is_empty())
        .collect();
    let says = |known: &[&'static str]| {
        let said = known.iter().filter(|k| words.contains(k));
        said.copied().collect::<Vec<_>>()
    };
    let recipes = says(RECIPES);
    // A recipe of one's own may have any name; the built-in ones mean what they say.
    let built_in = ["lossless", "q8", "q4", "q3", "q2"].contains(&recipe);
    if built_in && !recipes.is_empty() && !recipes.contains(&recipe) {
        let plain = recipe == "lossless" && recipes.iter().all(|r| r.contains("16"));
        if !plain {
            found.push(format!(
                "the name says {}, the recipe is {recipe}",
                recipes[0]
            ));
        }
    }
    let families: Vec<&str> = (FAMILIES.iter().copied())
        .filter(|f| words.iter().any(|w| w.starts_with(f)))
        .collect();
    let family_word = family.split('_').next().unwrap_or(family);
    if !families.is_empty() && !families.iter().any(|f| family_word.starts_with(f)) {
        found.push(format!(
            "the name says {}, the family is {family}",
            families[0]
        ));
    }
    if let Some((word, said)) = words.iter().find_map(|w| Some((*w, size(w)?))) {
        #[expect(
            clippy::as_conversions,
            clippy::cast_precision_loss,
            reason = "a rough comparison"
        )]
        let ratio = parameters as f64 / said;
        if !(0.7..1.4).contains(&ratio) {
            found.push(format!(
                "the name says {} parameters, there are {}",
                word.to_uppercase(),
                count(parameters)
            ));
        }
    }
    found
}

/// The number of parameters in a word like `30b` or `0.6b`.
fn size(word: &str) -> Option<f64> {
    let step = match word.chars().last()? {
        'b' => 1e9,
        'm' => 1e6,
        _ => return None,
    };
    let digits = &word[..word.len() - 1];
    let number: f64 = digits.parse().ok()?;
    (digits.starts_with(|c: char| c.is_ascii_digit()) && number > 0.0).then_some(number * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_contradicts_is_told() {
        let of = |name: &str, family: &str, recipe: &str, n: u64| {
            disagreements(Path::new(name), family, recipe, n)
        };
        let none: [(&str, &str, &str, u64); 5] = [
            ("a/coder.qpx", "qwen3_moe", "q4", 1),
            (
                "Qwen3-Coder-30B-A3B-q4.qpx",
                "qwen3_moe",
                "q4",
                30_500_000_000,
            ),
            (
                "llama-3.2-1b.lossless.qpx",
                "llama",
                "lossless",
                1_240_000_000,
            ),
            ("llama-bf16.qpx", "llama", "lossless", 1),
            ("mine-q5.qpx", "llama", "mine", 1),
        ];
        for (name, family, recipe, n) in none {
            assert_eq!(of(name, family, recipe, n), [""; 0], "{name}");
        }
        let some: [(&str, &str); 4] = [
            ("coder-q8.qpx", "the name says q8, the recipe is q4"),
            ("llama.qpx", "the name says llama, the family is qwen3_moe"),
            (
                "coder-30b.qpx",
                "the name says 30B parameters, there are 1.50 B",
            ),
            ("coder.bin", "the name does not end in .qpx"),
        ];
        for (name, said) in some {
            assert_eq!(of(name, "qwen3_moe", "q4", 1_500_000_000), [said], "{name}");
        }
    }
}
