//! What scenario files say, what is wrong with faulty ones, and what results look like.

mod fixture;

mod accepted;
mod documents;
mod examples;
mod files;
mod hip;
mod measures;
mod problems;
mod quantities;
mod reference_pages;
mod results;
mod roaming;
