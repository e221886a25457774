// The pages in reading order.
export const PAGES = [
  { id: "latency", name: "Latency", about: "Latency and cost against batch; fast and slow mode; trains" },
  { id: "prices", name: "Prices", about: "Price steps with context, input against output, caches, fast modes, and what prices say about a model" },
  { id: "validation", name: "Validation", about: "Predicted against measured, for every published table" },
];
