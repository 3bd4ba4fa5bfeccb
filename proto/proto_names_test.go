package proto_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// agentNames and aiserverNames are the messages and enums that the sources
// name: the five seeds, the extraction of March 2026 and the public clients.
const agentNames = `
	AgentClientMessage AgentFinalResponse AgentMode AgentRunRequest AgentServerMessage ApiKeyCredentials
	ApplyAgentDiffToolCall AskQuestionInteractionQuery AskQuestionInteractionResponse AskQuestionToolCall
	AsyncAskQuestionCompletionAction AzureCredentials BackgroundShellSpawnArgs BackgroundShellSpawnResult
	BedrockCredentials CancelAction CancelSubagentAction ClientHeartbeat ComputerUseArgs ComputerUseResult
	ComputerUseToolCall ConversationAction ConversationMessage ConversationStateStructure
	ConversationTokenDetails CreatePlanRequestQuery CreatePlanRequestResponse CreatePlanToolCall CursorRule
	CustomSubagent DebugModeConfig DeleteArgs DeleteResult DeleteToolCall DiagnosticsArgs DiagnosticsResult
	EditToolCall Error ExaFetchRequestQuery ExaFetchRequestResponse ExaFetchToolCall ExaSearchRequestQuery
	ExaSearchRequestResponse ExaSearchToolCall ExecClientControlMessage ExecClientHeartbeat ExecClientMessage
	ExecClientStreamClose ExecClientThrow ExecServerAbort ExecServerControlMessage ExecServerMessage
	ExecuteHookArgs ExecuteHookResult ExecutePlanAction ExplicitContext ExtraContextEntry FetchArgs FetchResult
	FetchToolCall FileContext FileStateStructure GenerateImageToolCall GetBlobArgs GetBlobResult
	GetDefaultModelForCliRequest GetDefaultModelForCliResponse GetUsableModelsRequest GetUsableModelsResponse
	GitRepoInfo GlobToolCall GrepArgs GrepError GrepResult GrepSuccess GrepToolCall GrepUnionResult
	HeartbeatUpdate HooksConfigInfo InteractionQuery InteractionRequest InteractionResponse InteractionUpdate
	InvocationContext KvClientMessage KvServerMessage ListMcpResourcesExecArgs ListMcpResourcesExecResult
	ListMcpResourcesToolCall LsArgs LsDirectoryTreeNode LsError LsRejected LsResult LsSuccess LsTimeout
	LsToolCall McpArgs McpError McpFileSystemOptions McpImageContent McpInstructions McpPermissionDenied
	McpRejected McpResult McpSuccess McpTextContent McpToolCall McpToolDefinition McpToolNotFound
	McpToolResultContentItem McpTools ModelConfig ModelDetails ModelParameterValue NameAgentRequest
	NameAgentResponse OutputLocation PartialToolCallUpdate PrewarmRequest ReadArgs ReadError ReadFileNotFound
	ReadInvalidFile ReadLintsToolCall ReadMcpResourceExecArgs ReadMcpResourceExecResult ReadMcpResourceToolCall
	ReadPermissionDenied ReadRejected ReadResult ReadSuccess ReadTodosToolCall ReadToolCall RecordScreenArgs
	RecordScreenResult RecordScreenToolCall ReflectToolCall ReportBugfixResultsToolCall RepositoryIndexingInfo
	RequestContext RequestContextArgs RequestContextEnv RequestContextError RequestContextRejected
	RequestContextResult RequestContextSuccess RequestedModel ResumeAction SandboxPolicy SelectedBrowser
	SelectedCodeSelection SelectedConsoleLog SelectedContext SelectedCursorCommand SelectedCursorRule
	SelectedDocumentation SelectedExternalLink SelectedFile SelectedFolder SelectedGitCommit SelectedGitDiff
	SelectedGitDiffFromBranchToMain SelectedGitPRDiffSelection SelectedImage SelectedPastChat
	SelectedPullRequest SelectedSubagent SelectedTerminal SelectedTerminalSelection SelectedUIElement
	SelectedVideo SemSearchToolCall SetBlobArgs SetBlobResult SetupVmEnvironmentArgs SetupVmEnvironmentResult
	SetupVmEnvironmentToolCall ShellAbortReason ShellArgs ShellCommandAction ShellCommandParsingResult
	ShellFailure ShellOutputDeltaUpdate ShellPermissionDenied ShellRejected ShellResult ShellSpawnError
	ShellStream ShellStreamBackgrounded ShellStreamExit ShellStreamStart ShellStreamStderr ShellStreamStdout
	ShellSuccess ShellTimeout ShellToolCall SimulatedMsgReason SkillOptions SpanContext
	StartGrindExecutionToolCall StartGrindPlanningToolCall StartPlanAction StepCompletedUpdate
	StepStartedUpdate StepTiming SubagentPersistedState SummarizeAction SummaryCompletedUpdate
	SummaryStartedUpdate SummaryUpdate SwitchModeRequestQuery SwitchModeRequestResponse SwitchModeToolCall
	TaskToolCall TextDelta TextDeltaUpdate ThinkingCompletedUpdate ThinkingDeltaUpdate ThinkingDetails
	ThinkingStyle TimeoutBehavior TokenDeltaUpdate ToolCall ToolCallCompletedUpdate ToolCallDelta
	ToolCallDeltaUpdate ToolCallStartedUpdate ToolResult TruncatedToolCall TurnEndedUpdate UpdateTodosToolCall
	UserMessage UserMessageAction UserMessageAppendedUpdate WebFetchRequestQuery WebFetchRequestResponse
	WebFetchToolCall WebSearchRequestQuery WebSearchRequestResponse WebSearchToolCall WriteArgs WriteError
	WriteNoSpace WritePermissionDenied WriteRejected WriteResult WriteShellStdinArgs WriteShellStdinResult
	WriteShellStdinToolCall WriteSuccess`

const aiserverNames = `
	AgentUrlConfig AiWebSearchResults AvailableModelsRequest AvailableModelsResponse AwaitTaskStream AzureState
	BackgroundComposerFollowupResult BackgroundComposerFollowupStream BedrockState BidiAppendRequest
	BidiAppendResponse BidiPollRequest BidiPollResponse BidiRequestId CallMcpToolParams ChatMessage ChatQuote
	ChatRequest ChatResponse ChunkIdentity ClientSideToolV2 ClientSideToolV2Call ClientSideToolV2Result
	CodeActionsRequest CodeActionsResponse CodeBlock CodeChunk CodeLensRequest CodeLensResponse Commit
	ComposerExternalLink ContextPieceUpdate ContextWindowStatus ConversationMessage
	ConversationMessage.MessageType ConversationMessageHeader ConversationSummary ConversationSummaryStarter
	CreateDiagramStream CreateFileParams CurrentFileInfo CursorRule CustomErrorDetails DeepSearchResult
	DeepSearchStream DeleteFileParams DeleteFileResult DeleteFileStream DocsReference DocumentationCitation
	EditFileParams EditFileResult EditFileStream EditFileV2Stream EnvironmentInfo ErrorDetails
	ErrorDetails.Error ExplicitContext FetchPullRequestResult FetchPullRequestStream FetchRulesParams
	FetchRulesResult FetchRulesStream FileLink FileSearchParams FinalToolResult FixLintsStream FolderInfo
	GetPrivacyModeRequest GetPrivacyModeResponse GetServerConfigRequest GetServerConfigResponse GitDiff
	GotodefStream IPatternInfoProto ITextQueryBuilderOptionsProto ImageDescription ImageProto
	KnowledgeBaseResult KnowledgeBaseStream LineRange LinterErrors Lints ListDirParams ListDirResult
	ListDirStream MCPParams MCPParams.Tool MCPResult MCPStream ModelDetails PrivacyMode ProjectLayout
	PullRequest RankedContext ReadFileParams ReadFileResult ReadFileStream ReadLintsStream
	ReadSemsearchFilesResult ReadSemsearchFilesStream ReapplyResult ReapplyStream RecentEdits RepositoryInfo
	RipgrepSearchParams RipgrepSearchResult RipgrepSearchStream RunTerminalCommandV2Params
	RunTerminalCommandV2Result RunTerminalCommandV2Stream SearchParams SearchSymbolsResult SearchSymbolsStream
	SemanticSearchFullResult SemanticSearchFullStream SemanticSearchParams ServiceStatusUpdate SpanContext
	StarsFeedbackRequest StatusUpdates StreamChatResponse StreamStart StreamUnifiedChatRequest
	StreamUnifiedChatRequestWithTools StreamUnifiedChatRequestWithToolsIdempotent StreamUnifiedChatResponse
	StreamUnifiedChatResponseWithTools StreamUnifiedChatResponseWithToolsIdempotent StreamedBackPartialToolCall
	StreamedBackToolCall StreamedBackToolCallV2 StreamingChatResponse SubagentReturnCall SuggestedCodeBlock
	SymbolLink TaskStream Thinking ThinkingLevel ThinkingStyle TodoItem TodoReadStream TodoWriteStream
	ToolCallFileSearchResult ToolCallFileSearchStream ToolResult UnifiedMode UsedCode UserRules
	ViewableGitContext WebCitation WebSearchParams WebSearchResult WebSearchStream WorkspaceFolder`

// methodNames are the services that the sources name, with their methods.
const methodNames = `
	agent.v1.AgentService: Run RunSSE RunPoll NameAgent GetUsableModels GetDefaultModelForCli AvailableModels
	aiserver.v1.AiService: StreamChat StreamChatWeb StreamChatContext StreamChatDeepContext TaskStreamChatContext StreamingChatComposer Chat GetCodeLens GetCodeActions GetPrivacyMode GetUsableModels GetDefaultModelForCli NameAgent AvailableModels
	aiserver.v1.ChatService: StreamUnifiedChat StreamUnifiedChatWithTools StreamUnifiedChatWithToolsSSE StreamUnifiedChatWithToolsPoll StreamUnifiedChatWithToolsIdempotent StreamUnifiedChatWithToolsIdempotentSSE StreamUnifiedChatWithToolsIdempotentPoll
	aiserver.v1.BidiService: BidiAppend
	aiserver.v1.ServerConfigService: GetServerConfig
	aiserver.v1.DashboardService: GetTeamAdminSettingsOrEmptyIfNotInTeam ListMarketplaces GetUserPrivacyMode GetMe GetGlobalCommands GetManagedSkills GetPlanInfo GetCurrentPeriodUsage
	aiserver.v1.AnalyticsService: BootstrapStatsig TrackEvents SubmitLogs Batch
	aiserver.v1.HealthService: StreamSSE
	aiserver.v1.BackgroundComposerService:
	aiserver.v1.CmdKService:
	aiserver.v1.UploadService:
	aiserver.v1.RepositoryService:
	aiserver.v1.MetricsService:`

// TestNames requires every message, enum, service and method that a source
// names to be in the files.
func TestNames(t *testing.T) {
	found := map[string]bool{}
	for _, f := range compile(t) {
		names(found, f)
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			found[string(s.FullName())] = true
			for j := range s.Methods().Len() {
				found[string(s.Methods().Get(j).FullName())] = true
			}
		}
	}
	required := 0
	require := func(name string) {
		required++
		if !found[name] {
			t.Errorf("%s is missing", name)
		}
	}
	for _, name := range strings.Fields(agentNames) {
		require("agent.v1." + name)
	}
	for _, name := range strings.Fields(aiserverNames) {
		require("aiserver.v1." + name)
	}
	for line := range strings.Lines(strings.TrimSpace(methodNames)) {
		service, methods, _ := strings.Cut(strings.TrimSpace(line), ":")
		require(service)
		for _, m := range strings.Fields(methods) {
			require(service + "." + m)
		}
	}
	if required < 400 {
		t.Errorf("only %d names were looked for", required)
	}
}

// declares is what a file and a message have in common.
type declares interface {
	Messages() protoreflect.MessageDescriptors
	Enums() protoreflect.EnumDescriptors
}

func names(found map[string]bool, d declares) {
	for i := range d.Enums().Len() {
		found[string(d.Enums().Get(i).FullName())] = true
	}
	for i := range d.Messages().Len() {
		m := d.Messages().Get(i)
		found[string(m.FullName())] = true
		names(found, m)
	}
}
