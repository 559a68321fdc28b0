//! Who a cluster's server lets in from other hosts.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;

use pgdyno_exec::{ExecContext, Executor as _};

use super::{Cluster, ClusterError};

impl Cluster {
    /// Returns where the server listens for other hosts, if it does.
    pub fn listens_on(&self) -> Option<SocketAddr> {
        self.spec.listen.map(|address| SocketAddr::new(address, self.port))
    }

    /// Lets in connections from `addresses` and from this machine, and no others, on a server that
    /// listens for other hosts. Those that are open stay. Does nothing if these are let in already.
    ///
    /// # Errors
    /// [`ClusterError`]: the server does not take it over.
    pub fn admit(
        &self,
        addresses: &BTreeSet<IpAddr>,
        stop: &AtomicBool,
    ) -> Result<(), ClusterError> {
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        if admitted.as_ref() == Some(addresses) {
            return Ok(());
        }
        // After a failure it is not known whom the server lets in.
        *admitted = None;
        let with_ours = addresses.iter().copied().chain(self.spec.listen).collect();
        let step = self.spec.writing_access(&with_ours);
        ExecContext::new(&self.journal, stop).execute(&step)?;
        self.reload(stop)?;
        *admitted = Some(addresses.clone());
        Ok(())
    }
}
