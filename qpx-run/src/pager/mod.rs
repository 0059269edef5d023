//! Experts in a bounded number of slots: fixed memory, one read per miss, the least recently used one gives way.
//!
//! A record (gate, up and down of one expert) is verified the first time it is read.

pub mod os;

use crate::{
    Error,
    memory::Aligned,
    needs::Needs,
    ops::Experts,
    resident::{numbers, usize_of},
};
use qpx_format::{Bundle, Part, reader::Extent};
use qpx_kernels::{Encoding, ops::Matrix};
use rayon::prelude::*;
use std::sync::Arc;

const EMPTY: u32 = u32::MAX;

/// Where the experts of all layers lie in the file.
pub struct Survey {
    layers: Vec<Layer>,
    slot_bytes: usize,
    experts: usize,
}

struct Layer {
    /// Offset in the file of expert 0's record.
    base: u64,
    /// Bytes of a record.
    stride: usize,
    /// Gate, up, down.
    parts: [Place; 3],
    /// The same of each expert, as the digest table knows them.
    extents: Vec<[Extent; 3]>,
    /// Number of expert 0 of this layer among all experts.
    first: usize,
}

/// Where a part lies within its record.
#[derive(Clone, Copy)]
struct Place {
    encoding: &'static Encoding,
    rows: usize,
    columns: usize,
    start: usize,
    length: usize,
}

impl Survey {
    /// Finds the experts that `needs` lists.
    ///
    /// # Errors
    /// [`Error::MissingTensor`], [`Error::WrongShape`], [`Error::NoNumbers`].
    pub fn new(bundle: &Bundle, needs: &Needs) -> Result<Self, Error> {
        let mut survey = Self {
            layers: Vec::new(),
            slot_bytes: 0,
            experts: 0,
        };
        for (layer, experts) in &needs.experts {
            let found = find(bundle, *layer, *experts, survey.experts)?;
            survey.slot_bytes = survey.slot_bytes.max(found.stride);
            survey.experts += experts.count;
            survey.layers.push(found);
        }
        Ok(survey)
    }

    /// Bytes of a slot.
    pub fn slot_bytes(&self) -> u64 {
        self.slot_bytes as u64
    }

    /// All experts of all layers.
    pub fn experts(&self) -> usize {
        self.experts
    }

    /// Bytes of the lists that find experts.
    pub fn list_bytes(&self) -> u64 {
        // An extent's own text and shape take about as much again as the structure.
        (self.experts * 3 * (size_of::<Extent>() + 64)) as u64
    }
}

fn find(bundle: &Bundle, layer: u64, experts: Experts, first: usize) -> Result<Layer, Error> {
    let missing = |part: Part, shape: [usize; 2]| Error::MissingTensor {
        bundle: bundle.path().to_path_buf(),
        role: format!("layer.{layer}.expert.*.{}", part.as_str()),
        shape: shape.map(|n| n as u64).to_vec(),
    };
    let rows = &bundle.manifest().checked.experts;
    let shape = |part: Part| match part {
        Part::Gate | Part::Up => [experts.inner, experts.hidden],
        Part::Down => [experts.hidden, experts.inner],
    };
    let row = |part: Part| {
        rows.iter()
            .find(|r| {
                r.layer == layer
                    && r.part == part
                    && r.segment == qpx_format::manifest::SegmentKind::Experts
            })
            .ok_or_else(|| missing(part, shape(part)))
    };
    let [gate, up, down] = [row(Part::Gate)?, row(Part::Up)?, row(Part::Down)?];
    let base = gate.base.min(up.base).min(down.base);
    let mut parts = Vec::with_capacity(3);
    for (row, part) in [gate, up, down].into_iter().zip(Part::ALL) {
        let role = format!("layer.{layer}.expert.*.{}", part.as_str());
        let expected = shape(part).map(|n| n as u64);
        if row.shape != expected {
            return Err(Error::WrongShape {
                bundle: bundle.path().to_path_buf(),
                role,
                expected: expected.to_vec(),
                found: row.shape.clone(),
            });
        }
        if row.count != experts.count as u64 || row.stride != gate.stride {
            return Err(Error::WrongShape {
                bundle: bundle.path().to_path_buf(),
                role,
                expected: vec![experts.count as u64, gate.stride],
                found: vec![row.count, row.stride],
            });
        }
        let [rows, columns] = shape(part);
        parts.push(Place {
            encoding: numbers(bundle, &role, &row.encoding)?,
            rows,
            columns,
            start: usize_of(row.base - base)?,
            length: usize_of(row.length)?,
        });
    }
    let extents = (0..experts.count as u64)
        .map(|expert| {
            let one = |part| {
                let found = bundle.expert(layer, expert, part);
                found.ok_or_else(|| missing(part, shape(part)))
            };
            Ok([one(Part::Gate)?, one(Part::Up)?, one(Part::Down)?])
        })
        .collect::<Result<_, Error>>()?;
    Ok(Layer {
        base,
        stride: usize_of(gate.stride)?,
        parts: [parts[0], parts[1], parts[2]],
        extents,
        first,
    })
}

/// What the pager did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Experts asked for that were in a slot.
    pub hits: u64,
    /// Experts asked for that had to be read.
    pub misses: u64,
    /// Bytes read for them.
    pub bytes: u64,
    /// Time the reads took.
    pub waited: std::time::Duration,
}

/// The slots.
pub struct Pager {
    bundle: Arc<Bundle>,
    layers: Vec<Layer>,
    slab: Aligned,
    slot_bytes: usize,
    slots: Vec<Slot>,
    /// The slot of each expert of each layer.
    places: Vec<u32>,
    verified: Vec<bool>,
    clock: u64,
    counters: Counters,
}

#[derive(Clone, Copy)]
struct Slot {
    /// Number of the expert among all.
    expert: u32,
    used: u64,
}

impl Pager {
    /// `slots` slots. When every expert has one, all are read and verified now, on the pool this is called in.
    ///
    /// # Errors
    /// [`Error::NoMemory`]; [`Error::Format`] with the place of what is not as it was sealed.
    pub fn new(bundle: Arc<Bundle>, survey: Survey, slots: usize) -> Result<Self, Error> {
        let slot_bytes = survey.slot_bytes;
        let mut pager = Self {
            slab: Aligned::new(slots.saturating_mul(slot_bytes), "the expert slots")?,
            slots: vec![
                Slot {
                    expert: EMPTY,
                    used: 0,
                };
                slots
            ],
            places: vec![EMPTY; survey.experts],
            verified: vec![false; survey.experts],
            layers: survey.layers,
            slot_bytes,
            clock: 0,
            counters: Counters::default(),
            bundle,
        };
        if slots >= survey.experts && slots > 0 {
            pager.fill()?;
        }
        Ok(pager)
    }

    fn fill(&mut self) -> Result<(), Error> {
        let list: Vec<(&Layer, usize)> = (self.layers.iter())
            .flat_map(|layer| (0..layer.extents.len()).map(move |e| (layer, e)))
            .collect();
        let bundle = &self.bundle;
        self.slab
            .bytes_mut()
            .par_chunks_mut(self.slot_bytes)
            .zip(list)
            .try_for_each(|(slot, (layer, expert))| read(bundle, layer, expert, slot, true))?;
        for number in 0..self.places.len() {
            self.places[number] = number as u32;
            self.slots[number].expert = number as u32;
            self.verified[number] = true;
        }
        Ok(())
    }

    /// Whether `expert` is in a slot.
    pub fn holds(&self, experts: Experts, expert: usize) -> bool {
        self.places[self.layers[experts.number].first + expert] != EMPTY
    }

    /// The slot of `expert`, read now if it is in none.
    ///
    /// # Errors
    /// [`Error::Format`] with the place of what is not as it was sealed.
    pub fn fetch(&mut self, experts: Experts, expert: usize) -> Result<usize, Error> {
        let layer = &self.layers[experts.number];
        let number = layer.first + expert;
        self.clock += 1;
        if self.places[number] != EMPTY {
            let slot = self.places[number] as usize;
            self.slots[slot].used = self.clock;
            self.counters.hits += 1;
            return Ok(slot);
        }
        let oldest = (self.slots.iter().enumerate()).min_by_key(|(_, slot)| slot.used);
        let (slot, held) = oldest.ok_or(Error::Fault {
            reason: "there is no expert slot",
        })?;
        if held.expert != EMPTY {
            self.places[held.expert as usize] = EMPTY;
        }
        self.slots[slot] = Slot {
            expert: EMPTY,
            used: 0,
        };
        let began = std::time::Instant::now();
        let bytes = &mut self.slab.bytes_mut()[slot * self.slot_bytes..][..self.slot_bytes];
        read(&self.bundle, layer, expert, bytes, !self.verified[number])?;
        self.counters.waited += began.elapsed();
        self.counters.misses += 1;
        self.counters.bytes += layer.stride as u64;
        self.verified[number] = true;
        self.places[number] = slot as u32;
        self.slots[slot] = Slot {
            expert: number as u32,
            used: self.clock,
        };
        Ok(slot)
    }

    /// Gate, up and down of the expert of this layer that is in `slot`.
    pub fn matrices(&self, experts: Experts, slot: usize) -> [Matrix<'_>; 3] {
        let record = &self.slab.bytes()[slot * self.slot_bytes..][..self.slot_bytes];
        self.layers[experts.number].parts.map(|place| Matrix {
            encoding: place.encoding,
            rows: place.rows,
            columns: place.columns,
            bytes: &record[place.start..][..place.length],
        })
    }

    /// What it did so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

fn read(
    bundle: &Bundle,
    layer: &Layer,
    expert: usize,
    slot: &mut [u8],
    verify: bool,
) -> Result<(), Error> {
    let record = &mut slot[..layer.stride];
    bundle.read_at(layer.base + (expert * layer.stride) as u64, record)?;
    if verify {
        for (extent, place) in layer.extents[expert].iter().zip(&layer.parts) {
            bundle.verify_bytes(extent, &record[place.start..][..place.length])?;
        }
    }
    Ok(())
}
