package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Sessions of the operator dialect, written to by tools (docs/design.md sections 2 and 9; docs/format.md, Operator
// dialect).

// documentedReader prints what the Python of operator's documentation makes of a session file: leaf, branch, labels,
// title and context.
const documentedReader = `
import json, sys
entries, by_id, leaf, labels, title = [], {}, None, {}, ""
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["type"] == "session_header": continue
    entries.append(e); by_id[e["id"]] = e
    leaf = e["target_id"] if e["type"] == "leaf" else e["id"]
    if e["type"] == "label":
        labels.pop(e["target_id"], None)
        if e.get("label"): labels[e["target_id"]] = e["label"]
    if e["type"] == "session_info": title = e["name"]
path, cursor = [], leaf
while cursor:
    path.insert(0, by_id[cursor]); cursor = by_id[cursor]["parent_id"]
level, model, last = "off", None, -1
for i, e in enumerate(path):
    if e["type"] == "thinking_level_change": level = e["thinking_level"]
    if e["type"] == "model_change": model = e["model_id"]
    if e["type"] == "compaction": last = i
def messages(entries):
    return [e["message"] if e["type"] == "message" else e["summary"] for e in entries if e["type"] in ("message", "branch")]
if last < 0: context = messages(path)
else:
    kept = [e["id"] for e in path[:last]].index(path[last]["first_kept_entry_id"])
    context = [path[last]["summary"]] + messages(path[kept:last]) + messages(path[last + 1:])
print(json.dumps([leaf, [e["id"] for e in path], labels, title, level, model, context]))
`

// operating is a mounted store of operator's with a session that a test writes to: e0, under it e1 – e2 and
// e3, where the leaf is.
type operating struct {
	t   testing.TB
	dir string // SOURCE
	m   *mount
}

const operatorName = "2024-01-15T10-30-00-000000_5d0e8a9c-6f1b-4a0e-9b57-0c8f2d3e4a11"

func operatorEntry(n int, id, parent, text string) string {
	if parent != "null" {
		parent = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type": "message", "id": %s, "parent_id": %s, "timestamp": %d.25, "message": {"role": "user", "content": "%s"}}`, quoted(id), parent, 1705314600+n, text) + "\n"
}

const operatorHeader = `{"type": "session_header", "id": "5d0e8a9c-6f1b-4a0e-9b57-0c8f2d3e4a11", "timestamp": 1705314600.0, "cwd": "/my/project"}` + "\n"

func newOperating(t testing.TB, opts ...mountOption) *operating {
	o := &operating{t: t, dir: filepath.Join(t.TempDir(), clients["operator"])}
	require.NoError(t, os.MkdirAll(filepath.Join(o.dir, "sessions"), 0o700))
	o.write(operatorHeader, operatorEntry(0, "e0", "null", "zero"), operatorEntry(1, "e1", "e0", "one"), operatorEntry(2, "e2", "e1", "two"), operatorEntry(3, "e3", "e0", "three"))
	o.m = mountForTest(t, o.dir, opts...)
	return o
}

func (o *operating) file() string { return filepath.Join(o.dir, "sessions", operatorName+".jsonl") }

func (o *operating) write(lines ...string) {
	require.NoError(o.t, os.WriteFile(o.file(), []byte(strings.Join(lines, "")), 0o600))
}

// in is a path in the session's directory.
func (o *operating) in(parts ...string) string {
	return o.m.path(append([]string{"sessions", operatorName}, parts...)...)
}

func (o *operating) raw() string {
	b, err := os.ReadFile(o.file())
	require.NoError(o.t, err)
	return string(b)
}

// read is what a file of the session's directory shows.
func (o *operating) read(name string) string {
	b, err := os.ReadFile(o.in(name))
	require.NoError(o.t, err)
	return string(b)
}

// added are the lines that came to the file since it was before, their times and ids left out.
func (o *operating) added(before string) []string {
	o.t.Helper()
	now := o.raw()
	require.True(o.t, strings.HasPrefix(now, before), "lines that were there have changed")
	require.NotRegexp(o.t, `"timestamp":[^0-9]`, now[len(before):])
	text := regexp.MustCompile(`"timestamp":[0-9]{10}\.[0-9]{3}\b`).ReplaceAllString(now[len(before):], `"timestamp":T`)
	text = regexp.MustCompile(`"id":"[0-9a-f]{8}"`).ReplaceAllString(text, `"id":"ID"`)
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// asDocumented requires that a reader by operator's documentation sees in the file what the mount shows.
func (o *operating) asDocumented() {
	o.t.Helper()
	seen := parseJSON(o.t, python(o.t, documentedReader, o.file())).([]any)
	leaf := any(nil)
	if target, err := os.Readlink(o.in("leaf")); err == nil && target != "tree" {
		leaf = strings.TrimSuffix(strings.TrimPrefix(target, "entries/"), ".json")
	}
	labels := object{}
	for line := range strings.Lines(o.read("labels")) {
		id, label, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		labels[id] = label
	}
	context := parseJSON(o.t, o.read("context.json")).(object)
	messages := context["messages"].([]any)
	for i, m := range messages {
		if m := m.(object); m["role"] == "branch_summary" || m["role"] == "compaction_summary" {
			messages[i] = m["summary"]
		}
	}
	sameJSON(o.t, "leaf", seen[0], leaf)
	sameJSON(o.t, "labels", seen[2], labels)
	require.Equal(o.t, seen[3], strings.TrimSuffix(o.read("title"), "\n"))
	sameJSON(o.t, "thinking_level", seen[4], context["thinking_level"])
	sameJSON(o.t, "model_id", seen[5], context["model_id"])
	sameJSON(o.t, "messages", seen[6], messages)
	require.Empty(o.t, o.read("problems.jsonl"))
}

func TestOperatorWriting(t *testing.T) {
	o := newOperating(t)
	require.Equal(t, []string{operatorName, operatorName + ".jsonl"}, names(t, o.m.path("sessions")))
	require.Equal(t, "1705314601.250000000\n", shell(t, `stat -c %.9Y "$1"`, o.in("entries/e1.json")))
	o.asDocumented()
	for i, c := range []struct {
		script, leaf string
		want         []string
	}{
		{`echo '{"type":"message","message":{"role":"user","content":"four"}}' >> "$1/append"`, "", []string{
			`{"type":"message","id":"ID","parent_id":"e3","timestamp":T,"message":{"role":"user","content":"four"}}`}},
		{`ln -sfn entries/e1.json "$1/leaf"`, "e1", []string{`{"type":"leaf","id":"ID","parent_id":"e4","timestamp":T,"target_id":"e1"}`}},
		{`ln -sfn "$1/tree/e0/e1" "$1/leaf"`, "e1", []string{""}},
		{`jq -nc '{type: "branch", from_id: "e1", summary: "what was tried"}' > "$1/append"`, "", []string{
			`{"type":"branch","id":"ID","parent_id":"e1","timestamp":T,"from_id":"e1","summary":"what was tried"}`}},
		{`printf 'e2 two\ne0 zero\n' > "$1/labels"; printf 'e0\n' >> "$1/labels"`, "", []string{
			`{"type":"label","id":"ID","parent_id":"e5","timestamp":T,"target_id":"e2","label":"two"}`,
			`{"type":"label","id":"ID","parent_id":"e6","timestamp":T,"target_id":"e0","label":"zero"}`,
			`{"type":"label","id":"ID","parent_id":"e7","timestamp":T,"target_id":"e0","label":null}`}},
		{`echo 'The title' > "$1/title"; echo 'The title' > "$1/title"`, "", []string{
			`{"type":"session_info","id":"ID","parent_id":"e8","timestamp":T,"name":"The title"}`}},
		{`echo '{"type":"compaction","summary":"shorter","first_kept_entry_id":"e1","tokens_before":10}' >> "$1/append"`, "", []string{
			`{"type":"compaction","id":"ID","parent_id":"e9","timestamp":T,"summary":"shorter","first_kept_entry_id":"e1","tokens_before":10}`}},
		{`echo '{"type":"leaf","target_id":"e2"}' >> "$1/append"`, "e2", []string{`{"type":"leaf","id":"ID","parent_id":"e10","timestamp":T,"target_id":"e2"}`}},
		{`ln -sfn tree "$1/leaf"`, "-", []string{`{"type":"leaf","id":"ID","parent_id":"e2","timestamp":T,"target_id":null}`}},
		{`echo '{"type":"model_change","provider":"openai","model_id":"gpt-5"}' >> "$1/append"`, "", []string{
			`{"type":"model_change","id":"ID","parent_id":null,"timestamp":T,"provider":"openai","model_id":"gpt-5"}`}},
		{`echo > "$1/title"`, "", []string{`{"type":"session_info","id":"ID","parent_id":"e11","timestamp":T,"name":""}`}},
		{`ln -s by-label/two "$1/new" && mv -T "$1/new" "$1/leaf"`, "e2", []string{`{"type":"leaf","id":"ID","parent_id":"e12","timestamp":T,"target_id":"e2"}`}},
	} {
		before := o.raw()
		shell(t, c.script, o.in())
		added := o.added(before)
		for i, line := range c.want { // e4, e5, …: ids that are made
			c.want[i] = regexp.MustCompile(`"parent_id":"e([4-9]|1[0-9])"`).ReplaceAllString(line, `"parent_id":"MADE"`)
			added[i] = regexp.MustCompile(`"parent_id":"[0-9a-f]{8}"`).ReplaceAllString(added[i], `"parent_id":"MADE"`)
		}
		require.Equal(t, c.want, added, c.script)
		target, err := os.Readlink(o.in("leaf"))
		require.NoError(t, err)
		switch {
		case c.leaf == "-":
			require.Equal(t, "tree", target)
		case c.leaf != "":
			require.Equal(t, "entries/"+c.leaf+".json", target, c.script)
		default:
			require.Equal(t, run(t, "tail", "-n", "1", o.file()), o.read("leaf"), c.script)
		}
		if i%3 == 0 {
			o.asDocumented()
		}
	}
	run(t, "tar", "-C", o.in(), "-cf", "/dev/null", ".")
	o.m.stop()
	o.m = mountForTest(t, o.dir)
	o.asDocumented()
	require.Equal(t, operatorName+".jsonl\n", run(t, "ls", "-A", filepath.Join(o.dir, "sessions")), "no temporary and no lock is left")
}

// TestOperatorTree: leaf entries are files in entries/, and in tree/ where something hangs under them.
func TestOperatorTree(t *testing.T) {
	o := newOperating(t)
	leafEntry := `{"type": "leaf", "id": "%s", "parent_id": "e3", "timestamp": 1705314700, "target_id": %s}` + "\n"
	o.write(o.raw(), fmt.Sprintf(leafEntry, "l1", `"e1"`), fmt.Sprintf(leafEntry, "l2", `"nobody"`), operatorEntry(9, "e4", "l2", "under it"), fmt.Sprintf(leafEntry, "l3", `"nobody"`))
	require.Equal(t, "entries/e4.json\n", run(t, "readlink", o.in("leaf")), "as it was before the last leaf entry")
	require.Equal(t, []string{"e0.json", "e1.json", "e2.json", "e3.json", "l1.json", "l2.json", "e4.json", "l3.json"}, names(t, o.in("entries")))
	require.Equal(t, strings.Fields(".deep e0"), names(t, o.in("tree")))
	require.Equal(t, "e0 e0/e1 e0/e1/e2 e0/e3 e0/e3/l2 e0/e3/l2/e4\n",
		shell(t, `cd "$1/tree" && find . -mindepth 1 -type d ! -name .deep -printf '%P\n' | sort | paste -sd' '`, o.in()))
	_, err := os.Lstat(o.in("tree/l1/entry.json"))
	require.NoError(t, err, "by name it is found")
}

// TestOperatorRefusals: each is told by its errno, and the reason names the key.
func TestOperatorRefusals(t *testing.T) {
	o := newOperating(t)
	before := o.raw()
	for line, want := range map[string]struct {
		errno syscall.Errno
		why   string
	}{
		`{"type":"message","parentId":"e1","message":{"role":"user","content":"x"}}`: {syscall.EINVAL, "append: line 1: not a valid entry: parentId: expected the key parent_id"},
		`{"type":"label","targetId":"e1","label":"x"}`:                               {syscall.EINVAL, "the key target_id"},
		`{"type":"branch_summary","fromId":"e1","summary":"x"}`:                      {syscall.EINVAL, `found "branch_summary"`},
		`{"type":"custom","customType":"sessionfs/leaf","data":{"targetId":"e1"}}`:   {syscall.EINVAL, `found "custom"`},
		`{"type":"session_header","id":"x"}`:                                         {syscall.EINVAL, `found "session_header"`},
		`{"type":"leaf","target_id":"nobody"}`:                                       {syscall.ENOENT, "target_id"},
		`{"type":"custom_info","custom_type":"x","parent_id":"nobody"}`:              {syscall.ENOENT, "parent_id"},
		`{"type":"custom_info","custom_type":"x","id":"e1"}`:                         {syscall.EEXIST, "e1"},
		`{"type":"message"}`: {syscall.EINVAL, "message"},
	} {
		require.ErrorIs(t, put(o.in("append"), line+"\n"), want.errno, line)
		require.Contains(t, o.read("last-error"), want.why, line)
	}
	require.ErrorIs(t, put(o.in("labels"), "nobody x\n"), syscall.ENOENT)
	_, problems, err := tool(t, "ln", "-sfn", "entries/nobody.json", o.in("leaf"))
	require.Error(t, err)
	require.Contains(t, problems, "No such file")
	require.Equal(t, before, o.raw())

	client, err := os.OpenFile(o.file(), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer client.Close()
	require.ErrorIs(t, put(o.in("append"), `{"type":"leaf","target_id":"e1"}`+"\n"), syscall.EBUSY, "a live client")
	require.Equal(t, before, o.raw())
	ro := mountForTest(t, o.dir, func(c *mountConfig) { c.options.ReadOnly = true })
	require.ErrorIs(t, put(ro.path("sessions", operatorName, "append"), "{}\n"), syscall.EROFS)
}

// TestOperatorForkAndNew: files beside the others, named as operator names them.
func TestOperatorForkAndNew(t *testing.T) {
	o := newOperating(t)
	require.NoError(t, put(o.in("labels"), "e1 kept\ne3 elsewhere\n"))
	const pattern = `[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}-[0-9]{6}_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`
	forked := ask(t, o.in("fork"), "e2")
	require.Regexp(t, `^sessions/`+pattern+`$`, forked)
	text := run(t, "cat", filepath.Join(o.dir, forked+".jsonl"))
	require.Contains(t, text, `"parent_session":"`+o.file()+`"`)
	seen := parseJSON(t, python(t, documentedReader, filepath.Join(o.dir, forked+".jsonl"))).([]any)
	require.Equal(t, []any{"e0", "e1", "e2"}, seen[1].([]any)[:3])
	require.Equal(t, object{"e1": "kept"}, seen[2])
	require.Equal(t, "e1\tkept\n", run(t, "cat", o.m.path(forked, "labels")))

	before := listing(t, o.dir)
	made := ask(t, o.m.path("new-session"), `{"cwd":"/elsewhere","title":"A title","parentSession":"p"}`)
	require.Regexp(t, `^sessions/`+pattern+`$`, made)
	require.Contains(t, names(t, o.m.path("sessions")), filepath.Base(made))
	require.Equal(t, "A title\n", run(t, "cat", o.m.path(made, "title")))
	require.Equal(t, "session_header /elsewhere p number\n", run(t, "jq", "-r", `"\(.type) \(.cwd) \(.parent_session) \(.timestamp|type)"`, o.m.path(made, "header.json")))
	ask(t, o.m.path(made, "append"), `{"type":"message","message":{"role":"user","content":"hi"}}`)
	require.Equal(t, before, listing(t, o.dir), "nothing is on disk before the first answer")
	ask(t, o.m.path(made, "append"), `{"type":"message","message":{"role":"assistant","content":"hello"}}`)
	seen = parseJSON(t, python(t, documentedReader, filepath.Join(o.dir, made+".jsonl"))).([]any)
	require.Equal(t, "A title", seen[3])
	require.Len(t, seen[6], 2)

	// A profile without sessions is operator's by its path; its directory is made when it is needed.
	empty := filepath.Join(t.TempDir(), clients["operator"])
	require.NoError(t, os.MkdirAll(empty, 0o700))
	m := mountForTest(t, empty)
	made = ask(t, m.path("new-session"), "/my/project")
	require.Regexp(t, `^sessions/`+pattern+`$`, made)
	ask(t, m.path(made, "append"), `{"type":"message","message":{"role":"assistant","content":"hello"}}`)
	require.Equal(t, "session_header\n", shell(t, `head -n 1 "$1" | jq -r .type`, filepath.Join(empty, made+".jsonl")))
}

// TestOperatorNames: ids, labels and titles of any kind are names as in omp, and can be written back.
func TestOperatorNames(t *testing.T) {
	o := newOperating(t)
	ids := randomIDs(3, 150)
	lines := []string{operatorHeader}
	for n, id := range ids {
		lines = append(lines, operatorEntry(n, id, "null", "x"))
	}
	o.write(append(lines, operatorEntry(999, "last", "null", "x"))...)
	entries, tree := names(t, o.in("entries")), names(t, o.in("tree"))
	for n, id := range ids {
		require.Equal(t, nameOf(id)+".json", entries[n], "%q", id)
		require.Equal(t, treeNameOf(id), tree[n+1], "%q", id)
		if n > 40 {
			continue
		}
		before := o.raw()
		_, problems, err := tool(t, "ln", "-sfn", "--", "entries/"+entries[n], o.in("leaf"))
		require.NoError(t, err, "%q: %s", id, problems)
		require.Equal(t, "entries/"+entries[n]+"\n", run(t, "readlink", o.in("leaf")))
		require.Contains(t, o.added(before)[0], `"target_id":`+quoted(id)+"}", "%q", id)
	}
	labelled := `{"type":"label","id":"%s","parent_id":null,"timestamp":1705320000,"target_id":%s,"label":%s}` + "\n"
	text := o.raw() + fmt.Sprintf(labelled, "L1", quoted("a\t\n\\"), quoted("../x")) + fmt.Sprintf(labelled, "L2", quoted("last"), quoted("\xED\xA0\xBC/"))
	o.write(text)
	shell(t, `cat "$1" > "$2" && cat "$2" > "$1"`, o.in("labels"), filepath.Join(t.TempDir(), "copy"))
	require.Equal(t, text, o.raw(), "labels as they were")
}
