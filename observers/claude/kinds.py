"""Which records exist: the values of `type`, `system.subtype` and `attachment.type`, as sets.

From the bundles of 2.1.197 and 2.1.332 and from runs of 1.0.128 to 2.1.332. What stands in no set
here becomes a note, so that a new CLI version is noticed.
"""

from typing import Final

NEEDED: Final = frozenset({
    "user", "assistant", "system", "attachment", "summary", "ai-title", "custom-title",
    "agent-name", "relocated", "cost-state",
})  # fmt: skip
"""Values of `type` that give events."""

IGNORED: Final = frozenset({
    # 2.0.76 and older
    "file-history-snapshot", "queue-operation",
    # 2.1.20 to 2.1.197; last-prompt is written in the middle of turns, too
    "last-prompt", "progress", "ended-by-model", "tag", "agent-color", "agent-setting", "pr-link",
    "frame-link",
    "bridge-session", "attribution-snapshot", "mode", "permission-mode", "isolation-latch",
    "worktree-state", "content-replacement", "fork-context-ref", "marble-origami-commit",
    "marble-origami-snapshot", "marble-origami-reset", "speculation-accept",
    # 2.1.332; api-request-blob holds whole messages: they are copies, never read them
    "continued-in", "artifact-comment-monitor", "artifact-autoreact-ledger",
    "history-suppression", "file-history-delta", "session-owner", "hybrid-organization",
    "dev-mods", "memory-mode", "atis-latch", "tools-used", "data-flow-records",
    "data-flow-incomplete", "derived-from", "api-request", "api-request-shape",
    "api-request-blob", "api-request-resumed", "observer-ref", "resume-head-vouch", "host-row",
    "repl-mode",
})  # fmt: skip
"""Values of `type` that are known and not needed."""

SYSTEM: Final = frozenset({
    # needed
    "turn_duration", "compact_boundary", "api_error",
    # known, not needed: seen in transcripts
    "local_command", "informational", "stop_hook_summary", "model_refusal_no_fallback",
    "microcompact_boundary", "bridge_status", "away_summary", "memory_saved", "agents_killed",
    "scheduled_task_fire", "permission_retry", "snip_boundary", "file_snapshot", "thinking",
    # known, not needed: in the 2.1.332 bundle, most for the SDK stream only
    "api_retry", "background_tasks_changed", "bridge_state", "checkpoint_done",
    "cloud_session_delta", "cloud_session_status", "code_change_published", "commands_changed",
    "control_request_progress", "dev_intent", "elicitation_complete", "feedback_draft_queued",
    "file_attachments_missing", "hook_progress", "hook_response", "hook_started",
    "inherited_asks_settled", "init", "instruction_size_warning", "late_allow_not_run",
    "memory_recall", "mirror_error", "model_consent_fallback", "model_fallback",
    "model_refusal_fallback", "notification", "peer_message_hold", "per_turn_effort_changed",
    "permission_check_status", "permission_denied", "placed", "plugin_install",
    "post_turn_summary", "rewind_stand_in", "session_metadata", "session_state_changed",
    "session_title_changed", "session_writes_lost", "shell_cwd", "start_folder", "status",
    "task_notification", "task_progress", "task_started", "task_summary", "task_updated",
    "thinking_tokens", "tool_host_result", "turn_began_before_init", "turn_handoff_available",
    "turn_preempted", "turn_starting", "vcs_state_changed", "voice_call_talk",
    "worker_shutting_down", "hook_blocking_error",
})  # fmt: skip
"""Known values of `subtype` of a `system` record."""

ATTACHMENTS: Final = frozenset({
    # needed
    "queued_command", "max_turns_reached",
    # known, not needed: seen in 2.1.197 or 2.1.332
    "agent_listing_delta", "auto_mode", "date", "deferred_tools_delta", "deferred_tools_record",
    "environment", "hook_blocking_error", "hook_success", "model", "plan_mode",
    "prompt_snapshot", "remote_session_change", "session_context", "silent_turn_reminder",
    "skill_listing", "task_reminder", "total_tokens_reminder",
    # known, not needed: in the bundles
    "agent_mention", "already_read_file", "async_hook_response", "async_hook_response_batch",
    "auto_mode_exit", "budget_usd", "command_permissions", "companion_intro",
    "compact_file_reference", "compaction_reminder", "context_efficiency",
    "critical_system_reminder", "current_session_memory", "date_change", "diagnostics",
    "directory", "document", "dynamic_skill", "edited_image_file", "edited_text_file", "file",
    "fork_briefing",
    "hook_additional_context", "hook_cancelled", "hook_error_during_execution",
    "hook_non_blocking_error", "hook_permission_decision", "hook_stopped_continuation",
    "hook_system_message", "image", "invoked_skills", "mcp_instructions_delta", "mcp_resource",
    "nested_memory", "opened_file_in_ide", "output_style", "output_token_usage",
    "pdf_reference", "plan_file_reference", "plan_mode_exit", "plan_mode_reentry",
    "plugin_note", "relevant_memories", "selected_lines_in_ide", "skill_discovery",
    "structured_output", "task_status", "team_context", "teammate_mailbox",
    "teammate_shutdown_batch", "todo_reminder", "token_usage", "ultrathink_effort",
    "verify_plan_reminder",
})  # fmt: skip
"""Known values of `attachment.type`."""
