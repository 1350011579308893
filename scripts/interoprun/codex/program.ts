// The real Codex, driven through its app server: JSON-RPC, a line each.
import * as fs from "node:fs";
import * as path from "node:path";
import { type Message, RPC } from "../rpc";

/** What the program needs to know to use a model at an address and to ask nothing. */
export function configure(home: string, cwd: string, url: string, model: string): void {
	const config = [
		`model = "${model}"`, 'model_provider = "here"', 'approval_policy = "never"', 'sandbox_mode = "danger-full-access"',
		"[model_providers.here]", 'name = "here"', `base_url = "${url}"`, 'wire_api = "responses"', `[projects."${cwd}"]`, 'trust_level = "trusted"',
	];
	fs.writeFileSync(path.join(home, "config.toml"), `${config.join("\n")}\n`);
}

export const commandOf = (dir: string): string => path.join(dir, "node_modules/.bin/codex");

export class Codex extends RPC {
	constructor(dir: string, home: string, cwd: string, url: string) {
		configure(home, cwd, url, "gpt-5.3-codex");
		super([commandOf(dir), "app-server"], cwd, { ...process.env, CODEX_HOME: home });
	}

	async begin(): Promise<void> {
		await this.call("initialize", { clientInfo: { name: "t", title: "t", version: "1" }, capabilities: { experimentalApi: true } });
		this.send({ method: "initialized" });
	}

	/** Calls a method that begins a turn of a thread, and waits until that has ended. */
	async turn(method: string, params: { threadId: string; [key: string]: unknown }): Promise<void> {
		const ended = this.next(({ method, params: of }: Message) => method === "turn/completed" && of.threadId === params.threadId);
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
}
