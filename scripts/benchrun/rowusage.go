package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sessionfs/sessioncore/agents/claude/claudetest"
)

// rowUsage adds up a store beside ccusage, for the first time and again. Both must have each model's tokens and, with the prices that come along, agree on its
// dollars to the cent.
func rowUsage(b *bench) []result {
	home, _, truth, what := b.claudeStore("bill", 620, 500*megabyte)
	peer := "`ccusage claude daily --offline`"
	res := []result{
		{what: "`sessionfs stats`, " + what + ", processor time", peer: peer, ratio: 0.75},
		{what: "`sessionfs stats`, again", peer: peer, ratio: 0.25},
	}
	line := b.daemon[0] + " stats -s " + home + " --by model --json"
	kept := filepath.Join(b.dir, "billcache")
	b.must(os.Mkdir(kept, 0o700))
	_, _ = b.used(home, "XDG_CACHE_HOME="+kept, line)
	return b.repeat(res, func() {
		config := "CLAUDE_CONFIG_DIR=" + home
		ours, used := b.used(home, config+" SESSIONFS_CACHE=none", line)
		b.checkTokens(truth, ours)
		again, usedAgain := b.used(home, config+" XDG_CACHE_HOME="+kept, line)
		b.checkTokens(truth, again)
		theirs := 0.0
		if b.ccusage != "" {
			_, peer := b.used(home, config, b.ccusage+" claude daily --json --offline --breakdown >bill.json 2>/dev/null")
			b.checkDollars(home, ours)
			theirs = peer.Processor
		}
		res[0].add(used.Processor, theirs)
		res[0].peak = max(res[0].peak, used.Peak)
		res[1].add(usedAgain.Processor, theirs)
		res[1].peak = max(res[1].peak, usedAgain.Peak)
	})
}

// rowCommands asks for the calls that wrote a file, and copies all sessions for the first time. Before it, one call wrote it.
func rowCommands(b *bench) []result {
	home, _, _, what := b.claudeStore("bill", 620, 500*megabyte)
	file := filepath.Join(b.dir, "blamed.go")
	ours := "CLAUDE_CONFIG_DIR=" + home + " " + b.daemon[0]
	id := idOf(0)
	prompt, parent := claudeRecord("user", id, "", `"message":{"role":"user","content":"write"}`)
	answer, _ := claudeRecord("assistant", id, parent, writeCall(file))
	b.must(write(filepath.Join(home, "projects/-rare", id+".jsonl"), []byte(prompt+answer), 0o600))
	b.must(write(file, []byte("package rare\n"), 0o600))
	settle()
	res := []result{
		{what: "`sessionfs blame FILE`, a file that one call wrote, " + what, peer: "`rg -F -l FILE` over their files"},
		{what: "`sessionfs keep`, all of them for the first time", peer: "`cp -r`"},
		{what: "`sessionfs export --all DIR`, a page for each", peer: "`jq -c .` over their files"},
	}
	return b.repeat(res, func() {
		blamed := b.expect(b.dir, ours+" blame -s "+home+" "+file+" | cut -f 4", "claude")
		res[0].add(blamed, b.expect(home, "rg -F -l "+file+" projects | wc -l", 1))
		kept := b.time(b.dir, ours+" keep --to kept")
		res[1].add(kept, b.time(b.dir, "cp -r bill/projects copied"))
		exported := b.time(b.dir, ours+" export -s "+home+" --all pages")
		res[2].add(exported, b.time(home, "jq -c . projects/*/*.jsonl >/dev/null"))
		b.time(b.dir, "rm -r kept copied pages && sync") // the next run makes them anew
	})
}

// sums are the members of a line of stats --json that are compared.
type sums struct {
	Model                                string
	Answers                              int64 `json:"assistantMessages"`
	Input, Output, CacheRead, CacheWrite int64
	Cost                                 struct{ Total float64 }
}

// byModel reads the lines of stats --json.
func (b *bench) byModel(lines string) map[string]sums {
	found := map[string]sums{}
	for line := range strings.Lines(lines) {
		var s sums
		b.must(json.Unmarshal([]byte(line), &s))
		found[filepath.Base(s.Model)] = s // without the provider
	}
	return found
}

// checkTokens fails where a model's answers or tokens are not those that the store was made with.
func (b *bench) checkTokens(truth claudetest.Truth, lines string) {
	found := b.byModel(lines)
	for model, want := range truth.ByModel() {
		s := found[model]
		counted := claudetest.Tokens{
			Answers: s.Answers,
			Input:   s.Input,
			Output:  s.Output,
			Read:    s.CacheRead,
			Write:   s.CacheWrite,
			Hour:    want.Hour, // which stats does not print
		}
		if counted != *want {
			b.fail("stats has %+v of %s instead of %+v", counted, model, *want)
		}
	}
}

// checkDollars fails where a model's dollars differ from ccusage's by a cent.
func (b *bench) checkDollars(home, lines string) {
	for model, s := range b.byModel(lines) {
		theirs := 0.0
		text, _ := b.output(home, `jq '[.daily[].modelBreakdowns[] | select(.modelName == "`+model+`").cost] | add // 0' bill.json`)
		_, err := fmt.Sscan(text, &theirs)
		const cent = 0.01
		if err != nil || math.Abs(s.Cost.Total-theirs) >= cent {
			b.fail("%s cost %.4f, by ccusage %.4f", model, s.Cost.Total, theirs)
		}
	}
}

// rowManyClaude reads the files that are about all sessions of a large store of Claude Code, ten times in turn, while the
// agent writes to ten of them, in a daemon with the least memory. Once: memory is not timing.
func rowManyClaude(b *bench) []result {
	home, files, _, what := b.claudeStore("many-claude", 10_000, 5000*megabyte)
	n := len(files)
	const peak = "peak memory with `-o memory=64m`, `usage.jsonl`, `search/`, `lost.tsv` and `index.jsonl` ten times, "
	res := []result{{what: peak + what, unit: megabytes, limit: 150 * megabyte}}
	daemon := append(slices.Clone(b.daemon), "-o", "memory=64m")
	b.withMount(func(at string) []string { return append(daemon, home, at) }, func(mt *mount) {
		for pass := range 10 {
			b.time(mt.At, "cat usage.jsonl >/dev/null && ls search/"+rareWord+"/sessions && cat lost.tsv >/dev/null")
			b.expect(mt.At, "cat index.jsonl | wc -l", n)
			for _, file := range files[:min(10, n)] {
				b.say(file, "", fmt.Sprint("pass ", pass))
			}
		}
		res[0].add(mt.Memory("VmHWM"), 0)
	})
	return res
}
