package forks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/document"
)

// SourceBranch is a branch of another agent's session, for a handover.
type SourceBranch struct {
	Snapshot *sessioncore.Snapshot
	Entry    sessioncore.Entry
	// IsSubagent says that the session is one of a subagent, by its place.
	IsSubagent bool
	// Agent is the agent's name, and Foreign the agent, nil for omp and its kin.
	Agent   string
	Foreign *agents.Agent
	// Blobs are the images beside the session, nil for none.
	Blobs document.Blobs
	// CWD is the working directory of the new session, without links.
	CWD string
	// ID is the id of the new session, "" for a random one.
	ID string
	// Notes are set by Receive: remarks about differences of the new session.
	Notes []string
}

// Receive makes a session of this agent with a conversation that another agent had, and returns its id
// and its name in Files. The file appears when it is complete and has the same texts, images, calls and
// results.
//
// The error wraps sessioncore.ErrInvalid where the conversation cannot be handed over, or an error of the
// storage.
func (h *Home) Receive(ctx context.Context, from *SourceBranch) (id, name string, err error) {
	err = h.closed()
	if err != nil {
		return "", "", err
	}
	receiver, ok := h.Format.(agents.Receiver)
	if !ok {
		return "", "", refuse("%s takes no conversations of other agents", h.Agent.Title)
	}
	err = from.Check()
	if err != nil {
		return "", "", err
	}
	want, entries, err := from.Snapshot.ContextEntries(ctx, from.Entry, from.Blobs)
	if err != nil {
		return "", "", err
	}
	defer want.Close()
	c, err := readConversation(ctx, want)
	if err != nil {
		return "", "", err
	}
	c.snapshot = from.Snapshot
	c.entries = entries
	handover, err := h.handoverOf(ctx, from, c)
	if err != nil {
		return "", "", err
	}
	room := budget.Room{
		Limit:  h.Memory,
		Memory: h.Memory.Kept(),
		Most:   inMemory,
		Dir:    h.Temporary,
	}
	text := room.New()
	defer text.Close()
	place, err := writeHandover(receiver, handover, text)
	if err != nil {
		return "", "", err
	}
	name = place.Name(h.Agent)
	compare := func(got *document.Document) error {
		return compareConversations(ctx, want, got)
	}
	err = h.inFork(ctx, name, text, compare)
	if err != nil {
		return "", "", err
	}
	err = h.place(ctx, place, text)
	return handover.ID, name, err
}

// refuse returns the refusal of a handover.
func refuse(format string, args ...any) error {
	return &forkRefusal{fmt.Errorf("this conversation cannot be handed over: "+format, args...)}
}

// handoverOf returns the handover of a conversation. Its EachTurn adds to from.Notes, and fails if there is
// no turn.
func (h *Home) handoverOf(ctx context.Context, from *SourceBranch, c *conversation) (*agents.Handover, error) {
	header, _, err := from.Snapshot.ReadHeader()
	if err != nil {
		return nil, err
	}
	title, err := from.Snapshot.Title()
	if err != nil {
		return nil, err
	}
	now := h.Now()
	id := from.ID
	if id == "" {
		id = h.sessionID(agents.NewUUID(), now)
	}
	handover := &agents.Handover{
		ID:    id,
		Title: title,
		CWD:   from.CWD,
		Time:  now,
	}
	handover.Origin = agents.HandoverOrigin{Source: from.Agent, Session: id}
	handover.Origin.ID, _ = header.Member("id").Text()
	handover.Origin.CWD, _ = header.Member("cwd").Text()
	handover.Origin.Entry, _ = from.Snapshot.ID(from.Entry)
	handover.EachTurn = func(f func(*agents.Turn) error) error {
		turns := 0
		err := c.eachTurn(ctx, now, func(t *agents.Turn) error {
			turns++
			return f(t)
		})
		if err == nil && turns == 0 {
			err = agents.NoFork("nothing was said up to here")
		}
		if c.images > 0 {
			note := fmt.Sprintf("images that models do not take, and are a text now: %d", c.images)
			from.Notes = append(from.Notes, note)
		}
		return err
	}
	return handover, nil
}

// StableID returns an ID that a new session has each time that the same branch is handed over to this agent,
// so that it is found there.
func (h *Home) StableID(from *SourceBranch) (string, error) {
	header, _, err := from.Snapshot.ReadHeader()
	if err != nil {
		return "", err
	}
	id, _ := header.Member("id").Text()
	entry, _ := from.Snapshot.ID(from.Entry)
	at, isTimed := from.Snapshot.OwnTime(from.Entry)
	if !isTimed {
		at = time.UnixMilli(0) // any time that is always the same
	}
	uuid := agents.HashedUUID(h.Agent.Name, from.Agent, id, entry)
	return h.sessionID(uuid, at), nil
}

// sessionID returns the id of a new session, by a UUID and a time: the UUID itself, unless the agent has ids
// of another form.
func (h *Home) sessionID(uuid string, at time.Time) string {
	own, hasOwn := h.Format.(agents.OwnIDs)
	if hasOwn {
		return own.SessionID(uuid, at)
	}
	return uuid
}

// writeHandover writes the text of a new session, and returns its place. A reason of the agent's form
// against the handover becomes a refusal.
func writeHandover(to agents.Receiver, handover *agents.Handover, text io.Writer) (agents.ForkPlace, error) {
	out := bufio.NewWriterSize(text, 64<<10)
	place, err := to.Receive(handover, out)
	if err == nil {
		err = out.Flush()
	}
	reason, isReason := errors.AsType[*agents.ForkError](err)
	if isReason {
		err = refuse("%s", reason.Reason)
	}
	return place, err
}

// Check returns a refusal of a conversation that cannot be handed over: of a subagent, or with a line on
// its path that is damaged or was not read whole.
func (b *SourceBranch) Check() error {
	header, _, err := b.Snapshot.ReadHeader()
	if err != nil {
		return err
	}
	switch {
	case b.Snapshot.Dialect() == sessioncore.Operator:
		return refuse("sessions of operator are not handed over")
	case b.IsSubagent, !header.Member("subagent").Missing():
		return refuse("it is a subagent's")
	}
	path := b.Snapshot.Path(b.Entry)
	if len(path) == 0 {
		return refuse("the session has no entry yet")
	}
	if b.Foreign == nil { // its own file has its lines
		return b.checkLines(path[0], nil, 0)
	}
	lines := map[int64]bool{}
	end := int64(0)
	for _, e := range path {
		of, err := linesOf(b.Snapshot, e)
		if err != nil {
			return err
		}
		for _, line := range of.Lines {
			if of.File == "" {
				lines[line] = true
				end = max(end, line)
			}
		}
	}
	return b.checkLines(path[0], lines, end)
}

// checkLines refuses a path if a damaged line may have belonged to it. lines are the path's lines in the
// session's own file, and end the last of them; root is its first entry. A damaged line counts
//
//   - if it is one of lines;
//   - if the path was cut at its root, since an entry before it is missing;
//   - up to end, if the agent's records do not name their parents.
func (b *SourceBranch) checkLines(root sessioncore.Entry, lines map[int64]bool, end int64) error {
	problems, _ := b.Snapshot.Problems()
	id, _ := b.Snapshot.ID(root)
	cuts := []sessioncore.ProblemKind{sessioncore.ProblemOrphan, sessioncore.ProblemUnwritten, sessioncore.ProblemCycle}
	isCut := slices.ContainsFunc(problems, func(p sessioncore.Problem) bool {
		return string(p.ID) == id && slices.Contains(cuts, p.What)
	})
	isLinked := b.Foreign == nil || b.Foreign.Linked
	for i := range problems {
		p := problems[i].InOwnFile()
		isDamage := p.What == sessioncore.ProblemSkipped || p.What == sessioncore.ProblemNoObject
		if !isDamage {
			continue
		}
		if lines[p.Line] {
			return refuse("line %d cannot be read whole: %s", p.Line, string(p.Why))
		}
		mayBeOnPath := !isLinked && p.Line < end
		if isCut || mayBeOnPath {
			return refuse("line %d is damaged", p.Line)
		}
	}
	return nil
}
