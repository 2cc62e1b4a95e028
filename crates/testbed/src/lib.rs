//! Hosts, gateways and links in namespaces with programs in them, for trials and live tests.
//!
//! No part of the product.
#![forbid(unsafe_code)]

pub mod site;
