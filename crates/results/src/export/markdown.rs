//! Answer and table of a run in Markdown, to be pasted.

use super::Export;
use crate::report::{self, TreatmentTable, markdown_text};

impl Export<'_> {
    /// Renders question, answer and the table of treatments, with a newline at the end.
    pub fn markdown(&self) -> String {
        let cell = |text: &String| markdown_text(&self.text(text));
        let TreatmentTable { names, header, rows } = report::treatment_table(&self.view);
        let mut out = format!("### pgdyno: {}\n\n", cell(&self.view.run.id));
        if let Some(question) = &self.view.run.question {
            out.push_str(&format!("{}\n\n", cell(question)));
        }
        for sentence in &self.view.answer {
            out.push_str(&format!("**{}**\n\n", cell(sentence)));
        }
        let line = |cells: &[String]| {
            format!("| {} |\n", cells.iter().map(cell).collect::<Vec<_>>().join(" | "))
        };
        out.push_str(&line(&header));
        let numbers = header.len() - names;
        out.push_str(&format!("|{}{}\n", "---|".repeat(names), "---:|".repeat(numbers)));
        rows.iter().for_each(|row| out.push_str(&line(row)));
        out.push_str(&format!("\n{}\n", markdown_text(report::TABLE_LEGEND)));
        out
    }
}
