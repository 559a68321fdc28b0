//! Pages that a server gives out: the front end without data, and the parts that it then asks for.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::{Page, template};
use crate::{CompareReport, ReportError, RunReport, json};
use pgdyno_analysis::analyse;
use pgdyno_analysis::comparison::imported::{find_import, side_by_side};
use pgdyno_analysis::comparison::runs::CompareOptions;
use pgdyno_store::{Store, Stored};

/// The front end as a server gives it out for every path: it asks the server for its data.
#[derive(Debug)]
pub struct FrontEnd {
    /// The HTML file.
    pub html: String,
    /// Content security policy of the file, for a header. It allows the front end's own script and
    /// style, and requests to the server that the file came from.
    pub policy: String,
}

impl FrontEnd {
    /// Returns the HTML file of a server that a proxy offers under the path `base`, such as
    /// `/pgdyno`; empty for one with a host of its own. `base` has no characters that JSON or HTML
    /// would take for their own.
    pub fn html_under(&self, base: &str) -> String {
        let (before, after) = (template::NO_SERVER, template::server_under(base));
        self.html.replacen(before, &after, 1)
    }
}

/// Returns the front end for a server.
pub fn front_end() -> &'static FrontEnd {
    static FRONT_END: LazyLock<FrontEnd> = LazyLock::new(|| {
        let (html, policy) = template::for_server();
        FrontEnd { html, policy }
    });
    &FRONT_END
}

/// The page of a comparison.
#[derive(Debug)]
pub struct ComparedPage {
    /// The page.
    pub page: Page,
    /// Id of the first side's run; of the import, where one is compared.
    pub a: String,
    /// Id of the second side's run.
    pub b: String,
}

impl Page {
    /// Makes the page of a comparison of what `a` and `b` name: two runs or treatments, or a run
    /// and an import.
    ///
    /// # Errors
    /// [`ReportError::Compare`], [`ReportError::Store`] or [`ReportError::Render`].
    pub fn comparison(
        store: &Store,
        a: &str,
        b: &str,
        options: &CompareOptions,
    ) -> Result<ComparedPage, ReportError> {
        if let Some((import, run)) = find_import(store, a, b)? {
            let page = Self::side_by_side(&side_by_side(&import, &analyse(store, &run)?))?;
            return Ok(ComparedPage { page, a: import.id, b: run });
        }
        let report = CompareReport::read(store, a, b, options)?;
        let (a, b) = (&report.view.a.run, &report.view.b.run);
        let page = Self::compare(&report, &analyse(store, a)?, &analyse(store, b)?)?;
        Ok(ComparedPage { page, a: a.clone(), b: b.clone() })
    }

    /// Makes the page of a stored result.
    ///
    /// # Errors
    /// [`ReportError::Store`] or [`ReportError::Render`].
    pub fn stored(store: &Store, stored: &Stored) -> Result<Self, ReportError> {
        match stored {
            Stored::Run(run) => Self::run(&RunReport::read(store, run)?),
            Stored::Probe(probe) => Self::probe(&store.probe(probe)?),
            Stored::Crash(crash) => Self::crash(&store.crash(crash)?),
            Stored::Imported(import) => Self::import(&store.import(import)?),
        }
    }

    /// Returns the document as the page embeds it, schema `pgdyno.page/1`.
    pub fn document(&self) -> String {
        json::for_browser(&self.document)
    }

    /// Returns the details of trials with their indices, each as JSON packed by gzip.
    pub fn into_details(self) -> impl Iterator<Item = (usize, Vec<u8>)> {
        self.details.into_iter().filter_map(|(index, text)| {
            // It was encoded by this program: decoding cannot fail.
            Some((index, BASE64_STANDARD.decode(text).ok()?))
        })
    }
}
