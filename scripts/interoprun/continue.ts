// Sessions that the client writes, continued through the mount, and opened by the client again.
import * as fs from "node:fs";
import * as path from "node:path";
import { checkTitle, reopened, shownAfter } from "./build";
import { type Client, closed, type Manager } from "./client";
import { assistant, image, oddText, text, toolCall, toolResult, user } from "./messages";
import type { Mount, Session } from "./mount";
import { check, expect } from "./report";

export async function checkContinued(client: Client, mount: Mount, project: string): Promise<void> {
	const session = await checkClientWrites(client, mount, project);
	await checkWeContinue(client, mount, session);
	await checkTitle(client, session, client.newer ? "in a slot" : "in a header of the client");
	await checkBranchedByClient(client, mount, session);
	await checkNeighbours(client, mount, project, session);
}

/** The client writes a session with all that it knows; the mount shows each step at once. */
async function checkClientWrites(client: Client, mount: Mount, project: string): Promise<Session> {
	const manager = client.create(project);
	const tier = client.newer ? { openai: "flex" } : "flex";
	manager.appendMessage(user(oddText));
	manager.appendMessage(assistant("Hello."));
	await manager.flush();
	const session = mount.sessionOf(manager.getSessionFile());
	const does = (what: string, run: (m: Manager) => unknown) =>
		check(`the client's session ${what}`, () => shownAfter(client, session, manager, run));

	await does("begins", () => undefined);
	await does("gets settings", m => {
		m.appendSessionInit({ systemPrompt: "Be brief.", task: "t", tools: ["read"] });
		m.appendModelChange("openai/big");
		m.appendModelChange("openai/tiny", "smol");
		m.appendThinkingLevelChange("low");
		m.appendServiceTierChange(tier);
		m.appendModeChange("plan", { file: "p.md" });
		m.appendTtsrInjection(["a", "b", "a"]);
	});
	await does("gets tool calls, images and custom entries", m => {
		m.appendMessage(user([text("What is this?"), image(4000), image(20)]));
		m.appendMessage(assistant([toolCall("c1", "read", { path: "x" })], { stopReason: "toolUse" }));
		m.appendMessage(toolResult("c1", "read", [text("x\ny"), image(3000, 9)]));
		m.appendCustomEntry("acme/state", { n: [1, { deep: null }] });
		m.appendCustomMessageEntry("acme/note", [text("n"), image(2500, 3)], true, { d: 1 });
		m.appendMessage(assistant("A cat."));
	});
	await does("is labelled, and one label cleared", m => {
		const ids = m.getEntries().map(e => e.id);
		m.appendLabelChange(ids[0], "start");
		m.appendLabelChange(ids[1], "a/b\tc \\ d");
		m.appendLabelChange(ids[2], "gone");
		m.appendLabelChange(ids[2], undefined);
	});
	await does("is compacted", m => {
		m.appendCompaction("Cats were seen.", "cats", m.getEntries()[9].id, 1234);
		m.appendMessage(user("Go on."));
		m.appendMessage(assistant("On it goes."));
	});
	await does("branches, with and without a summary", m => {
		m.branch(m.getEntries()[1].id);
		m.appendMessage(user("A branch."));
		m.appendMessage(assistant("A twig."));
		m.branchWithSummary(m.getEntries()[0].id, "The twig was left.");
		m.appendMessage(user("A second branch."));
	});
	await does("gets a title, automatic and then the user's", async m => {
		await m.setSessionName("Automatic", "auto");
		await m.setSessionName("The user's 🦊", "user");
	});
	await does("gets a new root", m => {
		m.resetLeaf();
		m.appendMessage(user("Anew."));
	});
	await closed(manager);
	await check("the client's session opened again", () => reopened(client, session));
	return session;
}

async function checkWeContinue(client: Client, mount: Mount, session: Session): Promise<void> {
	const ids = session.entries().map(e => e.id);
	await check("we append to the client's session", () => {
		const before = fs.readFileSync(session.file);
		session.message(user([text("Ours"), image(3500, 11)]));
		session.message(assistant("Ours too."));
		session.append({ type: "model_change", model: "anthropic/other" }, { type: "custom", customType: "c", data: oddText });
		const kept = fs.readFileSync(session.file).subarray(0, before.length).equals(before);
		return reopened(client, session, () => expect(kept, "lines of the client were changed"));
	});
	await check("we label and clear labels in the client's session", () => {
		session.setLabel(ids[5], "ours");
		session.clearLabel(ids[0]);
		return reopened(client, session, m => expect(!m.getLabel(ids[0]) && m.getLabel(ids[5]) === "ours", "other labels"));
	});
	await check("we branch in the client's session, from within what a compaction left out", () => {
		session.moveLeaf(ids[3]);
		session.message(user("From the middle."));
		session.message(assistant("Of it."));
		return reopened(client, session, m => expect(m.getBranch().length < 10, "the path is another"));
	});
	await check("we compact the client's session", () => {
		const [kept] = session.append({ type: "message", message: user("Kept.") });
		session.append({ type: "compaction", summary: "S.", firstKeptEntryId: kept, tokensBefore: 9 });
		session.message(assistant("After."));
		return reopened(client, session);
	});
	await check("we fork the client's session", () => {
		const forked = mount.session(session.fork(ids.at(-1)!));
		return reopened(client, forked, async m => {
			await m.setSessionName("A fork", "user");
			m.appendMessage(user("In the fork."));
			return shownAfter(client, forked, m, m => m.rewriteEntries());
		});
	});
}

async function checkBranchedByClient(client: Client, mount: Mount, session: Session): Promise<void> {
	await check("a session that the client splits off", async () => {
		const manager = await client.open(session.file);
		const file = manager.createBranchedSession(session.entries()[8].id)!;
		const split = mount.sessionOf(file);
		manager.appendMessage(user("Split off."));
		manager.appendMessage(assistant("Yes."));
		await closed(manager);
		const found = await reopened(client, split, () => expect(split.header().parentSession === session.file, "another parent"));
		split.message(user("Through the mount."));
		return found.concat(await reopened(client, split));
	});
}

/** Where new sessions go, and that the client finds them. */
async function checkNeighbours(client: Client, mount: Mount, project: string, session: Session): Promise<void> {
	await check("a new session lies where the client has those of its directory, and the client lists it", async () => {
		const made = mount.newSession(project);
		made.message(user("Listed?"));
		made.message(assistant("Listed."));
		return expect(path.dirname(made.file) === path.dirname(session.file), `it is ${made.file}`).concat(
			expect((await client.list(project)).map(f => path.basename(f)).includes(path.basename(made.file)), "not in the list"),
		);
	});
}
