// Whether the mount and the client make the same of a session.
import type { Client, Entry, Manager, TreeNode } from "./client";
import type { Session } from "./mount";

/** Where two JSON values first differ, undefined where they do not. Absent is not null. */
export function difference(ours: any, theirs: any, at = "$"): string | undefined {
	if (typeof ours !== "object" || typeof theirs !== "object" || ours === null || theirs === null) {
		return Object.is(ours, theirs) ? undefined : `${at}: ours ${shown(ours)}, the client's ${shown(theirs)}`;
	}
	if (Array.isArray(ours) !== Array.isArray(theirs)) return `${at}: ours ${shown(ours)}, the client's ${shown(theirs)}`;
	if (Array.isArray(ours) && ours.length !== theirs.length) {
		return `${at}: ours has ${ours.length} elements, the client's ${theirs.length}: ${shown(ours)} and ${shown(theirs)}`;
	}
	for (const key of new Set([...Object.keys(ours), ...Object.keys(theirs)])) {
		const found = difference(ours[key], theirs[key], `${at}.${key}`);
		if (found) return found;
	}
	return undefined;
}

/** How much of a value a failed check repeats. */
const shownLength = 400;

function shown(v: unknown): string {
	const text = JSON.stringify(v) ?? "nothing";
	return text.length <= shownLength ? text : `${text.slice(0, shownLength)}… (${text.length})`;
}

/** A value as JSON would have it: what is undefined goes. */
export const asJSON = (v: unknown) => JSON.parse(JSON.stringify(v));

/** Our entry that records a move of the leaf. */
const isMove = (e: Entry | undefined) => e?.type === "custom" && e.customType === "sessionfs/leaf";

/** The client stands on the entry that records a move; we on the one that it names. */
export function leafOf(manager: Manager): string | null {
	const id = manager.getLeafId();
	const entry = manager.getEntries().findLast(e => e.id === id);
	return isMove(entry) ? entry!.data.targetId : id;
}

export function labelsOf(manager: Manager): Record<string, string> {
	const labels: Record<string, string> = {};
	for (const e of manager.getEntries()) {
		const label = e.type === "label" ? manager.getLabel(e.targetId) : undefined;
		if (label) labels[e.targetId] = label;
	}
	return labels;
}

/** Whether a node only records moves, and so is none in our tree. */
const hides = ({ entry, children }: TreeNode): boolean => isMove(entry) && children.every(hides);

/** The paths of all entries in the client's tree, without those that only record moves. */
export function treeOf(manager: Manager): string[] {
	const paths: string[] = [];
	const walk = (nodes: TreeNode[], to: string) => {
		for (const node of nodes.filter(n => !hides(n))) {
			paths.push(`${to}/${node.entry.id}`);
			walk(node.children, `${to}/${node.entry.id}`);
		}
	};
	walk(manager.getTree(), "");
	return paths;
}

/**
 * Our context, in the shape of that client: the newer one keeps no selection of tools and gives the service
 * tier by provider.
 */
function shapedFor(client: Client, context: any): any {
	if (!client.newer) return context;
	const { selectedMCPToolNames, hasPersistedMCPToolSelection, serviceTier, ...rest } = context;
	if (serviceTier) rest.serviceTier = typeof serviceTier === "string" ? { openai: serviceTier } : serviceTier;
	return rest;
}

/** The client's context without what only the newer one has. */
function contextOf(manager: Manager): any {
	const { configuredThinkingLevel, ...rest } = manager.buildSessionContext();
	return asJSON(rest);
}

/** What the client changes as it loads it: images come from their blobs, and what a provider kept is gone. */
const loadsOtherwise = (e: Entry) => /blob:sha256:|openaiResponsesHistory/.test(JSON.stringify(e));

function entriesDiffer(ours: Entry[], theirs: Entry[]): string | undefined {
	const outline = (all: Entry[]) => all.map(({ id, parentId, type }) => ({ id, parentId, type }));
	const found = difference(outline(ours), outline(theirs));
	if (found) return found;
	return ours.map((e, i) => (loadsOtherwise(e) ? undefined : difference(e, asJSON(theirs[i]), `$[${i}]`))).find(d => d);
}

/** All that the mount and a client that has the session open do not agree on. */
export function disagreements(client: Client, session: Session, manager: Manager): string[] {
	const found: Record<string, string | undefined> = {
		entries: entriesDiffer(session.entries(), manager.getEntries()),
		leaf: difference(session.leaf(), leafOf(manager)),
		labels: difference(session.labels(), labelsOf(manager)),
		title: difference(session.title(), manager.getSessionName() ?? ""),
		tree: difference(session.tree(), treeOf(manager)),
		context: difference(shapedFor(client, session.context()), contextOf(manager)),
		problems: difference(session.problems(), ""),
	};
	return Object.entries(found).flatMap(([what, d]) => (d ? [`${what}: ${d}`] : []));
}
