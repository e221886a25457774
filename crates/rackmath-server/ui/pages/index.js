// The pages in reading order.
export const PAGES = [
  { id: "latency", name: "Latency", about: "Latency and cost against batch; fast and slow mode; trains" },
  { id: "estimate", name: "Estimate", about: "What a server delivers: waiting, speed, cost, what binds, what would help" },
  { id: "plan", name: "Plan", about: "What to deploy for a workload and its targets; two machines compared" },
];
