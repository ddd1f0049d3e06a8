//! The header that this package has declares what FoundationDB's declares, in words of its own.

use super::build::{HEADER, Program, package};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::LazyLock,
};

/// The folder of FoundationDB's header of 7.4, in the sources of the package `foundationdb-sys` that cargo
/// has downloaded.
static FOUNDATIONDB: LazyLock<PathBuf> =
    LazyLock::new(|| package("foundationdb-sys").with_file_name("include").join("740"));

/// What is defined before the header is included: the versions at which it changes, and the others of the
/// tests.
const SELECTED: &[&[&str]] = &[
    &["FDB_API_VERSION=200"],
    &["FDB_API_VERSION=300"],
    &["FDB_API_VERSION=510"],
    &["FDB_API_VERSION=520"],
    &["FDB_API_VERSION=609"],
    &["FDB_API_VERSION=610"],
    &["FDB_API_VERSION=619"],
    &["FDB_API_VERSION=620"],
    &["FDB_API_VERSION=629"],
    &["FDB_API_VERSION=630"],
    &["FDB_API_VERSION=700"],
    &["FDB_API_VERSION=710"],
    &["FDB_API_VERSION=720"],
    &["FDB_API_VERSION=730"],
    &["FDB_API_VERSION=740"],
    &["FDB_API_VERSION=740", "FDB_INCLUDE_LEGACY_TYPES"],
];

/// C, and C++ if there is a compiler for it.
fn languages() -> Vec<&'static str> {
    let has_cpp = Command::new("c++").arg("--version").output().is_ok_and(|output| output.status.success());
    if has_cpp { vec!["c", "c++"] } else { vec!["c"] }
}

/// The words, numbers, texts and signs of a source. A line with `#pragma` is one of them.
fn tokens(text: &str) -> Vec<&str> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with('#') {
            found.extend(line.starts_with("#pragma").then_some(line));
            continue;
        }
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_letter(first) {
                rest.find(|c| !is_letter(c)).unwrap_or(rest.len())
            } else if first == '"' {
                rest[1..].find('"').expect("a text ends in its line") + 2
            } else {
                first.len_utf8()
            };
            found.push(&rest[..length]);
            rest = rest[length..].trim_start();
        }
    }
    found
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// Where the bracket that opens at `open` closes.
fn closing(tokens: &[&str], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match *token {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    panic!("a bracket stays open: {tokens:?}")
}

/// `const T` as `T const`.
fn with_const_behind(tokens: &mut [&str]) {
    for at in 0..tokens.len().saturating_sub(1) {
        let follows_type =
            at > 0 && (is_word(tokens[at - 1]) && tokens[at - 1] != "typedef" || tokens[at - 1] == "*");
        if tokens[at] == "const" && !follows_type {
            tokens.swap(at, at + 1);
        }
    }
}

/// A declaration whose parameters have no names.
fn without_names<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at];
        found.push(token);
        at += 1;
        if token != "(" {
            continue;
        }
        let end = closing(tokens, at - 1);
        let inside = &tokens[at..end];
        let is_called = at >= 2 && (is_word(tokens[at - 2]) || tokens[at - 2] == ")");
        if is_called && inside.first() != Some(&"*") {
            found.extend(parameters(inside));
        } else {
            found.extend(without_names(inside));
        }
        at = end;
    }
    found
}

/// A list of parameters without their names.
fn parameters<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut depth = 0;
    let parts = tokens.split(|token| {
        match *token {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        depth == 0 && *token == ","
    });
    for part in parts {
        let mut part = without_names(part);
        if let Some(pointer) = part.windows(2).position(|two| two == ["(", "*"]) {
            part.remove(pointer + 2);
        } else if part.len() > 1 && part.last().is_some_and(|last| is_word(last)) {
            part.pop();
        }
        found.extend(part);
        found.push(",");
    }
    found
}

/// One form for declarations that mean the same. An enumeration has one for each of its constants.
fn normal(tokens: &[&str]) -> Vec<String> {
    let body = tokens.iter().position(|token| *token == "{");
    if let (true, Some(open)) = (tokens.contains(&"enum"), body) {
        let close = tokens.iter().position(|token| *token == "}").expect("its end");
        let around = [&tokens[..=open], &tokens[close..]].concat().join(" ");
        let constants = tokens[open + 1..close].split(|token| *token == ",");
        return constants.map(|constant| format!("{around} {}", constant.concat())).collect();
    }
    let mut tokens = tokens.to_vec();
    with_const_behind(&mut tokens);
    vec![without_names(&tokens).join(" ")]
}

/// The declarations of a preprocessed source, each with its linkage, and a structure with how it is packed.
fn declarations(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let (mut linkage, mut packing, mut depth) = ("", "", 0);
    let mut open: Vec<&str> = Vec::new();
    for token in tokens(text) {
        if token.starts_with("#pragma") {
            packing = if token.contains("push") { token } else { "" };
            continue;
        }
        if depth == 0 && token == "}" {
            linkage = "";
            continue;
        }
        open.push(token);
        if open == ["extern", "\"C\"", "{"] {
            linkage = "extern \"C\"";
            open.clear();
            continue;
        }
        match token {
            "{" | "(" => depth += 1,
            "}" | ")" => depth -= 1,
            ";" if depth == 0 => {
                let is_structure = open.contains(&"struct") && open.contains(&"{");
                let packing = if is_structure { packing } else { "" };
                found.extend(normal(&open).iter().map(|one| format!("{linkage} {packing} {one}")));
                open.clear();
            }
            _ => {}
        }
    }
    assert!(
        open.is_empty() && linkage.is_empty() && packing.is_empty(),
        "what is opened is closed: {open:?}"
    );
    found
}

/// The macros of the interface, but for the newest version, which that of 8.0 has changed: each with the
/// number of its parameters (none without a list) and its body, in which parameters have numbers for names.
fn macros(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for definition in text.lines().filter_map(|line| line.strip_prefix("#define ")) {
        let (name, _) = definition.split_once(['(', ' ']).unwrap_or((definition, ""));
        let starts = ["fdb_", "FDB_", "DLLEXPORT", "WARN_UNUSED_RESULT"];
        if !starts.iter().any(|start| name.starts_with(start)) || name.starts_with("FDB_LATEST_") {
            continue;
        }
        let rest = &definition[name.len()..];
        let (list, body) = match rest.strip_prefix('(') {
            Some(rest) => rest.split_once(')').expect("the list ends"),
            None => ("", rest),
        };
        let list: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let body: Vec<String> = tokens(body)
            .into_iter()
            .map(|token| match list.iter().position(|parameter| *parameter == token) {
                Some(place) => format!("${place}"),
                None => token.to_owned(),
            })
            .collect();
        let count = rest.starts_with('(').then_some(list.len());
        found.insert(format!("{name} {count:?} {}", body.join(" ")));
    }
    found
}

/// Runs the preprocessor on the header of a folder.
fn preprocessed(folder: &Path, language: &str, defined: &[&str]) -> Output {
    Command::new("cc")
        .args(["-E", "-P", "-dD", "-x", language, "-include"])
        .arg(folder.join("fdb_c.h"))
        .args(defined.iter().map(|name| format!("-D{name}")))
        .arg("/dev/null")
        .output()
        .expect("there is a C compiler")
}

/// What the header of a folder says to a program.
fn said(folder: &Path, language: &str, defined: &[&str]) -> String {
    let output = preprocessed(folder, language, defined);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the header is text")
}

fn must_be_same(ours: &BTreeSet<String>, theirs: &BTreeSet<String>, case: &str) {
    let more: Vec<_> = ours.difference(theirs).collect();
    let missing: Vec<_> = theirs.difference(ours).collect();
    assert!(more.is_empty() && missing.is_empty(), "{case}: {more:#?} in place of {missing:#?}");
}

#[test]
fn the_header_declares_what_that_of_foundationdb_declares() {
    for language in languages() {
        for defined in SELECTED {
            let (ours, theirs) = (said(&HEADER, language, defined), said(&FOUNDATIONDB, language, defined));
            let (here, there) = (declarations(&ours), declarations(&theirs));
            // About 150 constants and 100 functions.
            assert!(there.len() > 250, "{}", there.len());
            must_be_same(&here, &there, &format!("{language} {defined:?}"));
            must_be_same(&macros(&ours), &macros(&theirs), &format!("{language} {defined:?}"));
        }
    }
}

/// Parts of the declarations that a program of 8.0 has and one of 7.4 has not.
const ADDED: &[&str] = &[
    "_cdc_",
    "FDB_CDC_MUTATION_TYPE_",
    "FDBCdc",
    "fdb_transaction_get_range_split_points_with_limit",
    "FDB_NET_OPTION_TRACE_IP=84",
    "FDB_TR_OPTION_MAX_GRV_QUEUE_DELAY=1103",
];

/// Parts of the declarations that a program of 7.4 has and one of 8.0 has not.
const REMOVED: &[&str] = &[
    "FDB_DB_OPTION_USE_CONFIG_DATABASE",
    "blob",
    "_readbg_",
    "_bg_mutations_array",
    "_granule_summary_array",
    "_purge_granules_complete",
    "fdb_tenant_",
];

#[test]
fn the_header_of_version_800_differs_as_that_of_8_0_does() {
    let of = |defined: &str| declarations(&said(&HEADER, "c", &[defined]));
    let (seven, eight) = (of("FDB_API_VERSION=740"), of("FDB_API_VERSION=800"));
    for (more, less, parts, count) in [(&eight, &seven, ADDED, 35), (&seven, &eight, REMOVED, 26)] {
        let found: Vec<_> = more.difference(less).collect();
        assert_eq!(found.len(), count, "{found:#?}");
        let has = |one: &str| parts.iter().any(|part| one.contains(part));
        assert!(found.iter().all(|one| has(one)), "{found:#?}");
        assert!(parts.iter().all(|part| found.iter().any(|one| one.contains(part))), "{found:#?}");
    }
    let [seven, eight_has] =
        ["740", "800"].map(|version| macros(&said(&HEADER, "c", &[&format!("FDB_API_VERSION={version}")])));
    let names: Vec<_> = seven.difference(&eight_has).filter_map(|one| one.split(' ').next()).collect();
    assert_eq!(names, ["FDB_API_VERSION", "FDB_API_VERSION_TENANT_API_RELEASED", "fdb_future_get_version"]);
    assert_eq!(eight_has.difference(&seven).count(), 1, "the version");
    for newest in ["FDB_USE_LATEST_API_VERSION", "FDB_USE_LATEST_BINDINGS_API_VERSION"] {
        assert_eq!(of(newest), eight);
    }
}

#[test]
fn declarations_differ_in_more_than_words_and_space() {
    let of = |text: &str| declarations(text).into_iter().collect::<Vec<_>>();
    let same = [
        ["int f(const char *a, void (*b)(int c), T);", "int f ( char const* x,\n void(*y)(int), T z) ;"],
        ["typedef enum { A = 1, B = -2 } E;", "typedef enum {B=-2,A=1} E;"],
        ["struct s { int (*f)(int a); };", "struct s { int (*f)(int b); };"],
    ];
    for [one, other] in same {
        assert_eq!(of(one), of(other));
    }
    let different = [
        ["int f(const char *a);", "int f(char *a);"],
        ["int f(int a, int b);", "int f(int a);"],
        ["int f(void (*a)(int));", "int f(void (*a)(long));"],
        ["void f(void *const *a);", "void f(void **a);"],
        ["typedef enum { A = 1 } E;", "typedef enum { A = 2 } E;"],
        ["struct s { int (*f)(int); };", "struct s { int (*g)(int); };"],
        ["struct s { int a; int b; };", "struct s { int b; int a; };"],
        ["struct s { int a; };", "#pragma pack(push, 4)\nstruct s { int a; };\n#pragma pack(pop)"],
        ["int f(void);", "extern \"C\" {\nint f(void);\n}"],
        ["int f(int) __attribute__((a));", "int f(int) __attribute__((b));"],
    ];
    for [one, other] in different {
        assert_ne!(of(one), of(other));
    }
    assert_eq!(macros("#define fdb_a(x, y) f(y,x)"), macros("#define fdb_a(k,l)  f( l, k )"));
    assert_ne!(macros("#define fdb_a(x, y) f(y,x)"), macros("#define fdb_a(x,y) f(x,y)"));
    assert_ne!(macros("#define fdb_a() 1"), macros("#define fdb_a 1"));
}

#[test]
fn a_version_that_the_library_does_not_take_is_refused() {
    for defined in [&[][..], &["FDB_API_VERSION=199"], &["FDB_API_VERSION=801"]] {
        let output = preprocessed(&HEADER, "c", defined);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains("#error \""), "{defined:?}: {errors}");
    }
}

#[test]
fn a_call_of_a_removed_function_does_not_compile() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/removed.c");
    for language in languages() {
        for (version, compiles) in [("609", true), ("610", false)] {
            let output = Command::new("cc")
                .args(["-fsyntax-only", "-x", language, &format!("-DFDB_API_VERSION={version}"), "-I"])
                .arg(&*HEADER)
                .arg(&source)
                .output()
                .expect("there is a C compiler");
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.success(), compiles, "{language} {version}: {errors}");
            assert!(compiles || errors.contains("is_removed_at_this_FDB_API_VERSION"), "{errors}");
        }
    }
}

#[test]
fn programs_in_c_and_in_cpp_compile_without_a_warning() {
    for language in languages() {
        let standard = if language == "c" { "-std=c99" } else { "-std=c++11" };
        // What the program takes from POSIX is of neither language.
        let arguments = ["-x", language, standard, "-pedantic", "-D_GNU_SOURCE"];
        assert_eq!(Program::compile_with("both", &arguments).run::<&str>(&[], &[]), "passed\n");
    }
}
