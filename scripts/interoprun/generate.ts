/** Numbers as chance would have them, from a seed: xorshift. */
export class Chance {
	#state: number;
	constructor(seed: number) {
		this.#state = (seed * 2654435761) >>> 0 || 1;
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
