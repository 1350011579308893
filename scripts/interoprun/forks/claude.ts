// Forks of a session of Claude Code at each of its entries.
import * as fs from "node:fs";
import * as path from "node:path";
import { type Call, StandIn } from "../standin";
import { type Block, checkEveryEntry, dot, eggs } from "./everyentry";

/** The blocks of a request's messages. */
function blocksOf(asked: any): Block[] {
	return asked.messages.flatMap(({ role, content }: any) => {
		const blocks: any[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
		return blocks.map(({ cache_control, ...block }) => ({ said: JSON.stringify({ role, ...block }), call: block.type === "tool_use" ? block.id : undefined, result: block.tool_use_id }));
	});
}

const shell = (command: string): Call => ({ tool: "Bash", arguments: { command, description: "Count" } });
const longest = 90_000;

/** Does the checks. */
export async function checkForks(project: string): Promise<void> {
	const model = new StandIn(), source = path.join(process.env.HOME!, ".claude"), projects = path.join(source, "projects");
	model.thinks = true;
	fs.rmSync(projects, { recursive: true, force: true });
	fs.mkdirSync(projects);
	fs.writeFileSync(path.join(project, "dot.png"), Buffer.from(dot, "base64"));
	const env = {
		...process.env, ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: "none", IS_SANDBOX: "1", DISABLE_AUTOUPDATER: "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
	};

	/** Runs the client with a prompt. */
	async function say(prompt: string, ...options: string[]): Promise<void> {
		const child = Bun.spawn([process.env.SESSIONFS_CLAUDE!, "--dangerously-skip-permissions", "-p", ...options, prompt], { cwd: project, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
		const timer = setTimeout(() => child.kill("SIGKILL"), longest);
		const [out, err, status] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
		clearTimeout(timer);
		if (status !== 0) throw new Error(`${prompt}: ${status}: ${out.slice(-300)}${err.slice(-300)}`);
	}

	/** Eight turns and one that is taken back, a compaction and a subagent. */
	async function make(): Promise<void> {
		model.will([shell("echo two"), shell("echo three")]);
		await say("Count the herons");
		const dir = path.join(projects, fs.readdirSync(projects)[0]), file = path.join(dir, fs.readdirSync(dir).find(name => name.endsWith(".jsonl"))!);
		const resume = ["--resume", path.basename(file, ".jsonl")];
		const records = () => fs.readFileSync(file, "utf8").trimEnd().split("\n").map(line => JSON.parse(line));
		await say("And in @dot.png ?", ...resume);
		model.will({ tool: "Write", arguments: { file_path: path.join(project, "herons.txt"), content: "five\n" } }, shell("cat herons.txt"));
		await say("Write it down", ...resume);
		const { uuid } = records().findLast(r => r.type === "assistant");
		model.will(shell("echo frogs"));
		await say("Count the frogs", ...resume);
		model.will([shell("echo one"), shell("echo toad")]);
		await say("Count the toads", ...resume, "--resume-session-at", uuid);
		await say("/compact", ...resume);
		await say("Count the newts", ...resume);
		model.will({ tool: "Agent", arguments: { subagent_type: "general-purpose", description: "Count", prompt: eggs, run_in_background: false } }, "answer");
		await say("Have somebody count the eggs", ...resume);
		await say("Count the nests", ...resume);
		await say("And all?", ...resume);
	}

	async function goOn(prompts: Map<string, string>): Promise<void> {
		for (const [id, prompt] of prompts) await say(prompt, "--resume", id);
	}

	const additions = {
		"an answer in the place of one that is not there": /"No response requested\."/,
		"the environment, which the log has behind a prompt": /"role":"system"|"text":"<system-reminder>/,
	};
	await checkEveryEntry({
		source, model, make, goOn, blocks: blocksOf, interrupted: /\[Tool call interrupted/, additions,
	}, 25);
	model.stop();
}
