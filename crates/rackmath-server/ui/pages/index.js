// The pages in reading order.
export const PAGES = [
  { id: "latency", name: "Latency", about: "Latency and cost against batch; fast and slow mode; trains" },
  { id: "practice", name: "Practice", about: "Flashcards and generated problems with worked answers" },
];
