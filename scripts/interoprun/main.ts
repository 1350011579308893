// bun main.ts CLIENT_DIR VERSION MOUNT PROJECT
// Checks a mount against the client: a line for each check, "ok" or "FAIL". PI_CODING_AGENT_DIR is the agent
// directory that the mount shows, PROJECT the working directory of the sessions. The status says only whether
// all checks were done.
import { checkAccepted } from "./accepted";
import { checkBuilt } from "./build";
import { loadClient } from "./client";
import { checkContinued } from "./continue";
import { checkDatabase } from "./database";
import { checkForeign } from "./foreign";
import { checkArchived, checkSwept } from "./gc";
import { checkHistory } from "./history";
import { checkLive } from "./live";
import { Mount } from "./mount";
import { checkMoved } from "./move";
import { checkOld } from "./old";
import { checkPersisted } from "./persist";
import { check, reportFor } from "./report";
import { checkResumed } from "./resume";
import { checkScopes } from "./scopes";
import { checkTouched } from "./touched";

const [clientDir, version, mountDir, project] = process.argv.slice(2);
process.chdir(project);
const client = await loadClient(clientDir, version);
const mount = new Mount(mountDir, process.env.PI_CODING_AGENT_DIR!);
reportFor(version);
for (const part of [checkBuilt, checkContinued, checkResumed, checkPersisted, checkHistory, checkOld, checkLive, checkMoved, checkScopes(clientDir), checkArchived, checkSwept, checkAccepted(clientDir), checkForeign(clientDir), checkDatabase(clientDir), checkTouched(clientDir)]) {
	try {
		await part(client, mount, project);
	} catch (e) {
		await check(`${part.name} to its end`, () => Promise.reject(e));
	}
}
process.exit(0); // the client may have timers
