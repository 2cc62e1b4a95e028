//! Guests that run this very program.

use crate::failure::Failure;
use anyhow::Context;
use outlast_guest::{Architecture, GuestError, Image, Kernel, State};
use std::path::{Path, PathBuf};

/// The shell that workloads of a scenario may name.
const SHELL: &str = "/bin/sh";

/// This program, as a guest's init process and as what runs in it.
pub(crate) fn this_program() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().and_then(std::fs::canonicalize);
    Ok(program.context("cannot find this program's file")?)
}

/// The state of a guest with this program on the kernel in `directory`.
pub(crate) fn state(
    directory: &Path,
    image: impl FnOnce(Image) -> Image,
) -> Result<State, Failure> {
    let kernel = Kernel::open(directory)?;
    if Architecture::HOST != Some(kernel.architecture()) {
        return Err(Failure::Usage(format!(
            "{} is a kernel for {}, and this program is not: name one that `outlast kernels list` shows",
            directory.display(),
            kernel.architecture().name()
        )));
    }
    let image = image(Image::new(&this_program()?));
    Ok(State::of(&kernel, &image)?)
}

/// Adds the shell, and the program `name` if it is found on the host.
pub(crate) fn with_command(image: Image, name: Option<&str>) -> Image {
    let image = image.with_program_at(SHELL.into(), Path::new(SHELL));
    let Some(name) = name else { return image };
    let found = match name.contains('/') {
        true => Some(PathBuf::from(name)),
        false => std::env::var_os("PATH").and_then(|places| {
            let mut places = std::env::split_paths(&places).map(|place| place.join(name));
            places.find(|path| path.is_file())
        }),
    };
    match found {
        Some(program) => image.with_program(&program),
        None => image,
    }
}

impl From<GuestError> for Failure {
    fn from(error: GuestError) -> Self {
        match error {
            GuestError::Kernel { .. } | GuestError::Package(_) => Self::Usage(error.to_string()),
            error if error.is_missing_capability() => Self::Shown(error.to_string()),
            error => Self::Run(error.into()),
        }
    }
}
