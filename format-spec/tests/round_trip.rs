//! What is written is what is read, and nothing else is found on the disk.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use qpx_format::{Bundle, Error, Role, Writer, error::Kind, role::Part, stamp, verify};
use std::fs;
use support::{draft, fill, value, write};

#[test]
fn every_segment_comes_back() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.qpx");
    let sealed = write(&path, draft()).unwrap();
    let names: Vec<_> = fs::read_dir(scratch.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "the partial file is gone");

    let bundle = Bundle::open(&path).unwrap();
    assert_eq!(bundle.id(), sealed.id);
    assert_eq!(bundle.content_length(), fs::metadata(&path).unwrap().len());
    let map = bundle.map().unwrap();
    let mut extents = 0;
    let mut next_leaf = bundle.manifest().checked.attached.len() as u64;
    for extent in bundle.extents() {
        let expected = value(extent.source + 1, extent.length);
        let mut found = vec![0; extent.length as usize];
        bundle.read_verified(&extent, &mut found).unwrap();
        assert_eq!(found, expected, "{}", extent.role);
        assert_eq!(map.bytes(&extent), expected, "{}", extent.role);
        let digest = blake3::hash(&expected);
        assert_eq!(&bundle.source_digest(&extent), digest.as_bytes());
        assert_eq!(extent.source, extents, "sources are numbered in file order");
        assert_eq!(
            extent.first_leaf, next_leaf,
            "leaves are numbered in file order"
        );
        next_leaf += extent.leaves;
        extents += 1;
        let again = bundle.extent(&Role::parse(&extent.role).unwrap()).unwrap();
        assert_eq!(again.offset, extent.offset, "{}", extent.role);
        for n in 0..extent.leaves {
            let leaf = bundle.leaf(extent.first_leaf + n).unwrap();
            assert_eq!(leaf.place.subject.as_deref(), Some(extent.role.as_str()));
        }
        if let Some(first) = found.first_mut() {
            *first ^= 1;
            let error = bundle.verify_bytes(&extent, &found).unwrap_err();
            assert_eq!(error.kind(), Kind::Altered);
        }
    }
    assert_eq!(extents, 9 + 3 * (3 + 3 + 2));
    assert_eq!(next_leaf, bundle.leaves());
    let output = bundle.extent(&Role::parse("output").unwrap()).unwrap();
    assert_eq!(output.role, "embedding");
    let gate = bundle.expert(1, 2, Part::Gate).unwrap();
    assert_eq!(gate.role, "layer.1.expert.2.gate");
    assert_eq!(gate.offset % 16384, 0);

    let given = draft().attached;
    let attached = &bundle.manifest().checked.attached;
    for (entry, file) in attached.iter().zip(&given) {
        assert_eq!(bundle.attached(entry).unwrap(), file.content);
    }

    for threads in [1, 2, 7] {
        let report = verify::full(&bundle, threads, &|_| {}).unwrap();
        assert!(report.is_intact(), "{:?}", report.faults);
        assert_eq!(report.leaves, bundle.leaves());
        let page_0_and_all = bundle.content_length();
        assert_eq!(report.bytes, page_0_and_all, "every byte is accounted for");
    }
    assert!(verify::quick(&bundle).unwrap().is_intact());
}

#[test]
fn stamps_chain_and_leave_the_id() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.qpx");
    let id = write(&path, draft()).unwrap().id;
    for (n, payload) in [&b"{}"[..], br#"{"b": [1, 2]}"#, b"12345678"]
        .iter()
        .enumerate()
    {
        let stamp = stamp::append(&path, "proof", payload).unwrap();
        let bundle = Bundle::open(&path).unwrap();
        assert_eq!(bundle.id(), id);
        let stamps = bundle.stamps().unwrap();
        assert_eq!((stamps.fault, stamps.torn), (None, None));
        assert_eq!(stamps.records.len(), n + 1);
        assert_eq!(stamps.records[n].payload, *payload);
        assert_eq!(stamps.records[n].digest, stamp.digest);
        assert_eq!(stamps.end, fs::metadata(&path).unwrap().len());
        assert!(verify::full(&bundle, 1, &|_| {}).unwrap().is_intact());
    }
}

#[test]
fn nothing_is_sealed_unfinished_and_nothing_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.qpx");
    let writer = Writer::create(&path, draft().layout().unwrap()).unwrap();
    let busy = Writer::create(&path, draft().layout().unwrap()).unwrap_err();
    assert!(matches!(busy, Error::Busy { .. }), "{busy}");
    let error = writer.seal(false, &|_| {}).unwrap_err();
    assert!(matches!(error, Error::Unfinished { .. }), "{error}");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);

    let writer = Writer::create(&path, draft().layout().unwrap()).unwrap();
    fill(&writer).unwrap();
    let slot = writer.layout().tensor_slot(0);
    writer.write_at(slot.offset, &[9]).unwrap();
    let error = writer.seal(false, &|_| {}).unwrap_err();
    assert_eq!(error.kind(), Kind::Altered, "{error}");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);

    write(&path, draft()).unwrap();
    let error = write(&path, draft()).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error}");
    assert!(Bundle::open(&path).is_ok());
}
