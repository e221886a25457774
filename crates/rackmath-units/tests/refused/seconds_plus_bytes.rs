use rackmath_units::{Bytes, Seconds};

fn main() {
    let _ = Seconds::ms(1.0) + Bytes::gb(1.0);
}
