# SPDX-License-Identifier: Apache-2.0

"""Changes to Murano 16's own modules, for which Murano has no options.

Each module changes one part of Murano. Each function makes one change, and its description says
what Murano does, why that is wrong, and what happens instead. ``adapter`` has the classes that
replace classes of Murano.
"""

from oslo_config import cfg

from loader import config
from loader.catalogs import options
from loader.engine.patches import (
    cell_endpoints,
    class_errors,
    connections,
    core_library,
    endpoints,
    inherited_members,
    inherited_versions,
    language,
    loader_choice,
    models,
    schema_conditions,
    schema_generator,
    system_classes,
    task_execution,
    task_limits,
    version_ranges,
    yaql_limits,
)


def install() -> None:
    """Register the loader's options, and apply every patch; call this before the first task."""
    options.register(cfg.CONF, config.SERVICE_OPTIONS)
    yaql_limits.provide_format()
    yaql_limits.enforce_quota()
    yaql_limits.reserve_variables()
    yaql_limits.ignore_warnings()
    yaql_limits.draw_from_system()
    loader_choice.choose_package_loader()
    loader_choice.replace_plugin_loader()
    language.read_text_resources()
    version_ranges.replace_range_parser()
    version_ranges.cache_package_ranges()
    schema_generator.describe_requested_methods()
    schema_generator.include_constants()
    schema_generator.translate_contracts()
    schema_generator.name_titles()
    schema_generator.describe_entities()
    schema_generator.describe_objects()
    version_ranges.take_newest_without_version()
    models.plan_whole_models()
    task_execution.interrupt_tasks()
    task_execution.save_models_of_interrupted_tasks()
    task_execution.release_objects_of_ended_tasks()
    # Before the patches that keep pins and report failures, which the engine's process does.
    cell_endpoints.run_tasks_in_cells()
    models.keep_pins_in_models()
    models.name_unsaved_values()
    task_execution.report_every_failure()
    task_execution.return_new_tasks()
    # After the wait for a turn, the engine may be stopping.
    cell_endpoints.limit_tasks()
    task_execution.keep_results()
    inherited_versions.merge_inherited_versions()
    inherited_members.keep_parts()
    inherited_members.keep_properties()
    inherited_members.choose_methods()
    inherited_members.describe_ambiguous_members()
    inherited_members.describe_ambiguous_classes()
    class_errors.explain_class_errors()
    class_errors.name_places_of_errors()
    models.keep_designer_entries()
    language.write_inherited_properties()
    task_execution.return_objects_from_actions()
    schema_conditions.translate_every_condition()
    schema_conditions.keep_conditions()
    schema_conditions.keep_null_of_optional_checks()
    schema_conditions.refuse_other_receivers()
    endpoints.refuse_invalid_requests()
    endpoints.refuse_methods_of_objects()
    task_limits.limit_recursion()
    task_limits.limit_iterations()
    task_limits.limit_green_threads()
    task_limits.limit_waits()
    task_limits.limit_resources()
    task_limits.limit_messages()
    task_limits.describe_receivers()
    connections.restrict_http_clients()
    connections.restrict_workflow_client()
    connections.select_agent_brokers()
    system_classes.act_for_own_environment()
    system_classes.use_own_trusts()
    system_classes.name_refused_tokens()
    system_classes.read_secrets_of_user()
    core_library.give_config_to_core_library()
    # The last patch: a cell serves requests by the endpoints that all other patches have made.
    cell_endpoints.serve_requests_in_cells()
