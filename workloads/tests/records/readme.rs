//! The README's program: what it shows is what it prints.

#[allow(dead_code, reason = "the program's main function")]
#[path = "../../examples/records.rs"]
mod program;

#[test]
fn the_readmes_program_is_the_example_and_prints_what_it_says() {
    let (readme, source) = (include_str!("../../../README.md"), include_str!("../../examples/records.rs"));
    assert!(source.lines().count() <= 60);
    assert!(
        readme.contains(source.trim_end()),
        "README.md has another program than workloads/examples/records.rs"
    );
    let printed = shaketable::calm::simulate(program::flowers).expect("a calm cluster answers");
    assert!(readme.contains(&printed), "README.md does not say that the program prints\n{printed}");
}
