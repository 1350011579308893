// Forks of a session of GitHub Copilot CLI at each of its entries. The client is run as the server that its kit for programs starts.
import { randomUUID } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import { type Message, RPC } from "../rpc";
import { type Call, StandIn } from "../standin";
import { itemsOf } from "./codex";
import { checkEveryEntry, dot, eggs } from "./everyentry";

/** The server of the client, and a session of it. */
class Server extends RPC {
	constructor(clientDir: string, project: string, readonly url: string) {
		const environment = {
			...process.env, COPILOT_OFFLINE: "true", COPILOT_AUTO_UPDATE: "false", COPILOT_PROVIDER_BASE_URL: `${url}/v1`, COPILOT_PROVIDER_API_KEY: "none",
			COPILOT_PROVIDER_WIRE_API: "responses", COPILOT_MODEL: "gpt-5.3-codex",
		};
		super([path.join(clientDir, "node_modules/.bin/copilot"), "--headless", "--no-auto-update", "--no-auto-login", "--stdio"], project, environment, true);
	}

	/** Opens a session, by session.create or session.resume, and lets it use all tools. */
	async open(method: string, sessionId: string, workingDirectory: string): Promise<void> {
		const provider = { type: "openai", wireApi: "responses", transport: "http", baseUrl: `${this.url}/v1`, apiKey: "none" };
		await this.call(method, { sessionId, workingDirectory, model: "gpt-5.3-codex", provider, streaming: true, requestPermission: false, envValueMode: "direct" });
		await this.call("session.permissions.setApproveAll", { sessionId, enabled: true });
	}

	/** Sends a prompt, and waits until nothing is left to do. */
	async say(sessionId: string, prompt: string, ...attachments: object[]): Promise<void> {
		const ended = this.next(({ method, params }: Message) => method === "session.event" && params.sessionId === sessionId && params.event.type === "session.idle");
		await this.call("session.send", { sessionId, prompt, attachments });
		await ended;
	}
}

const shell = (command: string): Call => ({ tool: "bash", arguments: { command, description: "Count" } });

/** Does the checks. */
export async function checkForks(clientDir: string, project: string): Promise<void> {
	const model = new StandIn(), source = path.join(process.env.HOME!, ".copilot"), state = path.join(source, "session-state");
	model.thinks = true;
	fs.rmSync(state, { recursive: true, force: true });
	fs.mkdirSync(state);
	fs.writeFileSync(path.join(project, "dot.png"), Buffer.from(dot, "base64"));
	const begun = async () => {
		const server = new Server(clientDir, project, model.url);
		await server.call("connect", {});
		return server;
	};

	/** Eight turns and one that is taken back, a compaction and a subagent. */
	async function make(): Promise<void> {
		const sessionId = randomUUID();
		let server = await begun();
		await server.open("session.create", sessionId, project);
		model.will([shell("echo two"), shell("echo three")]);
		await server.say(sessionId, "Count the herons");
		await server.say(sessionId, "And in this one?", { type: "file", path: path.join(project, "dot.png"), displayName: "dot.png" });
		model.will(shell("echo five > herons.txt"), shell("cat herons.txt"));
		await server.say(sessionId, "Write it down");
		await server.say(sessionId, "Count the frogs");
		const { points } = await server.call("session.history.listRewindPoints", { sessionId });
		await server.call("session.history.rewind", { sessionId, eventId: points.at(-1).eventId, mode: "conversation" });
		model.will([shell("echo one"), shell("echo toad")]);
		await server.say(sessionId, "Count the toads");
		await server.call("session.history.compact", { sessionId, trigger: "manual" });
		await server.say(sessionId, "Count the newts");
		model.will({ tool: "task", arguments: { agent_type: "general-purpose", name: "one", description: "Count", prompt: eggs, mode: "sync" } }, "answer");
		await server.say(sessionId, "Have somebody count the eggs");
		await server.say(sessionId, "Count the nests");
		await server.call("runtime.shutdown");
		await server.end();
		server = await begun();
		await server.open("session.resume", sessionId, project);
		await server.say(sessionId, "And all?");
		await server.call("runtime.shutdown");
		await server.end();
	}

	async function goOn(prompts: Map<string, string>): Promise<void> {
		const server = await begun();
		for (const [sessionId, prompt] of prompts) {
			await server.open("session.resume", sessionId, project);
			await server.say(sessionId, prompt);
		}
		server.kill();
	}

	const blocks = (asked: any) => itemsOf({ input: asked.input.filter((item: any) => item.type !== "reasoning") });
	await checkEveryEntry({
		source, model, make, goOn, blocks, forgets: true, interrupted: /Tool execution was interrupted/, additions: {},
	}, 25);
	model.stop();
}
