// Reads server-sent events from the body of an answer. The browser's own reader (EventSource) sends no headers, so it
// could not send the token that every call needs.

const FIELD = /^([^:]*):? ?(.*)$/s; // U+2028 ends lines for JavaScript, not here

/** Yield each event as `{ event, data, id }`, without the fields that it lacks. An incomplete last event is dropped. */
export async function* readEvents(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let event = {};
  let rest = ""; // an incomplete line
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (line) addField(event, line);
      else {
        if (event.data !== undefined) yield event;
        event = {};
      }
    }
  }
}

function addField(event, line) {
  const [, name, value] = FIELD.exec(line);
  if (name === "data" && event.data !== undefined) event.data += `\n${value}`;
  else if (name) event[name] = value; // a line without a name is a comment
}
