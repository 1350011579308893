package all

import (
	_ "sessionfs/sessioncore/agents/claude"
	_ "sessionfs/sessioncore/agents/codex"
	_ "sessionfs/sessioncore/agents/gemini"
)
