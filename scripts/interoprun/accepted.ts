// What append accepts, the client reads without an exception: messages and entries near the rules, made of samples
// by changing a member or a few, the same in every run.
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { type Client, closed } from "./client";
import { assistant, toolCall, toolResult, user } from "./messages";
import type { Mount, Session } from "./mount";
import { loadReaders, type Reader } from "./readers";
import { check, expect } from "./report";
import { compactions, entries, messages } from "./samples";

const made = 10_000;
/** How many of them go into one session, and how many lines into one write. */
const perSession = 250;
const perWrite = 50;
/** How many that a client cannot read are printed. */
const printed = 5;

/** Numbers as chance would have them, from a seed: xorshift. */
class Chance {
	#state: number;
	constructor(seed: number) {
		this.#state = seed;
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
}

const odd: unknown[] = [undefined, null, "odd", 7, true, { q: 1 }, [1], [null], [{}], []];

/** The members of a value, however deep, each as the object that has it and its key. */
function members(v: any): [any, string][] {
	if (typeof v !== "object" || v === null) return [];
	return Object.keys(v).flatMap(key => [[v, key] as [any, string], ...members(v[key])]);
}

/** Puts a value, or nothing, in the place of a member. */
function change([owner, key]: [any, string], value: unknown): void {
	if (value !== undefined) owner[key] = structuredClone(value);
	else if (Array.isArray(owner)) owner.splice(Number(key), 1);
	else delete owner[key];
}

/** A sample, changed in two or three places. */
function changed(sample: object, chance: Chance): object {
	const copy = structuredClone(sample);
	for (let n = 2 + chance.below(2); n > 0; n--) change(chance.of(members(copy)), chance.of(odd));
	return copy;
}

/** Each sample as it is and with each member changed in each way, in an order as chance would have it. */
function oneByOne(samples: readonly object[], chance: Chance): object[] {
	const all: object[] = [...samples];
	for (const sample of samples) {
		for (let at = members(sample).length; at-- > 0; ) {
			for (const value of odd) {
				const copy = structuredClone(sample);
				change(members(copy)[at], value);
				all.push(copy);
			}
		}
	}
	for (let i = all.length; --i > 0; ) {
		const j = chance.below(i + 1);
		[all[i], all[j]] = [all[j], all[i]];
	}
	return all;
}

/** What is tried: entries, some of which are messages. */
function* tries(chance: Chance): Generator<object> {
	const samples = [...entries, ...messages.map(message => ({ type: "message", message }))];
	yield* oneByOne(samples, chance);
	for (;;) yield changed(chance.of(samples), chance);
}

/** The lines of one try: what was made up, and what it needs around it to be shown. */
function lines(entry: any): object[] {
	const message = entry.message ?? {};
	if (message.role === "toolResult") return [{ type: "message", message: assistant([toolCall("call", named(message.toolName), {})]) }, entry];
	const called = Array.isArray(message.content) ? message.content.find((b: any) => b?.type === "toolCall") : undefined;
	if (message.role !== "assistant" || !called) return [entry];
	return [entry, { type: "message", message: toolResult("call", named(called.name), []) }];
}

const named = (name: unknown) => (typeof name === "string" ? name : "bash");

/** What a line that is not accepted gives; ENOENT where it names an entry that is not there. */
const refusals = ["EINVAL", "ENOENT"];

/** Appends lines, many in one write, and returns those that were accepted. */
function accepted(session: Session, all: object[]): object[] {
	const taken: object[] = [];
	const texts = all.map(line => Buffer.from(`${JSON.stringify(line)}\n`));
	const open = () => fs.openSync(path.join(session.dir, "append"), "r+");
	let fd = open();
	try {
		for (let at = 0; at < texts.length; ) {
			let written = 0;
			try {
				written = fs.writeSync(fd, Buffer.concat(texts.slice(at, at + perWrite)));
			} catch (e) {
				if (!refusals.includes((e as { code?: string }).code!)) throw e;
				at++;
				fs.closeSync(fd); // after a refusal it takes nothing but that line again
				fd = open();
			}
			for (; written > 0; at++) {
				taken.push(all[at]);
				written -= texts[at].length;
			}
		}
	} finally {
		fs.closeSync(fd);
	}
	return taken;
}

/** A session with lines in it, and those that were accepted. */
function sessionOf(mount: Mount, project: string, all: object[], compaction?: object): [Session, object[]] {
	const session = mount.newSession(project);
	const first = session.message(user("Begin."));
	session.message(assistant("Begun."));
	const head = compaction ? accepted(session, [{ ...compaction, firstKeptEntryId: first }]) : [];
	const taken = head.concat(accepted(session, all));
	session.message(user("Go on."));
	session.message(assistant("Done."));
	return [session, taken];
}

/** What of a session the client fails on: the ways to read it, with the exceptions. */
async function failures(client: Client, readers: Record<string, Reader>, session: Session): Promise<string[]> {
	const found: string[] = [];
	const tried = async (what: string, run: () => unknown) => {
		try {
			return await run();
		} catch (e) {
			found.push(`${what}: ${e instanceof Error ? e.message : e}`);
		}
	};
	const manager: any = await tried("open", () => client.open(session.file));
	if (!manager) return found;
	for (const [what, read] of Object.entries(readers)) await tried(what, () => read(manager, session.file));
	await closed(manager);
	return found;
}

export function checkAccepted(dir: string) {
	return async function checkAccepted(client: Client, mount: Mount, project: string): Promise<void> {
		const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "accepted-"));
		const readers = await loadReaders(client, dir, scratch);
		await check(`what append accepts of ${made} messages near the rules, the client reads without an exception`, async () => {
			const chance = new Chance(9);
			const source = tries(chance);
			const heads = oneByOne(compactions, chance);
			const found: string[] = [];
			let taken = 0;
			for (let tried = 0; tried < made && found.length < printed; tried += perSession) {
				const all: object[] = [];
				for (let n = 0; n < perSession; n++) all.push(...lines(source.next().value));
				const [session, accepts] = sessionOf(mount, project, all, heads.pop());
				taken += accepts.length;
				if ((await failures(client, readers, session)).length === 0) continue;
				found.push(...(await culprits(client, readers, mount, project, accepts)));
			}
			return found.slice(0, printed).concat(expect(taken > made / 4, `only ${taken} lines were accepted`));
		});
		await check("the client lists the sessions with them", async () => {
			await client.list(project);
			return [];
		});
		fs.rmSync(scratch, { recursive: true });
	};
}

/** Of lines in one session that the client fails on, those that it fails on alone, or with the line before. */
async function culprits(client: Client, readers: Record<string, Reader>, mount: Mount, project: string, all: object[]): Promise<string[]> {
	const found: string[] = [];
	for (let i = 0; i < all.length && found.length < printed; i++) {
		const [session] = sessionOf(mount, project, all.slice(Math.max(i - 1, 0), i + 1));
		const failed = await failures(client, readers, session);
		if (failed.length > 0) found.push(`${JSON.stringify(all[i]).slice(0, 2000)}: ${failed.join("; ")}`);
	}
	return found.length > 0 ? found : [`a session as a whole: ${JSON.stringify(all).slice(0, 2000)}`];
}
