// -o context=sent: context.json at every entry of generated sessions is what the client's own code sends to a model.
// With SESSIONFS_RECORD=DIR the first sessions and the client's answers are written there, as testdata has them.
import * as fs from "node:fs";
import * as path from "node:path";
import { difference } from "./agree";
import type { Client, Entry } from "./client";
import { session as generated } from "./generate";
import type { Mount } from "./mount";
import { check, expect, type Findings } from "./report";

const sessions = 220;
/** Of the recorded ones, those that are not large: so many characters. */
const recordedLength = 9_000;
const recorded = 40;
/** How many differences of a session are printed. */
const printed = 3;

/** What is a blob in them; JSON escapes some of it. */
const blobText = 'data:image/png;base64,AAAA "é"';

/** What the client's code sends at an entry. */
export type Sender = (entries: Entry[], id: string) => any;

export async function loadSender(dir: string, blobs: string): Promise<Sender> {
	const packages = path.join(dir, "node_modules/@oh-my-pi");
	const base = path.join(packages, "pi-coding-agent/src/session");
	const { buildSessionContext } = await import(`${base}/session-context.ts`);
	const { convertToLlm, wrapSteeringForModel } = await import(`${base}/messages.ts`);
	const { BlobStore, lazyImageDataSync } = await import(`${base}/blob-store.ts`);
	const { filterProviderReplayMessages } = await import(path.join(packages, "pi-agent-core/src/replay-policy.ts"));
	const store = new BlobStore(blobs);
	return (entries, id) => {
		const { messages, ...settings } = buildSessionContext(entries, id, undefined, { resolveFrameData: (data: string) => lazyImageDataSync(store, data) });
		return JSON.parse(JSON.stringify({ messages: filterProviderReplayMessages(convertToLlm(wrapSteeringForModel(messages))), ...settings }));
	};
}

export function checkSent(dir: string) {
	return async function checkSent(client: Client, mount: Mount, project: string): Promise<void> {
		if (client.version !== "18.3.4") return;
		const blobs = path.join(mount.agent, "blobs");
		const blob = new Bun.CryptoHasher("sha256").update(blobText).digest("hex");
		fs.mkdirSync(blobs, { recursive: true });
		fs.writeFileSync(path.join(blobs, blob), blobText);
		const send = await loadSender(dir, blobs);
		const scope = path.join(mount.agent, "sessions", "--sent--");
		fs.mkdirSync(scope, { recursive: true });
		const shown = path.join(process.env.TMPDIR!, "sent");
		fs.mkdirSync(shown);
		const run = Bun.spawnSync([path.join(mount.dir, "../../sessionfs"), "-o", "ro,context=sent", mount.agent, shown]);
		if (!run.success) throw new Error(run.stderr.toString());
		try {
			let contexts = 0;
			await check(`context=sent: at every entry of ${sessions} generated sessions, what the client sends`, async () => {
				const found: string[] = [];
				for (let seed = 1; seed <= sessions && found.length < printed; seed++) {
					const name = `2026-02-16T10-20-30-000Z_sent-${seed}`;
					const lines = generated(seed, project, blob).map(line => `${JSON.stringify(line)}\n`).join("");
					fs.writeFileSync(path.join(scope, `${name}.jsonl`), lines);
					const answers: Record<string, unknown> = {};
					found.push(...(await compared(client, send, path.join(scope, `${name}.jsonl`), path.join(shown, "sessions/--sent--", name), answers)).slice(0, printed));
					contexts += Object.keys(answers).length;
					record(seed, lines, answers);
				}
				return found.concat(expect(contexts > 10 * sessions, `only ${contexts} contexts`));
			});
		} finally {
			Bun.spawnSync([path.join(mount.dir, "../../sessionfs"), "-u", shown]);
		}
	};
}

async function compared(client: Client, send: Sender, file: string, shown: string, answers: Record<string, unknown>): Promise<string[]> {
	const copy = path.join(process.env.TMPDIR!, path.basename(file)); // the client may rewrite what it opens
	fs.copyFileSync(file, copy);
	const manager: any = await client.open(copy);
	manager.sanitizeLoadedOpenAIResponsesReplayMetadata();
	const entries: Entry[] = manager.getEntries();
	const found: Findings[] = [];
	for (const { id } of entries) {
		answers[id] = send(entries, id);
		const ours = JSON.parse(fs.readFileSync(path.join(shown, "branches", id, "context.json"), "utf8"));
		const differs = difference(ours, answers[id]);
		found.push(differs && `${path.basename(file)} at ${id}: ${differs}`);
	}
	await manager.close();
	fs.rmSync(copy);
	return found.flatMap(f => f || []) as string[];
}

function record(seed: number, lines: string, answers: object): void {
	const dir = process.env.SESSIONFS_RECORD;
	if (!dir || seed > recorded || lines.length > recordedLength) return;
	fs.writeFileSync(path.join(dir, `${seed}.jsonl`), lines);
	const some = Object.entries(answers).filter((_, i, all) => i % 3 === 1 || i === all.length - 1);
	fs.writeFileSync(path.join(dir, `${seed}.json`), `${JSON.stringify(Object.fromEntries(some))}\n`);
}
