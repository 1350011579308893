// Sessions that are built through the mount, then read and continued by the client.
import * as fs from "node:fs";
import * as path from "node:path";
import { difference, disagreements } from "./agree";
import { type Client, closed, type Manager } from "./client";
import { assistant, image, oddText, text, toolCall, toolResult, user } from "./messages";
import { type Mount, type Session, shell } from "./mount";
import { check, expect, type Findings } from "./report";

/** Has the client open a session anew, and compares; then does with it what the check is about. */
export async function reopened(
	client: Client,
	session: Session,
	run: (manager: Manager) => Findings | Promise<Findings> = () => undefined,
): Promise<string[]> {
	const manager = await client.open(session.file);
	try {
		const found = disagreements(client, session, manager);
		const more = await run(manager);
		return found.concat(more || []);
	} finally {
		await closed(manager);
	}
}

/** Has the client that holds a session do something, and compares what the mount shows at the next read. */
export async function shownAfter(
	client: Client,
	session: Session,
	manager: Manager,
	run: (manager: Manager) => unknown,
): Promise<string[]> {
	await run(manager);
	await manager.flush();
	return disagreements(client, session, manager);
}

/** Every type of entry that append takes, but for those that name others. */
const plainEntries = () => [
	{ type: "session_init", systemPrompt: "You are terse.", task: "Say it.", tools: ["bash", "read"] },
	{ type: "model_change", model: "anthropic/claude-x" },
	{ type: "model_change", model: "openai/small", role: "smol" },
	{ type: "thinking_level_change", thinkingLevel: "high" },
	{ type: "service_tier_change", serviceTier: "flex" },
	{ type: "mode_change", mode: "plan", data: { file: "plan.md", steps: [1, 2.5, 1e21] } },
	{ type: "mcp_tool_selection", selectedToolNames: ["mcp_a", "mcp_b"] },
	{ type: "ttsr_injection", injectedRules: ["no-yelling", "no-yelling", "cite"] },
	{ type: "message", message: user(oddText) },
	{ type: "message", message: user([text("two images"), image(3000), image(30)]) },
	{
		type: "message",
		message: assistant([
			{ type: "thinking", thinking: "Hm.", thinkingSignature: "c2ln" },
			text("Let me look."),
			toolCall("call_1", "bash", { command: "ls", env: { A: null } }),
		], { stopReason: "toolUse" }),
	},
	{ type: "message", message: toolResult("call_1", "bash", [text("a\nb"), image(2000, 3)], { details: { exit: 0 } }) },
	{ type: "message", message: { role: "developer", content: "Mind the gap.", timestamp: 7 } },
	{
		type: "message",
		message: { role: "bashExecution", command: "ls", output: "a", exitCode: 0, cancelled: false, truncated: false, timestamp: 8 },
	},
	{ type: "custom", customType: "acme/state", data: { list: [true, null, "x"], nested: { a: { b: [] } } } },
	{ type: "custom_message", customType: "acme/note", content: "A note.", display: true, attribution: "user" },
	{ type: "custom_message", customType: "acme/shot", content: [text("see"), image(4000, 5)], display: false, details: { n: 1 } },
	{ type: "message", message: assistant("Done.") },
];

export async function checkBuilt(client: Client, mount: Mount, project: string): Promise<void> {
	let session = mount.newSession({ cwd: project, title: "Built by hand", parentSession: "some-id" });
	await check("new-session: a header alone, which the client opens and goes on with", async () => {
		const alone = mount.newSession(project), begun = fs.readFileSync(alone.file, "utf8");
		const manager = await client.open(alone.file);
		manager.appendMessage(user("By the client."));
		manager.appendMessage(assistant("Yes."));
		await closed(manager);
		return expect(begun.split("\n").length === 2, `it begins with ${begun}`).concat(
			expect(alone.entries().length === 2, `the client wrote ${alone.entries().length} entries`), await reopened(client, alone));
	});
	await check("new-session: what is appended is on disk at once, and the client opens it", async () => {
		session.message(user("Hello?"));
		const asked = fs.readFileSync(session.file, "utf8").includes("Hello?");
		session.message(assistant("Hello."));
		return expect(asked, "the question is not on disk").concat(
			await reopened(client, session, m =>
				difference(session.header(), m.getHeader()) ??
				expect(m.getHeader().cwd === project && m.getHeader().parentSession === "some-id", "another header"),
			),
		);
	});
	await check("append: every type of entry, images as blobs", () => {
		session.append(...plainEntries());
		return reopened(client, session, m => {
			const data = JSON.stringify(m.getEntries());
			return expect(data.includes(image(3000).data) && !data.includes("blob:sha256"), "the client misses images").concat(
				expect(!session.read("../" + path.basename(session.file)).includes(image(3000).data), "an image is inline"),
			);
		});
	});
	await check("append: from echo, tee and jq", () => {
		shell(
			session.dir,
			`echo '{"type":"message","message":{"role":"user","content":"from echo"}}' >append
			printf '{"type":"custom","customType":"t","data":%s}\n' 1 '"two"' | tee append >/dev/null
			jq -nc '{type: "message", message: {role: "user", content: ("long " * 60000)}}' >append`,
		);
		return reopened(client, session, m => expect(m.buildSessionContext().messages.at(-1).content.length === 300_000, "it is cut"));
	});
	await checkNaming(client, session);
	await checkControls(client, mount, session);
	await checkTaken(client, session);
	await check("a new session that nobody answered, after fsync: the client opens it", async () => {
		session = mount.newSession(project);
		session.sync();
		return reopened(client, session);
	});
}

/** Entries that name other entries. */
async function checkNaming(client: Client, session: Session): Promise<void> {
	const ids = session.entries().map(e => e.id);
	await check("append: a label entry", () => {
		session.append({ type: "label", targetId: ids[0], label: "first" });
		return reopened(client, session);
	});
	await check("append: a compaction, and entries after it", () => {
		session.append(
			{ type: "compaction", summary: "So far.", shortSummary: "s", firstKeptEntryId: ids.at(-2), tokensBefore: 4711 },
			{ type: "message", message: user("And now?") },
			{ type: "message", message: assistant("On.") },
		);
		return reopened(client, session);
	});
	await check("append: a compaction whose history a provider keeps, and answers that refer to theirs", () => {
		const preserveData = { openaiRemoteCompaction: { provider: "openai", replacementHistory: [{ type: "message", role: "user" }] } };
		// Of this provider both clients drop what cannot be replayed; of others only the older one does.
		const provider = "github-copilot";
		const providerPayload = { type: "openaiResponsesHistory", items: [{ id: "r" }], provider };
		session.append(
			{ type: "compaction", summary: "Remote.", firstKeptEntryId: ids[9], tokensBefore: 1, preserveData },
			{ type: "message", message: assistant([{ type: "thinking", thinking: "t", thinkingSignature: "s" }], { provider, providerPayload }) },
		);
		return reopened(client, session);
	});
	await check("append: a branch summary hangs under the entry that it is from", () => {
		session.append(
			{ type: "branch_summary", fromId: ids[1], summary: "Elsewhere.", details: { k: 1 } },
			{ type: "message", message: user("From there.") },
		);
		return reopened(client, session, m => expect(m.getBranch().some(e => e.id === ids[1]), "it hangs elsewhere"));
	});
	await check("append: a branch summary from the root", () => {
		session.append({ type: "branch_summary", fromId: "root", summary: "Anew." });
		return reopened(client, session, m => expect(m.getBranch().length === 1, "it is no root"));
	});
	await check("append: given id, parentId, timestamp and unknown fields are kept", () => {
		session.append({
			type: "custom_message", customType: "x", content: "y", display: true,
			id: "my id/1", parentId: ids[2], timestamp: "2020-01-02T03:04:05.678Z", "x-extra": { "": [0.1, -0] },
		});
		return reopened(client, session, m => {
			const { id, parentId, timestamp, ...rest } = m.getEntries().at(-1)!;
			return expect(
				id === "my id/1" && parentId === ids[2] && timestamp === "2020-01-02T03:04:05.678Z" && rest["x-extra"][""][0] === 0.1,
				`${JSON.stringify({ id, parentId, timestamp, rest })}`,
			);
		});
	});
}

/** labels, leaf, title and fork. */
async function checkControls(client: Client, mount: Mount, session: Session): Promise<void> {
	const ids = session.entries().map(e => e.id);
	await check("labels: set, changed, cleared", async () => {
		session.setLabel(ids[3], "three");
		session.setLabel(ids[4], "four");
		session.setLabel(ids[5], "with blanks, \\\\ and \\t a tab");
		const found = await reopened(client, session);
		session.setLabel(ids[4], "four again");
		session.clearLabel(ids[3]);
		return found.concat(
			await reopened(client, session, m =>
				expect(m.getLabel(ids[3]) === undefined && m.getLabel(ids[4]) === "four again", "labels do not hold").concat(
					expect(m.getLabel(ids[5]) === "with blanks, \\ and \t a tab", `escapes: ${m.getLabel(ids[5])}`),
				),
			),
		);
	});
	await check("leaf: ln -sfn moves it, and what is appended hangs there", async () => {
		session.moveLeaf(`entries/${ids[9]}.json`);
		const found = await reopened(client, session, m =>
			expect(m.getBranch().some(e => e.id === ids[9]), "the client resumes elsewhere"),
		);
		const [id] = session.append({ type: "message", message: user("Another way.") });
		return found.concat(
			await reopened(client, session, m =>
				expect(m.getLeafId() === id, "the new entry is not the leaf").concat(
					expect(m.getBranch().filter(e => e.type !== "custom").at(-2)!.id === ids[9], "it hangs elsewhere"),
				),
			),
		);
	});
	await check("leaf: tree is before the first entry, and what is appended is a new root", async () => {
		session.resetLeaf();
		const found = await reopened(client, session, m => expect(m.buildSessionContext().messages.length === 0, "a context is left"));
		session.message(user("From the start."));
		session.message(assistant("Fine."));
		return found.concat(await reopened(client, session));
	});
	await checkTitle(client, session, "in the header");
	await check("fork: the path to an entry with its labels, in a new session that names the old one", async () => {
		const forked = mount.session(session.fork(ids[9]));
		return reopened(client, forked, m => {
			const kept = m.getEntries().filter(e => e.type !== "label").map(e => e.id);
			return expect(m.getHeader().parentSession === session.file, `parentSession ${m.getHeader().parentSession}`)
				.concat(expect(kept.join() === ids.slice(0, 10).join(), `other entries: ${kept}`))
				.concat(expect(m.getLabel(ids[4]) === "four again" && m.getLabel(ids[0]) === "first", "labels are missing"));
		});
	});
}

/** A title, set by its user: where says where the file keeps it. */
export async function checkTitle(client: Client, session: Session, where: string): Promise<void> {
	await check(`title ${where}: set, and as the user's choice kept against an automatic one`, async () => {
		session.setTitle("  A   title \u0007 “of” mine 🦊");
		return reopened(client, session, async m =>
			expect(m.getSessionName() === "A title “of” mine 🦊", `the client has ${m.getSessionName()}`).concat(
				expect(!(await m.setSessionName("automatic", "auto")), "the client gives it another"),
			),
		);
	});
	await check(`title ${where}: one longer than a slot`, () => {
		session.setTitle("é🦊".repeat(200));
		return reopened(client, session, m => expect("é🦊".repeat(200).startsWith(m.getSessionName()!), "another title"));
	});
	await check(`title ${where}: cleared`, () => {
		session.setTitle("");
		return reopened(client, session, m => expect(m.getSessionName() === undefined, "there is still one"));
	});
}

/** The client goes on with a session of ours. */
async function checkTaken(client: Client, session: Session): Promise<void> {
	const manager = await client.open(session.file);
	const does = (what: string, run: (m: Manager) => unknown) =>
		check(`the client ${what}: the mount shows it at the next read`, () => shownAfter(client, session, manager, run));
	await does("appends to a session of ours", m => {
		m.appendMessage(user([text("More"), image(5000, 7)]));
		m.appendMessage(assistant("More it is."));
	});
	await does("branches", m => m.branchWithSummary(m.getBranch()[0].id, "Left."));
	await does("labels", m => m.appendLabelChange(m.getEntries()[1].id, "by the client"));
	await does("renames", m => m.setSessionName("The client's title", "user"));
	await does("rewrites the file", m => m.rewriteEntries());
	await does("appends after the rewrite", m => m.appendMessage(user("Still here.")));
	await closed(manager);
	await check("after the client closed, the session is written through the mount again", () => {
		session.message(user("Back."));
		session.setLabel(session.leaf()!, "back");
		session.setTitle("Ours again");
		return reopened(client, session);
	});
}
