//! The file system that a guest boots with.

use crate::archive::Archive;
use crate::machine::Hardware;
use crate::{GuestError, Kernel, init, library, modules};
use blake3::Hasher;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Programs and files for a guest.
#[derive(Clone, Debug)]
pub struct Image {
    /// Directory of the host's below which the guest's libraries lie: another architecture has one of its own.
    root: PathBuf,
    init: PathBuf,
    programs: Vec<(PathBuf, PathBuf)>,
    files: Vec<(PathBuf, PathBuf)>,
    links: Vec<(PathBuf, String)>,
    /// Modules that are loaded before the state is saved.
    modules: Vec<String>,
    hardware: Hardware,
}

impl Image {
    /// An image whose init process is `init`, a program that calls [`init::run`] first. The guest has it at the path that the host
    /// has it at.
    #[must_use]
    pub fn new(init: &Path) -> Self {
        Self {
            root: "/".into(),
            init: init.to_owned(),
            programs: Vec::new(),
            files: Vec::new(),
            links: Vec::new(),
            modules: Vec::new(),
            hardware: Hardware::default(),
        }
    }

    /// Gives the guest so much memory instead of 1024 MiB. What the image holds is in it.
    #[must_use]
    pub fn with_memory_mib(mut self, memory_mib: u32) -> Self {
        self.hardware.memory_mib = memory_mib;
        self
    }

    /// Has an instruction take 2 to the power of `clock_shift` nanoseconds of the guest's time, instead of two nanoseconds.
    #[must_use]
    pub fn with_clock_shift(mut self, clock_shift: u32) -> Self {
        self.hardware.clock_shift = clock_shift;
        self
    }

    /// Takes libraries from below `root` instead of from the host's own.
    #[must_use]
    pub fn with_root(mut self, root: &Path) -> Self {
        root.clone_into(&mut self.root);
        self
    }

    /// Adds a program of the host's, with its libraries, at the same path.
    #[must_use]
    pub fn with_program(self, program: &Path) -> Self {
        let place = program.to_owned();
        self.with_program_at(place, program)
    }

    /// Adds a program of the host's, with its libraries, at the path `place`.
    #[must_use]
    pub fn with_program_at(mut self, place: PathBuf, program: &Path) -> Self {
        self.programs.push((place, program.to_owned()));
        self
    }

    /// Adds a file of the host's, or a directory with all that is in it, at the path `place`.
    #[must_use]
    pub fn with_file_at(mut self, place: PathBuf, file: &Path) -> Self {
        self.files.push((place, file.to_owned()));
        self
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn with_link(mut self, place: PathBuf, target: &str) -> Self {
        self.links.push((place, target.to_owned()));
        self
    }

    /// Has the guest load kernel modules before its state is saved, as far as the kernel has them. Each takes tenths of
    /// a second of the guest's time when it is asked for later, in every run.
    #[must_use]
    pub fn with_modules_loaded(mut self, names: &[&str]) -> Self {
        self.modules
            .extend(names.iter().map(|&name| name.to_owned()));
        self
    }

    /// The init process's path in the guest.
    #[must_use]
    pub fn init(&self) -> &Path {
        &self.init
    }

    pub(crate) fn hardware(&self) -> Hardware {
        self.hardware
    }

    /// Everything of the host's that it has, in the order in which it is packed.
    fn entries(&self, kernel: &Kernel) -> Result<Vec<Entry>, GuestError> {
        let mut entries = Vec::new();
        let own = (self.init.clone(), self.init.clone());
        for (place, program) in std::iter::once(&own).chain(&self.programs) {
            let libraries = library::needed_by(program, &self.root, kernel.architecture())?;
            let program = (place.clone(), program.clone());
            let all = std::iter::once(program).chain(libraries);
            entries.extend(all.map(|(place, file)| Entry {
                place,
                file,
                mode: 0o755,
            }));
        }
        for (place, file) in &self.files {
            find_all(place, file, &mut entries)?;
        }
        Ok(entries)
    }

    /// Adds all that decides what is written for `kernel` to `hasher`.
    pub(crate) fn hash(&self, kernel: &Kernel, hasher: &mut Hasher) -> Result<(), GuestError> {
        for entry in self.entries(kernel)? {
            hasher.update(format!("{:?} {:o}\n", entry.place, entry.mode).as_bytes());
            let mut file =
                File::open(&entry.file).map_err(GuestError::file("read", &entry.file))?;
            io::copy(&mut file, hasher).map_err(GuestError::file("read", &entry.file))?;
        }
        let names = (&self.links, modules::ALL, &self.modules);
        hasher.update(format!("{names:?}\n").as_bytes());
        Ok(())
    }

    /// Writes the initial file system for `kernel`.
    pub(crate) fn write(&self, kernel: &Kernel, path: &Path) -> Result<(), GuestError> {
        let out = File::create(path).map_err(GuestError::file("make", path))?;
        let mut archive = Archive::new(BufWriter::new(out));
        let failed = |source| GuestError::File {
            action: "write",
            path: path.to_owned(),
            source,
        };
        let modules = modules::closure(kernel, modules::ALL)?;
        for module in &modules {
            let place = modules::place(&module.about.name);
            archive.file(&place, 0o644, &module.data).map_err(failed)?;
        }
        let (place, index) = modules::index(&modules);
        archive.file(&place, 0o644, &index).map_err(failed)?;
        let loaded = self.modules.join("\n");
        let place = modules::place(modules::LOADED);
        archive
            .file(&place, 0o644, loaded.as_bytes())
            .map_err(failed)?;
        for entry in self.entries(kernel)? {
            let data = fs::read(&entry.file).map_err(GuestError::file("read", &entry.file))?;
            archive
                .file(&entry.place, entry.mode, &data)
                .map_err(failed)?;
        }
        let init = self.init.to_string_lossy();
        for place in [init::PATH, init::MODPROBE] {
            archive.link(Path::new(place), &init).map_err(failed)?;
        }
        for (place, target) in &self.links {
            archive.link(place, target).map_err(failed)?;
        }
        for place in [
            "/dev", "/proc", "/sys", "/run", "/tmp", "/root", "/etc", "/var/lib",
        ] {
            archive.directory(Path::new(place)).map_err(failed)?;
        }
        archive.finish().map_err(failed)?;
        Ok(())
    }
}

/// A file of the host's, and the place that the guest has it at.
struct Entry {
    place: PathBuf,
    file: PathBuf,
    mode: u32,
}

/// Finds a file, or all files of a directory.
fn find_all(place: &Path, file: &Path, entries: &mut Vec<Entry>) -> Result<(), GuestError> {
    let about = fs::metadata(file).map_err(GuestError::file("read", file))?;
    if !about.is_dir() {
        entries.push(Entry {
            place: place.to_owned(),
            file: file.to_owned(),
            mode: about.permissions().mode() & 0o777,
        });
        return Ok(());
    }
    let inside = fs::read_dir(file).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut inside = inside.map_err(GuestError::file("read", file))?;
    inside.sort_by_key(fs::DirEntry::file_name);
    for entry in inside {
        find_all(&place.join(entry.file_name()), &entry.path(), entries)?;
    }
    Ok(())
}
