//! Links the library so that it exports FoundationDB's functions and nothing else.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // For tests that ask cargo about packages.
    println!("cargo::rustc-env=DRIVER_TARGET={}", std::env::var("TARGET").unwrap_or_default());
    // The simulator's runtime defines functions of the C library, such as `clock_gettime` and `getrandom`. They must not
    // replace those of the program that loads this library. They come from archives; this crate's own functions do not.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    }
}
