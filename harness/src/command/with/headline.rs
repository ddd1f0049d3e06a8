//! The line of what a program printed that says what failed: of a test, its name and its first complaint; of
//! an exception that nobody caught, its name and its message. Test runners print counts and times after it,
//! and so the last line says least.

/// The most characters of a headline.
const MOST: usize = 300;

/// The line that says what failed; none if nothing in the output has a known form.
pub(super) fn of(printed: &str) -> Option<String> {
    let plain = without_colours(printed);
    let lines: Vec<&str> = plain.lines().map(str::trim_end).collect();
    // Test runners first: what they run may print exceptions that are expected.
    let forms = [
        pytest, unittest, go_test, maven, gradle, rspec, minitest, jest, mocha, node_test, tap, rust,
        go_panic, java, javascript, python, ruby, c,
    ];
    let line = forms.iter().find_map(|form| form(&lines))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    Some(words.join(" ").chars().take(MOST).collect())
}

/// The text without escape sequences of terminals.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain += part.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, rest)| rest);
    }
    plain
}

/// The first line that is not empty, after the line at this place.
fn next<'a>(lines: &[&'a str], at: usize) -> Option<&'a str> {
    lines.get(at + 1..)?.iter().find(|line| !line.trim().is_empty()).copied()
}

/// A name, and what is said of it.
fn joined(name: &str, said: Option<&str>) -> String {
    match said.map(str::trim).filter(|said| !said.is_empty()) {
        Some(said) => format!("{}: {said}", name.trim().trim_end_matches(':')),
        None => name.to_owned(),
    }
}

/// Whether a line begins with the name of an exception, and a colon or nothing follows it.
fn is_exception(line: &str) -> bool {
    let name = line.split([':', ' ']).next().unwrap_or_default();
    let is_name = |c: char| c.is_alphanumeric() || "._$".contains(c);
    let ends = ["Error", "Exception", "Exit", "Interrupt", "Failure", "Failed"];
    let last = name.rsplit(['.', '$']).next().unwrap_or_default();
    name.chars().all(is_name)
        && name.starts_with(char::is_alphabetic)
        && ends.iter().any(|end| last.ends_with(end))
}

fn pytest(lines: &[&str]) -> Option<String> {
    let is_summary = |line: &&&str| {
        let rest = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "));
        rest.is_some_and(|rest| rest.split(" - ").next().is_some_and(|test| test.contains(".py")))
    };
    let summary = lines.iter().find(is_summary)?;
    // It is cut at the width of a terminal; the complaint itself is not.
    let complaint = lines.iter().find_map(|line| line.strip_prefix("E  "));
    let (test, cut) = summary.split_once(" - ").unwrap_or((summary, ""));
    let said = complaint.map(str::trim).filter(|said| said.starts_with(cut.trim_end_matches("...")));
    Some(match said {
        Some(said) => format!("{test} - {said}"),
        None => (*summary).to_owned(),
    })
}

fn unittest(lines: &[&str]) -> Option<String> {
    let at = lines.iter().position(|line| {
        let rest = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "));
        rest.is_some_and(|rest| rest.contains(" (") && rest.ends_with(')'))
    })?;
    let end =
        (at + 2..lines.len()).find(|n| lines[*n].starts_with("-----") || lines[*n].starts_with("====="));
    let said = python(&lines[at..end.unwrap_or(lines.len())]);
    Some(joined(lines[at], said.as_deref()))
}

fn go_test(lines: &[&str]) -> Option<String> {
    // The one that is nested most is the one that complained; its complaints are indented further.
    let at = lines.iter().rposition(|line| line.trim_start().starts_with("--- FAIL: "))?;
    let panicked = lines.iter().find(|line| line.starts_with("panic: ")).copied();
    let said = lines.get(at + 1).filter(|line| line.starts_with("    ") && line.contains(".go:")).copied();
    Some(joined(lines[at], panicked.or(said)))
}

fn go_panic(lines: &[&str]) -> Option<String> {
    let at =
        lines.iter().position(|line| line.starts_with("panic: ") || line.starts_with("fatal error: "))?;
    lines[at..].iter().any(|line| line.starts_with("goroutine ")).then(|| lines[at].to_owned())
}

fn maven(lines: &[&str]) -> Option<String> {
    let heads = ["[ERROR] Failures:", "[ERROR] Errors:", "Failed tests:", "Tests in error:"];
    let at = lines.iter().position(|line| heads.contains(line))?;
    let said = next(lines, at)?.trim_start_matches("[ERROR]").trim();
    Some(joined(heads.iter().find(|head| **head == lines[at])?.trim_start_matches("[ERROR] "), Some(said)))
}

fn gradle(lines: &[&str]) -> Option<String> {
    let at = lines.iter().position(|line| line.contains(" > ") && line.ends_with(" FAILED"))?;
    Some(joined(lines[at], next(lines, at)))
}

/// The place of the first entry after a heading: `1) …`.
fn entry(lines: &[&str], heading: impl Fn(&str) -> bool) -> Option<usize> {
    let at = lines.iter().rposition(|line| heading(line.trim()))?;
    Some(at + lines[at..].iter().position(|line| line.trim_start().starts_with("1) "))?)
}

fn rspec(lines: &[&str]) -> Option<String> {
    let at = entry(lines, |line| line == "Failures:")?;
    Some(joined(lines[at], next(lines, at)))
}

fn minitest(lines: &[&str]) -> Option<String> {
    let at = lines.iter().position(|line| ["1) Failure:", "1) Error:"].contains(&line.trim()))?;
    let test = lines.get(at + 1)?;
    Some(joined(test, next(lines, at + 1)))
}

fn jest(lines: &[&str]) -> Option<String> {
    let at = lines.iter().position(|line| line.trim_start().starts_with("● "))?;
    Some(joined(lines[at], next(lines, at)))
}

fn mocha(lines: &[&str]) -> Option<String> {
    let at = entry(lines, |line| line.strip_suffix(" failing").is_some_and(|n| n.parse::<u64>().is_ok()))?;
    // The names of the suites and of the test, up to a colon, and then the complaint.
    let names = lines[at..].iter().take(6).position(|line| line.ends_with(':'))?;
    let name = lines[at..=at + names].iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    Some(joined(&name, next(lines, at + names)))
}

fn node_test(lines: &[&str]) -> Option<String> {
    let failing = lines.iter().rposition(|line| line.trim() == "✖ failing tests:")?;
    let test =
        failing + 1 + lines[failing + 1..].iter().position(|line| line.trim_start().starts_with("✖ "))?;
    Some(joined(lines[test], next(lines, test)))
}

fn tap(lines: &[&str]) -> Option<String> {
    let at = lines.iter().position(|line| line.trim_start().starts_with("not ok "))?;
    let said = lines[at..].iter().take(12).find_map(|line| line.trim().strip_prefix("error: "));
    Some(joined(lines[at], said.filter(|said| *said != "|-")))
}

fn rust(lines: &[&str]) -> Option<String> {
    let is_panic = |line: &&str| line.starts_with("thread '") && line.contains(" panicked at ");
    let at = lines.iter().position(is_panic)?;
    match lines[at].ends_with(':') {
        true => Some(joined(lines[at], next(lines, at))),
        false => Some(lines[at].to_owned()),
    }
}

fn java(lines: &[&str]) -> Option<String> {
    lines.iter().find(|line| line.starts_with("Exception in thread \"")).map(|line| (*line).to_owned())
}

fn javascript(lines: &[&str]) -> Option<String> {
    let stack = lines.iter().rposition(|line| {
        line.strip_prefix("    at ").is_some_and(|rest| rest.ends_with(')') || rest.contains(".js:"))
    })?;
    let error = lines[..stack].iter().rfind(|line| {
        let line = line.strip_prefix("Uncaught ").unwrap_or(line);
        is_exception(line)
    });
    error.map(|line| (*line).to_owned())
}

/// The exception of the last traceback: of a chain it is the one that nobody caught.
fn python(lines: &[&str]) -> Option<String> {
    let at = lines.iter().rposition(|line| line.trim_start() == "Traceback (most recent call last):")?;
    let indent = lines[at].len() - lines[at].trim_start().len();
    let mut after = lines[at + 1..].iter().map(|line| line.get(indent..).unwrap_or_default());
    after.find(|line| !line.is_empty() && !line.starts_with(' ')).map(str::to_owned)
}

fn ruby(lines: &[&str]) -> Option<String> {
    let is_raised = |line: &&&str| line.contains(".rb:") && line.contains(":in ") && line.ends_with(')');
    lines.iter().find(is_raised).map(|line| (*line).to_owned())
}

fn c(lines: &[&str]) -> Option<String> {
    let said = lines.iter().find(|line| line.contains(": Assertion `") && line.ends_with(" failed."));
    let thrown = || {
        let at = lines.iter().position(|line| line.starts_with("terminate called "))?;
        let what = lines.get(at + 1).and_then(|line| line.trim().strip_prefix("what():"));
        Some(joined(lines[at], what))
    };
    said.map(|line| (*line).to_owned()).or_else(thrown)
}

/// The last line that is not empty.
pub(super) fn last(printed: &str) -> &str {
    printed.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
