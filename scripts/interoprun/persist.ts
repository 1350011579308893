// What is too large or passes by is not kept: append makes of an entry what the client makes of it.
import { difference } from "./agree";
import { reopened } from "./build";
import { type Client, closed, type Entry } from "./client";
import { assistant, image, text, toolCall, toolResult, user } from "./messages";
import type { Mount, Session } from "./mount";
import { check, expect } from "./report";

/** The client keeps strings of up to 500,000 UTF-16 units; here the cut falls on a fox. */
const long = (foxAt: number) => `${"a".repeat(foxAt)}🦊${"b\n".repeat(80_000)}${"c".repeat(400_000)}`;

const notice = "[Session persistence truncated large content]";
const cutAt = 500_000 - 2 - notice.length;

const dataURL = `data:image/png;base64,${image(300).data}`;

/** Messages that both clients store alike. */
const messages = (): Record<string, object> => ({
	"a string over the limit": user(long(17)),
	"a string that is cut within a surrogate pair": user([text(long(cutAt - 1))]),
	"a string of exactly the limit": user("x".repeat(500_000)),
	"a file's content with its count of lines": toolResult("l1", "read", [], { details: { content: long(5), lineCount: 7 } }),
	"images on both sides of the limit": user([image(765), image(766), image(768), image(769)]),
	"the same image twice": user([image(5000, 13), image(5000, 13)]),
	"a data URL": toolResult("u1", "browse", [], { details: { image_url: dataURL, list: [{ image_url: [dataURL] }] } }),
	"events of a subprocess": toolResult("e1", "task2", [], { details: { jsonlEvents: [1], kept: { jsonlEvents: 1, a: 2 } } }),
	"10 MB in many strings": toolResult("m1", "bash", Array.from({ length: 100 }, (_, i) => text(`${i}`.repeat(50_000)))),
});

/** Those that only the older client stores so. */
const olderMessages = (): Record<string, object> => ({
	"arguments that are still coming in": assistant([{ ...toolCall("p1", "x", {}), partialJson: '{"a' }, text("t")]),
	"a signature over the limit": assistant([{ type: "thinking", thinking: "t", thinkingSignature: "s".repeat(500_001) }]),
});

/** Those that only the newer client stores so. */
const newerMessages = (): Record<string, object> => ({
	"a signed block over the limit": assistant([{ type: "thinking", thinking: long(9), thinkingSignature: "s" }, text("t")]),
	"an unsigned block over the limit": assistant([{ type: "thinking", thinking: long(9) }, text("t")]),
	"a signature over the limit": assistant([{ type: "thinking", thinking: "t", thinkingSignature: "s".repeat(500_001) }]),
	"arguments that are still coming in": assistant([{ ...toolCall("p1", "x", {}), partialJson: '{"a' }, text("t")]),
	"their result": toolResult("p1", "x", [text("r")]), // a call without one the newer client leaves out of the context
	"a file's content with its count of lines, and events": toolResult("l2", "read", [], { details: { content: "a\nb", lineCount: 7, jsonlEvents: [1] } }),
});

/** And those that the two clients show differently in the context, in which the older one's rules are ours. */
const replayedMessages = (): Record<string, object> => ({
	"images of a tool": toolResult("i1", "read", [text("t")], { details: { images: [image(5000, 14)] } }),
	"a signature that the payload has too": {
		...assistant([{ type: "thinking", thinking: "t", thinkingSignature: '{"type":"reasoning","id":"rs_1","encrypted_content":"e"}' }, text("t")]),
		providerPayload: { type: "openaiResponsesHistory", items: [{ type: "reasoning", id: "rs_1", encrypted_content: "e" }] },
	},
});

/** A session to write to that has what the client's own have. */
async function sessionLike(client: Client, mount: Mount, project: string): Promise<Session> {
	if (!client.newer) {
		const session = mount.newSession(project);
		session.message(assistant("Begin."));
		return session;
	}
	const manager = client.create(project);
	manager.appendMessage(assistant("Begin."));
	await manager.flush();
	const session = mount.sessionOf(manager.getSessionFile());
	await closed(manager);
	return session;
}

export async function checkPersisted(client: Client, mount: Mount, project: string): Promise<void> {
	const session = await compareStored(client, mount, project, { ...messages(), ...(client.newer ? newerMessages() : olderMessages()) });
	await check("the client reads what was shortened and stored elsewhere", () =>
		// Except in a list: such a URL it stores, but does not load.
		reopened(client, session, m => expect(!/"(data|image_url)":"blob:/.test(JSON.stringify(m.getEntries())), "a blob is missing")),
	);
	if (client.newer) {
		await compareStored(client, mount, project, replayedMessages());
	}
}

/** Adds messages to a session through the mount and to one of the client, and compares the files. Returns the former. */
async function compareStored(client: Client, mount: Mount, project: string, all: Record<string, object>): Promise<Session> {
	const session = await sessionLike(client, mount, project);
	const manager = client.create(project);
	manager.appendMessage(assistant("Begin."));
	await manager.flush();
	const its = mount.sessionOf(manager.getSessionFile());
	for (const [what, message] of Object.entries(all)) {
		await check(`persisted as the client does: ${what}`, async () => {
			manager.appendMessage(message);
			await manager.flush();
			session.message(message);
			return difference(stored(session), stored(its));
		});
	}
	await closed(manager);
	return session;
}

/** The message of the last entry as it is in the file, but for our mark of a cost of 0 that nobody recorded. */
function stored(session: Session): Entry {
	const { message } = session.entries().at(-1)!;
	delete message.usage?.cost?.unrecorded;
	return message;
}
