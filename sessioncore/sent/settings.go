package sent

import (
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// settings returns the members after the messages: the state that results from the settings of the path.
func (b *builder) settings() ([]byte, error) {
	found := settings{level: rawjson.Value(`"off"`), mode: rawjson.Value(`"none"`), seen: map[string]bool{}}
	for _, e := range b.path {
		if err := b.ctx.Err(); err != nil {
			return nil, err
		}
		kind := b.s.Kind(e)
		answer := kind == sessioncore.TypeMessage && b.s.Role(e) == sessioncore.RoleAssistant && !found.explicit
		switch kind {
		case sessioncore.TypeThinkingLevelChange, sessioncore.TypeModelChange, sessioncore.TypeServiceTierChange,
			sessioncore.TypeTTSRInjection, sessioncore.TypeModeChange:
		default:
			if !answer {
				continue
			}
		}
		text, _, _, err := b.s.LoadedText(e)
		if err != nil {
			return nil, err
		}
		if answer {
			message := messageOf(text)
			found.setModel("default", rawjson.AppendQuoted(nil, templated(message.Member("provider"))+"/"+templated(message.Member("model"))))
			continue
		}
		found.take(kind, text)
	}
	return found.members(), nil
}

// settings is what the settings entries of a path come to.
type settings struct {
	level, configured, tier, mode, modeData rawjson.Value
	roles                                   []string
	models                                  []rawjson.Value
	explicit                                bool // a model change has named the model of the role default
	rules                                   []rawjson.Value
	seen                                    map[string]bool // the rules
}

func (s *settings) take(kind sessioncore.EntryType, text rawjson.Value) {
	switch kind {
	case sessioncore.TypeThinkingLevelChange:
		level := text.Member("thinkingLevel")
		s.level, s.configured = rawjson.Value(`"off"`), nil
		if !level.Missing() {
			s.level, s.configured = level, level
		}
		if configured := text.Member("configured"); !configured.Missing() {
			s.configured = configured
		}
	case sessioncore.TypeModelChange:
		model, role := text.Member("model"), "default"
		if r := text.Member("role"); !r.Missing() {
			role = r.AsKey()
		}
		if model.Truthy() {
			s.setModel(role, model)
			s.explicit = s.explicit || role == "default"
		}
	case sessioncore.TypeServiceTierChange:
		s.tier = tiers(text.Member("serviceTier"))
	case sessioncore.TypeTTSRInjection:
		s.addRules(text.Member("injectedRules"))
	case sessioncore.TypeModeChange:
		s.mode, s.modeData = text.Member("mode"), text.Member("data")
	}
}

func (s *settings) setModel(role string, model rawjson.Value) {
	if role == "__proto__" {
		return // setting an object's prototype to a string does nothing in the client
	}
	for i, known := range s.roles {
		if known == role {
			s.models[i] = model
			return
		}
	}
	s.roles, s.models = append(s.roles, role), append(s.models, model)
}

// addRules adds the names of rules, each once; of a string its characters, as the client's loop does.
func (s *settings) addRules(names rawjson.Value) {
	all := elements(names)
	text, _ := names.Text()
	for b := []byte(text); len(b) > 0; {
		_, n := rawjson.DecodeRune(b)
		all = append(all, rawjson.AppendQuoted(nil, string(b[:n])))
		b = b[n:]
	}
	for _, name := range all {
		if key := callKey(name); !s.seen[key] || name.IsObject() || name.IsArray() {
			s.seen[key] = true
			s.rules = append(s.rules, name)
		}
	}
}

// members returns the settings as members of an object, with a comma before them.
func (s *settings) members() []byte {
	var o object
	o.raw("thinkingLevel", s.level)
	o.raw("configuredThinkingLevel", s.configured)
	o.raw("serviceTier", s.tier)
	var models object
	for i, role := range s.roles {
		key := rawjson.AppendQuoted(nil, role)
		models.raw(string(key[1:len(key)-1]), s.models[i])
	}
	if len(s.roles) == 0 {
		models.buf = []byte("{")
	}
	o.raw("models", models.end())
	o.raw("injectedTtsrRules", list(s.rules...))
	o.raw("mode", s.mode)
	o.raw("modeData", s.modeData)
	o.buf[0] = ',' // the object has begun with the messages
	return o.buf
}

// familyTiers are the names of tiers that stand for those of some families of providers.
var familyTiers = map[string]string{
	"priority":    `{"openai":"priority","anthropic":"priority","google":"priority"}`,
	"openai-only": `{"openai":"priority"}`,
	"claude-only": `{"anthropic":"priority"}`,
	"auto":        `{"openai":"auto"}`,
	"default":     `{"openai":"default"}`,
	"flex":        `{"openai":"flex"}`,
	"scale":       `{"openai":"scale"}`,
}

// tiers returns service tiers by the family of the provider, nil if there is none.
func tiers(v rawjson.Value) rawjson.Value {
	if text, ok := v.Text(); ok {
		return rawjson.Value(familyTiers[text])
	}
	var o object
	for _, family := range []string{"openai", "anthropic", "google"} {
		tier := v.Member(family)
		switch text, _ := tier.Text(); text {
		case "auto", "default", "flex", "scale", "priority":
			o.raw(family, tier)
		}
	}
	if len(o.buf) == 0 {
		return nil
	}
	return o.end()
}
