// Written by `warmstart hook install opencode`. `warmstart hook uninstall opencode` deletes it; changes are lost with the
// next install.
//
// OpenCode's events, passed on to `warmstart hook run opencode`. On any trouble OpenCode goes on as if this file were not
// there.
//
//   chat.message                           the brief, as a part of the person's first message that OpenCode keeps
//   tool.execute.before                    a note about the call; it may correct or stop the call
//   tool.execute.after                     the note, behind the result; after a failed command, the known fix
//   experimental.chat.messages.transform   the same for tools that failed, and the brief again after a compaction
//   event (session.idle), dispose          the session is read in the background

import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { isAbsolute, join } from "node:path"

const COMMAND = __COMMAND__
const LIMITS = __EVENTS__ // milliseconds
const LONGEST = 1_000_000 // characters of an answer
const WATCHED = new Set(["read", "edit", "write", "apply_patch"]) // after other tools there is nothing to remember
const STOPPED = "[warmstart] stopped: "
const NAME = "warmstart"

/** Run our program once; undefined on any trouble, and when it takes too long. */
function ask(event) {
  return new Promise((resolve) => {
    try {
      const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"], windowsHide: true })
      let text = ""
      const finish = (answer) => {
        clearTimeout(timer)
        resolve(answer)
      }
      const timer = setTimeout(() => {
        child.kill("SIGKILL")
        child.stdout.destroy()
        finish()
      }, LIMITS[event.hook_event_name] ?? 5_000)
      child.on("error", () => finish())
      child.on("close", () => finish(parse(text)))
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (part) => {
        if (text.length < LONGEST) text += part
      })
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(event))
    } catch {
      resolve(undefined)
    }
  })
}

function parse(text) {
  try {
    const output = JSON.parse(text).hookSpecificOutput
    return output && typeof output === "object" ? output : undefined
  } catch {
    return undefined
  }
}

/** Wrap a hook: an error of ours is not an error of OpenCode's. */
function safely(hook) {
  return async (input, output) => {
    try {
      await hook(input, output)
    } catch {}
  }
}

function findDatabase() {
  const folder = join(process.env.XDG_DATA_HOME || join(homedir(), ".local", "share"), "opencode")
  const named = process.env.OPENCODE_DB || "opencode.db"
  return isAbsolute(named) ? named : join(folder, named)
}

let made = 0

/** Return an id that sorts behind those that OpenCode has made so far, as it makes them itself. */
function makePartId() {
  const stamp = ((BigInt(Date.now()) * 0x1000n + BigInt(0x800 + (made++ % 0x700))) & 0xffffffffffffn).toString(16)
  return "prt_" + stamp.padStart(12, "0") + Math.random().toString(36).slice(2, 16).padEnd(14, "0")
}

export const Warmstart = async ({ client, directory }) => {
  const opened = new Map() // sessions of this process, each with its parent's id or ""
  const calls = new Map() // calls that have begun: tool, arguments, and what the result is to carry

  const describe = (name, session, more = {}) => {
    const root = opened.get(session) || session
    const event = { hook_event_name: name, session_id: root, cwd: directory, ...more }
    event.transcript_path = `${findDatabase()}#${root}`
    return root === session ? event : { ...event, agent_id: session }
  }

  /** Look up a session once: which one it belongs to, and how it began. */
  const look = async (session) => {
    const { data: info } = await client.session.get({ path: { id: session } })
    const { data: messages } = await client.session.messages({ path: { id: session }, query: { limit: 1 } })
    const newest = messages?.[messages.length - 1]?.info
    const source = !newest ? "startup" : newest.time.created < info.time.created ? "fork" : "resume"
    let root = info.parentID ?? ""
    for (let parent = root, depth = 0; parent && depth < 8; depth++) {
      root = parent
      parent = (await client.session.get({ path: { id: parent } })).data?.parentID
    }
    opened.set(session, root)
    return { source, root }
  }

  const makePart = (message, text) => ({
    id: makePartId(),
    sessionID: message.sessionID,
    messageID: message.id,
    type: "text",
    text,
    synthetic: true,
    metadata: { [NAME]: {} },
  })

  /** Keep a part in OpenCode's own record, so that later requests carry it byte for byte. */
  const keep = safely((part) =>
    client._client.patch({
      url: "/session/{id}/message/{messageID}/part/{partID}",
      path: { id: part.sessionID, messageID: part.messageID, partID: part.id },
      headers: { "Content-Type": "application/json" },
      body: part,
    }),
  )

  const ending = new Set() // sessions whose end is still to be reported

  return {
    "chat.message": safely(async (input, output) => {
      const session = input.sessionID
      const begins = opened.has(session) ? undefined : await look(session)
      if (opened.get(session)) return // a subagent
      ending.add(session)
      const texts = []
      const more = { model: input.model?.modelID ?? output.message.model?.modelID ?? null }
      if (begins) {
        texts.push((await ask(describe("SessionStart", session, { ...more, source: begins.source })))?.additionalContext)
      }
      const prompt = output.parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
      const event = describe("UserPromptSubmit", session, { ...more, prompt: prompt.join("\n") })
      texts.push((await ask(event))?.additionalContext)
      const text = texts.filter(Boolean).join("\n\n")
      if (text) output.parts.push(makePart(output.message, text))
    }),

    "tool.execute.before": async (input, output) => {
      let reason
      await safely(async () => {
        if (!opened.has(input.sessionID)) await look(input.sessionID)
        const call = { tool_name: input.tool, tool_input: output.args, tool_use_id: input.callID }
        calls.set(input.callID, call)
        // OpenCode checks its permissions after this, on the corrected call: no question is passed by
        const more = { ...call, permission_mode: "bypassPermissions" }
        const answer = await ask(describe("PreToolUse", input.sessionID, more))
        if (answer?.permissionDecision === "deny") {
          calls.delete(input.callID)
          reason = answer.permissionDecisionReason
        } else if (answer) {
          call.kept = { note: answer.additionalContext }
          if (answer.updatedInput) {
            for (const name of Object.keys(output.args)) if (!(name in answer.updatedInput)) delete output.args[name]
            Object.assign(output.args, answer.updatedInput)
            call.kept.input = { ...answer.updatedInput }
          }
        }
      })()
      if (reason) throw new Error(reason.startsWith(STOPPED) ? reason : STOPPED + reason)
    },

    "tool.execute.after": safely(async (input, output) => {
      const { kept, ...call } = calls.get(input.callID) ?? {}
      calls.delete(input.callID)
      const exit = output.metadata?.exit
      const failed = typeof exit === "number" && exit !== 0
      const note = await complete(input.sessionID, call, kept, failed ? output.output : undefined)
      if (!note) return
      output.output += `\n\n${note}`
      output.metadata = { ...output.metadata, [NAME]: { ...kept, note } }
    }),

    "experimental.chat.messages.transform": safely(async (_input, output) => {
      const last = output.messages[output.messages.length - 1]
      if (!last || !opened.has(last.info.sessionID)) return
      await nameFixes(output.messages)
      if (!opened.get(last.info.sessionID)) await briefAgain(output.messages)
    }),

    event: safely(async ({ event }) => {
      if (event.type === "session.idle" && ending.has(event.properties.sessionID)) {
        await ask(describe("Stop", event.properties.sessionID))
      }
    }),

    dispose: safely(async () => {
      const sessions = [...ending]
      ending.clear()
      for (const session of sessions) await ask(describe("SessionEnd", session))
    }),
  }

  /** Return what a result is to carry: the note from before the call, and after a failure the fix. */
  async function complete(session, call, kept, error) {
    const texts = [kept?.note]
    if (error !== undefined || WATCHED.has(call.tool_name)) {
      const name = error !== undefined ? "PostToolUseFailure" : "PostToolUse"
      const answer = await ask(describe(name, session, error !== undefined ? { ...call, error } : call))
      texts.push(answer?.additionalContext)
    }
    return texts.filter(Boolean).join("\n")
  }

  /** OpenCode calls no hook after a tool that failed: its part is completed before the next request. */
  async function nameFixes(messages) {
    for (const part of messages.flatMap((message) => message.parts)) {
      if (part.type !== "tool" || part.state.status !== "error" || !calls.has(part.callID)) continue
      const { kept, ...call } = calls.get(part.callID)
      calls.delete(part.callID)
      const note = await complete(part.sessionID, call, kept, part.state.error)
      if (!note) continue
      part.state.error += `\n\n${note}`
      part.state.metadata = { ...part.state.metadata, [NAME]: { ...kept, note } }
      await keep(part)
    }
  }

  /** After a compaction a request may lack the brief: it is given again with the newest message of the person. */
  async function briefAgain(messages) {
    const at = messages.findLastIndex((message) => message.info.role === "assistant" && message.info.summary)
    const briefed = messages.some((message) => message.parts.some((part) => part.type === "text" && part.metadata?.[NAME]))
    const message = messages.findLast((one) => one.info.role === "user")
    if (at < 0 || briefed || !message) return
    const answer = await ask(describe("SessionStart", message.info.sessionID, { source: "compact" }))
    if (!answer?.additionalContext) return
    const part = makePart(message.info, answer.additionalContext)
    message.parts.push(part)
    await keep(part)
  }
}
