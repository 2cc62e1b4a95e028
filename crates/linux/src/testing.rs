//! What the tests of this crate share.

use crate::namespace::Namespace;

/// A namespace for a test; without one, says what is missing, and the test is to return.
pub(crate) fn fresh_namespace() -> Option<Namespace> {
    Namespace::new()
        .inspect_err(|error| outlast_skip::skip(error))
        .ok()
}
