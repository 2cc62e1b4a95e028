//! Jobs for a guest, and what comes of them.

use crate::GuestError;
use outlast_base::time::Duration;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A program for a guest to run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Job {
    /// The program's path in the guest, and its arguments.
    pub command: Vec<String>,
    /// Variables of its environment, beside `PATH`, `HOME` and `LANG`.
    pub environment: Vec<(String, String)>,
    /// The directory that it runs in; made if it is not there.
    pub directory: PathBuf,
    /// Files that are written first.
    #[serde(skip)]
    pub files: Vec<JobFile>,
    /// Files, or directories with all that is in them, that come back afterwards if they are there.
    pub collect: Vec<PathBuf>,
    /// Time that passes in the guest before the program starts, so that runs of one scenario meet the kernel's timers at
    /// different moments.
    pub start_after_ns: u64,
    /// Guest time after which the program is killed; zero: never.
    pub deadline_ns: u64,
}

/// A file of a job.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JobFile {
    /// Its path in the guest.
    pub path: PathBuf,
    /// Its permissions.
    pub mode: u32,
    /// Its content.
    pub data: Vec<u8>,
}

/// The end of a job's program.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It exited with this code.
    Exited(i32),
    /// A signal of this number killed it.
    Killed(i32),
    /// Its deadline passed, and it was killed.
    Overdue,
    /// It could not be started, for this reason.
    NotStarted(String),
}

/// Result of a job.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Outcome {
    /// End of its program.
    pub ended: Ended,
    /// Guest time that it ran for.
    pub elapsed_ns: u64,
    /// Bytes of its standard output.
    #[serde(skip)]
    pub output: Vec<u8>,
    /// Bytes of its standard error.
    #[serde(skip)]
    pub errors: Vec<u8>,
    /// The files that were to be collected, in the order of their paths.
    #[serde(skip)]
    pub files: Vec<JobFile>,
}

impl Outcome {
    /// Guest time that the program ran for.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed_ns)
    }
}

/// The head of a message: what it says, and the files behind it.
#[derive(Deserialize, Serialize)]
struct Head<T> {
    about: T,
    files: Vec<HeadFile>,
}

#[derive(Deserialize, Serialize)]
struct HeadFile {
    path: PathBuf,
    mode: u32,
    length: usize,
}

/// The length of the head, in little-endian order, the head as JSON, and the files' contents.
fn encode<T: Serialize>(about: T, files: &[JobFile]) -> Result<Vec<u8>, GuestError> {
    let head = Head {
        about,
        files: files
            .iter()
            .map(|file| HeadFile {
                path: file.path.clone(),
                mode: file.mode,
                length: file.data.len(),
            })
            .collect(),
    };
    let head = serde_json::to_vec(&head).map_err(|error| GuestError::Job(error.to_string()))?;
    let mut message = (head.len() as u64).to_le_bytes().to_vec();
    message.extend(head);
    for file in files {
        message.extend(&file.data);
    }
    Ok(message)
}

fn decode<T: DeserializeOwned>(message: &[u8]) -> Result<(T, Vec<JobFile>), GuestError> {
    let broken = |problem: &str| GuestError::Job(problem.to_owned());
    let (length, rest) = message
        .split_first_chunk()
        .ok_or_else(|| broken("it is too short"))?;
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (head, mut rest) = rest
        .split_at_checked(length)
        .ok_or_else(|| broken("its head is cut off"))?;
    let head: Head<T> = serde_json::from_slice(head).map_err(|error| broken(&error.to_string()))?;
    let mut files = Vec::with_capacity(head.files.len());
    for file in head.files {
        let (data, behind) = rest
            .split_at_checked(file.length)
            .ok_or_else(|| broken("a file is cut off"))?;
        rest = behind;
        files.push(JobFile {
            path: file.path,
            mode: file.mode,
            data: data.to_vec(),
        });
    }
    Ok((head.about, files))
}

impl Job {
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, GuestError> {
        encode(self, &self.files)
    }

    pub(crate) fn from_bytes(message: &[u8]) -> Result<Self, GuestError> {
        let (job, files) = decode::<Self>(message)?;
        Ok(Self { files, ..job })
    }
}

impl Outcome {
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, GuestError> {
        let stream = |data: &Vec<u8>| JobFile {
            path: PathBuf::new(),
            mode: 0,
            data: data.clone(),
        };
        let mut files = vec![stream(&self.output), stream(&self.errors)];
        files.extend(self.files.iter().cloned());
        encode(self, &files)
    }

    pub(crate) fn from_bytes(message: &[u8]) -> Result<Self, GuestError> {
        let (outcome, files) = decode::<Self>(message)?;
        let mut files = files.into_iter();
        let mut stream = || {
            files
                .next()
                .map(|file| file.data)
                .ok_or_else(|| GuestError::Job("it lacks a stream".into()))
        };
        Ok(Self {
            output: stream()?,
            errors: stream()?,
            files: files.collect(),
            ..outcome
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_outcomes_are_read_as_they_were_written() {
        let file = JobFile {
            path: "/a".into(),
            mode: 0o644,
            data: vec![0, 255, 7],
        };
        let job = Job {
            command: vec!["/x".into(), "y z".into()],
            files: vec![file.clone()],
            ..Job::default()
        };
        let read = Job::from_bytes(&job.to_bytes().unwrap()).unwrap();
        assert_eq!((read.command, read.files), (job.command, job.files));
        let outcome = Outcome {
            ended: Ended::Killed(9),
            elapsed_ns: 3,
            output: b"out".into(),
            errors: Vec::new(),
            files: vec![file],
        };
        let bytes = outcome.to_bytes().unwrap();
        let read = Outcome::from_bytes(&bytes).unwrap();
        assert_eq!(
            (read.ended, read.output, read.files),
            (outcome.ended, outcome.output, outcome.files)
        );
        for end in 0..bytes.len() {
            assert!(Outcome::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
        }
    }
}
