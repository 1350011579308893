package claude

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// TestRealFiles checks what must hold of every file, whatever is in it, on those below the directory that
// SESSIONFS_CLAUDE_FILES names.
func TestRealFiles(t *testing.T) {
	dir := os.Getenv("SESSIONFS_CLAUDE_FILES")
	if dir == "" {
		t.Skip("SESSIONFS_CLAUDE_FILES names no directory with files of Claude Code")
	}
	files := 0
	require.NoError(t, filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ending) {
			return err
		}
		files++
		t.Run(strings.TrimPrefix(name, dir+"/"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			checkFile(t, filepath.Base(name), string(text))
		})
		return nil
	}))
	t.Log(files, "files")
}

type object = map[string]any

// raw is a record as a reader sees it that knows nothing of the converter.
type raw struct {
	line                  int64
	typ, uuid, parent, id string
	side, follows         bool
	time                  string
	says                  []string
	queued                []string // in the client's queue; another record may say it too
	usage                 object
	object
}

func text(o object, key string) string { s, _ := o[key].(string); return s }

// readRaw returns the records of a file that count, and the lines of them that are not JSON.
func readRaw(file string) (records []*raw) {
	number := int64(0)
	type key struct {
		uuid string
		side bool
	}
	last := map[key]*raw{}
	for line := range strings.Lines(file) {
		number++
		r := &raw{line: number}
		if json.Unmarshal([]byte(line), &r.object) != nil || r.object == nil {
			continue
		}
		r.typ, r.uuid, r.parent, r.time = text(r.object, "type"), text(r.object, "uuid"), text(r.object, "parentUuid"), text(r.object, "timestamp")
		r.side, _ = r.object["isSidechain"].(bool)
		_, has := r.object["parentUuid"]
		r.follows = !has
		message, _ := r.object["message"].(object)
		if r.typ == "user" || r.typ == "assistant" {
			r.says = saidIn(message["content"])
		}
		if queued, _ := r.object["attachment"].(object); r.typ == "attachment" && queued["type"] == "queued_command" {
			r.says = saidIn(queued["prompt"])
		}
		switch content := text(r.object, "content"); {
		case content == "":
		case r.typ == "queue-operation":
			r.queued = []string{"text " + content}
		case r.typ == "system" && (r.object["subtype"] == "away_summary" || r.object["subtype"] == "local_command"):
			r.says = []string{"text " + content}
		}
		if named, _ := r.object["attachment"].(object); r.typ == "attachment" && (named["type"] == "file" || named["type"] == "directory") {
			r.says = saidOf(named)
		}
		if r.typ == "assistant" {
			r.id = text(message, "id")
			r.usage, _ = message["usage"].(object)
		}
		if old := last[key{r.uuid, r.side}]; r.uuid != "" && old != nil {
			old.says, old.usage, old.typ = nil, nil, ""
		}
		last[key{r.uuid, r.side}] = r
		records = append(records, r)
	}
	return slices.DeleteFunc(records, func(r *raw) bool { return r.typ == "" })
}

// saidOf returns the texts of an attachment with a file or directory.
func saidOf(named object) []string {
	content, _ := named["content"].(object)
	file, _ := content["file"].(object)
	name := cmp.Or(text(named, "filename"), text(named, "path"), text(file, "filePath"))
	for _, said := range []any{named["content"], file["content"]} {
		if s, ok := said.(string); ok && name != "" {
			return []string{"file " + name + " " + s}
		}
	}
	if data := text(file, "base64"); name != "" && content["type"] == "image" && data != "" && text(file, "type") != "" {
		return []string{"file " + name + " image " + data}
	}
	return nil
}

// saidIn returns what content says, in words that a session's content gives too.
func saidIn(content any) (says []string) {
	if s, ok := content.(string); ok {
		if s == "" {
			return nil
		}
		return []string{"text " + s}
	}
	blocks, _ := content.([]any)
	for _, b := range blocks {
		block, ok := b.(object)
		if !ok {
			continue
		}
		switch typ := text(block, "type"); typ {
		case "text":
			if s := text(block, "text"); s != "" {
				says = append(says, "text "+s)
			}
		case "thinking":
			says = append(says, "thinking "+text(block, "thinking")+" "+cmp.Or(text(block, "signature"), text(block, "thinkingSignature")))
		case "redacted_thinking", "redactedThinking":
			says = append(says, "redacted "+text(block, "data"))
		case "tool_use", "server_tool_use", "toolCall":
			input, _ := cmp.Or[any](block["input"], block["arguments"]).(object)
			if input == nil {
				input = object{}
			}
			arguments, _ := json.Marshal(input)
			says = append(says, fmt.Sprintf("call %s %s %s", text(block, "id"), text(block, "name"), arguments))
		case "tool_result":
			says = append(says, fmt.Sprintf("result %s %v %q", text(block, "tool_use_id"), block["is_error"] == true, saidIn(block["content"])))
		case "image":
			source, _ := block["source"].(object)
			says = append(says, "image "+cmp.Or(text(source, "data"), text(block, "data")))
		default:
			all, _ := json.Marshal(block)
			says = append(says, "other "+string(all))
		}
	}
	return says
}

// shown is an entry as it is shown.
type shown struct {
	ID, ParentID, Type, Summary string
	Content                     any
	Data                        struct{ TargetID *string }
	Message                     object
	Origin                      struct {
		Line    int64
		Lines   []int64
		Session string
	}
}

func (e *shown) lines() []int64 {
	if len(e.Origin.Lines) > 0 {
		return e.Origin.Lines
	}
	return []int64{e.Origin.Line}
}

func (e *shown) says() []string {
	switch {
	case e.Type == "compaction":
		return []string{"text " + e.Summary}
	case e.Message != nil && text(e.Message, "role") == "toolResult":
		return []string{fmt.Sprintf("result %s %v %q", text(e.Message, "toolCallId"), e.Message["isError"], saidIn(e.Message["content"]))}
	case e.Message != nil && text(e.Message, "role") == "fileMention":
		files, _ := e.Message["files"].([]any)
		file, _ := files[0].(object)
		said := text(file, "content")
		if image, ok := file["image"].(object); ok {
			said = "image " + text(image, "data")
		}
		return []string{"file " + text(file, "path") + " " + said}
	case e.Message != nil:
		return saidIn(e.Message["content"])
	}
	return saidIn(e.Content)
}

// checkFile checks the session and the subagents' sessions that a file is shown as.
func checkFile(t *testing.T, name, file string) {
	p := newProjects(t)
	if isSubagent(name) {
		name = "-w/s/" + subagents + "/" + name
	} else {
		name = "-w/" + name
	}
	sessiontest.WriteFile(t, filepath.Join(p.dir, name), file)
	records := readRaw(file)
	if len(records) == 0 {
		return
	}
	sessions := []string{name}
	items, err := storage.List(p, strings.TrimSuffix(name, ending)+"/"+subagents)
	require.True(t, err == nil || storage.IsMissing(err))
	for _, item := range items {
		sessions = append(sessions, path.Join(strings.TrimSuffix(name, ending), subagents, item.Name))
	}
	var entries []*shown
	tokens := map[string]float64{}
	for _, session := range sessions {
		own := readShown(t, p, session)
		checkTree(t, p, session, records, own)
		for _, e := range own {
			usage, _ := e.Message["usage"].(object)
			for key := range usage {
				tokens[key] += usage[key].(float64)
			}
		}
		entries = append(entries, own...)
	}
	checkTexts(t, records, entries)
	checkTokens(t, records, tokens)
}

// readShown returns the entries of a session, without moves of the leaf.
func readShown(t *testing.T, p *projects, session string) (entries []*shown) {
	obj, err := p.Open(session)
	require.NoError(t, err)
	defer obj.Close()
	for line := range strings.Lines(read(t, obj)) {
		if line[0] != '{' {
			continue // it says what could not be read
		}
		e := &shown{}
		require.NoError(t, json.Unmarshal([]byte(line), e))
		if e.Type != "session" && e.Type != "custom" {
			entries = append(entries, e)
		}
	}
	return entries
}

// checkTexts: each text, thought, call and result is in one entry, which names the lines that it is from.
func checkTexts(t *testing.T, records []*raw, entries []*shown) {
	from := map[int64]*raw{}
	var want, got []string
	replaced := map[string]bool{} // TestAside checks their replacements
	for _, r := range records {
		list, _ := r.object["replacements"].([]any)
		for _, v := range list {
			if of, ok := v.(object); ok && r.typ == "content-replacement" {
				replaced[text(of, "toolUseId")] = true
			}
		}
	}
	isReplaced := func(said string) bool {
		words := strings.SplitN(said, " ", 3)
		return words[0] == "result" && replaced[words[1]]
	}
	for _, r := range records {
		from[r.line] = r
		if text := strings.Join(r.says, ""); r.object["isCompactSummary"] == true && r.typ == "user" {
			r.says = []string{"text " + strings.TrimPrefix(text, "text ")}
		}
		want = append(want, slices.DeleteFunc(slices.Clone(r.says), isReplaced)...)
	}
	for _, e := range entries {
		says := slices.DeleteFunc(e.says(), isReplaced)
		if strings.HasSuffix(e.ID, ".full") {
			continue
		}
		var lines []string
		for _, line := range e.lines() {
			require.NotNil(t, from[line], "line %d", line)
			lines = append(append(lines, from[line].says...), from[line].queued...)
		}
		if from[e.lines()[0]].queued == nil {
			got = append(got, says...)
		}
		require.Subset(t, lines, says, "%s is from %v", e.ID, e.lines())
	}
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
}

// checkTokens: an answer counts once, with what its last record says.
func checkTokens(t *testing.T, records []*raw, got map[string]float64) {
	last := map[string]object{}
	for i, r := range records {
		if r.usage != nil {
			last[cmp.Or(r.id, fmt.Sprint(i))] = r.usage
		}
	}
	want := map[string]float64{}
	for _, usage := range last {
		for key, of := range map[string]string{"input": "input_tokens", "output": "output_tokens", "cacheRead": "cache_read_input_tokens",
			"cacheWrite": "cache_creation_input_tokens"} {
			n, _ := usage[of].(float64)
			want[key] += n
			want["totalTokens"] += n
		}
	}
	for key, n := range want {
		require.Equal(t, n, got[key], key)
	}
}

// checkTree: each tip says something, a conversation without branches has one, and the leaf is that of the rules.
func checkTree(t *testing.T, p *projects, session string, records []*raw, entries []*shown) {
	if len(entries) == 0 {
		return
	}
	snap := sessiontest.Snapshot(t, sessioncore.NewStore(p).Session(session))
	byID := map[string]*shown{}
	for _, e := range entries {
		byID[e.ID] = e
	}
	tips := 0
	tree := snap.Tree()
	for e := range sessioncore.Entry(snap.Len()) {
		if id, ok := snap.ID(e); ok && tree.IsTip(e) {
			tips++
			require.NotEmpty(t, byID[id].says(), "the tip %s says nothing", id)
		}
	}
	_, isChain := strings.CutPrefix(path.Base(session), chainPrefix)
	inFile := slices.Clone(records)
	if !isSubagent(path.Base(session)) {
		inFile = slices.DeleteFunc(inFile, func(r *raw) bool { return r.side })
	}
	if isChain {
		return
	}
	if isLinear(inFile) {
		require.Equal(t, 1, tips)
	}
	leaf := sessiontest.Leaf(t, snap)
	want := leafLine(inFile)
	if leaf == sessioncore.NoEntry {
		require.LessOrEqual(t, want, int64(0))
		return
	}
	id, _ := snap.ID(leaf)
	at := byID[id]
	isQueued := func(e *shown) bool {
		i := slices.IndexFunc(inFile, func(r *raw) bool { return r.line == e.lines()[0] })
		return i >= 0 && inFile[i].queued != nil
	}
	seen := map[*shown]bool{}
	for want > 0 && !slices.Contains(at.lines(), want) { // it stands behind all results, and behind what is between an answer's records
		require.True(t, at.Message["role"] == "toolResult" || at.Origin.Line < want || isQueued(at), "the leaf is %s", id)
		require.False(t, seen[at] || byID[at.ParentID] == nil, "the leaf is %s", id)
		seen[at] = true
		at = byID[at.ParentID]
	}
}

// isLinear reports whether the records that say something are one conversation: no two hang on one, where records of one answer
// and its results are one, and those that say nothing do not count.
func isLinear(records []*raw) bool {
	node, calls := map[string]string{}, map[string]string{}
	roots, children, compactions := 0, map[string]map[string]bool{}, 0
	before := ""
	for _, r := range records {
		if r.object["subtype"] == "compact_boundary" || r.object["isCompactSummary"] == true || r.object["snipMetadata"] != nil ||
			r.object["retractedMessageUuids"] != nil {
			compactions++
		}
		if r.uuid == "" && len(r.says) == 0 {
			continue
		}
		parent, ok := node[r.parent]
		if r.follows {
			parent, ok = before, true
		}
		self := cmp.Or(r.uuid, fmt.Sprint("line ", r.line))
		switch {
		case len(r.says) == 0:
			node[r.uuid] = parent
			continue
		case r.id != "":
			self = "answer " + r.id
		}
		for _, s := range r.says {
			if id, is := strings.CutPrefix(s, "call "); is {
				calls[strings.Fields(id)[0]] = self
			}
			if id, is := strings.CutPrefix(s, "result "); is && calls[strings.Fields(id)[0]] != "" {
				self = calls[strings.Fields(id)[0]]
			}
		}
		node[r.uuid], before = self, self
		switch {
		case self == parent:
		case !ok || parent == "":
			roots++
		default:
			if children[parent] == nil {
				children[parent] = map[string]bool{}
			}
			children[parent][self] = true
		}
	}
	for _, of := range children {
		if len(of) > 1 {
			return false
		}
	}
	return roots == 1 && compactions == 0
}

// leafLine returns the line of the record at which the conversation stands by the rules, 0 before the first, and -1 if that is not
// a record that says something.
func leafLine(records []*raw) int64 {
	leaf, pinned, cleared := "", false, false
	var newest, last *raw
	byUUID := map[string]*raw{}
	for _, r := range records {
		byUUID[r.uuid] = r
		if len(r.says) > 0 {
			if last, pinned, cleared = r, false, false; newest == nil || r.time >= newest.time || r.parent == newest.uuid {
				newest = r
			}
		}
		if r.object["subtype"] == "compact_boundary" || r.object["isCompactSummary"] == true {
			leaf, pinned, cleared = "", false, false
		}
		if r.object["retractedMessageUuids"] != nil {
			return -1
		}
		if r.typ != "last-prompt" {
			continue
		}
		id, explicit := text(r.object, "leafUuid"), r.object["explicit"] == true
		switch {
		case explicit:
			leaf, pinned, cleared = id, id != "", id == ""
		case id != "" && id != leaf:
			leaf, pinned, cleared = id, false, false
		}
	}
	switch r := byUUID[leaf]; {
	case cleared:
		return 0
	case pinned && r != nil:
		if len(r.says) == 0 {
			return -1
		}
		return r.line
	case leaf != "" && !pinned && r != nil && r != last && !isLinear(records):
		return -1 // whether the last record comes from it, TestLeaf checks
	case leaf != "" && !pinned:
		return last.line
	}
	return newest.line
}
