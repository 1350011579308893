package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
)

// claude writes a session of Claude Code of about that many bytes into an agent directory, and returns its file, the number
// of entries that it has, and the last record. Answers are in two records, and what a tool gave back is there twice, as the
// client writes them.
func (g *generator) claude(agent, id, cwd string, size int) (file string, entries int, last string, err error) {
	file = filepath.Join(agent, "projects", strings.ReplaceAll(cwd, "/", "-"), id+".jsonl")
	var records bytes.Buffer
	record := func(typ, more string) {
		records.WriteString(g.claudeRecord(typ, id, cwd, last, more))
		last = g.ids[len(g.ids)-1]
	}
	for turn := 0; records.Len() < size; turn++ {
		text := func(size int) string { return string(g.text.draw(g.rng, size)) }
		if turn%8 == 0 {
			record("user", `"message":{"role":"user","content":"`+text(300)+`"}`)
			entries++
		}
		call, answer := fmt.Sprintf("toolu_%016x", g.rng.Uint64()), fmt.Sprintf("msg_%016x", g.rng.Uint64())
		for _, block := range [...]string{`{"type":"text","text":"` + text(500) + `"}`, `{"type":"tool_use","id":"` + call + `","name":"Bash","input":{"command":"` + text(200) + `"}}`} {
			record("assistant", fmt.Sprintf(`"requestId":"req_%d","message":{"model":"claude-opus-4-5","id":%q,"type":"message","role":"assistant","content":[%s],"stop_reason":null,`+
				`"usage":{"input_tokens":3,"cache_creation_input_tokens":900,"cache_read_input_tokens":40000,"output_tokens":%d,"service_tier":"standard"}}`, turn, answer, block, g.rng.IntN(900)))
		}
		output := text(1 + g.rng.IntN(4000))
		record("user", `"message":{"role":"user","content":[{"tool_use_id":"`+call+`","type":"tool_result","content":"`+output+`","is_error":false}]},"toolUseResult":{"stdout":"`+output+`","stderr":"","interrupted":false}`)
		entries += 2
	}
	return file, entries, last, write(file, records.Bytes(), 0o600)
}

// claudeRecord makes a record that follows another one.
func (g *generator) claudeRecord(typ, session, cwd, parent, more string) string {
	g.now = g.now.Add(1500e6)
	up := "null"
	if parent != "" {
		up = `"` + parent + `"`
	}
	uuid := fmt.Sprintf("%08x-7a11-4000-8000-%012x", g.rng.Uint32(), g.rng.Uint64()>>16)
	g.ids = append(g.ids, uuid)
	return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":%q,"sessionId":%q,"version":"2.1.39","gitBranch":"main","type":%q,%s,"uuid":%q,"timestamp":%q}`+"\n",
		up, cwd, session, typ, more, uuid, stamp(g.now))
}

// rowClaude: the first listing makes a session of another agent's records, and a change adds what is new. The peer parses and
// prints them.
func rowClaude(b *bench) []result {
	id, cwd := idOf(0), cwdOf(0)
	agent, size := filepath.Join(b.dir, "claude"), b.shrink(20*megabyte)
	g := newGenerator(20)
	file, entries, last, err := g.claude(agent, id, cwd, size)
	b.must(err)
	settle()
	what := fmt.Sprintf("a session of Claude Code of %d MB", size/megabyte)
	res := []result{
		{what: "first `ls -U entries \\| wc -l` after a mount, " + what, peer: "`jq -c .` over its file", ratio: 0.6},
		{what: "after another program's append, next `readlink leaf`, the same session", peer: "the same, nothing appended", limit: 0.05},
	}
	dir := "sessions/-home-dev-project-0/" + id
	return b.measured(agent, res, func(mt *mount) {
		ours := b.expect(mt.Path(dir), "ls -U entries | wc -l", entries)
		res[0].add(ours, b.time(agent, "jq -c . '"+file+"' >/dev/null"))
		b.must(appendLine(file, g.claudeRecord("user", id, cwd, last, `"message":{"role":"user","content":"more"}`)))
		last = g.ids[len(g.ids)-1]
		entries++
		took := b.expect(mt.Path(dir), "readlink leaf", "entries/"+last+".json")
		res[1].add(took, b.time(mt.Path(dir), "readlink leaf"))
	})
}

// rowSearchClaude: a word of a few of many sessions of Claude Code, none of which was looked at, beside a scan of their files.
func rowSearchClaude(b *bench) []result {
	n, size := b.shrink(storeSessions), b.shrink(storeBytes)
	agent, g := filepath.Join(b.dir, "claudes"), newGenerator(700)
	for i := range n {
		id, cwd := idOf(i), cwdOf(i)
		file, _, last, err := g.claude(agent, id, cwd, size/n)
		if b.must(err); i%(n/rareCopies) == 0 && i/(n/rareCopies) < rareCopies {
			b.must(appendLine(file, g.claudeRecord("user", id, cwd, last, `"message":{"role":"user","content":"`+rareWord+`"}`)))
		}
	}
	settle()
	what := fmt.Sprintf("%d sessions of Claude Code, %d MB", n, size/megabyte)
	res := []result{{what: "`ls search/WORD/sessions`, a word of five of " + what + ", cold daemon", peer: "`rg -F -i -l` over their files", ratio: 1.2}}
	return b.repeat(res, func() {
		raw := b.expect(agent, "rg -F -i -l "+rareWord+" projects | wc -l", rareCopies)
		b.withOurs(agent, &res[0], func(mt *mount) {
			res[0].add(b.expect(mt.At, "ls search/"+rareWord+"/sessions | wc -l", rareCopies), raw)
		})
	})
}
