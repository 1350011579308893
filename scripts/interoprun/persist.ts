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

/** Those that only the older client, whose rules are ours, stores so. */
const olderMessages = (): Record<string, object> => ({
	"arguments that are still coming in": assistant([{ ...toolCall("p1", "x", {}), partialJson: '{"a' }, text("t")]),
	"a signature over the limit": assistant([{ type: "thinking", thinking: "t", thinkingSignature: "s".repeat(500_001) }]),
});

export async function checkPersisted(client: Client, mount: Mount, project: string): Promise<void> {
	const session = mount.newSession(project);
	session.message(assistant("Begin."));
	const manager = client.create(project);
	manager.appendMessage(assistant("Begin."));
	await manager.flush();
	const its = mount.sessionOf(manager.getSessionFile());
	const all = { ...messages(), ...(client.newer ? {} : olderMessages()) };
	for (const [what, message] of Object.entries(all)) {
		await check(`persisted as the client does: ${what}`, async () => {
			manager.appendMessage(message);
			await manager.flush();
			session.message(message);
			return difference(stored(session), stored(its));
		});
	}
	await closed(manager);
	await check("the client reads what was shortened and stored elsewhere", () =>
		// Except in a list: such a URL it stores, but does not load.
		reopened(client, session, m => expect(!/"(data|image_url)":"blob:/.test(JSON.stringify(m.getEntries())), "a blob is missing")),
	);
}

/** The message of the last entry as it is in the file. */
function stored(session: Session): Entry {
	return session.entries().at(-1)!.message;
}
