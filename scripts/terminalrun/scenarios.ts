// What people do with a client and a mount of its agent directory.
import * as fs from "node:fs";
import * as path from "node:path";
import { assistant, user } from "../interoprun/messages";
import type { Mount, Session } from "../interoprun/mount";
import { check, expect } from "../interoprun/report";
import { Agent, holdsTurn, type Place, sessionFiles } from "./agent";
import { appendRefused, checkDone, checkRefused } from "./writes";

export type Scenario = (place: Place, mount: Mount) => Promise<void>;

/** A title that no session has yet. */
let titles = 0;
const nextTitle = (): string => `Foo${++titles}`;

/** The client renames its session and takes two turns: all of it is in the file, with what was there before. */
async function checkTurns(when: string, session: Session, agent: Agent, before: string[] = []): Promise<void> {
	await check(`${when}: /rename and two turns are in the file`, async () => {
		const title = nextTitle();
		await agent.rename(title);
		const prompts = [await agent.turn(), await agent.turn()];
		for (const prompt of prompts) {
			await agent.pane.until(`${prompt} in the file`, () => holdsTurn(session.file, prompt));
		}
		const text = fs.readFileSync(session.file, "utf8");
		return expect(session.title() === title, `the title is ${session.title()}`).concat(
			before.flatMap(part => expect(text.includes(part), `${part} is not in the file any more`)),
		);
	});
}

/** A session that the client writes for the first time, from its first answer on to its end. */
const newSession: Scenario = async function newSession(place, mount) {
	const agent = await Agent.start(place);
	const known = sessionFiles(place.agent);
	const first = await agent.turn();
	const file = await agent.pane.until("a session file with the turn", () =>
		sessionFiles(place.agent).find(f => !known.includes(f) && holdsTurn(f, first)),
	);
	const session = mount.sessionOf(file);
	await checkRefused("after the first answer", mount, session, agent);
	await checkTurns("after the first answer", session, agent, [first]);
	await checkRefused("after further answers", mount, session, agent);
	await checkDone("a client on another session", writtenSession(place, mount));

	const second = await agent.turn();
	await agent.exit();
	await checkDone("within a second after /exit", session, 1);
	await check("after /exit: the last turn is in the file", () => expect(holdsTurn(file, second), "it is not"));
};

/** A session that is taken up again, in a client that writes nothing yet. */
const resumed: Scenario = async function resumed(place, mount) {
	const session = writtenSession(place, mount);
	const ours = await checkDone("before the client takes it up", session);
	const agent = await Agent.start(place, "--resume", session.header().id);
	await checkRefused("resumed and idle", mount, session, agent);
	await checkTurns("resumed and idle", session, agent, ours);
	await agent.send("/new");
	await agent.pane.until("a new session", () => agent.pane.screen().includes("New session started"));
	await checkDone("after the client went to a new session", session, 1);
	await agent.kill();
};

/** After the client wrote the whole file anew, which it does where a title has no place of its own in the file. */
const rewritten: Scenario = async function rewritten(place, mount) {
	const session = writtenSession(place, mount);
	const agent = await Agent.start(place, "--resume", session.header().id);
	const { ino } = fs.statSync(session.file);
	await agent.rename(nextTitle());
	await agent.pane.until("another file of that name", () => fs.statSync(session.file).ino !== ino);
	await checkRefused("after a rewrite", mount, session, agent);
	await checkTurns("after a rewrite", session, agent);
	await agent.kill();
	const ours = await checkDone("within a second after kill -9", session, 1);

	const again = await Agent.start(place, "--resume", session.header().id);
	await checkTurns("resumed after kill -9", session, again, ours);
	await again.exit();
};

/** Two clients, each in its terminal and on its session. One knows the agent directory by a link's name. */
const together: Scenario = async function together(place, mount) {
	const [one, other] = [writtenSession(place, mount), writtenSession(place, mount)];
	const link = `${place.agent}-link`;
	fs.symlinkSync(place.agent, link);
	const resume = (at: Place, session: Session) => Agent.start(at, "--resume", session.header().id);
	const [onOne, onOther] = await Promise.all([resume(place, one), resume({ ...place, agent: link }, other)]);
	await check("two clients: each session is refused for its own", () =>
		appendRefused(one, onOne).concat(appendRefused(other, onOther)),
	);
	await onOne.kill();
	await checkDone("the other client is still there", one, 1);
	await check("one client of two: its session is refused", () => appendRefused(other, onOther));
	await checkTurns("one client of two", other, onOther);
	await onOther.exit();
};

/** What may run at the same time: they work on different sessions, as clients of one user do. */
export const lanes: Scenario[][] = [
	[newSession, resumed],
	[rewritten, together],
];

let sessions = 0;

/** A session as older clients write it: without a slot for its title. It lies where the client puts its own. */
function writtenSession(place: Place, mount: Mount): Session {
	const id = `0000000${++sessions}-0000-7000-8000-000000000000`;
	const time = (second: number) => new Date(Date.parse("2026-02-16T10:20:30Z") + second * 1000).toISOString();
	const entry = (n: number, parentId: string | null, message: object) => ({
		type: "message", id: `0000000${n}`, parentId, timestamp: time(n), message,
	});
	const lines = [
		{ type: "session", version: 3, id, timestamp: time(0), cwd: place.project },
		entry(1, null, user("A question.")),
		entry(2, "00000001", assistant("An answer.")),
		entry(3, "00000002", user("Another question.")),
		entry(4, "00000003", assistant("Another answer.")),
	];
	const dir = path.join(place.agent, "sessions", `--${place.project.replace(/^\//, "").replace(/\//g, "-")}--`);
	fs.mkdirSync(dir, { recursive: true });
	const file = path.join(dir, `${time(0).replace(/[:.]/g, "-")}_${id}.jsonl`);
	fs.writeFileSync(file, lines.map(line => `${JSON.stringify(line)}\n`).join(""));
	return mount.sessionOf(file);
}
