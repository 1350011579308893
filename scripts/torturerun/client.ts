// bun client.ts CLIENT_DIR
// The real client. It takes requests from stdin, one per line, and answers each with a line: "turn" opens a session,
// appends a question and an answer, and closes it; "look" says how it loads a session.
const [clientDir] = process.argv.slice(2);
const { SessionManager } = await import(Bun.resolveSync("@oh-my-pi/pi-coding-agent/session/session-manager", clientDir));

const zero = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: zero };
const user = (text: string) => ({ role: "user", content: [{ type: "text", text }], timestamp: Date.now() });
const assistant = (text: string) => ({
	...user(text), role: "assistant", api: "anthropic-messages", provider: "anthropic", model: "m", usage, stopReason: "stop",
});

async function turn(file: string, text: string) {
	const manager = await SessionManager.open(file);
	try {
		manager.appendMessage(user(text));
		manager.appendMessage(assistant(text));
		await manager.flush();
		return {};
	} finally {
		await manager.close();
	}
}

async function look(file: string) {
	const manager = await SessionManager.open(file);
	try {
		const entries: { id: string }[] = manager.getEntries();
		const labels = entries.map(e => [e.id, manager.getLabel(e.id)]).filter(([, label]) => label !== undefined);
		return {
			Entries: entries.map(e => e.id), Leaf: manager.getLeafId(), Labels: Object.fromEntries(labels),
			Title: manager.getSessionName() ?? "",
		};
	} finally {
		await manager.close();
	}
}

for await (const line of console) {
	const { do: what, file, text } = JSON.parse(line);
	let answer: object;
	try {
		answer = what === "turn" ? await turn(file, text) : await look(file);
	} catch (e) {
		answer = { Error: String(e) };
	}
	process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0); // the client may have timers
