//! Shared libraries that a program needs.

use crate::{Architecture, GuestError};
use object::Endianness;
use object::elf::{DT_NEEDED, EM_AARCH64, EM_X86_64, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The distribution's name for the libraries of an architecture.
const fn triple(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Amd64 => "x86_64-linux-gnu",
        Architecture::Arm64 => "aarch64-linux-gnu",
    }
}

/// The directory of a cross compiler's libraries.
fn cross_place(architecture: Architecture) -> String {
    format!("usr/{}/lib", triple(architecture))
}

/// Directories in which libraries lie, below `root`.
fn places(root: &Path, architecture: Architecture) -> Vec<PathBuf> {
    let triple = triple(architecture);
    let places = [
        format!("lib/{triple}"),
        format!("usr/lib/{triple}"),
        cross_place(architecture),
        "lib64".into(),
        "usr/lib64".into(),
        "lib".into(),
        "usr/lib".into(),
    ];
    places.map(|place| root.join(place)).into()
}

/// A program's interpreter and all libraries that it needs, each with the path that the guest has it at.
pub(crate) fn needed_by(
    program: &Path,
    root: &Path,
    architecture: Architecture,
) -> Result<Vec<(PathBuf, PathBuf)>, GuestError> {
    let places = places(root, architecture);
    let cross = root.join(cross_place(architecture));
    let mut waiting = vec![program.to_owned()];
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    while let Some(file) = waiting.pop() {
        let data = fs::read(&file).map_err(GuestError::file("read", &file))?;
        let unreadable = |problem: String| GuestError::Unpackable {
            program: file.clone(),
            problem,
        };
        // A script needs its interpreter, whom the image's maker names.
        if data.starts_with(b"#!") {
            continue;
        }
        let wants = read(&data).map_err(|error| unreadable(error.to_string()))?;
        if wants.machine != machine(architecture) {
            let name = architecture.name();
            return Err(unreadable(format!(
                "it is for another processor, and the kernel is for {name}"
            )));
        }
        if let Some(interpreter) = wants.interpreter {
            let there = root.join(interpreter.strip_prefix("/").unwrap_or(&interpreter));
            // Where the library is another architecture's, it lies beside the others.
            let there = if there.exists() {
                there
            } else {
                let name = interpreter.file_name().unwrap_or_default();
                let all = places.iter().map(|place| place.join(name));
                all.into_iter()
                    .find(|path| is_for(path, architecture))
                    .unwrap_or(there)
            };
            if seen.insert(interpreter.clone()) {
                found.push((interpreter, there));
            }
        }
        for name in wants.libraries {
            if !seen.insert(PathBuf::from(&name)) {
                continue;
            }
            let own = wants
                .run_path
                .iter()
                .chain(&places)
                .map(|place| place.join(&name));
            let Some(library) = own.into_iter().find(|path| is_for(path, architecture)) else {
                let lack = format!("its library {name} is not found{}", remedy(architecture));
                return Err(unreadable(lack));
            };
            // The guest's dynamic linker does not look where a cross compiler has its libraries.
            let is_cross = library.parent().is_some_and(|place| place == cross);
            let in_guest = match library.strip_prefix(root) {
                Ok(below) if root == Path::new("/") && !is_cross => Path::new("/").join(below),
                _ => Path::new("/lib").join(triple(architecture)).join(&name),
            };
            found.push((in_guest, library.clone()));
            waiting.push(library);
        }
    }
    Ok(found)
}

/// Words on where the libraries of another architecture come from.
fn remedy(architecture: Architecture) -> &'static str {
    match architecture {
        same if Architecture::HOST == Some(same) => "",
        Architecture::Amd64 => {
            ": on Debian, `apt-get install libc6-amd64-cross libgcc-s1-amd64-cross`"
        }
        Architecture::Arm64 => {
            ": on Debian, `apt-get install libc6-arm64-cross libgcc-s1-arm64-cross`"
        }
    }
}

/// The processor in an ELF header.
const fn machine(architecture: Architecture) -> u16 {
    match architecture {
        Architecture::Amd64 => EM_X86_64,
        Architecture::Arm64 => EM_AARCH64,
    }
}

/// True if there is an ELF file at `path`, and for this processor: elsewhere `/lib64` has the host's own libraries.
fn is_for(path: &Path, architecture: Architecture) -> bool {
    /// Place of the processor in the header.
    const MACHINE: u64 = 18;
    let mut found = [0; 2];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut found, MACHINE));
    read.is_ok() && u16::from_le_bytes(found) == machine(architecture)
}

struct Wants {
    machine: u16,
    interpreter: Option<PathBuf>,
    libraries: Vec<String>,
    run_path: Vec<PathBuf>,
}

fn read(data: &[u8]) -> object::Result<Wants> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let mut wants = Wants {
        machine: header.e_machine(endian),
        interpreter: None,
        libraries: Vec::new(),
        run_path: Vec::new(),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for segment in header.program_headers(endian, data)? {
        if segment.p_type(endian) == PT_INTERP
            && let Some(path) = segment.interpreter(endian, data)?
        {
            wants.interpreter = Some(text(path).into());
        }
    }
    let sections = header.sections(endian, data)?;
    let Some((entries, strings)) = sections.dynamic(endian, data)? else {
        return Ok(wants);
    };
    let strings = sections.strings(endian, data, strings)?;
    for entry in entries {
        use object::read::elf::Dyn;
        let tag = entry.tag32(endian).map(i64::from);
        if tag == Some(DT_NEEDED) {
            wants.libraries.push(text(entry.string(endian, strings)?));
        } else if tag == Some(object::elf::DT_RUNPATH) || tag == Some(object::elf::DT_RPATH) {
            let path = text(entry.string(endian, strings)?);
            // What is relative to the program is for programs that bring their libraries along: not followed.
            let absolute = path.split(':').filter(|place| place.starts_with('/'));
            wants.run_path.extend(absolute.map(PathBuf::from));
        }
    }
    Ok(wants)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this_program() -> PathBuf {
        std::env::current_exe().expect("it runs")
    }

    #[test]
    fn a_program_of_this_machine_finds_its_libraries() {
        let Some(host) = Architecture::HOST else {
            return outlast_skip::skip("no guests are for this architecture");
        };
        let found = needed_by(&this_program(), Path::new("/"), host).expect("it runs here");
        let is_for_host = |(_, file): &(PathBuf, PathBuf)| is_for(file, host);
        assert!(
            !found.is_empty() && found.iter().all(is_for_host),
            "{found:?}"
        );
    }

    #[test]
    fn a_program_for_another_processor_is_refused() {
        let others = Architecture::ALL
            .into_iter()
            .filter(|one| Some(*one) != Architecture::HOST);
        for other in others {
            let refused = needed_by(&this_program(), Path::new("/"), other);
            let text = refused.expect_err("it does not run there").to_string();
            assert!(text.contains("it is for another processor"), "{text}");
            assert!(text.contains(other.name()), "{text}");
        }
    }
}
