// The real pi, as far as the checks use it.
import * as fs from "node:fs";
import * as path from "node:path";
import type { Entry, TreeNode } from "../client";

/** pi's SessionManager. What only newer versions have is optional. */
export interface Manager {
	appendMessage(message: object): string;
	appendThinkingLevelChange(level: string): string;
	appendModelChange(provider: string, model: string): string;
	appendCompaction(summary: string, firstKept: string | undefined, tokens: number, details?: object, fromHook?: boolean, usage?: object): string;
	appendCustomEntry(type: string, data?: unknown): string;
	appendCustomMessageEntry(type: string, content: unknown, display: boolean, details?: unknown): string;
	appendSessionInfo(name: string): string;
	appendLabelChange(target: string, label: string | undefined): string;
	appendUsage?(kind: string, provider: string, model: string, usage: object, note?: string): Entry;
	appendContextEdit?(target: string, replacement: object | null): string;
	branch(id: string): void;
	branchWithSummary(id: string | null, summary: string, details?: object, fromHook?: boolean, usage?: object): string;
	resetLeaf(): void;
	createBranchedSession(id: string): string | undefined;
	getSessionName(): string | undefined;
	getSessionFile(): string;
	getHeader(): any;
	getEntries(): Entry[];
	getBranch(): Entry[];
	getTree(): TreeNode[];
	getLabel(id: string): string | undefined;
	getLeafId(): string | null;
	buildSessionContext(): any;
}

export interface Info {
	path: string;
	id: string;
	cwd: string;
	name?: string;
	parentSessionPath?: string;
	created: Date;
	modified: Date;
	messageCount: number;
	firstMessage: string;
}

export interface Client {
	/** From 0.87 on there are usage and context_edit entries, system messages, and the usage of summaries. */
	newer: boolean;
	create(cwd: string, options?: { id: string }): Manager;
	open(file: string): Manager;
	continueRecent(cwd: string): Manager;
	list(cwd: string): Promise<Info[]>;
	/** The context at an entry. */
	contextAt(manager: Manager, id: string): any;
	/** What a session cost, as pi adds it up. */
	stats(manager: Manager): { tokens: Record<string, number>; cost: number; assistantMessages: number };
	/** The same by model; older versions do not. */
	breakdown?(manager: Manager): { key: string; cost: number; tokens: number }[];
}

/** What pi's statistics take of its session object. */
const statsOf = (prototype: any, manager: Manager) =>
	prototype.getSessionStats.call({
		sessionManager: manager,
		state: { messages: manager.getEntries().flatMap(e => (e.type === "message" ? [e.message] : [])) },
		getContextUsage: () => undefined,
	});

/** The code of its package, which is installed in dir. */
export function distOf(dir: string): string {
	const installed = (scope: string) => path.join(dir, `node_modules/${scope}/pi-coding-agent/dist`);
	return [installed("@earendil-works"), installed("@mariozechner")].find(d => fs.existsSync(d))!;
}

/** dir is where its package is installed. */
export async function loadClient(dir: string, version: string): Promise<Client> {
	const dist = distOf(dir);
	const { SessionManager, AgentSession, buildSessionContext } = await import(path.join(dist, "index.js"));
	const newer = !version.startsWith("0.73");
	const breakdown = newer ? (await import(path.join(dist, "core/usage-totals.js"))).getUsageCostBreakdown : undefined;
	return {
		newer,
		create: (cwd, options) => {
			const manager = SessionManager.create(cwd, undefined, options);
			if (options && manager.getHeader().id !== options.id) manager.newSession(options); // older ones take it here
			return manager;
		},
		open: file => SessionManager.open(file),
		continueRecent: cwd => SessionManager.continueRecent(cwd),
		list: cwd => SessionManager.list(cwd),
		contextAt: (manager, id) => buildSessionContext(manager.getEntries(), id),
		stats: manager => statsOf(AgentSession.prototype, manager),
		breakdown: breakdown && (manager => breakdown(manager.getEntries())),
	};
}
