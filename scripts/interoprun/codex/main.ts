// bun main.ts CLIENT_DIR VERSION MOUNT PROJECT
// Checks a mount of Codex's directory against Codex, which a model on this machine answers: a line for each check, "ok" or "FAIL".
import * as fs from "node:fs";
import * as path from "node:path";
import { difference } from "../agree";
import { checkForks } from "../forks/codex";
import { Mount, type Session, shell } from "../mount";
import { check, expect, reportFor } from "../report";
import { StandIn } from "../standin";
import { byShell, checkTools, shellCommand, type Writer } from "../tools";
import { type Asked, Model, spent } from "./model";
import { Codex, commandOf, configure } from "./program";

const [clientDir, version, mountDir, project] = process.argv.slice(2);
const home = path.join(process.env.HOME!, ".codex"), reverts = version !== "codex-0.104.0";
process.chdir(project);
reportFor(version);
const mount = new Mount(mountDir, home), model = new Model();
const begun = async () => {
	const program = new Codex(clientDir, home, project, model.url);
	await program.begin();
	return program;
};
let codex = await begun();
const { thread: { id: thread } } = await codex.call("thread/start", { cwd: project });

/** The session that shows a thread now: of several the newest. */
function shown(id: string): Session {
	const names = shell(mountDir, 'for s in sessions/*/*"$1"*.jsonl; do echo "$s"; done', id).trimEnd().split("\n");
	return mount.session(names.sort().at(-1)!);
}

const context = /^(# AGENTS|<environment_context>)/;
const textsOf = (content: any): string[] => (typeof content === "string" ? [content] : (content ?? []).filter((b: any) => b.text).map((b: any) => b.text));

/** What the branch of a session says, as Codex.read has it: without what a compaction says, which newer clients write down too. */
function said(session: Session): string[] {
	const branch = session.read("branches/current/entries.jsonl").trimEnd().split("\n").map(line => JSON.parse(line));
	const isSummary = (i: number) => branch[i + 1]?.type === "compaction" && branch[i].message?.role === "assistant" && branch[i + 1].summary.endsWith(textsOf(branch[i].message.content).at(-1));
	return branch.flatMap((e, i) =>
		!isSummary(i) && e.type === "message" && e.message.role !== "toolResult" && !e.id.includes(".") ? textsOf(e.message.content).map(text => `${e.message.role} ${text}`) : [])
		.filter(line => !context.test(line.slice(5)));
}

/** What the model was sent, and what context.json has, in words; without the program's instructions, which are in no rollout. */
const sent = (asked: Asked) => asked.input.flatMap(i => i.type === "message" ? i.content.map((c: any) => `${i.role} ${c.text}`) : i.call_id ? [`${i.type.endsWith("output") ? "result" : "call"} ${i.call_id}`] : [])
	.filter((line: string) => !line.startsWith("developer "));
const inContext = (session: Session) => session.context().messages.flatMap((m: any) =>
	m.role === "toolResult" ? [`result ${m.toolCallId}`] : m.role === "compactionSummary" || m.role === "custom" ? [] : (typeof m.content === "string" ? [{ text: m.content }] : m.content).flatMap((b: any) =>
		b.text ? [`${m.role} ${b.text}`] : b.type === "toolCall" ? [`call ${b.id}`] : []));

/** Compares a thread with what is shown of it. Where asked is set, the context is that of the last request and its answer. */
async function agrees(id: string, asked = true): Promise<string[]> {
	const session = shown(id), differs = difference(said(session), (await codex.read(id)).said);
	const context = asked && difference(inContext(session).slice(0, -1), sent(model.asked.at(-1)!));
	return [...expect(!differs, `${id}: ${differs}`), ...expect(!context, `${id}: context: ${context}`), ...expect(session.read("problems.jsonl") === "", `${id}: problems`)];
}
const lost = (session: Session) => session.read("branches.tsv").split("\n").filter(row => row.split("\t")[4] === "lost").map(row => row.split("\t")[5]);

await check("turns, parallel calls and a patch: the branch and the context are the client's", async () => {
	for (const text of ["the first question", "the second, run it", "a third, patch it"]) await codex.say(thread, text);
	return agrees(thread);
});
await check("a turn that was taken back is no part of the conversation, and is not lost", async () => {
	await codex.say(thread, "a wrong turn");
	const before = shown(thread);
	if (reverts) await codex.call("thread/revert", { threadId: thread, beforeTurnId: (await codex.read(thread)).ids.at(-1) });
	else await codex.call("thread/rollback", { threadId: thread, numTurns: 1 });
	await codex.say(thread, "a better one");
	const found = reverts ? said(before).at(-2) === "user a wrong turn" && shown(thread).header().parentSession : lost(shown(thread))[0] === "a wrong turn";
	return [...(await agrees(thread)), ...expect(Boolean(found), "the turn is lost")];
});
await check("a fork has what was before it, and its cost counts once", async () => {
	const { thread: { id: fork } } = await codex.call("thread/fork", { threadId: thread });
	await new Promise(resolve => setTimeout(resolve, 1500)); // no model answers sooner
	await codex.say(fork, "in the fork");
	const tokens = shell(mountDir, "jq -s 'map(.totalTokens) | add' usage.jsonl").trim();
	const own = JSON.parse(shown(fork).read("usage.json")).own.totalTokens;
	return [...(await agrees(fork)), ...expect(own === spent, `its own tokens: ${own}`), ...expect(tokens === String(model.asked.length * spent), `${tokens} tokens for ${model.asked.length} answers`)];
});
await check("a compaction, and what follows it", async () => {
	await codex.turn("thread/compact/start", { threadId: thread });
	await codex.say(thread, "after the compaction");
	const session = shown(thread), compaction = session.entries().find(e => e.type === "compaction");
	const words = expect(Boolean(compaction?.summary?.includes(`Answer ${model.asked.length - 1}.`)), `the summary is ${compaction?.summary}`);
	return [...words, ...expect(said(session).at(-2) === "user after the compaction", "the turn after it"), ...(reverts ? await agrees(thread) : [])];
});
await check("the name that a thread was given, and one that is archived", async () => {
	await codex.call("thread/name/set", { threadId: thread, name: "A name" });
	await codex.say(thread, "what is your name"); // a title shows when its rollout changes
	const { thread: { id: fork } } = await codex.call("thread/fork", { threadId: thread });
	await codex.say(fork, "go away"), await codex.call("thread/archive", { threadId: fork });
	const file = path.basename(shown(fork).file);
	return [...expect(shown(thread).title() === "A name", shown(thread).title()), ...expect(fs.existsSync(path.join(home, "archived_sessions", file)), `${file} is not archived`), ...expect(said(shown(fork)).at(-2) === "user go away", "the archived one")];
});
if (reverts) {
	await check("rollouts that the client compressed are the same sessions", async () => {
		const before = shell(mountDir, 'cat sessions/*/*/entries/*.json');
		shell(home, "find . -name 'rollout-*' -exec touch -d '-30 days' {} +");
		await codex.end();
		codex = await begun(); // what a process has open is not compressed
		await codex.call("rollout/compress");
		const left = () => shell(home, "find sessions archived_sessions -name '*.jsonl' | wc -l").trim();
		for (let i = 0; i < 100 && left() !== "0"; i++) await Bun.sleep(100);
		return [...expect(left() === "0", `${left()} are not compressed`), ...expect(shell(mountDir, 'cat sessions/*/*/entries/*.json') === before, "entries differ")];
	});
}
await codex.end();
model.stop();
await checkTouched();
if (reverts) await checkForks(clientDir, project);
process.exit(0);

/** The tool that writes files, called by the model, and in newer versions by a script, which makes the name. */
async function checkTouched(): Promise<void> {
	const standIn = new StandIn(), namespace = reverts ? "functions" : undefined;
	configure(home, project, `${standIn.url}/v1`, reverts ? "gpt-5.6-sol" : "gpt-5.3-codex");
	const patch = (...lines: string[]) => ["*** Begin Patch", ...lines, "*** End Patch", ""].join("\n");
	const patched = (file: string) => ({ tool: "apply_patch", namespace, input: patch(`*** Add File: ${file}`, "+one", "+two") });
	const change = { tool: "apply_patch", namespace, input: patch("*** Update File: patched.txt", "@@", " one", "-two", "+three") };
	const writers: Writer[] = [{ tool: "apply_patch", file: "patched.txt", steps: [patched("patched.txt"), change] }];
	const script = `const file = "script" + "ed.txt";
		await tools.apply_patch(${JSON.stringify(patched("FILE").input)}.replace("FILE", file));
		await tools.apply_patch(${JSON.stringify(change.input)}.replace("patched.txt", file));`;
	if (reverts) writers.push({ tool: "apply_patch", file: "scripted.txt", steps: [{ tool: "exec", namespace, input: script }] });
	writers.push(byShell(reverts ? { tool: "exec", namespace, input: `await tools.exec_command({ cmd: "${shellCommand}" });` } : { tool: "exec_command", arguments: { cmd: shellCommand } }));
	const command = (prompt: string) => [commandOf(clientDir), "exec", "--skip-git-repo-check", prompt];
	await checkTools(standIn, { command, env: { CODEX_HOME: home }, source: home }, project, writers);
	standIn.stop();
}
