package all

import (
	_ "sessionfs/sessioncore/agents/claude"
	_ "sessionfs/sessioncore/agents/codex"
)
