//! Recipes: patterns, narrow encodings, what is refused, and what the built-in ones come to.

use super::*;

#[test]
fn a_star_is_any_text() {
    for (pattern, text, fits) in [
        ("*", "", true),
        ("*", "layer.0.router", true),
        ("layer.*.expert.*", "layer.3.expert.17.gate", true),
        ("layer.*.expert.*", "layer.3.mlp.gate", false),
        ("*.down", "layer.3.expert.17.down", true),
        ("*.down", "layer.3.expert.17.down_x", false),
        ("output", "output", true),
        ("output", "layer.0.attention.output", false),
        ("*.router", "layer.0.router.bias", false),
        ("a*a", "a", false),
        ("a*b*b", "ab", false),
        ("a*b*b", "axbyb", true),
    ] {
        assert_eq!(matches(pattern, text), fits, "{pattern} on {text}");
    }
}

#[test]
fn a_row_that_wastes_more_than_an_eighth_takes_the_narrow_encoding() {
    let recipe = Recipe::named("q4").unwrap();
    for (columns, expected) in [
        (256, "q4_k"),
        (2048, "q4_k"),
        (768, "q4_k"),
        (640, "q4_1"), // 128 of 640 is a fifth
        (255, "q4_k"),
        (228, "q4_k"), // 28 of 228 is less than an eighth
        (227, "q4_1"), // 29 of 227 is more
        (128, "q4_1"),
        (48, "q4_1"),
    ] {
        let choice = recipe.choose("layer.0.expert.1.down", 2, columns);
        assert_eq!(choice.encoding.unwrap().name, expected, "{columns}");
        assert_eq!(choice.instead_of.is_some(), expected == "q4_1", "{columns}");
    }
    let exact = recipe.choose("layer.0.attention.query.bias", 1, 256);
    assert_eq!(exact.encoding, None);
    assert_eq!(recipe.choose("layer.0.router", 2, 2048).encoding, None);
}

#[test]
fn built_in_recipes_are_valid_and_only_one_is_lossless() {
    for (name, _) in BUILT_IN {
        let recipe = Recipe::named(name).unwrap();
        assert_eq!(recipe.is_lossless(), *name == "lossless", "{name}");
        assert_eq!(recipe.name, *name);
    }
}

#[test]
fn a_broken_recipe_is_told_where() {
    let rule =
        |body: &str| format!("[[rule]]\nrole = \"*\"\nencoding = \"q8_0\"\n[[rule]]\n{body}");
    for (text, words) in [
        (
            rule("role = \"*\"\nencoding = \"q4_0\""),
            "rule 2 of the recipe `x`: there is no encoding `q4_0`",
        ),
        (
            rule("role = \"*\"\nencoding = \"i8\""),
            "there is no encoding `i8`",
        ),
        (
            rule("role = []\nencoding = \"q8_0\""),
            "its `role` is empty",
        ),
        (
            rule("role = \"*\"\nencoding = \"q8_0\"\nnarrow = \"q4_k\""),
            "must have smaller blocks",
        ),
        (
            rule("role = \"*\"\nencoding = \"source\"\nnarrow = \"q8_0\""),
            "must have smaller blocks",
        ),
        (
            rule("role = \"*\"\nencoding = \"q8_0\"\nnarow = \"q4_1\""),
            "narow",
        ),
        (rule("encoding = \"q8_0\""), "role"),
        ("[[rules]]\n".to_owned(), "rules"),
        ("what".to_owned(), "no valid TOML"),
    ] {
        let error = Recipe::parse("x", &text).unwrap_err().to_string();
        assert!(error.contains(words), "{error} lacks {words}");
    }
    let error = Recipe::named("q5").unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no recipe `q5` (known: lossless, q8, q4, q3, q2, or a file that ends in .toml)"
    );
}
