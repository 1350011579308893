// All that a client reads a session with, besides its SessionManager: what draws the history and the tree, sends
// the context to a model, compacts it, and exports a session. None of it needs a terminal.
import * as fs from "node:fs";
import * as path from "node:path";
import type { Client, Manager } from "./client";

/** Reads a session in one way and throws what the client throws. */
export type Reader = (manager: Manager, file: string) => unknown;

/** An object any member of which is a function that does nothing, unless it is given. */
function lenient(given: Record<string, unknown>): any {
	return new Proxy(given, { get: (o, key) => (key in o ? o[key as string] : () => undefined) });
}

/** dir is where the client's package was installed. */
export async function loadReaders(client: Client, dir: string, scratch: string): Promise<Record<string, Reader>> {
	const packages = path.join(dir, "node_modules/@oh-my-pi");
	const base = path.join(packages, "pi-coding-agent/src");
	const { convertToLlm } = await import(`${base}/session/messages.ts`);
	const { transformMessages } = await import(path.join(packages, "pi-ai/src/providers/transform-messages.ts"));
	const places = [`${packages}/pi-agent-core/src/compaction/compaction.ts`, `${base}/session/compaction/compaction.ts`];
	const { prepareCompaction, DEFAULT_COMPACTION_SETTINGS } = await import(places.find(p => fs.existsSync(p))!);
	const models = [
		{ id: "claude-x", provider: "anthropic", api: "anthropic-messages" },
		{ id: "gpt", provider: "openai", api: "openai-responses" },
	].map(m => ({ ...m, name: m.id, input: ["text", "image"], reasoning: true, contextWindow: 200_000, maxTokens: 1000, cost: {}, compat: {} }));
	return {
		context: m => m.buildSessionContext(),
		"request to a model": m => {
			const messages = convertToLlm(m.buildSessionContext().messages);
			for (const model of models) transformMessages(messages, model);
		},
		compaction: m => prepareCompaction(m.getBranch(), { ...DEFAULT_COMPACTION_SETTINGS, enabled: true, keepRecentTokens: 1, reserveTokens: 10 }),
		...(client.whole && (await loadDrawers(client, base, packages, scratch))),
	};
}

/** What shows a session to a person. */
async function loadDrawers(client: Client, base: string, packages: string, scratch: string): Promise<Record<string, Reader>> {
	const { Settings, settings } = await import(`${base}/config/settings.ts`);
	const { initTheme } = await import(`${base}/modes/theme/theme.ts`);
	await Settings.init({ inMemory: true, cwd: scratch });
	await initTheme(false);
	const draw = await historyDrawer(base, packages, settings);
	const { exportFromFile } = await import(`${base}/export/html/index.ts`);
	const { TreeSelectorComponent } = await import(`${base}/modes/components/tree-selector.ts`);
	return {
		"history on the screen": m => draw(m, client.newer ? m.buildSessionContext({ transcript: true }) : m.buildSessionContext()),
		"tree on the screen": m => new TreeSelectorComponent(m.getTree(), m.getLeafId(), 50, () => {}, () => {}, undefined, "all").render(100),
		"HTML export": (_, file) => exportFromFile(file, { outputPath: path.join(scratch, "export.html") }),
	};
}

/** What draws a context as the interactive mode does when it resumes. */
async function historyDrawer(base: string, packages: string, settings: unknown): Promise<(m: Manager, context: any) => void> {
	const { UiHelpers } = await import(`${base}/modes/utils/ui-helpers.ts`);
	const { Container } = await import(path.join(packages, "pi-tui/src/index.ts"));
	const optional = async (name: string) => (fs.existsSync(`${base}/${name}`) ? await import(`${base}/${name}`) : {});
	const { TranscriptContainer = Container } = await optional("modes/components/transcript-container.ts");
	const { ServedModelTracker } = await optional("modes/components/served-model-marker.ts");
	return (manager, context) => {
		const chat = new TranscriptContainer();
		const session = lenient({
			sessionManager: manager,
			messages: context.messages,
			retryAttempt: 0,
			isStreaming: false,
			extensionRunner: undefined,
		});
		const mode = lenient({
			ui: lenient({ terminal: { columns: 100, rows: 50 }, imageBudget: undefined }),
			chatContainer: chat,
			session,
			viewSession: session,
			sessionManager: manager,
			settings,
			pendingTools: new Map(),
			pendingBashComponents: [],
			pendingPythonComponents: [],
			compactionQueuedMessages: [],
			transcriptMessageComponents: new WeakMap(),
			toolOutputExpanded: true,
			hideThinkingBlock: false,
			effectiveHideThinkingBlock: false,
			hideToolActivity: false,
			proseOnlyThinking: true,
			isBackgrounded: false,
			initialChatRendered: false,
			lastAssistantUsage: undefined,
			lastStatusText: undefined,
			lastStatusSpacer: undefined,
			focusedAgentId: undefined,
			eventController: undefined,
			servedModelTracker: ServedModelTracker && new ServedModelTracker(),
			statusLine: lenient({}),
			editor: lenient({}),
			pendingMessagesContainer: new Container(),
			keybindings: lenient({ getDisplayString: () => "" }),
			fileSlashCommands: new Set(),
		});
		const helpers = new UiHelpers(mode);
		mode.getUserMessageText = (m: unknown) => helpers.getUserMessageText(m);
		mode.addMessageToChat = (m: unknown, options: unknown) => helpers.addMessageToChat(m, options);
		mode.present = (shown: any) => [shown].flat().forEach(c => chat.addChild(c));
		helpers.renderSessionContext(context, { updateFooter: true });
		chat.render(100);
	};
}
