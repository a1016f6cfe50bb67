// Written by `warmstart hook install pi`. `warmstart hook uninstall pi` deletes it; changes are lost with the next install.
//
// Pi's events, passed on to `warmstart hook run pi`. On any trouble Pi goes on as if this file were not there.
//
//   session_start, before_agent_start, session_compact   the brief, as a message that Pi keeps in the session
//   tool_call                                            a note about the call; it may correct or stop the call
//   tool_result                                          the note, behind the result; after a failure, the known fix
//   agent_end, session_shutdown                          the transcript is read in the background

import { spawn } from "node:child_process";

const COMMAND: string[] = __COMMAND__;
const LIMITS: Record<string, number> = __EVENTS__; // milliseconds
const LONGEST = 1_000_000; // characters of an answer
const WATCHED = new Set(["read", "edit", "write"]); // after other tools there is nothing to remember
const NAME = "warmstart";

type Output = {
	additionalContext?: string;
	permissionDecision?: string;
	permissionDecisionReason?: string;
	updatedInput?: Record<string, unknown>;
};

/** Run our program once; undefined on any trouble, and when it takes too long. */
function ask(event: Record<string, unknown>): Promise<Output | undefined> {
	return new Promise((resolve) => {
		try {
			const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"], windowsHide: true });
			let text = "";
			const finish = (answer?: Output) => {
				clearTimeout(timer);
				resolve(answer);
			};
			const timer = setTimeout(() => {
				child.kill("SIGKILL");
				child.stdout.destroy();
				finish();
			}, LIMITS[String(event.hook_event_name)] ?? 5_000);
			child.on("error", () => finish());
			child.on("close", () => finish(parse(text)));
			child.stdout.setEncoding("utf8");
			child.stdout.on("data", (part: string) => {
				if (text.length < LONGEST) text += part;
			});
			child.stdin.on("error", () => {});
			child.stdin.end(JSON.stringify(event));
		} catch {
			resolve(undefined);
		}
	});
}

function parse(text: string): Output | undefined {
	try {
		const output = JSON.parse(text).hookSpecificOutput;
		return output && typeof output === "object" ? output : undefined;
	} catch {
		return undefined;
	}
}

/** Wrap a handler: an error of ours is not an error of Pi's. */
function safely(handler: (event: any, ctx: any) => Promise<unknown>) {
	return async (event: any, ctx: any) => {
		try {
			return await handler(event, ctx);
		} catch {
			return undefined;
		}
	};
}

export default function (pi: any) {
	const notes = new Map<string, Record<string, any>>(); // by call: what its result is to carry
	let opened = ""; // the session that has been opened in this process
	let source = "startup"; // how it began

	const describe = (name: string, ctx: any, more: Record<string, unknown> = {}) => ({
		hook_event_name: name,
		session_id: ctx.sessionManager.getSessionId(),
		transcript_path: ctx.sessionManager.getSessionFile() ?? null,
		cwd: ctx.cwd,
		model: ctx.model?.id ?? null,
		...more,
	});
	const makeMessage = (texts: (string | undefined)[]) => {
		const content = texts.filter(Boolean).join("\n\n");
		return content ? { customType: NAME, content, display: false } : undefined;
	};

	pi.on("session_start", safely(async (event, ctx) => {
		const known = ctx.sessionManager.getEntries().some((entry: any) => entry.type === "message");
		const isFork = event.reason === "fork" || (known && isCopy(ctx));
		source = isFork ? "fork" : known ? "resume" : "startup";
	}));

	pi.on("before_agent_start", safely(async (event, ctx) => {
		const session = ctx.sessionManager.getSessionId();
		const texts = [];
		if (opened !== session) {
			opened = session;
			texts.push((await ask(describe("SessionStart", ctx, { source })))?.additionalContext);
		}
		texts.push((await ask(describe("UserPromptSubmit", ctx, { prompt: event.prompt })))?.additionalContext);
		const message = makeMessage(texts);
		return message && { message };
	}));

	pi.on("session_compact", safely(async (_event, ctx) => {
		const answer = await ask(describe("SessionStart", ctx, { source: "compact" }));
		opened = ctx.sessionManager.getSessionId();
		const message = makeMessage([answer?.additionalContext]);
		if (message) pi.sendMessage(message);
	}));

	pi.on("tool_call", safely(async (event, ctx) => {
		const call = { tool_name: event.toolName, tool_input: event.input, tool_use_id: event.toolCallId };
		// Pi asks no person about calls, so a corrected call passes no question by
		const output = await ask(describe("PreToolUse", ctx, { ...call, permission_mode: "bypassPermissions" }));
		if (!output) return;
		if (output.permissionDecision === "deny") return { block: true, reason: output.permissionDecisionReason };
		const kept: Record<string, any> = { note: output.additionalContext };
		if (output.updatedInput) {
			for (const name of Object.keys(event.input)) if (!(name in output.updatedInput)) delete event.input[name];
			Object.assign(event.input, output.updatedInput);
			kept.input = output.updatedInput;
		}
		notes.set(event.toolCallId, kept);
	}));

	pi.on("tool_result", safely(async (event, ctx) => {
		const kept = notes.get(event.toolCallId) ?? {};
		notes.delete(event.toolCallId);
		const texts = [kept.note];
		if (event.isError || WATCHED.has(event.toolName)) {
			const text = event.content.map((part: any) => part.text ?? "").join("\n");
			const call = { tool_name: event.toolName, tool_input: event.input, tool_use_id: event.toolCallId };
			const name = event.isError ? "PostToolUseFailure" : "PostToolUse";
			const output = await ask(describe(name, ctx, { ...call, ...(event.isError ? { error: text } : {}) }));
			texts.push(output?.additionalContext);
		}
		const note = texts.filter(Boolean).join("\n");
		if (!note) return;
		return {
			content: [...event.content, { type: "text", text: note }],
			details: { ...event.details, [NAME]: { ...kept, note } },
		};
	}));

	pi.on("agent_end", safely(async (_event, ctx) => {
		await ask(describe("Stop", ctx));
	}));

	pi.on("session_shutdown", safely(async (_event, ctx) => {
		if (opened) await ask(describe("SessionEnd", ctx));
		opened = "";
	}));
}

/** Whether the session is another one's copy: its newest message is older than the session itself. */
function isCopy(ctx: any): boolean {
	const header = ctx.sessionManager.getHeader();
	if (!header?.parentSession) return false;
	const entries = ctx.sessionManager.getEntries().filter((entry: any) => entry.type === "message");
	return entries[entries.length - 1]?.timestamp < header.timestamp;
}
