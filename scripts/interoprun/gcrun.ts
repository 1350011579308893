// bun gcrun.ts CLIENT_DIR VERSION FLAGS
// `omp gc --apply` of the client with FLAGS, an object.
import * as path from "node:path";
import { loadClient } from "./client";

const [clientDir, version, flags] = process.argv.slice(2);
const client = await loadClient(clientDir, version);
if (!client.whole) {
	// Its settings need what draws on a screen. The flags leave nothing for them to say.
	Bun.plugin({
		name: "settings",
		setup: build => {
			build.onLoad({ filter: /\/src\/config\/settings\.ts$/ }, () => ({ exports: { Settings: {} }, loader: "object" }));
		},
	});
}
const { runGcCommand } = await import(path.join(clientDir, "node_modules/@oh-my-pi/pi-coding-agent/src/cli/gc-cli.ts"));
await runGcCommand({ flags: { apply: true, json: true, ...JSON.parse(flags) } });
