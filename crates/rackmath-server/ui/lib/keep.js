// What stays in this browser: typed answers, and when a card is due again. Storage may be off; then nothing is kept.

const NAME = (name) => `rackmath.${name}`;

/** What was kept under a name, or what stands for nothing. */
export function kept(name, otherwise = null) {
  try {
    return JSON.parse(localStorage.getItem(NAME(name))) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Keeps a value; null forgets it. */
export function keep(name, value) {
  try {
    if (value === null || value === "") localStorage.removeItem(NAME(name));
    else localStorage.setItem(NAME(name), JSON.stringify(value));
  } catch { /* storage is off or full */ }
}

const DAY = 86_400_000;

// Days until a card comes again, by how often in a row it was known.
const GAPS = [0, 1, 3, 7, 16, 35, 90];

/** A card after it was looked at: known, it waits for the next gap; not known, it begins again and stays in this round. */
export function looked(card, knew, now) {
  const row = knew ? Math.min((card?.row ?? 0) + 1, GAPS.length - 1) : 0;
  return { row, due: now + GAPS[row] * DAY, seen: (card?.seen ?? 0) + 1 };
}

/** Whether a card is to be looked at: never seen, or its time has come. */
export const due = (card, now) => !card || card.due <= now;

/** How long until a card comes again, in words. */
export function until(card, now) {
  const days = Math.ceil((card.due - now) / DAY);
  return days <= 0 ? "again in this round" : days === 1 ? "tomorrow" : `in ${days} days`;
}
