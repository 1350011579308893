// bun main.ts CLIENT_DIR VERSION MOUNT PROJECT
// Gemini CLI, GitHub Copilot CLI or Claude Code writes files by each of its tools that name one, as a model on this machine asks it to.
// Each also goes on with forks of its sessions.
import * as fs from "node:fs";
import * as path from "node:path";
import { checkForks as checkClaude } from "../forks/claude";
import { checkForks as checkCopilot } from "../forks/copilot";
import { checkForks as checkGemini } from "../forks/gemini";
import { reportFor } from "../report";
import { type Call, StandIn } from "../standin";
import { byShell, checkTools, type Program, shellCommand, type Writer } from "../tools";

/** A client with one of its models, which has tools of its own. */
interface Client {
	program: Program;
	writers: Writer[];
}

const [clientDir, version, , project] = process.argv.slice(2);
const home = process.env.HOME!, at = (file: string) => path.join(project, file);
const text = "one\ntwo\n", ofAgent = "Write one";
const model = new StandIn();

/** Gemini CLI uses the key only where its settings say so. */
function gemini(): Client[] {
	const source = path.join(home, ".gemini");
	fs.writeFileSync(path.join(source, "settings.json"), JSON.stringify({ security: { auth: { selectedType: "gemini-api-key" } } }));
	const write = (file: string): Call => ({ tool: "write_file", arguments: { file_path: file, content: text } });
	const replace = { tool: "replace", arguments: { file_path: "replaced.txt", instruction: "Count on", old_string: "two", new_string: "three" } };
	return [{
		program: {
			command: prompt => [path.join(clientDir, "node_modules/.bin/gemini"), "--yolo", "--model", "gemini-2.5-pro", "-p", prompt],
			env: { GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: model.url, GEMINI_CLI_TRUST_WORKSPACE: "true" },
			source,
		},
		writers: [
			{ tool: "write_file", file: "written.txt", steps: [write("written.txt")] },
			{ tool: "replace", file: "replaced.txt", steps: [write("replaced.txt"), replace] },
			{ tool: "write_file", file: "by-agent.txt", steps: [{ tool: "invoke_agent", arguments: { agent_name: "generalist", prompt: ofAgent } }, write("by-agent.txt"), { tool: "complete_task", arguments: { result: "Written." } }], prompt: ofAgent },
			byShell({ tool: "run_shell_command", arguments: { command: shellCommand } }),
		],
	}];
}

/** Copilot has other tools for models of which it knows that they write patches. It records which files a command may name. */
function copilot(): Client[] {
	const bash: Call = { tool: "bash", arguments: { command: shellCommand, description: "Echo" } };
	const create = (file: string): Call => ({ tool: "create", arguments: { path: at(file), file_text: text } });
	const edit = { tool: "edit", arguments: { path: at("edited.txt"), old_str: "two", new_str: "three" } };
	const task = { tool: "task", arguments: { agent_type: "general-purpose", name: "one", description: "Write one", prompt: ofAgent, mode: "sync" } };
	const patch = (...lines: string[]): Call => ({ tool: "apply_patch", input: ["*** Begin Patch", ...lines, "*** End Patch", ""].join("\n") });
	const program = (name: string, api: string): Program => ({
		command: prompt => [path.join(clientDir, "node_modules/.bin/copilot"), "--allow-all-tools", "-p", prompt],
		env: {
			COPILOT_OFFLINE: "true", COPILOT_AUTO_UPDATE: "false", COPILOT_PROVIDER_BASE_URL: `${model.url}/v1`, COPILOT_PROVIDER_API_KEY: "none",
			COPILOT_PROVIDER_WIRE_API: api, COPILOT_MODEL: name,
		},
		source: path.join(home, ".copilot"),
		model: name,
	});
	return [
		{
			program: program("stub", "completions"),
			writers: [
				{ tool: "create", file: "created.txt", steps: [create("created.txt")] },
				{ tool: "edit", file: "edited.txt", steps: [create("edited.txt"), edit] },
				{ tool: "create", file: "by-agent.txt", steps: [task, create("by-agent.txt"), "answer"], prompt: ofAgent },
				byShell(bash, false),
			],
		},
		{
			program: program("gpt-5.3-codex", "responses"),
			writers: [{ tool: "apply_patch", file: "patched.txt", steps: [patch("*** Add File: patched.txt", "+one", "+two"), patch("*** Update File: patched.txt", "@@", " one", "-two", "+three")] }],
		},
	];
}

/** Claude Code edits a notebook only when it has read it. */
function claude(): Client[] {
	const write = (file: string, content = text): Call => ({ tool: "Write", arguments: { file_path: at(file), content } });
	const edit = { tool: "Edit", arguments: { file_path: at("edited.txt"), old_string: "two", new_string: "three" } };
	const notebook = JSON.stringify({ cells: [], metadata: {}, nbformat: 4, nbformat_minor: 5 });
	const cell = { tool: "NotebookEdit", arguments: { notebook_path: at("noted.ipynb"), new_source: "one", cell_type: "code", edit_mode: "insert" } };
	const agent = { tool: "Agent", arguments: { subagent_type: "general-purpose", description: "Write one", prompt: ofAgent, run_in_background: false } };
	return [{
		program: {
			command: prompt => [process.env.SESSIONFS_CLAUDE!, "--dangerously-skip-permissions", "-p", prompt],
			env: { ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: "none", IS_SANDBOX: "1", DISABLE_AUTOUPDATER: "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" },
			source: path.join(home, ".claude"),
		},
		writers: [
			{ tool: "Write", file: "written.txt", steps: [write("written.txt")] },
			{ tool: "Edit", file: "edited.txt", steps: [write("edited.txt"), edit] },
			{ tool: "NotebookEdit", file: "noted.ipynb", steps: [write("noted.ipynb", notebook), { tool: "Read", arguments: { file_path: at("noted.ipynb") } }, cell], textless: true },
			{ tool: "Write", file: "by-agent.txt", steps: [agent, write("by-agent.txt"), "answer"], prompt: ofAgent },
			byShell({ tool: "Bash", arguments: { command: shellCommand, description: "Echo" } }),
		],
	}];
}

const clients: Record<string, () => Client[]> = { gemini, copilot, claude };
reportFor(version);
for (const { program, writers } of clients[version.split("-")[0]]()) await checkTools(model, program, project, writers);
model.stop();
const forks: Record<string, () => Promise<void>> = { gemini: () => checkGemini(clientDir, project), copilot: () => checkCopilot(clientDir, project), claude: () => checkClaude(project) };
await forks[version.split("-")[0]]();
process.exit(0);
