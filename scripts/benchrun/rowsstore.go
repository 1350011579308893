package main

import (
	"fmt"
	"path/filepath"
)

// rowMount: mounting must not read the store, so it costs the same for one session and for thousands.
func rowMount(b *bench) []result {
	n := b.shrink(10_000)
	many := b.manySessions(n, 4, n*4000)
	one := b.manySessions(1, 4, 4000)
	res := []result{
		{what: fmt.Sprintf("mount until ready, %d sessions: equal within noise", n), peer: "the same, 1 session"},
		{
			what:  fmt.Sprintf("resident memory after that and `ls sessions`, %d sessions", n),
			peer:  "the same, 1 session",
			unit:  megabytes,
			limit: 20 * megabyte,
		},
	}
	return b.repeat(res, func() {
		var took, resident [2]float64
		for i, agent := range [...]string{many, one} {
			b.withOurs(agent, &res[0], func(mt *mount) {
				took[i] = mt.Ready.Seconds()
				b.time(mt.At, "ls sessions >/dev/null")
				resident[i] = mt.Memory("VmRSS")
			})
		}
		res[0].add(took[0], took[1])
		res[1].add(resident[0], resident[1])
	})
}

// rowIndex: the list of all sessions, of a daemon that has seen none of them, and again.
func rowIndex(b *bench) []result {
	agent, files, what := b.store()
	peer := "client: SessionManager.listAll"
	res := []result{
		{what: "`cat index.jsonl`, " + what + ", cold daemon", peer: peer, ratio: 1},
		{what: "`cat index.jsonl`, " + what + ", again", peer: peer, ratio: 0.1},
	}
	return b.measured(agent, res, func(mt *mount) {
		const line = "cat index.jsonl | wc -l"
		first := b.expect(mt.At, line, len(files))
		again := b.expect(mt.At, line, len(files))
		client := b.clientTime(len(files), agent, "list")
		res[0].add(first, client)
		res[1].add(again, client)
	})
}

// rowMemory: the memory of the daemon after every name in the store was listed and every byte read. Once:
// memory is not timing.
func rowMemory(b *bench) []result {
	agent, _, what := b.store()
	s := b.session(hugeSession)
	res := []result{
		{what: "resident memory after `find` and `cat` over a store of " + what, unit: megabytes, limit: 150 * megabyte},
		{what: "resident memory after `ls entries`, " + s.describe(), unit: megabytes, limit: 150 * megabyte},
	}
	b.withOurs(agent, &res[0], func(mt *mount) {
		b.log("find and cat took %.3f s", b.time(mt.At, "find . -type f -print0 | xargs -0 cat >/dev/null"))
		res[0].add(mt.Memory("VmRSS"), 0)
	})
	b.withOurs(s.agent, &res[1], func(mt *mount) {
		b.time(mt.Path(s.dir), "ls entries >/dev/null")
		res[1].add(mt.Memory("VmRSS"), 0)
	})
	return res
}

// rowCosts: the costs of all sessions, of a daemon that has seen none of them, and again. The peer indexes them: reading
// leaf takes the whole index, and tells next to nothing.
func rowCosts(b *bench) []result {
	agent, files, what := b.store()
	peer := "`readlink leaf` in each session"
	res := []result{
		{what: "`cat usage.jsonl`, " + what + ", cold daemon", peer: peer, ratio: 1.5},
		{what: "`cat usage.jsonl`, " + what + ", after one session grew", peer: peer, ratio: 0.1},
	}
	grown := 0
	return b.repeat(res, func() {
		var indexed float64
		b.withOurs(agent, &res[0], func(mt *mount) {
			indexed = b.expect(mt.At, "find sessions -mindepth 3 -maxdepth 3 -name leaf -printf '%l\\n' | grep -c entries/", len(files))
		})
		b.withOurs(agent, &res[0], func(mt *mount) {
			for i := range res {
				res[i].add(b.time(mt.At, "cat usage.jsonl | grep -q claude"), indexed)
				grown++
				b.append(files[len(files)/2], foreignLine(fmt.Sprintf("zz%06d", grown), "", grown))
			}
		})
	})
}

// rowSearch: a word of a few sessions and a file that a few touched, of a daemon that has seen none of them, beside a
// scan of the raw files; and a word that is everywhere.
func rowSearch(b *bench) []result {
	agent, _, store := b.store()
	const peer = "`rg -F -i -l` over the raw files"
	res := []result{
		{what: "`ls search/WORD/sessions`, a word of five sessions of " + store + ", cold daemon", peer: peer, ratio: 1},
		{what: "the same again", peer: peer, ratio: 0.1},
		{what: "`ls by-file/FILE/sessions`, a file that five of them touched, cold daemon", peer: peer, ratio: 1.2},
		{what: "`cat search/WORD/results.tsv`, a word of almost every entry: the first 1,000, cold daemon", limit: 0.5},
	}
	return b.repeat(res, func() {
		raw := b.expect(agent, "rg -F -i -l "+rareWord+" sessions | wc -l", rareCopies)
		name := b.expect(agent, "rg -F -i -l "+filepath.Base(rareFile)+" sessions | wc -l", rareCopies)
		b.withOurs(agent, &res[0], func(mt *mount) {
			line := "ls search/" + rareWord + "/sessions | wc -l"
			res[0].add(b.expect(mt.At, line, rareCopies), raw)
			res[1].add(b.expect(mt.At, line, rareCopies), raw)
		})
		b.withOurs(agent, &res[2], func(mt *mount) {
			res[2].add(b.expect(mt.At, "ls by-file"+rareFile+"/sessions | wc -l", rareCopies), name)
		})
		b.withOurs(agent, &res[3], func(mt *mount) {
			res[3].add(b.expect(mt.At, "cat search/reader/results.tsv | grep -c sessions/", 1000), 0)
		})
	})
}
