//! The lists of flags: all load, say where they were read, and hold what their command needs.

#[test]
fn every_list_is_dated_and_cited() {
    let c = rackmath_catalog::embedded();
    assert!(c.ids(rackmath_spec::Kind::Flags).count() >= 9);
    for id in c.ids(rackmath_spec::Kind::Flags) {
        let l = c.flag_list(id).unwrap();
        assert!(l.source.contains(' ') && l.as_of.len() == 7 && !l.version.is_empty(), "{id}");
        assert!(l.flags.len() >= 10, "{id}: {}", l.flags.len());
        assert!(l.check(&l.command).is_ok(), "{id}");
    }
}

#[test]
fn a_flag_of_another_tool_is_refused_with_the_nearest() {
    let l = rackmath_catalog::embedded().flag_list("vllm").unwrap();
    assert!(l.check("vllm serve m --tensor-parallel-size 8 -tp 8").is_ok());
    let err = l.check("vllm serve m --tensor_paralel-size 8").unwrap_err().to_string();
    assert!(err.contains("--tensor-parallel-size"), "{err}");
}
