//! What runners and programs print when something fails, and the line that says it.

use super::*;

#[track_caller]
fn says(printed: &str, line: &str) {
    assert_eq!(of(printed).as_deref(), Some(line), "{printed}");
}

#[test]
fn pytest_names_the_test_and_its_whole_complaint() {
    let printed = "\
..F
=================================== FAILURES ===================================
________________________________ test_shoppers _________________________________

    def test_shoppers():
>       check(12)

test_shop.py:88:
>       assert free + held + sold == total, f\"{free} free, {held} reserved, {sold} sold of {total}\"
E       AssertionError: 4 free, 2 reserved, 8 sold of 12
E       assert ((4 + 2) + 8) == 12

test_shop.py:56: AssertionError
=========================== short test summary info ============================
FAILED test_shop.py::test_shoppers - AssertionError: 4 free, 2 reserved, 8 so...
!!!!!!!!!!!!!!!!!!!!!!!!!! stopping after 1 failures !!!!!!!!!!!!!!!!!!!!!!!!!!!
1 failed, 2 passed in 0.42s
";
    let line = "FAILED test_shop.py::test_shoppers - AssertionError: 4 free, 2 reserved, 8 sold of 12";
    says(printed, line);
    // In colours, and with a complaint of another test.
    says(&printed.replace("FAILED ", "\x1b[31mFAILED\x1b[0m "), line);
    let other = printed.replace("E       AssertionError: 4 free", "E       KeyError: 4 free");
    says(&other, "FAILED test_shop.py::test_shoppers - AssertionError: 4 free, 2 reserved, 8 so...");
    says(
        "x\nERROR test_shop.py - fdb.FDBError: no\n1 error in 0.1s\n",
        "ERROR test_shop.py - fdb.FDBError: no",
    );
    says("FAILED a.py::test\n1 failed\n", "FAILED a.py::test");
    // A thread's exception that pytest warns of is not what failed.
    let warned = "Exception in thread Thread-1 (run):\nTraceback (most recent call last):\nOSError: no\n";
    says(&format!("{warned}{printed}"), line);
}

#[test]
fn unittest_names_the_test_and_its_exception() {
    let printed = "\
F.
======================================================================
FAIL: test_moves (test_shop.Shop.test_moves)
----------------------------------------------------------------------
Traceback (most recent call last):
  File \"test_shop.py\", line 9, in test_moves
    self.assertEqual(1, 2)
AssertionError: 1 != 2

----------------------------------------------------------------------
Ran 2 tests in 0.001s

FAILED (failures=1)
";
    says(printed, "FAIL: test_moves (test_shop.Shop.test_moves): AssertionError: 1 != 2");
    let error =
        printed.replace("FAIL: ", "ERROR: ").replace("AssertionError: 1 != 2", "fdb.FDBError: it is late");
    says(&error, "ERROR: test_moves (test_shop.Shop.test_moves): fdb.FDBError: it is late");
}

#[test]
fn python_says_the_exception_that_nobody_caught() {
    let printed = "\
Traceback (most recent call last):
  File \"a.py\", line 1, in <module>
    f()
KeyError: 'a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File \"a.py\", line 4, in <module>
    raise ValueError(\"no a\\nat all\")
ValueError: no a
at all
done
";
    says(printed, "ValueError: no a");
    says(
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nKeyboardInterrupt\n",
        "KeyboardInterrupt",
    );
}

#[test]
fn node_mocha_and_jest_are_understood() {
    let uncaught = "\
/srv/votes.js:20
  throw new Error('20 voters and 22 votes')
  ^

Error: 20 voters and 22 votes
    at main (/srv/votes.js:20:9)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)

Node.js v20.11.0
";
    says(uncaught, "Error: 20 voters and 22 votes");
    let assertion = "\
node:internal/process/promises:288
            triggerUncaughtException(err, true /* fromPromise */);
            ^

AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

22 !== 20

    at main (/srv/votes.js:20:9) {
  generatedMessage: true,
";
    says(assertion, "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:");
    let mocha = "
  votes
    1) count once

  0 passing (12ms)
  1 failing

  1) votes
       count once:

      AssertionError [ERR_ASSERTION]: 22 == 20
      + expected - actual

      at Context.<anonymous> (test.js:5:12)
";
    says(mocha, "1) votes count once: AssertionError [ERR_ASSERTION]: 22 == 20");
    let jest = "\
FAIL ./votes.test.js
  ✕ count once (5 ms)

  ● votes › count once

    expect(received).toBe(expected) // Object.is equality

    Expected: 20
    Received: 22

      at Object.toBe (votes.test.js:5:17)

Tests:       1 failed, 1 total
";
    says(jest, "● votes › count once: expect(received).toBe(expected) // Object.is equality");
    let own = "\
✔ other (1.2ms)
✖ count once (1.4ms)
ℹ tests 2
ℹ fail 1

✖ failing tests:

test at votes.test.mjs:3:1
✖ count once (1.4ms)
  AssertionError [ERR_ASSERTION]: 22 == 20
      at TestContext.<anonymous> (votes.test.mjs:4:10)
";
    says(own, "✖ count once (1.4ms): AssertionError [ERR_ASSERTION]: 22 == 20");
    let tap = "TAP version 13\nok 1 - other\nnot ok 2 - count once\n  ---\n  error: '22 == 20'\n  ...\n1..2\n# fail 1\n";
    says(tap, "not ok 2 - count once: '22 == 20'");
}

#[test]
fn go_is_understood() {
    let test = "\
=== RUN   TestMoves/two
    shop_test.go:12: 3 rows of 2 orders
--- FAIL: TestMoves (0.01s)
    --- FAIL: TestMoves/two (0.00s)
        shop_test.go:12: 3 rows of 2 orders
FAIL
FAIL\texample.com/shop\t0.015s
FAIL
";
    says(test, "--- FAIL: TestMoves/two (0.00s): shop_test.go:12: 3 rows of 2 orders");
    let panicked = "--- FAIL: TestMoves (0.00s)\npanic: no order [recovered]\n\tpanic: no order\n\ngoroutine 7 [running]:\nFAIL\n";
    says(panicked, "--- FAIL: TestMoves (0.00s): panic: no order [recovered]");
    says("panic: no order\n\ngoroutine 1 [running]:\nmain.main()\nexit status 2\n", "panic: no order");
    assert_eq!(of("panic: it is only a word\n"), None);
}

#[test]
fn java_is_understood() {
    let maven = "\
[INFO] Running ShopTest
[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0
[INFO] Results:
[ERROR] Failures:
[ERROR]   ShopTest.moves:12 expected: <1> but was: <2>
[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0
[INFO] BUILD FAILURE
[ERROR] Failed to execute goal org.apache.maven.plugins:maven-surefire-plugin
";
    says(maven, "Failures: ShopTest.moves:12 expected: <1> but was: <2>");
    let gradle = "\
> Task :test FAILED
ShopTest > moves() FAILED
    org.opentest4j.AssertionFailedError: expected: <1> but was: <2>
        at ShopTest.moves(ShopTest.java:12)
2 tests completed, 1 failed
";
    says(
        gradle,
        "ShopTest > moves() FAILED: org.opentest4j.AssertionFailedError: expected: <1> but was: <2>",
    );
    let uncaught = "Exception in thread \"main\" java.lang.IllegalStateException: no order\n\tat Shop.main(Shop.java:3)\n";
    says(uncaught, "Exception in thread \"main\" java.lang.IllegalStateException: no order");
}

#[test]
fn ruby_is_understood() {
    let rspec = "
Failures:

  1) Shop moves orders
     Failure/Error: expect(rows).to eq 2

       expected: 2
            got: 3

Finished in 0.01 seconds
2 examples, 1 failure

Failed examples:

rspec ./shop_spec.rb:3 # Shop moves orders
";
    says(rspec, "1) Shop moves orders: Failure/Error: expect(rows).to eq 2");
    let minitest = "
  1) Failure:
ShopTest#test_moves [shop_test.rb:7]:
Expected: 2
  Actual: 3

2 runs, 2 assertions, 1 failures, 0 errors, 0 skips
";
    says(minitest, "ShopTest#test_moves [shop_test.rb:7]: Expected: 2");
    says(
        "shop.rb:3:in `move': no order (RuntimeError)\n\tfrom shop.rb:7:in `<main>'\n",
        "shop.rb:3:in `move': no order (RuntimeError)",
    );
}

#[test]
fn rust_and_c_are_understood() {
    let cargo = "
running 2 tests
test moves ... FAILED

failures:

---- moves stdout ----

thread 'moves' panicked at src/lib.rs:9:5:
assertion `left == right` failed
  left: 2
 right: 3
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

failures:
    moves

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
";
    says(cargo, "thread 'moves' panicked at src/lib.rs:9:5: assertion `left == right` failed");
    says(
        "thread 'main' panicked at 'no order', src/main.rs:3:5\nnote: run with\n",
        "thread 'main' panicked at 'no order', src/main.rs:3:5",
    );
    says(
        "counting\ncounter: counter.c:40: main: Assertion `n == 20' failed.\nAborted (core dumped)\n",
        "counter: counter.c:40: main: Assertion `n == 20' failed.",
    );
    says(
        "terminate called after throwing an instance of 'std::runtime_error'\n  what():  no order\nAborted\n",
        "terminate called after throwing an instance of 'std::runtime_error': no order",
    );
}

#[test]
fn what_has_no_form_has_no_headline() {
    for printed in ["", "20 voters and 22 votes\n", "an Error: said in the middle\n", "    at once\n"] {
        assert_eq!(of(printed), None, "{printed}");
    }
    assert_eq!(last("20 voters\n and 22 votes \n\n"), "and 22 votes");
    assert_eq!(last(""), "");
    assert!(
        of(&format!("a.c:1: Assertion `{}' failed.", "x".repeat(400))).is_some_and(|line| line.len() == MOST)
    );
}
