// A line for each check.

let version = "";

/** Names the client that the checks are about. */
export function reportFor(v: string): void {
	version = v;
}

/** What a check found wrong. */
export type Findings = string | string[] | undefined | false;

/** Does a check and prints its line; what it throws is a failure too. Later checks go on. */
export async function check(what: string, run: () => Findings | Promise<Findings>): Promise<void> {
	let found: string[];
	try {
		const result = await run();
		found = Array.isArray(result) ? result : result ? [result] : [];
	} catch (e) {
		found = [e instanceof Error ? e.message : String(e)];
	}
	console.log(`${found.length === 0 ? "ok  " : "FAIL"} ${version}: ${what}`);
	for (const f of found) console.log(`       ${f}`);
}

/** A finding, unless something holds. */
export function expect(holds: boolean, otherwise: string): string[] {
	return holds ? [] : [otherwise];
}
