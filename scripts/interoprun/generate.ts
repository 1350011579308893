// Sessions as chance would have them, from a seed, for what a client sends: every role, block and type of entry that
// matters to it, in places where it matters.
import { image, text } from "./messages";

/** Numbers as chance would have them, from a seed: xorshift. */
export class Chance {
	#state: number;
	constructor(seed: number) {
		this.#state = (seed * 2654435761) >>> 0 || 1;
	}
	below(n: number): number {
		this.#state ^= this.#state << 13;
		this.#state ^= this.#state >>> 17;
		this.#state ^= this.#state << 5;
		return (this.#state >>> 0) % n;
	}
	of<T>(list: readonly T[]): T {
		return list[this.below(list.length)];
	}
	/** true once in n times */
	once(n: number): boolean {
		return this.below(n) === 0;
	}
}

const texts = [
	"Plain.", "", "  padded  \n\n\n\nwith   blanks \t\n", "| a | b |\n| :-- | --: |\n| 1 |  2 |", "```\ncode  \n\n\n\n```\nafter  ", "<summary>\n\n</summary>",
	"a\u2028b \ud83e\udd8a \"q\" \\ \u0000", "  </x>\n text", "~~~\n| x  |\n~~~", "\u00a0\n\u00a0x", "line\r\n\r\nnext\r\n", "{{message}} {{#if}}", "|---|", "| |", "||", "|-x-|",
	"…<system-notice>", "\n\n", "\u3000indented | row |", "\t| a |  b |",
];

/** What a timestamp can be beside what clients write. */
const stamps = ["never", null, true, false, 0, -1.9, 12.5, 8.64e15, 8.64e15 + 1, {}, [], [null], [true], [2026], ["2026-02-16T10:20:30.000Z"], [["2026-02-16"]], undefined];

/** A session's lines. blob is the name of one that is in blobs/. */
export function session(seed: number, project: string, blob: string): object[] {
	const chance = new Chance(seed);
	let clock = Date.parse("2026-02-16T10:20:30.000Z") + seed * 1000;
	const stamp = () => new Date((clock += 1000)).toISOString();
	const lines: any[] = [{ type: "session", version: 3, id: `sent-${seed}`, timestamp: stamp(), cwd: project }];
	const ids: string[] = [];
	let calls: { id: string; name: string }[] = [];
	let leaf: string | null = null;
	const add = (entry: object) => {
		const id = `e${ids.length}`.padEnd(8, "0");
		lines.push({ id, parentId: leaf, timestamp: chance.once(8) ? chance.of(stamps) : stamp(), ...entry });
		ids.push(id);
		leaf = id;
	};
	const any = () => chance.of(texts);
	const picture = () =>
		chance.once(3) ? { type: "image", data: `blob:sha256:${chance.once(3) ? "0".repeat(64) : blob}`, mimeType: "image/png" } : image(40, 1 + chance.below(5));
	const summary = () => (chance.once(4) ? chance.of([undefined, null, 7, false]) : any());
	const blocks = () => Array.from({ length: 1 + chance.below(3) }, () => (chance.once(4) ? picture() : text(any())));
	const content = () => (chance.once(2) ? any() : blocks());
	const attribution = () => chance.of([{}, { attribution: "user" }, { attribution: "agent" }, { attribution: "x" }, { attribution: null }]);
	const meta = () =>
		chance.of<object>([
			{}, {}, {
				meta: {
					truncation: {
						direction: chance.of(["head", "tail", "middle"]), truncatedBy: chance.of(["lines", "bytes", "middle"]), totalLines: 12345, totalBytes: 9876543,
						outputLines: chance.of([1, 50]), outputBytes: chance.of([500, 5000, 5_000_000]), ...(chance.once(2) && { shownRange: { start: 3, end: chance.of([2, 9]) } }),
						...(chance.once(2) && { headRange: { start: 1, end: 5 }, tailRange: { start: 90, end: 99 } }), ...(chance.once(3) && { elidedBytes: chance.of([0, 2048]), elidedLines: 1 }),
						...(chance.once(3) && { artifactId: "7" }), ...(chance.once(3) && { nextOffset: 51 }), ...(chance.once(4) && { partialLine: true }), ...(chance.once(3) && { maxBytes: 51200 }),
					},
					...(chance.once(3) && { source: { type: "report", value: "r" } }),
				},
			},
			{ meta: { limits: { matchLimit: { reached: 10, suggestion: 20 }, columnTruncated: { maxColumn: 768, ...(chance.once(2) && { unit: "bytes", artifactId: "3" }) } }, artifactError: "write" } },
		]);
	const answer = () => {
		const parts: any[] = [];
		for (let n = chance.below(4); n >= 0; n--) {
			const kind = chance.below(9);
			if (kind < 3) parts.push({ ...text(any()), ...(chance.once(4) && { textSignature: "s" }) });
			else if (kind < 5) parts.push({ type: "thinking", thinking: any(), ...(chance.once(2) && { thinkingSignature: chance.of(["sig", "", " "]) }) });
			else if (kind === 5) parts.push({ type: "redactedThinking", data: chance.of(["zz", ""]) });
			else if (kind === 6) parts.push({ type: "fallback", from: { model: "a" }, to: { model: "b" } });
			else {
				const call = { id: `c${lines.length}.${n}`, name: chance.of(["bash", "read"]) };
				calls.push(call);
				parts.push({ type: "toolCall", ...call, arguments: { a: n }, ...(chance.once(3) && { thoughtSignature: "t" }) });
			}
		}
		const stop = chance.of(["stop", "stop", "toolUse", "toolUse", "length", "error", "aborted", "aborted"]);
		return {
			role: "assistant", content: parts, api: "openai-responses", provider: chance.of(["openai", "anthropic", "github-copilot"]), model: chance.of(["m1", "m2"]),
			usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } },
			stopReason: stop, timestamp: clock, ...(stop === "aborted" && chance.once(2) && { errorMessage: "Interrupted by user" }),
			...(stop === "error" && { errorMessage: "bad", ...(chance.once(3) && { stopDetails: { type: chance.of(["refusal", "other"]) } }) }),
			...(chance.once(12) && { retryRecovery: true }), ...(chance.once(5) && { providerPayload: { type: "openaiResponsesHistory", provider: "openai", items: [{ type: "reasoning", id: "r" }] } }),
		};
	};
	const message = (m: object) => add({ type: "message", message: m });
	const custom = () => ({
		customType: chance.of(["mine", "mine", "skill-prompt", "collab-prompt", "interrupted-thinking", "prewalk-plan", "vibe-mode-context", ""]),
		content: content(), display: chance.once(2), ...(chance.once(3) && { details: { a: 1 } }), ...attribution(),
	});
	const frame = () => ({
		data: chance.of([`blob:sha256:${blob}`, `blob:sha256:${"0".repeat(64)}`, "AAAA", "A".repeat(chance.once(12) ? 1_400_000 : 20), ""]), mimeType: "image/png", cols: 1, rows: 1, chars: 1,
		...(chance.once(2) && { font: "f", variant: "v" }), ...(chance.once(3) && { detail: "high" }),
	});
	const archive = () => ({
		frames: Array.from({ length: chance.of([0, 1, 3, 4, 20]) }, frame), totalChars: 5, truncatedChars: chance.of([0, 7, 2_000_000]),
		...(chance.once(2) && { textHead: `a\u2588b\u000e${any()}` }), ...(chance.once(2) && { textTail: `z${any()}` }), ...(chance.once(2) && { text: "whole" }),
	});
	const steps: (() => void)[] = [
		() => message({ role: "user", content: content(), timestamp: clock, ...attribution(), ...(chance.once(4) && { steering: true }) }),
		() => message({ role: "user", content: any(), timestamp: clock }),
		() => message({ role: "developer", content: content(), timestamp: clock, ...attribution() }),
		() => message(answer()), () => message(answer()), () => message(answer()),
		() => {
			message(answer());
			if (chance.once(2)) add({ type: "custom_message", ...custom(), customType: "interrupted-thinking" });
		},
		...Array.from({ length: 4 }, () => () => {
			const call = calls.length > 0 && !chance.once(6) ? calls.splice(chance.below(calls.length), 1)[0] : { id: "stray", name: "bash" };
			message({
				role: "toolResult", toolCallId: call.id, toolName: call.name, content: blocks(), isError: chance.once(4), timestamp: clock, ...attribution(),
				...(chance.once(5) && { prunedAt: 5 }), ...(chance.once(4) && { details: { images: [{ data: `blob:sha256:${blob}`, mimeType: "image/PNG" }] } }),
			});
		}),
		() => message({ role: "bashExecution", command: any(), output: any(), exitCode: chance.of([0, 1, null, undefined]), cancelled: chance.once(4), truncated: false, timestamp: clock,
			...(chance.once(4) && { images: [picture()] }), ...(chance.once(5) && { excludeFromContext: true }), ...meta() }),
		() => message({ role: "pythonExecution", code: any(), output: any(), exitCode: chance.of([0, 3]), cancelled: chance.once(4), truncated: false, timestamp: clock, ...meta() }),
		() => message({ role: "fileMention", files: Array.from({ length: chance.below(4) }, () => ({ path: `p${chance.below(9)}`, content: any(), ...(chance.once(3) && { image: picture() }) })), timestamp: clock }),
		() => message({ role: chance.of(["custom", "hookMessage"]), ...custom(), timestamp: clock }),
		() => message({ role: chance.of(["branchSummary", "other"]), summary: summary(), fromId: "x", timestamp: clock }),
		() => message({ role: "compactionSummary", summary: summary(), tokensBefore: 5, timestamp: clock, ...(chance.once(3) && { method: "handoff" }), ...(chance.once(3) && { blocks: blocks() }), ...(chance.once(3) && { images: [picture()] }) }),
		() => add({ type: "custom_message", ...custom() }),
		() => add({ type: "custom_message", customType: 7, content: chance.of<any>([7, null, "s"]), display: "x", attribution: 3 }),
		() => add({ type: "branch_summary", fromId: "root", summary: summary() }),
		() => add({ type: "branch_summary", fromId: "root", summary: "", details: { kind: chance.of(["discarded-entry-branch", "pruned-empty-branches"]) } }),
		() => add({ type: "custom", customType: "experimental_context_notes", data: chance.of<any>([{ version: 1, text: any() }, { version: 2, text: "no" }, { version: 1, text: "x", more: 1 }, "no"]) }),
		() => add({ type: "thinking_level_change", thinkingLevel: chance.of(["high", null]), ...(chance.once(2) && { configured: chance.of(["auto", null]) }) }),
		() => add({ type: "model_change", ...chance.of([{ model: "openai/x" }, { model: "openai/y", role: "smol", resolvedModelIsFallback: true }, { provider: "a", modelId: "b" }]) }),
		() => add({ type: "service_tier_change", serviceTier: chance.of<any>(["flex", "priority", "claude-only", "what", null, { openai: "flex", google: "x" }, {}]) }),
		() => add({ type: "ttsr_injection", injectedRules: chance.of([["a", "b", "a"], ["b"], []]) }),
		() => add({ type: "mode_change", mode: chance.of(["plan", "none"]), ...(chance.once(2) && { data: { file: "p" } }) }),
		() => add(chance.of([{ type: "archive", targetId: ids[0] ?? "x", archived: true }, { type: "credential_pin", provider: "a", hash: "h" }, { type: "label", targetId: ids[0] ?? "x", label: "l" }])),
		() => chance.once(2) && add({ type: "reset_boundary" }),
		() => {
			const kept = chance.once(8) ? chance.of(["", "gone"]) : (chance.of(ids.slice(-6)) ?? "");
			const through = chance.once(2) && ids.length > 0 ? { providerReplayThroughEntryId: chance.of(ids) } : {};
			add({
				type: "compaction", summary: summary(), shortSummary: "s", firstKeptEntryId: kept, tokensBefore: 9, ...through, ...(chance.once(3) && { method: "handoff" }), ...(chance.once(3) && { tokensAfter: 3, warning: "w" }),
				...(chance.once(3) && { details: { kind: "experimental-context-rollover" } }),
				...(chance.once(3) && {
					preserveData: chance.of<any>([
						{ openaiRemoteCompaction: { provider: "openai", replacementHistory: chance.of<any>([[{ type: "message" }], [1], []]) } },
						{ openaiRemoteCompaction: { provider: "openai", replacementHistory: [{ type: "message", content: [{ type: "input_image", image_url: `blob:sha256:${blob}` }] }, { type: "image_generation_call", result: `blob:sha256:${blob}` }] } },
						{ snapcompact: archive() }, { snapcompact: archive() }, { snapcompact: archive() },
						{ anthropicCompaction: { provider: "anthropic", content: any(), encryptedContent: "e" } },
					]),
				}),
			});
		},
		() => {
			if (ids.length > 2 && chance.once(2)) leaf = chance.of(ids);
		},
	];
	for (let n = 6 + chance.below(18); n > 0; n--) chance.of(steps)();
	return lines;
}
