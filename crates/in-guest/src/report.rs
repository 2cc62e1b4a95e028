//! Lines about tests in guests, in the manner of libtest.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a runner of tests talks to people"
)]

use outlast_base::time::Instant;
use outlast_guest::Kernel;
use outlast_linux::clock;
use std::time::Duration;

/// Tests that the list of the slowest has, at most.
const SLOWEST: usize = 20;
/// The beginning of a line that says which capability a test lacks.
const SKIPPED: &str = "skipped: ";

/// Result of a test.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) has_passed: bool,
    /// Guest time, unless the guest was lost.
    pub(crate) guest: Option<Duration>,
    pub(crate) real: Duration,
    pub(crate) output: String,
}

/// Everything that is told about a suite.
#[derive(Debug)]
pub(crate) struct Report {
    begun: Instant,
    shows_output: bool,
    ignored: usize,
    ended: Vec<(String, Verdict)>,
}

/// Says why nothing can be run.
pub(crate) fn trouble(error: &anyhow::Error) {
    eprintln!("in-guest: {error:#}");
}

impl Report {
    pub(crate) fn begin(kernel: &Kernel, tests: usize, shows_output: bool) -> Self {
        println!(
            "\nrunning {tests} tests, in guests with Linux {}",
            kernel.release()
        );
        Self {
            begun: clock::now(),
            shows_output,
            ignored: 0,
            ended: Vec::new(),
        }
    }

    /// Says how long it took until there was a guest to go on from.
    pub(crate) fn ready(&self, after: Duration) {
        println!("a guest is ready after {:.1} s", after.as_secs_f64());
    }

    pub(crate) fn ignored(&mut self, test: &str) {
        self.ignored += 1;
        println!("test {test} ... ignored");
    }

    /// Tells of one test.
    pub(crate) fn ended(&mut self, test: &str, verdict: Verdict) {
        let word = if verdict.has_passed { "ok" } else { "FAILED" };
        println!("test {test} ... {word} ({})", verdict.times());
        if self.shows_output {
            print!("{}", verdict.output);
        } else {
            let mut lines = verdict.output.lines();
            if let Some(skipped) = lines.find(|line| line.starts_with(SKIPPED)) {
                println!("{skipped}");
            }
        }
        self.ended.push((test.to_owned(), verdict));
    }

    /// Tells of the failures, the slowest and the sum; true if nothing has failed.
    pub(crate) fn end(&mut self) -> bool {
        self.ended.sort_by(|one, other| one.0.cmp(&other.0));
        let failed: Vec<_> = self
            .ended
            .iter()
            .filter(|(_, verdict)| !verdict.has_passed)
            .collect();
        if !failed.is_empty() {
            println!("\nfailures:\n");
            for (test, verdict) in &failed {
                println!("---- {test} ----\n{}", verdict.output);
            }
            println!("failures:");
            for (test, _) in &failed {
                println!("    {test}");
            }
        }
        let mut slowest: Vec<_> = self.ended.iter().collect();
        slowest.sort_by_key(|(_, verdict)| std::cmp::Reverse(verdict.real));
        println!("\nslowest:");
        for (test, verdict) in slowest.into_iter().take(SLOWEST) {
            println!("    {test} ({})", verdict.times());
        }
        println!(
            "\ntest result: {}. {} passed; {} failed; {} ignored; finished in {:.2}s\n",
            if failed.is_empty() { "ok" } else { "FAILED" },
            self.ended.len() - failed.len(),
            failed.len(),
            self.ignored,
            clock::now().since(self.begun).as_secs_f64()
        );
        failed.is_empty()
    }
}

impl Verdict {
    fn times(&self) -> String {
        let real = self.real.as_secs_f64();
        match self.guest {
            Some(guest) => format!("{:.9} s in the guest, {real:.1} s", guest.as_secs_f64()),
            None => format!("guest lost, {real:.1} s"),
        }
    }
}
