//! A table: columns as wide as their widest cell, with headings of several lines.

/// The alignment of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For text.
    Left,
    /// For numbers.
    Right,
}

/// A table under construction.
pub struct Table {
    aligns: Vec<Align>,
    heads: Vec<Vec<String>>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings; a line feed in a heading starts its next line, and headings are aligned
    /// at their last line.
    pub fn new(columns: &[(&str, Align)]) -> Table {
        let height = columns.iter().map(|(head, _)| head.lines().count()).max().unwrap_or(0);
        let heads = (0..height)
            .map(|line| {
                columns
                    .iter()
                    .map(|(head, _)| {
                        let missing = height - head.lines().count();
                        let text = line.checked_sub(missing).and_then(|n| head.lines().nth(n));
                        text.unwrap_or("").to_owned()
                    })
                    .collect()
            })
            .collect();
        Table { aligns: columns.iter().map(|(_, align)| *align).collect(), heads, rows: Vec::new() }
    }

    /// Adds a row with one cell per column.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.aligns.len(), "one cell a column");
        self.rows.push(cells);
    }

    /// The table; each line ends with a line feed and has no trailing spaces.
    pub fn render(&self) -> String {
        let lines = || self.heads.iter().chain(&self.rows);
        let width = |column: usize| lines().map(|l| l[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.aligns.len()).map(width).collect();
        let mut out = String::new();
        for line in lines() {
            let mut text = String::new();
            for (column, cell) in line.iter().enumerate() {
                let width = widths[column];
                if column > 0 {
                    text.push_str("  ");
                }
                match self.aligns[column] {
                    Align::Left => text.push_str(&format!("{cell:<width$}")),
                    Align::Right => text.push_str(&format!("{cell:>width$}")),
                }
            }
            out.push_str(text.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_under_heads_of_different_height() {
        let mut table = Table::new(&[("name", Align::Left), ("virtual\nseconds", Align::Right)]);
        table.row(vec!["a".into(), "1".into()]);
        table.row(vec!["longer".into(), "12,345,678".into()]);
        assert_eq!(
            table.render(),
            "           virtual\nname       seconds\na                1\nlonger  12,345,678\n"
        );
    }
}
