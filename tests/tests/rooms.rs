//! The walls of the workspace: who may use whom, where `unsafe` may stand, which licences may come in, how long a file may be.

use qpx_tests::workspace::root;
use serde_json::Value;
use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

/// Crates of the workspace that each crate may use. Dev-dependencies are free, since tests build inputs with anything.
const ARROWS: &[(&str, &[&str])] = &[
    ("qpx-format", &[]),
    ("qpx-kernels", &[]),
    ("qpx-console", &["qpx-format"]),
    ("qpx-pack", &["qpx-format", "qpx-console", "qpx-kernels"]),
    ("qpx-run", &["qpx-format", "qpx-console", "qpx-kernels"]),
    (
        "qpx-inspect",
        &[
            "qpx-format",
            "qpx-console",
            "qpx-kernels",
            "qpx-pack",
            "qpx-run",
        ],
    ),
    ("qpx-tests", &[]),
];

/// Licences that may come into the product; an SPDX expression passes when one side of each `OR` is among them.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "CC0-1.0",
    "Unlicense",
    "Unicode-3.0",
    "BSL-1.0",
    "0BSD",
    "MIT-0",
];

/// Places where `unsafe` may stand, as beginnings of paths.
const UNSAFE_ROOMS: &[&str] = &[
    "format-spec/src/map.rs",
    "kernels/src/cpu/simd",
    "kernels/src/cpu/dispatch",
    "kernels/src/gpu/",
    "qpx-run/src/pager/os/",
    "kernels/tests/", // counting allocators
    "qpx-run/tests/",
];

const LONGEST_FILE: usize = 700;

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .expect("cargo metadata starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn sources() -> Vec<(String, String)> {
    fn walk(folder: PathBuf, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(&folder).expect("a folder of the repository") {
            let path = entry.expect("an entry").path();
            let name = path
                .strip_prefix(root())
                .expect("below the root")
                .to_string_lossy()
                .replace('\\', "/");
            if path.is_dir() {
                if !name.starts_with("target")
                    && !name.starts_with('.')
                    && !name.starts_with("fixtures")
                {
                    walk(path, found);
                }
            } else if matches!(
                path.extension().and_then(|e| e.to_str()),
                Some("rs" | "py" | "metal")
            ) {
                found.push((name, fs::read_to_string(&path).expect("text")));
            }
        }
    }
    let mut found = Vec::new();
    walk(root(), &mut found);
    assert!(
        found.len() > 20,
        "the walk found only {} sources",
        found.len()
    );
    found
}

#[test]
fn crates_use_only_what_their_room_allows() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let arrows: BTreeMap<_, _> = ARROWS.iter().copied().collect();
    let mut seen = 0;
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        let Some(allowed) = arrows.get(name) else {
            assert!(
                !name.starts_with("qpx-"),
                "{name} is in no room: add it to ARROWS"
            );
            continue;
        };
        seen += 1;
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let used = dependency["name"].as_str().expect("a name");
            if used.starts_with("qpx-") && dependency["kind"].as_str() != Some("dev") {
                assert!(
                    allowed.contains(&used),
                    "{name} uses {used}, which its room does not allow"
                );
            }
        }
    }
    assert_eq!(
        seen,
        ARROWS.len(),
        "a crate of ARROWS is not in the workspace"
    );
}

/// Whether an SPDX expression is satisfied by [`LICENCES`]: `AND` needs both sides, `OR` one. Parentheses bind.
fn acceptable(expression: &str) -> bool {
    let text = expression.trim();
    let split = |word: &str| -> Option<(String, String)> {
        let mut depth = 0_i32;
        let padded = format!(" {word} ");
        for (at, letter) in text.char_indices() {
            match letter {
                '(' => depth += 1,
                ')' => depth -= 1,
                ' ' if depth == 0 && text[at..].starts_with(&padded) => {
                    return Some((text[..at].to_owned(), text[at + padded.len()..].to_owned()));
                }
                _ => {}
            }
        }
        None
    };
    if let Some((left, right)) = split("OR") {
        return acceptable(&left) || acceptable(&right);
    }
    if let Some((left, right)) = split("AND") {
        return acceptable(&left) && acceptable(&right);
    }
    match text
        .strip_prefix('(')
        .and_then(|inner| inner.strip_suffix(')'))
    {
        Some(inner) => acceptable(inner),
        None => LICENCES.contains(&text),
    }
}

#[test]
fn licences_are_permissive() {
    for (expression, expected) in [
        ("MIT OR GPL-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR GPL-3.0) AND BSD-3-Clause", true),
        ("GPL-3.0", false),
        ("Apache-2.0 WITH LLVM-exception OR GPL-2.0", true),
    ] {
        assert_eq!(acceptable(expression), expected, "{expression}");
    }
    let metadata = metadata();
    for package in metadata["packages"].as_array().expect("packages") {
        let expression = package["license"]
            .as_str()
            .unwrap_or("none stated")
            .replace('/', " OR ");
        assert!(
            acceptable(&expression),
            "{} {} has the licence {expression}",
            package["name"],
            package["version"]
        );
    }
}

#[test]
fn unsafe_stays_in_its_rooms() {
    for (name, text) in sources().iter().filter(|(name, _)| name.ends_with(".rs")) {
        if UNSAFE_ROOMS.iter().any(|room| name.starts_with(room)) || name == "tests/tests/rooms.rs"
        {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let found = [
                "unsafe {",
                "unsafe fn",
                "unsafe impl",
                "unsafe extern",
                "allow(unsafe_code",
                "expect(unsafe_code",
            ];
            assert!(
                !found.iter().any(|word| code.contains(word)),
                "{name}:{}: `unsafe` outside its rooms: {line}",
                number + 1
            );
        }
    }
}

#[test]
fn files_can_be_read_at_one_sitting() {
    for (name, text) in sources() {
        let lines = text.lines().count();
        assert!(
            lines <= LONGEST_FILE,
            "{name} has {lines} lines; {LONGEST_FILE} are the limit"
        );
    }
}

#[test]
fn every_metal_kernel_has_its_host_side_and_reference() {
    for (name, _) in sources()
        .iter()
        .filter(|(name, _)| name.ends_with(".metal"))
    {
        let stem = name
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".metal");
        for other in [
            format!("kernels/src/gpu/{stem}.rs"),
            format!("kernels/src/reference/{stem}.rs"),
        ] {
            assert!(root().join(&other).is_file(), "{name} has no {other}");
        }
    }
}
