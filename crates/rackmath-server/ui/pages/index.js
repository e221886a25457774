// The pages in reading order: the ways to learn first, then the workbench.
export const PAGES = [
  { id: "lecture", learn: true, name: "Lecture", about: "From one equation to prices, in twelve steps" },
  { id: "practice", learn: true, name: "Practice", about: "Cards that come again when they are due, and problems with worked answers" },
  { id: "latency", name: "Latency", about: "Latency and cost against batch; fast and slow mode; trains" },
  { id: "balance", name: "Balance", about: "Balance batch, sparsity and quality; every machine's ridge, balanced context and drain time" },
  { id: "racks", name: "Racks", about: "Experts on a rack: placement, traffic and memory; one rack against two; scale-up domains" },
  { id: "pipeline", name: "Pipeline", about: "The pipeline slot by slot, its bubble, and memory against stages" },
  { id: "lifecycle", name: "Lifecycle", about: "Pre-training, RL and serving in one budget; over-training under each scaling law" },
  { id: "prices", name: "Prices", about: "Price steps with context, input against output, caches, fast modes, and what prices say about a model" },
  { id: "reversible", name: "Reversible", about: "Ciphers and reversible networks: avalanche, memory and drift" },
  { id: "estimate", name: "Estimate", about: "What a server delivers: waiting, speed, cost, what binds, what would help" },
  { id: "simulate", name: "Simulate", about: "Serving request by request: percentiles, the queue played back, the slowest requests and why" },
  { id: "plan", name: "Plan", about: "What to deploy for a workload and its targets; two machines compared" },
  { id: "validation", name: "Validation", about: "Predicted against measured, for every published table" },
  { id: "ask", name: "Ask", about: "Every question with all its settings, typed as in a terminal" },
];
