#!/usr/bin/env bash
# shellcheck disable=SC2034 # Plug-ins read what is set here.
#
# SPDX-License-Identifier: Apache-2.0

# As Murano's own, it takes its programs from its own directory, if they are
# there.

MURANO_USE_UWSGI=${MURANO_USE_UWSGI:-True}
MURANO_UWSGI_CONF=$HOST_DIR/etc/murano/murano-api-uwsgi.ini
MURANO_BIN_DIR=$(get_python_exec_prefix)
if [[ -d "$MURANO_DIR/bin" ]]; then
    MURANO_BIN_DIR=$MURANO_DIR/bin
fi

case "$*" in
    "stack post-config")
        mkdir -p "$(dirname "$MURANO_CONF_FILE")"
        cp "$HOST_DIR/stock/murano.conf" "$MURANO_CONF_FILE"
        ;;
    "stack extra")
        run_process murano-api "$MURANO_BIN_DIR/murano-api stock"
        run_process murano-engine \
            "$MURANO_BIN_DIR/murano-engine --config-file $MURANO_CONF_FILE"
        ;;
    unstack)
        stop_process murano-api
        stop_process murano-engine
        ;;
esac
