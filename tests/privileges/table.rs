//! The matrix as text: a line for each object, a column for each role.

const NAME_WIDTH: usize = 54;

pub struct Table {
    columns: Vec<&'static str>,
    text: String,
}

impl Table {
    pub fn new<const N: usize>(columns: [&'static str; N]) -> Self {
        Table { columns: columns.into(), text: String::new() }
    }

    pub fn section(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&format!("# {title}\n"));
        let columns = self.columns.clone();
        self.line("", columns.iter().map(|name| (*name).to_owned()));
    }

    pub fn row<const N: usize>(&mut self, name: &str, cells: [String; N]) {
        assert_eq!(cells.len(), self.columns.len());
        self.line(name, cells.into_iter());
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    fn line(&mut self, name: &str, cells: impl Iterator<Item = String>) {
        let mut line = format!("{name:NAME_WIDTH$}");
        for (cell, column) in cells.zip(&self.columns) {
            line.push_str(&format!(" {cell:width$}", width = column.len().max("guarded".len())));
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}
