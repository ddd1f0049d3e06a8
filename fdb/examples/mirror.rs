//! The `shaketable` command with FoundationDB's client, for `scripts/mirror`. The feature `fdb` of the
//! command builds every workload again; this links the client to the workloads of the tests.

fn main() -> std::process::ExitCode {
    shaketable_workloads::command::main_on("unknown", &shaketable_fdb::Client)
}
