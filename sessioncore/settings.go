package sessioncore

import (
	"strconv"

	"sessionfs/sessioncore/internal/rawjson"
)

// writeSettings writes the settings in effect at the end of the path (docs/format.md, Context).
func (c *contextBuilder) writeSettings() {
	switch c.s.dialect {
	case Operator: // which has one model for all roles
		c.writeSetting(TypeThinkingLevelChange, "thinking_level", `"off"`)
		c.writeSetting(TypeModelChange, "model_id", "")
		return
	case Pi: // pi's settings, then the members that every context has
		c.writePiThinkingLevel()
		c.writePiModel()
	default:
		c.writeSetting(TypeThinkingLevelChange, "thinkingLevel", `"off"`)
	}
	c.writeSetting(TypeServiceTierChange, "serviceTier", "")
	c.writeModels()
	c.writeRules()
	c.writeTools()
	c.writeMode()
}

// lastOf reads the last entry of a type on the path. The result is empty if there is none.
func (c *contextBuilder) lastOf(kind EntryType) entryText {
	at := c.last(kind)
	if at >= 0 {
		return c.load(c.path[at])
	}
	return entryText{}
}

// writeSetting writes a member of the last entry of a type. Where that is missing it writes
// defaultValue, which is JSON, or nothing if that is "".
func (c *contextBuilder) writeSetting(kind EntryType, key, defaultValue string) {
	l := c.lastOf(kind)
	value := l.text.Member(key)
	if !value.Missing() {
		c.writeField(l, key, value)
	} else if defaultValue != "" {
		c.doc.AddText(`,"` + key + `":` + defaultValue)
	}
}

// chosenModel is a role's model: a value in an entry, or a composed name.
type chosenModel struct {
	role  string
	in    entryText     // the entry with the value
	model rawjson.Value // nil: the name counts
	name  string
}

// writeModels writes the model of each role.
func (c *contextBuilder) writeModels() {
	c.doc.AddText(`,"models":{`)
	for i, m := range c.chosenModels() {
		if i > 0 {
			c.doc.AddText(",")
		}
		c.doc.AddText(string(rawjson.AppendQuoted(nil, m.role)) + ":")
		if m.model == nil {
			c.doc.AddText(string(rawjson.AppendQuoted(nil, m.name)))
		} else {
			c.writeValue(m.in, m.model)
		}
	}
	c.doc.AddText(`}`)
}

// chosenModels returns the model of each role, by the model changes, in the order of the roles' first changes. Until
// one of them names the role default, that role's model comes from assistant messages and old model changes.
func (c *contextBuilder) chosenModels() (chosen []chosenModel) {
	const defaultRole = "default"
	isExplicit := false // a change has named the role default
	answer := NoEntry   // the last message or old change with the default model
	for _, e := range c.path {
		rec := &c.s.records[e]
		if rec.kind == TypeMessage && rec.role == RoleAssistant && !isExplicit {
			answer = e
		}
		if rec.kind != TypeModelChange {
			continue
		}
		l := c.load(e)
		model := l.text.Member("model")
		isOld := l.text.Member("provider").IsString() && l.text.Member("modelId").IsString()
		switch {
		case model.Truthy():
			role := l.text.Member("role")
			name := defaultRole
			if !role.Missing() {
				name = role.AsKey()
			}
			if name == defaultRole {
				isExplicit = true
			}
			chosen = withModel(chosen, chosenModel{role: name, in: l, model: model})
		case isOld && !isExplicit:
			answer = e
		}
	}
	if !isExplicit && answer != NoEntry {
		chosen = withModel(chosen, chosenModel{role: defaultRole, name: c.modelNamed(answer)})
	}
	return chosen
}

// withModel returns the models with one in the place of its role's, or at the end if the role is new.
func withModel(chosen []chosenModel, latest chosenModel) []chosenModel {
	for i := range chosen {
		if chosen[i].role == latest.role {
			chosen[i] = latest
			return chosen
		}
	}
	return append(chosen, latest)
}

// modelNamed returns "provider/model" from an assistant message or an old model change.
func (c *contextBuilder) modelNamed(e Entry) string {
	l := c.load(e)
	if l.rec.kind == TypeModelChange {
		return l.text.Member("provider").AsKey() + "/" + l.text.Member("modelId").AsKey()
	}
	message := l.text.Member("message")
	return message.Member("provider").AsKey() + "/" + message.Member("model").AsKey()
}

// EachName calls f for each value in a client's loop over a list of names, which is JavaScript's: the
// elements of an array or the characters of a string, each as JSON. Other values have none.
func EachName(list rawjson.Value, f func(v rawjson.Value)) {
	if list.IsArray() {
		for v := range list.EachElement {
			f(v)
		}
		return
	}
	text, _ := list.Text()
	for b := []byte(text); len(b) > 0; {
		_, n := rawjson.DecodeRune(b)
		f(rawjson.AppendQuoted(nil, string(b[:n])))
		b = b[n:]
	}
}

// writeRules writes the rules of all ttsr_injection entries, without duplicates. Objects and arrays
// are no duplicates of each other, as JavaScript's Set compares them by identity.
func (c *contextBuilder) writeRules() {
	var rules []byte
	known := map[string]bool{}
	for _, e := range c.path {
		if c.s.records[e].kind != TypeTTSRInjection {
			continue
		}
		injected := c.load(e).text.Member("injectedRules")
		EachName(injected, func(v rawjson.Value) {
			name := string(v)
			if v.IsString() {
				decoded, _ := v.Text()
				name = string(rawjson.AppendQuoted(nil, decoded))
			}
			isContainer := v.IsObject() || v.IsArray()
			if known[name] && !isContainer {
				return
			}
			known[name] = true
			rules = rawjson.AppendListed(rules, name)
		})
	}
	c.doc.AddText(`,"injectedTtsrRules":[` + string(rules) + `]`)
}

// writeTools writes the tools of MCP servers that were selected last.
func (c *contextBuilder) writeTools() {
	l := c.lastOf(TypeMCPToolSelection)
	var tools []byte
	EachName(l.text.Member("selectedToolNames"), func(v rawjson.Value) {
		tools = rawjson.AppendListed(tools, string(v))
	})
	c.doc.AddText(`,"selectedMCPToolNames":[` + string(tools) + `]`)
	c.doc.AddText(`,"hasPersistedMCPToolSelection":` + strconv.FormatBool(l.text != nil))
}

// writeMode writes the mode that was set last.
func (c *contextBuilder) writeMode() {
	l := c.lastOf(TypeModeChange)
	if l.text == nil {
		c.doc.AddText(`,"mode":"none"`)
		return
	}
	c.writeField(l, "mode", l.text.Member("mode"))
	c.writeField(l, "modeData", l.text.Member("data"))
}
