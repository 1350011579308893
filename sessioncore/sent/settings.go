package sent

import (
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// settings is what the settings entries of a path come to.
type settings struct {
	level, configured, tier, mode, modeData rawjson.Value
	models                                  []any // roles and their models in turn
	explicit                                bool  // a model change has named the model of the role default
	rules                                   []rawjson.Value
	seen                                    map[string]bool // the rules
}

// settings returns the members after the messages: the state that results from the settings of the path.
func (b *builder) settings() ([]byte, error) {
	s := settings{level: quoted("off"), mode: quoted("none"), seen: map[string]bool{}}
	for _, e := range b.path {
		if err := b.ctx.Err(); err != nil {
			return nil, err
		}
		kind := b.s.Kind(e)
		answer := kind == sessioncore.TypeMessage && b.s.Role(e) == sessioncore.RoleAssistant && !s.explicit
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
			s.setModel("default", quoted(message.Member("provider").AsKey()+"/"+message.Member("model").AsKey()))
			continue
		}
		s.take(kind, text)
	}
	all := object("thinkingLevel", s.level, "configuredThinkingLevel", s.configured, "serviceTier", s.tier, "models", object(s.models...),
		"injectedTtsrRules", list(s.rules...), "mode", s.mode, "modeData", s.modeData)
	all[0] = ',' // the object has begun with the messages
	return all[:len(all)-1], nil
}

func (s *settings) take(kind sessioncore.EntryType, text rawjson.Value) {
	switch kind {
	case sessioncore.TypeThinkingLevelChange:
		level := text.Member("thinkingLevel")
		s.level, s.configured = quoted("off"), nil
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
		sessioncore.EachName(text.Member("injectedRules"), func(name rawjson.Value) {
			if key := callKey(name); !s.seen[key] || name.IsObject() || name.IsArray() {
				s.seen[key] = true
				s.rules = append(s.rules, name)
			}
		})
	case sessioncore.TypeModeChange:
		s.mode, s.modeData = text.Member("mode"), text.Member("data")
	}
}

func (s *settings) setModel(role string, model rawjson.Value) {
	for i := 0; i < len(s.models); i += 2 {
		if s.models[i] == role {
			s.models[i+1] = model
			return
		}
	}
	s.models = append(s.models, role, model)
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
	var found []any
	for _, family := range []string{"openai", "anthropic", "google"} {
		if text, _ := v.Member(family).Text(); slices.Contains([]string{"auto", "default", "flex", "scale", "priority"}, text) {
			found = append(found, family, text)
		}
	}
	if found == nil {
		return nil
	}
	return object(found...)
}
