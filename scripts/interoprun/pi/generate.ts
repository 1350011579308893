// Sessions as chance would have them, from a seed, made by pi itself.
import { assistant, image, oddText as odd, text, toolCall, toolResult, user } from "../messages";
import type { Client, Manager } from "./client";

/** Numbers as chance would have them: xorshift. */
export class Chance {
	#state: number;
	constructor(seed: number) {
		this.#state = (seed * 2654435761) | 1;
		for (let i = 0; i < 8; i++) this.below(2);
	}
	below(n: number): number {
		this.#state ^= this.#state << 13;
		this.#state ^= this.#state >>> 17;
		this.#state ^= this.#state << 5;
		return (this.#state >>> 0) % n;
	}
	of<T>(list: readonly T[]): T {
		return list[this.below(list.length)];
	}
	/** true once in n times */
	once(n: number): boolean {
		return this.below(n) === 0;
	}
}

/** pi's list since 0.87 loses a line in which there is a line separator: it reads files by Node's readline. */
const oddText = odd.replaceAll("\u2028", "");

/** What something cost, in dollars that no binary fraction is. */
export function usage(chance: Chance): object {
	const [input, output, cacheRead, cacheWrite] = [900, 300, 5000, 2000].map(n => chance.below(n));
	const cost = { input: input * 3e-6, output: output * 15e-6, cacheRead: cacheRead * 3e-7, cacheWrite: cacheWrite * 3.75e-6 };
	return {
		input, output, cacheRead, cacheWrite, totalTokens: input + output + cacheRead + cacheWrite,
		cost: { ...cost, total: cost.input + cost.output + cost.cacheRead + cost.cacheWrite },
	};
}

const says = (chance: Chance) => chance.of(["Mind the tide.", oddText, "", "# A heading\n\nand text", "x".repeat(3000), "Ä 🦊 ß"]);

const content = (chance: Chance) => chance.of([() => says(chance), () => [text(says(chance))], () => [text("see"), image(900), text(says(chance))]])();

const models = [["anthropic", "claude-x"], ["openai", "gpt-9"], ["local", "llama/7b"]] as const;

function answer(chance: Chance): object {
	const [provider, model] = chance.of(models);
	const blocks = [{ type: "thinking", thinking: "Hm.", thinkingSignature: "c2ln" }, text(says(chance)), toolCall("call_1", "bash", { command: "ls" })];
	return assistant(blocks.slice(chance.below(3)), {
		provider, model, usage: usage(chance), stopReason: chance.of(["stop", "toolUse", "error", "aborted"]),
		...(chance.once(4) && { responseModel: `${model}-served` }),
	});
}

/** The messages that pi puts into entries. */
function message(chance: Chance, newer: boolean): object {
	const kinds = [
		() => user(content(chance)),
		() => answer(chance),
		() => answer(chance),
		() => toolResult("call_1", chance.of(["bash", "mine"]), [text(says(chance))], newer && chance.once(2) ? { usage: usage(chance) } : { details: { exit: 0 } }),
		() => ({ role: "bashExecution", command: "ls", output: says(chance), exitCode: 0, cancelled: false, truncated: false, timestamp: 5 }),
		() => ({ role: "custom", customType: "mine", content: content(chance), display: true, timestamp: 6 }),
		...(newer ? [() => system(chance)] : []),
	];
	return chance.of(kinds)();
}

function system(chance: Chance): object {
	return {
		role: "system",
		content: chance.once(2) ? "" : says(chance),
		sections: chance.once(3) ? { cwd: null, skills: says(chance) } : { preamble: says(chance), cwd: "/w" },
		...(chance.once(2) && { toolsAdded: [{ name: "read", description: "d", parameters: {} }], toolsRemoved: [{ name: "write" }] }),
		timestamp: 7,
	};
}

const names = ["Tide tables", "  padded  ", "two\nlines", "", "   ", oddText, "ü".repeat(300)];

/** One thing that a user, an extension or the agent does. */
function step(chance: Chance, m: Manager, newer: boolean): void {
	const ids = m.getEntries().map(e => e.id);
	const onBranch = m.getBranch().map(e => e.id);
	const cost = () => (newer && chance.once(2) ? usage(chance) : undefined);
	const kept = () => (newer && chance.once(4) ? undefined : chance.of(chance.once(5) ? ids : onBranch));
	const steps: (() => unknown)[] = [
		() => m.appendThinkingLevelChange(chance.of(["off", "low", "high"])),
		() => m.appendModelChange(...chance.of(models)),
		() => m.appendCompaction(says(chance), kept(), chance.below(1e5), { readFiles: ["a"], modifiedFiles: [] }, chance.of([undefined, true]), cost()),
		() => m.appendCustomEntry("mine", { n: chance.below(9) }),
		() => m.appendCustomMessageEntry("mine", content(chance), chance.once(2), chance.of([undefined, { a: 1 }])),
		() => m.appendSessionInfo(chance.of(names)),
		() => m.appendLabelChange(chance.of(ids), chance.of(["good", "so so", undefined, "bad"])),
		() => m.branch(chance.of(ids)),
		() => m.branchWithSummary(chance.once(6) ? null : chance.of(ids), says(chance), undefined, chance.of([undefined, true]), cost()),
		() => chance.once(5) && m.resetLeaf(),
	];
	if (newer) {
		const editable = m.getBranch().filter(e => e.type === "custom_message" || ["user", "assistant", "toolResult"].includes(e.message?.role)).map(e => e.id);
		const replacement = () => chance.of([null, { content: says(chance) }, { content: [text(says(chance))] }]);
		steps.push(
			() => m.appendUsage!("cache_warm", ...chance.of(models), usage(chance), chance.of([undefined, "a note"])),
			() => editable.length > 0 && m.appendContextEdit!(chance.of(editable), replacement()),
			() => editable.length > 0 && m.appendContextEdit!(chance.of(editable), replacement()),
		);
	}
	if (onBranch.length === 0 || chance.once(2)) m.appendMessage(message(chance, newer));
	else chance.of(steps)();
}

/** Makes a session of pi in a working directory. */
export function generate(client: Client, cwd: string, seed: number): Manager {
	const chance = new Chance(seed);
	const manager = client.create(cwd, chance.once(3) ? { id: `job_${seed}.a` } : undefined);
	if (client.newer && !chance.once(4)) manager.appendMessage(system(chance));
	if (chance.once(3)) manager.appendSessionInfo("named at once");
	manager.appendMessage(user(says(chance)));
	manager.appendMessage(answer(chance));
	for (let n = 5 + chance.below(45); n > 0; n--) step(chance, manager, client.newer);
	return manager;
}
