package claude

import "testing"

// TestAside: words of the client are no words of the person, and those that are not part of the talk are not sent.
func TestAside(t *testing.T) {
	system := func(uuid, parent, subtype, content string) string {
		return rec("system", uuid, parent, `"subtype":"`+subtype+`","content":`+content)
	}
	attachment := func(uuid, parent, members string) string {
		return rec("attachment", uuid, parent, `"attachment":{`+members+`}`)
	}
	for name, c := range map[string]convertCase{
		"recaps and output of slash commands": {
			[]string{
				user("u1", "", "go"), system("x1", "u1", "away_summary", `"so far"`), system("x2", "x1", "local_command", `"<local-command-stdout>out</local-command-stdout>"`),
				system("x3", "x2", "local_command", `""`), system("x4", "x3", "away_summary", `["no text"]`), system("x5", "x4", "informational", `"note"`),
				says("a1", "x5", "M", textBlock("so"), 1),
			},
			[]string{
				`u1 <  message user "go" [1]`, `x1 < u1 custom_message "so far" not sent [2]`,
				`x2 < x1 custom_message "<local-command-stdout>out</local-command-stdout>" not sent [3]`, `a1 < x2 message assistant "so" stop 15+1 [7]`,
			},
		},
		"output in a record of the person": {
			[]string{
				user("u0", "", "go"), user("u1", "u0", "<bash-input>ls</bash-input>"), user("u2", "u1", "<bash-stdout>out</bash-stdout><bash-stderr></bash-stderr>"),
				rec("user", "u3", "u2", `"message":{"role":"user","content":[{"type":"text","text":"<local-command-stdout>out"}]}`),
				user("u4", "u3", "<command-message>review</command-message>\n<command-name>/review</command-name>"), user("u5", "u4", "<bash-stdout is a tag"),
			},
			[]string{
				`u0 <  message user "go" [1]`, `u1 < u0 message user "<bash-input>ls</bash-input>" [2]`,
				`u2 < u1 custom_message "<bash-stdout>out</bash-stdout><bash-stderr></bash-stderr>" [3]`,
				`u3 < u2 custom_message "<local-command-stdout>out" [4]`, `u4 < u3 message user "<command-message>review</command-message>\n<command-name>/review</command-name>" [5]`,
				`u5 < u4 message user "<bash-stdout is a tag" [6]`,
			},
		},
		"results that are sent in another form": {
			[]string{
				user("u1", "", "go"), says("a1", "u1", "M", callBlock("c1")+","+callBlock("c2"), 1), result("r1", "a1", "c1", "all of it"), result("r2", "a1", "c2", "more"),
				`{"type":"content-replacement","sessionId":"s","replacements":[{"kind":"tool-result","toolUseId":"c1","replacement":"the beginning"},7,{"toolUseId":"c2"}]}`,
				`{"type":"content-replacement","agentId":"x","replacements":[{"toolUseId":"c2","replacement":"no"}]}`, says("a2", "r2", "N", textBlock("so"), 1),
			},
			[]string{
				`u1 <  message user "go" [1]`, `a1 < u1 message assistant c1:Bash{"command":"ls"} c2:Bash{"command":"ls"} toolUse 15+1 [2]`,
				`r1 < a1 message toolResult Bash "the beginning" [3]`, `r1.full < r1 custom_message "all of it" not sent [3]`,
				`r2 < r1.full message toolResult Bash "more" [4]`, `a2 < r2 message assistant "so" stop 15+1 [7]`,
			},
		},
		"files that a prompt names": {
			[]string{
				user("u1", "", "see @a"), attachment("x1", "u1", `"type":"file","filename":"/a","content":{"type":"text","file":{"filePath":"/b","content":"in a"}}`),
				attachment("x2", "x1", `"type":"directory","path":"/d","content":"a\nb"`),
				attachment("x3", "x2", `"type":"file","content":{"type":"image","file":{"filePath":"/i.png","base64":"QUJD","type":"image/png"}}`),
				attachment("x4", "x3", `"type":"file","filename":7,"content":{"type":"text","file":{"content":"in"}}`),
				attachment("x5", "x4", `"type":"file","filename":"/n","content":{"type":"notebook","file":{"cells":[]}}`),
				says("a1", "x5", "M", textBlock("so"), 1),
			},
			[]string{
				`u1 <  message user "see @a" [1]`, `x1 < u1 message fileMention /a "in a" [2]`, `x2 < x1 message fileMention /d "a\nb" [3]`,
				`x3 < x2 message fileMention /i.png "" [4]`, `a1 < x3 message assistant "so" stop 15+1 [7]`,
			},
		},
	} {
		t.Run(name, c.check)
	}
}
