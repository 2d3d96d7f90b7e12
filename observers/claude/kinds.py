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
    # known, not needed: seen in transcripts of 2.1.197 or 2.1.332
    "agent_listing_delta", "auto_mode", "date", "deferred_tools_delta", "deferred_tools_record",
    "environment", "hook_blocking_error", "hook_success", "model", "plan_mode",
    "prompt_snapshot", "remote_session_change", "session_context", "silent_turn_reminder",
    "skill_listing", "task_reminder", "total_tokens_reminder",
    # known, not needed: in the 2.1.332 bundle
    "account_memory_recall", "action", "advisor_stripped", "advisor_tool", "agent_ask_notice",
    "agent_mention", "already_read_file", "artifact_opening_prefetch", "async_hook_response",
    "async_hook_response_batch", "at_mention_reference", "attention_budget", "auto_mode_exit",
    "bash_output_audience_note", "batching_reminder", "batching_reminder_sent", "budget_usd",
    "claude_app_notice", "command_permissions", "compact_file_reference", "context_efficiency",
    "context_sections", "coordinator_context", "cowork_memory_context", "credential_org",
    "critical_system_reminder", "date_change", "diagnostics", "dir_sync_notice", "directory",
    "dynamic_skill", "edited_image_file", "edited_text_file", "elapsed_time_reminder", "file",
    "first_week", "fork_briefing", "goal_status", "goals", "hook_additional_context",
    "hook_cancelled", "hook_deferred_tool", "hook_error_during_execution",
    "hook_non_blocking_error", "hook_permission_decision", "hook_stopped_continuation",
    "hook_system_message", "inlined_image_paths", "instructions", "invoked_skills", "language",
    "linked_plugin_tools_note", "mcp_dropped_tools_delta", "mcp_instructions_delta",
    "mcp_resource", "memory_update", "message_pdf_reads", "nested_memory", "opened_file_in_ide",
    "output_limit_note", "output_style", "output_style_instructions", "output_token_usage",
    "pdf_reference", "peer_mention", "plan_file_reference", "plan_mode_exit",
    "plan_mode_reentry", "plugin_note", "poll_events", "prefix_delta", "proactivity",
    "progress_reminder_sent", "project_doc_reads", "projects_thread_ask", "prompt_as_file",
    "prompt_render_point", "read_truncation_notice", "relevant_memories", "repl_mcp_needs_auth",
    "repl_mcp_servers", "sandbox_instructions", "secondary_reminder", "secondary_reminder_sent",
    "selected_lines_in_diff", "selected_lines_in_ide", "session_cron_carry", "skill_mention",
    "structured_output", "task_status", "team_context", "teammate_mailbox",
    "teammate_shutdown_batch", "thinking_drop", "thinking_stripped", "thread_state",
    "todo_reminder", "token_usage", "tool_host_result_lines", "tool_hosts_correction",
    "tool_hosts_notice", "tool_offer_record", "tool_results_cut", "tool_search_usage_reminder",
    "type", "ultra_effort_enter", "ultra_effort_exit", "ultrathink_effort",
    "unknown_command_fallback", "whole_texts_withdrawn", "widget_context_hint",
    "withheld_memory", "workflow_keyword_request", "workflow_size_guideline_change",
    # known, not needed: older, or kinds of the file context
    "compaction_reminder", "companion_intro", "current_session_memory", "document", "image",
    "skill_discovery", "verify_plan_reminder",
})  # fmt: skip
"""Known values of `attachment.type`."""
