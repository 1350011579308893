// omp writes files by each of its tools that name one, as a model on this machine asks it to.
import { commandOf, configure } from "../terminalrun/agent";
import type { Client } from "./client";
import type { Mount } from "./mount";
import { StandIn, type Step } from "./standin";
import { byShell, checkTools, shellCommand, type Writer } from "./tools";

const write = (file: string): Step => ({ tool: "write", arguments: { path: file, content: "one\ntwo\n" } });

/** An edit of the second line, which the result of a read has named. */
const edit = (file: string, newer: boolean): Step[] => [
	{ tool: "read", arguments: { path: file } },
	shown => {
		const [tag] = shown.match(/\[[^\]\n]*#[0-9A-F]{4}\]/) ?? [];
		const [anchor] = shown.match(/^2[a-z]+(?=\|two$)/m) ?? [];
		return { tool: "edit", arguments: { input: newer ? `${tag}\nPUT 2.=2:\n+three\n` : `@@ ${file}\n= ${anchor}..${anchor}\n~three\n` } };
	},
];

/** A script that writes, by a helper and by a tool, files with names that it makes. */
const script = (newer: boolean): Step => {
	const code = `await write("help" + "ed.txt", "one\\n"); await tool.write({ path: "tool" + "ed.txt", content: "one\\n" });`;
	return { tool: "eval", arguments: newer ? { language: "js", code, title: "write" } : { input: `*** Cell js:"write"\n${code}` } };
};

export const checkTouched = (clientDir: string) =>
	async function checkTouched(client: Client, _mount: Mount, project: string): Promise<void> {
		if (!client.whole) return;
		const model = new StandIn(), agent = process.env.PI_CODING_AGENT_DIR!, scripted = script(client.newer);
		configure(agent, `${model.url}/v1`);
		const writers: Writer[] = [
			{ tool: "write", file: "written.txt", steps: [write("written.txt")] },
			{ tool: "edit", file: "edited.txt", steps: [write("edited.txt"), ...edit("edited.txt", client.newer)] },
			{ tool: "eval write", file: "helped.txt", steps: [scripted], textless: true },
			{ tool: "eval write", file: "tooled.txt", steps: [], textless: true },
			byShell({ tool: "bash", arguments: { command: shellCommand } }),
		];
		const command = (prompt: string) => [process.execPath, commandOf(clientDir), "--model", "local/stub", "-p", prompt];
		const env = { PI_CODING_AGENT_DIR: agent, PI_NO_TITLE: "1" };
		await checkTools(model, { command, env, source: agent }, project, writers);
		model.stop();
	};
