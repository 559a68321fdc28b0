//! Answer and table of a run in Markdown, to be pasted.

use super::Export;
use crate::{TABLE_LEGEND, TreatmentTable, markdown_text, treatment_table};

impl Export<'_> {
    /// Renders question, answer and the table of treatments, with a newline at the end.
    pub fn markdown(&self) -> String {
        let cell = |text: &String| markdown_text(&self.text(text));
        let TreatmentTable { names, header, rows } = treatment_table(&self.report);
        let mut out = format!("### pgdyno: {}\n\n", cell(&self.report.view.run.id));
        if let Some(question) = &self.report.view.run.question {
            out.push_str(&format!("{}\n\n", cell(question)));
        }
        for sentence in &self.report.answer {
            out.push_str(&format!("**{}**\n\n", cell(sentence)));
        }
        let line = |cells: &[String]| {
            format!("| {} |\n", cells.iter().map(cell).collect::<Vec<_>>().join(" | "))
        };
        out.push_str(&line(&header));
        let numbers = header.len() - names;
        out.push_str(&format!("|{}{}\n", "---|".repeat(names), "---:|".repeat(numbers)));
        rows.iter().for_each(|row| out.push_str(&line(row)));
        out.push_str(&format!("\n{}\n", markdown_text(TABLE_LEGEND)));
        out
    }
}
