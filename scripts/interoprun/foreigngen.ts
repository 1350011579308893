// Sessions of Claude Code and Codex as chance would have them, from a seed: what their importer in the client knows, and what
// it leaves out.
import { Chance } from "./generate";

const says = ["Plain.", "  padded \n", "é 🦊 \u2028 \u0000 \"q\" \\", "# Title\n\n- a\n- b", "<tag>\n</tag>", "{\"a\": 1}", "x".repeat(3000)];
const png = (n: number) => Buffer.from(Array.from({ length: n }, (_, i) => (i * 31) & 255)).toString("base64");
const uuid = (seed: number, n: number) => `${seed.toString(16).padStart(8, "0")}-0000-4000-8000-${n.toString(16).padStart(12, "0")}`;
const clockOf = (seed: number, clock = Date.parse("2026-02-16T10:20:30.000Z") + seed * 3_600_000) => () => new Date((clock += 1000)).toISOString();

/** The id of a generated session. */
export const idOf = (seed: number) => uuid(seed, 0);

export function claude(seed: number, cwd: string): object[] {
	const chance = new Chance(seed), stamp = clockOf(seed), lines: any[] = [], text = () => chance.of(says);
	let n = 0, parent: string | null = null;
	const asked: (string | null)[] = []; // what each message of the person hangs on
	const record = (type: string, fields: object, on = parent) => {
		const id = uuid(seed, ++n);
		lines.push({ parentUuid: on, isSidechain: false, userType: "external", cwd, sessionId: idOf(seed), version: "2.1.39", gitBranch: "main", type, uuid: id, timestamp: stamp(), ...fields });
		return (parent = id);
	};
	const aside = (fields: object) => lines.push({ sessionId: idOf(seed), ...fields });
	const image = () => ({ type: "image", source: { type: "base64", media_type: "image/png", data: png(chance.of([30, 3000])) } });
	const ask = () => record("user", { message: { role: "user", content: chance.once(3) ? [{ type: "text", text: text() }, ...(chance.once(2) ? [image()] : [])] : text() } }, (asked.push(parent), parent));
	const answer = () => {
		const id = `msg_${n}`, calls: { id: string; on: string }[] = [], usage = { input_tokens: 3, output_tokens: 5, cache_read_input_tokens: 7, cache_creation_input_tokens: 11 };
		const block = (content: object, stop: string | null = null) =>
			record("assistant", { requestId: `req_${n}`, message: { id, type: "message", role: "assistant", model: chance.once(5) ? "claude-b" : "claude-a", content: [content], stop_reason: stop, usage } });
		if (chance.once(2)) block({ type: "thinking", thinking: text(), signature: "sig" });
		if (chance.once(9)) block({ type: "redacted_thinking", data: "zz" });
		if (!chance.once(3)) block({ type: "text", text: text() });
		for (let more = chance.below(4); more > 0; more--) {
			const call = `toolu_${seed}_${n}`; // a record for each
			calls.push({ id: call, on: block({ type: "tool_use", id: call, name: chance.of(["Bash", "Read"]), input: { command: text() } }, "tool_use") });
			if (chance.once(4)) record("progress", { toolUseID: call, data: {} });
		}
		if (calls.length === 0) block({ type: "text", text: text() }, "end_turn");
		const content = () => chance.of<any>([text(), [{ type: "text", text: text() }], [{ type: "text", text: text() }, image()]]);
		for (const call of calls) { // each hangs on the record of its own call
			const both = call === calls.at(-1) && chance.once(6) ? [{ type: "text", text: "[Request interrupted]" }] : [];
			record("user", { message: { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: content(), is_error: chance.once(5) }, ...both] }, toolUseResult: { stdout: "x" } }, call.on);
		}
		if (calls.length > 0) answer();
	};
	const steps = [
		() => record("user", { isMeta: true, message: { role: "user", content: "<local-command-caveat>" } }),
		() => record("attachment", { attachment: { type: "todo" } }), () => record("system", { subtype: "turn_duration", durationMs: 5 }),
		() => aside(chance.of([{ type: "file-history-snapshot", snapshot: {} }, { type: "queue-operation", operation: "enqueue" }, { type: "ai-title", aiTitle: "A title" }, { type: "last-prompt", lastPrompt: "x" }])),
		() => record("assistant", { isApiErrorMessage: true, error: "rate_limit", message: { id: `err_${n}`, role: "assistant", model: "<synthetic>", content: [{ type: "text", text: "API Error" }], stop_reason: "stop_sequence" } }),
		() => { // a compaction, with the summary behind it
			record("system", { subtype: "compact_boundary", logicalParentUuid: parent, compactMetadata: { trigger: "auto", preTokens: 4711 } }, null);
			record("user", { isCompactSummary: true, message: { role: "user", content: "So far: " + text() } });
			asked.length = 0;
		},
		() => asked.length > 1 && (parent = asked[chance.below(asked.length)]), // back to an earlier message
	];
	for (let turns = 2 + chance.below(7); turns > 0; turns--) {
		if (chance.once(2)) chance.of(steps)();
		if (ask() && !chance.once(9)) answer();
	}
	return lines;
}

export function codex(seed: number, cwd: string): object[] {
	const chance = new Chance(seed), stamp = clockOf(seed), lines: any[] = [], text = () => chance.of(says);
	const line = (type: string, payload: object) => lines.push({ timestamp: stamp(), type, payload });
	const item = (payload: object) => line("response_item", payload), event = (payload: object) => line("event_msg", payload);
	const message = (role: string, words: string, ...more: object[]) => item({ type: "message", role, content: [{ type: role === "assistant" ? "output_text" : "input_text", text: words }, ...more] });
	line("session_meta", { id: idOf(seed), timestamp: stamp(), cwd, originator: "codex_cli_rs", cli_version: "0.104.0", source: "cli", model_provider: "openai" });
	message("developer", "<permissions>");
	message("user", "<environment_context>\n</environment_context>");
	let turns = 0, total = 0;
	const call = () => {
		const id = `call_${seed}_${lines.length}`, type = chance.of(["function_call", "custom_tool_call"]);
		item({ type, call_id: id, name: "exec_command", [type === "function_call" ? "arguments" : "input"]: chance.of(["{\"cmd\":\"ls\"}", "*** Begin Patch\n*** End Patch", "[1]"]) });
		item({ type: `${type}_output`, call_id: id, output: chance.of<any>([text(), [{ type: "input_text", text: text() }], [{ type: "input_text", text: text() }, { type: "input_image", image_url: `data:image/png;base64,${png(2000)}` }]]) });
	};
	const answer = () => {
		for (let n = chance.below(4); n >= 0; n--) {
			if (chance.once(2)) item({ type: "reasoning", summary: chance.once(3) ? [] : [{ type: "summary_text", text: text() }], content: null, encrypted_content: "sealed" });
			if (chance.once(3)) message("assistant", text());
			if (chance.once(8)) item({ type: "web_search_call", status: "completed", call_id: `ws_${lines.length}`, action: { type: "search", query: "q" } });
			if (!chance.once(3)) call();
			event({ type: "token_count", info: { total_token_usage: { total_tokens: (total += 10) }, last_token_usage: { input_tokens: 6, cached_input_tokens: 2, output_tokens: 4, total_tokens: 10 } } });
		}
		message("assistant", `done ${lines.length}`);
	};
	for (let n = 2 + chance.below(6); n > 0; n--) {
		line("turn_context", { cwd, model: chance.once(4) ? "gpt-b" : "gpt-a", effort: chance.of(["high", "medium"]) });
		const words = `${turns++} ${text()}`;
		message("user", words, ...(chance.once(4) ? [{ type: "input_image", image_url: `data:image/png;base64,${png(30)}` }] : []));
		if (chance.once(2)) event({ type: "user_message", message: words, images: [] });
		if (chance.once(9)) event({ type: "turn_aborted", reason: "interrupted" });
		else answer();
		if (turns > 2 && chance.once(5)) turns--, event({ type: "thread_rolled_back", num_turns: 1 });
		if (chance.once(6)) turns = 0, line("compacted", { message: "So far.", replacement_history: [{ type: "message", role: "user", content: [{ type: "input_text", text: "kept" }] }] });
		if (chance.once(6)) event({ type: "thread_name_updated", thread_name: "A name" });
	}
	return lines;
}
