// Which prompt put it there: a client writes files by each of its tools that name one, and touched and blame find them.
import * as fs from "node:fs";
import * as path from "node:path";
import { check, expect } from "./report";
import type { Call, StandIn, Step } from "./standin";

/** A tool that writes a file, and the calls by which it does. */
export interface Writer {
	/** how a row of touched begins */
	tool: string;
	/** in the project; it need not be there before */
	file: string;
	steps: Step[];
	/** the prompt, where it is a subagent's */
	prompt?: string;
	/** Blame names no lines: the session does not have their text. */
	textless?: boolean;
	/** The session does not have the file's name either. */
	nameless?: boolean;
}

/** A shell, by which a client writes a file, of which the session does not have the text and most clients not the name. */
export function byShell(call: Call, nameless = true): Writer {
	return { tool: call.tool, file: shellFile, steps: [call], textless: true, nameless };
}

/** How a client is run with a prompt. */
export interface Program {
	command: (prompt: string) => string[];
	env: Record<string, string>;
	/** its agent directory */
	source: string;
	/** the model, where others have other tools */
	model?: string;
}

/** The longest that a client may take for the calls, in ms. */
const longest = 90_000;
const ofPerson = "Please write these files";

/** Runs sessionfs, and returns the objects that it prints, a line each. */
function rows(...args: string[]): any[] {
	const { stdout, stderr, exitCode } = Bun.spawnSync([process.env.SESSIONFS!, ...args]);
	if (exitCode > 1) throw new Error(`sessionfs ${args.join(" ")}: ${stderr}`);
	return stdout.toString().split("\n").filter(Boolean).map(line => JSON.parse(line));
}

/** What is wrong with what touched and blame say of a file. */
function untold({ tool, file, prompt = ofPerson, textless, nameless }: Writer, project: string, source: string): string[] {
	const name = path.join(project, file);
	if (!fs.existsSync(name)) return [`${tool} did not write ${file}`];
	const touched = rows("touched", "--json", "-s", source, name);
	const isTold = touched.some(row => row.prompt === prompt && row.text.split("; ").some((text: string) => text.startsWith(`${tool} `)));
	const lines = rows("blame", "--json", "-s", source, name);
	const nobodys = lines.filter(line => line.prompt !== prompt).map(line => line.line);
	return [
		...expect(nameless ? touched.length === 0 : isTold, `touched ${file}: ${JSON.stringify(touched)}`),
		...expect(textless ? nobodys.length === lines.length : lines.length > 0 && nobodys.length === 0, `blame ${file}: not of the prompt: lines ${nobodys} of ${lines.length}`),
	];
}

/** Has a client call all the tools in one turn. */
export async function checkTools(model: StandIn, program: Program, project: string, writers: Writer[]): Promise<void> {
	const tools = program.model ? `each tool of ${program.model} that names a file` : "each tool that names a file";
	await check(`${tools}: touched has it with its prompt, blame all its lines, as far as the session has them`, async () => {
		model.will(...writers.flatMap(w => w.steps));
		const env = { PATH: process.env.PATH!, HOME: process.env.HOME!, TMPDIR: process.env.TMPDIR!, LANG: "C.UTF-8", TZ: "UTC", ...program.env };
		const run = Bun.spawn(program.command(ofPerson), { cwd: project, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
		const timer = setTimeout(() => run.kill("SIGKILL"), longest);
		const said = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text(), run.exited]);
		clearTimeout(timer);
		const ended = expect(said[2] === 0 && model.left === 0, `the client ended with ${said[2]}, ${model.left} calls before the end: ${said[0].slice(-500)}${said[1].slice(-500)}`);
		return [...ended, ...writers.flatMap(w => untold(w, project, program.source))];
	});
}

const shellFile = "by-shell.txt";
export const shellCommand = `echo one > ${shellFile}`;
