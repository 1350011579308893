package sent

import "slices"

// dropDangling marks the answers that have tool calls without a result on the branch: these calls are left out, as a
// provider would take them for calls that failed. An answer of which nothing is left is dropped.
func (b *builder) dropDangling() {
	b.paired = map[string]bool{}
	for i := range b.messages {
		if m := &b.messages[i]; m.of == ofMessage && m.role == "toolResult" {
			b.paired[m.result] = true
		}
	}
	b.messages = slices.DeleteFunc(b.messages, func(m message) bool {
		return len(m.calls) > 0 && !m.says && !slices.ContainsFunc(m.calls, func(call string) bool { return b.paired[call] })
	})
	for i := range b.messages {
		m := &b.messages[i]
		m.strips = slices.ContainsFunc(m.calls, func(call string) bool { return !b.paired[call] })
	}
}

// dropFailed drops the answers that were aborted or ended in an error, with the results of their tool calls. One that
// the note on its interrupted thinking follows stays, without that thinking.
func (b *builder) dropFailed() {
	kept := b.messages[:0:0]
	dropped := make([]bool, len(b.messages))
	results := map[string][]int{} // the results after the message looked at that are not dropped, by their call
	next := -1                    // the first message after it that is not dropped
	for i := len(b.messages) - 1; i >= 0; i-- {
		m := &b.messages[i]
		m.demotes = m.role == "assistant" && m.of == ofMessage && next >= 0 && b.messages[next].interrupted
		if m.of == ofMessage && m.role == "assistant" && m.failed && !m.demotes {
			dropped[i] = true
			for _, call := range m.calls {
				for _, at := range results[call] {
					dropped[at] = true
				}
				delete(results, call)
			}
			for next >= 0 && next < len(dropped) && dropped[next] {
				if next++; next == len(dropped) {
					next = -1
				}
			}
			continue
		}
		if m.of == ofMessage && m.role == "toolResult" {
			results[m.result] = append(results[m.result], i)
		}
		next = i
	}
	for i, m := range b.messages {
		if !dropped[i] && !m.refused {
			kept = append(kept, m)
		}
	}
	b.messages = kept
}
