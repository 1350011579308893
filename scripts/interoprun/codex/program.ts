// The real Codex, driven through its app server: JSON-RPC, a line each.
import * as fs from "node:fs";
import * as path from "node:path";

type Line = { id?: number; method?: string; result?: any; error?: { message: string } };

/** What the program needs to know to use a model at an address and to ask nothing. */
export function configure(home: string, cwd: string, url: string, model: string): void {
	const config = [
		`model = "${model}"`, 'model_provider = "here"', 'approval_policy = "never"', 'sandbox_mode = "danger-full-access"',
		"[model_providers.here]", 'name = "here"', `base_url = "${url}"`, 'wire_api = "responses"', `[projects."${cwd}"]`, 'trust_level = "trusted"',
	];
	fs.writeFileSync(path.join(home, "config.toml"), `${config.join("\n")}\n`);
}

export const commandOf = (dir: string): string => path.join(dir, "node_modules/.bin/codex");

export class Codex {
	readonly #process;
	readonly #waiting: { want: (line: Line) => boolean; take: (line: Line) => void }[] = [];
	#calls = 0;

	constructor(dir: string, home: string, cwd: string, url: string) {
		configure(home, cwd, url, "gpt-5.3-codex");
		this.#process = Bun.spawn([commandOf(dir), "app-server"], { cwd, env: { ...process.env, CODEX_HOME: home }, stdin: "pipe", stdout: "pipe", stderr: "ignore" });
		void this.#read();
	}

	async #read(): Promise<void> {
		let text = "";
		for await (const part of this.#process.stdout.pipeThrough(new TextDecoderStream())) {
			text += part;
			for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
				const line = JSON.parse(text.slice(0, end)) as Line, at = this.#waiting.findIndex(w => w.want(line));
				text = text.slice(end + 1);
				if (at >= 0) this.#waiting.splice(at, 1)[0].take(line);
			}
		}
	}

	#next(want: (line: Line) => boolean): Promise<Line> {
		return new Promise(take => this.#waiting.push({ want, take }));
	}

	#send(line: object): void {
		this.#process.stdin.write(`${JSON.stringify(line)}\n`);
		this.#process.stdin.flush();
	}

	async call(method: string, params: object = {}): Promise<any> {
		const id = ++this.#calls, answer = this.#next(line => line.id === id && !line.method);
		this.#send({ id, method, params });
		const { result, error } = await answer;
		if (error) throw new Error(`${method}: ${error.message}`);
		return result;
	}

	async begin(): Promise<void> {
		await this.call("initialize", { clientInfo: { name: "t", title: "t", version: "1" }, capabilities: { experimentalApi: true } });
		this.#send({ method: "initialized" });
	}

	/** Calls a method that begins a turn, and waits until that has ended. */
	async turn(method: string, params: object): Promise<void> {
		const ended = this.#next(line => line.method === "turn/completed");
		await this.call(method, params);
		await ended;
	}

	say(threadId: string, text: string): Promise<void> {
		return this.turn("turn/start", { threadId, input: [{ type: "text", text }] });
	}

	/** What a thread has now, a line for each text of the person and of the model. */
	async read(threadId: string): Promise<{ ids: string[]; said: string[] }> {
		const { turns } = (await this.call("thread/read", { threadId, includeTurns: true })).thread;
		const said = turns.flatMap((t: any) => t.items).flatMap((i: any) =>
			i.type === "userMessage" ? i.content.map((c: any) => `user ${c.text}`) : i.type === "agentMessage" ? [`assistant ${i.text}`] : []);
		return { ids: turns.map((t: any) => t.id), said };
	}

	async end(): Promise<void> {
		this.#process.stdin.end();
		await this.#process.exited;
	}
}
