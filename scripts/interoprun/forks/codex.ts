// Forks of sessions of Codex at each of their entries.
import * as fs from "node:fs";
import * as path from "node:path";
import { Codex } from "../codex/program";
import { type Call, StandIn } from "../standin";
import { type Block, checkEveryEntry, dot, eggs } from "./everyentry";

/** The items of a request. The client numbers those that it makes anew each time. */
export const itemsOf = (asked: any): Block[] => asked.input.map(({ id, status, internal_chat_message_metadata_passthrough, ...item }: any) => ({
	said: JSON.stringify(item),
	call: item.type.endsWith("call") ? item.call_id : undefined,
	result: item.type.endsWith("output") ? item.call_id : undefined,
}));

const shell = (cmd: string): Call => ({ tool: "exec_command", arguments: { cmd } });

/** Does the checks. */
export async function checkForks(clientDir: string, project: string): Promise<void> {
	const model = new StandIn(), source = path.join(process.env.HOME!, "forks/.codex");
	model.thinks = true;
	fs.mkdirSync(path.join(source, "sessions"), { recursive: true });
	fs.writeFileSync(path.join(project, "dot.png"), Buffer.from(dot, "base64"));
	const begun = async () => {
		const codex = new Codex(clientDir, source, project, `${model.url}/v1`);
		await codex.begin();
		return codex;
	};

	/** Eight turns and one that is taken back, a compaction and a subagent. */
	async function make(): Promise<void> {
		const codex = await begun(), { thread: { id: threadId } } = await codex.call("thread/start", { cwd: project });
		model.will([shell("echo two"), shell("echo three")]);
		await codex.say(threadId, "Count the herons");
		await codex.turn("turn/start", { threadId, input: [{ type: "text", text: "And in this one?" }, { type: "localImage", path: path.join(project, "dot.png") }] });
		model.will(shell("echo five > herons.txt"), shell("cat herons.txt"));
		await codex.say(threadId, "Write it down");
		model.will([shell("echo no"), shell("echo frogs")]);
		await codex.say(threadId, "Count the frogs");
		await codex.call("thread/revert", { threadId, beforeTurnId: (await codex.read(threadId)).ids.at(-1) });
		model.will([shell("echo one"), shell("echo toad")]);
		await codex.say(threadId, "Count the toads");
		await codex.turn("thread/compact/start", { threadId });
		await codex.say(threadId, "Count the newts");
		model.will({ tool: "spawn_agent", namespace: "multi_agent_v1", arguments: { message: eggs } }, "answer", "answer");
		await codex.say(threadId, "Have somebody count the eggs");
		await codex.say(threadId, "Count the nests");
		await codex.say(threadId, "And all?");
		await codex.end();
	}

	async function goOn(prompts: Map<string, string>): Promise<void> {
		const codex = await begun();
		for (const [threadId, prompt] of prompts) {
			await codex.call("thread/resume", { threadId });
			await codex.say(threadId, prompt);
		}
		await codex.end();
	}

	const additions = { "the environment, where the log has no turn_context yet, or a compaction took it": /"role":"developer"|"text":"<environment_context>/ };
	await checkEveryEntry({ source, model, make, goOn, blocks: itemsOf, interrupted: /"output":"aborted"/, additions }, 60);
	model.stop();
}
