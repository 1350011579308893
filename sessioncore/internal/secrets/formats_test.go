package secrets

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func upper(n int) string  { return pick(n, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") }
func lower(n int) string  { return pick(n, "abcdefghijklmnopqrstuvwxyz0123456789") }
func digits(n int) string { return pick(n, "0123456789") }

// formats are well-known formats of keys and tokens, an example of each, made at run time. Those that are known only by the
// name before them have it here.
var formats = map[string]string{
	// agents and models
	"Claude OAuth":     "sk-ant-oat01-" + mixed(95),
	"Claude refresh":   "sk-ant-ort01-" + mixed(95),
	"Claude session":   "sk-ant-sid01-" + mixed(100),
	"OpenAI session":   "sess-" + mixed(40),
	"OpenRouter":       "sk-or-v1-" + hexed(64),
	"DeepSeek":         "sk-" + hexed(32),
	"Moonshot":         "sk-" + mixed(48),
	"Langfuse":         "sk-lf-" + uuid,
	"Groq":             "gsk_" + mixed(52),
	"xAI":              "xai-" + mixed(80),
	"Cerebras":         "csk-" + lower(48),
	"Hugging Face":     "hf_" + mixed(34),
	"Replicate":        "r8_" + mixed(37),
	"Fireworks":        "fw_" + mixed(24),
	"Together":         "tgp_v1_" + mixed(43),
	"NVIDIA":           "nvapi-" + mixed(64),
	"LangSmith":        "lsv2_pt_" + hexed(32) + "_" + hexed(10),
	"Pinecone":         "pcsk_" + mixed(6) + "_" + mixed(63),
	"Tavily":           "tvly-dev-" + mixed(32),
	"Firecrawl":        "fc-" + hexed(32),
	"Jina":             "jina_" + mixed(60),
	"Voyage":           "pa-" + mixed(43),
	"ElevenLabs":       "sk_" + hexed(48),
	"Weights & Biases": "wandb_v1_" + mixed(77),
	"E2B":              "e2b_" + hexed(40),
	"Context7":         "ctx7sk-" + uuid,
	"Browserbase":      "bb_live_" + mixed(27),
	"Cursor":           "key_" + hexed(64),
	"Amp":              "sgamp_user_" + mixed(40),
	"Google AI, bound": "AQ.Ab" + mixed(48),
	// clouds and databases
	"Google client secret": "GOCSPX-" + mixed(28),
	"Google OAuth":         "ya29." + mixed(150),
	"Google refresh":       "1//0g" + mixed(60),
	"AWS access key":       "AKIA" + "QYLPMN5HFIQR7XYA",
	"AWS temporary key":    "ASIA" + "QYLPMN5HFIQR7XYA",
	"AWS secret key":       "aws_secret_access_key = " + mixed(17) + "/" + mixed(16) + "+" + mixed(5),
	"Azure client secret":  "abc8Q~" + mixed(34),
	"Azure storage":        "AccountKey=" + mixed(86) + "==",
	"Azure DevOps":         mixed(76) + "AZDO" + mixed(4),
	"Azure SAS":            "https://x.blob.core.windows.net/c?sv=2024&sig=" + mixed(43) + "%3D",
	"Tencent":              "AKID" + mixed(32),
	"Yandex":               "AQVN" + mixed(38),
	"Render":               "rnd_" + mixed(28),
	"Netlify":              "nfp_" + mixed(36),
	"Vercel":               "vcp_" + mixed(40),
	"Vercel AI gateway":    "vck_" + mixed(48),
	"Doppler service":      "dp.st.prd." + mixed(43),
	"Vault":                "hvs." + mixed(95),
	"Supabase":             "sbp_" + hexed(40),
	"Supabase secret":      "sb_secret_" + mixed(31),
	"Neon":                 "napi_" + lower(64),
	"MongoDB Atlas":        "mdb_sa_sk_" + mixed(40),
	"Aiven":                "AVNS_" + mixed(19),
	"Elastic":              "essu_" + mixed(60),
	"Tailscale":            "tskey-auth-k" + mixed(16) + "-" + mixed(32),
	"Cloudinary":           "cloudinary://123456789012345:" + mixed(27) + "@name",
	// code, packages, monitoring
	"Bitbucket":         "ATBB" + mixed(32),
	"Trello":            "ATTA" + hexed(64),
	"crates.io":         "cio" + mixed(32),
	"NuGet":             "oy2" + lower(43),
	"Docker":            "dckr_pat_" + mixed(27),
	"CircleCI":          "CCIPAT_" + mixed(22) + "_" + hexed(40),
	"Buildkite":         "bkua_" + hexed(40),
	"SonarQube":         "squ_" + hexed(40),
	"Sourcegraph":       "sgp_" + hexed(40),
	"New Relic":         "NRAK-" + upper(27),
	"New Relic license": hexed(36) + "NRAL",
	"Honeycomb":         "hcaik_" + lower(58),
	"PostHog":           "phx_" + mixed(43),
	"LaunchDarkly":      "sdk-" + uuid,
	"dbt":               "dbtc_" + mixed(40),
	// payment, mail, chat, work
	"Stripe webhook":     "whsec_" + mixed(32),
	"Mollie":             "live_" + mixed(30),
	"Square":             "sq0csp-" + mixed(43),
	"Braintree":          "access_token$production$" + lower(16) + "$" + hexed(32),
	"Plaid":              "access-production-" + uuid,
	"Flutterwave":        "FLWSECK-" + hexed(32) + "-X",
	"SendGrid":           "SG." + mixed(22) + "." + mixed(43),
	"Mailgun":            "key-" + hexed(32),
	"Brevo SMTP":         "xsmtpsib-" + hexed(64) + "-" + mixed(16),
	"Resend":             "re_" + mixed(8) + "_" + mixed(24),
	"Twilio":             "SK" + hexed(32),
	"Slack browser":      "xoxc-" + digits(12) + "-" + hexed(64),
	"Discord bot":        "MTk4NjIyNDgzNDcxOTI1MjQ4" + "." + mixed(6) + "." + mixed(38),
	"Discord webhook":    "https://discord.com/api/webhooks/" + digits(19) + "/" + mixed(68),
	"Telegram":           digits(10) + ":AA" + mixed(33),
	"Zapier webhook":     "https://hooks.zapier.com/hooks/catch/" + digits(8) + "/" + lower(7),
	"Facebook":           "EAAG" + mixed(120) + "ZD",
	"Instagram":          "IGQV" + mixed(140),
	"Dropbox":            "sl." + mixed(136),
	"Notion, old":        "secret_" + mixed(43),
	"Linear OAuth":       "lin_oauth_" + hexed(64),
	"Figma":              "figd_" + mixed(40),
	"HubSpot":            "pat-na1-" + uuid,
	"ClickUp":            "pk_" + digits(8) + "_" + upper(32),
	"Contentful":         "CFPAT-" + mixed(43),
	"Typeform":           "tfp_" + mixed(59),
	"Mapbox":             "sk.eyJ1Ijoi" + mixed(60) + "." + mixed(22),
	"Intercom":           "dG9rOj" + mixed(53) + "=",
	"Apify":              "apify_api_" + mixed(36),
	"JWT":                "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + mixed(43),
	"JWE":                "eyJhbGciOiJkaXIifQ.." + mixed(16) + "." + mixed(60) + "." + mixed(22),
	"SSH key":            "-----BEGIN OPENSSH PRIVATE " + "KEY-----\n" + mixed(70) + "\n" + mixed(64) + "\n-----END OPENSSH PRIVATE " + "KEY-----",
	"beginning of a key": "-----BEGIN RSA PRIVATE " + "KEY-----\n" + mixed(64) + "\n" + mixed(64),
	"PuTTY key":          "Private-Lines: 2\n" + mixed(64) + "\n" + mixed(44),
	// what stands before them
	"database URL":      "postgres://app:" + mixed(9) + "@db.local:5432/app",
	"URL with @":        "redis://:p@" + mixed(9) + "@cache",
	"Basic":             "Authorization: Basic " + mixed(24),
	"Bearer":            `-H "Authorization: Bearer ` + mixed(20) + `"`,
	"Bearer in code":    `headers["Authorization"] = f"Bearer ` + mixed(20) + `"`,
	"Bearer alone":      "Bearer " + mixed(20),
	"shell":             "export PGPASSWORD=" + mixed(9) + " psql",
	"shell, quoted":     `MYSQL_PWD='a` + mixed(9) + `' mysql`,
	".env":              "A=1\nDB_PASS=" + mixed(9) + "!$&\nB=2",
	".env token":        "SLACK_TOKEN=" + mixed(12),
	".env secret":       "JWT_SECRET=correcthorsebatterystaple",
	".env key":          "APP_KEY=base64:" + mixed(43) + "=",
	"YAML":              `password: "` + mixed(9) + `"`,
	"YAML, unquoted":    "  password: " + mixed(9) + "\n",
	"a word in quotes":  `password: 'swordfish'`,
	"JSON":              `{"user": "x", "password":"` + mixed(9) + `"}`,
	"JSON in JSON":      `{\"a\": \"x\", \"clientSecret\": \"` + mixed(9) + `\"}`,
	"XML":               "<password>" + mixed(9) + "</password>",
	"DSN":               "host=db user=app password=" + mixed(9) + " sslmode=disable",
	"connection string": "Server=db;User Id=sa;Password=" + mixed(9) + ";Encrypt=true",
	"query":             "https://x.org/a?access_token=" + mixed(12) + "&b=1",
	"argument":          "tool --api-key " + mixed(12) + " run",
	"sshpass":           "sshpass -p " + mixed(9) + " ssh host",
	"netrc":             "machine x.org login me password " + mixed(9),
}

// plain returns a text as a JSON string.
func plain(text string) string { return escaped(text, func(int) bool { return false }) }

// TestFormats plants each format where tokens stand in sessions, and looks for what of it could be used.
func TestFormats(t *testing.T) {
	require.GreaterOrEqual(t, len(formats), 93)
	for what, example := range formats {
		for _, around := range []string{"%s", "see %s.", "(%s)", "a, %s, b", "<b>%s</b>", "`%s`", "x\n%s\ny"} {
			text := strings.Replace(around, "%s", example, 1)
			if strings.ContainsAny(example, " =\n") && strings.ContainsAny(around, "(,<`.") {
				continue // what stands before a secret says where it ends
			}
			for _, text := range []string{plain(text), plain(plain("a\n" + text + "\nb"))} {
				begin, end := `{"type":"message","id":"019e2c5b-77aa-7c01-9d3e-6a5b4c3d2e1f","parentId":"4f6a9d31","signature":"EqQBCkYI`+mixed(33)+
					`","text":`, `,"tokens":12,"max_tokens":4096}`
				line := begin + text + end
				out := masked(scan(t, line), line)
				require.True(t, json.Valid([]byte(out)), what)
				require.True(t, strings.HasPrefix(out, begin) && strings.HasSuffix(out, end), "all but the secret stays: %s", out)
				out = out[len(begin):]
				require.Contains(t, out, "*****", "%s in %s", what, line)
				for _, secret := range []string{mixed(9), mixed(40)[30:], lower(40)[30:], hexed(40)[30:], digits(13)[5:], upper(24)[10:], uuid[10:],
					"correcthorse", "swordfish"} {
					require.NotContains(t, out, secret, "%s in %s", what, line)
				}
			}
		}
	}
}

// TestNoSecrets has, for each class of rules, what looks like a secret and is none.
func TestNoSecrets(t *testing.T) {
	for class, texts := range map[string][]string{
		"tokens": {
			"sk-ant-api03-...", "sk-ant-oat01-xxxxxxxxxxxxxxxxxxxxxxxxxxxx", "gsk_" + mixed(12), "ghp_" + strings.Repeat("x", 36),
			"<div class=\"sk-toggleable__content-arrow\">",
			"the xai-sdk package", "GOCSPX-your-client-secret", "whsec_...", "task-" + hexed(32), "live_session_manager_with_a_long_name_here",
			"napi_create_reference", "hf_hub_download",
			"test_live_" + strings.Repeat("a", 30), "r8_optimizer", "pk_" + digits(4), "eyJhbGciOi", "-----BEGIN PUBLIC KEY-----\n" + mixed(64),
			"sdk-4.5.6", "desk-" + mixed(30), "dp.st.", "sl.example.com",
		},
		"hashes": {
			hexed(40), "sha256:" + hexed(64), "commit " + hexed(40), uuid, `"id": "0123abcd"`, `"parentId": "` + uuid + `"`,
			`"integrity": "sha512-` + mixed(86) + `=="`, "index 83db48f..bf2a1c9 100644",
			`"signature": "` + mixed(300) + `"`, `"thinkingSignature": "` + mixed(300) + `"`, `"encrypted_content": "gAAAA` + mixed(300) + `"`,
			"data:image/png;base64," + mixed(4000),
		},
		"usage": {"max_tokens=4096", `"tokens": 12`, `"input_tokens": 123456, "token_count": 99`, "--max-tokens 4096", "MAX_TOKENS=128000", "token: 12",
			"total_tokens=1234567890", "TOKEN_LIMIT=200000", "PAD_TOKEN=0", "EOS_TOKEN='<|endoftext|>'"},
		"URLs": {
			"postgres://app:${DB_PASSWORD}@db/x", "postgres://user:password@localhost/db", "http://localhost:8080/a@b", "https://user@host:8443/x",
			"mongodb://$USER:$PASS@host", "http://a:***@b", "ssh://git@host:22/x@y", "https://u:<password>@h", "redis://:%s@x",
			"see http://x.org: me@x.org", "https://x:{password}@h",
		},
		"headers": {"Authorization: Bearer $TOKEN", "Authorization: Bearer ${TOKEN}", "Authorization: Bearer <token>", "Bearer authentication-required",
			`"Authorization": "Bearer " + token`, "Authorization: Bearer YOUR_API_KEY", `f"Bearer {token}"`, "Authorization: token",
			`"token_type": "Bearer"`, "Bearer ********", "Bearer xxxxxxxxxxxxxxxx"},
		"assignments": {
			"DB_PASSWORD=${DB_PASSWORD}", "DB_PASSWORD=$DB_PASSWORD", `TOKEN="$(cat file)"`, "PASSWORD=", `PASSWORD=""`, "API_KEY=<your key>",
			"API_KEY=your-api-key-here", "PASSWORD=changeme", "PASSWORD=***", "SECRET=xxxxxxxx", "TOKEN=os.environ[\"TOKEN\"]", "API_KEY=process.env.API_KEY",
			"TOKEN=get_token()", "POSTGRES_PASSWORD_FILE=/run/secrets/db", "SSH_PRIVATE_KEY=~/.ssh/id_rsa", "PWD=/home/dev/project", "OLDPWD=/home/dev",
			"API_KEY={{ api_key }}", "TOKEN=op://vault/item/field", "PASSWORD=%PASSWORD%", "SECRET=true", "TOKEN=null",
		},
		"names": {
			"cache_key_" + hexed(64), "is_live_" + strings.Repeat("session_", 5), "x_api-" + uuid, "client_secret_store_for_all_tenants_of_the_cluster",
			"core_re_compile_x",
			"\x1b[31mtask-" + hexed(32) + "\x1b[m", "a%3Dbook%2020", "x=3Dtoken", "sha%3D" + hexed(40), `C:\table\new`, "desk%2D" + mixed(30),
			"\x1b[32mPASS\x1b[0m pkg/a 1.203s",
		},
		"arguments": {
			"ENV TOKEN_LIMIT 200000", "ENV PATH /usr/local/bin:$PATH", "ENV DB_PASSWORD_FILE /run/secrets/db", "ENV API_KEY $API_KEY",
			"ENV SECRET_KEY changeme", "ENV variables with a token in them",
			"set -x API_KEY (cat key)", "set -e; token 12345678", "set -euo pipefail", "set -x MAX_TOKENS 128000", "setenv TOKEN $1",
			"set -gx GITHUB_TOKEN your-token-here",
			"mysql -u root -p db", "mysql -P 3306 -h db", "docker run --name mysql -p3306:3306 x", "mysql -p$MYSQL_PASSWORD x",
			"mysqldump --protocol=tcp x", "mkdir -p/a/b", "curl -u $U:$P x", "curl -u user:password x",
			"redis-cli -a $REDIS_AUTH ping", "curl -H 'Accept: a/b1' -L http://x:8080/a",
		},
		"pairs": {
			`<input type="password" value="Log in">`, `<add key="Timeout" value="12345678"/>`, `{"name":"max_tokens","value":"12345678"}`,
			`{"key":"token","value":"$TOKEN_2"}`, `<string name="password">Password</string>`,
			"- name: TOKEN\n  valueFrom: secretKeyRef1", "password, value = parse2(x)", `{"name":"token","value":"string"}`,
			`<label for="password">Your password 1</label>`,
		},
		"parameters": {
			`password: "string"`, `"password": "Enter your password"`, "password: hunter2", "password: z.string().min(8)", "token: string",
			"token=self.token", "apiKey: process.env.API_KEY", `token = tokens[1]`, "password=args.password1", "secretKey: []byte{0x01, 0x02, 0x03}",
			`type: "password"`,
			"f(token=token2)", `"password": {"type": "string"}`, "password=None", `"token": "identifier"`, "passwordHash: sha256Sum",
			"token := sha256Token", "secret: SHA256withRSA", `"apiKey": "${API_KEY_2}"`, "<label>Password</label>", "--token TOKEN", "--password-stdin",
			"--token $GH_TOKEN2", "machine learning login page",
		},
	} {
		for _, text := range texts {
			for _, line := range []any{map[string]string{"text": text}, map[string]any{"a": []string{"x\n" + text + "\ny"}}} {
				line, _ := json.Marshal(line)
				s := scan(t, string(line))
				require.Empty(t, s.Places, "%s: %s", class, text)
			}
		}
	}
	require.NoError(t, filepath.WalkDir("../../../testdata", func(file string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(file) == ".jsonl" {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Empty(t, scan(t, string(text)).Places, file)
		}
		return err
	}))
	for _, member := range []string{`{"id":"0123abcd4","token":"$TOKEN"}`, `{"password":""}`, `{"password":null,"token":12345678}`,
		`{"signature":"` + mixed(300) + `"}`, `{"toolCallId":"call_` + mixed(24) + `"}`} {
		require.Empty(t, scan(t, member).Places, member)
	}
}
