// A model on this machine that calls the tools it is told to, one after the other or several at once, in the way of the
// provider's API that a client speaks. It answers in the client's own order: a step each request, and a text at the end.

/** A call of a tool, with arguments or, for Codex, a text; a namespace is Codex's too. */
export interface Call {
	tool: string;
	arguments?: object;
	input?: string;
	namespace?: string;
}

/** A call, several at once behind a text, a function that makes one of what the model was sent last, such as the text that a read has shown, or a text, with which a subagent ends. */
export type Step = Call | Call[] | ((shown: string) => Call) | "answer";

/** What the model says at once: a thought, then a text, then calls. */
interface Said {
	thought?: string;
	text?: string;
	calls: Call[];
}

const textOf = (content: unknown): string =>
	typeof content === "string" ? content : Array.isArray(content) ? content.map(c => textOf(c?.text ?? c?.content ?? c?.output ?? "")).join("\n") : "";

/** The answers to one prompt. Requests that have no tools, such as for a title, get a text alone. */
export class StandIn {
	readonly asked: any[] = [];
	/** Whether each answer begins with a thought; not in chat completions. */
	thinks = false;
	#steps: Step[] = [];
	#server = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 60, fetch: request => this.#answer(request) });

	/** The address, without a path. */
	get url(): string {
		return `http://127.0.0.1:${this.#server.port}`;
	}

	/** Sets the calls that the next prompt is answered with. */
	will(...steps: Step[]): void {
		this.#steps = steps;
	}

	/** Steps that the client did not ask for. */
	get left(): number {
		return this.#steps.length;
	}

	stop(): void {
		this.#server.stop(true);
	}

	#next(shown: string, hasTools: boolean): Said {
		const n = this.asked.length, step = hasTools ? this.#steps.shift() : undefined;
		const thought = this.thinks && hasTools ? `Thought ${n}.` : undefined;
		if (!step || step === "answer") return { thought, text: `Answer ${n}.`, calls: [] };
		if (Array.isArray(step)) return { thought, text: `Calls ${n}.`, calls: step };
		return { thought, calls: [typeof step === "function" ? step(shown) : step] };
	}

	async #answer(request: Request): Promise<Response> {
		const { pathname } = new URL(request.url);
		if (request.method !== "POST") return Response.json({ data: [], models: [] });
		const asked = await request.json().catch(() => ({}));
		this.asked.push(asked);
		if (pathname.endsWith("/chat/completions")) return this.#chat(asked);
		if (pathname.endsWith("/responses")) return this.#responses(asked);
		if (pathname.endsWith("/messages")) return this.#messages(asked);
		if (pathname.endsWith(":streamGenerateContent")) return this.#contents(asked);
		return new Response("no such path", { status: 404 });
	}

	/** OpenAI's chat completions: pi, omp. */
	#chat(asked: any): Response {
		const n = this.asked.length, last = asked.messages.at(-1);
		const { text, calls } = this.#next(textOf(last?.content), (asked.tools ?? []).length > 0);
		const tool_calls = calls.map((call, index) => ({ index, id: idOf(n, index), type: "function", function: { name: call.tool, arguments: JSON.stringify(call.arguments) } }));
		const delta = { role: "assistant", ...(text ? { content: text } : {}), ...(calls.length > 0 ? { tool_calls } : {}) };
		const chunk = { id: `chat_${n}`, object: "chat.completion.chunk", created: 1, model: asked.model };
		const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
		return events([
			{ ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
			{ ...chunk, choices: [{ index: 0, delta: {}, finish_reason: calls.length > 0 ? "tool_calls" : "stop" }], usage },
		], "data: [DONE]\n\n");
	}

	/** OpenAI's responses: Codex, and Copilot, which takes the answer from the last event. */
	#responses(asked: any): Response {
		const n = this.asked.length, { thought, text, calls } = this.#next(textOf(asked.input.at(-1)?.output), true);
		const output: object[] = [];
		if (thought) output.push({ type: "reasoning", id: `rs_${n}`, summary: [{ type: "summary_text", text: thought }], encrypted_content: `sealed ${n}` });
		if (text) output.push({ type: "message", role: "assistant", id: `item_${n}`, content: [{ type: "output_text", text }] });
		for (const [at, call] of calls.entries()) {
			const id = { id: `item_${idOf(n, at)}`, call_id: idOf(n, at), namespace: call.namespace, name: call.tool };
			output.push(call.input === undefined ? { type: "function_call", ...id, arguments: JSON.stringify(call.arguments) } : { type: "custom_tool_call", ...id, input: call.input });
		}
		const usage = { input_tokens: 100, input_tokens_details: { cached_tokens: 0 }, output_tokens: 10, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 110 };
		return events([
			{ type: "response.created", response: { id: `resp_${n}` } },
			...output.map((item, output_index) => ({ type: "response.output_item.done", output_index, item })),
			{ type: "response.completed", response: { id: `resp_${n}`, status: "completed", output, usage } },
		]);
	}

	/** Anthropic's messages: Claude Code. */
	#messages(asked: any): Response {
		const n = this.asked.length, { thought, text, calls } = this.#next(textOf(asked.messages.at(-1)?.content), (asked.tools ?? []).length > 0);
		const blocks: { block: object; deltas: object[] }[] = [];
		if (thought) blocks.push({ block: { type: "thinking", thinking: "", signature: "" }, deltas: [{ type: "thinking_delta", thinking: thought }, { type: "signature_delta", signature: `sealed${n}` }] });
		if (text) blocks.push({ block: { type: "text", text: "" }, deltas: [{ type: "text_delta", text }] });
		for (const [at, call] of calls.entries()) {
			blocks.push({ block: { type: "tool_use", id: idOf(n, at), name: call.tool, input: {} }, deltas: [{ type: "input_json_delta", partial_json: JSON.stringify(call.arguments) }] });
		}
		const usage = { input_tokens: 100, output_tokens: 10, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
		const message = { id: `msg_${n}`, type: "message", role: "assistant", model: asked.model, content: [], stop_reason: null, usage };
		return events([
			{ type: "message_start", message },
			...blocks.flatMap(({ block, deltas }, index) => [
				{ type: "content_block_start", index, content_block: block },
				...deltas.map(delta => ({ type: "content_block_delta", index, delta })),
				{ type: "content_block_stop", index },
			]),
			{ type: "message_delta", delta: { stop_reason: calls.length > 0 ? "tool_use" : "end_turn" }, usage },
			{ type: "message_stop" },
		]);
	}

	/** Google's contents: Gemini CLI. */
	#contents(asked: any): Response {
		const last = asked.contents?.at(-1)?.parts ?? [], { text, calls } = this.#next(JSON.stringify(last), (asked.tools ?? []).length > 0);
		const parts = [...(text ? [{ text }] : []), ...calls.map(call => ({ functionCall: { name: call.tool, args: call.arguments } }))];
		const usageMetadata = { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 };
		return events([{ candidates: [{ index: 0, content: { role: "model", parts }, finishReason: "STOP" }], usageMetadata, modelVersion: "stub" }]);
	}
}

/** The id of a call of an answer. */
const idOf = (n: number, call: number) => `call_${n}_${call}`;

/** A stream of events. */
function events(list: object[], end = ""): Response {
	const text = list.map(e => ("type" in e ? `event: ${e.type}\n` : "") + `data: ${JSON.stringify(e)}\n\n`).join("") + end;
	return new Response(text, { headers: { "content-type": "text/event-stream" } });
}
