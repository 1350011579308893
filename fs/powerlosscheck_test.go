package fs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPowerLoss: power is lost after each change that a write makes to the disk, for each kind of write. What was made
// durable is there, what was not is there or absent, whole: only a last line may be torn, which the next write leaves behind
// (package writer, TestAppendAfterCut).
func TestPowerLoss(t *testing.T) {
	if raceEnabled {
		t.Skip("takes long under the race detector, and is one of the tests at full size")
	}
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprintf("sync=%v", sync), func(t *testing.T) {
			l := newLossy(t, sync, func(a agent) {
				for name, file := range lossFiles {
					a.write(name, file.text)
				}
			})
			l.m = mountForTest(t, l.loopback, func(o *daemonOptions) { o.Sync = sync })
			l.work()
			for name := range lossFiles { // so that none is open that was replaced
				run(t, "cat", l.m.session(name, "labels"))
			}
			l.m.stop()
			ops := l.ops()
			steps := map[int]bool{}
			states := 0
			eachLoss(ops, func(step int, marks []string, image diskImage) {
				steps[step] = true
				states++
				problem := l.lost(image, marks)
				if problem != "" {
					op := ops[step]
					last := marks[len(marks)-1]
					t.Fatalf("power is lost after step %d, %s %s, behind %q: %s", step, op.Kind, op.Name, last, problem)
				}
			})
			t.Logf("%d states, after %d changes", states, len(steps))
			require.Greater(t, states, 150)
		})
	}
}

// lost returns a problem of a disk after a loss of power, "" for none. The marks before the loss tell which promises
// hold.
func (l *lossy) lost(image diskImage, marks []string) string {
	there := slices.Collect(maps.Keys(lossFiles))
	for i, name := range there {
		there[i] = "p/" + name
	}
	for _, promise := range l.promises {
		if slices.Contains(marks, promise.durable) {
			there = append(there, promise.session)
		}
	}
	for _, session := range there {
		_, isThere := image["sessions/"+session+".jsonl"]
		if !isThere {
			return session + " is gone"
		}
	}
	for path, text := range image {
		hash, isBlob := strings.CutPrefix(path, "blobs/")
		name, isSession := strings.CutSuffix(path, ".jsonl")
		switch {
		case strings.HasSuffix(path, "/"), strings.HasSuffix(path, ".tmp"), strings.HasSuffix(path, ".lock"):
		case isBlob:
			sum := sha256.Sum256([]byte(text))
			if hex.EncodeToString(sum[:]) != hash {
				return fmt.Sprintf("the blob %s is not whole: %d bytes", hash, len(text))
			}
		case isSession:
			session := strings.TrimPrefix(name, "sessions/")
			problem := l.lostSession(session, text, image, marks)
			if problem != "" {
				return fmt.Sprintf("%s: %s:\n%.2000q", path, problem, text)
			}
		default:
			return "there is " + path
		}
	}
	return ""
}

// blobRef matches a reference to a blob.
var blobRef = regexp.MustCompile(`blob:sha256:([0-9a-f]{64})`)

// lostSession returns a problem of the text of a session after a loss of power, "" for none. Lines may be there that were
// written, and must be if they were durable; a title must be the last durable one, or a later one.
func (l *lossy) lostSession(name, text string, image diskImage, marks []string) string {
	first := lossFiles[strings.TrimPrefix(name, "p/")]
	known := slices.Clone(first.lines)
	must := slices.Clone(first.lines)
	titles := map[string]bool{"": name != "p/slot", "before": name == "p/slot"}
	for _, p := range l.promises {
		if p.session != name {
			continue
		}
		durable := slices.Contains(marks, p.durable)
		known = append(known, p.lines...)
		if durable || p.whole {
			must = append(must, p.lines...)
		}
		if p.title != nil {
			if durable {
				clear(titles)
			}
			titles[*p.title] = true
		}
	}
	for _, piece := range must {
		if strings.Count(text, piece) != 1 {
			return fmt.Sprintf("%q is there %d times", piece, strings.Count(text, piece))
		}
	}
	for _, ref := range blobRef.FindAllStringSubmatch(text, -1) {
		_, isThere := image["blobs/"+ref[1]]
		if !isThere {
			return "its blob is not there"
		}
	}
	return lostLines(text, known, titles)
}

// lostLines returns a problem of the lines of a session, "" for none: each line must be one that was written, with one
// of the known texts, but for a torn one at the end or before a later write; and the title must be one of titles.
func lostLines(text string, known []string, titles map[string]bool) string {
	titled := false
	for line := range strings.Lines(text) {
		var l struct{ Type, Title string }
		content, isWhole := strings.CutSuffix(line, "\n")
		err := json.Unmarshal([]byte(line), &l)
		if err != nil {
			mayBeTorn := !isWhole || content == lossTorn || strings.HasPrefix(content, "# ") // a mark behind a torn line
			if mayBeTorn {
				continue
			}
			return fmt.Sprintf("a line cannot be read: %.100q", line)
		}
		if l.Type == "session" || l.Type == "title" {
			if !titled && !titles[l.Title] {
				return fmt.Sprintf("the title is %q", l.Title)
			}
			titled = true
			continue
		}
		writes := 0
		for _, piece := range known {
			writes += strings.Count(line, piece)
		}
		if writes != 1 {
			return fmt.Sprintf("a line is of %d writes: %.100q", writes, line)
		}
	}
	if !titled {
		return "there is no header"
	}
	return ""
}
