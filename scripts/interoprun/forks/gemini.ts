// Forks of a session of Gemini CLI at each of its entries: the client goes on with them as it does with the original's log that ends there.
import * as fs from "node:fs";
import * as path from "node:path";
import { check, expect } from "../report";
import { changed, dot, states } from "./everyentry";

type Part = Record<string, any>;
type Content = { role: string; parts: Part[] };

/** A model on this machine with answers that are told in advance. It keeps the contents that it was sent. */
class Model {
	readonly asked: Content[][] = [];
	answers: { parts: Part[]; input?: number }[] = [];
	#server = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 60, fetch: request => this.#answer(request) });

	get url(): string {
		return `http://127.0.0.1:${this.#server.port}`;
	}

	stop(): void {
		this.#server.stop(true);
	}

	async #answer(request: Request): Promise<Response> {
		const { contents, tools } = await request.json().catch(() => ({}));
		const isSummary = JSON.stringify(contents ?? []).includes("state_snapshot> XML block") || !tools?.length;
		if (!isSummary) this.asked.push(contents);
		const { parts, input = 100 } = isSummary ? { parts: [{ text: summary }] } : this.answers.shift() ?? { parts: [{ text: "Nothing more." }] };
		const usageMetadata = { promptTokenCount: input, candidatesTokenCount: 10, totalTokenCount: input + 10 };
		const answer = { candidates: [{ index: 0, content: { role: "model", parts }, finishReason: "STOP" }], usageMetadata, modelVersion: "stub" };
		if (!new URL(request.url).pathname.endsWith(":streamGenerateContent")) return Response.json(answer);
		return new Response(`data: ${JSON.stringify(answer)}\n\n`, { headers: { "content-type": "text/event-stream" } });
	}
}

const summary = "<state_snapshot>Herons were counted, and a picture was seen.</state_snapshot>";
const longest = 90_000;

/** Does the checks with the client in a directory, whose settings are there. */
export async function checkForks(clientDir: string, project: string): Promise<void> {
	const home = process.env.HOME!, source = path.join(home, ".gemini"), chats = path.join(source, "tmp/project/chats");
	const model = new Model(), saved = path.join(home, "saved-chats");
	const env = {
		PATH: process.env.PATH!, HOME: home, TMPDIR: process.env.TMPDIR!, LANG: "C.UTF-8", TZ: "UTC",
		GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: model.url, GEMINI_CLI_TRUST_WORKSPACE: "true",
	};

	/** Runs a program, and returns what it prints. */
	async function run(...command: string[]): Promise<string> {
		const child = Bun.spawn(command, { cwd: project, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
		const timer = setTimeout(() => child.kill("SIGKILL"), longest);
		const [out, err, status] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
		clearTimeout(timer);
		if (status !== 0) throw new Error(`${path.basename(command[0])} ${command.slice(1).join(" ")}: ${status}: ${out.slice(-300)}${err.slice(-600)}`);
		return out;
	}
	const sessionfs = (...args: string[]) => run(process.env.SESSIONFS!, ...args);
	const gemini = (...args: string[]) => run(path.join(clientDir, "node_modules/.bin/gemini"), "--yolo", "--model", "gemini-2.5-pro", ...args);

	/** Has the client go on with a session, and returns what its model was sent first. */
	async function sentBy(id: string, prompt: string): Promise<Content[]> {
		const before = model.asked.length;
		await gemini(`--resume=${id}`, "-p", prompt);
		return model.asked[before];
	}

	/** Makes the session: parallel calls, an image, a turn that is taken back, a compression. Returns its id, and what was sent in each turn. */
	async function make(): Promise<{ id: string; file: string; sent: Content[][] }> {
		fs.rmSync(chats, { recursive: true, force: true });
		fs.writeFileSync(path.join(project, "herons.txt"), "two herons\n");
		fs.writeFileSync(path.join(project, "dot.png"), Buffer.from(dot, "base64"));
		const sent: Content[][] = [];
		const read = { functionCall: { name: "read_file", args: { file_path: "herons.txt" } } }, list = { functionCall: { name: "list_directory", args: { dir_path: "." } } };
		model.answers = [{ parts: [{ text: "Both at once.", thought: true }, { text: "I look." }, read, list] }, { parts: [{ text: "Two herons." }] }];
		await gemini("-p", "Count the herons");
		const file = path.join(chats, fs.readdirSync(chats).find(name => name.endsWith(".jsonl"))!);
		const id = JSON.parse(fs.readFileSync(file, "utf8").split("\n")[0]).sessionId;
		const goOn = async (prompt: string, ...answers: Model["answers"]) => {
			model.answers = answers;
			sent.push(await sentBy(id, prompt));
			// A resume leaves a second file, without a conversation, for which the client deletes both at its next start.
			for (const name of fs.readdirSync(chats)) if (name.endsWith(".jsonl") && name !== path.basename(file)) fs.rmSync(path.join(chats, name));
		};
		await goOn("And in @dot.png ?", { parts: [{ text: "A dot." }] });
		await goOn("Count the frogs", { parts: [{ text: "No frogs." }] });
		const taken = lines(file).findLast(r => r.type === "user" && JSON.stringify(r.content).includes("frogs"));
		fs.appendFileSync(file, `${JSON.stringify({ $rewindTo: taken.id })}\n`);
		await goOn("Count the toads", { parts: [list], input: 900_000 }, { parts: [{ text: "One toad." }] });
		await goOn("Count the newts", { parts: [{ text: "Six newts." }] });
		fs.rmSync(saved, { recursive: true, force: true });
		fs.cpSync(chats, saved, { recursive: true, preserveTimestamps: true });
		return { id, file, sent };
	}

	/** Puts the session back, as the client deletes what was resumed. */
	function putBack(): void {
		fs.rmSync(chats, { recursive: true, force: true });
		fs.cpSync(saved, chats, { recursive: true, preserveTimestamps: true });
	}

	const prompt = "And now?";
	let made: Awaited<ReturnType<typeof make>> | undefined;
	await check("a session with parallel calls, an image, a rewind and a compression is made", async () => {
		made = await make();
		const text = fs.readFileSync(made.file, "utf8");
		return [...expect(text.includes("<state_snapshot>"), "nothing was compressed"), ...expect(text.includes("inlineData"), "there is no image")];
	});
	if (!made) return;
	const { id, file, sent } = made;

	/** The ids of the entries with the last line of each in the log, but for those before the first prompt. */
	async function entries(): Promise<{ entry: string; line: number; text: string }[]> {
		putBack();
		const dir = `by-id/${id}/entries`, names = (await sessionfs("ls", "-s", source, dir)).trimEnd().split("\n");
		const texts = (await sessionfs("cat", "-s", source, ...names.map(name => `${dir}/${name}`))).trimEnd().split("\n");
		const all = texts.map(text => ({ text, ...JSON.parse(text) })).map(e => ({ entry: e.id, line: Math.max(e.origin.line, ...(e.origin.lines ?? [])), text: e.text }));
		const first = all.find(e => e.text.includes("Count the herons"))!.line;
		return all.filter(e => e.line >= first).sort((a, b) => a.line - b.line);
	}

	/** What the client sends where the original's log ends at a line. */
	async function sentAt(line: number): Promise<Content[]> {
		putBack();
		const text = fs.readFileSync(file, "utf8").split("\n").slice(0, line).join("\n");
		fs.writeFileSync(file, `${text}\n`);
		return sentBy(id, prompt);
	}

	/** Forks the session at an entry, and returns the new id. */
	async function fork(entry: string): Promise<string> {
		putBack();
		const before = states(source);
		const command = await sessionfs("fork", "-s", source, `${id}#${entry}`);
		const others = changed(before, states(source));
		if (others.length > 0) throw new Error(`changed by the fork: ${others}`);
		return /--resume=([0-9a-f-]+)/.exec(command)![1];
	}

	const fileOf = (forked: string) => path.join(chats, fs.readdirSync(chats).find(name => name.includes(`-${forked.slice(0, 8)}.`))!);
	/** The log of a fork without its id and its time. */
	const logOf = (forked: string) => fs.readFileSync(fileOf(forked), "utf8").replaceAll(forked, "ID").replace(/"(startTime|lastUpdated)":"[^"]*"/g, "");

	await check("a fork at each entry: the client sends what it sends where the original ends there", async () => {
		const found: string[] = [], all = await entries(), made = new Map<number, string>();
		for (const { entry, line, text } of all) {
			const forked = await fork(entry), log = logOf(forked);
			const isKnown = made.has(line);
			if (isKnown) found.push(...expect(made.get(line) === log, `${entry}: the fork is another one than that at line ${line}`));
			if (isKnown) continue;
			made.set(line, log);
			const got = await sentBy(forked, prompt), want = await sentAt(line);
			found.push(...differences(entry, want, got));
			const turn = ["Two herons.", "A dot.", "", "One toad."].findIndex(said => said && text.includes(`"${said}"`));
			if (turn >= 0) found.push(...differences(`${entry}, in the original`, sent[turn].slice(0, -1), got.slice(0, -1)));
		}
		return [...expect(all.length >= 15, `it has ${all.length} entries`), ...found];
	});
	await check("a fork has no cost of its own, and leads to the original", async () => {
		const forked = await fork((await entries()).at(-1)!.entry);
		const usage = JSON.parse(await sessionfs("cat", "-s", source, `by-id/${forked}/usage.json`));
		const parent = JSON.parse(await sessionfs("cat", "-s", source, `by-id/${forked}/parent/header.json`));
		return [...expect(usage.own.totalTokens === 0 && usage.total.totalTokens > 0, JSON.stringify(usage.own)), ...expect(parent.id === id, `its parent is ${parent.id}`)];
	});
	await check("a fork that was resumed is deleted at the client's next start, as the command warns", async () => {
		const forked = await fork((await entries()).at(-1)!.entry), made = fileOf(forked);
		// Within the minute of its name the client would go on in the same file.
		fs.renameSync(made, made.replace(/session-.*T\d\d-\d\d/, "session-2026-01-01T00-00"));
		await sentBy(forked, prompt);
		await gemini("-p", "Hello");
		return expect(!fs.readdirSync(chats).some(name => name.includes(forked.slice(0, 8))), `${forked} is still there`);
	});
	model.stop();
}

/** The records of a log. */
const lines = (file: string): any[] => fs.readFileSync(file, "utf8").trimEnd().split("\n").map(line => JSON.parse(line));

/** In what the parts of two requests differ. */
function differences(what: string, want: Content[], got: Content[]): string[] {
	const [a, b] = [want, got].map(contents => contents.flatMap(({ role, parts }) => parts.map(part => JSON.stringify({ role, ...part }))));
	const at = Array.from({ length: Math.max(a.length, b.length) }, (_, i) => i).find(i => a[i] !== b[i]);
	return at === undefined ? [] : [`${what}: block ${at} of ${a.length} is ${b[at]?.slice(0, 200)}, and should be ${a[at]?.slice(0, 200)}`];
}
