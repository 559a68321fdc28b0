//! Pages that were made lately: making one analyses the run anew.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use pgdyno_report::Page;

use crate::response::ApiError;

/// Most pages that are kept (count).
const MOST: usize = 8;

/// Most bytes of pages that are kept.
const BYTES_MOST: usize = 64 << 20;

/// A page as it is given out: its document, and the details of its trials packed by gzip.
pub(crate) struct ServedPage {
    pub(crate) document: Bytes,
    pub(crate) details: HashMap<usize, Bytes>,
}

impl ServedPage {
    /// Takes the parts of `page`.
    pub(crate) fn new(page: Page) -> Self {
        let document = Bytes::from(page.document());
        let details = page.into_details().map(|(index, bytes)| (index, Bytes::from(bytes)));
        Self { document, details: details.collect() }
    }

    fn bytes(&self) -> usize {
        self.document.len() + self.details.values().map(Bytes::len).sum::<usize>()
    }
}

/// Pages that were made lately, by what names their content.
#[derive(Default)]
pub(crate) struct Pages {
    /// The newest first.
    kept: Mutex<VecDeque<(String, Arc<ServedPage>)>>,
    /// Held while a page is made: who asks for the same one waits for it.
    making: Mutex<()>,
}

impl Pages {
    /// Returns the page that `key` names; makes it by `make` if it is not kept.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn get(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<Page, ApiError>,
    ) -> Result<Arc<ServedPage>, ApiError> {
        if let Some(page) = self.find(key) {
            return Ok(page);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = self.find(key) {
            return Ok(page);
        }
        let page = Arc::new(ServedPage::new(make()?));
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_front((key.to_owned(), Arc::clone(&page)));
        let bytes = |kept: &VecDeque<(String, Arc<ServedPage>)>| -> usize {
            kept.iter().map(|(_, page)| page.bytes()).sum()
        };
        while kept.len() > MOST || (kept.len() > 1 && bytes(&kept) > BYTES_MOST) {
            kept.pop_back();
        }
        Ok(page)
    }

    fn find(&self, key: &str) -> Option<Arc<ServedPage>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|(known, _)| known == key)?;
        let found = kept.remove(place)?;
        let page = Arc::clone(&found.1);
        kept.push_front(found);
        Some(page)
    }
}
