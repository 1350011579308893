// `omp gc` beside a mount: --archive, which packs old sessions, while the mount is read, and --blobs, which sweeps old blobs that
// no file names.
import * as fs from "node:fs";
import * as path from "node:path";
import { difference, disagreements } from "./agree";
import { reopened } from "./build";
import { type Client, closed } from "./client";
import { assistant, image, text, user } from "./messages";
import type { Mount, Session } from "./mount";
import { check, expect } from "./report";

/** How many sessions are archived. */
const count = 12;

/** A command that runs the client's. */
const gc = (flags: object) => [process.execPath, "--no-install", `${import.meta.dir}/gcrun.ts`, ...process.argv.slice(2, 4), JSON.stringify(flags)];

/** For sessions of any age that nobody is on. */
const archiving = { archive: true, coldArchiveAfterDays: 0, retainNewestGlobal: 0, retainNewestPerCwd: 0 };

/** What a session shows, wherever it lies. */
const shown = (s: Session) => ({
	entries: s.entries(), leaf: s.leaf(), labels: s.labels(), title: s.title(), tree: s.tree(), context: s.context(), header: s.header(),
	branches: s.read("branches.tsv"), transcript: s.read("transcript.md"), output: s.read("1.bash.log"),
	subagent: s.read("artifacts/Task/context.json"),
});

interface Old {
	id: string;
	/** from sessions/ on, without ending */
	place: string;
	session: Session;
	text: string;
	shown: object;
	/** its line in index.jsonl */
	line: any;
}

export async function checkArchived(client: Client, mount: Mount, project: string): Promise<void> {
	if (!client.newer) return; // it has no such command
	const made: Session[] = [];
	for (let i = 0; i < count; i++) made.push(await makeOld(client, mount, project, i));
	const before = listed(mount, "index.jsonl");
	const old = made.map(session => remember(mount, session, before));
	let result: any;
	await check("gc --archive beside a mount: each session is found by its id at every moment", async () => {
		const run = Bun.spawn(gc(archiving), { stdout: "pipe", stderr: "inherit" });
		const found = await watched(mount, old, run);
		result = JSON.parse(await new Response(run.stdout).text());
		return found.concat(
			expect(run.exitCode === 0, `it ended with ${run.exitCode}`),
			expect(result.archive.archived === count && result.archive.errors.length === 0, `it says ${JSON.stringify(result.archive)}`),
		);
	});
	await check("gc --archive: what was in sessions/ is in archive/, whole, with its artifacts", () => old.flatMap(o => packed(mount, o)));
	await check("gc --archive: index.jsonl is what the client lists", async () => {
		const ours = listed(mount, "index.jsonl").filter(l => path.dirname(l.path) === path.dirname(old[0].place)).map(l => `${path.basename(l.path)}.jsonl`);
		const theirs = (await client.list(project)).map(f => path.basename(f));
		return [difference(ours.sort(), theirs.sort()) ?? [], expect(!old.some(o => ours.includes(path.basename(o.session.file))), "an archived one is in it")].flat();
	});
	await check("gc --archive: archive/index.jsonl has what index.jsonl had", () => {
		const lines = listed(mount, "archive/index.jsonl");
		const kept = ({ path, modified, ...rest }: any) => rest;
		return old.flatMap(o => difference(kept(lines.find(l => l.id === o.id) ?? {}), kept(o.line)) ?? []).concat(expect(lines.length === count, `it has ${lines.length} lines`));
	});
	await check("gc --archive: a session that is put back is as it was, for the client too", () => {
		const o = old[0];
		const archived = path.join(mount.agent, "archive", o.place);
		fs.writeFileSync(o.session.file, Bun.gunzipSync(fs.readFileSync(`${archived}.jsonl.gz`)));
		fs.renameSync(archived, o.session.file.replace(/\.jsonl$/, ""));
		fs.rmSync(`${archived}.jsonl.gz`);
		return Promise.all([difference(shown(o.session), o.shown) ?? [], reopened(client, o.session)]).then(all => all.flat());
	});
}

export async function checkSwept(client: Client, mount: Mount, project: string): Promise<void> {
	if (!client.newer) return;
	const [shot, stale, stray] = [3001, 3002, 3003].map(size => image(size, 3));
	const blob = (of: { data: string }) => {
		const bytes = Buffer.from(of.data, "base64");
		return { bytes, file: path.join(mount.agent, "blobs", new Bun.CryptoHasher("sha256").update(bytes).digest("hex")) };
	};
	const age = (file: string) => fs.utimesSync(file, Date.now() / 1000 - 3600, Date.now() / 1000 - 3600);
	/** Sweeps, with a blob that goes. */
	const sweep = () => {
		fs.writeFileSync(blob(stray).file, blob(stray).bytes);
		age(blob(stray).file);
		const run = Bun.spawnSync(gc({ blobs: true }), { stderr: "inherit" });
		return expect(run.success && JSON.parse(run.stdout.toString()).blobs.deleted >= 1 && !fs.existsSync(blob(stray).file), `it says ${run.stdout}`);
	};
	const isThere = (of: { data: string }, session: Session) =>
		expect(session.context().messages.some((m: any) => m.content[1]?.data === of.data), `${session.dir} lacks an image`);
	const session = mount.newSession({ cwd: project });
	await check("gc --blobs: the image of a session that nobody answered stays", async () => {
		session.message(user([text("Look."), shot]));
		age(blob(shot).file);
		return sweep().concat(isThere(shot, session), expect(fs.existsSync(blob(shot).file), "its blob is gone"), await reopened(client, session));
	});
	await check("gc --blobs: a blob that is there already is new when a line refers to it", () => {
		fs.writeFileSync(blob(stale).file, blob(stale).bytes);
		age(blob(stale).file);
		session.message(user([text("And this."), stale]));
		const found = expect(Date.now() - fs.statSync(blob(stale).file).mtimeMs < 60_000, "it is old");
		age(blob(stale).file);
		return found.concat(sweep(), isThere(stale, session));
	});
}

/** A session of the client's with a blob and artifacts, last changed an hour ago. */
async function makeOld(client: Client, mount: Mount, project: string, i: number): Promise<Session> {
	const manager = client.create(project);
	manager.appendMessage(user([text(`Old ${i}`), image(2000 + i, 3)]));
	const first = manager.appendMessage(assistant("Long ago."));
	manager.appendLabelChange(first, "then");
	for (let n = 0; n < 200 * (i % 3); n++) manager.appendMessage(user(`${"padding ".repeat(100)} ${n}`));
	manager.branch(first);
	manager.appendMessage(user("Again?"));
	manager.appendMessage(assistant("Enough."));
	await manager.setSessionName(`Old title ${i}`, "user");
	await closed(manager);
	const file = manager.getSessionFile();
	const beside = file.replace(/\.jsonl$/, "");
	fs.mkdirSync(beside, { recursive: true });
	fs.writeFileSync(path.join(beside, "1.bash.log"), `output ${i}\n`);
	fs.copyFileSync(file, path.join(beside, "Task.jsonl"));
	const then = Date.now() / 1000 - 3600;
	for (const f of [file, path.join(beside, "Task.jsonl")]) fs.utimesSync(f, then, then);
	return mount.sessionOf(file);
}

const listed = (mount: Mount, name: string): any[] =>
	fs.readFileSync(path.join(mount.dir, name), "utf8").split("\n").filter(Boolean).map(line => JSON.parse(line));

function remember(mount: Mount, session: Session, index: any[]): Old {
	const place = path.relative(mount.dir, session.dir);
	const id = session.header().id;
	return { id, place, session, text: fs.readFileSync(session.file, "latin1"), shown: shown(session), line: index.find(l => l.id === id) };
}

/** Looks for every session, over and over, until the command has ended. */
async function watched(mount: Mount, old: Old[], run: { exitCode: number | null }): Promise<string[]> {
	const found = new Set<string>();
	do {
		for (const o of old) {
			const wrong = misplaced(mount, o) && misplaced(mount, o); // it may go between two steps of one look
			if (wrong) found.add(wrong);
			await Bun.sleep(0); // so that the end of the command is seen
		}
	} while (run.exitCode === null);
	return [...found];
}

/** What is wrong with a look by the id of a session. */
function misplaced(mount: Mount, { id, session }: Old): string | undefined {
	const link = path.join(mount.dir, "by-id", id);
	try {
		const target = fs.readlinkSync(link);
		if (path.basename(target) !== path.basename(session.dir)) return `${id} leads to ${target}`;
		const header = JSON.parse(fs.readFileSync(path.join(link, "header.json"), "utf8"));
		return header.id === id ? undefined : `${id} has another header`;
	} catch (e) {
		return `${id}: ${e}`;
	}
}

/** What is wrong with a session that was archived. */
function packed(mount: Mount, o: Old): string[] {
	const there = `archive/${o.place.replace(/^sessions\//, "")}`;
	const archived = mount.session(there);
	const unpacked = Buffer.from(Bun.gunzipSync(fs.readFileSync(path.join(mount.dir, `${there}.jsonl.gz`)))).toString("latin1");
	return [
		expect(fs.readlinkSync(path.join(mount.dir, "by-id", o.id)) === `../${there}`, "by-id leads elsewhere"),
		// The kernel remembers for a second that a directory exists; what is listed is exact.
		expect(!fs.readdirSync(path.dirname(o.session.dir)).some(name => name.startsWith(path.basename(o.session.dir))), "it is in sessions/ too"),
		expect(unpacked === o.text, "its bytes are others"),
		difference(shown(archived), o.shown) ?? [],
	].flat().map(f => `${o.place}: ${f}`);
}
