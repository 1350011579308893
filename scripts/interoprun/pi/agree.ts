// Whether the mount and pi make the same of a session.
import * as fs from "node:fs";
import * as path from "node:path";
import { asJSON, difference, labelsOf, leafOf, treeOf } from "../agree";
import type { Entry } from "../client";
import type { Session } from "../mount";
import type { Client, Info, Manager } from "./client";

/** Of our context what pi's has; the rest is there for scripts that read omp's. */
const shaped = ({ messages, thinkingLevel, model }: any) => ({ messages, thinkingLevel, model });

function contextsDiffer(client: Client, session: Session, manager: Manager): string | undefined {
	for (const { id } of manager.getEntries()) {
		const ours = JSON.parse(session.read(`branches/.by-id/${id}/context.json`));
		const found = difference(shaped(ours), asJSON(client.contextAt(manager, id)), `$ at ${id}`);
		if (found) return found;
	}
	return undefined;
}

/** Sums of costs differ by their order. */
const about = (n: number) => Number(n.toPrecision(12));

export function usageOf(client: Client, manager: Manager): any {
	const { tokens, cost, assistantMessages } = client.stats(manager);
	const models = client.breakdown?.(manager).map(m => [m.key, { cost: about(m.cost), tokens: m.tokens }] as const);
	return { assistantMessages, ...tokens, cost: about(cost), ...(models && { models: Object.fromEntries(models) }) };
}

function ourUsage(client: Client, session: Session): any {
	const { total, models } = JSON.parse(session.read("usage.json"));
	const { assistantMessages, input, output, cacheRead, cacheWrite, cost } = total;
	const tokens = (m: any) => m.input + m.output + m.cacheRead + m.cacheWrite;
	const byModel = Object.entries<any>(models).map(([key, m]) => [key, { cost: about(m.cost?.total ?? 0), tokens: tokens(m) }] as const).filter(([, m]) => m.cost > 0 || m.tokens > 0);
	return { assistantMessages, input, output, cacheRead, cacheWrite, total: tokens(total), cost: about(cost?.total ?? 0), ...(client.breakdown && { models: Object.fromEntries(byModel) }) };
}

/** What is shown of a name: control characters are escaped. */
const plain = (name: string) => name.replace(/\\(t|n|r|u([0-9a-f]{4}))/g, (_, e, hex) => (hex ? String.fromCharCode(Number.parseInt(hex, 16)) : JSON.parse(`"\\${e}"`)));

/** All that the mount and pi, which has the session open, do not agree on. */
export function disagreements(client: Client, session: Session, manager: Manager): string[] {
	const entries = (all: Entry[]) => asJSON(all);
	const found: Record<string, string | undefined> = {
		entries: difference(session.entries(), entries(manager.getEntries())),
		leaf: difference(session.leaf(), leafOf(manager as any)),
		labels: difference(session.labels(), labelsOf(manager as any)),
		name: difference(plain(session.title()), manager.getSessionName() ?? ""),
		tree: difference(session.tree(), treeOf(manager as any)),
		context: difference(shaped(session.context()), asJSON(manager.buildSessionContext())),
		contexts: contextsDiffer(client, session, manager),
		usage: difference(ourUsage(client, session), usageOf(client, manager)),
		problems: difference(session.problems(), ""),
	};
	return Object.entries(found).flatMap(([what, d]) => (d ? [`${what}: ${d}`] : []));
}

/** How pi's list and index.jsonl differ for a working directory. */
export function listsDiffer(root: string, cwd: string, infos: Info[]): string | undefined {
	const whole = (s: string) => s.toWellFormed();
	const theirs = infos.map(i => ({
		id: i.id, cwd: i.cwd, title: i.name === undefined ? null : whole(i.name), parentSession: i.parentSessionPath ?? null,
		created: i.created.toISOString(), modified: i.modified.toISOString(), messageCount: i.messageCount, firstMessage: whole(i.firstMessage),
	}));
	const lines = fs.readFileSync(path.join(root, "index.jsonl"), "utf8").trimEnd().split("\n").map(line => JSON.parse(line));
	const ours = lines.filter(l => l.cwd === cwd).map(({ path, size, ...rest }) => rest);
	const byID = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
	const order = () => difference(ours.map(l => l.modified), theirs.map(l => l.modified), "the order");
	return difference([...ours].sort(byID), [...theirs].sort(byID)) ?? order();
}

