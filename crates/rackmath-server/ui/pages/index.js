// The pages in reading order.
export const PAGES = [
  { id: "latency", name: "Latency", about: "Latency and cost against batch; fast and slow mode; trains" },
  { id: "balance", name: "Balance", about: "Balance batch, sparsity and quality; every machine's ridge, balanced context and drain time" },
];
