// bun client.ts NODE_MODULES AGENT open|context SESSION.jsonl
// Prints the time of the call alone: modules are loaded before, and the process ends without more.
const [modules, agent, what, file] = process.argv.slice(2);
const base = `${modules}/@oh-my-pi`;
const { SessionManager } = await import(`${base}/pi-coding-agent/src/session/session-manager.ts`);
const { setAgentDir } = await import(`${base}/pi-utils/src/index.ts`);
const { version } = await import(`${base}/pi-coding-agent/package.json`);
setAgentDir(agent);
const start = performance.now();
const manager = await SessionManager.open(file);
let size = 0;
if (what === "context") size = JSON.stringify(manager.buildSessionContext()).length;
const Milliseconds = performance.now() - start;
console.log(JSON.stringify({ Milliseconds, Entries: manager.getEntries().length, Version: version, Runtime: Bun.version, size }));
process.exit(0);
