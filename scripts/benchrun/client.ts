// bun client.ts NODE_MODULES AGENT open|context SESSION.jsonl
// bun client.ts NODE_MODULES AGENT list
// Prints the time of the call alone: modules are loaded before, and the process ends without more.
const [modules, agent, what, file] = process.argv.slice(2);
const base = `${modules}/@oh-my-pi`;
const { SessionManager } = await import(`${base}/pi-coding-agent/src/session/session-manager.ts`);
const { setAgentDir } = await import(`${base}/pi-utils/src/index.ts`);
const { version } = await import(`${base}/pi-coding-agent/package.json`);
setAgentDir(agent);
let Entries = 0;
let size = 0;
const start = performance.now();
let Milliseconds = 0;
if (what === "list") {
	const sessions = await SessionManager.listAll();
	Milliseconds = performance.now() - start;
	Entries = sessions.length;
} else {
	const manager = await SessionManager.open(file);
	if (what === "context") size = JSON.stringify(manager.buildSessionContext()).length;
	Milliseconds = performance.now() - start;
	Entries = manager.getEntries().length;
}
console.log(JSON.stringify({ Milliseconds, Entries, Version: version, Runtime: Bun.version, size }));
process.exit(0);
