//! What the JUnit schema that CI systems share (`junit-10.xsd` of Jenkins) demands of the elements that
//! reports use.

use roxmltree::{Document, Node};

/// An element: its name, the attributes that it must have, those that it may have, and the names of its
/// children in the order in which they must be.
struct Element(&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

const ELEMENTS: &[Element] = &[
    Element("testsuites", &[], &["name", "time", "tests", "failures", "errors"], &["testsuite"]),
    Element(
        "testsuite",
        &["name", "tests", "failures", "errors"],
        &["time", "skipped", "timestamp", "hostname", "id", "package"],
        &["properties", "testcase", "system-out", "system-err"],
    ),
    Element("properties", &[], &[], &["property"]),
    Element("property", &["name", "value"], &[], &[]),
    Element(
        "testcase",
        &["name"],
        &["time", "classname", "group"],
        &["skipped|error|failure", "system-out", "system-err"],
    ),
    Element("skipped", &[], &["type", "message"], &[]),
    Element("error", &[], &["type", "message"], &[]),
    Element("failure", &[], &["type", "message"], &[]),
    Element("system-out", &[], &[], &[]),
    Element("system-err", &[], &[], &[]),
];

/// Checks a document, and that each suite counts the cases that it has. The error names the element.
pub fn check(text: &str) -> Result<(), String> {
    let document = Document::parse(text).map_err(|error| error.to_string())?;
    let root = document.root_element();
    if root.tag_name().name() != "testsuites" {
        return Err(format!("the root is {}", root.tag_name().name()));
    }
    element(root)?;
    let suites = children(root, "testsuite");
    suites.iter().try_for_each(|suite| counts(*suite, &children(*suite, "testcase")))?;
    counts(root, &suites.iter().flat_map(|suite| children(*suite, "testcase")).collect::<Vec<_>>())
}

fn children<'a>(node: Node<'a, 'a>, name: &str) -> Vec<Node<'a, 'a>> {
    node.children().filter(|child| child.has_tag_name(name)).collect()
}

fn element(node: Node<'_, '_>) -> Result<(), String> {
    let name = node.tag_name().name();
    let Some(Element(_, must, may, order)) = ELEMENTS.iter().find(|element| element.0 == name) else {
        return Err(format!("there is no element {name}"));
    };
    if let Some(missing) = must.iter().find(|attribute| !node.has_attribute(**attribute)) {
        return Err(format!("{name} has no {missing}"));
    }
    for attribute in node.attributes() {
        let (attribute, value) = (attribute.name(), attribute.value());
        if !must.contains(&attribute) && !may.contains(&attribute) {
            return Err(format!("{name} must not have {attribute}"));
        }
        let is_number = match attribute {
            "tests" | "failures" | "errors" | "skipped" => value.parse::<u64>().is_ok(),
            // Seconds, with at most three digits after the point.
            "time" => value.split_once('.').is_some_and(|(seconds, part)| {
                let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
                digits(seconds) && digits(part) && part.len() <= 3
            }),
            _ => true,
        };
        if !is_number {
            return Err(format!("{attribute} of {name} is {value:?}"));
        }
    }
    let mut place = 0;
    for child in node.children().filter(Node::is_element) {
        let child_name = child.tag_name().name();
        let at = order.iter().position(|names| names.split('|').any(|name| name == child_name));
        match at {
            Some(at) if at >= place => place = at,
            _ => return Err(format!("{child_name} is not expected there in {name}")),
        }
        element(child)?;
    }
    Ok(())
}

/// Whether the counts of a suite are those of its cases.
fn counts(suite: Node<'_, '_>, cases: &[Node<'_, '_>]) -> Result<(), String> {
    let with = |name: &str| cases.iter().filter(|case| !children(**case, name).is_empty()).count();
    for (attribute, n) in [("tests", cases.len()), ("failures", with("failure")), ("errors", with("error"))] {
        if suite.attribute(attribute) != Some(n.to_string().as_str()) {
            let name = suite.attribute("name").unwrap_or_default();
            return Err(format!("{attribute} of {name:?} is {:?}, not {n}", suite.attribute(attribute)));
        }
    }
    Ok(())
}
