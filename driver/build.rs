//! Links the library so that it exports FoundationDB's functions and nothing else, and makes programs in Rust
//! that want FoundationDB's library link with this crate in its place.

use std::{env, fs, path::PathBuf};

/// An archive without members.
const EMPTY_ARCHIVE: &str = "!<arch>\n";

/// `foundationdb-sys` makes the linker look for a library `fdb_c`. A program that has this crate has its
/// functions already: what the linker finds is empty.
fn stand_in_for_the_library() {
    let Some(folder) = env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    let archive = folder.join("libfdb_c.a");
    if let Err(error) = fs::write(&archive, EMPTY_ARCHIVE) {
        println!("cargo::error=cannot write {}: {error}", archive.display());
    }
    println!("cargo::rustc-link-search=native={}", folder.display());
}

fn main() {
    stand_in_for_the_library();
    println!("cargo::rerun-if-changed=build.rs");
    // For tests that ask cargo about packages.
    println!("cargo::rustc-env=DRIVER_TARGET={}", env::var("TARGET").unwrap_or_default());
    // The simulator's runtime defines functions of the C library, such as `clock_gettime` and `getrandom`.
    // They must not replace those of the program that loads this library. They come from archives; this
    // crate's own functions do not.
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
        // The name that FoundationDB's library has: programs that are linked with either find the other.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfdb_c.so");
    }
}
