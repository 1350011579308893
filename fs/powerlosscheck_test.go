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
			ops, steps, states := l.ops(), map[int]bool{}, 0
			eachLoss(ops, func(step int, marks []string, image diskImage) {
				steps[step], states = true, states+1
				if problem := l.lost(image, marks); problem != "" {
					t.Fatalf("power is lost after step %d, %s %s, behind %q: %s", step, ops[step].Kind, ops[step].Name, marks[len(marks)-1], problem)
				}
			})
			t.Logf("%d states, after %d changes", states, len(steps))
			require.Greater(t, states, 150)
		})
	}
}

// lost returns what is wrong with a disk after a loss of power.
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
		if _, ok := image["sessions/"+session+".jsonl"]; !ok {
			return session + " is gone"
		}
	}
	for path, text := range image {
		hash, isBlob := strings.CutPrefix(path, "blobs/")
		name, isSession := strings.CutSuffix(path, ".jsonl")
		switch {
		case strings.HasSuffix(path, "/"), strings.HasSuffix(path, ".tmp"), strings.HasSuffix(path, ".lock"):
		case isBlob:
			if sum := sha256.Sum256([]byte(text)); hex.EncodeToString(sum[:]) != hash {
				return fmt.Sprintf("the blob %s is not whole: %d bytes", hash, len(text))
			}
		case isSession:
			if problem := l.lostSession(strings.TrimPrefix(name, "sessions/"), text, image, marks); problem != "" {
				return fmt.Sprintf("%s: %s:\n%.2000q", path, problem, text)
			}
		default:
			return "there is " + path
		}
	}
	return ""
}

var blobRef = regexp.MustCompile(`blob:sha256:([0-9a-f]{64})`)

// lostSession returns what is wrong with a session.
func (l *lossy) lostSession(name, text string, image diskImage, marks []string) string {
	known := slices.Clone(lossFiles[strings.TrimPrefix(name, "p/")].lines)
	must := slices.Clone(lossFiles[strings.TrimPrefix(name, "p/")].lines)
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
		if _, ok := image["blobs/"+ref[1]]; !ok {
			return "its blob is not there"
		}
	}
	return lostLines(text, known, titles)
}

// lostLines: each line is one that was written, but for the last.
func lostLines(text string, known []string, titles map[string]bool) string {
	titled := false
	for line := range strings.Lines(text) {
		var l struct{ Type, Title string }
		full := strings.HasSuffix(line, "\n")
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			if torn := strings.TrimSuffix(line, "\n"); !full || torn == lossTorn || strings.HasPrefix(torn, "# ") {
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
		n := 0
		for _, piece := range known {
			n += strings.Count(line, piece)
		}
		if n != 1 {
			return fmt.Sprintf("a line is of %d writes: %.100q", n, line)
		}
	}
	if !titled {
		return "there is no header"
	}
	return ""
}
