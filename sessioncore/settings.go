package sessioncore

import (
	"sessionfs/sessioncore/internal/rawjson"
)

// writeSettings writes the state that results from the settings entries of the path (docs/format.md, Context).
func (c *contextBuilder) writeSettings() error {
	for _, write := range c.settings() {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// settings returns the functions that write the settings after the messages in the session's dialect, in order.
func (c *contextBuilder) settings() []func() error {
	if c.s.dialect == Operator {
		return []func() error{c.writeThinkingLevel, c.writeModelID}
	}
	level := []func() error{c.writeThinkingLevel}
	if c.s.dialect == Pi { // what pi gives, then what scripts find in every context
		level = []func() error{c.writePiThinkingLevel, c.writePiModel}
	}
	return append(level, c.writeServiceTier, c.writeModels, c.writeRules, c.writeTools, c.writeMode)
}

// lastText returns the last entry of a type on the path with its text, or NoEntry.
func (c *contextBuilder) lastText(kind EntryType) (Entry, rawjson.Value, error) {
	at := c.last(kind)
	if at < 0 {
		return NoEntry, nil, nil
	}
	text, err := c.s.EntryText(c.path[at])
	return c.path[at], text, err
}

func (c *contextBuilder) writeThinkingLevel() error {
	e, text, err := c.lastText(TypeThinkingLevelChange)
	if err != nil {
		return err
	}
	key := c.s.dialect.thinkingLevel
	if level := text.Member(key); !level.Missing() {
		return c.writeFields(e, text, field{key, level})
	}
	c.doc.AddText(`,"` + key + `":"off"`)
	return nil
}

// writeModelID writes the model in the operator dialect, which has one model for all roles. It writes nothing if
// the path chooses none.
func (c *contextBuilder) writeModelID() error {
	e, text, err := c.lastText(TypeModelChange)
	if model := text.Member("model_id"); err == nil && !model.Missing() {
		err = c.writeFields(e, text, field{"model_id", model})
	}
	return err
}

func (c *contextBuilder) writeServiceTier() error {
	e, text, err := c.lastText(TypeServiceTierChange)
	if tier := text.Member("serviceTier"); err == nil && !tier.Missing() {
		err = c.writeFields(e, text, field{"serviceTier", tier})
	}
	return err
}

// chosenModel is a role's model: either a value in an entry, or a name made of two.
type chosenModel struct {
	role  string
	entry Entry
	text  rawjson.Value
	model rawjson.Value
	named string
}

// writeModels writes the model of each role. It comes from model changes. Until one of them names the role default,
// the model of that role comes from assistant messages and old model changes.
func (c *contextBuilder) writeModels() error {
	const defaultRole = "default"
	var chosen []chosenModel
	set := func(m chosenModel) {
		for i := range chosen {
			if chosen[i].role == m.role {
				chosen[i] = m
				return
			}
		}
		chosen = append(chosen, m)
	}
	explicit, answer := false, NoEntry
	for _, e := range c.path {
		rec := &c.s.records[e]
		if rec.kind == TypeMessage && rec.role == RoleAssistant && !explicit {
			answer = e
		}
		if rec.kind != TypeModelChange {
			continue
		}
		text, err := c.s.EntryText(e)
		if err != nil {
			return err
		}
		model := text.Member("model")
		switch {
		case model.Truthy():
			role := text.Member("role")
			name := defaultRole
			if !role.Missing() {
				name = role.AsKey()
			}
			explicit = explicit || name == defaultRole
			set(chosenModel{role: name, entry: e, text: text, model: model})
		case !explicit && text.Member("provider").IsString() && text.Member("modelId").IsString():
			answer = e
		}
	}
	if !explicit && answer != NoEntry {
		named, err := c.modelNamed(answer)
		if err != nil {
			return err
		}
		set(chosenModel{role: defaultRole, named: named})
	}
	c.doc.AddText(`,"models":{`)
	for i, m := range chosen {
		if i > 0 {
			c.doc.AddText(",")
		}
		c.doc.AddText(string(rawjson.AppendQuoted(nil, m.role)) + ":")
		if m.model == nil {
			c.doc.AddText(string(rawjson.AppendQuoted(nil, m.named)))
		} else if err := c.writeValue(m.entry, m.text, m.model); err != nil {
			return err
		}
	}
	c.doc.AddText(`}`)
	return nil
}

// modelNamed returns "provider/model" from an assistant message or an old model change.
func (c *contextBuilder) modelNamed(e Entry) (string, error) {
	text, err := c.s.EntryText(e)
	if err != nil {
		return "", err
	}
	if c.s.records[e].kind == TypeModelChange {
		return text.Member("provider").AsKey() + "/" + text.Member("modelId").AsKey(), nil
	}
	message := text.Member("message")
	return message.Member("provider").AsKey() + "/" + message.Member("model").AsKey(), nil
}

// EachName calls f for each value that a client's loop over a list of names visits: the elements of an array or the
// characters of a string. Other values have none.
func EachName(list rawjson.Value, f func(v rawjson.Value)) {
	if list.IsArray() {
		list.EachElement(func(v rawjson.Value, _ int) bool {
			f(v)
			return true
		})
		return
	}
	text, _ := list.Text()
	for b := []byte(text); len(b) > 0; {
		_, n := rawjson.DecodeRune(b)
		f(rawjson.AppendQuoted(nil, string(b[:n])))
		b = b[n:]
	}
}

// writeRules writes the rules of all ttsr_injection entries, without duplicates.
func (c *contextBuilder) writeRules() error {
	var rules []byte
	seen := map[string]bool{}
	for _, e := range c.path {
		if c.s.records[e].kind != TypeTTSRInjection {
			continue
		}
		text, err := c.s.EntryText(e)
		if err != nil {
			return err
		}
		EachName(text.Member("injectedRules"), func(v rawjson.Value) {
			name := string(v)
			if v.IsString() {
				decoded, _ := v.Text()
				name = string(rawjson.AppendQuoted(nil, decoded))
			}
			if seen[name] && !v.IsObject() && !v.IsArray() {
				return
			}
			seen[name] = true
			rules = rawjson.AppendListed(rules, name)
		})
	}
	c.doc.AddText(`,"injectedTtsrRules":[` + string(rules) + `]`)
	return nil
}

func (c *contextBuilder) writeTools() error {
	e, text, err := c.lastText(TypeMCPToolSelection)
	if err != nil {
		return err
	}
	var tools []byte
	EachName(text.Member("selectedToolNames"), func(v rawjson.Value) { tools = rawjson.AppendListed(tools, string(v)) })
	has := "false"
	if e != NoEntry {
		has = "true"
	}
	c.doc.AddText(`,"selectedMCPToolNames":[` + string(tools) + `],"hasPersistedMCPToolSelection":` + has)
	return nil
}

func (c *contextBuilder) writeMode() error {
	e, text, err := c.lastText(TypeModeChange)
	if err != nil {
		return err
	}
	if e == NoEntry {
		c.doc.AddText(`,"mode":"none"`)
		return nil
	}
	return c.writeFields(e, text, field{"mode", text.Member("mode")}, field{"modeData", text.Member("data")})
}
