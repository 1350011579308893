// A sample of each role, block and entry that append takes, with every field that clients look at.
import { image, text } from "./messages";

const usage = {
	input: 3,
	output: 5,
	cacheRead: 7,
	cacheWrite: 11,
	totalTokens: 26,
	cost: { input: 0.1, output: 0.1, cacheRead: 0.1, cacheWrite: 0.1, total: 0.4 },
};

const picture = () => image(70);

const meta = {
	truncation: { direction: "tail", truncatedBy: "lines", totalLines: 10, totalBytes: 100, outputLines: 5, outputBytes: 50 },
	limits: { matchLimit: { reached: 1, suggestion: 2 } },
	diagnostics: { summary: "s", messages: ["m"] },
};

const answer = (content: object[], extra: object = {}) => ({
	role: "assistant",
	content,
	api: "anthropic-messages",
	provider: "anthropic",
	model: "claude-x",
	stopReason: "stop",
	timestamp: 1_760_000_000_000,
	...extra,
});

const call = (name: string, args: object) => answer([text("So:"), { type: "toolCall", id: "call", name, arguments: args }], { stopReason: "toolUse" });

const result = (toolName: string, details?: object) => ({
	role: "toolResult",
	toolCallId: "call",
	toolName,
	content: [text("out"), picture()],
	details,
	isError: false,
	timestamp: 1_760_000_000_001,
});

const custom = (customType: string, details?: object) => ({
	role: "custom",
	customType,
	content: [text("c"), picture()],
	display: true,
	details,
	attribution: "agent",
	timestamp: 1,
});

const subagent = { index: 0, id: "1", agent: "a", agentSource: "bundled", task: "t", assignment: "x", description: "d", durationMs: 5, tokens: 5 };

export const messages: object[] = [
	{ role: "user", content: "hi", attribution: "user", timestamp: 1 },
	{ role: "user", content: [text("a"), picture(), text("b")], steering: true, timestamp: 1 },
	{ role: "developer", content: [text("a")], synthetic: true, timestamp: 1 },
	answer([
		{ type: "thinking", thinking: "hm", thinkingSignature: "s" },
		{ type: "redactedThinking", data: "zz" },
		{ ...text("t"), textSignature: "s" },
		{ type: "toolCall", id: "call", name: "bash", arguments: { command: "ls" }, thoughtSignature: "s" },
	], { usage }),
	answer([text("partly")], { stopReason: "error", errorMessage: "bad", errorStatus: 500 }),
	answer([text("partly"), { type: "thinking", thinking: "hm" }], { stopReason: "aborted", errorMessage: "Request was aborted" }),
	answer([{ type: "fallback", from: { model: "a" }, to: { model: "b" } }, text("t")], { providerPayload: { type: "openaiResponsesHistory", provider: "openai", items: [{}] } }),
	call("read", { path: "a.ts", offset: 1 }),
	call("edit", { path: "a.ts", edits: [{ op: "replace", old_text: "a", new_text: "b" }] }),
	call("task", { agent: "a", tasks: [{ id: "1", description: "d", assignment: "x" }] }),
	call("lsp", { action: "x", file: "f" }),
	call("debug", { action: "x" }),
	call("ask", { question: "q" }),
	call("mine", { q: ["x"] }),
	result("bash", { meta, images: [picture()], async: { state: "running", jobId: "j", type: "bash" } }),
	result("read", { meta, kind: "file", path: "a" }),
	result("edit", { diff: "+1 a\n-2 b", firstChangedLine: 1, diagnostics: { errored: false, summary: "s", messages: ["m"] }, meta }),
	result("write", { diagnostics: { errored: false, summary: "s", messages: ["m"] } }),
	result("task", { projectAgentsDir: null, results: [{ ...subagent, exitCode: 0, output: "o", stderr: "", truncated: false, usage }], totalDurationMs: 5, usage }),
	result("task", { results: [], totalDurationMs: 5, progress: [{ ...subagent, status: "running", lastIntent: "i", toolCount: 1, recentTools: [{ tool: "x", args: "y", endMs: 1 }], recentOutput: ["x"] }] }),
	result("job", { jobs: [{ id: "a", type: "bash", status: "running", label: "l", durationMs: 5, errorText: "e" }] }),
	result("eval", { cells: [{ index: 0, code: "c", output: "o", status: "complete", statusEvents: [{ op: "read", path: "x" }] }], images: [] }),
	result("github", { watch: { mode: "run", state: "watching", headSha: "s", runs: [], failedLogs: [{ jobName: "j", tail: "t", available: true }] } }),
	result("lsp", { action: "x", serverName: "s", success: true }),
	result("debug", { action: "x", success: true }),
	result("ask", { question: "q", results: [{ id: "1", question: "q", options: ["a"], selectedOptions: ["a"] }] }),
	result("todo_write", { phases: [{ name: "p", tasks: [{ content: "c", status: "pending", notes: ["n"] }] }], storage: "session" }),
	result("web_search", { response: { provider: "exa", answer: "a", sources: [{ title: "t", url: "u" }] } }),
	result("mine", { anything: [1] }),
	{ role: "bashExecution", command: "ls", output: "x\ny", exitCode: 0, cancelled: false, truncated: false, images: [picture()], meta, timestamp: 1 },
	{ role: "pythonExecution", code: "1", output: "x", exitCode: 0, cancelled: false, truncated: false, meta, timestamp: 1 },
	custom("mine", { a: 1 }),
	{ ...custom("mine"), content: "s" },
	{ ...custom("mine"), role: "hookMessage" },
	custom("async-result", { jobId: "j", type: "bash", durationMs: 5, jobs: [{ jobId: "a", type: "bash", label: "l", durationMs: 3 }] }),
	custom("lsp-late-diagnostic", { files: [{ path: "p", summary: "s", messages: ["m"], errored: true }] }),
	custom("skill-prompt", { name: "n", path: "p", args: "a", prompt: "/skill:n a", lineCount: 3 }),
	custom("irc:incoming", { from: "f", message: "m" }),
	custom("irc:relay", { from: "f", to: "t", body: "m" }),
	custom("irc:autoreply", { to: "t", reply: "m" }),
	custom("advisor", { notes: [{ note: "n", severity: "nit" }] }),
	custom("background-tan-dispatch", { jobId: "j", work: "w", sessionFile: "f" }),
	custom("collab-prompt", { from: "x" }),
	{ role: "branchSummary", summary: "s", fromId: "a", timestamp: 1 },
	{ role: "compactionSummary", summary: "s", shortSummary: "x", tokensBefore: 5, tokensAfter: 3, blocks: [text("b"), picture()], timestamp: 1 },
	{ role: "fileMention", files: [{ path: "a", content: "c", lineCount: 3, byteSize: 5, image: picture() }, { path: "b", content: "c" }], timestamp: 1 },
];

export const entries: object[] = [
	{ type: "thinking_level_change", thinkingLevel: "high", configured: "auto" },
	{ type: "model_change", model: "openai/gpt-4o", role: "default" },
	{ type: "model_change", provider: "openai", modelId: "gpt" },
	{ type: "branch_summary", fromId: "root", summary: "s", details: { readFiles: ["a"], modifiedFiles: ["b"] } },
	{ type: "custom", customType: "x", data: { a: 1 } },
	{ type: "custom_message", customType: "x", content: [text("c"), picture()], display: true, details: { a: 1 }, attribution: "user" },
	{ type: "custom_message", customType: "advisor", content: "c", display: true, details: { notes: [{ note: "n" }] } },
	{ type: "ttsr_injection", injectedRules: ["r"] },
	{ type: "session_init", systemPrompt: "p", task: "t", tools: ["bash"], outputSchema: { type: "object" } },
	{ type: "session_init", systemPrompt: ["p", "q"], task: "t", tools: ["bash"], compactionThreshold: { thresholdPercent: 50, thresholdTokens: 5 } },
	{ type: "model_change", model: "openai/gpt-4o", resolvedModelIsFallback: true },
	{ type: "branch_summary", fromId: "root", summary: "", details: { kind: "discarded-entry-branch" } },
	{ type: "mode_change", mode: "plan", data: { planFile: "/x" } },
	{ type: "service_tier_change", serviceTier: { openai: "flex" } },
	{ type: "mcp_tool_selection", selectedToolNames: ["a"] },
];

/** Of these a session has one at most, at its beginning: what is before the last one is not sent. */
export const compactions: object[] = [
	{ type: "compaction", summary: "s\nt", shortSummary: "x", tokensBefore: 5, tokensAfter: 3, details: { readFiles: ["a"], modifiedFiles: ["b"] } },
	{ type: "compaction", summary: "s", tokensBefore: 5, preserveData: { openaiRemoteCompaction: { provider: "openai", replacementHistory: [{ type: "message", role: "user", content: [] }] } } },
];
