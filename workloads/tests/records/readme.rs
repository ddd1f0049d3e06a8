//! The book's program with records: what it shows is what it prints.

#[allow(dead_code, reason = "the program's main function")]
#[path = "../../examples/records.rs"]
mod program;

#[test]
fn the_books_program_is_the_example_and_prints_what_it_says() {
    let (page, source) =
        (include_str!("../../../docs/src/record-layer.md"), include_str!("../../examples/records.rs"));
    assert!(source.lines().count() <= 60);
    assert!(
        page.contains(source.trim_end()),
        "the book has another program than workloads/examples/records.rs"
    );
    let printed = shaketable::calm::simulate(program::flowers).expect("a calm cluster answers");
    assert!(page.contains(&printed), "the book does not say that the program prints\n{printed}");
}
