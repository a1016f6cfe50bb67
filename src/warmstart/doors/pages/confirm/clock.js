// The time left comes from the server: each answer says how many seconds remain, and only the time that passes here is
// subtracted. A wrong clock on this machine does not matter.

/** Set on a request when its time is up, by two clocks, because one may stop while the machine sleeps. */
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

/** Return the time left in words, for screen readers. */
export function describeLeft(seconds) {
  if (seconds < 60) return `${seconds} seconds left`;
  const minutes = Math.floor(seconds / 60);
  return `${minutes} ${minutes === 1 ? "minute" : "minutes"} left`;
}

/** Write a time in the local format, with its date unless that is today. */
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
