// Writes sessions of pi with its answers, for testdata/piclient: SESSIONFS_RECORD=DIR scripts/interop pi-1.6.0
import * as crypto from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import { asJSON, labelsOf, treeOf } from "../agree";
import { usageOf } from "./agree";
import type { Client, Manager } from "./client";

/** The seeds of what is recorded. */
const seeds = [3, 11, 19];

/** JSON with its keys sorted. */
function canonical(v: any): string {
	if (Array.isArray(v)) return `[${v.map(canonical).join(",")}]`;
	if (typeof v !== "object" || v === null) return JSON.stringify(v);
	return `{${Object.keys(v).sort().map(key => `${JSON.stringify(key)}:${canonical(v[key])}`).join(",")}}`;
}

const sum = (v: unknown) => ({ sha256: crypto.createHash("sha256").update(canonical(asJSON(v))).digest("hex") });

export function record(dir: string, client: Client, manager: Manager, seed: number): void {
	if (!seeds.includes(seed)) return;
	fs.mkdirSync(dir, { recursive: true });
	const file = path.join(dir, `seed-${seed}`);
	fs.copyFileSync(manager.getSessionFile(), `${file}.jsonl`);
	const answers = {
		name: manager.getSessionName() ?? "",
		leafId: manager.getLeafId(),
		labels: labelsOf(manager as any),
		entries: manager.getEntries().map(({ id, parentId, type }) => ({ id, parentId, type })),
		paths: treeOf(manager as any),
		context: asJSON(manager.buildSessionContext()),
		contexts: Object.fromEntries(manager.getEntries().map(e => [e.id, sum(client.contextAt(manager, e.id))])),
		usage: usageOf(client, manager),
	};
	fs.writeFileSync(`${file}.want.json`, `${JSON.stringify(answers)}\n`);
}
