// Beside a client that has the session open and its writer too: we keep away, and it never notices us.
import * as fs from "node:fs";
import * as path from "node:path";
import { disagreements } from "./agree";
import { reopened, shownAfter } from "./build";
import { type Client, closed, type Manager } from "./client";
import { assistant, user } from "./messages";
import { busy, type Mount, type Session } from "./mount";
import { check, expect } from "./report";

/** Every way to write to a session. A fork only reads it. */
const writes: Record<string, (s: Session) => unknown> = {
	append: s => s.message(user("No.")),
	labels: s => s.setLabel(s.leaf()!, "no"),
	"ln -sfn leaf": s => s.moveLeaf(s.entries()[0].id),
	"ln -sfn tree leaf": s => s.resetLeaf(),
	title: s => s.setTitle("No"),
	cwd: s => s.setCWD("/"),
};

export async function checkLive(client: Client, mount: Mount, project: string): Promise<void> {
	const manager = await begun(client, project);
	const session = mount.sessionOf(manager.getSessionFile());
	await checkHeld(client, mount, session, manager);

	await check("live: after the client closed, all writes work and it opens the session again", async () => {
		await closed(manager);
		session.fork(session.leaf()!);
		session.message(user("Now."));
		session.setLabel(session.leaf()!, "now");
		session.setTitle("Now");
		session.moveLeaf(session.entries()[0].id);
		session.resetLeaf();
		session.message(user("A new root."));
		return reopened(client, session);
	});
	await checkTakenUp(client, session);
	await checkKilled(client, mount, project);
	if (client.newer) await checkLeased(mount, project);
}

/**
 * A session whose client has its writer open. The first answer puts the whole session on disk at once; only what
 * comes after that is appended, and the older client opens its writer no sooner.
 */
export async function begun(client: Client, project: string): Promise<Manager> {
	const manager = client.create(project);
	manager.appendMessage(user("Live"));
	manager.appendMessage(assistant("I am."));
	await manager.flush();
	manager.appendMessage(user("Still?"));
	await manager.flush();
	return manager;
}

/** While the client holds the session: EBUSY, and nothing that disturbs it. */
async function checkHeld(client: Client, mount: Mount, session: Session, manager: Manager): Promise<void> {
	for (const [what, write] of Object.entries(writes)) {
		await check(`live: ${what} is refused with EBUSY and changes nothing`, () => {
			const before = fs.readFileSync(session.file);
			const siblings = fs.readdirSync(`${session.dir}/..`).length;
			return expect(busy(() => write(session)), "it was not refused")
				.concat(expect(fs.readFileSync(session.file).equals(before), "the file has changed"))
				.concat(expect(fs.readdirSync(`${session.dir}/..`).length === siblings, "there is a new file"));
		});
	}
	await check("live: fork works, since it only reads the session", () => {
		const before = fs.readFileSync(session.file);
		const place = session.fork(session.leaf()!);
		return expect(mount.session(place).leaf() !== null, "the new session is empty").concat(
			expect(fs.readFileSync(session.file).equals(before), "the file has changed"),
		);
	});
	await check("live: what the client holds can be read", () => disagreements(client, session, manager));
	const does = (what: string, run: (m: Manager) => unknown) =>
		check(`live: the client's next ${what} succeeds`, () => shownAfter(client, session, manager, run));
	await does("append", m => m.appendMessage(assistant("Still.")));
	await does("rewrite", m => m.rewriteEntries());
	await does("title", m => m.setSessionName("Live", "user"));
	await does("append after that", m => m.appendMessage(user("Good.")));
	await check("live: it is refused after the rewrite too", () => expect(busy(() => writes.append(session)), "it was not"));
}

/** A client that opened the session, but has not written: it is not in the way, and what we write stays. */
async function checkTakenUp(client: Client, session: Session): Promise<void> {
	await check("live: what we write beside a client that only read stays when the client appends", async () => {
		const reader = await client.open(session.file);
		const ours = session.message(user("Beside you."));
		const its = reader.appendMessage(user("I continue from what I know."));
		await reader.flush();
		await closed(reader);
		const ids = session.entries().map(e => e.id);
		return expect(ids.includes(ours), "ours is lost").concat(
			expect(ids.includes(its), "the client's is lost"),
			await reopened(client, session),
		);
	});
}

/** A client that is killed holds nothing any more. */
async function checkKilled(client: Client, mount: Mount, project: string): Promise<void> {
	await check("live: a client in another process: EBUSY, and after kill -9 the session is ours", async () => {
		const holder = Bun.spawn([process.execPath, `${import.meta.dir}/hold.ts`, ...process.argv.slice(2, 4), project], {
			stdout: "pipe",
			stdin: "ignore",
		});
		try {
			const { value } = await holder.stdout.getReader().read();
			const session = mount.sessionOf(new TextDecoder().decode(value).trim());
			const found = Object.entries(writes).flatMap(([what, write]) =>
				expect(busy(() => write(session)), `${what} was not refused`),
			);
			holder.kill("SIGKILL");
			await holder.exited;
			session.message(assistant("You left."));
			session.setTitle("Left");
			return found.concat(await reopened(client, session));
		} finally {
			holder.kill("SIGKILL");
		}
	});
}

/** The leases of 18.5 and later, taken as they take them, with 18.2.3's locks. */
async function checkLeased(mount: Mount, project: string): Promise<void> {
	const { FileLock } = await import(Bun.resolveSync("@oh-my-pi/pi-natives", process.argv[2]));
	const owners = path.join(mount.agent, "../run/session-owners");
	const ids = ["lease_A-1", "a.b", "../x y", "é🦊\ud83d", "", ...[17, 48, 49, 96, 129, 500].map(n => "long id ".repeat(n).slice(0, n))];
	await check("live: the lease of a session with any id is seen, and its end", () =>
		ids.flatMap((id, n) => {
			const name = /^[A-Za-z0-9_-]{1,128}$/.test(id) ? id : `h-${Bun.hash.wyhash(id).toString(16).padStart(16, "0")}`;
			const file = path.join(mount.agent, "sessions", "--leased--", `2025-03-04T05-06-00-000Z_leased-${n}.jsonl`);
			fs.mkdirSync(path.dirname(file), { recursive: true });
			const header = { type: "session", version: 3, id, timestamp: "2025-03-04T05:06:00.000Z", cwd: project };
			fs.writeFileSync(file, `${JSON.stringify(header)}\n`);
			const session = mount.sessionOf(file);
			const lease = FileLock.tryAcquire(path.join(owners, `${name}.lock`));
			const found = expect(busy(() => writes.append(session)), `it was not refused: ${JSON.stringify(id)}`);
			lease.release();
			writes.append(session);
			return found;
		}),
	);
}
