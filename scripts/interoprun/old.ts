// Files that the client left behind: of older versions, or torn. The first write through the mount mends them.
import * as fs from "node:fs";
import * as path from "node:path";
import { difference } from "./agree";
import { reopened } from "./build";
import type { Client } from "./client";
import { assistant, user } from "./messages";
import type { Mount, Session } from "./mount";
import { check } from "./report";

const at = (second: number) => `2025-03-04T05:06:${String(second).padStart(2, "0")}.000Z`;

const header = (project: string, version?: number) => ({
	type: "session",
	...(version && { version }),
	id: `old-${version ?? 1}`,
	timestamp: at(0),
	cwd: project,
});

const firstVersion = [
	{ type: "message", timestamp: at(1), message: user("one") },
	{ type: "message", timestamp: at(2), message: assistant("two") },
	{ type: "message", timestamp: at(3), message: user("three") },
	{ type: "compaction", timestamp: at(4), summary: "s", firstKeptEntryIndex: 2, tokensBefore: 5 },
	{ type: "message", timestamp: at(5), message: assistant("four") },
];

const secondVersion = [
	{ type: "message", id: "a1", parentId: null, timestamp: at(1), message: assistant("one") },
	{ type: "message", id: "a2", parentId: "a1", timestamp: at(2), message: { role: "hookMessage", customType: "h", content: "x", display: true } },
];

export async function checkOld(client: Client, mount: Mount, project: string): Promise<void> {
	for (const [version, entries] of [[undefined, firstVersion], [2, secondVersion]] as const) {
		await check(`a file of version ${version ?? 1}: the first write keeps the ids that were shown`, async () => {
			const session = put(mount, `v${version ?? 1}`, lines([header(project, version), ...entries]));
			const shown = session.entries();
			session.message(user("now"));
			const found = difference(session.entries().slice(0, shown.length), shown);
			return [...(found ? [found] : []), ...(await reopened(client, session))];
		});
	}
	await check("a torn last line: what is appended is read by the client", async () => {
		const torn = lines([header(project, 3), ...secondVersion.slice(0, 1)]) + '{"type":"message","id":"a9","par';
		const session = put(mount, "torn", torn);
		session.message(user("after the tear"));
		session.append({ type: "custom", customType: "c" });
		const found = await reopened(client, session);
		return found.filter(f => !f.startsWith("problems:")); // the torn line is one
	});
}

const lines = (values: object[]) => values.map(v => `${JSON.stringify(v)}\n`).join("");

/** Puts a file where the client would have it. */
function put(mount: Mount, name: string, text: string): Session {
	const dir = path.join(mount.agent, "sessions", "--old--");
	fs.mkdirSync(dir, { recursive: true });
	const file = path.join(dir, `2025-03-04T05-06-00-000Z_${name}.jsonl`);
	fs.writeFileSync(file, text);
	return mount.sessionOf(file);
}
