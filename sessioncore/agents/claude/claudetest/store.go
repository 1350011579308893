package claudetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Spec sets how large a store is. Bytes is the sum of all session files, approximately.
type Spec struct {
	Sessions, Bytes int
}

// Key names a line of a bill: a day in UTC, as 2026-09-01, and a model.
type Key struct{ Day, Model string }

// Tokens are the tokens of a line of a bill. Hour is the part of Write that is cached for an hour.
type Tokens struct{ Answers, Input, Output, Read, Write, Hour int64 }

// Truth is the bill of a store: each answer once, in however many files and records it stands.
type Truth map[Key]*Tokens

// ByModel returns the sums of all days, by model.
func (t Truth) ByModel() map[string]*Tokens {
	models := Truth{}
	for key, sum := range t {
		models.add(Key{Model: key.Model}, *sum)
	}
	byName := make(map[string]*Tokens, len(models))
	for key, sum := range models {
		byName[key.Model] = sum
	}
	return byName
}

// models are the models of answers, each with a price in any list; the last one is that of subagents.
var models = []string{"claude-opus-4-5-20251101", "claude-opus-4-6", "claude-sonnet-4-6", "claude-haiku-4-5-20251001"}

const (
	// forkEvery and agentEvery say how often a session is a fork, an answer calls a subagent.
	forkEvery, agentEvery = 12, 40
	// record is the mean size of the texts of an answer with its result, in bytes.
	record = 5 << 10
)

// Make writes a store into dir and returns its bill. Two calls with one Spec write the same bytes.
func Make(dir string, spec Spec) (Truth, error) {
	g := &generator{
		rng: rand.New(rand.NewPCG(2026, uint64(spec.Sessions))), dir: dir, truth: Truth{},
		now: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC),
	}
	g.fillText()
	for i := range spec.Sessions {
		if err := g.session(i, spec.Bytes/spec.Sessions); err != nil {
			return nil, err
		}
	}
	return g.truth, nil
}

// generator writes one store.
type generator struct {
	rng   *rand.Rand
	dir   string
	truth Truth
	now   time.Time
	text  string

	out          bytes.Buffer // of the file that is written
	id, cwd      string       // of its session
	parent       string       // the last record
	agent        string       // of a subagent's file, "" for the session's own
	last         []byte       // the session before, from which forks are made
	lastID       string
	calls, files int
}

// fillText makes the text of which all texts are parts: words, line breaks, quotes.
func (g *generator) fillText() {
	words := strings.Fields("session entry index file line offset return error func range struct buffer append tool result branch label leaf")
	var b strings.Builder
	for b.Len() < 1<<20 {
		b.WriteString(words[g.rng.IntN(len(words))])
		b.WriteString([...]string{" ", " ", " ", `\n`, `\t`, `\"`, "."}[g.rng.IntN(7)])
	}
	g.text = b.String()
}

// draw returns a text of about n bytes, as it stands in a JSON string.
func (g *generator) draw(n int) string {
	from := g.rng.IntN(len(g.text) - n - 1<<10)
	from += strings.IndexByte(g.text[from:], ' ') + 1
	return g.text[from : from+n+strings.IndexByte(g.text[from+n:], ' ')]
}

// uuid returns a new id of a record.
func (g *generator) uuid() string {
	return fmt.Sprintf("%08x-7a11-4000-8000-%012x", g.rng.Uint32(), g.rng.Uint64()>>16)
}

// put writes a record that goes on from the one before.
func (g *generator) put(typ, more string) {
	g.now = g.now.Add(time.Duration(1+g.rng.IntN(20)) * time.Second)
	up := "null"
	if g.parent != "" {
		up = `"` + g.parent + `"`
	}
	uuid := g.uuid()
	agent := ""
	if g.agent != "" {
		agent = `"agentId":"` + g.agent + `",`
	}
	fmt.Fprintf(&g.out, `{"parentUuid":%s,"isSidechain":%t,%s"userType":"external","cwd":%q,"sessionId":%q,"version":"2.1.330",`+
		`"gitBranch":"main","type":%q,%s,"uuid":%q,"timestamp":%q}`+"\n",
		up, g.agent != "", agent, g.cwd, g.id, typ, more, uuid, g.now.Format("2006-01-02T15:04:05.000Z"))
	g.parent = uuid
}

// answer writes an answer with one call as one to three records, and its result. Only the last record has all its tokens.
func (g *generator) answer(model, tool, input string) {
	g.calls++
	blocks := []string{fmt.Sprintf(`{"type":"tool_use","id":"toolu_%08d","name":%q,"input":%s}`, g.calls, tool, input)}
	if g.rng.IntN(3) > 0 {
		blocks = append([]string{`{"type":"text","text":"` + g.draw(400) + `"}`}, blocks...)
	}
	if g.rng.IntN(4) == 0 {
		blocks = append([]string{`{"type":"thinking","thinking":"` + g.draw(600) + `","signature":"c2ln"}`}, blocks...)
	}
	t := Tokens{
		Answers: 1,
		Input:   int64(g.rng.IntN(50)),
		Output:  int64(10 + g.rng.IntN(3000)),
		Read:    int64(g.rng.IntN(90_000)),
		Write:   int64(g.rng.IntN(6000)),
		Hour:    0,
	}
	t.Hour = t.Write * int64(g.rng.IntN(3)) / 2
	for i, block := range blocks {
		output := t.Output
		stop := `"tool_use"`
		if i < len(blocks)-1 {
			output = 1 + int64(g.rng.IntN(8))
			stop = "null"
		}
		g.put("assistant", fmt.Sprintf(`"requestId":"req_%08d","message":{"model":%q,"id":"msg_%08d","type":"message","role":"assistant","content":[%s],`+
			`"stop_reason":%s,"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,`+
			`"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":%d},"output_tokens":%d,"service_tier":"standard"}}`,
			g.calls, model, g.calls, block, stop, t.Input, t.Write, t.Read, t.Write-t.Hour, t.Hour, output))
	}
	g.truth.add(Key{g.now.Format(time.DateOnly), model}, t)
}

// result writes the result of the last call; details are the members that the client keeps beside it.
func (g *generator) result(text, details string) {
	g.put("user", fmt.Sprintf(`"message":{"role":"user","content":[{"tool_use_id":"toolu_%08d","type":"tool_result","content":"%s","is_error":false}]},`+
		`"toolUseResult":%s`, g.calls, text, details))
}

// session writes a session of about that many bytes, with the files of its subagents.
func (g *generator) session(i, size int) error {
	g.id = fmt.Sprintf("019c6f0e-7a11-4000-8000-%012x", i)
	g.cwd = fmt.Sprintf("/home/dev/project-%d", i/20)
	g.parent = ""
	g.agent = ""
	g.out.Reset()
	g.now = g.now.Add(time.Duration(g.rng.IntN(8)) * time.Hour)
	if i%forkEvery == forkEvery-1 {
		half := g.last[:bytes.LastIndexByte(g.last[:len(g.last)/2], '\n')+1]
		g.out.Write(bytes.ReplaceAll(half, []byte(g.lastID), []byte(g.id)))
		g.parent = lastUUID(half)
	}
	for turn := 0; g.out.Len() < size; turn++ {
		if turn%8 == 0 {
			g.put("user", `"message":{"role":"user","content":"`+g.draw(300)+`"}`)
		}
		model := models[g.rng.IntN(len(models)-1)]
		if g.rng.IntN(agentEvery) == 0 {
			if err := g.subagent(model); err != nil {
				return err
			}
			continue
		}
		g.answer(model, "Bash", `{"command":"`+g.draw(200)+`"}`)
		output := g.draw(1 + g.rng.IntN(record))
		g.result(output, `{"stdout":"`+output+`","stderr":"","interrupted":false}`)
	}
	g.last = append(g.last[:0], g.out.Bytes()...)
	g.lastID = g.id
	return g.write(filepath.Join("projects", strings.ReplaceAll(g.cwd, "/", "-"), g.id+".jsonl"))
}

// subagent writes a call of a subagent with its result, and the subagent's file.
func (g *generator) subagent(model string) error {
	g.answer(model, "Agent", `{"description":"count","prompt":"`+g.draw(100)+`","subagent_type":"general-purpose"}`)
	call := g.calls
	parent := g.parent
	session := bytes.Clone(g.out.Bytes())
	g.files++
	id := fmt.Sprintf("a%07x", g.files)
	g.out.Reset()
	g.agent = id
	g.parent = ""
	g.put("user", `"message":{"role":"user","content":"`+g.draw(100)+`"}`)
	for range 1 + g.rng.IntN(6) {
		g.answer(models[len(models)-1], "Read", `{"file_path":"/tmp/x"}`)
		text := g.draw(1 + g.rng.IntN(record))
		g.result(text, `{"type":"text"}`)
	}
	err := g.write(filepath.Join("projects", strings.ReplaceAll(g.cwd, "/", "-"), g.id, "subagents", "agent-"+id+".jsonl"))
	g.out.Reset()
	g.out.Write(session)
	g.agent = ""
	g.parent = parent
	g.put("user", fmt.Sprintf(`"message":{"role":"user",`+
		`"content":[{"tool_use_id":"toolu_%08d","type":"tool_result","content":[{"type":"text","text":"%s"}]}]},`+
		`"toolUseResult":{"status":"completed","agentId":%q,"totalDurationMs":5}`, call, g.draw(200), id))
	return err
}

// write writes the file and gives it the time of its last record.
func (g *generator) write(name string) error {
	name = filepath.Join(g.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(name, g.out.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Chtimes(name, g.now, g.now)
}

// add adds tokens to a line of the bill.
func (t Truth) add(key Key, more Tokens) {
	if t[key] == nil {
		t[key] = &Tokens{}
	}
	t[key].Add(more)
}

// Add adds more tokens.
func (t *Tokens) Add(more Tokens) {
	t.Answers += more.Answers
	t.Input += more.Input
	t.Output += more.Output
	t.Read += more.Read
	t.Write += more.Write
	t.Hour += more.Hour
}

// lastUUID returns the uuid of the last record in lines.
func lastUUID(lines []byte) string {
	const key = `"uuid":"`
	_, uuid, _ := bytes.Cut(lines[bytes.LastIndex(lines, []byte(key)):], []byte(key))
	return string(uuid[:bytes.IndexByte(uuid, '"')])
}
