// A client that is driven by JSON-RPC over its input and output, a message a line or, as editors' servers have it, behind a header with its length.

export type Message = { id?: number; method?: string; params?: any; result?: any; error?: { message: string } };

export class RPC {
	readonly #process;
	readonly #waiting: { want: (message: Message) => boolean; take: (message: Message) => void }[] = [];
	#calls = 0;

	constructor(command: string[], cwd: string, env: Record<string, string | undefined>, readonly hasHeaders = false) {
		this.#process = Bun.spawn(command, { cwd, env, stdin: "pipe", stdout: "pipe", stderr: "ignore" });
		void this.#read();
	}

	async #read(): Promise<void> {
		let bytes = Buffer.alloc(0);
		for await (const part of this.#process.stdout) {
			bytes = Buffer.concat([bytes, part]);
			for (let end = this.#endOf(bytes); end.next <= bytes.length; end = this.#endOf(bytes)) {
				this.#take(JSON.parse(bytes.subarray(end.begin, end.next).toString()));
				bytes = bytes.subarray(end.next);
			}
		}
	}

	/** Where the first message begins, and the next one. That is behind all bytes where the first is not whole. */
	#endOf(bytes: Buffer): { begin: number; next: number } {
		const missing = { begin: 0, next: Infinity };
		if (!this.hasHeaders) return bytes.includes("\n") ? { begin: 0, next: bytes.indexOf("\n") + 1 } : missing;
		const begin = bytes.indexOf("\r\n\r\n") + 4;
		if (begin < 4) return missing;
		const [, length] = bytes.subarray(0, begin).toString().match(/Content-Length: (\d+)/i)!;
		return { begin, next: begin + Number(length) };
	}

	#take(message: Message): void {
		const at = this.#waiting.findIndex(w => w.want(message));
		if (at >= 0) this.#waiting.splice(at, 1)[0].take(message);
	}

	/** The next message that is wanted. */
	next(want: (message: Message) => boolean): Promise<Message> {
		return new Promise(take => this.#waiting.push({ want, take }));
	}

	send(message: object): void {
		const text = JSON.stringify(this.hasHeaders ? { jsonrpc: "2.0", ...message } : message);
		this.#process.stdin.write(this.hasHeaders ? `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}` : `${text}\n`);
		this.#process.stdin.flush();
	}

	async call(method: string, params: object = {}): Promise<any> {
		const id = ++this.#calls, answer = this.next(message => message.id === id && !message.method);
		this.send({ id, method, params });
		const { result, error } = await answer;
		if (error) throw new Error(`${method}: ${error.message}`);
		return result;
	}

	async end(): Promise<void> {
		this.#process.stdin.end();
		await this.#process.exited;
	}

	kill(): void {
		this.#process.kill("SIGKILL");
	}
}
