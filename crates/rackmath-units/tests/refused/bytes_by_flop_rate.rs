use rackmath_units::{Bytes, FlopRate};

fn main() {
    let _ = Bytes::gb(80.0) / FlopRate::tflop_per_s(989.0);
}
