package forks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
)

// said is a part of a conversation, to compare it: a hash of a text, an image or a call with its speaker.
type said struct {
	hash    uint64
	message int // its number in the context
}

// saids are the parts of a conversation in order. Results stand apart, as their place is behind their calls.
type saids struct {
	parts   []said
	results [][]said // by call; nil for none
}

var seed = maphash.MakeSeed()

// hashOf returns the hash of a block in a turn.
func hashOf(by agents.Speaker, b *agents.TurnBlock) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	if by == agents.ByProgram { // other agents may say the same in the person's name
		by = agents.ByUser
	}
	_ = h.WriteByte(byte(by))
	for _, part := range []string{b.Text, b.MediaType, b.Data, b.Tool} {
		maphash.WriteComparable(&h, part)
	}
	if b.Call != "" {
		hashJSON(&h, b.Arguments)
	}
	return h.Sum64()
}

// hashJSON adds the tokens of a JSON text, however it is written.
func hashJSON(h *maphash.Hash, text rawjson.Value) {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	for {
		token, err := in.Token()
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(h, "%T %q\n", token, fmt.Sprint(token))
	}
}

// saidIn returns the parts of a context.
func saidIn(ctx context.Context, of *document.Document) (*saids, error) {
	c, err := readConversation(ctx, of)
	if err != nil {
		return nil, err
	}
	all := &saids{results: make([][]said, len(c.calls))}
	for i := range c.messages {
		err := ctx.Err()
		if err != nil {
			return nil, err
		}
		turn, err := c.turnOf(i)
		if err != nil {
			return nil, err
		}
		if turn == nil {
			continue
		}
		parts := saidOf(turn, i+1)
		call, isResult := c.results[i]
		if isResult {
			all.results[call] = parts
		} else {
			all.parts = append(all.parts, parts...)
		}
	}
	return all, nil
}

// saidOf returns the parts of a turn: the lines of its texts, and behind them its images and calls. Agents
// may join the texts of a turn or keep them apart from the rest.
func saidOf(t *agents.Turn, message int) []said {
	parts := []said{}
	add := func(b *agents.TurnBlock) {
		parts = append(parts, said{hash: hashOf(t.By, b), message: message})
	}
	for line := range strings.Lines(t.Texts("\n")) {
		if strings.TrimSpace(line) != "" {
			add(&agents.TurnBlock{Text: strings.TrimSuffix(line, "\n")})
		}
	}
	for i := range t.Blocks {
		if t.Blocks[i].Text == "" {
			add(&t.Blocks[i])
		}
	}
	return parts
}

// CheckSaid is the comparison of Receive for a session that was made otherwise, and ends with an entry.
func (g *Given) CheckSaid(ctx context.Context, made *sessioncore.Snapshot, blobs document.Blobs) error {
	want, err := g.Snapshot.Context(ctx, g.Entry, g.Blobs)
	if err != nil {
		return err
	}
	defer want.Close()
	leaf, err := made.Leaf()
	if err != nil {
		return err
	}
	got, err := made.Context(ctx, leaf, blobs)
	if err != nil {
		return err
	}
	defer got.Close()
	return compareSaid(ctx, want, got)
}

// compareSaid returns a refusal that names the first message of a context that another one lacks or has
// otherwise. got may begin with a note, and have notes where want has no results.
func compareSaid(ctx context.Context, want, got *document.Document) error {
	before, err := saidIn(ctx, want)
	if err != nil {
		return err
	}
	after, err := saidIn(ctx, got)
	if err != nil {
		return err
	}
	first := hashOf(agents.ByUser, &agents.TurnBlock{Text: firstText})
	parts := after.parts
	hasNote := len(parts) > 0 && parts[0].hash == first
	isNoted := len(before.parts) > 0 && before.parts[0].hash == first
	if hasNote && !isNoted {
		parts = parts[1:]
	}
	err = compareParts(before.parts, parts)
	if err != nil {
		return err
	}
	if len(before.results) != len(after.results) {
		return differsAt(0)
	}
	for call, result := range before.results {
		if result == nil {
			continue
		}
		err := compareParts(result, after.results[call])
		if err != nil {
			return err
		}
	}
	return nil
}

// compareParts compares parts one by one.
func compareParts(want, got []said) error {
	for i := range want {
		if i >= len(got) || want[i].hash != got[i].hash {
			return differsAt(want[i].message)
		}
	}
	if len(got) > len(want) {
		return differsAt(got[len(want)].message)
	}
	return nil
}

// differsAt returns the refusal of a new session that has a message otherwise.
func differsAt(message int) error {
	return refuse("the new session would differ in message %d", max(1, message))
}
