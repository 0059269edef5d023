//! A bundle taken apart, to be put together against the rules. Shares no code with the writer.

use qpx_format::preamble::PREAMBLE;
use serde_json::Value;

const PAGE: usize = 16384;

#[derive(Clone)]
pub struct Raw {
    /// Fields of page 0 that are not what they should be. One called `page digest` is set last.
    pub fields: Vec<(&'static str, Vec<u8>)>,
    pub manifest: Vec<u8>,
    pub table: Vec<u8>,
    pub data: Vec<u8>,
    pub stamps: Vec<u8>,
}

fn number(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

impl Raw {
    pub fn of(bytes: &[u8]) -> Self {
        let (content, length) = (number(bytes, 16), number(bytes, 32));
        let (table, table_length) = (number(bytes, 72), number(bytes, 80));
        Self {
            fields: vec![],
            manifest: bytes[PAGE..PAGE + length].to_vec(),
            table: bytes[table..table + table_length].to_vec(),
            data: bytes[(table + table_length).next_multiple_of(PAGE)..content].to_vec(),
            stamps: bytes[content..].to_vec(),
        }
    }

    /// First byte of the first segment in the whole file.
    pub fn data_offset(&self) -> usize {
        let table = (PAGE + self.manifest.len()).next_multiple_of(PAGE);
        (table + self.table.len()).next_multiple_of(PAGE)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.manifest).unwrap()
    }

    pub fn edit(mut self, change: impl FnOnce(&mut Value)) -> Self {
        let mut value = self.json();
        change(&mut value);
        self.manifest = serde_json::to_vec(&value).unwrap();
        self
    }

    pub fn replace(mut self, from: &str, to: &str) -> Self {
        let text = String::from_utf8(self.manifest).unwrap();
        assert!(text.contains(from), "{from}");
        self.manifest = text.replacen(from, to, 1).into_bytes();
        self
    }

    pub fn field(mut self, name: &'static str, value: &[u8]) -> Self {
        self.fields.push((name, value.to_vec()));
        self
    }

    pub fn page(&self) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        let mut put = |name: &str, value: &[u8]| {
            let field = PREAMBLE.iter().find(|f| f.name == name).unwrap();
            page[field.at..field.at + value.len()].copy_from_slice(value);
        };
        let table = (PAGE + self.manifest.len()).next_multiple_of(PAGE);
        let content = self.data_offset() + self.data.len();
        let bytes = |n: usize| (n as u64).to_le_bytes();
        put("magic", b"\x89QPX\r\n\x1a\n");
        put("major", &[1, 0]);
        put("page bytes", &[0, 0x40, 0, 0]);
        put("content length", &bytes(content));
        put("manifest offset", &bytes(PAGE));
        put("manifest length", &bytes(self.manifest.len()));
        put("manifest digest", blake3::hash(&self.manifest).as_bytes());
        put("table offset", &bytes(table));
        put("table length", &bytes(self.table.len()));
        put("table digest", blake3::hash(&self.table).as_bytes());
        for (name, value) in &self.fields {
            put(name, value);
        }
        let digest = *blake3::hash(&page[..16352]).as_bytes();
        page[16352..].copy_from_slice(&digest);
        page
    }

    pub fn id(&self) -> [u8; 32] {
        *blake3::hash(&self.page()).as_bytes()
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.page();
        bytes.extend_from_slice(&self.manifest);
        bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
        bytes.extend_from_slice(&self.table);
        bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
        bytes.extend_from_slice(&self.data);
        bytes.extend_from_slice(&self.stamps);
        bytes
    }

    /// Puts `stored` where attached file `n` is, with its digest.
    pub fn attach(mut self, n: usize, stored: &[u8], length: u64) -> Self {
        let start = self.data_offset();
        let entry = &self.json()["checked"]["attached"][n];
        let at = entry["offset"].as_u64().unwrap() as usize - start;
        let old = entry["stored"].as_u64().unwrap() as usize;
        self.data[at..at + old].fill(0);
        self.data[at..at + stored.len()].copy_from_slice(stored);
        // Every attached file of the sample has one leaf.
        self.table[n * 32..n * 32 + 32].copy_from_slice(blake3::hash(stored).as_bytes());
        self.edit(|m| {
            m["checked"]["attached"][n]["stored"] = stored.len().into();
            m["checked"]["attached"][n]["length"] = length.into();
        })
    }
}

/// A stamp's fields, to be written with or without mistakes.
#[derive(Clone)]
pub struct RawStamp {
    pub header: Vec<u8>,
    pub payload: Vec<u8>,
    pub padding: Vec<u8>,
}

impl RawStamp {
    pub fn new(kind: &str, payload: &[u8], id: &[u8], previous: &[u8]) -> Self {
        let mut header = b"QPXSTAMP\x01\0\0\0\0\0\0\0".to_vec();
        header.extend_from_slice(kind.as_bytes());
        header.resize(32, 0);
        header.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        header.extend_from_slice(id);
        header.extend_from_slice(previous);
        Self {
            header,
            payload: payload.to_vec(),
            padding: vec![0; payload.len().next_multiple_of(8) - payload.len()],
        }
    }

    pub fn set(mut self, at: usize, value: &[u8]) -> Self {
        self.header[at..at + value.len()].copy_from_slice(value);
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = [&self.header[..], &self.payload, &self.padding].concat();
        let digest = blake3::hash(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        bytes
    }
}
