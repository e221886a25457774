//! Parts of chips as chips.

use rackmath_spec::Math;

#[test]
fn the_whole_as_a_part_is_the_chip_less_what_the_mode_takes() {
    let catalog = rackmath_catalog::embedded();
    // An A100 has 108 multiprocessors, of which 98 are left when it is cut; an H100 loses none.
    for (chip, part, left) in
        [("h100", "7g.80gb", 1.0), ("a100-80gb", "7g.80gb", 98.0 / 108.0), ("b200", "7g.180gb", 1.0)]
    {
        let whole = &catalog.system(chip).unwrap().chip;
        let cut = &catalog.system(&format!("{chip}-mig-{part}")).unwrap().chip;
        let peak = |c: &rackmath_spec::Chip| c.peak[&Math::Bf16].value.get();
        assert!((peak(cut) / peak(whole) - left).abs() < 1e-9, "{chip}");
        assert_eq!(cut.memory.bandwidth.value, whole.memory.bandwidth.value);
        assert!(cut.memory.size() <= whole.memory.size());
    }
}

#[test]
fn parts_are_no_more_than_their_chip() {
    let catalog = rackmath_catalog::embedded();
    for of in &catalog.parts().unwrap().all {
        for chip in &of.chips {
            let whole = catalog.chip(chip).unwrap();
            for p in &of.profiles {
                let part = &catalog.system(&format!("{chip}-mig-{}", p.name)).unwrap().chip;
                let n = p.instances as f64;
                let size = |c: &rackmath_spec::Chip| c.memory.size().get();
                // A sheet that writes GB means GiB where no driver's figure is known.
                let most = size(&whole).max(whole.memory.capacity.value.get() * 1.073_741_824);
                assert!(n * size(part) <= most * 1.001, "{}", part.id);
                let all = n * part.memory.bandwidth.value.get();
                assert!(all <= whole.memory.bandwidth.value.get() * 1.001, "{}", part.id);
                let cores = whole.physical.cores.as_ref().unwrap().value;
                assert!(p.instances * p.sms <= cores, "{}", part.id);
                assert!(part.link.scale_up.is_none() && part.usual_price().is_some() == whole.usual_price().is_some());
            }
        }
    }
}

#[test]
fn a_part_is_found_by_the_names_people_use() {
    let catalog = rackmath_catalog::embedded();
    for name in ["h100-mig-3g.40gb", "h100-3g.40gb", "mig-3g.40gb", "H100:3g.40gb", "3g.40gb"] {
        assert_eq!(catalog.system(name).unwrap().chip.id, "h100-sxm-mig-3g.40gb", "{name}");
    }
    assert_eq!(catalog.system("7xh100-mig-1g.10gb").unwrap().n_chips, 7);
    let said = catalog.system("h100-mig-3g.41gb").unwrap_err().to_string();
    assert!(said.contains("1g.10gb") && said.contains("3g.40gb") && said.contains("7g.80gb"), "{said}");
    // Parts of a card are no group: nothing joins them.
    let parts = catalog.system("7xh100-mig-1g.10gb").unwrap();
    assert!(parts.levels.is_empty(), "{:?}", parts.levels);
    // What programs find on a part is the part's own.
    assert!(parts.chip.memory.seen() <= parts.chip.memory.size(), "{}", parts.chip.memory.seen());
    assert!(catalog.system("l4-mig-1g.10gb").unwrap_err().to_string().contains("parts"));
}
