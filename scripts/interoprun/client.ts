// The real client, as far as the checks use it: what its packages export.
import * as fs from "node:fs";

export type Entry = { type: string; id: string; parentId: string | null; [key: string]: any };
export type TreeNode = { entry: Entry; children: TreeNode[] };

/** The client's SessionManager. */
export interface Manager {
	appendMessage(message: object): string;
	appendCustomEntry(customType: string, data?: unknown): string;
	appendCustomMessageEntry(customType: string, content: unknown, display: boolean, details?: unknown): string;
	appendThinkingLevelChange(level?: string): string;
	appendModelChange(model: string, role?: string): string;
	appendModeChange(mode: string, data?: object): string;
	appendTtsrInjection(rules: string[]): string;
	appendSessionInit(init: object): string;
	appendServiceTierChange(tier: unknown): string;
	appendCompaction(summary: string, short: string | undefined, firstKept: string, tokens: number): string;
	appendLabelChange(target: string, label: string | undefined): string;
	branch(id: string): void;
	branchWithSummary(id: string | null, summary: string): string;
	resetLeaf(): void;
	createBranchedSession(id: string): string | undefined;
	rewriteEntries(): Promise<void>;
	moveTo(cwd: string): Promise<void>;
	setSessionName(name: string, source: "auto" | "user"): Promise<boolean>;
	getSessionName(): string | undefined;
	getSessionFile(): string;
	getHeader(): any;
	getEntries(): Entry[];
	getBranch(): Entry[];
	getTree(): TreeNode[];
	getLabel(id: string): string | undefined;
	getLeafId(): string | null;
	buildSessionContext(options?: object): any;
	flush(): Promise<void>;
	close(): Promise<void>;
}

/** Ends a client's work on a session. The older one, closed with work still queued, opens the file again. */
export async function closed(manager: Manager): Promise<void> {
	await manager.flush();
	await manager.close();
}

export interface Client {
	version: string;
	/** whether it writes title slots, tiers by provider and title_change entries, and follows the lock */
	newer: boolean;
	/** whether it is whole; else only its session code runs, as its sibling packages are of other versions */
	whole: boolean;
	open(file: string): Promise<Manager>;
	create(cwd: string): Manager;
	/** What resuming the last session of a working directory gives. */
	continueRecent(cwd: string): Promise<Manager>;
	/** The files of all sessions of a working directory. */
	list(cwd: string): Promise<string[]>;
	/** The prompt history, which the client has open once in a process. */
	history(database: string): History;
	closeHistory(): void;
}

/** The client's HistoryStorage. */
export interface History {
	add(prompt: string, cwd?: string, sessionId?: string): Promise<void>;
	search(query: string, limit: number): { prompt: string }[];
}

/** Adds what 18.3.4's session code imports from versions of its siblings that the registry does not have. */
async function completeSiblings(dir: string): Promise<void> {
	const natives = await import(Bun.resolveSync("@oh-my-pi/pi-natives", dir));
	const notThere = () => {
		throw new Error("a later version of this package has it");
	};
	const later = { renderMermaidAscii: notThere };
	Bun.plugin({
		name: "siblings",
		setup: build => {
			build.module("@oh-my-pi/pi-utils/fs-open", () => ({ exports: { openCloexecSync: fs.openSync }, loader: "object" }));
			build.module("@oh-my-pi/pi-natives", () => ({ exports: { ...later, ...natives }, loader: "object" }));
		},
	});
}

/** dir is where its package was installed. */
export async function loadClient(dir: string, version: string): Promise<Client> {
	const whole = version !== "18.3.4";
	if (!whole) await completeSiblings(dir);
	const { SessionManager } = await import(Bun.resolveSync("@oh-my-pi/pi-coding-agent/session/session-manager", dir));
	const { HistoryStorage } = await import(Bun.resolveSync("@oh-my-pi/pi-coding-agent/session/history-storage", dir));
	return {
		version,
		newer: Number.parseInt(version) > 14,
		whole,
		open: file => SessionManager.open(file),
		create: cwd => SessionManager.create(cwd),
		continueRecent: cwd => SessionManager.continueRecent(cwd),
		history: database => HistoryStorage.open(database),
		closeHistory: () => HistoryStorage.close(),
		list: async cwd => (await SessionManager.list(cwd)).map((s: { path: string }) => s.path),
	};
}
