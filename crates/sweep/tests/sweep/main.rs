//! What sweep files mean, what is wrong with faulty ones, and what comes out.

mod fixture;

mod bundles;
mod examples;
mod grid;
mod interruptions;
mod problems;
mod runners;
mod seeds;
mod tables;
