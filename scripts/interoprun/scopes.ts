// bun scopes.ts CLIENT_DIR VERSION CWD, run in CWD: a client that starts, continues the last session, begins one, and prints what it
// lists. Without that, as a check: sessions made through a mount before, while and after such clients start, in directories that
// clients name in each of their ways, also where there is a directory of sessions that they rename then.
import * as fs from "node:fs";
import * as path from "node:path";
import { type Client, closed, loadClient } from "./client";
import { assistant, user } from "./messages";
import { busy, Mount, type Session } from "./mount";
import { check, expect } from "./report";

/** How often a client starts. */
const starts = 3;

if (import.meta.main) {
	const [dir, version, cwd] = process.argv.slice(2);
	const client = await loadClient(dir, version);
	const said: string[] = [];
	const listed = await client.list(cwd);
	for (const manager of [await client.continueRecent(cwd), client.create(cwd)]) {
		said.push(manager.appendMessage(user("Go on.")), manager.appendMessage(assistant("Gone on.")));
		await closed(manager);
		said.push(manager.getSessionFile());
	}
	console.log(JSON.stringify({ listed, said }));
	process.exit(0); // the client may have timers
}

/** A session that was made through the mount: what was answered, and the ids of what was taken. */
interface Made {
	session: Session;
	ids: string[];
	fd: number; // append, open since it was made
	moves: boolean; // the client gives its directory another name: only what is open stays
}

/** Adds a message, through the file that is open or by the path. It is taken or refused with EBUSY. */
function say(made: Made, message: object, held = false): void {
	busy(() => {
		if (!held && !made.moves) return made.ids.push(made.session.message(message));
		fs.writeSync(made.fd, `${JSON.stringify({ type: "message", message })}\n`);
		made.ids.push(fs.readFileSync(made.fd, "utf8").trimEnd().split("\n").at(-1)!);
	});
}

export function checkScopes(dir: string) {
	return async function checkScopes(client: Client, mount: Mount, project: string): Promise<void> {
		const places = { "the home directory": process.env.HOME!, "the temporary directory": process.env.TMPDIR!, "any other": path.join(project, "scopes") };
		for (const [where, above] of Object.entries(places)) {
			for (const legacy of [false, true]) {
				const named = `sessions in ${where}${legacy ? ", where a directory is renamed" : ""}`;
				await check(`${named}, before, while and after a client starts: nothing is refused but for EBUSY, no path goes, nothing is lost`, () =>
					beside(client, dir, path.join(above, legacy ? "old w" : "w"), path.join(project, "../scopes", String(Math.random())), mount, legacy),
				);
			}
		}
	};
}

async function beside(client: Client, dir: string, cwd: string, base: string, { dir: main }: Mount, legacy: boolean): Promise<string[]> {
	const [agent, at] = [path.join(base, "agent"), path.join(base, "mnt")];
	for (const made of [cwd, at, path.join(agent, "sessions"), path.join(agent, "terminal-sessions")]) fs.mkdirSync(made, { recursive: true });
	const old = path.join(agent, "sessions", `--${cwd.slice(1).replaceAll("/", "-")}--`, "2025-03-04T05-06-00-000Z_old.jsonl");
	if (legacy) {
		fs.mkdirSync(path.dirname(old));
		fs.writeFileSync(old, `${JSON.stringify({ type: "session", version: 3, id: "old", timestamp: "2025-03-04T05:06:00.000Z", cwd })}\n`);
	}
	const daemon = path.join(main, "../../sessionfs");
	const run = Bun.spawnSync([daemon, agent, at]);
	if (!run.success) throw new Error(run.stderr.toString());
	const found: string[] = [];
	const all: Made[] = [];
	const mount = new Mount(at, agent);
	const make = (answered: boolean, session = mount.newSession({ cwd }), moves = false) => {
		all.push({ session, ids: [], fd: fs.openSync(path.join(session.dir, "append"), "r+"), moves });
		say(all.at(-1)!, user("Here?"));
		if (answered) say(all.at(-1)!, assistant("Here."));
	};
	const there = () => all.flatMap(m => expect(m.moves || fs.existsSync(m.session.dir), `${m.session.dir} is gone`));
	const said: string[] = [];
	try {
		if (legacy) make(true, mount.sessionOf(old), true);
		make(false);
		make(true);
		for (let n = 0; n < starts; n++) {
			const started = Bun.spawn([process.execPath, "--no-install", import.meta.path, dir, client.version, cwd], { cwd, env: { ...process.env, PI_CODING_AGENT_DIR: agent }, stdout: "pipe", stderr: "pipe" });
			for (let i = 0; started.exitCode === null; i++) {
				if (i % 20 === 10) make(i % 40 === 10);
				say(all[i % all.length], i % 3 ? user("And?") : assistant("So."), i % 2 === 0);
				found.push(...there());
				await Bun.sleep(10);
			}
			if (started.exitCode !== 0) throw new Error(await new Response(started.stderr).text());
			const told = JSON.parse((await new Response(started.stdout).text()).trimEnd().split("\n").at(-1)!);
			said.push(...told.said);
			make(n % 2 === 0);
		}
		for (const m of all) say(m, user("Still there?"), true);
		found.push(...there());
		for (const { session, ids } of all) {
			const shown = mount.at(cwd, path.basename(session.dir)).entries();
			found.push(...expect(ids.every(id => shown.some(e => e.id === id)), `${session.dir} lacks what was taken`));
		}
	} finally {
		for (const m of all) fs.closeSync(m.fd);
		const end = Bun.spawnSync([daemon, "-u", at]);
		found.push(...expect(end.success, `it does not end: ${end.stderr}`));
	}
	const files = (fs.readdirSync(path.join(agent, "sessions"), { recursive: true }) as string[]).filter(f => f.endsWith(".jsonl")).map(f => path.join(agent, "sessions", f));
	const texts = files.map(f => fs.readFileSync(f, "utf8")).join("");
	found.push(...expect(new Set(files.map(f => path.basename(f))).size === files.length, `twice: ${files}`));
	found.push(...said.filter(s => !s.startsWith("/") && !texts.includes(`"id":"${s}"`)).map(s => `what the client said is lost: ${s}`));
	for (const { session, ids, moves } of all) {
		const file = files.find(f => path.basename(f) === path.basename(session.file))!;
		found.push(...expect(moves || file === session.file, `${session.file} is at ${file}`));
		const manager = await client.open(file);
		const has = new Set(manager.getEntries().map(e => e.id));
		found.push(...expect(ids.length > 0 && ids.every(id => has.has(id)), `${file} lacks ${ids.filter(id => !has.has(id))}`));
		await closed(manager);
	}
	return [...new Set(found)];
}
