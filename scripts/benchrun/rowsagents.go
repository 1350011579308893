package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"sessionfs/sessioncore/agents/claude/claudetest"
)

// claudeStore makes a store of Claude Code with a known bill, and returns its directory, its session files, the bill,
// and its description.
func (b *bench) claudeStore(name string, n, size int) (home string, files []string, truth claudetest.Truth, what string) {
	home = filepath.Join(b.dir, name)
	n = b.shrink(n)
	size = b.shrink(size)
	truth, err := claudetest.Make(home, claudetest.Spec{Sessions: n, Bytes: size})
	b.must(err)
	files, err = filepath.Glob(filepath.Join(home, "projects/*/*.jsonl"))
	b.must(err)
	settle()
	return home, files, truth, fmt.Sprintf("%d sessions of Claude Code, %d MB", n, size/megabyte)
}

// claudeRecord makes a record of a type, with further members, that follows the record parent of a session of Claude
// Code, or "" for the first one. It returns its line and its id.
func claudeRecord(typ, session, parent, members string) (line, id string) {
	up := "null"
	if parent != "" {
		up = `"` + parent + `"`
	}
	id = fmt.Sprintf("%08x-7a11-4000-8000-%012x", rand.Uint32(), rand.Uint64()>>16)
	return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":%q,"sessionId":%q,"version":"2.1.330","gitBranch":"main",`+
		`"type":%q,%s,"uuid":%q,"timestamp":%q}`+"\n", up, cwdOf(0), session, typ, members, id, stamp(time.Now())), id
}

// writeCall returns the members of a record of Claude Code with a call that writes a file.
func writeCall(file string) string {
	return fmt.Sprintf(`"message":{"role":"assistant","content":[{"type":"tool_use","id":"t",`+
		`"name":"Write","input":{"file_path":%q,"content":"package rare\n"}}]}`, file)
}

// say has the agent append a prompt to a session, behind a record or "", and returns the prompt's id.
func (b *bench) say(file, parent, text string) string {
	session := strings.TrimSuffix(filepath.Base(file), ".jsonl")
	line, id := claudeRecord("user", session, parent, `"message":{"role":"user","content":"`+text+`"}`)
	b.append(file, line)
	return id
}

// rowClaude: the first listing makes a session of another agent's records, and a change adds new entries. The peer parses and
// prints them.
func rowClaude(b *bench) []result {
	agent, files, _, _ := b.claudeStore("claude", 1, 20*megabyte)
	what := fmt.Sprintf("a session of Claude Code of %d MB", b.shrink(20*megabyte)/megabyte)
	text, _ := b.output(filepath.Dir(files[0]), `jq -r 'if .type == "assistant" then .message.id else .uuid end' *.jsonl | sort -u | wc -l
		tail -n 1 *.jsonl | jq -r .uuid`)
	entries := 0
	last := "" // an answer is several records
	_, err := fmt.Sscan(text, &entries, &last)
	b.must(err)
	res := []result{
		{what: "first `ls -U entries \\| wc -l` after a mount, " + what, peer: "`jq -c .` over its file", ratio: 0.6},
		{what: "after another program's append, next `readlink leaf`, the same session", peer: "the same, nothing appended", limit: 0.05},
	}
	dir := filepath.Join("sessions", strings.TrimSuffix(strings.TrimPrefix(files[0], filepath.Join(agent, "projects")), ".jsonl"))
	return b.measured(agent, res, func(mt *mount) {
		ours := b.expect(mt.Path(dir), "ls -U entries | wc -l", entries)
		res[0].add(ours, b.time(agent, "jq -c . '"+files[0]+"' >/dev/null"))
		last = b.say(files[0], last, "more")
		entries++
		took := b.expect(mt.Path(dir), "readlink leaf", "entries/"+last+".json")
		res[1].add(took, b.time(mt.Path(dir), "readlink leaf"))
	})
}

// rowSearchClaude: a word of a few of many sessions of Claude Code, none of which was looked at, beside a scan of their files.
func rowSearchClaude(b *bench) []result {
	agent, files, _, what := b.claudeStore("claudes", storeSessions, storeBytes)
	for i := range rareCopies {
		file := files[i*len(files)/rareCopies]
		b.say(file, "", rareWord)
	}
	settle()
	res := []result{{what: "`ls search/WORD/sessions`, a word of five of " + what + ", cold daemon", peer: "`rg -F -i -l` over their files", ratio: 1.2}}
	return b.repeat(res, func() {
		raw := b.expect(agent, "rg -F -i -l "+rareWord+" projects | wc -l", rareCopies)
		b.withOurs(agent, &res[0], func(mt *mount) {
			res[0].add(b.expect(mt.At, "ls search/"+rareWord+"/sessions | wc -l", rareCopies), raw)
		})
	})
}
