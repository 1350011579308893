package writer

import "sync"

// shapes are the rules for appended entries (docs/design.md section 2, append), in the notation of
// shape: those for all entries of a dialect (omp, pi, operator), for each type (omp/message), and
// for values in them.
//
// The rules of omp come from the code of 14.9.9 and 18.2.3 that reads sessions: that opens, shows,
// counts and compacts them, and sends their context to a model. A field has a rule if that code
// fails when it is missing or of another kind, or shows or sends something else. Types and roles
// that neither version knows are refused, as both would ignore them silently, except those of xcsh.
// Those of pi (docs/format-pi.md) come from the code of 0.73.1, 0.87.1 and 1.5.2; types that only
// omp has are refused.
var shapes = sync.OnceValue(func() map[string]*shape { return parseShapes(shapeTable) })

const shapeTable = `
# An entry with an empty id could not be a parent: readers take an empty parentId for none (docs/format.md, Loading).
omp, pi = type id!- parentId? timestamp-
operator = type id!- parent_id? timestamp-:string|number

# The first fifteen types of the table in docs/format.md, Entry types. The model change of older clients is in oldModel.
omp/message = message:message
omp/thinking_level_change = thinkingLevel:string|null configured?
omp/model_change = model! role? resolvedModelIsFallback?:bool
omp/compaction = summary shortSummary? firstKeptEntryId tokensBefore:number tokensAfter-:number method?
	providerReplayThroughEntryId? warning? details-:any|fileLists preserveData?:object fromExtension?:bool
	fromHook?:bool
omp/branch_summary = fromId! summary details-:any|fileLists fromExtension?:bool fromHook?:bool
omp/custom, pi/custom = customType
omp/custom_message = customType content:string|[written] display:bool attribution- @customType=custom*
omp/label, pi/label = targetId label?
omp/ttsr_injection = injectedRules:[string]
omp/session_init = systemPrompt:string|[string] task tools:[string] compactionThreshold?:object
omp/reset_boundary =
omp/archive = targetId archived:bool
omp/mode_change = mode data?:object
omp/service_tier_change = serviceTier:string|object|null
omp/mcp_tool_selection = selectedToolNames:[string]
# Of xcsh alone.
omp/context_change = contextName tenant namespace
omp/profile_change = profileName tenant namespace

pi/message = message:piMessage
pi/thinking_level_change = thinkingLevel
oldModel, pi/model_change = provider! modelId!
pi/compaction = summary firstKeptEntryId tokensBefore:number systemMessage?:piMessage/system usage?:usage fromHook?:bool
pi/branch_summary = fromId! summary usage?:usage fromHook?:bool
pi/custom_message = customType content:string|[written] display:bool
pi/session_info = name
pi/usage = kind provider! model! usage:usage note?
pi/context_edit = targetId! replacement:replacement|null
replacement = content:string|[object]

operator/message = message:operatorMessage
operatorMessage = role!
operator/compaction = summary first_kept_entry_id tokens_before?:number
operator/branch = from_id!:string|null summary
operator/leaf = target_id:string|null
operator/label = target_id label?
operator/thinking_level_change = thinking_level:string|null
operator/model_change = provider model_id!
operator/session_info = name:string|null
operator/custom_info = custom_type
operator/custom_message = custom_type content:string|[object] display:bool

# Clients add these numbers up when they open a session.
usage = input:number output:number cacheRead:number cacheWrite:number cost:cost
cost = total:number
# The files that the next summary is told of.
fileLists = readFiles?:[string] modifiedFiles?:[string]

# Blocks that are sent to a model: providers take blocks of any other type for images.
written = @type=written
# Blocks of an assistant. Newer clients have further types, which must only name themselves; other clients ignore them.
answer = type @type=answer*
piAnswer = type @type=piAnswer*
written/text, answer/text, piAnswer/text = text textSignature?
image, written/image, answer/image = data mimeType-
answer/thinking, piAnswer/thinking = thinking thinkingSignature?
answer/redactedThinking = data
answer/toolCall = id name arguments+:object @name=call*
piAnswer/toolCall = id name arguments+:object

message = role! @role=message
message/user, message/developer, piMessage/user = content:string|[written] timestamp?:number
message/assistant = content:[answer] usage+:usage api? provider? model? stopReason? errorMessage?
	providerPayload?:object timestamp?:number
message/toolResult = toolCallId toolName content:[written] isError?:bool timestamp?:number @toolName=result*
message/bashExecution = command output+ images-:[image] exitCode?:number cancelled?:bool meta?:outputMeta
	timestamp?:number
message/pythonExecution = code output+ exitCode?:number cancelled?:bool meta?:outputMeta timestamp?:number
outputMeta = diagnostics?:outputDiagnostics
outputDiagnostics = messages:[string]
# hookMessage is how older clients and exports write the messages of extensions.
message/custom, message/hookMessage = customType content:string|[written] display?:bool timestamp?:number
	@customType=custom*
message/branchSummary, piMessage/branchSummary = summary fromId? timestamp?:number
message/compactionSummary = summary shortSummary? tokensBefore:number tokensAfter-:number blocks-:[written]
	providerPayload?:object timestamp?:number
message/fileMention = files:[mention] timestamp?:number
mention = path content? lineCount?:number image?:image

piMessage = role! @role=piMessage
# It sets or changes parts of the prompt, and the tools.
piMessage/system = content:string|[written] sections?:object toolsAdded?:[tool] toolsRemoved?:[tool] timestamp?:number
tool = name
piMessage/assistant = content:[piAnswer] usage+:usage api? provider? model? responseModel? stopReason? errorMessage?
	timestamp?:number
piMessage/toolResult = toolCallId toolName content:[written] isError?:bool usage?:usage timestamp?:number
piMessage/bashExecution = command output+ exitCode?:number cancelled?:bool truncated?:bool excludeFromContext?:bool
	timestamp?:number
piMessage/custom = customType content:string|[written] display?:bool timestamp?:number
piMessage/compactionSummary = summary tokensBefore:number timestamp?:number

# Arguments of tool calls, and details of results and messages that clients write: 14.9.9 draws many of these unchecked,
# and cannot show a session in which that fails; later versions check first.
call/read = arguments-:readArguments
call/ask = arguments-:question
call/debug, call/lsp = arguments-:action
readArguments = path? file_path?
question = question?
action = action?

result/edit, result/apply_patch, result/write = details-:any|editDetails
editDetails = images?:[object] diff? diagnostics?:diagnostics
diagnostics = summary messages:[string]
result/ask = details-:any|askDetails
askDetails = images?:[object] question? results?:[question]
result/debug, result/lsp = details-:any|actionDetails
actionDetails = images?:[object] action?
result/eval = details-:any|evalDetails
evalDetails = images?:[object] cells?:[cell]
cell = code? output? statusEvents?:[object]
result/job = details-:any|jobDetails
jobDetails = images?:[object] jobs?:[job]
job = label? errorText? @status=job
job/running, job/completed, job/failed, job/cancelled =
result/github = details-:any|githubDetails
githubDetails = images?:[object] watch-:any|watch
watch = headSha? failedLogs?:[failedLog]
failedLog = jobName tail?
result/task = details-:any|taskDetails
taskDetails = images?:[object] usage?:usage results+:[taskResult] progress?:[progress]
taskResult = id output assignment? description? extractedToolData-:any|extracted
extracted = yield?:[object]
progress = id assignment? description? lastIntent? recentOutput:array recentTools:[object]
result/web_search = details-:any|searchDetails
searchDetails = images?:[object] response-:any|response
response = sources?:[object] citations?:[object] searchQueries?:[string] relatedQuestions?:[string]
result/bash, result/browser, result/ast_edit, result/ast_grep, result/calc, result/find, result/inspect_image,
	result/recipe, result/resolve, result/search, result/ssh, result/todo_write = details-:any|imageDetails
imageDetails = images?:[object]

custom/async-result = details-:any|jobs
jobs = jobs?:[object]
custom/lsp-late-diagnostic = details-:any|lateFiles
lateFiles = files?:[lateFile]
lateFile = messages?:[string]
custom/skill-prompt = details-:any|skill
skill = name? path? args? prompt?
custom/irc:incoming, custom/irc:autoreply, custom/irc:relay, custom/irc:workpool = details-:any|irc
irc = from? to? message? reply? body?
custom/advisor = details-:any|advice
advice = notes?:[note]
note = note
custom/background-tan-dispatch = details-:any|dispatch
dispatch = work?
custom/collab-prompt = details-:any|collaboration
collaboration = from?

# A line for the file new-session, and members of omp's header that keep the client from opening a session if violated.
newSession = cwd! title? parentSession? agent? create?:bool
previousFiles = previousSessionFiles:[string]
directories = additionalDirectories:[string]
`

// noUsage is the usage of an assistant's message without one: clients fail without the numbers.
const noUsage = `"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,` +
	`"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`

// fills are the members that are added where they are missing, by their keys.
var fills = map[string]string{
	"usage": noUsage, "output": `"output":""`, "arguments": `"arguments":{}`, "results": `"results":[]`,
}
