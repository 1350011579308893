// A model on this machine that answers Codex as the provider's API does. A prompt with "run" is answered with two calls of the
// shell, one with "patch" with a patch, all else with a text. It keeps what it was sent.
type Item = { type: string; role?: string; [key: string]: any };
export type Asked = { input: Item[]; tools?: { type: string; name?: string }[] };

/** The tokens of an answer. */
export const spent = 1050;

export class Model {
	readonly asked: Asked[] = [];
	readonly #server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: request => this.#answer(request) });

	get url(): string {
		return `http://127.0.0.1:${this.#server.port}/v1`;
	}

	stop(): void {
		this.#server.stop(true);
	}

	async #answer(request: Request): Promise<Response> {
		if (request.method !== "POST") return Response.json({ models: [], data: [] });
		const asked = (await request.json()) as Asked, n = this.asked.push(asked);
		const output = [{ type: "reasoning", id: `rs_${n}`, summary: [{ type: "summary_text", text: `Thought ${n}` }], encrypted_content: `x${n}` }, ...said(asked, n)];
		const usage = { input_tokens: 1000, input_tokens_details: { cached_tokens: 500 }, output_tokens: 50, output_tokens_details: { reasoning_tokens: 10 }, total_tokens: spent };
		const events = [
			{ type: "response.created", response: { id: `resp_${n}` } },
			...output.map((item, output_index) => ({ type: "response.output_item.done", output_index, item })),
			{ type: "response.completed", response: { id: `resp_${n}`, usage } },
		];
		return new Response(events.map(e => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`).join(""), { headers: { "content-type": "text/event-stream" } });
	}
}

function said(asked: Asked, n: number): object[] {
	const last = asked.input.at(-1), prompt = last?.role === "user" ? JSON.stringify(last.content) : "";
	const text = (text: string) => ({ type: "message", role: "assistant", id: `msg_${n}`, content: [{ type: "output_text", text }] });
	const call = (part: string, cmd: string) => ({ type: "function_call", id: `fc_${n}${part}`, call_id: `call_${n}${part}`, name: "exec_command", arguments: JSON.stringify({ cmd }) });
	const patch = `*** Begin Patch\n*** Add File: new${n}.txt\n+hello\n*** End Patch\n`;
	if (prompt.includes("run")) return [text(`I look first (${n}).`), call("a", "echo hello"), call("b", "echo there")];
	if (!prompt.includes("patch")) return [text(`Answer ${n}.`)];
	if (asked.tools?.some(t => t.name === "apply_patch")) return [{ type: "custom_tool_call", id: `ct_${n}`, call_id: `call_${n}`, name: "apply_patch", input: patch }];
	return [call("", `apply_patch <<'EOF'\n${patch}EOF`)];
}
