//! The workloads of the catalogue: they pass, their planted bugs are caught, and what is built on runs works
//! with them. One program, because each program that contains the catalogue is large.

mod advise;
mod bugs;
mod conformance;
mod explore;
mod list;
mod passes;
mod real;
mod shrink;
