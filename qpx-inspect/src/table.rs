//! Columns and wrapped fields for people.

/// How wide a screen is taken to be.
pub const SCREEN: usize = 80;

/// A table whose columns are as wide as their widest cell.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<usize>,
}

impl Table {
    /// A table with a heading; the columns in `right` are set flush right.
    pub fn new(heading: &[&str], right: &[usize]) -> Self {
        Self {
            rows: vec![heading.iter().map(|h| (*h).to_owned()).collect()],
            right: right.to_vec(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table, each line behind `indent`, without blanks at the ends of lines.
    pub fn text(&self, indent: &str) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &'_ Vec<String>, c: usize| row.get(c).cloned().unwrap_or_default();
        let wide = |c| {
            let widths = self.rows.iter().map(|row| cell(row, c).chars().count());
            widths.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(wide).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = indent.to_owned();
            for (c, width) in widths.iter().enumerate() {
                let cell = cell(row, c);
                line += &match self.right.contains(&c) {
                    true => format!("{cell:>width$}  "),
                    false => format!("{cell:<width$}  "),
                };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// `name` and its value, wrapped between words, the further lines under the first one's value.
pub fn field(name: &str, value: &str) -> String {
    const NAME: usize = 12;
    let mut text = String::new();
    let mut line = format!("  {name:<NAME$}");
    let mut filled = false;
    for word in value.split(' ') {
        if filled && line.chars().count() + 1 + word.chars().count() > SCREEN {
            text += line.trim_end();
            text.push('\n');
            line = " ".repeat(NAME + 2);
            filled = false;
        }
        if filled {
            line.push(' ');
        }
        line += word;
        filled = true;
    }
    text += line.trim_end();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_fields_wrap() {
        let mut table = Table::new(&["name", "bytes"], &[1]);
        table.row(["a".to_owned(), "12".to_owned()]);
        table.row(["longer".to_owned(), String::new()]);
        assert_eq!(table.text(" "), " name    bytes\n a          12\n longer\n");
        let text = field("files", &"word ".repeat(20));
        assert!(text.lines().all(|l| l.chars().count() <= SCREEN), "{text}");
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().all(|l| l.starts_with("  ")), "{text}");
    }
}
