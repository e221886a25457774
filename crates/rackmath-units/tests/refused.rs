//! The compiler refuses products that mean nothing.

#[test]
fn meaningless_products_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
