// Terminals: panes of a tmux server that is ours alone.
import { until } from "./wait";

/** The server's socket lies in dir under a name. */
export class Terminals {
	#started = false;
	#open: Pane[] = [];

	constructor(
		readonly dir: string,
		readonly name: string,
	) {}

	/** Runs a tmux command and returns its output. */
	tmux(...command: string[]): string {
		// The path is relative since a socket's must be short.
		const run = Bun.spawnSync(["tmux", "-u", "-S", this.name, "-f", "/dev/null", ...command], { cwd: this.dir });
		if (!run.success) throw new Error(`tmux ${command[0]}: ${run.stderr.toString().trim()}`);
		return run.stdout.toString().trimEnd();
	}

	/** Opens a terminal in cwd that a program runs in, as its first process. */
	open(cwd: string, program: string[]): Pane {
		const where = ["-P", "-F", "#{pane_id} #{pane_pid}", "-c", cwd];
		if (!this.#started) {
			// A terminal stays when its program has ended, so that what it said can be read.
			this.tmux("start-server", ";", "set-option", "-g", "remain-on-exit", "on", ";", "new-session", "-d", "cat");
			this.#started = true;
		}
		// tmux runs several words as they are, without a shell.
		const out = this.tmux("new-session", "-d", "-x", "120", "-y", "40", ...where, ...program);
		const [id, pid] = out.split(" ");
		const pane = new Pane(this, id, Number(pid));
		this.#open.push(pane);
		return pane;
	}

	/** Closes all terminals, which ends what runs in them. */
	clear(): void {
		for (const pane of this.#open) {
			if (!pane.ended()) process.kill(pane.pid, "SIGKILL");
			this.tmux("kill-pane", "-t", pane.id);
		}
		this.#open = [];
	}

	/** Ends the server. */
	close(): void {
		if (this.#started) this.tmux("kill-server");
	}
}

export class Pane {
	/** pid is the program's. */
	constructor(
		readonly terminals: Terminals,
		readonly id: string,
		readonly pid: number,
	) {}

	/** What can be seen, without empty lines. */
	screen(): string {
		const lines = this.terminals.tmux("capture-pane", "-p", "-t", this.id).split("\n");
		return lines.filter(line => line.trim()).join("\n");
	}

	/** Presses a key that tmux knows by its name. */
	press(key: string): void {
		this.terminals.tmux("send-keys", "-t", this.id, key);
	}

	/** Types text. */
	type(text: string): void {
		this.terminals.tmux("send-keys", "-t", this.id, "-l", "--", text);
	}

	/** Whether the program has ended. */
	ended(): boolean {
		return this.terminals.tmux("display-message", "-p", "-t", this.id, "#{pane_dead}") === "1";
	}

	/** Waits for something, and tells what can be seen where it does not come. */
	until<T>(what: string, get: () => T | undefined | false | null, seconds?: number): Promise<T> {
		return until(what, get, seconds, () => this.screen());
	}
}
