// Time left is the server's: each answer says how many seconds remain, and from there only the time that passes here
// is taken off. Whether this machine's clock is right does not matter.

/** Note on a request when its time is up, by two clocks: one may stand still while the machine sleeps. */
export function startClock(request) {
  const left = Math.max(0, Number(request.seconds_left) || 0) * 1000;
  request.until = performance.now() + left;
  request.untilByDate = Date.now() + left;
  return request;
}

export function secondsLeft(request) {
  const left = Math.min(request.until - performance.now(), request.untilByDate - Date.now());
  return Math.max(0, Math.ceil(left / 1000));
}

export function writeLeft(seconds) {
  const minutes = Math.floor(seconds / 60);
  if (minutes >= 60) return `${Math.floor(minutes / 60)}:${pad(minutes % 60)}:${pad(seconds % 60)}`;
  return `${minutes}:${pad(seconds % 60)}`;
}

/** The same in words, for those who hear it. */
export function sayLeft(seconds) {
  if (seconds < 60) return `${seconds} seconds left`;
  const minutes = Math.floor(seconds / 60);
  return `${minutes} ${minutes === 1 ? "minute" : "minutes"} left`;
}

/** A moment as this place writes it; with its day where that is not today. */
export function writeTime(iso, { exact = false } = {}) {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return "";
  const clock = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: exact ? "2-digit" : undefined });
  if (time.toDateString() === new Date().toDateString()) return clock;
  return `${time.toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" })}, ${clock}`;
}

function pad(number) {
  return String(number).padStart(2, "0");
}
