package fs

import (
	"cmp"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"

	"sessionfs/nodes"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage/union"
	"sessionfs/sessioncore/writer"
)

// openAll is openTree for several agents. Each has a tree of its own, as in a mount of it alone, so that all that is written
// goes by its own rules and locks. The ways to find a session look at all of them side by side, and write nothing.
func openAll(o options, log *slog.Logger) (t *tree, err error) {
	t = &tree{}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	memory := newMemory(o)
	whole := &nodes.View{
		Log: log, Memory: memory, ReadOnly: o.ReadOnly, Redacted: o.Redact, BlobRefs: true, Foreign: true,
	}
	var sides, bills []union.Part
	var names []string
	var failed error
	var prompts history.Several
	for _, a := range o.Agents {
		part, err := openAgent(options{o.For(a), o.prices, o.rules}, log, memory, path.Join(layout.Sessions, a.Name))
		if err != nil {
			why := fmt.Errorf("%s: %w", a.Source, err)
			log.Error("an agent is left out", "agent", a.Name, "why", why) // a command says it so
			o.LeftOut, failed = append(o.LeftOut, a.Name+" is left out: "+why.Error()), cmp.Or(failed, why)
			continue
		}
		t.closers = append(t.closers, part.close)
		t.parts, t.shared = append(t.parts, part), t.shared || part.shared
		part.view.Whole, prompts = whole, append(prompts, history.Part{Agent: a.Name, History: part.prompts})
		whole.Agents = append(whole.Agents, nodes.Agent{Name: a.Name, View: part.view, Files: part.files})
		sides, names = append(sides, union.Part{Name: a.Name, Files: part.store.Storage()}), append(names, a.Name)
		bills = append(bills, union.Part{Name: a.Name, Files: part.billed().Storage()})
		if whole.Foreign && !part.view.Foreign { // the first that can be written has what is shown of one alone
			whole.Foreign, whole.Archive = false, part.view.Archive
			t.source, t.archive, t.unmasked = part.source, part.archive, part.unmasked
		}
	}
	if len(t.parts) == 0 && failed != nil {
		return t, failed
	}
	if len(t.parts) == 0 {
		return t, fmt.Errorf("%w: no agent has sessions here", ErrSource)
	}
	t.prompts = prompts
	t.source = cmp.Or(t.source, t.parts[0].source)
	all := union.New(sides...)
	t.files, t.store = all, sessioncore.NewStore(all)
	t.store.Keep(keepArchived)
	t.store.SetProgram(func(name string) program.Program {
		agent, file, _ := strings.Cut(name, "/")
		if i := slices.Index(names, agent); i >= 0 {
			return t.parts[i].store.Program(file)
		}
		return program.Unknown
	})
	t.closers = append(t.closers, t.store.Close)
	memory.OnFull(t.store.EvictIdle)
	t.bill = t.newBill(union.New(bills...), memory, t.store.Program)
	whole.Sessions, whole.Listing = t.store, listing.NewOf(t.store, names...)
	whole.Writer = writer.New(t.store, writer.Options{ReadOnly: true})
	whole.Search = newSearcher(whole, all, layout.Sessions, func() []string { return names })
	t.view = whole
	for _, out := range o.LeftOut {
		whole.LeaveOut(out)
	}
	t.setRoot(t.source, nodes.AgentsName(all, whole.Agents...), o.prices)
	return t, nil
}
