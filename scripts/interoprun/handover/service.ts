// The models' services on this machine, which refuse what the real ones do. A prompt with "run" is answered with a text and two
// calls of the client's shell, all else with a text. It keeps what it was sent.

/** A part of a conversation: a text, an image or a call in order, and results by their calls. */
export type Part = { by: "user" | "model"; kind: "text" | "image" | "call"; said: string };
export type Talk = { parts: Part[]; results: string[]; wrong: string[] };

const plain = /^[a-zA-Z0-9_-]{1,64}$/;
const kinds: Record<string, string> = { "image/png": "iVBOR", "image/jpeg": "/9j/", "image/gif": "R0lG", "image/webp": "UklG" };
const mostImage = 5 << 20;

/** Text that a client adds by itself, and is no part of what was handed over. */
export const isAdded = (text: string) => /^<(system-reminder|environment_context|user_instructions|permissions|skills_instructions|collaboration_mode|apps_instructions|plugins_instructions|recommended_plugins|personality|multi_agent|session-guidance)|^# AGENTS|^Image file at path image-\d+\.|^What did we do so far\?$|^Attached media from tool result:$/.test(text.trimStart());

/** Takes the messages of a request apart, and says what a service would refuse. */
class Reader {
	readonly talk: Talk = { parts: [], results: [], wrong: [] };
	#calls: string[] = [];
	#open: string[] = [];

	#expect(holds: boolean, otherwise: string): void {
		if (!holds) this.talk.wrong.push(otherwise);
	}

	/** The end of a message in which no result can come any more. */
	#answered(): void {
		this.#expect(this.#open.length === 0, `calls without a result next to them: ${this.#open}`);
		this.#open = [];
	}

	text(by: Part["by"], said: string, isFree = true): void {
		if (isFree) this.#answered();
		this.#expect(said.trim() !== "", "an empty text");
		this.talk.parts.push({ by, kind: "text", said });
	}

	image(mediaType: string, data: string, into?: string[]): void {
		this.#expect(data.startsWith(kinds[mediaType] ?? "none"), `an image of ${mediaType} that begins ${data.slice(0, 5)}`);
		this.#expect(data.length <= mostImage, `an image of ${data.length} bytes`);
		if (into) into.push(`image ${data}`);
		else this.talk.parts.push({ by: "user", kind: "image", said: data });
	}

	call(id: string, name: string, args: unknown): void {
		this.#expect(plain.test(id) && plain.test(name), `a call ${name} ${id}`);
		this.#expect(!this.#calls.includes(id), `two calls ${id}`);
		this.#expect(typeof args === "object" && args !== null, `arguments ${args}`);
		this.#calls.push(id), this.#open.push(id);
		this.talk.parts.push({ by: "model", kind: "call", said: `${name} ${canonical(args)}` });
	}

	result(id: string, said: string[]): void {
		this.#expect(this.#open.includes(id), `a result of ${id}, which is not called before it`);
		this.#open = this.#open.filter(open => open !== id);
		this.talk.results[this.#calls.indexOf(id)] = said.filter(text => text.trim() !== "").join("\n");
	}

	end(): Talk {
		this.#answered();
		return this.talk;
	}

	dataURL(url: string, into?: string[]): void {
		const [, type, data] = url.match(/^data:([^;]*);base64,(.*)$/s) ?? ["", "", ""];
		this.image(type, data, into);
	}
}

/** A value with its keys sorted. */
export const canonical = (v: any): string =>
	JSON.stringify(v, (_, value) => (value && typeof value === "object" && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).sort()) : value));

const listOf = (content: any): any[] => (typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []));

/** Anthropic's messages. */
function ofMessages(asked: any): Talk {
	const r = new Reader();
	if (asked.messages[0]?.role !== "user") r.talk.wrong.push("no person begins");
	for (const m of asked.messages) {
		if (m.role === "system") continue; // the client's own
		const by = m.role === "assistant" ? "model" : "user", blocks = listOf(m.content);
		for (const b of blocks.filter((b: any) => b.type === "tool_result")) {
			const said: string[] = [];
			for (const part of typeof b.content === "string" ? (b.content === "" ? [] : listOf(b.content)) : listOf(b.content)) {
				if (part.type === "image") r.image(part.source.media_type, part.source.data, said);
				else said.push(part.text);
				if (part.type === "text" && part.text === "" || b.is_error && part.type !== "text") r.talk.wrong.push("a result that is refused");
			}
			r.result(b.tool_use_id, said);
		}
		for (const b of blocks) {
			if (b.type === "text") r.text(by, b.text, by === "user");
			else if (b.type === "image") r.image(b.source.media_type, b.source.data);
			else if (b.type === "tool_use") r.call(b.id, b.name, b.input);
			else if (b.type === "thinking" && !b.signature) r.talk.wrong.push("thinking without a signature");
		}
	}
	return r.end();
}

/** OpenAI's responses. */
function ofResponses(asked: any): Talk {
	const r = new Reader();
	for (const i of asked.input) {
		if ((i.type ?? "message") === "message" && i.role !== "developer" && i.role !== "system") {
			for (const c of listOf(i.content)) c.image_url ? r.dataURL(c.image_url) : r.text(i.role === "assistant" ? "model" : "user", c.text, i.role === "user");
		} else if (i.type === "function_call") {
			r.call(i.call_id, i.name, JSON.parse(i.arguments));
		} else if (i.type === "function_call_output") {
			const said: string[] = [];
			for (const part of typeof i.output === "string" ? [{ text: i.output }] : i.output) part.image_url ? r.dataURL(part.image_url, said) : said.push(part.text);
			r.result(i.call_id, said);
		}
	}
	return r.end();
}

/** OpenAI's chat completions. A result's images follow it in a message of the person. */
function ofChat(asked: any): Talk {
	const r = new Reader();
	for (const m of asked.messages) {
		if (m.role === "system" || m.role === "developer") continue;
		const texts = listOf(m.content);
		if (m.role === "tool") r.result(m.tool_call_id, texts.map(b => b.text ?? ""));
		else for (const b of texts) b.image_url ? r.dataURL(b.image_url.url) : b.text === "" || r.text(m.role === "assistant" ? "model" : "user", b.text, m.role !== "assistant");
		for (const c of m.tool_calls ?? []) r.call(c.id, c.function.name, JSON.parse(c.function.arguments));
	}
	return r.end();
}

export class Service {
	/** What was sent last by a client that has tools. */
	last?: Talk;
	#count = 0;
	#server = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 60, fetch: request => this.#answer(request) });

	get url(): string {
		return `http://127.0.0.1:${this.#server.port}`;
	}

	stop(): void {
		this.#server.stop(true);
	}

	async #answer(request: Request): Promise<Response> {
		const { pathname } = new URL(request.url);
		if (request.method !== "POST") return Response.json({ data: [], models: [] });
		if (pathname.endsWith("/count_tokens")) return Response.json({ input_tokens: 100 });
		const read = Object.entries({ "/messages": ofMessages, "/responses": ofResponses, "/chat/completions": ofChat }).find(([end]) => pathname.endsWith(end))?.[1];
		if (!read) return new Response("no such path", { status: 404 });
		const asked = await request.json(), hasTools = (asked.tools ?? []).length > 0, talk = read(asked);
		if (hasTools) this.last = talk;
		if (talk.wrong.length > 0) return Response.json({ type: "error", error: { type: "invalid_request_error", message: talk.wrong.join("; ") } }, { status: 400 });
		const n = ++this.#count, prompt = talk.parts.filter(p => p.kind === "text" && !isAdded(p.said)).at(-1);
		const runs = hasTools && prompt?.by === "user" && prompt.said.includes("run both") && this.#isUnanswered(asked);
		if (pathname.endsWith("/messages")) return messages(asked, n, runs);
		return pathname.endsWith("/responses") ? responses(asked, n, runs) : chat(asked, n, runs);
	}

	/** Whether the last thing is the prompt, and no result. */
	#isUnanswered(asked: any): boolean {
		const last = (asked.messages ?? asked.input).findLast((m: any) => m.role !== "system");
		return last.role !== "tool" && !last.type?.endsWith("output") && !(Array.isArray(last.content) && last.content.some((b: any) => b.type === "tool_result"));
	}
}

const commands = (n: number) => [`echo one ${n}`, `echo two ${n}`];

function messages(asked: any, n: number, runs: boolean): Response {
	const calls = runs ? commands(n).map((command, i) => ({ type: "tool_use", id: `toolu_${n}_${i}`, name: "Bash", input: { command, description: "Echo" } })) : [];
	const content = [{ type: "text", text: `Answer ${n}.` }, ...calls] as any[];
	const usage = { input_tokens: 100, output_tokens: 10, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
	const stop_reason = runs ? "tool_use" : "end_turn", message = { id: `msg_${n}`, type: "message", role: "assistant", model: asked.model, content, stop_reason, usage };
	if (!asked.stream) return Response.json(message);
	const blocks = content.flatMap((b, index) => [
		{ type: "content_block_start", index, content_block: b.type === "text" ? { type: "text", text: "" } : { ...b, input: {} } },
		{ type: "content_block_delta", index, delta: b.type === "text" ? { type: "text_delta", text: b.text } : { type: "input_json_delta", partial_json: JSON.stringify(b.input) } },
		{ type: "content_block_stop", index },
	]);
	return events([{ type: "message_start", message: { ...message, content: [], stop_reason: null } }, ...blocks, { type: "message_delta", delta: { stop_reason }, usage }, { type: "message_stop" }]);
}

function responses(asked: any, n: number, runs: boolean): Response {
	const isCodex = asked.tools?.some((tool: any) => tool.name === "exec_command");
	const shell = (command: string) => (isCodex ? { name: "exec_command", arguments: JSON.stringify({ cmd: command }) } : { name: "bash", arguments: JSON.stringify({ command, description: "Echo" }) });
	const calls = runs ? commands(n).map((command, i) => ({ type: "function_call", id: `fc_${n}_${i}`, call_id: `call_${n}_${i}`, ...shell(command) })) : [];
	const output = [{ type: "message", role: "assistant", id: `msg_${n}`, content: [{ type: "output_text", text: `Answer ${n}.` }] }, ...calls];
	const usage = { input_tokens: 100, input_tokens_details: { cached_tokens: 0 }, output_tokens: 10, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 110 };
	return events([
		{ type: "response.created", response: { id: `resp_${n}` } },
		...output.map((item, output_index) => ({ type: "response.output_item.done", output_index, item })),
		{ type: "response.completed", response: { id: `resp_${n}`, status: "completed", output, usage } },
	]);
}

function chat(asked: any, n: number, runs: boolean): Response {
	const calls = runs ? commands(n).map((command, index) => ({ index, id: `call_${n}_${index}`, type: "function", function: { name: "bash", arguments: JSON.stringify({ command }) } })) : [];
	const delta = { role: "assistant", content: `Answer ${n}.`, ...(runs ? { tool_calls: calls } : {}) };
	const chunk = { id: `chat_${n}`, object: "chat.completion.chunk", created: 1, model: asked.model }, usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
	return events([
		{ ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
		{ ...chunk, choices: [{ index: 0, delta: {}, finish_reason: runs ? "tool_calls" : "stop" }], usage },
	], "data: [DONE]\n\n");
}

/** A stream of events. */
function events(list: object[], end = ""): Response {
	const text = list.map(e => ("type" in e ? `event: ${e.type}\n` : "") + `data: ${JSON.stringify(e)}\n\n`).join("") + end;
	return new Response(text, { headers: { "content-type": "text/event-stream" } });
}
