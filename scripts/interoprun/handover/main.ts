// bun main.ts CACHE VERSION MOUNT PROJECT
// Sessions of omp, Codex, Copilot, OpenCode and Claude Code are handed to one another, and those of pi to them, by sessionfs resume --in, which starts the real client, and
// services on this machine answer it: what they are sent is what was said. Claude Code is tried where SESSIONFS_CLAUDE names it.
import * as fs from "node:fs";
import * as path from "node:path";
import { commandOf as ompOf, configure as configureOMP } from "../../terminalrun/agent";
import { commandOf as codexOf, configure as configureCodex } from "../codex/program";
import { check, expect, reportFor } from "../report";
import { canonical, isAdded, type Part, Service, type Talk } from "./service";

const [cache, version, , project] = process.argv.slice(2), home = process.env.HOME!;
const claude = process.env.SESSIONFS_CLAUDE, limit = 120_000;
type Agent = "omp" | "codex" | "copilot" | "opencode" | "claude";
const agents: Agent[] = ["omp", "codex", "copilot", "opencode", ...(claude ? ["claude" as const] : [])];
/** Copilot has one session of omp and one of pi, the others three. */
const agentsFor = (seed: number): Agent[] => agents.filter(agent => agent !== "copilot" || seed === 1 || seed === 4);
const ompAgent = path.join(home, ".omp/agent"), piAgent = path.join(home, ".pi/agent"), bin = path.join(home, "bin");
reportFor(version);
const service = new Service();

/** Programs of the agents' names that go on with a session once, with the prompt in $PROMPT. */
function install(): void {
	for (const dir of [bin, path.join(home, ".codex/sessions"), path.join(home, ".claude/projects"), path.join(home, ".copilot/session-state"), path.join(home, ".config/opencode"), path.join(ompAgent, "terminal-sessions")]) fs.mkdirSync(dir, { recursive: true });
	configureOMP(ompAgent, `${service.url}/v1`);
	const models = path.join(ompAgent, "models.yml"), seeing = JSON.parse(fs.readFileSync(models, "utf8"));
	seeing.providers.local.models[0].input = ["text", "image"];
	fs.writeFileSync(models, JSON.stringify(seeing));
	configureCodex(path.join(home, ".codex"), project, `${service.url}/v1`, "gpt-5.3-codex");
	const seeingModel = { name: "stub", tool_call: true, attachment: true, modalities: { input: ["text", "image"], output: ["text"] }, limit: { context: 100_000, output: 10_000 } };
	const provider = { npm: "@ai-sdk/openai-compatible", name: "here", options: { baseURL: `${service.url}/v1`, apiKey: "none" }, models: { stub: seeingModel } };
	fs.writeFileSync(path.join(home, ".config/opencode/opencode.json"), JSON.stringify({ provider: { here: provider }, model: "here/stub", small_model: "here/stub", autoupdate: false, permission: "allow" }));
	const copilot = path.join(cache, "client-copilot-1.0.102/node_modules/.bin/copilot"), opencode = opencodeOf(path.join(cache, "client-opencode-1.18.33"));
	const programs: Record<Agent, string> = {
		copilot: `exec '${copilot}' --allow-all-tools "$1" -p "$PROMPT"`,
		opencode: `[ "$1" != import ] || exec '${opencode}' "$@"\nexec '${opencode}' run "$1" "$PROMPT"`,
		omp: `exec '${process.execPath}' '${ompOf(path.join(cache, "client-18.2.3"))}' --model local/stub "$1" -p "$PROMPT"`,
		codex: `exec '${codexOf(path.join(cache, "client-codex-0.171.0"))}' exec --skip-git-repo-check resume "$3" "$PROMPT"`,
		claude: `exec '${claude}' -p "$1" --dangerously-skip-permissions "$PROMPT"`,
	};
	for (const agent of agents) fs.writeFileSync(path.join(bin, agent), `#!/bin/sh\n${programs[agent]} </dev/null\n`, { mode: 0o755 });
}

/** The program of OpenCode that npm chose for this machine. */
function opencodeOf(dir: string): string {
	const name = fs.readdirSync(path.join(dir, "node_modules")).find(name => name.startsWith("opencode-linux-") && !/musl|baseline/.test(name));
	return path.join(dir, "node_modules", name!, "bin/opencode");
}

const environment = {
	PATH: `${bin}:${process.env.PATH}`, HOME: home, TMPDIR: process.env.TMPDIR!, LANG: "C.UTF-8", TZ: "UTC", PI_NO_TITLE: "1", IS_SANDBOX: "1",
	COPILOT_OFFLINE: "true", COPILOT_AUTO_UPDATE: "false", COPILOT_PROVIDER_BASE_URL: `${service.url}/v1`, COPILOT_PROVIDER_API_KEY: "none",
	COPILOT_PROVIDER_WIRE_API: "responses", COPILOT_MODEL: "gpt-5.3-codex", OPENCODE_DISABLE_AUTOUPDATE: "true", OPENCODE_DISABLE_MODELS_FETCH: "true",
	ANTHROPIC_BASE_URL: service.url, ANTHROPIC_API_KEY: "none", DISABLE_AUTOUPDATER: "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
};

/** Runs sessionfs, and returns what it prints. */
async function sessionfs(prompt: string, ...args: string[]): Promise<string> {
	const run = Bun.spawn([process.env.SESSIONFS!, ...args], { cwd: project, env: { ...environment, PROMPT: prompt }, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
	const timer = setTimeout(() => run.kill("SIGKILL"), limit);
	const [out, said, status] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text(), run.exited]);
	clearTimeout(timer);
	if (status !== 0) throw new Error(`sessionfs ${args.join(" ")}: ${status}: ${out.slice(-500)}${said.slice(-500)}; wrong: ${service.last?.wrong}`);
	return out;
}

const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYPgPAAEDAQAIicLsAAAAAElFTkSuQmCC";

/** Writes a session of omp, or of pi: a compaction, images, parallel calls with odd ids, an error, an empty result. Returns its id. */
function write(seed: number, agent = ompAgent): string {
	const id = `019d3d90-0000-7000-8000-${seed.toString().padStart(12, "0")}`, begun = Date.parse("2026-11-20T10:00:00Z");
	const usage = { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, totalTokens: 15, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
	const user = (content: unknown) => ({ role: "user", content });
	const answer = (...content: object[]) => ({ role: "assistant", content, api: "anthropic-messages", provider: "anthropic", model: "claude-x", usage, stopReason: "stop" });
	const text = (text: string) => ({ type: "text", text }), image = (data: string, mimeType: string) => ({ type: "image", data, mimeType });
	const call = (id: string, name: string, args: object) => ({ type: "toolCall", id, name, arguments: args });
	const result = (toolCallId: string, toolName: string, isError: boolean, ...content: object[]) => ({ role: "toolResult", toolCallId, toolName, content, isError });
	const messages = [
		user("an old question"), answer(text("an old answer")), "compaction",
		user([text(`Look at both, ${seed}`), image(dot, "image/png")]),
		answer({ type: "thinking", thinking: "hm", thinkingSignature: "x" }, text("I look."), call(`a${seed}|fc_1`, "bash", { command: "ls" }), call(`b${seed}|fc_2`, "mcp__pantry__read", { n: [1, { é: "ü" }] })),
		result(`b${seed}|fc_2`, "mcp__pantry__read", true, text("No such jar: é\n\n")), result(`a${seed}|fc_1`, "bash", false, text("one"), image(pixel, "image/png")),
		answer(text("Both seen."), text("")), user("<note>once more</note>"), answer(call("c", "bash", {})), result("c", "bash", false), answer(text("Done.\n")),
	];
	const entries = messages.map((message, i) => ({
		id: `e${i}`, parentId: i > 0 ? `e${i - 1}` : null, timestamp: new Date(begun + 1000 * i).toISOString(),
		...(message === "compaction" ? { type: "compaction", summary: "## Goal\nJars.", firstKeptEntryId: "e1", tokensBefore: 9 } : { type: "message", message: { ...(message as object), timestamp: begun + 1000 * i } }),
	}));
	const dir = path.join(agent, "sessions/--here--");
	fs.mkdirSync(dir, { recursive: true });
	const lines = [{ type: "session", version: 3, id, timestamp: new Date(begun).toISOString(), cwd: project, title: `Jars ${seed}` }, ...entries];
	fs.writeFileSync(path.join(dir, `2026-11-20T10-00-00-000Z_${id}.jsonl`), lines.map(line => `${JSON.stringify(line)}\n`).join(""));
	return id;
}

/** What was said in a session up to where it stands, as its context has it. */
async function said(id: string): Promise<Talk> {
	const { messages } = JSON.parse(await sessionfs("", "cat", "-s", "all", `by-id/${id}/context.json`));
	const talk: Talk = { parts: [], results: [], wrong: [] }, calls: string[] = [];
	for (const m of messages) {
		const blocks = typeof m.content === "string" ? [{ type: "text", text: m.content }] : m.summary ? [{ type: "text", text: m.summary }] : m.content, by = m.role === "assistant" ? "model" : "user";
		if (m.customType === "codex/message") continue;
		if (m.role === "toolResult") talk.results[calls.lastIndexOf(m.toolCallId)] = blocks.map((b: any) => b.text ?? `image ${b.data}`).filter((t: string) => t.trim() !== "").join("\n");
		else for (const b of blocks) {
			if (b.type === "text" && b.text.trim() !== "") talk.parts.push({ by, kind: "text", said: b.text });
			if (b.type === "image") talk.parts.push({ by, kind: "image", said: b.data });
			if (b.type === "toolCall") calls.push(b.id), talk.parts.push({ by, kind: "call", said: `${b.name} ${canonical(b.arguments)}` });
		}
	}
	return talk;
}

/** Begins a summary, which OpenCode keeps as the model's answer. */
const summaryBegin = "This conversation goes on from an earlier one. Its summary:";

/** Whether a client sends a result's images behind all results, as those of chat completions do. */
const isLoose = (agent: Agent) => agent === "omp" || agent === "opencode";

/** How a client may send a text that was handed over: omp and others put a summary into a frame, and some trim. */
const isIn = (want: Part, got: Part) => want.kind === got.kind && (want.by === got.by || got.said.startsWith(summaryBegin)) && (got.said === want.said || want.kind === "text" && got.said.includes(want.said.trim()));

/** What of a conversation a request lacks, and what it has more than the client's own additions and the prompt. */
function differences(want: Talk, got: Talk, agent: Agent, prompt: string): string[] {
	const found: string[] = [], rest = [...got.parts];
	// A client of chat completions sends a result's images behind all results. Copilot sends none of them.
	const loose = (talk: Talk) => talk.results.flatMap(r => r.split("\n").filter(line => line.startsWith("image ")));
	const texts = (result = "") => result.split("\n").filter(line => !isLoose(agent) && agent !== "copilot" || !line.startsWith("image ")).join("\n").trim();
	for (const part of want.parts) {
		const at = rest.findIndex(other => isIn(part, other));
		if (at < 0) found.push(`it lacks or has elsewhere: ${part.by} ${part.kind} ${part.said.slice(0, 100)}`);
		else rest.splice(0, at + 1).slice(0, -1).filter(other => other.kind !== "text" || !isAdded(other.said)).filter(other => !isImageOfResult(other)).forEach(other => found.push(`it has more: ${other.kind} ${other.said.slice(0, 100)}`));
	}
	function isImageOfResult(other: Part): boolean {
		return isLoose(agent) && (other.kind === "image" && loose(want).includes(`image ${other.said}`) || /image/.test(other.said) && other.said.length < 100);
	}
	want.results.forEach((result, call) => {
		const sent = got.results[call] ?? "nothing";
		if (texts(result) !== texts(sent) && !(texts(result) === "" && /^\(.*\)$/.test(texts(sent)))) found.push(`the result of call ${call} is ${sent.slice(0, 100)}, and was ${result.slice(0, 100)}`);
	});
	for (const lone of isLoose(agent) ? loose(want) : []) if (!got.parts.some(p => p.kind === "image" && `image ${p.said}` === lone)) found.push("an image of a result is missing");
	const last = rest.filter(part => part.kind !== "text" || !isAdded(part.said)).map(part => part.said);
	return [...found, ...expect(last.length === 1 && last[0].includes(prompt), `behind it: ${last.join(" | ").slice(0, 200)}`), ...got.wrong];
}

/** The newest session of an agent. */
async function newest(agent: Agent): Promise<string> {
	const list = (await sessionfs("", "cat", "-s", "all", "index.jsonl")).trimEnd().split("\n").map(line => JSON.parse(line));
	return list.filter(info => info.agent === agent).sort((a, b) => (a.modified < b.modified ? 1 : -1))[0].id;
}

/** Hands a session over, and returns the new one's id. The new session's agent then works on, with calls of its own. */
async function hand(from: Agent | "pi", to: Agent, id: string): Promise<string> {
	let made = "";
	await check(`${from} to ${to}: the client goes on, and its model is sent all that was said`, async () => {
		const want = await said(id), prompt = "And now, run both?";
		await sessionfs(prompt, "resume", "-s", "all", "--in", to, id);
		made = await newest(to);
		const first = service.last!, tail = first.parts.findLastIndex(p => p.said.includes(prompt));
		const got = { ...first, parts: first.parts.slice(0, tail + 1), results: first.results.slice(0, want.results.length) };
		const usage = JSON.parse(await sessionfs("", "cat", "-s", "all", `by-id/${made}/usage.json`)), parent = JSON.parse(await sessionfs("", "cat", "-s", "all", `by-id/${made}/parent/header.json`));
		return [
			...differences(want, got, to, prompt),
			...expect(usage.own.totalTokens === 220, `its own tokens are ${usage.own.totalTokens}`),
			...expect(parent.id === id, `its parent is ${parent.id}`),
			...expect(first.results.slice(want.results.length).filter(r => /^one|one \d+|two \d+/.test(r)).length === 2, `its own calls: ${first.results.slice(want.results.length)}`),
		];
	});
	return made;
}

install();
// OpenCode takes a session with the model of its last one.
await Bun.spawn([path.join(bin, "opencode"), "--title=Hello"], { cwd: project, env: { ...environment, PROMPT: "Hello" }, stdin: "ignore", stdout: "ignore", stderr: "ignore" }).exited;
for (let seed = 1; seed <= 3; seed++) {
	let at: { agent: Agent; id: string }[] = [{ agent: "omp", id: write(seed) }];
	for (const _ of ["omp's own", "those made of it"]) {
		const next: typeof at = [];
		for (const { agent, id } of at) for (const to of agentsFor(seed)) if (to !== agent && id) next.push({ agent: to, id: await hand(agent, to, id) });
		at = next;
	}
}
// pi goes on with no session of another agent, and has others go on with its own.
for (const seed of [4, 5, 6]) {
	const id = write(seed, piAgent);
	for (const to of agentsFor(seed)) await hand("pi", to, id);
}
service.stop();
process.exit(0);
