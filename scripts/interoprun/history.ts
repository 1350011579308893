// The prompt history: history/search/ finds what the client's own search (Ctrl-R) finds.
import fs from "node:fs";
import path from "node:path";
import type { Client } from "./client";
import type { Mount } from "./mount";
import { check, expect } from "./report";

const prompts = [
	"fix the git-commit hook", "why is it RED?", "commit everything", "recommit, but only README.md", "don't touch main.go", "port it to C++",
	"a_b and a%b", "naïve café", "NOT this one", "say \"hello\" to O'Brien", "日本語のテスト", "tabs\tand\nlines", "one two three four five six seven eight nine ten eleven",
	"100% done", "ÉCOLE", "x-y-z", "README for the hook", "fix it again",
];

const queries = [
	"commit", "COMMIT", "mit", "git-commit", "README.md", "README", "don't", "C++", "c", "it", "fix it", "it fix", "a_b", "a%b", "%", "_", "cafe", "café", "naive",
	"école", "ecole", "日本", "本語", "two eleven", "wo leve", "100%", "x-y", "y", "O'Brien", "nothing at all like that", "hello say", "-rf", "tabs and",
	"one two three four five six seven eight nine ten eleven", "e",
];

export async function checkHistory(client: Client, mount: Mount): Promise<void> {
	if (!client.newer) {
		return; // its search is that of its index alone
	}
	const storage = client.history(path.join(mount.agent, "history.db"));
	for (const prompt of prompts) {
		await storage.add(prompt, "/home/dev/p", "s1");
	}
	const found = new Map(queries.map(query => [query, storage.search(query, 1000).map(e => e.prompt)]));
	client.closeHistory();
	for (const [query, want] of found) {
		await check(`the prompt history is searched as the client does: ${query}`, () => {
			let text = "";
			try {
				text = fs.readFileSync(path.join(mount.dir, "history/search", query), "utf8");
			} catch (e) {
				if ((e as NodeJS.ErrnoException).code !== "EINVAL") { // no words
					throw e;
				}
			}
			const ours = text.split("\n").filter(line => line).map(line => JSON.parse(line).prompt);
			return expect(JSON.stringify(ours) === JSON.stringify(want), `ours ${JSON.stringify(ours)}, the client's ${JSON.stringify(want)}`);
		});
	}
	await check("the client's search of the prompt history finds something", () =>
		expect([...found.values()].filter(list => list.length > 0).length > 20, "next to nothing was found"),
	);
}
