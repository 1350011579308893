// bun main.ts CLIENT_DIR VERSION MOUNT PROJECT
<<<<<<< Updated upstream
// A line for each check. PI_CODING_AGENT_DIR is what is mounted, and this process's working directory is not in it.
=======
// A line for each check. PI_CODING_AGENT_DIR is what is mounted.
>>>>>>> Stashed changes
import * as fs from "node:fs";
import * as path from "node:path";
import { Mount } from "../interoprun/mount";
import { check, reportFor } from "../interoprun/report";
import { configure, type Place } from "./agent";
import { startModel } from "./model";
<<<<<<< Updated upstream
import { scenarios } from "./scenarios";
=======
import { lanes, type Scenario } from "./scenarios";
>>>>>>> Stashed changes
import { Terminals } from "./terminal";

const [client, version, mountDir, project] = process.argv.slice(2);
const agent = fs.realpathSync(process.env.PI_CODING_AGENT_DIR!);
reportFor(version);
configure(agent, startModel());
<<<<<<< Updated upstream
const terminals = new Terminals(path.dirname(mountDir));
const place: Place = { client, version, agent, project, terminals };
try {
	for (const scenario of scenarios) {
		await check(`${scenario.name} to its end`, async () => {
			await scenario(place, new Mount(mountDir, agent));
		});
		terminals.clear();
	}
} finally {
	terminals.close();
}
=======
const mount = new Mount(mountDir, agent);

/** Does one scenario after the other, each in terminals of its own. */
async function runAll(name: string, lane: Scenario[]): Promise<void> {
	const terminals = new Terminals(path.dirname(mountDir), name);
	const place: Place = { client, version, agent, project, terminals };
	for (const scenario of lane) {
		await check(`${scenario.name} to its end`, async () => {
			await scenario(place, mount);
		});
		terminals.clear();
	}
	terminals.close();
}

// Most of the time goes into starting clients.
await Promise.all(lanes.map((lane, i) => runAll(`terminals-${i}`, lane)));
>>>>>>> Stashed changes
process.exit(0);
