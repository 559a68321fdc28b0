//! Which message the server may send next.
//!
//! A server that answers more than was asked would be measured as fast. [`ExpectedReply`] follows
//! one statement's reply by the types of its messages. Notices, settings and notifications may come
//! at any time, and so may fatal errors.

use pgdyno_wire::WireError;
use pgdyno_wire::backend::tag;

/// Messages that may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedReply {
    /// None: nothing was sent.
    Nothing,
    /// First result of a query.
    Result,
    /// Rows or end of a query's result. Also another RowDescription: a rule may make a command
    /// return several results.
    Rows,
    /// Next result of a query, or the end of the reply.
    MoreResults,
    /// ParseComplete.
    Parsed {
        /// Whether the portal is described.
        described: bool,
    },
    /// BindComplete.
    Bound {
        /// Whether the portal is described.
        described: bool,
    },
    /// Request for the data of a COPY.
    CopyIn,
    /// Columns of the portal.
    Description,
    /// End of a COPY.
    CopyEnd,
    /// Rows or end of the portal.
    PortalRows,
    /// End of the reply, or of a part of the pipeline.
    Ready,
    /// End of a reply that had an error.
    ReadyAfterError,
}

/// Returns whether a message of type `tag` may come at any time.
#[inline]
pub(super) fn is_unsolicited(tag: u8) -> bool {
    matches!(tag, tag::NOTICE_RESPONSE | tag::PARAMETER_STATUS | tag::NOTIFICATION)
}

impl ExpectedReply {
    /// Returns what may follow a message of type `tag`, other than an error.
    #[inline]
    pub(super) fn after(self, tag: u8) -> Result<Self, WireError> {
        Ok(match (self, tag) {
            (Self::Rows | Self::PortalRows, tag::DATA_ROW) => self,
            (Self::Result | Self::MoreResults | Self::Rows, tag::ROW_DESCRIPTION) => Self::Rows,
            (Self::Result | Self::MoreResults | Self::Rows, tag::COMMAND_COMPLETE) => {
                Self::MoreResults
            }
            (Self::Result | Self::MoreResults, tag::EMPTY_QUERY) => Self::MoreResults,
            (Self::MoreResults | Self::Ready | Self::ReadyAfterError, tag::READY_FOR_QUERY) => {
                Self::Nothing
            }
            (Self::Parsed { described }, tag::PARSE_COMPLETE) => Self::Bound { described },
            (Self::Bound { described: false }, tag::BIND_COMPLETE) => Self::PortalRows,
            (Self::Bound { described: true }, tag::BIND_COMPLETE) => Self::Description,
            (Self::Description, tag::ROW_DESCRIPTION | tag::NO_DATA) => Self::PortalRows,
            (Self::PortalRows, tag::COMMAND_COMPLETE | tag::EMPTY_QUERY) => Self::Ready,
            (Self::CopyIn, tag::COPY_IN) => Self::CopyEnd,
            (Self::CopyEnd, tag::COMMAND_COMPLETE) => Self::Ready,
            // Any other COPY ends the client.
            (
                Self::Result | Self::MoreResults | Self::PortalRows,
                tag::COPY_IN | tag::COPY_OUT | tag::COPY_BOTH,
            ) => self,
            (_, tag) if is_unsolicited(tag) => self,
            (_, tag) => return Err(WireError::Unsolicited { tag }),
        })
    }

    /// Returns what may follow an error.
    pub(super) fn after_error(self, is_fatal: bool) -> Result<Self, WireError> {
        match self {
            Self::Nothing | Self::ReadyAfterError if !is_fatal => {
                Err(WireError::Unsolicited { tag: tag::ERROR_RESPONSE })
            }
            // The connection ends.
            Self::Nothing => Ok(Self::Nothing),
            _ => Ok(Self::ReadyAfterError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(from: ExpectedReply, tags: &str) -> Result<ExpectedReply, WireError> {
        tags.bytes().try_fold(from, ExpectedReply::after)
    }

    #[test]
    fn a_whole_reply_leads_to_nothing() {
        let bound = |described| ExpectedReply::Bound { described };
        for (asked, replies) in [
            (
                ExpectedReply::Result,
                ["TDDCZ", "CTDCZ", "IZ", "TCZ", "TDTDCZ", "NTSDACZ"].as_slice(),
            ),
            (ExpectedReply::Parsed { described: false }, &["12DCZ", "12IZ"]),
            (bound(false), &["2DDCZ", "2CZ"]),
            (bound(true), &["2TDCZ", "2nCZ"]),
            (ExpectedReply::CopyIn, &["GCZ", "NGSCZ"]),
        ] {
            for reply in replies {
                assert_eq!(follow(asked, reply), Ok(ExpectedReply::Nothing), "{asked:?}: {reply}");
            }
        }
    }

    #[test]
    fn what_does_not_belong_to_what_was_asked_is_refused() {
        for (asked, replies) in [
            (ExpectedReply::Nothing, ["Z", "C", "T", "D", "1", "d", "R", "K", "v", "G"].as_slice()),
            (
                ExpectedReply::Result,
                &["Z", "D", "1", "2", "n", "s", "t", "3", "d", "c", "TDCZZ", "CD", "R"],
            ),
            (
                ExpectedReply::Parsed { described: false },
                &["2", "11", "12T", "12n", "12CC", "12CD", "12DZ", "Z"],
            ),
            (ExpectedReply::Bound { described: true }, &["2D", "2C", "2TT", "2nT", "1"]),
            (ExpectedReply::CopyIn, &["C", "Z", "H", "W", "T", "GG", "GT", "GZ", "GCC"]),
        ] {
            for reply in replies {
                let found = follow(asked, reply);
                assert!(
                    matches!(found, Err(WireError::Unsolicited { .. })),
                    "{asked:?}: {reply}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn only_a_fatal_error_comes_unasked() {
        assert!(ExpectedReply::Nothing.after_error(false).is_err());
        assert_eq!(ExpectedReply::Nothing.after_error(true), Ok(ExpectedReply::Nothing));
        let failed = ExpectedReply::Rows.after_error(false).unwrap();
        assert_eq!(failed.after(b'Z'), Ok(ExpectedReply::Nothing));
        assert!(failed.after(b'C').is_err() && failed.after_error(false).is_err());
    }
}
