//! Outputs that are refused, and the words for it.

use super::*;

fn listed(path: &Path) -> Listed {
    Listed {
        name: path.file_name().unwrap().to_string_lossy().into_owned(),
        path: path.to_path_buf(),
        bytes: 0,
    }
}

#[test]
fn no_input_is_written_onto_under_any_name() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    fs::create_dir(at("model")).unwrap();
    fs::create_dir(at("elsewhere")).unwrap();
    let input = at("model/Weights.safetensors");
    fs::write(&input, "w").unwrap();
    fs::hard_link(&input, at("elsewhere/hard.qpx")).unwrap();
    std::os::unix::fs::symlink(&input, at("elsewhere/soft.qpx")).unwrap();
    std::os::unix::fs::symlink(at("model"), at("door")).unwrap();
    fs::hard_link(&input, at("elsewhere/plan.qpx.partial")).unwrap();
    for (output, how) in [
        (input.clone(), "the same file as"),
        (at("door/Weights.safetensors"), "the same file as"),
        (at("model/../model/Weights.safetensors"), "the same file as"),
        (at("elsewhere/hard.qpx"), "the same file as"),
        (at("elsewhere/soft.qpx"), "a link to"),
        (
            at("model/weights.SafeTensors"),
            "in all but letter case the name of",
        ),
        (at("elsewhere/plan.qpx"), "the same file as"),
    ] {
        let error =
            check(&output, &[listed(&input)], true).expect_err(&output.display().to_string());
        assert_eq!(error.exit(), Exit::OutputRefused, "{}", output.display());
        assert!(
            error.to_string().contains(how),
            "{}: {error}",
            output.display()
        );
    }
    check(&at("elsewhere/new.qpx"), &[listed(&input)], false).unwrap();
}

#[test]
fn what_can_not_be_written_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    fs::write(at("there.qpx"), "x").unwrap();
    std::os::unix::fs::symlink("nowhere", at("dangling.qpx")).unwrap();
    for (output, force, exit, words) in [
        (at("there.qpx"), false, Exit::OutputRefused, "exists"),
        (at("dangling.qpx"), false, Exit::OutputRefused, "exists"),
        (at(""), true, Exit::OutputRefused, "is a folder"),
        (
            at("absent/out.qpx"),
            true,
            Exit::Failure,
            "absent is not there",
        ),
        (PathBuf::from(".."), true, Exit::Usage, "has no file name"),
    ] {
        let error = check(&output, &[], force).expect_err(&output.display().to_string());
        assert_eq!(error.exit(), exit, "{}", output.display());
        assert!(error.to_string().contains(words), "{error}");
    }
    check(&at("there.qpx"), &[], true).unwrap();
}

#[test]
fn the_output_is_no_part_of_the_checkpoint() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let names = |output: &str| names_within(folder, &folder.join(output));
    assert_eq!(names("out.qpx"), ["out.qpx", "out.qpx.partial"]);
    assert_eq!(names("model.safetensors"), ["model.safetensors.partial"]);
    assert_eq!(names("../out.qpx"), Vec::<String>::new());
}
