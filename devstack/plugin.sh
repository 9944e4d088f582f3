#!/usr/bin/env bash
#
# SPDX-License-Identifier: Apache-2.0

# Murano packages in Glance or Glare, and the loader beside Murano's engine.
#
# DevStack sources this file once for each phase, after the same phase of the
# plug-ins of Glare and Murano. It uses their variables (``GLARE_*`` and
# ``MURANO_*``), DevStack's functions, and what ``settings`` sets.


# Names
# -----

# Where the programs of Glare, of Murano and of this project are.
function glare_murano_bin_dir {
    if [[ -n "$GLARE_MURANO_VENV" ]]; then
        echo "$GLARE_MURANO_VENV/bin"
    else
        get_python_exec_prefix
    fi
}

# Where the programs of Glance are, which has DevStack's own Python.
function glare_murano_glance_bin_dir {
    echo "${GLANCE_BIN_DIR:-$(get_python_exec_prefix)}"
}

# The service that the packages come from: glance or glare.
function glare_murano_catalog {
    if [[ -n "$MURANO_CATALOG" ]]; then
        echo "$MURANO_CATALOG"
    elif is_service_enabled glare || is_service_enabled murano; then
        echo glare
    else
        echo glance
    fi
}

# Whether the Glance of this host keeps packages.
function is_glare_murano_glance {
    [[ "$(glare_murano_catalog)" == glance ]] && is_service_enabled g-api
}

# Where Glare answers.
function glare_murano_url {
    local host="$GLARE_SERVICE_HOST:$GLARE_SERVICE_PORT"
    echo "${GLARE_MURANO_URL:-$GLARE_SERVICE_PROTOCOL://$host}"
}

function glare_murano_policy_file {
    echo "$GLARE_CONF_DIR/policy.d/glare-murano.yaml"
}

function glare_murano_paste_file {
    echo "$GLARE_CONF_DIR/glare-murano-paste.ini"
}

function glare_murano_api_paste_file {
    echo "$(dirname "$MURANO_CONF_FILE")/glare-murano-paste.ini"
}


# Lists in configuration files
# ----------------------------

# An option's values without spaces, with a comma before and after each.
function glare_murano_values {
    local values
    values=$(iniget "$1" "$2" "$3")
    values=${values//[[:space:]]/}
    echo ",${values:+$values,}"
}

# Add a value to a list once, and lose none that is there.
# glare_murano_add file section option value
function glare_murano_add {
    local values
    values=$(glare_murano_values "$1" "$2" "$3")
    if [[ "$values" != *",$4,"* ]]; then
        iniset "$1" "$2" "$3" "${values#,}$4"
    fi
}


# Configuration files of Glare and Murano
# ---------------------------------------

# Keep such a file as its own plug-in has just written it: in each stack.sh, it
# writes the whole file again.
function keep_glare_murano_conf {
    cp -p "$1" "$1.without-glare-murano"
}

# Restore the file, if there is one to restore.
function restore_glare_murano_conf {
    if [[ -f "$1.without-glare-murano" ]]; then
        mv "$1.without-glare-murano" "$1"
    fi
}


# stack pre-install
# -----------------

# Stop before anything is installed if the order of the plug-ins is wrong:
# Glare and Murano would write their configuration files again, over ours.
function check_glare_murano {
    if is_service_enabled glare && [[ -z "$GLARE_MURANO_FOLLOWS_GLARE" ]]; then
        die $LINENO "enable_plugin glare must come before glare-murano"
    fi
    if is_service_enabled murano && \
            [[ -z "$GLARE_MURANO_FOLLOWS_MURANO" ]]; then
        die $LINENO "enable_plugin murano must come before glare-murano"
    fi
    if [[ "$(glare_murano_catalog)" != glance && \
            "$(glare_murano_catalog)" != glare ]]; then
        die $LINENO "MURANO_CATALOG should be glance or glare: $MURANO_CATALOG"
    fi
    if ! is_glare_murano_glance && ! is_service_enabled glare && \
            ! is_service_enabled murano; then
        die $LINENO "glare-murano needs g-api, glare or murano on this host"
    fi
}


# stack install
# -------------

# The extras of this project that the services of this host need.
function glare_murano_extras {
    local extras=""
    if is_service_enabled glare; then
        extras+=,glare,cli
    fi
    if is_service_enabled murano; then
        extras+=,engine
    fi
    echo "${extras#,}"
}

# Install the project where Glare and Murano run, and where Glance runs.
function install_glare_murano {
    local extras
    extras=$(glare_murano_extras)
    if [[ -n "$extras" && -n "$GLARE_MURANO_VENV" ]]; then
        install_glare_murano_venv "$extras"
        use_glare_murano_venv
    elif [[ -n "$extras" ]]; then
        setup_develop "$GLARE_MURANO_DIR" "$extras"
    fi
    if is_glare_murano_glance; then
        setup_develop "$GLARE_MURANO_DIR" glance,cli
    fi
    fetch_glare_murano_core
}

# Fetch the core library, if it is to be published and Murano's plug-in, which
# would fetch it, is not enabled.
function fetch_glare_murano_core {
    if [[ "$GLARE_MURANO_PUBLISH" == *"$GLARE_MURANO_META/"* ]] && \
            ! is_service_enabled murano; then
        git_clone "$GLARE_MURANO_SOURCE" "$GLARE_MURANO_SOURCE_DIR" \
            "$GLARE_MURANO_SOURCE_BRANCH"
    fi
}

# Make or renew the environment. It is not left to DevStack's pip_install,
# which would hold it to the pins that this environment is there to avoid.
function install_glare_murano_venv {
    local packages
    if [[ "${OFFLINE:-False}" == "True" ]]; then
        return
    fi
    if [[ ! -x "$GLARE_MURANO_VENV/bin/pip" ]]; then
        "$GLARE_MURANO_PYTHON" -m venv "$GLARE_MURANO_VENV"
    fi
    IFS=, read -r -a packages <<< "$GLARE_MURANO_VENV_PACKAGES"
    "$GLARE_MURANO_VENV/bin/pip" install \
        -c "$GLARE_MURANO_CONSTRAINTS" \
        -e "${GLARE_MURANO_DIR}[$1]" "${packages[@]}"
}

# Make the plug-ins of Glare and Murano start their programs from there.
function use_glare_murano_venv {
    if is_service_enabled glare; then
        # shellcheck disable=SC2034 # Glare's plug-in reads it.
        GLARE_BIN_DIR=$GLARE_MURANO_VENV/bin
    fi
    if is_service_enabled murano; then
        # Murano's plug-in finds its programs again in each phase, and prefers
        # those in a directory of this name.
        ln -sfn "$GLARE_MURANO_VENV/bin" "$MURANO_DIR/bin"
    fi
}


# stack post-config
# -----------------

# Glare: offer the artifact type beside those that it offers already.
function configure_glare_murano_type {
    local types
    glare_murano_add "$GLARE_CONF_FILE" DEFAULT \
        custom_artifact_types_modules glare_murano.glare.artifact
    # The option replaces Glare's default, so the default is written out.
    types=$(iniget "$GLARE_CONF_FILE" DEFAULT enabled_artifact_types)
    if [[ -z "$types" ]]; then
        iniset "$GLARE_CONF_FILE" DEFAULT \
            enabled_artifact_types "$GLARE_MURANO_OTHER_TYPES"
    fi
    glare_murano_add "$GLARE_CONF_FILE" DEFAULT enabled_artifact_types murano
}

# Glare: give the roles of Keystone their rights, and let every project
# download what is public. The rules have a file of their own, which is read
# after policy.yaml and leaves that as it is.
function configure_glare_murano_policy {
    local file
    file=$(glare_murano_policy_file)
    mkdir -p "$(dirname "$file")"
    cp "$GLARE_MURANO_DIR/glare_murano/glare/etc/policy.yaml" "$file"
}

# Glare: use this project's pipeline, with Keystone's authentication, the
# health check and the metrics. Glare's own file stays as it is, and so do the
# options of Keystone's filter, which its plug-in has written.
function configure_glare_murano_paste {
    local file
    file=$(glare_murano_paste_file)
    cp "$GLARE_MURANO_DIR/glare_murano/glare/etc/glare-paste.ini" "$file"
    iniset "$GLARE_CONF_FILE" paste_deploy config_file "$file"
    iniset "$GLARE_CONF_FILE" paste_deploy flavor keystone
}

# Glance: merge our settings into its files. DevStack has just written them,
# and starts Glance after this phase.
function configure_glare_murano_glance {
    "$(glare_murano_glance_bin_dir)/glare-murano-glance-configure" \
        "$GLANCE_CONF_DIR" || \
        die $LINENO "Glance was not configured in $GLANCE_CONF_DIR"
}

# Murano: take packages from the catalogue, and keep those that were
# downloaded.
function configure_glare_murano_engine {
    local catalog
    catalog=$(glare_murano_catalog)
    if [[ "$catalog" == glance ]]; then
        iniset "$MURANO_CONF_FILE" package_loader catalogs directory,glance
    fi
    # DevStack's RabbitMQ has one user, which Murano's services and the agents
    # share. So do not use DevStack for tenants whom you do not trust.
    iniset "$MURANO_CONF_FILE" engine share_agent_password True
    iniset "$MURANO_CONF_FILE" engine packages_cache "$GLARE_MURANO_CACHE_DIR"
    iniset "$MURANO_CONF_FILE" engine enable_packages_cache \
        "$GLARE_MURANO_USE_CACHE"
    iniset "$MURANO_CONF_FILE" "$catalog" endpoint_type \
        "$GLARE_MURANO_ENDPOINT_TYPE"
    if [[ -n "$GLARE_MURANO_URL" ]]; then
        iniset "$MURANO_CONF_FILE" glare url "$GLARE_MURANO_URL"
    fi
    if is_service_enabled tls-proxy; then
        # The environment of our own does not know DevStack's authority.
        iniset "$MURANO_CONF_FILE" "$catalog" cafile "$SSL_BUNDLE_FILE"
    fi
    # Private packages are among those in the cache.
    sudo install -d -m 0700 -o "$STACK_USER" "$GLARE_MURANO_CACHE_DIR"
}

function configure_glare_murano {
    if is_service_enabled glare; then
        keep_glare_murano_conf "$GLARE_CONF_FILE"
        configure_glare_murano_type
        configure_glare_murano_policy
        configure_glare_murano_paste
    fi
    if is_glare_murano_glance; then
        configure_glare_murano_glance
    fi
    if is_service_enabled murano; then
        keep_glare_murano_conf "$MURANO_CONF_FILE"
        configure_glare_murano_engine
    fi
}


# stack extra
# -----------

function wait_for_glare_murano {
    local url
    url=$(glare_murano_url)
    if ! wait_for_service "$SERVICE_TIMEOUT" "$url"; then
        die $LINENO "Glare did not start at $url"
    fi
}

# Publish a package for everybody. One that was published with the same files
# before is skipped; other files under a published version are an error.
# publish_glare_murano_package catalogue programs [version=]directory
function publish_glare_murano_package {
    local directory=${3#*=}
    local version=()
    if [[ "$3" == *=* ]]; then
        version=(--as-version "${3%%=*}")
    fi
    "$2/openstack" --os-cloud devstack-admin \
        --os-murano-catalog "$1" \
        murano package publish --public "${version[@]}" "$directory" || \
        die $LINENO "$directory was not published in ${1^}"
}

# Publish what every engine needs: the core library, and what else is wished.
# publish_glare_murano catalogue programs
function publish_glare_murano {
    local packages package
    IFS=, read -r -a packages <<< "$GLARE_MURANO_PUBLISH"
    for package in "${packages[@]}"; do
        publish_glare_murano_package "$1" "$2" "$package"
    done
}

# Murano's plug-in has started murano-api with its own pipeline, and uploaded
# the core library there, which the catalogue has with a version. The same
# service is restarted with the filter.
function start_glare_murano_api {
    local command file program
    program=$(glare_murano_bin_dir)/murano-api
    file=$(glare_murano_api_paste_file)
    cp "$GLARE_MURANO_DIR/loader/engine/etc/murano-paste.ini" "$file"
    iniset "$MURANO_CONF_FILE" paste_deploy config_file "$file"
    command="$program --config-file $MURANO_CONF_FILE"
    if [[ "${MURANO_USE_UWSGI:-True}" == "True" ]]; then
        command="$(command -v uwsgi) --procname-prefix murano-api"
        command+=" --ini $MURANO_UWSGI_CONF"
    fi
    stop_process murano-api
    run_process murano-api "$command"
}

# Murano's plug-in has started the engine without the loader; the same service
# is restarted with it.
function start_glare_murano_engine {
    local program
    program=$(glare_murano_bin_dir)/murano-glare-engine
    stop_process murano-engine
    run_process murano-engine "$program --config-file $MURANO_CONF_FILE"
}

function start_glare_murano {
    if is_service_enabled glare; then
        wait_for_glare_murano
        publish_glare_murano glare "$(glare_murano_bin_dir)"
    fi
    if is_glare_murano_glance; then
        publish_glare_murano glance "$(glare_murano_glance_bin_dir)"
    fi
    if is_service_enabled murano-api && \
            [[ "$GLARE_MURANO_API" == "True" ]]; then
        start_glare_murano_api
    fi
    if is_service_enabled murano-engine; then
        start_glare_murano_engine
    fi
}


# stack test-config
# -----------------

# Tempest: there is a Glare. Murano's tests must not take it for the artifact
# service of Murano's own client, whose API is another one.
function configure_glare_murano_tempest {
    if is_service_enabled tempest && [[ -n "$(glare_murano_extras)" ]]; then
        iniset "$TEMPEST_CONFIG" service_available glare True
        iniset "$TEMPEST_CONFIG" application_catalog glare_backend False
    fi
}


# unstack
# -------

# Stop murano-api and the engine, and Glare too: its plug-in stops a service of
# another name ("glare-api") than it starts.
function stop_glare_murano {
    stop_process murano-api
    stop_process murano-engine
    stop_process glare
}


# clean
# -----

# Take our settings out of the configuration files, as far as they exist.
function unconfigure_glare_murano {
    if [[ -n "${GLARE_CONF_FILE:-}" ]]; then
        restore_glare_murano_conf "$GLARE_CONF_FILE"
        rm -f "$(glare_murano_policy_file)" "$(glare_murano_paste_file)"
        if [[ -d "$GLARE_CONF_DIR/policy.d" ]]; then
            rmdir --ignore-fail-on-non-empty "$GLARE_CONF_DIR/policy.d"
        fi
    fi
    if [[ -n "${MURANO_CONF_FILE:-}" ]]; then
        restore_glare_murano_conf "$MURANO_CONF_FILE"
        rm -f "$(glare_murano_api_paste_file)"
    fi
    if [[ -f "${TEMPEST_CONFIG:-}" ]]; then
        inidelete "$TEMPEST_CONFIG" service_available glare
        inidelete "$TEMPEST_CONFIG" application_catalog glare_backend
    fi
}

# Let Murano's plug-in find its programs where it did before.
function unlink_glare_murano_venv {
    if [[ -z "$GLARE_MURANO_VENV" || -z "${MURANO_DIR:-}" ]]; then
        return
    fi
    if [[ "$(readlink "$MURANO_DIR/bin")" == "$GLARE_MURANO_VENV/bin" ]]; then
        rm -f "${MURANO_DIR:?}/bin"
    fi
}

# Remove a directory of this plug-in. If local.conf has put it elsewhere, it
# stays, since it may have other files as well.
function remove_glare_murano_directory {
    if [[ "$1" == "${GLARE_MURANO_DATA_DIR:?}"/* && "$1" != *..* ]]; then
        sudo rm -rf "$1"
    fi
}

# Remove what this plug-in has created.
function cleanup_glare_murano {
    unconfigure_glare_murano
    unlink_glare_murano_venv
    remove_glare_murano_directory "$GLARE_MURANO_CACHE_DIR"
    remove_glare_murano_directory "$GLARE_MURANO_VENV"
    if [[ -d "$GLARE_MURANO_DATA_DIR" ]]; then
        rmdir --ignore-fail-on-non-empty "$GLARE_MURANO_DATA_DIR"
    fi
}


# Phases
# ------

if is_service_enabled glare-murano; then
    case "$*" in
        "stack pre-install")
            check_glare_murano
            # DevStack starts no service that runs already, and one that an
            # earlier run has left would keep its old configuration.
            stop_glare_murano
            if is_glare_murano_glance; then
                stop_glance
            fi
            ;;
        "stack install")
            echo_summary "Installing glare-murano"
            install_glare_murano
            ;;
        "stack post-config")
            echo_summary "Configuring glare-murano"
            configure_glare_murano
            ;;
        "stack extra")
            echo_summary "Starting glare-murano"
            start_glare_murano
            ;;
        "stack test-config")
            configure_glare_murano_tempest
            ;;
        unstack)
            echo_summary "Stopping glare-murano"
            stop_glare_murano
            ;;
        clean)
            echo_summary "Cleaning glare-murano"
            cleanup_glare_murano
            ;;
    esac
fi
