//! From where on something is said about a measurement: every limit with its reason.
//!
//! None of them changes a figure; each decides whether a sentence stands beside it, or whether it counts at all.

/// A request that is taken up later than this after its time was not sent when it should have been: a client on an idle machine is below a
/// tenth of it, and the shortest times of servers are some milliseconds.
pub const LAG_S: f64 = 1e-3;
/// Where answers are slow, a lag of this share of the mean TTFT changes it by less than what its interval leaves open.
pub const LAG_OF_TTFT: f64 = 0.01;

/// A run is steady from when on this share of the median number of requests is under way.
pub const STEADY: f64 = 0.9;
/// A steady part of fewer answers' lengths than this still feels ramp and drain: a tenth of it is either.
pub const LENGTHS: f64 = 10.0;
/// The number under way grows where its last quarter has this much more than its second, and some square roots of it, by which chance moves it.
pub const GROWS: (f64, f64) = (1.3, 2.0);
/// A rung of a ladder holds if it serves this much of what is offered; the rest may still be under way when the rung ends.
pub const HOLDS: f64 = 0.9;

/// Where more than this share of requests failed, the times are of the others, which had the server for themselves: no verdict.
pub const FAILED: f64 = 0.01;

/// Waiting above this share of TTFT is the part to blame for it; it is then larger than any error of the prompt's pass.
pub const QUEUE_PART: f64 = 0.3;
/// New connections above this are a part of TTFT worth naming: on a loopback or in one building they take a tenth.
pub const CONNECT_S: f64 = 2e-3;
/// A cache smaller than this share of the predicted one was given another share of the memory, or another format: a format halves it.
pub const CACHE_ROOM: f64 = 0.7;
/// Hits of a prefix cache below this share of a prompt are the beginnings that all prompts share.
pub const HITS: f64 = 0.005;

/// Hits of a prefix cache below this share of what is expected are a fault: which prompts happen to come in an interval moves them by less.
pub const HITS_OF: f64 = 0.7;

/// Tokens that a prefix cache must have been asked for before it is said never to hit: some prompts of a usual length.
pub const QUERIES: f64 = 1e4;

/// A cache fuller than this has no room for one more long prompt.
pub const CACHE_FULL: f64 = 0.95;
/// Waiting above this share of TTFT is most of it.
pub const QUEUE_MOST: f64 = 0.5;
/// A queue grows where it has become longer by this many square roots of itself, and by at least as many times this many requests.
pub const QUEUE_GROWS: f64 = 2.0;
/// Instants at which a gauge must have been looked at before its mean is held against Little's law, and how far both may be apart.
pub const LOOKS: usize = 10;
pub const LITTLE_OFF: f64 = 0.2;
