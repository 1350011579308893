// The client's own storage in PostgreSQL, and a mount of the same table: they agree on generated sessions, and what is
// branched and extended through the mount opens in the client.
import * as fs from "node:fs";
import * as path from "node:path";
import { difference, disagreements } from "./agree";
import { type Client, closed, type Entry, type Manager } from "./client";
import { Chance } from "./generate";
import { assistant, image, oddText, text, toolCall, toolResult, user } from "./messages";
import { Mount, type Session } from "./mount";
import { check, expect } from "./report";

const sessions = 100;
/** How many sessions' differences are printed. */
const printed = 3;
/** Longer than a mount takes the table to be as it was. */
const settled = 600;
/** The status of postgresrun where PostgreSQL is not installed. */
const notInstalled = 3;
const prefix = "/home/me/.omp/agent/sessions/";

/** The client's storage, and what its SessionManager does with one. */
interface Sql {
	create(options: object): Promise<object>;
}
interface Managers {
	create(cwd: string, dir: string, storage: object): Manager;
	open(file: string, dir: string | undefined, storage: object): Promise<Manager>;
	list(cwd: string, dir: string, storage: object): Promise<any[]>;
}

/** A database with the client's table, and a mount of it. */
class Table {
	constructor(
		readonly managers: Managers,
		readonly sql: Sql,
		readonly db: any,
		readonly mount: Mount,
	) {}

	/** The client's storage as a client that starts now has it. */
	storage(): Promise<object> {
		return this.sql.create({ client: this.db });
	}

	session(file: string): Session {
		return this.mount.session(path.join("sessions", path.relative(prefix, file)));
	}

	/** Has a client open a session anew, and compares. */
	async reopened(client: Client, file: string, run: (m: Manager) => string[] = () => []): Promise<string[]> {
		const manager = await this.managers.open(file, undefined, await this.storage());
		try {
			return disagreements(client, this.session(file), manager).concat(run(manager)).map(d => `${path.basename(file)}: ${d}`);
		} finally {
			await closed(manager);
		}
	}
}

export function checkDatabase(dir: string) {
	return async function checkDatabase(client: Client, mount: Mount): Promise<void> {
		if (client.version !== "18.2.3") return;
		const tools = path.dirname(path.dirname(mount.dir));
		const server = Bun.spawn([path.join(tools, "postgresrun")], { stdin: "pipe", stdout: "pipe", stderr: "pipe", env: { PATH: process.env.PATH } });
		const { value } = await server.stdout.getReader().read();
		if (!value) {
			const why = (await new Response(server.stderr).text()).trim();
			const needed = process.env.SESSIONFS_REQUIRE_POSTGRES === "1";
			if ((await server.exited) !== notInstalled || needed) throw new Error(why);
			console.log(`     ${client.version}: SKIPPED the client's storage in PostgreSQL: ${why}`);
			return;
		}
		const url = new TextDecoder().decode(value).trim();
		const at = path.join(process.env.TMPDIR!, "database");
		fs.mkdirSync(at);
		const socket = url.slice(url.indexOf("host=") + "host=".length); // URL wants a host before the path
		const db = new Bun.SQL({ adapter: "postgres", path: path.join(socket, ".s.PGSQL.5432"), username: "tester", database: "postgres", max: 4 });
		try {
			const { SessionManager } = await import(Bun.resolveSync("@oh-my-pi/pi-coding-agent/session/session-manager", dir));
			const { SqlSessionStorage } = await import(Bun.resolveSync("@oh-my-pi/pi-coding-agent/session/sql-session-storage", dir));
			await SqlSessionStorage.create({ client: db }); // makes the table
			const run = Bun.spawnSync([path.join(tools, "sessionfs"), `${url}&prefix=${prefix}`, at]);
			if (!run.success) throw new Error(run.stderr.toString());
			await checkTable(client, new Table(SessionManager, SqlSessionStorage, db, new Mount(at, "")));
		} finally {
			Bun.spawnSync([path.join(tools, "sessionfs"), "-u", at]);
			await db.end();
			server.stdin.end();
			await server.exited;
		}
	};
}

async function checkTable(client: Client, table: Table): Promise<void> {
	const files: string[] = [];
	const dirs = [`${prefix}-home-me-a`, `${prefix}-home-me-b`];
	await check(`PostgreSQL: the client writes ${sessions} generated sessions, and the mount shows them as the client reads them`, async () => {
		const storage = await table.storage();
		for (let seed = 1; seed <= sessions; seed++) {
			files.push(await generated(table.managers.create("/home/me", dirs[seed % 2], storage), new Chance(seed)));
		}
		await Bun.sleep(settled);
		return firstOf(files, file => table.reopened(client, file));
	});
	await check("PostgreSQL: the client's list and index.jsonl", async () => {
		const lines = fs.readFileSync(path.join(table.mount.dir, "index.jsonl"), "utf8").trimEnd().split("\n").map(line => JSON.parse(line));
		const ours = lines.map(s => ({ ...s, path: `${prefix}${path.relative("sessions", s.path)}.jsonl` }));
		const storage = await table.storage();
		const theirs = (await Promise.all(dirs.map(dir => table.managers.list("/home/me", dir, storage)))).flat();
		const shape = (list: any[]) =>
			list.map(s => ({ id: s.id, path: s.path, cwd: s.cwd, title: s.title ?? null, size: s.size, messageCount: s.messageCount })).sort((a, b) => (a.path < b.path ? -1 : 1));
		return difference(shape(ours), shape(theirs)) ?? expect(ours.length === sessions, `there are ${ours.length} sessions`);
	});
	await check("PostgreSQL: each session branched, labelled, named and extended through the mount opens in the client", () =>
		firstOf(files, (file, n) => extended(client, table, file, new Chance(1000 + n))),
	);
	await check("PostgreSQL: the client goes on with what the mount wrote", async () => {
		const storage = await table.storage();
		for (const file of files) {
			const manager = await table.managers.open(file, undefined, storage);
			manager.appendMessage(user("By the client again."));
			manager.appendMessage(assistant("Yes."));
			await closed(manager);
		}
		await Bun.sleep(settled);
		return firstOf(files, file => table.reopened(client, file));
	});
	await check("PostgreSQL: sessions that the mount makes and forks open in the client", async () => {
		const made = table.mount.newSession({ cwd: "/home/me", create: true });
		made.message(user(oddText.replace("\u0000", "")));
		made.message(assistant("Made."));
		const file = (s: Session) => prefix + path.relative(path.join(table.mount.dir, "sessions"), s.dir) + ".jsonl";
		const forked = table.mount.session(made.fork(made.leaf()!));
		return firstOf([file(made), file(forked)], f => table.reopened(client, f));
	});
}

/** What is found in the first sessions that differ. */
async function firstOf(files: string[], run: (file: string, n: number) => Promise<string[]>): Promise<string[]> {
	const found: string[] = [];
	for (let n = 0; n < files.length && found.length < printed; n++) found.push(...(await run(files[n], n)));
	return found;
}

/** An entry to go on from: in the context a call has its result, as the newer client leaves out one that has none. */
function standing(entries: Entry[], chance: Chance): string {
	const calls = (e: Entry) => Array.isArray(e.message?.content) && e.message.content.some((b: any) => b.type === "toolCall");
	return chance.of(entries.filter(e => !calls(e))).id;
}

const texts = ["Plain.", "", "two\nlines", oddText, "x".repeat(5000), "'; DROP TABLE omp_session_files; --", "\\x00 $1 %s"];

/** Has the client write a session as chance would have it, and returns its file. */
async function generated(m: Manager, chance: Chance): Promise<string> {
	const any = () => chance.of(texts);
	const entry = () => standing(m.getEntries(), chance);
	m.appendMessage(user(any()));
	m.appendMessage(assistant("Hello."));
	await m.flush(); // it makes the session with its first answer, and must not be asked for more before it did
	const steps: (() => unknown)[] = [
		() => m.appendMessage(user(any())),
		() => m.appendMessage(user([text(any()), image(40, 1 + chance.below(5))])),
		() => m.appendMessage(assistant(any() || "Yes.")),
		() => {
			m.appendMessage(assistant([toolCall("c1", "read", { path: any() })], { stopReason: "toolUse" }));
			m.appendMessage(toolResult("c1", "read", [text(any())]));
		},
		() => m.appendCustomEntry("acme/state", { n: [1, { deep: null, text: any() }] }),
		() => m.appendCustomMessageEntry("acme/note", any(), chance.once(2)),
		() => m.appendThinkingLevelChange(chance.of(["low", "high"])),
		() => m.appendModelChange("openai/big"),
		() => m.appendLabelChange(entry(), chance.of(["one", "a/b", "ünï 🦊"])),
		() => m.branch(entry()),
		() => m.branchWithSummary(entry(), "Left."),
		() => m.appendCompaction("So far.", "s", standing(m.getBranch(), chance), 9),
		() => m.setSessionName(chance.of(["A name", "Ein Náme 🦊", "n".repeat(300)]), chance.of(["auto", "user"] as const)),
		() => m.flush(),
	];
	for (let n = 3 + chance.below(20); n > 0; n--) await chance.of(steps)();
	await closed(m);
	return m.getSessionFile();
}

/** Branches, labels, names and extends a session through the mount, and has the client open it. */
async function extended(client: Client, table: Table, file: string, chance: Chance): Promise<string[]> {
	const session = table.session(file);
	const before = session.entries();
	const target = standing(before, chance);
	session.moveLeaf(target);
	const asked = session.message(user("Through the mount."));
	session.message(assistant("Yes."));
	session.setLabel(asked, "ours");
	if (chance.once(2)) session.setTitle(chance.of(["Ours", "Unser Títel 🦊"]));
	return table.reopened(client, file, m =>
		expect(m.getLabel(asked) === "ours", "the client misses the label")
			.concat(expect(m.getEntries().length >= before.length + 3, "entries are missing"))
			.concat(expect(m.getBranch().some(e => e.id === target), "it is on another branch")),
	);
}
