// Sessions that are moved to other working directories: by the client, through the mount, and by both in turn.
import * as fs from "node:fs";
import * as path from "node:path";
import { difference, disagreements } from "./agree";
import { reopened, shownAfter } from "./build";
import { type Client, closed } from "./client";
import { assistant, image, text, user } from "./messages";
import type { Mount, Session } from "./mount";
import { check, expect } from "./report";

export async function checkMoved(client: Client, mount: Mount, project: string): Promise<void> {
	const dirs = ["b", "c", "d"].map(name => path.join(project, name));
	for (const dir of dirs) fs.mkdirSync(dir);
	const [b, c, d] = dirs;
	await checkMovedByClient(client, mount, project, b);
	await checkMovedThroughMount(client, mount, project, c);
	await checkSameHeader(client, mount, project, d);
	await check("move: by the client and through the mount in turn, six times", async () => {
		let session = await makeMovable(client, mount, project);
		const name = path.basename(session.dir);
		const found: string[] = [];
		for (const [n, dir] of [b, c, project, d, c, b].entries()) {
			const from = session.file;
			if (n % 2) {
				session.setCWD(dir);
			} else {
				const manager = await client.open(session.file);
				await manager.moveTo(dir);
				manager.appendMessage(user(`Now in ${dir}`));
				await closed(manager);
			}
			session = mount.at(dir, name);
			found.push(...(await whole(client, mount, session, from, dir)).map(f => `${n}: ${f}`));
		}
		return found;
	});
}

/** A session of the client's with artifacts. */
async function makeMovable(client: Client, mount: Mount, project: string): Promise<Session> {
	const manager = client.create(project);
	manager.appendMessage(user([text("Where are we?"), image(3000, 13)]));
	manager.appendLabelChange(manager.appendMessage(assistant("Here.")), "here");
	await manager.setSessionName("On the move", "user");
	await closed(manager);
	const beside = manager.getSessionFile().replace(/\.jsonl$/, "");
	fs.mkdirSync(beside, { recursive: true });
	fs.writeFileSync(path.join(beside, "1.bash.log"), "output\n");
	fs.copyFileSync(manager.getSessionFile(), path.join(beside, "Task.jsonl"));
	return mount.sessionOf(manager.getSessionFile());
}

/** What is wrong with a session that has moved to a working directory, from a file. */
async function whole(client: Client, mount: Mount, session: Session, from: string, cwd: string): Promise<string[]> {
	const id = session.header().id;
	const listed = (await client.list(cwd)).map(file => fs.realpathSync(file));
	const everywhere = fs.readdirSync(path.join(mount.agent, "sessions"), { recursive: true }).filter(name => String(name).endsWith(path.basename(session.file)));
	const old = from.replace(/\.jsonl$/, "");
	return [
		expect(session.file !== from && everywhere.length === 1, `it is at ${everywhere}`),
		expect(!fs.existsSync(old) && !fs.lstatSync(old, { throwIfNoEntry: false }), "its artifacts or a link are at the old place"),
		expect(session.read("cwd") === `${cwd}\n`, `cwd is ${session.read("cwd")}`),
		expect(fs.realpathSync(path.join(mount.dir, "by-id", id)) === session.dir, "by-id leads elsewhere"),
		expect(session.read("artifacts/1.bash.log") === "output\n" && session.read("1.bash.log") === "output\n", "its artifacts are others"),
		expect(session.read("artifacts/Task/title") === "On the move\n", "the subagent's session is another"),
		expect(listed.includes(fs.realpathSync(session.file)), `the client lists ${listed}`),
		expect(!client.newer || session.header().previousSessionFiles?.includes(from), `it was at ${session.header().previousSessionFiles}`),
		await reopened(client, session, m => expect(m.getHeader().cwd === cwd && m.getSessionFile() === session.file, `the client has ${m.getHeader().cwd}`)),
	].flat();
}

async function checkMovedByClient(client: Client, mount: Mount, project: string, to: string): Promise<void> {
	await check("move: by the client, beside the mount", async () => {
		const session = await makeMovable(client, mount, project);
		const child = mount.session(session.fork(session.leaf()!)); // which names its parent by its path
		const name = path.basename(session.dir);
		const manager = await client.open(session.file);
		session.read("context.json"); // so that its old state is known
		await manager.moveTo(to);
		const moved = mount.at(to, name);
		const found = disagreements(client, moved, manager);
		found.push(...(await shownAfter(client, moved, manager, m => m.appendMessage(user("There.")))));
		await closed(manager);
		found.push(...expect(fs.realpathSync(path.join(child.dir, "parent")) === moved.dir, "its child does not find it"));
		return found.concat(await whole(client, mount, moved, session.file, to));
	});
}

async function checkMovedThroughMount(client: Client, mount: Mount, project: string, to: string): Promise<void> {
	await check("move: through cwd, and the client goes on at the new place", async () => {
		const session = await makeMovable(client, mount, project);
		session.setCWD(to);
		const moved = mount.at(to, path.basename(session.dir));
		const found = await whole(client, mount, moved, session.file, to);
		const manager = await client.continueRecent(to);
		found.push(...expect(manager.getSessionFile() === moved.file, `--continue takes ${manager.getSessionFile()}`));
		found.push(...(await shownAfter(client, moved, manager, m => m.appendMessage(user("Go on.")))));
		found.push(...(await shownAfter(client, moved, manager, m => m.rewriteEntries())));
		await closed(manager);
		return found;
	});
}

async function checkSameHeader(client: Client, mount: Mount, project: string, to: string): Promise<void> {
	await check("move: through cwd, the header is the one that the client writes", async () => {
		const [theirs, ours] = [await makeMovable(client, mount, project), await makeMovable(client, mount, project)];
		const manager = await client.open(theirs.file);
		await manager.moveTo(to);
		await closed(manager);
		ours.setCWD(to);
		const headerOf = (s: Session) => {
			const moved = mount.at(to, path.basename(s.dir));
			const line = fs.readFileSync(moved.file, "utf8").split("\n").find(l => l.includes(`"type":"session"`))!;
			// A client from 18 on repeats the title of the slot whenever it writes a file anew; nobody reads that.
			const { title, titleSource, ...rest } = JSON.parse(line);
			const { id, timestamp } = rest;
			return JSON.stringify(client.newer ? rest : JSON.parse(line)).replaceAll(path.basename(s.dir), "NAME").replaceAll(id, "ID").replaceAll(timestamp, "TIME");
		};
		return difference(headerOf(ours), headerOf(theirs));
	});
}
