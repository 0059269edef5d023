//! What stands in the way of writing, drafts that break a rule, and how errors read.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use qpx_format::{
    Bundle, Draft, Error, Writer,
    error::{Kind, Missing, Place},
    layout::DraftTensor,
    manifest::SegmentKind,
    publish,
};
use std::{fs, io, os::unix::fs::symlink, path::PathBuf};
use support::{draft, slots, tensor, write};

/// The builder refuses what the reader would refuse, by the same rule.
#[test]
fn drafts_against_the_rules() {
    let with = |change: &dyn Fn(&mut Draft)| {
        let mut draft = draft();
        change(&mut draft);
        draft.layout().unwrap_err()
    };
    let first = |change: &dyn Fn(&mut DraftTensor)| with(&|d| change(&mut d.tensors[0]));
    let twice = |d: &mut Draft| d.attached[1].name = "CONFIG.json".into();
    for (rule, error) in [
        ("3.6", with(&|d| d.requires.push("teleport".into()))),
        ("3.7", with(&|d| drop(d.architecture.remove("family")))),
        ("3.11", with(&|d| d.claimed.origin.files.reverse())),
        ("3.12", first(&|t| t.source.dtype = "f32".into())),
        ("4.6", with(&|d| d.experts[0].count = 0)),
        ("4.10", with(&|d| d.experts[1].layer = 0)),
        ("5.1", first(&|t| t.encoding = "f33".into())),
        ("5.2", first(&|t| t.shape = vec![u64::MAX, u64::MAX])),
        ("5.4", first(&|t| t.encoding = "q4_k".into())),
        ("5.5", with(&|d| d.experts[0].parts[0].shape = vec![6])),
        ("6.1", first(&|t| t.role = "Layer.0".into())),
        ("6.2", first(&|t| t.role = "norm".into())),
        ("6.3", first(&|t| t.segment = SegmentKind::Head)),
        ("6.4", with(&|d| d.aliases[0].of = "nothing".into())),
        ("7.1", with(&|d| d.attached[0].name = "../a".into())),
        ("7.2", with(&twice)),
    ] {
        assert_eq!(error.rule(), Some(rule), "{error}");
        assert_eq!(error.kind(), Kind::Broken);
    }
}

/// Shapes of all kinds: what is laid out is what is read, and the same draft gives the same bytes.
#[test]
fn random_drafts_come_back() {
    let scratch = tempfile::tempdir().unwrap();
    let mut state = 7_u64;
    let mut below = |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % n
    };
    for round in 0..12 {
        let mut draft = draft();
        draft.aliases.clear();
        draft.tensors = (0..below(30))
            .map(|n| {
                let kinds = [("layer.0", SegmentKind::Core), ("kept", SegmentKind::Kept)];
                let (word, segment) = kinds[below(2) as usize];
                let encoding = ["f32", "q8_0", "q6_k", "bool"][below(4) as usize];
                let shape = [below(5), below(700)];
                tensor(&format!("{word}.t{n}"), encoding, &shape, segment)
            })
            .collect();
        draft.experts[0].parts.truncate(1 + below(3) as usize);
        draft.experts.truncate(below(4) as usize);
        let paths = [1, 2].map(|n| scratch.path().join(format!("{round}-{n}.qpx")));
        let ids = paths.clone().map(|p| write(&p, draft.clone()).unwrap().id);
        assert_eq!(ids[0], ids[1]);
        assert_eq!(fs::read(&paths[0]).unwrap(), fs::read(&paths[1]).unwrap());
        let bundle = Bundle::open(&paths[0]).unwrap();
        let report = qpx_format::verify::full(&bundle, 3, &|_| {}).unwrap();
        assert!(report.is_intact());
        assert_eq!(report.bytes, bundle.content_length());
    }
}

#[test]
fn writes_stay_in_their_slots() {
    let scratch = tempfile::tempdir().unwrap();
    let writer = Writer::create(&scratch.path().join("a.qpx"), draft().layout().unwrap()).unwrap();
    for slot in slots(writer.layout()) {
        for (offset, length) in [
            (slot.offset, slot.length + 1),
            (slot.offset - 1, 1),
            (slot.offset + slot.length, 1),
        ] {
            let outside = writer.write_at(offset, &vec![0; length as usize]);
            let next = slots(writer.layout())
                .iter()
                .any(|s| s.offset <= offset && offset + length <= s.offset + s.length);
            assert_eq!(outside.is_ok(), next, "{offset} {length}");
        }
    }
    let outside = writer.write_at(u64::MAX, &[0, 0]).unwrap_err();
    assert!(matches!(outside, Error::OutsideSlot { .. }));
}

#[test]
fn what_stands_under_the_partial_name_is_respected() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.qpx");
    let partial = publish::partial_name(&path);
    let create = || Writer::create(&path, draft().layout().unwrap());
    let precious = scratch.path().join("precious");
    fs::write(&precious, b"precious").unwrap();

    symlink(&precious, &partial).unwrap();
    assert!(matches!(create().unwrap_err(), Error::NotOurs { .. }));
    fs::remove_file(&partial).unwrap();
    fs::hard_link(&precious, &partial).unwrap();
    assert!(matches!(create().unwrap_err(), Error::NotOurs { .. }));
    fs::remove_file(&partial).unwrap();
    fs::create_dir(&partial).unwrap();
    assert!(matches!(create().unwrap_err(), Error::NotOurs { .. }));
    fs::remove_dir(&partial).unwrap();
    assert_eq!(fs::read(&precious).unwrap(), b"precious");

    // Left by a run that was killed: started anew.
    fs::write(&partial, vec![0xff; 3_000_000]).unwrap();
    let mut writer = create().unwrap();
    support::fill(&writer).unwrap();
    writer.keep_partial(true);
    drop(writer);
    assert!(partial.exists());
    write(&path, draft()).unwrap();
    assert!(!partial.exists());

    // Taken while we wrote: the other's file stays. Replacing is for those who say so.
    let before = fs::read(&path).unwrap();
    assert!(write(&path, draft()).is_err());
    let writer = create().unwrap();
    support::fill(&writer).unwrap();
    writer.seal(true, &|_| {}).unwrap();
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn room_is_asked_for_before_anything_is_written() {
    let scratch = tempfile::tempdir().unwrap();
    let mut draft = draft();
    draft.tensors[0].shape = vec![1 << 20, 1 << 20];
    let path = scratch.path().join("a.qpx");
    let error = Writer::create(&path, draft.layout().unwrap()).unwrap_err();
    assert_eq!(error.kind(), Kind::NoSpace, "{error}");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    let nowhere = scratch.path().join("no/such/a.qpx");
    let error = Writer::create(&nowhere, support::draft().layout().unwrap()).unwrap_err();
    assert_eq!(error.kind(), Kind::Io, "{error}");
}

/// Every message of this crate, to be read as prose.
#[test]
fn messages() {
    let file = || PathBuf::from("coder.qpx");
    let place = || {
        Box::new(Place {
            file: file(),
            region: "experts".into(),
            subject: Some("layer.3.expert.17.gate".into()),
            bytes: 8_388_608..12_582_912,
            leaf: Some(2),
        })
    };
    let io = |kind: io::ErrorKind| Error::Io {
        file: file(),
        doing: "open",
        source: kind.into(),
    };
    let missing = |first| Error::Unfinished {
        file: file(),
        first,
        count: 3,
    };
    let errors = [
        io(io::ErrorKind::NotFound),
        Error::NotABundle {
            file: file(),
            reason: "it is a GGUF file".into(),
        },
        Error::Newer {
            file: file(),
            needs: "the feature `teleport`".into(),
        },
        Error::CutShort {
            file: file(),
            expected: 1000,
            found: 990,
        },
        Error::Altered {
            place: place(),
            rule: "4.7",
            expected: "9f2c".into(),
            found: "03ab".into(),
        },
        Error::Broken {
            place: place(),
            rule: "5.2",
            reason: "at most 8 dimensions, found 9".into(),
        },
        Error::Exists { file: file() },
        Error::Busy { file: file() },
        Error::NotOurs {
            file: file(),
            found: "a symbolic link",
        },
        Error::NoSpace {
            file: file(),
            needed: 1000,
            available: Some(10),
        },
        Error::OutsideSlot {
            file: file(),
            bytes: 3..9,
        },
        missing(Missing::Source { source: 4 }),
    ];
    let mut text = String::new();
    for error in &errors {
        text += &format!("error: {error}\n");
        if let Some(hint) = error.hint() {
            text += &format!("\nhint: {hint}\n");
        }
        text += "\n----\n";
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/messages.txt");
    if std::env::var_os("QPX_BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(
        fs::read_to_string(path).unwrap(),
        text,
        "run with QPX_BLESS=1"
    );
}
