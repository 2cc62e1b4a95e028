//! Packaged kernels in an emulated machine, in virtual time.
//!
//! The machine's clock counts its processor's instructions: while the guest idles, time jumps to its next timer, and
//! what else the host does cannot be seen from inside. The same job on the same state ends with the same bytes.
//!
//! A [`Kernel`] is a distribution's package, unpacked. An [`Image`] is the file system that it boots with: the
//! program that is its init process (any that calls [`init::run`]), further programs with their libraries, and modules.
//! [`State::of`] boots both once and saves the machine; [`State::run`] carries a [`Job`] out from there.
#![forbid(unsafe_code)]

mod archive;
mod error;
mod image;
pub mod init;
mod job;
mod kernel;
mod library;
mod machine;
mod mailbox;
mod modules;
mod monitor;
pub mod packages;
mod place;
mod processor;
mod state;

pub use error::GuestError;
pub use image::Image;
pub use job::{Ended, Job, JobFile, Outcome};
pub use kernel::{Architecture, Kernel};
pub use state::{Limits, State};
