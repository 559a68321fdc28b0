/** Formats a time that is left: `2 h 5 min`, `12 min`, `40 s`. */
export function timeLeft(seconds: number): string {
  if (!Number.isFinite(seconds)) {
    return '–';
  }
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 90) {
    return `${whole} s`;
  }
  const minutes = Math.round(whole / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
