// bun main.ts CLIENT_DIR VERSION MOUNT PROJECT
// A line for each check. PI_CODING_AGENT_DIR is what is mounted.
import * as fs from "node:fs";
import * as path from "node:path";
import { Mount } from "../interoprun/mount";
import { check, reportFor } from "../interoprun/report";
import { configure, type Place } from "./agent";
import { startModel } from "./model";
import { lanes, type Scenario } from "./scenarios";
import { Terminals } from "./terminal";

const [client, version, mountDir, project] = process.argv.slice(2);
const agent = fs.realpathSync(process.env.PI_CODING_AGENT_DIR!);
reportFor(version);
configure(agent, startModel());
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
process.exit(0);
