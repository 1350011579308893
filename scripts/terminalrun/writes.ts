// What a script writes through the mount, beside a client and after it.
import * as fs from "node:fs";
import { user } from "../interoprun/messages";
import { busy, type Mount, type Session } from "../interoprun/mount";
import { check, expect } from "../interoprun/report";
import type { Agent } from "./agent";

/** Every way to write to a session. mark is in what they write, but for the leaf's. */
const writes: Record<string, (session: Session, mark: string) => unknown> = {
	append: (s, mark) => s.message(user(mark)),
	labels: (s, mark) => s.setLabel(s.entries()[0].id, mark),
	title: (s, mark) => s.setTitle(mark),
	// Moving it to where it is writes nothing, and is never refused.
	"ln -sfn leaf": s => s.moveLeaf(s.entries().find(e => e.type !== "custom" && e.id !== s.leaf())!.id),
};

/** What a move of the leaf leaves in the file. */
const traceOfMove = '"sessionfs/leaf"';

let count = 100;
const nextMark = (): string => `mark-${++count}`;

const occurrences = (text: string, part: string): number => text.split(part).length - 1;

/** Whether a write is refused, with a reason that names the client. */
function namesClient(session: Session, agent: Agent, write: () => unknown): string[] {
	const refused = busy(write);
	const reason = session.read("last-error").trim();
	return expect(refused, "it was not refused").concat(
		expect(new RegExp(`\\b${agent.pid}\\b`).test(reason), `last-error does not name ${agent.pid}: ${reason}`),
	);
}

/** An append alone, for a client that is one of several. */
export const appendRefused = (session: Session, agent: Agent): string[] =>
	namesClient(session, agent, () => writes.append(session, nextMark()));

/** While the client is on the session: each kind of write is EBUSY, names the client and writes nothing. */
export async function checkRefused(when: string, mount: Mount, session: Session, agent: Agent): Promise<void> {
	for (const [what, write] of Object.entries(writes)) {
		await check(`${when}: ${what} is refused with EBUSY, names the client and writes nothing`, () => {
			const mark = nextMark();
			const moves = occurrences(fs.readFileSync(session.file, "utf8"), traceOfMove);
			const found = namesClient(session, agent, () => write(session, mark));
			const after = fs.readFileSync(session.file, "utf8");
			const written = after.includes(mark) || occurrences(after, traceOfMove) !== moves;
			return found.concat(expect(!written, "it was written"));
		});
	}
	await check(`${when}: fork works`, () => {
		const made = mount.session(session.fork(session.entries().at(-1)!.id));
		return expect(made.header().parentSession !== undefined, "the new session names no parent").concat(
			expect(made.entries().length > 0, "the new session is empty"),
		);
	});
}

/**
 * Nobody is on the session: each kind of write is done, at once or within some seconds. Returns what stays in the file
 * from then on; a title does not.
 */
export async function checkDone(when: string, session: Session, withinSeconds = 0): Promise<string[]> {
	const end = Date.now() + withinSeconds * 1000;
	const marks: string[] = [];
	for (const [what, write] of Object.entries(writes)) {
		await check(`${when}: ${what} goes through`, async () => {
			const mark = nextMark();
			const moves = occurrences(fs.readFileSync(session.file, "utf8"), traceOfMove);
			while (busy(() => write(session, mark))) {
				if (Date.now() > end) return `it is still refused: ${session.read("last-error").trim()}`;
				await Bun.sleep(20);
			}
			const after = fs.readFileSync(session.file, "utf8");
			if (what.endsWith("leaf")) return expect(occurrences(after, traceOfMove) > moves, "it was not written");
			if (what !== "title") marks.push(mark);
			return expect(after.includes(mark), "it was not written");
		});
	}
	return marks;
}
