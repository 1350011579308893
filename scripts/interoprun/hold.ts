// bun hold.ts CLIENT_DIR VERSION PROJECT
// A client that begins a session, prints its file's name and holds it open until it is killed.
import { loadClient } from "./client";
import { begun } from "./live";

const [clientDir, version, project] = process.argv.slice(2);
const client = await loadClient(clientDir, version);
const manager = await begun(client, project);
console.log(manager.getSessionFile());
setInterval(() => manager, 1000);
