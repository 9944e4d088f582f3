#!/usr/bin/env bash
# shellcheck disable=SC1091,SC2034 # DevStack lies beside a link to this file.
#
# SPDX-License-Identifier: Apache-2.0

# Run phases as stack.sh, unstack.sh and clean.sh do, with DevStack's own
# functions. Those scripts themselves install packages, edit files in /etc, and
# start databases, a message queue and systemd's units.
#
# Of DevStack's services, this one sets up Glance. Its database is not made
# here, since no server for it runs.

TOP_DIR=$(cd "$(dirname "$0")" && pwd)

source "$TOP_DIR/functions"
GetDistro
extract_localrc_section "$TOP_DIR/local.conf" "$TOP_DIR/localrc" \
    "$TOP_DIR/.localrc.auto"
source "$TOP_DIR/stackrc"
# stackrc names the directory of the host's own systemd.
SYSTEMD_DIR=$HOST_DIR/systemd
SSL_BUNDLE_FILE=$DATA_DIR/ca-bundle.pem
source "$TOP_DIR/lib/database"
source "$TOP_DIR/lib/rpc_backend"
fetch_plugins
run_phase override_defaults
for library in apache tls keystone glance tempest; do
    # shellcheck source=/dev/null
    source "$TOP_DIR/lib/$library"
done
run_phase source
initialize_database_backends
setup_devstack_virtualenv

set -o errexit

for phase in "$@"; do
    if [[ "$phase" == "stack install" ]] && is_service_enabled g-api; then
        configure_glance
    fi
    # shellcheck disable=SC2086 # A mode and a phase.
    run_phase $phase
    case "$phase" in
        "stack post-config")
            merge_config_group "$TOP_DIR/local.conf" post-config
            if is_service_enabled g-api; then
                start_glance
            fi
            ;;
        unstack)
            if is_service_enabled g-api; then
                stop_glance
            fi
            ;;
        clean)
            cleanup_glance
            rm -rf "$GLANCE_CONF_DIR" "$TOP_DIR/.localrc.auto"
            find "$SYSTEMD_DIR" -type f -name "devstack@*service" -delete
            ;;
    esac
done
