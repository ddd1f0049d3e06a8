//! The list of the workloads agrees with the folders, and names are unique.

use shaketable_sim::config::ClusterBug;
use shaketable_workloads::catalogue::catalogue;
use std::{fs, path::Path};

#[test]
fn names_are_unique_and_every_folder_is_listed() {
    let listed: Vec<_> = catalogue().iter().map(|e| e.name()).collect();
    let mut unique = listed.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), listed.len());
    let mut folders = 0;
    for sources in ["src/catalogue", "containers/src", "queues/src", "records/src", "tables/src"] {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join(sources);
        for file in fs::read_dir(&sources).expect("workloads") {
            let path = file.expect("a file of it").path();
            let name = path.file_name().and_then(|s| s.to_str()).expect("a name");
            if path.is_dir() && !["record_shared", "models"].contains(&name) {
                assert!(listed.contains(&name), "{name} is not in the catalogue");
                folders += 1;
            }
        }
    }
    assert_eq!(folders, listed.len(), "each workload has a folder");
}

#[test]
fn bugs_have_unique_names_within_their_workload() {
    for entry in catalogue() {
        let mut names: Vec<_> = entry.bugs().iter().map(|b| b.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), entry.bugs().len(), "{}", entry.name());
        for name in names {
            assert_eq!(ClusterBug::named(name), None, "{name} of {} is a bug of the cluster", entry.name());
        }
    }
}
