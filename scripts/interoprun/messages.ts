// Messages as agents have them, made up for the checks.

const noCost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
const usage = { input: 3, output: 5, cacheRead: 7, cacheWrite: 11, totalTokens: 26, cost: noCost };

let clock = Date.parse("2026-02-16T10:20:30.000Z");
const tick = () => (clock += 1000);

export const text = (s: string) => ({ type: "text", text: s });

export const user = (content: unknown) => ({ role: "user", content, timestamp: tick() });

export const assistant = (content: string | object[], extra: object = {}) => ({
	role: "assistant",
	content: typeof content === "string" ? [text(content)] : content,
	api: "anthropic-messages",
	provider: "anthropic",
	model: "claude-x",
	usage,
	stopReason: "stop",
	timestamp: tick(),
	...extra,
});

export const toolCall = (id: string, name: string, args: object) => ({ type: "toolCall", id, name, arguments: args });

export const toolResult = (id: string, name: string, content: object[], extra: object = {}) => ({
	role: "toolResult",
	toolCallId: id,
	toolName: name,
	content,
	isError: false,
	timestamp: tick(),
	...extra,
});

/** An image of that many bytes. From 768 on it becomes a blob. */
export const image = (bytes: number, seed = 1) => ({
	type: "image",
	data: Buffer.from(Array.from({ length: bytes }, (_, i) => (i * seed * 31) & 255)).toString("base64"),
	mimeType: "image/png",
});

/** What no encoding on the way may change: other planes, controls, separators, half a surrogate pair. */
export const oddText = "héllo 🦊 \u2028 \u0000\u001f \"quoted\\\" <b> \ud83d ünï\tcode";
