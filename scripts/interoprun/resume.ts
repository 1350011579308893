// A branch that was lost, since the client resumes at the last line: ln -sfn brings it back.
import * as fs from "node:fs";
import { reopened, shownAfter } from "./build";
import { type Client, closed } from "./client";
import { assistant, user } from "./messages";
import { type Mount, type Session, shell } from "./mount";
import { check, expect } from "./report";

export async function checkResumed(client: Client, mount: Mount, project: string): Promise<void> {
	const manager = client.create(project);
	const ask = (question: string) => {
		manager.appendMessage(user(question));
		return manager.appendMessage(assistant(`${question}: yes`));
	};
	const start = ask("start");
	ask("good");
	const good = ask("better");
	manager.appendLabelChange(good, "good");
	manager.branch(start);
	ask("dead end");
	await closed(manager);
	const session = mount.sessionOf(manager.getSessionFile());
	const deadEnd = session.leaf()!;

	await check("a lost branch: the client resumes on the dead end", () => standsOn(client, session, deadEnd, "dead end"));
	const tree = session.tree().find(p => p.endsWith(`/${good}`))!;
	const targets = {
		"its entry's file": `entries/${good}.json`,
		"its id": good,
		"its label": "by-label/good",
		"its branch": `branches/${good}`,
		"its place in the tree": `tree${tree}/entry.json`,
		"an absolute path": `${session.dir}/entries/${good}.json`,
	};
	for (const [what, target] of Object.entries(targets)) {
		await check(`a lost branch: ln -sfn to ${what}, and the client resumes on it`, async () => {
			session.moveLeaf(target);
			const found = await standsOn(client, session, good, "better");
			session.moveLeaf(deadEnd);
			return found.concat(await standsOn(client, session, deadEnd, "dead end"));
		});
	}
	await check("a lost branch is found and resumed with the three commands of the README", async () => {
		const rows = shell(session.dir, "cat branches.tsv").trimEnd().split("\n").map(row => row.split("\t"));
		const [id, entries, , label, current] = rows.find(row => row[3] === "good") ?? [];
		const found = expect(rows[0].join() === "id,entries,time,label,current,said", `the columns are ${rows[0]}`)
			.concat(expect(rows.length === 3 && rows[1][4] === "yes" && rows[1][0] === deadEnd, "the dead end is not the current one, first"))
			.concat(expect(current === "lost" && label === "good" && Number(entries) === 7, `the lost branch is shown as ${id} ${entries} ${label} ${current}`));
		shell(session.dir, `ln -sfn "branches/$1" leaf`, id);
		const resumed = await client.continueRecent(project);
		found.push(...expect(resumed.getSessionFile() === session.file, `it resumed ${resumed.getSessionFile()}`));
		found.push(...expect(resumed.getBranch().some(e => e.id === good), "it resumed another branch"));
		await closed(resumed);
		session.moveLeaf(deadEnd);
		return found;
	});
	await check("a lost branch: the client continues it, and both branches are whole", async () => {
		session.moveLeaf(good);
		const resumed = await client.continueRecent(project);
		const found = expect(resumed.getSessionFile() === session.file, `it resumed ${resumed.getSessionFile()}`);
		found.push(...(await shownAfter(client, session, resumed, m => m.appendMessage(user("further")))));
		found.push(...(await shownAfter(client, session, resumed, m => m.rewriteEntries())));
		await closed(resumed);
		const path = resumed.getBranch().map(e => e.id);
		found.push(...expect(path.includes(good) && !path.includes(deadEnd), "it continued another branch"));
		return found.concat(await reopened(client, session, m => expect(m.getEntries().some(e => e.id === deadEnd), "a branch is lost")));
	});
}

/** Whether the client, opening the session, has the branch of an entry with that last answer before it. */
function standsOn(client: Client, session: Session, id: string, question: string): Promise<string[]> {
	return reopened(client, session, m => {
		const said = JSON.stringify(m.buildSessionContext().messages.at(-1));
		return expect(m.getBranch().some(e => e.id === id), "it stands on another branch")
			.concat(expect(said.includes(`${question}: yes`), `the last message is ${said}`))
			.concat(expect(session.leaf() === id, `leaf is ${fs.readlinkSync(`${session.dir}/leaf`)}`));
	});
}
