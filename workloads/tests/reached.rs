//! Every public function of every layer is called by an operation of its workload.
//!
//! Both are read from the sources, so that a new function cannot be missed: the inherent functions of the
//! types that a layer exports and its free functions, and the names that follow a dot or a path in the code
//! of the workload's operations. That operations of each kind are done under faults is what every sweep
//! demands of its workload: one that is never done makes the sweep vacuous.

mod surface;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};
use surface::{Function, functions};

/// The layers that have a workload with another name, and that workload.
const WORKLOADS_OF: [(&str, &str); 2] = [("once", "session"), ("blob", "upload")];

/// Public functions that no operation can call, each with the reason. Paths are as in [`Function::path`].
const EXCEPTIONS: &[(&str, &str)] = &[("queue::Queue::subspace", "returns the location of the layer")];

/// Public functions that operations reach through another one, each with a function that calls it, directly
/// or through private ones, and that an operation calls.
const INNER: &[(&str, &str)] = &[
    ("directory::Node::children", "directory::Directories::list"),
    ("directory::Path::join", "directory::Directories::rename"),
    ("document::Id::draw", "document::Documents::identify"),
    ("document::Id::of", "document::Documents::identify"),
    ("once::Session::apply_step", "staged_queue::StagedQueue::start_dequeue"),
    ("once::Session::begun", "staged_queue::StagedQueue::wait"),
    ("once::Session::finish", "staged_queue::StagedQueue::wait"),
    ("once::Session::note_state", "staged_queue::StagedQueue::wait"),
    ("once::Session::unfinished", "staged_queue::StagedQueue::wait"),
    ("priority_queue::PriorityQueue::peek", "priority_queue::PriorityQueue::pop"),
    ("scheduling::Keys::attendances_of", "scheduling::Scheduling::classes_of"),
    ("scheduling::Keys::class_of_course", "scheduling::Scheduling::available_classes"),
    ("scheduling::check_name", "scheduling::Scheduling::add_class"),
    ("scheduling::class_names", "scheduling::Scheduling::init_catalogue"),
    ("scheduling::pack_seats", "scheduling::Scheduling::add_class"),
    ("scheduling::unpack_seats", "scheduling::Scheduling::available_classes"),
    ("staged_queue::Registered::request", "staged_queue::StagedQueue::start_dequeue"),
    ("staged_queue::StagedQueue::fulfil_all", "staged_queue::StagedQueue::wait"),
];

/// The files of a workload that its operations do not run: models, judges and planted bugs.
const NOT_OPERATIONS: [&str; 9] =
    ["model", "planted", "stored", "judge", "faulty", "as_printed", "tests", "documents", "bounds"];

/// The code of the sources of a folder, without comments and tests.
fn code(folder: &Path) -> String {
    let Ok(files) = fs::read_dir(folder) else { return String::new() };
    let files = files.map(|file| file.expect("a file").path());
    let runs = |path: &PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        path.extension().is_some_and(|e| e == "rs") && !NOT_OPERATIONS.contains(&stem)
    };
    let text = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(&text);
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    };
    files.filter(runs).map(text).collect()
}

/// The code of the operations on a layer.
fn operations(layer: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let groups = ["containers", "queues", "records", "tables"].map(|group| root.join(group).join("src"));
    let others = WORKLOADS_OF.iter().filter(|(of, _)| *of == layer).map(|(_, workload)| *workload);
    let workloads = others.chain([layer]);
    workloads.flat_map(|workload| groups.iter().map(move |group| code(&group.join(workload)))).collect()
}

/// Whether code names a function: after a dot or a path, and alone if it belongs to no type.
fn names(code: &str, function: &Function) -> bool {
    let (of, name) = function.path.rsplit_once("::").expect("a path");
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + name.len()..]);
        let is_call = after.starts_with(['(', ')', ',']) || after.starts_with("::<");
        let is_path = before.ends_with("::") || before.ends_with('.');
        let is_free = of == function.layer && !before.ends_with("fn ") && !before.ends_with(is_word);
        is_call && (is_path || is_free)
    })
}

#[test]
fn every_public_function_is_called_by_an_operation() {
    let functions = functions();
    assert!(functions.len() > 200, "only {} public functions were found", functions.len());
    let is_idle = |function: &&Function| !names(&operations(&function.layer), function);
    let idle: BTreeSet<&str> = functions.iter().filter(is_idle).map(|function| &function.path[..]).collect();
    let exempt: BTreeSet<&str> = EXCEPTIONS.iter().chain(INNER).map(|(path, _)| *path).collect();
    let gaps: Vec<_> = idle.difference(&exempt).collect();
    assert!(gaps.is_empty(), "no operation calls these: {gaps:#?}");
    let stale: Vec<_> = exempt.difference(&idle).collect();
    assert!(stale.is_empty(), "these are called, or do not exist, and need no exception: {stale:#?}");
    let find = |path: &str| functions.iter().find(|function| function.path == path);
    for (inner, outer) in INNER {
        let (function, caller) = (find(inner).expect("it is idle"), find(outer));
        let caller = caller.unwrap_or_else(|| panic!("{outer}, which calls {inner}, does not exist"));
        assert!(!idle.contains(outer), "no operation calls {outer}, which calls {inner}");
        let layer = code(&surface::layers()[&caller.layer]);
        assert!(names(&layer, function), "{} does not call {inner}", caller.layer);
    }
}

#[test]
fn calls_are_found_in_source() {
    let named =
        |code: &str, path: &str| names(code, &Function { layer: "l".to_owned(), path: format!("l::{path}") });
    for code in ["a.get(1)", "T::get(a)", "map(T::get)", "T::get::<u8>(a)"] {
        assert!(named(code, "T::get"), "{code}");
    }
    assert!(named("let a = get(1)", "get"));
    for code in ["get(1)", "a.get_all(1)", "a.forget(1)", "a.get", "fn get(a: u8)"] {
        assert!(!named(code, "T::get"), "{code}");
    }
    for code in ["fn get(a: u8)", "forget(1)"] {
        assert!(!named(code, "get"), "{code}");
    }
}
