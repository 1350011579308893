// bun main.ts CLIENT_DIR VERSION MOUNT PROJECT
// Checks a mount of pi's agent directory against pi: a line for each check, "ok" or "FAIL".
import * as fs from "node:fs";
import * as path from "node:path";
import { assistant, image, text, toolResult, user } from "../messages";
import { Mount, type Session, shell } from "../mount";
import { check, expect, reportFor } from "../report";
import { StandIn } from "../standin";
import { byShell, checkTools, shellCommand, type Writer } from "../tools";
import { disagreements, listsDiffer } from "./agree";
import { type Client, distOf, loadClient, type Manager } from "./client";
import { Chance, generate, usage } from "./generate";
import { record } from "./record";

/** How many sessions pi makes, and how many are written through the mount. */
const made = 200;
const written = 20;

const [clientDir, version, mountDir, project] = process.argv.slice(2);
process.chdir(project);
const client = await loadClient(clientDir, version.replace("pi-", ""));
const mount = new Mount(mountDir, process.env.PI_CODING_AGENT_DIR!);
reportFor(version);
await checkMade(client);
await checkWritten(client);
await checkFound(client);
await checkTouched();
process.exit(0);

async function checkMade(client: Client): Promise<void> {
	await check(`${made} sessions of pi: entries, tree, leaf, labels, names, contexts at all entries and usage agree`, () => {
		const found: string[] = [];
		for (let seed = 1; seed <= made; seed++) {
			const manager = client.open(generate(client, project, seed).getSessionFile());
			const session = mount.sessionOf(manager.getSessionFile());
			found.push(...disagreements(client, session, manager).map(d => `seed ${seed}: ${d}`));
			if (process.env.SESSIONFS_RECORD) record(process.env.SESSIONFS_RECORD, client, manager, seed);
		}
		return found;
	});
	await check("pi's list and index.jsonl agree", async () => listsDiffer(mountDir, project, await client.list(project)) ?? []);
	await check("a fork of pi's agrees, and a fork made through the mount has the same context", () => {
		const found: string[] = [];
		for (let seed = 1; seed <= 10; seed++) {
			const manager = generate(client, project, made + seed);
			const last = manager.getEntries().at(-1)!.id;
			const session = mount.sessionOf(manager.getSessionFile());
			const forked = client.open(mount.session(session.fork(last)).file);
			found.push(...disagreements(client, mount.sessionOf(forked.getSessionFile()), forked).map(d => `fork by the mount of ${seed}: ${d}`));
			manager.branch(last);
			const byPi = manager.createBranchedSession(last);
			if (!byPi || !fs.existsSync(byPi)) continue;
			const differ = disagreements(client, mount.sessionOf(byPi), client.open(byPi)).filter(d => client.newer || !d.startsWith("problems:")); // older ones leave children of labels without a parent
			found.push(...differ.map(d => `fork by pi of ${seed}: ${d}`));
		}
		return found;
	});
}

/** Has pi open a session and compares. */
function reopened(client: Client, session: Session): string[] {
	return disagreements(client, session, client.open(session.file));
}

/** Writes what users and scripts write, as chance would have it. */
function write(chance: Chance, session: Session, newer: boolean): void {
	const ids = session.entries().map(e => e.id);
	const steps: (() => unknown)[] = [
		() => session.message(user(chance.of(["hi", [text("a"), image(2000)]]))),
		() => session.message(assistant("so", { usage: usage(chance) })),
		() => session.message(toolResult("call", "bash", [text("out")], newer ? { usage: usage(chance) } : {})),
		() => session.setTitle(chance.of(["A name", "another", ""])),
		() => session.setLabel(chance.of(ids), "good"),
		() => session.moveLeaf(`entries/${chance.of(ids)}.json`),
		() => session.append({ type: "session_info", name: "by append" }),
		() => session.append({ type: "model_change", provider: "openai", modelId: "gpt" }),
		() => session.append({ type: "branch_summary", fromId: chance.of(ids), summary: "left", usage: usage(chance) }),
		() => session.append({ type: "compaction", summary: "s", firstKeptEntryId: chance.of(ids), tokensBefore: 5, ...(newer && { usage: usage(chance) }) }),
		() => session.append({ type: "custom_message", customType: "x", content: "c", display: true }),
	];
	if (!newer) steps.splice(8, 1, () => session.append({ type: "branch_summary", fromId: chance.of(ids), summary: "left" }));
	else {
		steps.push(
			() => session.append({ type: "usage", kind: "cache_warm", provider: "openai", model: "gpt", usage: usage(chance) }),
			() => session.append({ type: "context_edit", targetId: session.message(user("edited")), replacement: chance.of([null, { content: "x" }]) }),
			() => session.message({ role: "system", content: "", sections: { a: "b" }, timestamp: 1 }),
		);
	}
	chance.of(steps)();
}

async function checkWritten(client: Client): Promise<void> {
	await check(`${written} sessions written through the mount open in pi with the same`, () => {
		const found: string[] = [];
		for (let seed = 1; seed <= written; seed++) {
			const chance = new Chance(1000 + seed);
			const session = mount.newSession(chance.once(2) ? project : { cwd: project, title: "From the start" });
			session.message(user("Begin."));
			session.message(assistant("Begun."));
			for (let n = 5 + chance.below(20); n > 0; n--) write(chance, session, client.newer);
			found.push(...reopened(client, session).map(d => `seed ${seed}: ${d}`));
		}
		return found;
	});
	await check("what a running pi does to the leaf and to foreign entries", () => {
		const manager = generate(client, project, 2000);
		const session = mount.sessionOf(manager.getSessionFile());
		const first = manager.getEntries().find(e => e.type === "message")!.id;
		const before = manager.getLeafId();
		session.moveLeaf(first);
		const foreign = session.message(user("from outside"));
		const after = manager.appendMessage(user("by pi"));
		const entries = client.open(session.file).getEntries();
		return expect(entries.find(e => e.id === after)!.parentId === before, "the running pi follows the moved leaf: README says that it does not")
			.concat(expect(entries.some(e => e.id === foreign), "the foreign entry is gone"))
			.concat(reopened(client, session));
	});
	await check("a branch_summary hangs under the leaf, whatever fromId says, as in pi", () => {
		const manager = generate(client, project, 2001);
		const session = mount.sessionOf(manager.getSessionFile());
		const [first] = session.entries();
		session.moveLeaf(first.id);
		const [id] = session.append({ type: "branch_summary", fromId: manager.getLeafId(), summary: "left" });
		return expect(session.entries().find(e => e.id === id)!.parentId === first.id, "it hangs elsewhere").concat(reopened(client, session));
	});
}

async function checkFound(client: Client): Promise<void> {
	await check("pi --continue takes the session that was written last through the mount", () => {
		const session = mount.newSession(project);
		session.message(user("Begin."));
		session.message(assistant("Begun."));
		const resumed: Manager = client.continueRecent(project);
		return expect(resumed.getSessionFile() === session.file, `it resumed ${resumed.getSessionFile()}`)
			.concat(expect(resumed.getLeafId() === session.leaf(), "it stands elsewhere"));
	});
	await check("by-id finds an id that a user chose, also if another one begins with it", () => {
		const [short, long] = ["chosen", "chosen-2"].map(id => {
			const manager = client.create(project, { id });
			manager.appendMessage(user(id));
			manager.appendMessage(assistant(id));
			return manager.getSessionFile();
		});
		const at = (key: string) => path.basename(shell(mountDir, 'readlink "by-id/$1"', key).trimEnd());
		return expect(at("chosen") === path.basename(short, ".jsonl"), `by-id/chosen leads to ${at("chosen")}`)
			.concat(expect(at("chosen-2") === path.basename(long, ".jsonl"), `by-id/chosen-2 leads to ${at("chosen-2")}`));
	});
	await check("pi's list and index.jsonl agree at the end", async () => listsDiffer(mountDir, project, await client.list(project)) ?? []);
}

/** The default tools that write files, and newer ones by a script. */
async function checkTouched(): Promise<void> {
	const model = new StandIn(), agent = process.env.PI_CODING_AGENT_DIR!;
	const here = { baseUrl: `${model.url}/v1`, api: "openai-completions", apiKey: "none", models: [{ id: "stub" }] };
	fs.writeFileSync(path.join(agent, "models.json"), JSON.stringify({ providers: { here } }));
	const edits = [{ oldText: "two", newText: "three" }];
	const writers: Writer[] = [
		{ tool: "write", file: "written.txt", steps: [{ tool: "write", arguments: { path: "written.txt", content: "one\ntwo\n" } }] },
		{
			tool: "edit", file: "edited.txt", steps: [
				{ tool: "write", arguments: { path: "edited.txt", content: "one\ntwo\n" } },
				{ tool: "edit", arguments: { path: "edited.txt", edits } },
			],
		},
	];
	const hasScripts = version === "pi-1.6.0";
	const code = `const path = "script" + "ed.txt"; await tools.write({ path, content: "one\\ntwo\\n" }); await tools.edit({ path, edits: ${JSON.stringify(edits)} });`;
	if (hasScripts) writers.push({ tool: "codemode write", file: "scripted.txt", steps: [{ tool: "codemode", arguments: { code } }] });
	writers.push(byShell({ tool: "bash", arguments: { command: shellCommand } }));
	const command = (prompt: string) => [
		process.execPath, path.join(distOf(clientDir), "cli.js"), "--provider", "here", "--model", "stub", ...(hasScripts ? ["--tools", "+codemode"] : []), "-p", prompt,
	];
	await checkTools(model, { command, env: { PI_CODING_AGENT_DIR: agent, PI_OFFLINE: "1" }, source: agent }, project, writers);
	model.stop();
}
