// Forks of a client's sessions at each of their entries: the client goes on with each, and sends what it sent in the original behind that entry.
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import { check, expect } from "../report";
import type { StandIn } from "../standin";

/** An image, in base64. */
export const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** What a subagent is asked. */
export const eggs = "Count the eggs";

/** A part of a request. */
export interface Block {
	/** its JSON, without what is another one each time */
	said: string;
	/** the id of the call that it is, or of the one that it is the result of */
	call?: string;
	result?: string;
}

/** A client with sessions of its own. */
export interface Forked {
	/** its agent directory */
	source: string;
	model: StandIn;
	/** Makes the sessions, with what is listed, and ends the client. */
	make(): Promise<void>;
	/** Has the client go on with sessions, by their ids, with a prompt each. */
	goOn(prompts: Map<string, string>): Promise<void>;
	blocks: (asked: any) => Block[];
	/** The client sends no thoughts from before its start, and none of them are compared. */
	forgets?: boolean;
	/** What the client says in the place of a result that is not there. */
	interrupted: RegExp;
	/** Texts that the client adds to a prompt, or behind the end of a fork, by what they are. */
	additions: Record<string, RegExp>;
}

/** An entry of a session. */
interface Entry {
	/** the session's path, and the entry's id there */
	at: string;
	id: string;
	parentId: string | null;
	/** the last of its lines, with the file of another session that has it */
	line: string;
	type: string;
	/** texts by which its parts are known in a request */
	texts: string[];
	calls: string[];
	result?: string;
	/** what the model thought and said, in order */
	answer: string[];
}

/** Runs sessionfs, and returns what it prints. */
function sessionfs(...args: string[]): string {
	const { stdout, stderr, exitCode } = Bun.spawnSync([process.env.SESSIONFS!, ...args]);
	if (exitCode !== 0) throw new Error(`sessionfs ${args.slice(0, 5).join(" ")}: ${exitCode}: ${stderr}`);
	return stdout.toString();
}

const linesOf = (text: string): any[] => text.split("\n").filter(Boolean).map(line => JSON.parse(line));

/** The entries of all sessions in an agent's directory, but for subagents', in the order of their lines. */
function entriesOf(source: string): Entry[] {
	const found: Entry[] = [];
	for (const { path: at } of linesOf(sessionfs("cat", "-s", source, "index.jsonl"))) {
		if (JSON.parse(sessionfs("cat", "-s", source, `${at}/header.json`)).subagent) continue;
		const entries = linesOf(sessionfs("cat", "-s", source, `${at}/entries/*`)).sort((a, b) => a.origin.line - b.origin.line || a.id.localeCompare(b.id, "en", { numeric: true }));
		found.push(...entries.map(e => entryOf(e, at)));
	}
	return found;
}

function entryOf(e: any, at: string): Entry {
	const content = e.message?.content ?? e.content ?? [], images = (e.message?.files ?? []).flatMap((file: any) => file.image ?? []);
	const blocks: any[] = typeof content === "string" ? [{ type: "text", text: content }] : [...content, ...images];
	const texts = blocks.map(b => (b.type === "image" ? b.data : (b.text ?? "").trim())).filter(text => text !== "");
	return {
		at, id: e.id, parentId: e.parentId, type: e.type, line: `${e.origin.path ?? ""}:${Math.max(e.origin.line, ...(e.origin.lines ?? []))}`,
		texts: e.type === "compaction" ? [e.summary.trim().split("\n").at(-1)] : e.message?.role === "toolResult" ? [] : texts,
		calls: blocks.filter(b => b.type === "toolCall").map(b => b.id),
		result: e.message?.toolCallId,
		answer: e.message?.role === "assistant" ? blocks.map(b => b.thinking ?? b.text).filter(Boolean) : [],
	};
}

/** Whether a block is of an entry. The words of a summary are the model's in the request for it alone. */
function isPart(b: Block, entry: Entry): boolean {
	if (b.call || b.result) return b.call ? entry.calls.includes(b.call) : b.result === entry.result;
	const isAnswer = entry.answer.length > 0;
	return isAnswer === b.said.includes('"role":"assistant"') && entry.texts.some(text => b.said.includes(JSON.stringify(text).slice(1, -1)));
}

/** The entries of a session up to one of them, and to the last one that its line gives. */
function branchTo(entry: Entry, all: Entry[]): Entry[] {
	const last = all.findLast(e => e.at === entry.at && e.line === entry.line)!, found = [last];
	for (let at: Entry | undefined = last; at; ) {
		const above: string | null = at.parentId;
		at = all.find(e => e.id === above && e.at === entry.at);
		if (at) found.unshift(at);
	}
	return found;
}

/** What the original sent behind an entry, up to what that entry says last. */
interface Sent {
	blocks: Block[];
	/** the model's words with which a branch ends: they are in no request */
	unsent: string[];
}

/** What the original sent behind the last entry of a branch: of the first request that has it, before other compactions, and without what other entries say, such as results that came later. */
function sentBehind(client: Forked, branch: Entry[], all: Entry[], requests: Block[][]): Sent {
	const isOn = (b: Block) => branch.some(e => isPart(b, e)), isOff = (b: Block) => !isOn(b) && all.some(e => isPart(b, e));
	const isLater = (e: Entry) => e.type === "compaction" && !branch.includes(e);
	const before = requests.filter(r => !r.some(b => all.some(e => isLater(e) && isPart(b, e))));
	const at = branch.findLastIndex(e => before.some(r => r.some(b => isPart(b, e))));
	const unsent = branch.slice(at + 1).flatMap(e => e.answer.filter(said => !client.forgets || e.texts.includes(said)));
	if (at < 0) return { blocks: [], unsent };
	const request = before.find(r => r.some(b => isPart(b, branch[at])))!;
	// What a compaction keeps stands behind its summary.
	const end = branch[at].type === "compaction" ? request.length : request.findLastIndex(isOn) + 1;
	return { blocks: request.slice(0, end).filter(b => !isOff(b)), unsent };
}

/** In what the request of a fork differs from that of the original. The client's additions are those behind the last answer alone. */
function differences(client: Forked, { blocks, unsent }: Sent, got: Block[], prompt: string): string[] {
	const open = blocks.map(b => b.call).filter(call => call && !blocks.some(b => b.result === call));
	const isMade = (b: Block) => b.result && open.includes(b.result) && client.interrupted.test(b.said);
	const answered = blocks.findLastIndex(b => b.call || b.result || b.said.includes('"role":"assistant"'));
	const isOwn = (b: Block, i: number) => i <= answered || !Object.values(client.additions).some(text => text.test(b.said));
	const want = blocks.filter(isOwn), rest = got.filter(b => !isMade(b)).filter(isOwn), at = want.findIndex((b, i) => b.said !== rest[i]?.said);
	if (at >= 0) return [`block ${at} of ${want.length} is ${rest[at]?.said.slice(0, 300)}, and was ${want[at].said.slice(0, 300)}`];
	const more = rest.slice(want.length), last = [...unsent, prompt], isLast = more.length === last.length && more.every((b, i) => b.said.includes(last[i]));
	return expect(isLast, `behind ${want.at(-1)?.said.slice(0, 100)} are ${more.map(b => b.said.slice(0, 200)).join(" | ")}`);
}

/** The files of a directory with their bytes, their times and their names. */
export function states(dir: string): Record<string, string> {
	const found: Record<string, string> = {};
	for (const name of fs.readdirSync(dir, { recursive: true }) as string[]) {
		const file = path.join(dir, name), st = fs.lstatSync(file);
		if (st.isFile()) found[name] = `${createHash("sha256").update(fs.readFileSync(file)).digest("hex")} ${st.mtimeMs} ${st.ino}`;
	}
	return found;
}

/** The files that are others, or gone. */
export const changed = (before: Record<string, string>, after: Record<string, string>) => Object.keys(before).filter(name => before[name] !== after[name]);

/** Does the checks with a client. The sessions have at least so many entries. */
export async function checkEveryEntry(client: Forked, least: number): Promise<void> {
	const { source, model } = client, forks = new Map<string, { entry: Entry; prompt: string }>();
	let all: Entry[] = [], requests: Block[][] = [];
	const requestsOf = (asked: any[]) => asked.filter(a => (a.tools ?? []).length > 0).map(client.blocks);
	await check("sessions with parallel calls, an image, a rewind, a compaction and a subagent are made", async () => {
		await client.make();
		requests = requestsOf(model.asked);
		all = entriesOf(source);
		const has = (text: string) => requests.some(r => r.some(b => !b.call && !b.result && b.said.includes(text)));
		return [
			...expect(all.length >= least && all.some(e => e.type === "compaction"), `they have ${all.length} entries`),
			...expect(has(dot) && has(eggs), "an image or a subagent is missing"),
		];
	});
	await check("a fork at each entry changes no file", () => {
		const before = states(source);
		for (const entry of all) {
			const command = sessionfs("fork", "-s", source, `${entry.at}#${entry.id}`), [id] = /[0-9a-f-]{36}(?=\s*$)/.exec(command)!;
			forks.set(id, { entry, prompt: `And now, ${forks.size + 1}?` });
		}
		return [...changed(before, states(source)), ...expect(forks.size === all.length, `${forks.size} forks of ${all.length} entries`)];
	});
	await check("a fork has no cost of its own, and leads to the original", () => {
		const [id, { entry }] = [...forks].at(-1)!, { own, total } = JSON.parse(sessionfs("cat", "-s", source, `by-id/${id}/usage.json`));
		const parent = sessionfs("cat", "-s", source, `by-id/${id}/parent/header.json`);
		return [
			...expect(own.totalTokens === 0 && total.totalTokens > 0, `its tokens are ${own.totalTokens} of ${total.totalTokens}`),
			...expect(parent === sessionfs("cat", "-s", source, `${entry.at}/header.json`), `its parent is ${parent}`),
		];
	});
	await check("the client goes on with each, and sends what it sent behind that entry", async () => {
		const before = model.asked.length, logs = states(source);
		await client.goOn(new Map([...forks].map(([id, { prompt }]) => [id, prompt])));
		const sent = requestsOf(model.asked.slice(before));
		const isOriginal = (name: string) => name.endsWith(".jsonl") && ![...forks.keys()].some(id => name.includes(id)) && name.includes("/");
		const found = changed(logs, states(source)).filter(isOriginal).map(name => `${name} is another`);
		for (const { entry, prompt } of forks.values()) {
			const got = sent.find(request => request.some(b => b.said.includes(prompt)));
			const differ = got ? differences(client, sentBehind(client, branchTo(entry, all), all, requests), got, prompt) : ["no request"];
			found.push(...differ.map(d => `${entry.at}#${entry.id}: ${d}`));
		}
		return found;
	});
}
