// bun main.ts CLIENT_DIR VERSION MOUNT PROJECT
// A line for each check. PI_CODING_AGENT_DIR is what is mounted, and this process's working directory is not in it.
import * as fs from "node:fs";
import * as path from "node:path";
import { Mount } from "../interoprun/mount";
import { check, reportFor } from "../interoprun/report";
import { configure, type Place } from "./agent";
import { startModel } from "./model";
import { scenarios } from "./scenarios";
import { Terminals } from "./terminal";

const [client, version, mountDir, project] = process.argv.slice(2);
const agent = fs.realpathSync(process.env.PI_CODING_AGENT_DIR!);
reportFor(version);
configure(agent, startModel());
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
process.exit(0);
