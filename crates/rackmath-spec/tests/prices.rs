//! Price sheets and memory tiers: every file loads and is cited, and slips are refused with their field and file.

use rackmath_spec::price::Ttl;
use rackmath_spec::{Date, file};
use std::collections::BTreeSet;

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

#[test]
fn every_sheet_and_tier_loads() {
    let catalog = rackmath_catalog::embedded();
    let sheets: Vec<_> = catalog
        .ids(rackmath_spec::Kind::Prices)
        .map(|id| catalog.price(id).unwrap_or_else(|e| panic!("{e}")))
        .collect();
    for sheet in &sheets {
        assert_eq!(sheet.id, format!("{}-{}", sheet.provider, sheet.model), "one model per file, named for it");
        assert!(sheet.lists.iter().all(|l| l.source.contains([' ', '/'])), "{}", sheet.id);
        assert!(sheet.as_of <= day("2026-11-15"), "{} is dated {}", sheet.id, sheet.as_of);
        for list in &sheet.lists {
            assert!(list.output >= list.input, "{}", sheet.id);
            for c in &list.caches {
                assert!(c.read <= list.input, "{} reads from {} above the input price", sheet.id, c.name);
            }
        }
    }
    let providers: BTreeSet<&str> = sheets.iter().map(|s| s.provider.as_str()).collect();
    assert!(providers.len() >= 14, "{providers:?}");
    for id in catalog.ids(rackmath_spec::Kind::Tiers) {
        let tier = catalog.tier(id).unwrap_or_else(|e| panic!("{e}"));
        assert!(tier.hold().is_some() || id == "lpddr-grace", "{id}");
    }
}

#[test]
fn names_find_their_sheet() {
    let catalog = rackmath_catalog::embedded();
    assert_eq!(catalog.price("opus").unwrap().model, "claude-opus-4-8");
    let error = catalog.price("gpt-5.5x").unwrap_err().to_string();
    assert!(error.contains("did you mean") && error.contains("gpt-5.5"), "{error}");
}

#[test]
fn a_list_is_valid_from_its_day() {
    let catalog = rackmath_catalog::embedded();
    let o3 = catalog.price("o3").unwrap();
    assert_eq!(o3.at(day("2025-06-13")).unwrap().input.to_string(), "$10.0/Mtok");
    assert_eq!(o3.at(day("2025-06-14")).unwrap().input.to_string(), "$2.00/Mtok");
    let error = o3.at(day("2025-01-01")).unwrap_err().to_string();
    assert!(error.contains("2025-04-20 or later"), "{error}");
}

const GOOD: &str = r#"
name = "Mine"
provider = "me"
model = "mine"
as_of = "2026-08-01"
[sources]
page = "example.org/prices read by hand"
[[list]]
from = "2026-07-01"
input = "$5/Mtok"
output = "$25/Mtok"
source = "page"
[[list.cache]]
name = "5m"
ttl = "5 min"
restarts = true
write = "$6.25/Mtok"
read = "$0.50/Mtok"
source = "page"
[[list.tier]]
above = "200k"
input = "$10/Mtok"
output = "$37.50/Mtok"
[list.mode]
batch = { factor = 0.5 }
[[list.window]]
name = "peak"
days = "mon-fri"
utc = ["22:00-02:00"]
factor = 2.0
"#;

#[test]
fn a_slip_is_refused_with_its_field_and_file() {
    file::price("mine", GOOD, Some(day("2026-11-15"))).unwrap();
    for (good, bad, names) in [
        // A typo in a field, a missing unit, two ways; a negative price; absurd prices, two ways.
        ("output = \"$25/Mtok\"", "ouput = \"$25/Mtok\"", "ouput"),
        ("input = \"$5/Mtok\"", "input = 5.0", "list[0].input = 5; expected text with a unit"),
        ("input = \"$5/Mtok\"", "input = \"5\"", "list[0].input = 5; expected a price per million tokens"),
        (
            "input = \"$5/Mtok\"",
            "input = \"$-5/Mtok\"",
            "list[0].input = $-5/Mtok; expected a price that is not negative",
        ),
        ("input = \"$5/Mtok\"", "input = \"$114000/Mtok\"", "between $0.001 and $1,000"),
        ("input = \"$5/Mtok\"", "input = \"$0.0005/Mtok\"", "between $0.001 and $1,000"),
        // Future dates: of a list, and of the sheet against the day the reader states.
        (
            "from = \"2026-07-01\"",
            "from = \"2026-12-01\"",
            "list[0].from = 2026-12-01; expected a date not after 2026-08-01",
        ),
        (
            "as_of = \"2026-08-01\"",
            "as_of = \"2027-08-01\"",
            "as_of = 2027-08-01; expected a date not after 2026-11-15",
        ),
        ("from = \"2026-07-01\"", "from = \"July\"", "list[0].from"),
        ("source = \"page\"", "source = \"pge\"", "list[0].source = pge"),
        ("ttl = \"5 min\"", "ttl = \"5\"", "list[0].cache[0].ttl"),
        ("ttl = \"5 min\"", "ttl = \"chosen\"", "list[0].cache.5m.storage"),
        ("above = \"200k\"", "above = \"200k\"\nat_least = \"200k\"", "either above or at_least"),
        ("factor = 0.5", "factor = 500.0", "list[0].mode.batch: 500; expected a multiple"),
        ("22:00-02:00", "22-02", "hours such as"),
        ("mon-fri", "weekdays", "every, mon-fri or sat-sun"),
    ] {
        assert!(GOOD.contains(good), "{good}");
        let text = GOOD.replacen(good, bad, 1);
        let error = file::price("mine", &text, Some(day("2026-11-15"))).unwrap_err().to_string();
        assert!(error.starts_with("price mine") && error.contains(names), "{bad}: {error}");
    }
}

#[test]
fn a_window_past_midnight_belongs_to_the_day_it_began() {
    let sheet = file::price("mine", GOOD, None).unwrap();
    let factor = |at: &str| sheet.lists[0].hour(Some(at.parse().unwrap())).input;
    // 2026-10-30 was a Friday.
    assert_eq!(factor("2026-10-30T22:00"), 2.0);
    assert_eq!(factor("2026-10-31T01:59"), 2.0);
    assert_eq!(factor("2026-10-31T02:00"), 1.0);
    assert_eq!(factor("2026-10-31T22:30"), 1.0);
    assert_eq!(factor("2026-11-02T01:00"), 1.0, "Sunday night is no weekday's");
}

#[test]
fn conflicts_are_reported_and_agreement_is_not() {
    let catalog = rackmath_catalog::embedded();
    let grok = catalog.price("grok-4.5").unwrap();
    let c = &grok.lists[0].conflicts[0];
    assert_eq!((c.used.as_str(), c.other.as_str()), ("$0.300/Mtok", "$0.50/Mtok"));
    let other = file::price("mine", &GOOD.replace("$0.50/Mtok", "$0.30/Mtok"), None).unwrap();
    let mine = file::price("mine", GOOD, None).unwrap();
    let found = mine.lists[0].disagreements(&other.lists[0]);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].field.as_str(), found[0].other.as_str()), ("cache 5m read", "$0.300/Mtok"));
    assert!(mine.lists[0].disagreements(&mine.lists[0]).is_empty());
}

#[test]
fn lifetimes_are_as_documented() {
    let catalog = rackmath_catalog::embedded();
    for (sheet, cache, seconds) in [
        ("opus-4.8", "5m", 300.0),
        ("opus-4.8", "1h", 3600.0),
        ("groq", "automatic", 7200.0),
        ("gpt-5.6", "30m", 1800.0),
    ] {
        let sheet = catalog.price(sheet).unwrap();
        let list = sheet.lists.last().unwrap();
        assert_eq!(list.cache(cache).unwrap().ttl, Ttl::Fixed(rackmath_units::Seconds::s(seconds)));
    }
    let gemini = catalog.price("gemini-3.1-pro").unwrap();
    assert_eq!(gemini.lists[0].cache("explicit").unwrap().ttl, Ttl::Chosen);
}
