// The client in a terminal, and its user.
import * as fs from "node:fs";
import * as path from "node:path";
import { answerTo, nextPrompt } from "./model";
import type { Pane, Terminals } from "./terminal";

/** Starting takes the older client ten seconds on a busy machine. */
const startSeconds = 60;

/** What the client needs to know to use the model and to ask its user nothing. */
export function configure(agentDir: string, model: string): void {
	const stub = { id: "stub", name: "Stub", contextWindow: 100_000, maxTokens: 1000 };
	const local = { baseUrl: model, apiKey: "none", api: "openai-completions", models: [stub] };
	const config = {
		setupVersion: 1000,
		startup: { quiet: true, checkUpdate: false },
		lsp: { enabled: false },
		modelRoles: { default: "local/stub", smol: "local/stub" },
	};
	// JSON is YAML.
	fs.writeFileSync(path.join(agentDir, "models.yml"), JSON.stringify({ providers: { local } }));
	fs.writeFileSync(path.join(agentDir, "config.yml"), JSON.stringify(config));
}

/** Where everything of the test is. */
export interface Place {
	/** where the client's package was installed */
	client: string;
	version: string;
	/** the agent directory */
	agent: string;
	project: string;
	terminals: Terminals;
}

/** A running client. */
export class Agent {
	private constructor(
		readonly place: Place,
		readonly pane: Pane,
	) {}

	get pid(): number {
		return this.pane.pid;
	}

	/** Starts the client and waits until it takes input. Those that start at once may lock each other out of their database. */
	static async start(place: Place, ...args: string[]): Promise<Agent> {
		const program = [process.execPath, commandOf(place.client), "--model", "local/stub", ...args];
		// The rest of the environment is ours. Titles come from the user alone.
		const environment = ["PI_NO_TITLE=1", `PI_CODING_AGENT_DIR=${place.agent}`];
		for (let tries = 1; ; tries++) {
			const pane = place.terminals.open(place.project, ["env", ...environment, ...program]);
			const agent = new Agent(place, pane);
			await pane.until("the client's prompt", () => agent.#promptLine() !== undefined || pane.ended(), startSeconds);
			if (!pane.ended()) return agent;
			if (tries === 3 || !pane.screen().includes("database is locked")) throw new Error(`the client ended:\n${pane.screen()}`);
		}
	}

	/** The line in which the user types. */
	#promptLine(): string | undefined {
		return this.pane.screen().split("\n").findLast(line => line.startsWith("╰─"));
	}

	/** Types a line and sends it. While it starts, the client shows what is typed but hears no Enter. */
	async send(line: string): Promise<void> {
		this.pane.type(line);
		await this.pane.until(`typed: ${line}`, () => this.#promptLine()?.includes(line));
		let pressed = 0;
		await this.pane.until(`sent: ${line}`, () => {
			if (this.pane.ended() || !this.#promptLine()?.includes(line)) return true;
			if (Date.now() - pressed > 2000) {
				this.pane.press("Enter");
				pressed = Date.now();
			}
			return false;
		});
	}

	/** A turn: sends a prompt, and waits until its answer is shown. Returns the prompt. */
	async turn(): Promise<string> {
		const prompt = nextPrompt();
		await this.send(prompt);
		await this.pane.until(`the answer to ${prompt}`, () => this.pane.screen().includes(answerTo(prompt)));
		return prompt;
	}

	/** Gives the session a title. */
	async rename(title: string): Promise<void> {
		await this.send(`/rename ${title}`);
		await this.pane.until("the new title", () => this.pane.screen().includes(`Session renamed to "${title}".`));
	}

	/** Leaves the client by its own command. */
	async exit(): Promise<void> {
		await this.send("/exit");
		await this.#over();
	}

	/** Ends the client without asking. */
	async kill(): Promise<void> {
		process.kill(this.pid, "SIGKILL");
		await this.#over();
	}

	async #over(): Promise<void> {
		await this.pane.until("the client's end", () => this.pane.ended());
	}
}

/** The program of the package, for bun to run. */
export function commandOf(client: string): string {
	const dir = path.join(client, "node_modules/@oh-my-pi/pi-coding-agent");
	const { bin } = JSON.parse(fs.readFileSync(path.join(dir, "package.json"), "utf8"));
	return path.join(dir, bin.omp);
}

/** The session files of an agent directory. */
export function sessionFiles(agentDir: string): string[] {
	const dir = path.join(agentDir, "sessions");
	if (!fs.existsSync(dir)) return [];
	const names = fs.readdirSync(dir, { recursive: true, encoding: "utf8" });
	return names.filter(name => /^[^/]+\/[^./][^/]*\.jsonl$/.test(name)).map(name => path.join(dir, name));
}

/** Whether a session file holds both sides of a turn. */
export function holdsTurn(file: string, prompt: string): boolean {
	const said = (role: string, text: string) =>
		fs
			.readFileSync(file, "utf8")
			.split("\n")
			.some(line => line.includes(`"role":"${role}"`) && line.includes(text));
	return said("user", prompt) && said("assistant", answerTo(prompt));
}
