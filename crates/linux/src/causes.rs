//! One-line texts of the errors of the kernel's program loader.

use std::error::Error;

/// Stands between a loader's error and the verifier's log of it.
const LOG: &str = "Verifier output: ";
/// The verifier's last lines that are shown at most.
const MOST_LINES: usize = 3;

/// `error` with its causes, in one line: the first line of each, and of a verifier's log the reason for the refusal.
pub(crate) fn in_one_line(error: &dyn Error) -> String {
    let mut text = without_length(&error.to_string());
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&without_length(&error.to_string()));
        cause = error.source();
    }
    text
}

fn without_length(whole: &str) -> String {
    let Some((head, log)) = whole.split_once(LOG) else {
        return whole.lines().next().unwrap_or_default().to_owned();
    };
    match reason(log) {
        Some(reason) => format!("{head}{LOG}{reason}"),
        None => head.trim_end_matches(['.', ' ']).to_owned(),
    }
}

/// The reason for a refusal: the last lines of the verifier's log without its statistics, and the instruction before.
fn reason(log: &str) -> Option<String> {
    let mut lines = log
        .lines()
        .rev()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !is_statistic(line));
    let mut shown = Vec::new();
    for line in lines.by_ref() {
        let instruction = instruction(line);
        if instruction.is_none() && is_trace(line) {
            break;
        }
        shown.push(instruction.unwrap_or(line));
        if instruction.is_some() || shown.len() == MOST_LINES {
            break;
        }
    }
    shown.reverse();
    (!shown.is_empty()).then(|| shown.join("; "))
}

/// Lines behind the reason: "processed 264 insns (limit 1000000) ...".
fn is_statistic(line: &str) -> bool {
    let of_verifier = ["processed ", "verification time ", "stack depth "];
    of_verifier.iter().any(|begin| line.starts_with(begin))
}

/// An instruction without the registers that the verifier writes behind it.
fn instruction(line: &str) -> Option<&str> {
    let (number, rest) = line.split_once(": (")?;
    let is_one = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let end = line.len() - rest.split_once(';').map_or(0, |(_, state)| state.len() + 1);
    is_one.then(|| line[..end].trim_end())
}

/// Lines that tell the way to the refusal: sources, states of registers, branches, calls.
fn is_trace(line: &str) -> bool {
    let is_state = || {
        let name = line.split(['=', '_', ' ']).next().unwrap_or_default();
        let number = name.strip_prefix('R').unwrap_or_default();
        let follows = line[name.len()..].starts_with(['=', '_']);
        follows && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let begins = [
        ";",
        "from ",
        "frame",
        "last_idx ",
        "mark_precise",
        "regs=",
        "parent ",
        "propagating ",
        "caller:",
        "callee:",
        "returning from callee:",
        "to caller at ",
        "Func#",
        "Validating ",
        "reg type unsupported for arg#",
    ];
    begins.iter().any(|begin| line.starts_with(begin))
        || line.starts_with(|first: char| first.is_ascii_digit())
        || is_state()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot load a program")]
    struct Loading(#[source] Refused);

    /// Reads as `ProgramError::LoadError` does, which nobody but the loader can make.
    #[derive(Debug, thiserror::Error)]
    #[error("the BPF_PROG_LOAD syscall returned {0}. Verifier output: {1}")]
    struct Refused(io::Error, String);

    fn refused(number: i32, log: &str) -> String {
        let error = io::Error::from_raw_os_error(number);
        in_one_line(&Loading(Refused(error, log.to_owned())))
    }

    #[test]
    fn linux_6_12_names_the_register() {
        let log = "\
0: R1=ctx() R10=fp0
; int to_link(struct __sk_buff *skb)
0: (bf) r6 = r1                       ; R1=ctx() R6_w=ctx()
5421: (07) r3 += 32                   ; frame2: R3_w=map_value(map=RECORDER,ks=4,vs=2048,off=32)
5422: (85) call bpf_skb_load_bytes#26
R4 invalid zero-sized read: u64=[0,2015]
verification time 75385 usec
stack depth 152+0+0+0+0+0+0+0+0+0+0+0+0+0+0+0+0+0+0+0+0+0+0+64+16+0
processed 879 insns (limit 1000000) max_states_per_insn 0 total_states 72 peak_states 72 mark_read 47
";
        assert_eq!(
            refused(libc::EACCES, log),
            "cannot load a program: the BPF_PROG_LOAD syscall returned Permission denied (os error 13). \
             Verifier output: 5422: (85) call bpf_skb_load_bytes#26; R4 invalid zero-sized read: u64=[0,2015]"
        );
    }

    #[test]
    fn linux_6_1_gives_up_a_long_program() {
        let log = "\
; option.value[1] = rule->option[1];
673: (73) *(u8 *)(r10 -5) = r1        ; R1_w=scalar(umax=255,var_off=(0x0; 0xff)) R10=fp0 fp-8=????mmmm
; option.value[1] = rule->option[1];
675: (07) r2 += -8                    ; R2_w=fp-8
676: (79) r6 = *(u64 *)(r10 -88)      ; R6_w=ctx(off=0,imm=0) R10=fp0
BPF program is too large. Processed 1000001 insn
verification time 26256192 usec
stack depth 112
processed 1000001 insns (limit 1000000) max_states_per_insn 43 total_states 16095 peak_states 1357 mark_read 39
";
        let told = refused(libc::E2BIG, log);
        let end =
            "676: (79) r6 = *(u64 *)(r10 -88); BPF program is too large. Processed 1000001 insn";
        assert!(told.ends_with(end), "{told}");
    }

    #[test]
    fn the_call_of_a_function_has_two_lines() {
        let log = "\
arg#0 reference type('UNKNOWN ') size cannot be determined: -22
Func#1 ('is_below') is global and assumed valid.
10: (85) call pc+12
R1 is not a scalar
Caller passes invalid args into func#1 ('is_below')
processed 11 insns (limit 1000000) max_states_per_insn 0 total_states 1 peak_states 1 mark_read 0
";
        let told = refused(libc::EINVAL, log);
        let end = "10: (85) call pc+12; R1 is not a scalar; Caller passes invalid args into func#1 ('is_below')";
        assert!(told.ends_with(end), "{told}");
    }

    #[test]
    fn states_and_traces_are_no_reason() {
        let log = "\
from 46 to 51: R0_w=scalar() R10=fp0
R0_w=scalar() R6=ctx(off=0,imm=0)
reg type unsupported for arg#3 function read_options#173
combined stack size of 5 calls is 544. Too large
verification time 321414 usec
";
        let told = refused(libc::EACCES, log);
        let end = "Verifier output: combined stack size of 5 calls is 544. Too large";
        assert!(told.ends_with(end), "{told}");
    }

    #[test]
    fn without_a_log_nothing_is_said_of_one() {
        assert_eq!(
            refused(libc::EPERM, ""),
            "cannot load a program: the BPF_PROG_LOAD syscall returned Operation not permitted (os error 1)"
        );
    }
}
