package main

import (
	"path/filepath"
	"strings"
)

// listed are the commands of rowLists, with the goal of the ratio of processor times. In each, ID is
// the id of a session, FILE a file that one call wrote, and SHARED one that some wrote.
var listed = []struct {
	line string
	goal float64
}{
	{"ls recent", 0.35},
	{"show ID", 0.35},
	{"log ID", 0.35},
	{"cat by-id/ID/title", 0.35},
	{"pick rarewordoftitle", 0.6},
	{"ls by-cwd", 0.6},
	{"ls by-date", 0.6},
	{"ls by-cwd/home/dev/project-7", 0.6},
	{"ls continue", 0.15},
	{"ls running", 0.15},
	{"ls", 0.15},
	{"touched /no/such/file.go", 1.4},
	{"blame FILE", 1.6},
	{"touched SHARED", 3},
	{"search -c session", 8},
	{"stats --since 7d", 0.35},
}

// sharers is the number of sessions with a call that wrote one file.
const sharers = 13

// rowLists: the first commands of a person, among many sessions, beside a search of all bytes for a word
// that none has. The output is not compared: tests do that.
func rowLists(b *bench) []result {
	home, files, _, what := b.claudeStore("lists", 5000, 2500*megabyte)
	addWrite := func(session, file string) { // a call that writes the file
		id := strings.TrimSuffix(filepath.Base(session), ".jsonl")
		line, _ := claudeRecord("assistant", id, "", writeCall(file))
		b.append(session, line)
	}
	file := filepath.Join(b.dir, "one.go")
	shared := filepath.Join(b.dir, "shared.go")
	b.must(write(file, []byte("package rare\n"), 0o600))
	addWrite(files[0], file)
	for i := range sharers {
		sharer := files[i*len(files)/sharers]
		addWrite(sharer, shared)
	}
	b.time(home, "find projects -type f -newermt '8 days ago' -exec touch -d '9 days ago' {} +") // stats --since finds nothing
	settle()
	id := strings.TrimSuffix(filepath.Base(files[len(files)/2]), ".jsonl")
	names := strings.NewReplacer("ID", id, "FILE", file, "SHARED", shared)
	var res []result
	for _, c := range listed {
		res = append(res, result{
			what:  "`sessionfs " + c.line + "`, " + what + ", processor time",
			peer:  "`rg -F -l` of a word in none",
			ratio: c.goal,
		})
	}
	line := func(i int) string { // with the options of SOURCE behind the name of the command
		name, args, _ := strings.Cut(names.Replace(listed[i].line), " ")
		return b.daemon[0] + " " + name + " -s " + home + " " + args
	}
	b.repeat(res, func() {
		_, peer := b.used(home, "", "rg -F -l rarewordofnone projects || true")
		for i := range res {
			_, used := b.used(home, "CLAUDE_CONFIG_DIR="+home, line(i)+" >/dev/null 2>&1 || true")
			res[i].add(used.Processor, peer.Processor)
			res[i].peak = max(res[i].peak, used.Peak)
		}
	})
	for i := range res {
		res[i].what += b.opened(line(i))
	}
	return res
}

// opened returns how many files and directories a command opens, "" where strace is not installed.
func (b *bench) opened(line string) string {
	calls, _ := b.output(b.dir, "if command -v strace >/dev/null; then strace -f -q -e trace=open,openat,openat2 -o calls "+line+
		" >/dev/null 2>&1; grep -c ' = [0-9]' calls; rm calls; fi")
	if calls == "" {
		return ""
	}
	return ", " + strings.TrimSpace(calls) + " files opened"
}
