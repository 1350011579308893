// Sessions of Claude Code and Codex: what a mount shows of them is what the client's importers make of them, but for what
// docs/format.md lists, and the client goes on with what sessionfs import makes of them. With SESSIONFS_FOREIGN=DIR also
// those in the git directories DIR/*/repo.
import * as fs from "node:fs";
import * as path from "node:path";
import { asJSON, difference } from "./agree";
import { type Client, closed, type Entry } from "./client";
import { claude, codex, idOf } from "./foreigngen";
import { Chance } from "./generate";
import { assistant, user } from "./messages";
import { type Mount, Session } from "./mount";
import { check, expect } from "./report";

/** How many sessions of each agent are generated, and how many differences printed. */
const generated = 60, printed = 5;
type Agent = "claude" | "codex";
type Foreign = { agent: Agent; file: string; shown: Session };
type Run = (...args: string[]) => string;
/** The messages that the client makes of entries for a model, at one of them. */
type Messages = (entries: Entry[], id: string) => any[];

export function checkForeign(dir: string) {
	return async function checkForeign(client: Client, mount: Mount, project: string): Promise<void> {
		if (client.version !== "18.3.4") return;
		const homeOf = (agent: Agent) => path.join(process.env.HOME!, `.${agent}`), mountOf = (agent: Agent) => path.join(process.env.TMPDIR!, agent);
		const sessions = written(homeOf, mountOf, project);
		const { buildSessionContext } = await import(path.join(dir, "node_modules/@oh-my-pi/pi-coding-agent/src/session/session-context.ts"));
		const messages: Messages = (entries, id) => asJSON(buildSessionContext(entries, id)).messages;
		const run: Run = (...args) => {
			const { stdout, stderr, success } = Bun.spawnSync([path.join(mount.dir, "../../sessionfs"), ...args]);
			if (!success) throw new Error(`${stdout}${stderr}`);
			return stdout.toString();
		};
		for (const agent of ["claude", "codex"] as const) {
			const own = sessions.filter(s => s.agent === agent);
			fs.mkdirSync(mountOf(agent));
			run(homeOf(agent), mountOf(agent));
			await check(`${agent}: of ${own.length} sessions, what the client's importer makes of them`, () => agreed(dir, agent, homeOf(agent), own));
			await check(`${agent}: imported, the client opens them with the context of the original, and goes on`, () => imported(client, mount, project, own, run, messages));
			run("-u", mountOf(agent));
		}
	};
}

/** Writes the sessions where the agents would. */
function written(homeOf: (agent: Agent) => string, mountOf: (agent: Agent) => string, cwd: string): Foreign[] {
	const sessions: Foreign[] = [];
	const write = (agent: Agent, id: string, text: string) => {
		const name = agent === "claude" ? id : `rollout-2026-02-16T10-20-30-${id}`;
		const file = path.join(homeOf(agent), agent === "claude" ? "projects/-w" : "sessions/2026/02/16", `${name}.jsonl`);
		fs.mkdirSync(path.dirname(file), { recursive: true });
		fs.writeFileSync(file, text);
		sessions.push({ agent, file, shown: new Session(path.join(mountOf(agent), "sessions", agent === "claude" ? "-w" : "2026-02-16", name), file) });
	};
	for (let seed = 1; seed <= generated; seed++)
		for (const [agent, make] of Object.entries({ claude, codex })) write(agent as Agent, idOf(seed), make(seed, cwd).map(line => `${JSON.stringify(line)}\n`).join(""));
	for (const text of published()) {
		const records = text.split("\n").flatMap(line => { try { return [JSON.parse(line)]; } catch { return []; } });
		const meta = records.find(r => r?.type === "session_meta")?.payload;
		const id = `00000000-0000-4000-9000-${sessions.length.toString(16).padStart(12, "0")}`;
		if (meta?.cwd && meta.id && records.some(r => r?.payload?.type === "message")) write("codex", id, text.replaceAll(meta.id, id));
		else if (records.some(r => r?.type === "assistant" && r.message?.role && r.uuid && "parentUuid" in r && !r.isSidechain)) write("claude", id, text);
	}
	return sessions;
}

/** The files that may be sessions, of the repositories that there are. */
function published(): string[] {
	const top = process.env.SESSIONFS_FOREIGN, git = (...args: string[]) => Bun.spawnSync(["git", ...args]).stdout.toString();
	return !top ? [] : fs.readdirSync(top).map(name => path.join(top, name, "repo")).filter(repo => fs.existsSync(repo)).flatMap(repo => {
		const at = `--git-dir=${[path.join(repo, ".git"), repo].find(fs.existsSync)}`;
		return git(at, "ls-tree", "-r", "--name-only", "HEAD").split("\n").filter(name => name.endsWith(".jsonl")).map(name => git(at, "show", `HEAD:${name}`));
	});
}

/** Differences between what the mount shows on the branch of the last record and what the client's importer has there. */
async function agreed(dir: string, agent: Agent, home: string, sessions: Foreign[]): Promise<string[]> {
	const stores = await import(path.join(dir, `node_modules/@oh-my-pi/pi-coding-agent/src/session/${agent}-session-store.ts`));
	const store = agent === "claude" ? new stores.ClaudeSessionStore(home) : new stores.CodexSessionStore(home);
	const infos = new Map<string, any>((await store.list()).map((info: any) => [info.path, info]));
	const found: string[] = [];
	for (const s of sessions) {
		const manager = await store.load(infos.get(s.file)), theirs = said(asJSON(manager.getBranch()));
		const ours = alike(said(branchOf(agent, s.shown.entries())), theirs, said(asJSON(manager.getEntries())));
		const at = ours.findIndex((line, i) => line !== theirs[i]);
		if (at >= 0 || ours.length < theirs.length) found.push(`${s.file}: ours ${shown(ours[at])}, the client's ${shown(theirs[at < 0 ? ours.length : at])}`);
	}
	return some(found);
}

const some = (found: string[]) => found.slice(0, printed).concat(found.length > printed ? [`and ${found.length - printed} more`] : []);
const shown = (line?: string) => JSON.stringify(line?.slice(0, 200)) ?? "nothing";

/** The branch to the last line, or to where a rollback ends, without what a compaction repeats; of Claude Code's from the last one on. */
function branchOf(agent: Agent, entries: Entry[], branch: Entry[] = []): Entry[] {
	const own = entries.filter(e => e.customType !== "sessionfs/leaf");
	const lastLine = (e: Entry) => Math.max(e.origin.line, ...(e.origin.lines ?? []));
	const rolledBack = agent === "codex" && entries.find(e => e.customType === "sessionfs/leaf");
	const last = rolledBack ? own.find(e => e.id === rolledBack.parentId) : own.reduce((a, b) => (lastLine(b) >= lastLine(a) ? b : a));
	for (let e: Entry | undefined = last; e; e = own.findLast(p => p.id === e!.parentId)) branch.unshift(e);
	const compacted = new Set(branch.filter(e => e.type === "compaction").map(e => e.origin.line));
	const at = branch.findLastIndex(e => e.type === "compaction" && e.origin.lines);
	return branch.slice(Math.max(0, at)).filter(e => e.type === "compaction" ? e.origin.lines : !compacted.has(e.origin.line));
}

/** Texts, thinking, calls and results, a line each; what cannot be read is not said. */
function said(branch: Entry[]): string[] {
	return branch.flatMap(e => {
		const m = e.type === "compaction" && e.origin ? { role: "user", content: e.summary } : e.message;
		const blocks: any[] = typeof m?.content === "string" ? [{ type: "text", text: m.content }] : (m?.content ?? []);
		const words = blocks.flatMap((b: any) =>
			b.type === "text" ? [`${m.role} says ${b.text}`] : b.type === "thinking" && b.thinking !== "" ? [`thinks ${b.thinking}`]
			: b.type === "toolCall" ? [`calls ${b.id} ${b.name} ${JSON.stringify(b.arguments)}`] : b.type === "image" ? [`image ${b.data}`] : []);
		return m?.role === "toolResult" ? [`result ${m.toolCallId} ${m.toolName} ${m.isError} ${words.join()}`] : words;
	});
}

/** Ours without what docs/format.md lists: results of parallel calls, which the importer has elsewhere, and thinking that it does not read. */
function alike(ours: string[], theirs: string[], elsewhere: string[]): string[] {
	return ours.filter(line => theirs.includes(line) || !(line.startsWith("thinks ") || (line.startsWith("result ") && elsewhere.includes(line))));
}

/** Imports sessions, whole and to an entry, and opens them. */
async function imported(client: Client, mount: Mount, project: string, sessions: Foreign[], run: Run, messages: Messages): Promise<string[]> {
	const found: string[] = [], take = (...paths: string[]) => run("import", "-s", mount.agent, "--to", project, ...paths).split("\n").map(line => line.split(/\s+/));
	const chance = new Chance(1), entries = sessions.map(s => chance.of(s.shown.entries().filter(e => e.customType !== "sessionfs/leaf").map(e => e.id)));
	const whole = take(...sessions.map(s => s.file)), branches = take(...sessions.map((s, i) => `${s.file}#${entries[i]}`));
	for (const [i, s] of sessions.entries()) {
		for (const [[outcome, place], id] of [[whole[i], s.shown.leaf()], [branches[i], entries[i]]] as const) {
			const { file } = mount.session(place), manager = await client.open(file);
			const differs = difference(messages(s.shown.entries().map(shownOnly), id).map(completed), messages(manager.getEntries(), manager.getLeafId()!));
			const { customType, data } = manager.getEntries().at(-1)!;
			found.push(...expect(!differs, `${s.file} ${id}: ${differs}`), ...expect(outcome === "new", `${s.file}: ${outcome}`));
			found.push(...expect(customType === "foreign_session_import" && data.source === s.agent && data.sourcePath === s.file, `${place} ends with ${customType}`));
			const before = fs.readFileSync(file, "utf8");
			if (i % 4 === 0) manager.appendMessage(user("And now?")), manager.appendMessage(assistant("On."));
			await closed(manager);
			found.push(...expect(fs.readFileSync(file, "utf8").startsWith(before), `${place}: the client wrote the file anew`));
		}
		if (i % 16 === 0) found.push(...expect(take(s.file)[0][0] === "same", `${s.file} gone on with, and imported again`));
	}
	return some(found);
}

/** An entry that no context has, as import makes it. */
const shownOnly = (e: Entry) => (e.excludeFromContext ? { ...e, type: "custom" } : e);

/** A message of the original as import completes it: the client reads numbers without looking, and takes what is no text for an image. */
function completed(m: any): any {
	const known = (b: any) => (b.type === "text" && typeof b.text === "string") || (b.type === "image" && typeof b.data === "string");
	if (m.role !== "assistant" && Array.isArray(m.content)) m.content = m.content.map((b: any) => (known(b) ? b : { type: "text", text: JSON.stringify(b) }));
	const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0, unrecorded: true };
	if (m.role === "assistant") return { ...m, usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost, ...m.usage } };
	return m.role === "compactionSummary" ? { ...m, tokensBefore: m.tokensBefore ?? 0 } : m;
}
