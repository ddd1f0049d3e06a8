//! That the check of the JUnit schema notices what is wrong.

use crate::schema;

const GOOD: &str = r#"<testsuites tests="2" failures="1" errors="0">
  <testsuite name="queue" tests="2" failures="1" errors="0" time="0.5">
    <properties><property name="runs" value="2"/></properties>
    <testcase name="sweep" classname="queue"/>
    <testcase name="seed 3"><failure type="model" message="no">text</failure><system-out>x</system-out></testcase>
  </testsuite>
</testsuites>"#;

#[test]
fn the_check_of_the_schema_fails_when_it_must() {
    assert_eq!(schema::check(GOOD), Ok(()));
    for (from, to, why) in [
        ("<testcase name=\"sweep\"", "<testcase", "testcase has no name"),
        ("</testsuites>", "", "root node was opened but never closed"),
        ("tests=\"2\"", "tests=\"3\"", "tests of \"queue\" is Some(\"3\"), not 2"),
        ("time=\"0.5\"", "time=\"soon\"", "time of testsuite is \"soon\""),
        ("time=\"0.5\"", "time=\"0.5000\"", "time of testsuite is \"0.5000\""),
        ("<testsuites", "<testsuites skipped=\"0\"", "testsuites must not have skipped"),
        ("time=\"0.5\"", "seed=\"3\"", "testsuite must not have seed"),
        ("system-out", "output", "output is not expected there in testcase"),
        ("<properties>", "<testcase name=\"x\"/><properties>", "properties is not expected there"),
        ("failures=\"1\" errors=\"0\" time", "failures=\"0\" errors=\"0\" time", "failures of \"queue\""),
        ("testsuites", "report", "the root is report"),
    ] {
        let changed = GOOD.replace(from, to);
        let error = schema::check(&changed).expect_err("a broken document");
        assert!(error.contains(why), "{error} instead of {why}");
    }
}
