//! The cards: topic, claim, front, back.

use super::Topic::{Batch, Lifecycle, Pipeline, Prices, Racks, Reversible};
use super::{Card, Topic};

/// All of them, in the order of the lecture.
#[rustfmt::skip] // a table
pub const CARDS: &[Card] = &[
    card(Batch, "D1", "What sets the time of one decode step?",
        "The slower of two things that run side by side: multiplying, and reading memory. t = max(t_compute, t_memory)."),
    card(Batch, "D2", "How does the compute time of a step grow with the batch?",
        "In proportion: each sequence multiplies every active parameter once, two FLOP each, so t_compute = 2 B N_act / F."),
    card(Batch, "D3", "Which two parts has the memory time of a step?",
        "The weights, read once for the whole batch, and the KV cache, read for each sequence: (w N + B L kv) / W."),
    card(Batch, "D4", "Draw step time against batch. Which lines, and which one is bold?",
        "A flat line for the weights, a shallow slope for the cache on top of it, a steeper slope through the origin for compute. The upper envelope is the step time; its left end is the floor."),
    card(Batch, "D13", "Where does the latency floor of a machine come from?",
        "Every weight has to be read once per step, however few users there are. Reading the whole memory once bounds any step that does not repeat itself."),
    card(Batch, "D6", "Which two costs can no batch amortise?",
        "Each sequence's own arithmetic and each sequence's own cache. Only the reading of the weights is shared."),
    card(Batch, "D10", "Why has the ratio of compute to bandwidth stayed about the same over chip generations?",
        "Both grew together: chips and memory were scaled in step, so the ridge in tokens at equal precision moved little."),
    card(Batch, "D9", "Derive the balance batch.",
        "Set compute equal to reading the weights: 2 B N_act / F = w N_tot / W. Then B = R S, with R = F w / (2 W) and S = N_tot / N_act."),
    card(Batch, "D12", "Why do trains leave on a fixed timetable, and what does another interval cost?",
        "A step of about the memory's sweep time fills the machine. Leaving sooner wastes bandwidth on few riders; leaving later adds waiting and saves nothing."),
    card(Racks, "D20", "Why is a rack the natural edge of an expert layer?",
        "Any token may go to any expert, so every chip talks to every other. Inside the rack that runs on the fast network; across racks it falls to the slow one, several times over."),
    card(Pipeline, "D28", "Why do bubbles appear in a training pipeline?",
        "The first stage waits for the last one's backward pass before the weights may change; at the start and the end of a step most stages have nothing to do."),
    card(Pipeline, "D29", "Why may two batches not overlap in training, when two requests may in serving?",
        "The second batch needs the weights that the first one updates. Serving never changes the weights."),
    card(Pipeline, "D33", "Why do pipeline stages split the weights but save no KV memory?",
        "With P stages a chip keeps 1/P of the layers, but P batches are in flight to keep all stages busy: the cache per chip stays as it was."),
    card(Pipeline, "D36C", "Why is pipelining called unwise where it is not needed?",
        "It ties the architecture to equal stages, loses time to uneven ones, and makes every experiment harder to change."),
    card(Lifecycle, "D38", "Where does the 6 in 6 N D come from?",
        "Two FLOP per parameter forward, and twice that backward: once for the gradient of the inputs, once for that of the weights."),
    card(Lifecycle, "D38", "Which three costs has a model over its life?",
        "Pre-training, reinforcement learning, and serving; the last two run at the lower efficiency of decoding."),
    card(Lifecycle, "D37", "Why should the costs of training and of serving come out about equal?",
        "One falls as a power of what the other rises with. The sum is least where they stand as the powers do, and these are close to each other."),
    card(Lifecycle, "D39", "With decoding at a third of the training efficiency, how do the token counts compare when costs are equal?",
        "6 D = 2 x 3 D_served: as many tokens are served as were trained on. RL with six FLOP per parameter comes to a third of that."),
    card(Lifecycle, "D41", "A model serves a few million tokens per second for two months. Which number do you need first?",
        "Rate times lifetime: two months are about five million seconds, so a million tokens per second make five trillion."),
    card(Lifecycle, "D42", "By what factor is such a model over-trained?",
        "Its tokens per parameter over the twenty of the compute-optimal rule."),
    card(Prices, "D44", "Why does long context cost more per token?",
        "Each new token reads the cache of all earlier ones. Beyond the crossover that reading, not the arithmetic, sets the time."),
    card(Prices, "D44", "Sketch cost and price against context.",
        "Compute is flat, memory rises in a line; cost is the larger. The price is a staircase over it, with its step near the crossover."),
    card(Prices, "D45", "How does a price step at 200k tokens give away the bytes of cache per token?",
        "At the step the two times are equal: 2 N_act / F = L kv / W. So kv = 2 N_act W / (F L), if the batch is large and the step sits at the crossover."),
    card(Prices, "D48", "What does an output price of three to five times the input price say?",
        "Reading a prompt keeps the arithmetic busy, writing an answer does not: decoding reaches a third to a fifth of the efficiency."),
    card(Prices, "D53", "Why is a cache hit about ten times cheaper than a miss?",
        "A hit moves bytes that are already there; a miss computes them anew. The discount is the price of keeping against the price of recomputing."),
    card(Reversible, "D54", "Why do ciphers and transformers look alike?",
        "Both mix, then apply a nonlinear step, round after round, so that every output depends on every input in few rounds on parallel hardware."),
    card(Reversible, "D56", "In what sense are their goals opposite, and what do they share?",
        "A cipher hides structure, a network finds it. Both can be run backwards if built from Feistel steps, which lets a network forget its activations."),
];

const fn card(topic: Topic, claim: &'static str, front: &'static str, back: &'static str) -> Card {
    Card { topic, front, back, claim }
}
