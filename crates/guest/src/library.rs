//! Shared libraries that a program needs.

use crate::{Architecture, GuestError};
use object::Endianness;
use object::elf::{DT_NEEDED, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories in which the dynamic linker looks, below `root`.
fn places(root: &Path, architecture: Architecture) -> Vec<PathBuf> {
    let triple = match architecture {
        Architecture::Amd64 => "x86_64-linux-gnu",
        Architecture::Arm64 => "aarch64-linux-gnu",
    };
    let places = [
        format!("lib/{triple}"),
        format!("usr/lib/{triple}"),
        format!("usr/{triple}/lib"),
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
        if let Some(interpreter) = wants.interpreter {
            let there = root.join(interpreter.strip_prefix("/").unwrap_or(&interpreter));
            // Where the library is another architecture's, it lies beside the others.
            let there = if there.exists() {
                there
            } else {
                let name = interpreter.file_name().unwrap_or_default();
                let all = places.iter().map(|place| place.join(name));
                all.into_iter().find(|path| path.exists()).unwrap_or(there)
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
            let Some(library) = own.into_iter().find(|path| path.exists()) else {
                return Err(unreadable(format!("its library {name} is not found")));
            };
            let triple = &places[0];
            let in_guest = match library.strip_prefix(root) {
                Ok(below) if root == Path::new("/") => Path::new("/").join(below),
                _ => Path::new("/")
                    .join(triple.strip_prefix(root).unwrap_or(triple))
                    .join(&name),
            };
            found.push((in_guest, library.clone()));
            waiting.push(library);
        }
    }
    Ok(found)
}

struct Wants {
    interpreter: Option<PathBuf>,
    libraries: Vec<String>,
    run_path: Vec<PathBuf>,
}

fn read(data: &[u8]) -> object::Result<Wants> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let mut wants = Wants {
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
