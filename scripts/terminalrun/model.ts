// A stand-in for a model: a server on 127.0.0.1 that speaks what the client asks for of an OpenAI-compatible API.

/** What the model says to a prompt. */
export const answerTo = (prompt: string): string => `Answer to ${prompt}.`;

/** Prompts are words that can be found in whatever the client puts around them. */
const prompts = /\bprompt-[0-9]+\b/g;

let count = 100; // all as long: none is the beginning of another

/** A prompt that nobody has sent yet. */
export const nextPrompt = (): string => `prompt-${++count}`;

type Message = { role: string; content?: string | { text?: string }[] };

function textOf(message?: Message): string {
	const content = message?.content ?? "";
	return typeof content === "string" ? content : content.map(block => block.text ?? "").join("\n");
}

/** Answers with the events of one streamed completion. */
function completion(messages: Message[]): Response {
	const last = textOf(messages.filter(m => m.role === "user").at(-1));
	const chunk = { id: "completion", object: "chat.completion.chunk", created: 1, model: "stub" };
	const answer = { role: "assistant", content: answerTo(last.match(prompts)?.at(-1) ?? "nothing") };
	const events = [
		{ ...chunk, choices: [{ index: 0, delta: answer }] },
		{
			...chunk,
			choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
			usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
		},
	];
	const lines = [...events.map(e => JSON.stringify(e)), "[DONE]"];
	return new Response(lines.map(line => `data: ${line}\n\n`).join(""), {
		headers: { "content-type": "text/event-stream" },
	});
}

/** Starts the server and returns its base URL. It ends with this process. */
export function startModel(): string {
	const server = Bun.serve({
		hostname: "127.0.0.1",
		port: 0,
		async fetch(request) {
			if (!new URL(request.url).pathname.endsWith("/chat/completions")) {
				return Response.json({ object: "list", data: [{ id: "stub", object: "model" }] });
			}
			const body = (await request.json()) as { messages?: Message[] };
			return completion(body.messages ?? []);
		},
	});
	return `http://127.0.0.1:${server.port}/v1`;
}
