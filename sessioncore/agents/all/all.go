// Package all registers all agents: it is the only one, besides their own packages, that names
// them.
package all

import (
	_ "sessionfs/sessioncore/agents/claude" // each registers itself
	_ "sessionfs/sessioncore/agents/codex"
	_ "sessionfs/sessioncore/agents/copilot"
	_ "sessionfs/sessioncore/agents/gemini"
	_ "sessionfs/sessioncore/agents/kimi"
	_ "sessionfs/sessioncore/agents/opencode"
	_ "sessionfs/sessioncore/agents/qwen"
)
