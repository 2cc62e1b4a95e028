//! Captures without an outage.
