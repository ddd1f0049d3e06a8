//! A library that is preloaded into a program (`LD_PRELOAD`), and shows it the virtual time of its simulated
//! cluster in place of the clock (`shaketable with --time`, on Linux with 64 bits).
//!
//! It defines functions of the C library that read a clock, that sleep, and that wait with a timeout. Without
//! `SHAKETABLE_TIME=1` in the environment, each does what the C library's does. Two more things make a
//! program repeat: with `SHAKETABLE_RANDOM`, functions that draw random numbers take them from the seed
//! ([`chance`]); if the cluster lets threads run one at a time, those that wait for another thread go on in
//! turn ([`turns`]).
//!
//! It is a library of its own, and not a part of `libfdb_c.so`: that has the functions of the same names of
//! the simulator's runtime, for itself. And whoever links `libfdb_c.so` must not get another clock by that.
//! The code of `libfdb_c.so` never calls the functions here: what it uses of the clock are the functions of
//! the runtime, which find the C library's, and system calls ([`futex`] says what it waits with).
//!
//! `libfdb_c.so` finds this library, and not the reverse, because many languages load it in a way that hides
//! it ([`cluster`]). Before the program has asked the cluster for something, and after the cluster has ended,
//! the clock stands still, and what sleeps or waits with a timeout does so in real time; its end moves the
//! clock by as much ([`clock`]).
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod chance;
mod clock;
mod cluster;
mod descriptors;
mod futex;
mod locks;
mod random;
mod real;
mod sleep;
mod threads;
mod turns;
mod wait;
