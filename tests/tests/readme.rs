//! The README tells the truth: its commands work as written, and its table of exit codes is the programs'.

use qpx_console::Exit;
use qpx_tests::workspace::{fixture, program, root};
use std::{env, fs, process::Command};

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).expect("README.md")
}

/// The text between the line `marker` and the next line `end` after it.
fn between<'a>(text: &'a str, marker: &str, end: &str) -> Option<(&'a str, &'a str)> {
    let (_, rest) = text.split_once(marker)?;
    rest.split_once(end)
}

#[test]
fn its_commands_work_as_written() {
    let text = readme();
    let mut rest = text.as_str();
    let mut script = String::from("set -euxo pipefail\n");
    let mut blocks = 0;
    while let Some((block, behind)) = between(rest, "<!-- run -->\n```sh\n", "```\n") {
        script.push_str(block);
        rest = behind;
        blocks += 1;
    }
    assert!(blocks >= 3, "the README has only {blocks} blocks to run");
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let fixtures = fixture("tiny-coder");
    let status = Command::new("cp")
        .arg("-r")
        .arg(fixtures.parent().expect("fixtures/"))
        .arg(scratch.path())
        .status();
    assert!(
        status.is_ok_and(|s| s.success()),
        "the fixtures can't be copied"
    );
    let programs = program("qpx-pack")
        .parent()
        .expect("a folder")
        .to_path_buf();
    let path = env::join_paths(
        [programs]
            .into_iter()
            .chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
    );
    let output = Command::new("bash")
        .args(["-c", &script])
        .env("PATH", path.expect("a path"))
        .current_dir(scratch.path())
        .output()
        .expect("bash starts");
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn its_exit_codes_are_those_of_the_programs() {
    let text = readme();
    let (start, end) = ("<!-- exit codes -->\n", "<!-- end -->");
    let (table, _) = between(&text, start, end).expect("the README's table");
    let expected = Exit::markdown();
    if env::var_os("QPX_BLESS").is_some() {
        fs::write(
            root().join("README.md"),
            text.replacen(
                &format!("{start}{table}{end}"),
                &format!("{start}{expected}{end}"),
                1,
            ),
        )
        .expect("README.md is written");
    } else {
        assert_eq!(table, expected, "QPX_BLESS=1 writes the table anew");
    }
}
