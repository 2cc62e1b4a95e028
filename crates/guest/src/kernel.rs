//! A distribution's kernel, unpacked.

use crate::GuestError;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// A kernel and its modules, as a package has them: `boot/vmlinuz-RELEASE` and `lib/modules/RELEASE`.
#[derive(Clone, Debug)]
pub struct Kernel {
    release: String,
    image: PathBuf,
    modules: PathBuf,
    architecture: Architecture,
}

/// The kind of processor that a kernel is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// 64-bit x86.
    Amd64,
    /// 64-bit ARM.
    Arm64,
}

impl Architecture {
    /// All architectures that guests can have.
    pub const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// The architecture that this program was compiled for, if guests can have it.
    pub const HOST: Option<Self> = if cfg!(target_arch = "x86_64") {
        Some(Self::Amd64)
    } else if cfg!(target_arch = "aarch64") {
        Some(Self::Arm64)
    } else {
        None
    };

    /// The distribution's name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// Recognises a kernel by its boot header: `HdrS` of the x86 boot protocol; the magic of arm64's image header, or
    /// that of a compressed EFI image, which the distribution has on arm64 only.
    fn of_image(image: &[u8]) -> Option<Self> {
        let at =
            |offset: usize, magic: &[u8]| image.get(offset..offset + magic.len()) == Some(magic);
        if at(0x202, b"HdrS") {
            Some(Self::Amd64)
        } else if at(0x38, b"ARMd") || at(4, b"zimg") {
            Some(Self::Arm64)
        } else {
            None
        }
    }
}

impl Kernel {
    /// The kernel that was unpacked into `directory`.
    ///
    /// # Errors
    /// When there is none, or more than one.
    pub fn open(directory: &Path) -> Result<Self, GuestError> {
        let broken = |problem: String| GuestError::Kernel {
            directory: directory.to_owned(),
            problem,
        };
        if !directory.is_dir() {
            return Err(broken("there is no such directory".into()));
        }
        let mut images = Vec::new();
        if let Ok(entries) = fs::read_dir(directory.join("boot")) {
            for entry in entries.flatten() {
                let name = entry.file_name();
                let release = name.to_str().and_then(|name| name.strip_prefix("vmlinuz-"));
                images.extend(release.map(|release| (release.to_owned(), entry.path())));
            }
        }
        let (release, image) = match images.len() {
            0 => return Err(broken("there is no kernel (boot/vmlinuz-*)".into())),
            1 => images.remove(0),
            _ => {
                images.sort();
                let releases: Vec<_> = images.into_iter().map(|(release, _)| release).collect();
                return Err(broken(format!(
                    "there is more than one kernel (boot/vmlinuz-*): {}",
                    releases.join(", ")
                )));
            }
        };
        let modules =
            ["lib/modules", "usr/lib/modules"].map(|place| directory.join(place).join(&release));
        let Some(modules) = modules.into_iter().find(|place| place.is_dir()) else {
            return Err(broken(format!(
                "there are no modules (lib/modules/{release})"
            )));
        };
        let head = fs::read(&image).map_err(GuestError::file("read", &image))?;
        let Some(architecture) = Architecture::of_image(&head) else {
            return Err(broken(format!(
                "{} is for neither amd64 nor arm64",
                image.display()
            )));
        };
        Ok(Self {
            release,
            image,
            modules,
            architecture,
        })
    }

    /// Its release, as `uname -r` tells it.
    #[must_use]
    pub fn release(&self) -> &str {
        &self.release
    }

    /// The kind of processor that it is for.
    #[must_use]
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    pub(crate) fn image(&self) -> &Path {
        &self.image
    }

    pub(crate) fn modules(&self) -> &Path {
        &self.modules
    }
}
