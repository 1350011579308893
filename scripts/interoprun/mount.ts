// A session as the mount shows it, and what a script does with it.
import * as fs from "node:fs";
import * as path from "node:path";
import type { Entry } from "./client";

/** Runs a shell script in a directory and returns its output; $1 and so on are the arguments. */
export function shell(dir: string, script: string, ...args: string[]): string {
	const run = Bun.spawnSync(["bash", "-euc", script, "bash", ...args], { cwd: dir });
	if (!run.success) throw new Error(`${script}: ${run.stderr.toString().trim()}`);
	return run.stdout.toString();
}

/** Whether something is refused because a client holds the session: what it threw names EBUSY. */
export function busy(action: () => unknown): boolean {
	try {
		action();
	} catch (e) {
		const error = e as { code?: string; message: string };
		if (error.code === "EBUSY" || /resource busy/.test(error.message)) return true;
		throw e;
	}
	return false;
}

const unescapes: Record<string, string> = { "\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r" };

export class Session {
	/** dir is its directory in the mount, file its file where the client looks for it. */
	constructor(
		readonly dir: string,
		readonly file: string,
	) {}

	/** Writes entries in one write and returns their ids, as read back on the same open file. */
	append(...entries: object[]): string[] {
		const fd = fs.openSync(path.join(this.dir, "append"), "r+");
		try {
			const text = Buffer.from(entries.map(e => `${JSON.stringify(e)}\n`).join(""));
			for (let at = 0; at < text.length; ) at += fs.writeSync(fd, text, at);
			return fs.readFileSync(fd, "utf8").trimEnd().split("\n");
		} finally {
			fs.closeSync(fd);
		}
	}

	message(message: object): string {
		return this.append({ type: "message", message })[0];
	}

	setLabel(id: string, label: string): void {
		shell(this.dir, `printf '%s %s\\n' "$1" "$2" >labels`, id, label);
	}

	clearLabel(id: string): void {
		shell(this.dir, `printf '%s\\n' "$1" >labels`, id);
	}

	setTitle(title: string): void {
		shell(this.dir, `printf '%s\\n' "$1" >title`, title);
	}

	moveLeaf(target: string): void {
		shell(this.dir, `ln -sfn "$1" leaf`, target);
	}

	resetLeaf(): void {
		shell(this.dir, "ln -sfn tree leaf");
	}

	/** It is then elsewhere: Mount.at finds it. */
	setCWD(cwd: string): void {
		shell(this.dir, `printf '%s\\n' "$1" >cwd`, cwd);
	}

	/** Returns the fork's path from the mount's root. */
	fork(id: string): string {
		return shell(this.dir, `exec 3<>fork; printf '%s\\n' "$1" >&3; read -r path <&3; echo "$path"`, id).trimEnd();
	}

	/** Makes durable what was appended. */
	sync(): void {
		const fd = fs.openSync(path.join(this.dir, "append"), "r+");
		try {
			fs.fsyncSync(fd);
		} finally {
			fs.closeSync(fd);
		}
	}

	header(): any {
		return JSON.parse(this.read("header.json"));
	}

	read(name: string): string {
		return fs.readFileSync(path.join(this.dir, name), "utf8");
	}

	/** What is wrong with the file; sessions that are made by chance have calls without results, too. */
	problems(): string {
		return this.read("problems.jsonl").replace(/^.*"problem":"orphan-.*\n/gm, "");
	}

	/** In the order of the file. */
	entries(): Entry[] {
		return fs.readdirSync(path.join(this.dir, "entries")).map(name => JSON.parse(this.read(`entries/${name}`)));
	}

	labels(): Record<string, string> {
		const plain = (s: string) => s.replace(/\\[\\tnr]/g, e => unescapes[e]);
		const lines = this.read("labels").split("\n").slice(0, -1);
		return Object.fromEntries(lines.map(line => line.split("\t").map(plain)));
	}

	title(): string {
		return this.read("title").replace(/\n$/, "");
	}

	/** The id of the entry that leaf leads to, null before the first entry. */
	leaf(): string | null {
		const link = path.join(this.dir, "leaf");
		if (fs.readlinkSync(link) === "tree") return null;
		return JSON.parse(fs.readFileSync(link, "utf8")).id;
	}

	context(): any {
		return JSON.parse(this.read("context.json"));
	}

	/** The paths of all entries in the tree. */
	tree(): string[] {
		const found: string[] = [];
		const walk = (at: string, to: string) => {
			for (const e of fs.readdirSync(path.join(this.dir, "tree", at), { withFileTypes: true })) {
				const id = `${to}/${decodeURIComponent(e.name)}`;
				if (e.isDirectory() && e.name !== ".deep") {
					found.push(id);
					walk(`${at}/${e.name}`, id);
				}
			}
		};
		walk("", "");
		return found;
	}
}

export class Mount {
	constructor(
		readonly dir: string,
		readonly agent: string,
	) {}

	/** The session of a path from the mount's root, with or without its ending. */
	session(place: string): Session {
		const base = place.replace(/\.jsonl$/, "");
		return new Session(path.join(this.dir, base), path.join(this.agent, `${base}.jsonl`));
	}

	/** The session of a file of the agent directory. */
	sessionOf(file: string): Session {
		return this.session(path.relative(fs.realpathSync(this.agent), fs.realpathSync(file)));
	}

	/** The session of that file name, as it is found by its working directory. */
	at(cwd: string, name: string): Session {
		const dir = path.join(this.dir, "by-cwd", cwd);
		const found = fs.readdirSync(dir).map(link => fs.realpathSync(path.join(dir, link))).find(to => path.basename(to) === name);
		if (!found) throw new Error(`by-cwd${cwd} has no ${name}`);
		return this.session(path.relative(this.dir, found));
	}

	newSession(spec: object | string): Session {
		const line = typeof spec === "string" ? spec : JSON.stringify(spec);
		return this.session(
			shell(this.dir, `exec 3<>new-session; printf '%s\\n' "$1" >&3; read -r path <&3; echo "$path"`, line).trimEnd(),
		);
	}
}
