// Waiting for what other programs do, never longer than it takes.

/** until calls a function until it returns something, and returns that; after some seconds it gives up. */
export async function until<T>(
	what: string,
	get: () => T | undefined | false | null,
	seconds = 20,
	context: () => string = () => "",
): Promise<T> {
	const end = Date.now() + seconds * 1000;
	for (;;) {
		const got = get();
		if (got) return got;
		if (Date.now() > end) throw new Error(`after ${seconds} s not yet: ${what}\n${context()}`.trimEnd());
		await Bun.sleep(20);
	}
}
