//! What to deploy: the best plan, the frontier, what would change it, what to buy.

pub mod compare;
pub mod frontier;
pub mod hardware;
pub mod outlook;
pub mod plan;
pub mod planfile;
pub mod sides;
pub mod whatif;
